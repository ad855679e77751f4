/* Ingot in C: open a model, generate text, read logits.
 *
 *   ingot_options options;
 *   ingot_options_init(&options);
 *   ingot_engine *engine = NULL;
 *   if (ingot_open("model.ingot", &options, &engine) != INGOT_OK)
 *     die(ingot_error_message());
 *   ingot_request request;
 *   ingot_request_init(engine, &request);
 *   request.prompt = "Once upon a time";
 *   ingot_result *result = NULL;
 *   if (ingot_generate(engine, &request, &result) == INGOT_OK)
 *     puts(ingot_result_text(result));
 *   ingot_result_free(result);
 *   ingot_close(engine);
 *
 * Rules that hold for every function:
 *  - Handles are opaque; each is freed by the one function named for it, and
 *    freeing NULL does nothing.
 *  - A function that can fail returns an ingot_status. The sentence that goes
 *    with it is ingot_error_message(), kept for each thread until its next
 *    call fails.
 *  - Strings are UTF-8. Those passed in are copied where they are needed after
 *    the call; those handed out live as long as the handle they came from.
 *  - One thread at a time may use an engine. Engines are independent.
 *  - Structs begin with their size, which their init function takes from this
 *    header as the program was compiled. A library of another age reads and
 *    writes no byte beyond it: fields that an older program lacks keep their
 *    defaults, and fields that an older library lacks must be zero, which is
 *    their default, or the call is refused (INGOT_UNSUPPORTED).
 */
#ifndef INGOT_H
#define INGOT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ingot_status {
  INGOT_OK = 0,
  INGOT_INVALID_INPUT = 1, /* a file or argument breaks its format or range */
  INGOT_UNSUPPORTED = 2,   /* well formed, but not something this build does */
  INGOT_NOT_FOUND = 3,
  INGOT_IO_ERROR = 4,
  INGOT_OUT_OF_MEMORY = 5, /* does not fit the memory contract */
  INGOT_INTERNAL = 6,      /* an invariant of the library is broken */
  INGOT_BUSY = 7           /* a queue is full now; try again later */
} ingot_status;

typedef enum ingot_finish_reason {
  INGOT_FINISH_STOP = 0,   /* a stop id, a stop string, or the callback */
  INGOT_FINISH_LENGTH = 1, /* max_tokens or the end of the context */
  INGOT_FINISH_CANCELLED = 2
} ingot_finish_reason;

typedef struct ingot_engine ingot_engine;
typedef struct ingot_result ingot_result;

typedef struct ingot_options {
  size_t struct_size;
  const char *level;   /* of code; NULL: the best that this machine runs */
  int32_t threads;     /* 0: from affinity and control group */
  int32_t context;     /* tokens of a sequence; 0: the model's, at most 4096 */
  int32_t sequences;   /* that run at once; at least 1 */
  int32_t step_tokens; /* token rows of one step */
  uint64_t kv_bytes;   /* budget of the cache; 0: what the above need */
  int32_t verify;      /* nonzero: compare the weights' checksum too */
  const char *device;  /* "cpu", "cuda" or "cuda:N"; NULL: the first CUDA device
                          that the artifact has code for, else the cpu */
} ingot_options;

/* A piece of text that is final. Return nonzero to go on, 0 to stop. */
typedef int (*ingot_text_callback)(const char *text, size_t size, void *user);

typedef struct ingot_request {
  size_t struct_size;
  /* Exactly one of the three: */
  const char *prompt;        /* text */
  const int32_t *prompt_ids; /* token ids, num_prompt_ids of them */
  size_t num_prompt_ids;
  const char *messages_json; /* chat: [{"role": "user", "content": "..."}] */

  int64_t max_tokens; /* -1: to the end of the context */
  double temperature; /* 0: the most likely token */
  double top_p;
  int64_t top_k; /* 0 or -1: all tokens */
  double min_p;
  double repetition_penalty;
  double presence_penalty;
  double frequency_penalty;
  int32_t has_seed; /* 0: a fresh seed for each request */
  uint64_t seed;
  const char *const *stop; /* stop strings, num_stop of them */
  size_t num_stop;
  const int32_t *stop_ids; /* stop ids, beside the model's own */
  size_t num_stop_ids;
  int32_t ignore_eos;          /* nonzero: the model's own do not stop it */
  ingot_text_callback on_text; /* NULL: no streaming */
  void *user;                  /* handed to on_text */
} ingot_request;

/* The version of the library, such as "0.1.0". */
const char *ingot_version(void);

/* Why the latest failure in this thread happened; "" where there was none. */
const char *ingot_error_message(void);

/* Opens, verifies and maps an artifact and takes all the memory that it will
 * use. `options` may be NULL for the defaults. */
void ingot_options_init_sized(ingot_options *options, size_t struct_size);
static inline void ingot_options_init(ingot_options *options) {
  ingot_options_init_sized(options, sizeof(ingot_options));
}
ingot_status ingot_open(const char *path, const ingot_options *options,
                        ingot_engine **engine);
void ingot_close(ingot_engine *engine);

/* Facts of the model; strings live as long as the engine. */
const char *ingot_model_name(const ingot_engine *engine);
int32_t ingot_vocab_size(const ingot_engine *engine);
int32_t ingot_context_size(const ingot_engine *engine);
/* The memory contract as a table for people. */
const char *ingot_memory_contract(const ingot_engine *engine);

/* Fills in the sampling that the model's own configuration asks for. */
void ingot_request_init_sized(const ingot_engine *engine,
                              ingot_request *request, size_t struct_size);
static inline void ingot_request_init(const ingot_engine *engine,
                                      ingot_request *request) {
  ingot_request_init_sized(engine, request, sizeof(ingot_request));
}

/* Runs one request to its end. */
ingot_status ingot_generate(ingot_engine *engine, const ingot_request *request,
                            ingot_result **result);
/* Runs several together, sharing their steps. results[i] is NULL where request
 * i failed alone; statuses[i] says how, and the return value is the first that
 * is not INGOT_OK (its sentence is ingot_error_message). */
ingot_status ingot_generate_batch(ingot_engine *engine,
                                  const ingot_request *const *requests,
                                  size_t count, ingot_result **results,
                                  ingot_status *statuses);

const char *ingot_result_text(const ingot_result *result);
size_t ingot_result_num_tokens(const ingot_result *result);
const int32_t *ingot_result_tokens(const ingot_result *result);
size_t ingot_result_num_prompt_tokens(const ingot_result *result);
ingot_finish_reason ingot_result_finish_reason(const ingot_result *result);
uint64_t ingot_result_seed(const ingot_result *result);
void ingot_result_free(ingot_result *result);

/* Text to ids: writes at most `capacity` ids and the real count to *count;
 * INGOT_OUT_OF_MEMORY where capacity is too small. `ids` may be NULL where
 * capacity is 0. */
ingot_status ingot_tokenize(const ingot_engine *engine, const char *text,
                            int add_special_tokens, int32_t *ids,
                            size_t capacity, size_t *count);

/* The logits of every position of `ids`: out has num_ids * vocab_size floats,
 * row i predicting the token after ids[i]. */
ingot_status ingot_score(ingot_engine *engine, const int32_t *ids,
                         size_t num_ids, float *out, size_t out_count);

#ifdef __cplusplus
}
#endif

#endif
