// ingot.h over Engine. No exception and no C++ type crosses it.
#include "runtime/engine/ingot.h"

#include "runtime/engine/Engine.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>

using namespace ingot;

struct ingot_engine {
  std::unique_ptr<Engine> engine;
  std::string modelName;
  std::string contract;
};

struct ingot_result {
  GenerateResult result;
};

namespace {

thread_local std::string lastError;

ingot_status statusOf(const Status &status) {
  switch (status.code()) {
  case StatusCode::Ok:
    return INGOT_OK;
  case StatusCode::InvalidInput:
    return INGOT_INVALID_INPUT;
  case StatusCode::Unsupported:
    return INGOT_UNSUPPORTED;
  case StatusCode::NotFound:
    return INGOT_NOT_FOUND;
  case StatusCode::IoError:
    return INGOT_IO_ERROR;
  case StatusCode::OutOfMemory:
    return INGOT_OUT_OF_MEMORY;
  case StatusCode::Internal:
    return INGOT_INTERNAL;
  case StatusCode::Busy:
    return INGOT_BUSY;
  }
  return INGOT_INTERNAL;
}

ingot_status fail(const Status &status) {
  lastError = status.message();
  return statusOf(status);
}

// Runs `body`, which returns an ingot_status, and lets no exception out.
template <typename Body> ingot_status guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    // Short enough to need no memory.
    lastError = "out of memory";
    return INGOT_OUT_OF_MEMORY;
  } catch (const std::exception &error) {
    try {
      lastError = error.what();
    } catch (const std::bad_alloc &) {
      lastError.clear();
    }
    return INGOT_INTERNAL;
  }
}

// Programs that are compiled against other versions of the header have these
// offsets in them: a new field goes to the end, behind all padding.
static_assert(sizeof(void *) != 8 || (offsetof(ingot_options, device) == 48 &&
                                      sizeof(ingot_options) == 56 &&
                                      offsetof(ingot_request, user) == 168 &&
                                      sizeof(ingot_request) == 176));

// No struct of any version is as long; what was never initialised often is.
constexpr std::size_t kMostStructBytes = 4096;

// A struct of an older header is shorter: what it lacks keeps the default. One
// of a newer header is longer: what is not known here must be left at zero.
template <typename T> Status copySized(const char *name, const T *from, T &to) {
  std::size_t size = from->struct_size;
  if (size < sizeof(std::size_t) || size > kMostStructBytes)
    return Status::invalid(std::string(name) + ".struct_size is " +
                           std::to_string(size) + ", expected " +
                           std::to_string(sizeof(T)) +
                           ": was the init function called?");
  const auto *bytes = reinterpret_cast<const unsigned char *>(from);
  for (std::size_t i = sizeof(T); i < size; ++i)
    if (bytes[i] != 0)
      return Status::unsupported(
          std::string(name) + " sets a field at byte " + std::to_string(i) +
          ", which this library (" INGOT_VERSION ", " +
          std::to_string(sizeof(T)) + " bytes) does not know");
  std::memcpy(static_cast<void *>(&to), from, std::min(size, sizeof(T)));
  to.struct_size = sizeof(T);
  return Status::ok();
}

// As much of `defaults` as the program's struct has room for, the rest zero.
template <typename T>
void initSized(T *to, const T &defaults, std::size_t size) {
  if (size < sizeof(std::size_t))
    return;
  std::memset(static_cast<void *>(to), 0, size);
  std::memcpy(static_cast<void *>(to), &defaults, std::min(size, sizeof(T)));
  std::memcpy(static_cast<void *>(to), &size, sizeof size);
}

Result<GenerateRequest> convert(const ingot_engine *engine,
                                const ingot_request *given) {
  if (!given)
    return Status::invalid("request is NULL");
  ingot_request in;
  ingot_request_init(engine, &in);
  INGOT_RETURN_IF_ERROR(copySized("request", given, in));
  if ((!in.prompt_ids && in.num_prompt_ids) || (!in.stop && in.num_stop) ||
      (!in.stop_ids && in.num_stop_ids))
    return Status::invalid("request: a count is given for a list that is NULL");
  GenerateRequest out;
  if (in.prompt)
    out.prompt = in.prompt;
  if (in.prompt_ids)
    out.promptIds.emplace(in.prompt_ids, in.prompt_ids + in.num_prompt_ids);
  if (in.messages_json) {
    out.chat.emplace();
    out.chat->messagesJson = in.messages_json;
  }
  out.maxTokens = in.max_tokens;
  out.sampling.temperature = in.temperature;
  out.sampling.topP = in.top_p;
  out.sampling.topK = in.top_k;
  out.sampling.minP = in.min_p;
  out.sampling.repetitionPenalty = in.repetition_penalty;
  out.sampling.presencePenalty = in.presence_penalty;
  out.sampling.frequencyPenalty = in.frequency_penalty;
  if (in.has_seed)
    out.sampling.seed = in.seed;
  for (std::size_t i = 0; i < in.num_stop; ++i) {
    if (!in.stop[i])
      return Status::invalid("request.stop[" + std::to_string(i) + "] is NULL");
    out.stop.emplace_back(in.stop[i]);
  }
  out.stopIds.assign(in.stop_ids, in.stop_ids + in.num_stop_ids);
  out.ignoreEos = in.ignore_eos != 0;
  if (in.on_text)
    out.onText = [callback = in.on_text,
                  user = in.user](std::int32_t, std::string_view text) {
      return callback(text.data(), text.size(), user) != 0;
    };
  return out;
}

} // namespace

extern "C" {

const char *ingot_version(void) { return INGOT_VERSION; }

const char *ingot_error_message(void) { return lastError.c_str(); }

void ingot_options_init_sized(ingot_options *options, size_t struct_size) {
  const EngineOptions defaults;
  ingot_options filled{};
  filled.sequences = defaults.sequences;
  filled.step_tokens = defaults.stepTokens;
  initSized(options, filled, struct_size);
}

ingot_status ingot_open(const char *path, const ingot_options *options,
                        ingot_engine **engine) {
  return guarded([&]() -> ingot_status {
    if (!path || !engine)
      return fail(Status::invalid("ingot_open: path or engine is NULL"));
    *engine = nullptr;
    ingot_options in;
    ingot_options_init(&in);
    if (options)
      if (Status status = copySized("options", options, in); !status)
        return fail(status);
    if (in.threads < 0)
      return fail(Status::invalid("options.threads is " +
                                  std::to_string(in.threads) +
                                  ", expected 0 or more"));
    EngineOptions out;
    out.device = in.device ? in.device : "";
    out.level = in.level ? in.level : "";
    out.threads = in.threads;
    out.context = in.context;
    out.sequences = in.sequences;
    out.stepTokens = in.step_tokens;
    out.kvBytes = in.kv_bytes;
    out.verifyChecksums = in.verify != 0;
    auto opened = Engine::open(path, out);
    if (!opened)
      return fail(opened.status());
    auto handle = std::make_unique<ingot_engine>();
    handle->engine = std::move(opened).value();
    handle->modelName = handle->engine->model().name()->str();
    handle->contract = handle->engine->contract().describe();
    *engine = handle.release();
    return INGOT_OK;
  });
}

void ingot_close(ingot_engine *engine) { delete engine; }

const char *ingot_model_name(const ingot_engine *engine) {
  return engine->modelName.c_str();
}

int32_t ingot_vocab_size(const ingot_engine *engine) {
  return std::int32_t(engine->engine->model().vocab());
}

int32_t ingot_context_size(const ingot_engine *engine) {
  return engine->engine->contract().context;
}

const char *ingot_memory_contract(const ingot_engine *engine) {
  return engine->contract.c_str();
}

void ingot_request_init_sized(const ingot_engine *engine,
                              ingot_request *request, size_t struct_size) {
  const SamplingParams defaults = defaultSampling(engine->engine->model());
  ingot_request filled{};
  filled.max_tokens = -1;
  filled.temperature = defaults.temperature;
  filled.top_p = defaults.topP;
  filled.top_k = defaults.topK;
  filled.min_p = defaults.minP;
  filled.repetition_penalty = defaults.repetitionPenalty;
  initSized(request, filled, struct_size);
}

ingot_status ingot_generate(ingot_engine *engine, const ingot_request *request,
                            ingot_result **result) {
  ingot_status status = INGOT_OK;
  return ingot_generate_batch(engine, &request, 1, result, &status);
}

ingot_status ingot_generate_batch(ingot_engine *engine,
                                  const ingot_request *const *requests,
                                  size_t count, ingot_result **results,
                                  ingot_status *statuses) {
  return guarded([&]() -> ingot_status {
    if (!engine || !requests || !results || !statuses)
      return fail(Status::invalid("ingot_generate: an argument is NULL"));
    for (std::size_t i = 0; i < count; ++i) {
      results[i] = nullptr;
      statuses[i] = INGOT_OUT_OF_MEMORY; // what an exception leaves behind
    }
    std::vector<Status> failures(count, Status::internal("did not finish"));
    std::vector<std::unique_ptr<ingot_result>> done(count);
    RequestScope scope(engine->engine->core(), count);
    for (std::size_t i = 0; i < count; ++i) {
      auto converted = convert(engine, requests[i]);
      if (!converted) {
        failures[i] = converted.status();
        continue;
      }
      auto id = engine->engine->submit(
          std::move(converted).value(), [&, i](const GenerateResult &result) {
            failures[i] = result.outcome.status;
            if (result.outcome.reason != FinishReason::Failed)
              done[i].reset(new ingot_result{result});
          });
      if (id)
        scope.add(*id);
      else
        failures[i] = id.status();
    }
    Status run = engine->engine->runUntilIdle();
    const Status *first = nullptr;
    for (std::size_t i = 0; i < count && !first; ++i)
      if (const Status &failure = run.isOk() ? failures[i] : run; !failure)
        first = &failure;
    ingot_status answer = first ? fail(*first) : INGOT_OK;
    // From here on nothing takes memory.
    for (std::size_t i = 0; i < count; ++i) {
      const Status &failure = run.isOk() ? failures[i] : run;
      statuses[i] = statusOf(failure);
      if (failure.isOk())
        results[i] = done[i].release();
    }
    return answer;
  });
}

const char *ingot_result_text(const ingot_result *result) {
  return result->result.text.c_str();
}

size_t ingot_result_num_tokens(const ingot_result *result) {
  return result->result.outcome.tokens.size();
}

const int32_t *ingot_result_tokens(const ingot_result *result) {
  return result->result.outcome.tokens.data();
}

size_t ingot_result_num_prompt_tokens(const ingot_result *result) {
  return std::size_t(result->result.outcome.promptTokens);
}

ingot_finish_reason ingot_result_finish_reason(const ingot_result *result) {
  switch (result->result.outcome.reason) {
  case FinishReason::Stop:
    return INGOT_FINISH_STOP;
  case FinishReason::Length:
    return INGOT_FINISH_LENGTH;
  case FinishReason::Cancelled:
  case FinishReason::Failed: // has no result
    break;
  }
  return INGOT_FINISH_CANCELLED;
}

uint64_t ingot_result_seed(const ingot_result *result) {
  return result->result.outcome.seed;
}

void ingot_result_free(ingot_result *result) { delete result; }

ingot_status ingot_tokenize(const ingot_engine *engine, const char *text,
                            int add_special_tokens, int32_t *ids,
                            size_t capacity, size_t *count) {
  return guarded([&]() -> ingot_status {
    if (!engine || !text || !count || (!ids && capacity))
      return fail(Status::invalid("ingot_tokenize: an argument is NULL"));
    const Tokenizer *tokenizer = engine->engine->tokenizer();
    if (!tokenizer)
      return fail(Status::unsupported("the artifact has no tokenizer"));
    EncodeOptions options;
    options.addSpecialTokens = add_special_tokens != 0;
    auto encoded = tokenizer->encode(text, options);
    if (!encoded)
      return fail(encoded.status());
    *count = encoded->size();
    if (encoded->size() > capacity)
      return fail(Status::outOfMemory("room for " + std::to_string(capacity) +
                                      " ids, the text has " +
                                      std::to_string(encoded->size())));
    std::copy(encoded->begin(), encoded->end(), ids);
    return INGOT_OK;
  });
}

ingot_status ingot_score(ingot_engine *engine, const int32_t *ids,
                         size_t num_ids, float *out, size_t out_count) {
  return guarded([&]() -> ingot_status {
    if (!engine || !ids || !out)
      return fail(Status::invalid("ingot_score: an argument is NULL"));
    std::size_t vocab = engine->engine->model().vocab();
    if (num_ids > out_count / vocab || num_ids * vocab != out_count)
      return fail(
          Status::invalid("ingot_score: out has " + std::to_string(out_count) +
                          " floats, expected " + std::to_string(num_ids) +
                          " x " + std::to_string(vocab)));
    ScoreRequest request;
    request.tokens.assign(ids, ids + num_ids);
    request.onLogits = [&](std::int32_t position, std::span<const float> row) {
      std::copy(row.begin(), row.end(), out + std::size_t(position) * vocab);
    };
    RequestScope scope(engine->engine->core(), 1);
    auto id = engine->engine->core().submit(std::move(request), {});
    if (!id)
      return fail(id.status());
    scope.add(*id);
    if (Status status = engine->engine->runUntilIdle(); !status)
      return fail(status);
    return INGOT_OK;
  });
}

} // extern "C"
