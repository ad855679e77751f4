#include "runtime/serve/Preparation.h"

#include "runtime/serve/ApiRequest.h"

#include <ctime>
#include <new>

namespace ingot::serve {
namespace {

[[noreturn]] void fail(const Status &status) {
  throw ApiFailure{ApiError::fromStatus(status)};
}

void checkLength(const std::vector<std::int32_t> &ids, std::int64_t maxTokens,
                 const ModelCard &card, const std::string &field) {
  if (ids.empty())
    failField(field, "is empty, and this model has no token to begin with");
  std::int64_t room = card.context - (maxTokens == 0 ? 0 : 1);
  if (std::int64_t(ids.size()) > room)
    throw ApiFailure{ApiError::invalid(
        "the prompt has " + std::to_string(ids.size()) +
            " tokens; this model's maximum context length is " +
            std::to_string(card.context) + " tokens, output included",
        field, "context_length_exceeded")};
}

void fillJob(const GenerationFields &fields, Preparation &made) {
  TokenRequest &request = made.job.request;
  request.sampling = fields.sampling;
  request.maxTokens = fields.maxTokens;
  request.stopIds = fields.stopIds;
  request.ignoreEos = fields.ignoreEos;
  request.exitThreshold = fields.exitThreshold;
  request.priority = fields.priority;
  request.cacheSalt = fields.cacheSalt;
  request.copies = fields.n;
  made.job.stop = fields.stop;
  made.plan.stream = fields.stream;
  made.plan.includeUsage = fields.includeUsage;
  made.plan.n = fields.n;
  made.plan.logprobs = fields.sampling.logprobs;
  made.user = fields.user;
}

// The generation endpoints are for models that generate, and the other for
// encoders.
const ServedModel &generating(const NamedModel &named, Endpoint endpoint) {
  if (named.loop)
    return named.loop->model();
  failField("model", "\"" + named.card().id +
                         "\" is an encoder, which generates no text; it "
                         "answers /v1/embeddings, not /v1/" +
                         (endpoint == Endpoint::Chat ? "chat/completions"
                                                     : "completions"));
}

void prepareEmbedding(FieldReader &fields, Preparation &made) {
  if (!made.model.encoder)
    failField("model", "\"" + made.model.card().id +
                           "\" generates text and gives no vectors; it "
                           "answers /v1/completions and /v1/chat/completions, "
                           "not /v1/embeddings");
  const ServedEncoder &model = made.model.encoder->model();
  EmbeddingFields read =
      readEmbedding(fields, model.card(), model.dimensions());
  made.user = read.user;
  made.embeddingPlan.model = model.card().id;
  made.embeddingPlan.isBase64 = read.isBase64;
  for (std::size_t i = 0; i < read.inputs.size(); ++i) {
    std::string field =
        read.inputs.size() == 1 ? "input" : "input[" + std::to_string(i) + "]";
    std::vector<std::int32_t> ids;
    if (auto *text = std::get_if<std::string>(&read.inputs[i])) {
      auto encoded = model.tokenizer().encode(*text);
      if (!encoded)
        fail(encoded.status().withContext(field));
      ids = std::move(*encoded);
    } else {
      ids = std::get<std::vector<std::int32_t>>(std::move(read.inputs[i]));
    }
    if (ids.empty())
      failField(field, "is empty: there is nothing to make a vector of");
    if (std::int64_t(ids.size()) > model.card().context)
      throw ApiFailure{ApiError::invalid(
          "the text has " + std::to_string(ids.size()) +
              " tokens; the longest that this model takes has " +
              std::to_string(model.card().context),
          field, "context_length_exceeded")};
    made.embeddingPlan.promptTokens += std::int64_t(ids.size());
    made.embedding.texts.push_back(std::move(ids));
  }
}

// A prompt that some template has rendered already begins with BOS, and is
// given another.
bool beginsTwice(const Tokenizer &tokenizer,
                 const std::vector<std::int32_t> &ids) {
  return ids.size() > 1 && ids[0] == ids[1] && ids[0] == tokenizer.bosId();
}

void prepareCompletion(FieldReader &fields, const ServedModel &model,
                       Preparation &made) {
  CompletionFields read = readCompletion(fields, model.card());
  fillJob(read, made);
  made.job.continuesPrompt = true;
  made.job.wantsPromptTokens = read.echo && read.sampling.logprobs >= 0;
  made.plan.echoesLogprobs = made.job.wantsPromptTokens;
  made.plan.head.object = "text_completion";
  for (std::size_t i = 0; i < read.prompts.size(); ++i) {
    std::string field = read.prompts.size() == 1
                            ? "prompt"
                            : "prompt[" + std::to_string(i) + "]";
    std::vector<std::int32_t> ids;
    if (auto *text = std::get_if<std::string>(&read.prompts[i])) {
      auto encoded = model.tokenizer().encode(*text);
      if (!encoded)
        fail(encoded.status().withContext(field));
      ids = std::move(*encoded);
      if (beginsTwice(model.tokenizer(), ids))
        made.note = field + " begins with the model's BOS, which is put before "
                            "every text: it stands twice";
      if (read.echo)
        made.plan.echoText.push_back(std::move(*text));
    } else {
      ids = std::get<std::vector<std::int32_t>>(std::move(read.prompts[i]));
      if (read.echo) {
        auto decoded = model.tokenizer().decode(ids);
        if (!decoded)
          fail(decoded.status().withContext(field));
        made.plan.echoText.push_back(std::move(*decoded));
      }
    }
    checkLength(ids, read.maxTokens, model.card(), field);
    made.job.prompts.push_back(std::move(ids));
  }
}

std::vector<std::int32_t> renderIds(const ServedModel &model,
                                    ChatRequest chat) {
  chat.userText = model.card().userText;
  if (!model.hasChatTemplate())
    failField("messages", "the model \"" + model.card().id +
                              "\" has no chat template; give a prompt to "
                              "/v1/completions");
  auto ids = model.chatIds(chat);
  if (!ids)
    fail(ids.status().withContext("messages"));
  return std::move(*ids);
}

void prepareChat(FieldReader &fields, const ServedModel &model,
                 Preparation &made) {
  ChatFields read = readChat(fields, model.card());
  fillJob(read, made);
  made.plan.isChat = true;
  made.plan.head.object =
      read.stream ? "chat.completion.chunk" : "chat.completion";
  std::vector<std::int32_t> ids = renderIds(model, read.chat);
  checkLength(ids, read.maxTokens, model.card(), "messages");
  made.job.prompts.push_back(std::move(ids));
}

std::string tokenizeBody(FieldReader &fields, const NamedModel &model) {
  TokenizeFields read = readTokenize(fields);
  std::vector<std::int32_t> ids;
  if (read.prompt) {
    EncodeOptions options;
    options.addSpecialTokens = read.addSpecialTokens;
    auto encoded = model.tokenizer().encode(*read.prompt, options);
    if (!encoded)
      fail(encoded.status().withContext("prompt"));
    ids = std::move(*encoded);
  } else {
    if (!model.loop)
      failField("messages", "the model \"" + model.card().id +
                                "\" is an encoder and has no chat template; "
                                "give a prompt");
    ids = renderIds(model.loop->model(), read.chat);
  }
  Json answer = {{"count", ids.size()},
                 {"max_model_len", model.card().context},
                 {"tokens", ids}};
  if (read.returnTokenStrings) {
    Json names = Json::array();
    for (std::int32_t id : ids)
      names.push_back(completionTokenName(model.tokenizer(), id));
    answer["token_strs"] = std::move(names);
  }
  return dumpJson(answer);
}

std::string detokenizeBody(FieldReader &fields, const NamedModel &model) {
  DetokenizeFields read = readDetokenize(fields, model.card());
  auto text = model.tokenizer().decode(read.tokens, /*skipSpecial=*/false);
  if (!text)
    fail(text.status().withContext("tokens"));
  return dumpJson({{"prompt", *text}});
}

void prepareChecked(Endpoint endpoint, std::string_view body,
                    const FindModel &findModel, Preparation &made) {
  Json object = parseJsonObject(body);
  FieldReader fields(object);
  auto name = fields.string("model");
  made.model = findModel(name ? &*name : nullptr);
  const NamedModel &model = made.model;
  made.plan.head.created = std::time(nullptr);
  made.plan.head.model = model.card().id;
  made.plan.head.fingerprint = model.card().fingerprint;
  switch (endpoint) {
  case Endpoint::Completions:
    return prepareCompletion(fields, generating(model, endpoint), made);
  case Endpoint::Chat:
    return prepareChat(fields, generating(model, endpoint), made);
  case Endpoint::Embeddings:
    return prepareEmbedding(fields, made);
  case Endpoint::Tokenize:
    made.body = tokenizeBody(fields, model);
    return;
  case Endpoint::Detokenize:
    made.body = detokenizeBody(fields, model);
    return;
  }
}

} // namespace

const ModelCard &NamedModel::card() const {
  return loop ? loop->model().card() : encoder->model().card();
}

const Tokenizer &NamedModel::tokenizer() const {
  return loop ? loop->model().tokenizer() : encoder->model().tokenizer();
}

Preparation prepare(Endpoint endpoint, std::string_view body,
                    const FindModel &findModel) {
  Preparation made;
  try {
    prepareChecked(endpoint, body, findModel, made);
  } catch (const ApiFailure &failure) {
    made.error = failure.error;
  } catch (const std::bad_alloc &) {
    made.error = ApiError::fromStatus(Status::outOfMemory("memory ran out"));
  }
  return made;
}

} // namespace ingot::serve
