// `ingot embed`: a vector for each text, a line each or as JSON.
#include "tools/ingot/Commands.h"
#include "tools/ingot/Report.h"
#include "tools/text/InputText.h"

#include "runtime/engine/Encoder.h"
#include "runtime/support/FloatText.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <unistd.h>

namespace ingot::cli {
namespace {

// The lines of a file, each a text; an empty line is one too, which its tokens
// decide on.
std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = std::min(text.find('\n', begin), text.size());
    std::size_t last = end > begin && text[end - 1] == '\r' ? end - 1 : end;
    lines.push_back(text.substr(begin, last - begin));
    begin = end + 1;
  }
  return lines;
}

void print(const Embedding &embedding) {
  std::string line;
  for (float x : embedding)
    line += (line.empty() ? "" : " ") + floatText(x);
  std::printf("%s\n", line.c_str());
}

} // namespace

Status embed(const EmbedFlags &flags) {
  std::vector<std::string> texts = flags.texts;
  if (!flags.file.empty()) {
    if (!texts.empty())
      return Status::invalid("texts are given, and a file of texts; expected "
                             "one of the two");
    INGOT_ASSIGN_OR_RETURN(std::string text,
                           readSomeText(flags.file, "a text on each line"));
    texts = linesOf(text);
  }
  if (texts.empty())
    return Status::invalid("no text: give one or more, or --file FILE with one "
                           "on each line (- for standard input)");
  EncoderOptions options;
  options.level = flags.model.level;
  options.threads = flags.model.threads;
  options.context = flags.model.context;
  options.verifyChecksums = flags.model.verify;
  INGOT_ASSIGN_OR_RETURN(std::unique_ptr<Encoder> encoder,
                         Encoder::open(flags.model.path, options));
  std::vector<std::vector<std::int32_t>> ids;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto encoded = encoder->encode(texts[i]);
    if (!encoded)
      return texts.size() == 1 ? encoded.status()
                               : encoded.status().withContext(
                                     "text " + std::to_string(i + 1));
    ids.push_back(std::move(*encoded));
  }
  INGOT_ASSIGN_OR_RETURN(std::vector<Embedding> embeddings,
                         encoder->core().embed(ids));
  if (!flags.json) {
    for (const Embedding &embedding : embeddings)
      print(embedding);
    return Status::ok();
  }
  const fbs::EmbeddingInfo &made = *encoder->model().embedding();
  nlohmann::ordered_json data = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < embeddings.size(); ++i) {
    auto vector = nlohmann::ordered_json::array();
    for (float x : embeddings[i])
      vector.push_back(shortDouble(x));
    data.push_back({{"index", i},
                    {"tokens", ids[i].size()},
                    {"embedding", std::move(vector)}});
  }
  nlohmann::ordered_json answer = {
      {"model", encoder->model().name()->str()},
      {"dimensions", encoder->model().hidden()},
      {"pooling", fbs::EnumNamePoolKind(made.pooling())},
      {"normalized", made.normalized()},
      {"data", std::move(data)}};
  std::printf("%s\n", jsonText(answer, -1).c_str());
  return Status::ok();
}

} // namespace ingot::cli
