/* A program of the C API, compiled as C. Returns NULL where all is as expected,
 * else what was not. */
#include "runtime/engine/ingot.h"

#include <string.h>

#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition))                                                          \
      return #condition;                                                       \
  } while (0)

/* Structs as programs of other ages have them. The first was compiled before
 * `device` and `ignore_eos` were there, the second knows one field more. */
typedef struct {
  ingot_options now;
  uint64_t later;
} newer_options;
typedef struct {
  ingot_request now;
  uint64_t later;
} newer_request;

static int isUntouched(const unsigned char *bytes, size_t from, size_t to) {
  for (; from < to; ++from)
    if (bytes[from] != 0xa5)
      return 0;
  return 1;
}

static const char *olderAndNewer(const char *path) {
  union {
    ingot_options now;
    unsigned char bytes[sizeof(ingot_options)];
  } options;
  union {
    ingot_request now;
    unsigned char bytes[sizeof(ingot_request)];
  } request;
  const size_t optionsBytes = offsetof(ingot_options, device);
  const size_t requestBytes = offsetof(ingot_request, ignore_eos);
  newer_options newer;
  newer_request asked;
  ingot_engine *engine = NULL;
  ingot_result *result = NULL;
  int32_t prompt[3] = {3, 4, 5};

  /* Older: nothing beyond its end is written, nor read. */
  memset(&options, 0xa5, sizeof options);
  ingot_options_init_sized(&options.now, optionsBytes);
  EXPECT(options.now.struct_size == optionsBytes);
  EXPECT(options.now.sequences >= 1 && options.now.level == NULL);
  EXPECT(isUntouched(options.bytes, optionsBytes, sizeof options));
  EXPECT(ingot_open(path, &options.now, &engine) == INGOT_OK);
  memset(&request, 0xa5, sizeof request);
  ingot_request_init_sized(engine, &request.now, requestBytes);
  EXPECT(request.now.struct_size == requestBytes);
  EXPECT(request.now.max_tokens == -1 && request.now.num_stop_ids == 0);
  EXPECT(isUntouched(request.bytes, requestBytes, sizeof request));
  request.now.prompt_ids = prompt;
  request.now.num_prompt_ids = 3;
  request.now.max_tokens = 2;
  request.now.temperature = 0; /* else chance may end it before */
  EXPECT(ingot_generate(engine, &request.now, &result) == INGOT_OK);
  EXPECT(ingot_result_num_tokens(result) == 2);
  ingot_result_free(result);

  /* Newer: its own fields begin at zero, and are refused when they are set. */
  memset(&asked, 0xa5, sizeof asked);
  ingot_request_init_sized(engine, &asked.now, sizeof asked);
  EXPECT(asked.now.struct_size == sizeof asked && asked.later == 0);
  asked.now.prompt_ids = prompt;
  asked.now.num_prompt_ids = 3;
  asked.now.max_tokens = 2;
  EXPECT(ingot_generate(engine, &asked.now, &result) == INGOT_OK);
  ingot_result_free(result);
  asked.later = 1;
  EXPECT(ingot_generate(engine, &asked.now, &result) == INGOT_UNSUPPORTED);
  EXPECT(strstr(ingot_error_message(), "request sets a field at byte") != NULL);
  ingot_close(engine);
  memset(&newer, 0xa5, sizeof newer);
  ingot_options_init_sized(&newer.now, sizeof newer);
  EXPECT(newer.later == 0);
  EXPECT(ingot_open(path, &newer.now, &engine) == INGOT_OK);
  ingot_close(engine);
  newer.later = 1;
  EXPECT(ingot_open(path, &newer.now, &engine) == INGOT_UNSUPPORTED);
  EXPECT(engine == NULL);

  /* Not initialised at all. */
  options.now.struct_size = 0;
  EXPECT(ingot_open(path, &options.now, &engine) == INGOT_INVALID_INPUT);
  return NULL;
}

const char *ingotCApiTest(const char *path, const char *missing);

const char *ingotCApiTest(const char *path, const char *missing) {
  ingot_options options;
  ingot_engine *engine = NULL;
  ingot_request request, other, bad;
  ingot_result *result = NULL;
  const ingot_request *batch[3];
  ingot_result *results[3];
  ingot_status statuses[3];
  int32_t prompt[3] = {3, 4, 5};
  int32_t outside[1] = {40};
  float logits[3 * 40];

  EXPECT(strlen(ingot_version()) > 0);
  EXPECT(ingot_open(missing, NULL, &engine) == INGOT_NOT_FOUND);
  EXPECT(engine == NULL);
  EXPECT(strstr(ingot_error_message(), missing) != NULL);

  ingot_options_init(&options);
  options.threads = 2;
  options.sequences = 2;
  options.level = "none";
  EXPECT(ingot_open(path, &options, &engine) == INGOT_NOT_FOUND);
  options.level = NULL;
  options.struct_size = 100000;
  EXPECT(ingot_open(path, &options, &engine) == INGOT_INVALID_INPUT);
  options.struct_size = sizeof options;
  EXPECT(ingot_open(path, &options, &engine) == INGOT_OK);
  EXPECT(strcmp(ingot_model_name(engine), "tiny") == 0);
  EXPECT(ingot_vocab_size(engine) == 40);
  EXPECT(ingot_context_size(engine) == 256);
  EXPECT(strstr(ingot_memory_contract(engine), "token arena") != NULL);

  /* Kernels that do nothing leave zero logits: id 0, the lowest of a tie. */
  ingot_request_init(engine, &request);
  request.prompt_ids = prompt;
  request.num_prompt_ids = 3;
  request.temperature = 0;
  request.max_tokens = 4;
  EXPECT(ingot_generate(engine, &request, &result) == INGOT_OK);
  EXPECT(ingot_result_num_tokens(result) == 4);
  EXPECT(ingot_result_num_prompt_tokens(result) == 3);
  EXPECT(ingot_result_tokens(result)[3] == 0);
  EXPECT(ingot_result_finish_reason(result) == INGOT_FINISH_LENGTH);
  EXPECT(strcmp(ingot_result_text(result), "") == 0);
  ingot_result_free(result);

  /* A bad request of a batch ends alone. */
  ingot_request_init(engine, &bad);
  bad.prompt_ids = outside;
  bad.num_prompt_ids = 1;
  other = request;
  other.has_seed = 1;
  other.seed = 9;
  other.temperature = 1;
  batch[0] = &request;
  batch[1] = &bad;
  batch[2] = &other;
  EXPECT(ingot_generate_batch(engine, batch, 3, results, statuses) ==
         INGOT_INVALID_INPUT);
  EXPECT(strstr(ingot_error_message(), "token id 40") != NULL);
  EXPECT(statuses[0] == INGOT_OK && statuses[2] == INGOT_OK);
  EXPECT(statuses[1] == INGOT_INVALID_INPUT && results[1] == NULL);
  EXPECT(ingot_result_seed(results[2]) == 9);
  ingot_result_free(results[0]);
  ingot_result_free(results[2]);

  request.prompt = "both";
  EXPECT(ingot_generate(engine, &request, &result) == INGOT_INVALID_INPUT);
  EXPECT(result == NULL);
  request.prompt_ids = NULL;
  request.num_prompt_ids = 0;
  EXPECT(ingot_generate(engine, &request, &result) == INGOT_UNSUPPORTED);

  EXPECT(ingot_score(engine, prompt, 3, logits, 3 * 40) == INGOT_OK);
  EXPECT(logits[119] == 0.0f);
  EXPECT(ingot_score(engine, prompt, 3, logits, 100) == INGOT_INVALID_INPUT);
  EXPECT(ingot_score(engine, outside, 1, logits, 40) == INGOT_INVALID_INPUT);

  ingot_close(engine);
  ingot_close(NULL);
  ingot_result_free(NULL);
  return olderAndNewer(path);
}
