// `ingot tokenize` and `ingot render` on an artifact, and the way over to the
// compiler for everything that is the compiler's.
#include "tools/ingot/Commands.h"
#include "tools/ingot/Report.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <unistd.h>

namespace ingot::cli {
namespace {

using Json = nlohmann::ordered_json;

Result<Tokenizer> openTokenizer(const Artifact &artifact) {
  auto tables = artifact.segment(container::SegmentKind::Tokenizer);
  if (tables.empty())
    return Status::unsupported(artifact.path() + ": has no tokenizer");
  return Tokenizer::open(tables);
}

Result<std::string> encodeLine(const Tokenizer &tokenizer,
                               const std::string &line,
                               const TokenizeFlags &flags) {
  std::string text = line;
  if (flags.jsonText) {
    Json value = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!value.is_string())
      return Status::invalid("expected a JSON string");
    text = value.get<std::string>();
  }
  EncodeOptions options;
  options.addSpecialTokens = !flags.noSpecial;
  INGOT_ASSIGN_OR_RETURN(auto ids, tokenizer.encode(text, options));
  return Json(ids).dump();
}

Result<std::string> decodeLine(const Tokenizer &tokenizer,
                               const std::string &line,
                               const TokenizeFlags &flags) {
  Json list = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array())
    return Status::invalid("expected a JSON list of ids");
  std::vector<std::int32_t> ids;
  for (const Json &id : list) {
    if (!id.is_number_integer() || id < INT32_MIN || id > INT32_MAX)
      return Status::invalid("expected ids of 32 bits");
    ids.push_back(id.get<std::int32_t>());
  }
  INGOT_ASSIGN_OR_RETURN(std::string text,
                         tokenizer.decode(ids, !flags.keepSpecial));
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Status flushOutput() {
  std::cout.flush();
  return std::cout ? Status::ok() : Status::io("standard output: cannot write");
}

} // namespace

Status tokenize(const TokenizeFlags &flags) {
  INGOT_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(flags.path));
  INGOT_ASSIGN_OR_RETURN(Tokenizer tokenizer, openTokenizer(artifact));
  std::string line;
  for (std::size_t number = 1; std::getline(std::cin, line); ++number) {
    auto answer = flags.decode ? decodeLine(tokenizer, line, flags)
                               : encodeLine(tokenizer, line, flags);
    if (!answer)
      return answer.status().withContext("line " + std::to_string(number));
    std::cout << *answer << "\n";
  }
  return flushOutput();
}

Status render(const RenderFlags &flags) {
  INGOT_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(flags.path));
  INGOT_ASSIGN_OR_RETURN(Tokenizer tokenizer, openTokenizer(artifact));
  auto segment = artifact.segment(container::SegmentKind::Template);
  if (segment.empty())
    return Status::unsupported(flags.path + ": has no chat template");
  INGOT_ASSIGN_OR_RETURN(ChatTemplateSet templates, readTemplates(segment));
  ChatRequest request;
  INGOT_ASSIGN_OR_RETURN(request.messagesJson, readAll(flags.messagesFile));
  if (!flags.toolsFile.empty()) {
    INGOT_ASSIGN_OR_RETURN(request.toolsJson, readAll(flags.toolsFile));
  }
  if (!flags.documentsFile.empty()) {
    INGOT_ASSIGN_OR_RETURN(request.documentsJson, readAll(flags.documentsFile));
  }
  request.templateKwargsJson = flags.kwargs;
  request.templateName = flags.templateName;
  request.addGenerationPrompt = !flags.noGenerationPrompt;
  INGOT_ASSIGN_OR_RETURN(Rendered rendered,
                         renderChat(templates, tokenizer, request));
  if (!flags.json) {
    std::cout << rendered.text;
    return flushOutput();
  }
  auto ranges = [](const std::vector<Rendered::Range> &list) {
    Json all = Json::array();
    for (const Rendered::Range &range : list)
      all.push_back({range.begin, range.end});
    return all;
  };
  std::cout << Json({{"text", rendered.text},
                     {"user_ranges", ranges(rendered.userRanges)},
                     {"generation_ranges", ranges(rendered.generationRanges)}})
                   .dump(-1, ' ', false, Json::error_handler_t::replace)
            << "\n";
  return flushOutput();
}

Status runCompiler(int argc, char **argv) {
  char self[4096];
  ssize_t length = ::readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0)
    return Status::io(std::string("cannot find this program's folder: ") +
                      std::strerror(errno));
  std::string path(self, std::size_t(length));
  path = path.substr(0, path.rfind('/') + 1) + "ingot-compiler";
  if (::access(path.c_str(), X_OK) != 0)
    return Status::unsupported(
        "`ingot " + std::string(argv[1]) +
        "` on this input is the compiler's work, and the compiler is not "
        "installed here: " +
        path + " does not exist");
  argv[0] = path.data();
  ::execv(path.c_str(), argv);
  return Status::io(path + ": cannot start: " + std::strerror(errno));
}

} // namespace ingot::cli
