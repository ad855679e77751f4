// Any bytes as tokenizer.json: compiled, and then put to work on a text, whose
// ids must be of the vocabulary and decode without an error.
#include "compiler/frontend/tokenizer/TokenizerBuilder.h"
#include "test/fuzz/ExerciseTokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ingot::HuggingFaceTokenizer description;
  description.tokenizerJson = {reinterpret_cast<const char *>(data), size};
  ingot::test::exercise(ingot::buildTokenizer(description));
  return 0;
}
