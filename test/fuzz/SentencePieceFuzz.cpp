// Any bytes as a SentencePiece model: compiled, and then put to work on a text.
#include "compiler/frontend/tokenizer/TokenizerBuilder.h"
#include "test/fuzz/ExerciseTokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ingot::SentencePieceTokenizer description;
  description.model = {reinterpret_cast<const char *>(data), size};
  ingot::test::exercise(ingot::buildTokenizer(description));
  return 0;
}
