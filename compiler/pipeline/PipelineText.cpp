#include "compiler/pipeline/PipelineText.h"

namespace ingot {

Status checkClosed(const std::string &what, const std::string &text) {
  std::string open; // the closing characters that are still to come
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (std::size_t kind = std::string("([{").find(c);
        kind != std::string::npos) {
      open.push_back(")]}"[kind]);
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c)
        return Status::invalid(what + " \"" + text + "\": \"" + c +
                               "\" at byte " + std::to_string(i) +
                               " closes nothing");
      open.pop_back();
    } else if (c == '"' || c == '\'') {
      i = text.find(c, i + 1);
      if (i == std::string::npos)
        return Status::invalid(what + " \"" + text +
                               "\": a quote is not closed");
    }
  }
  if (!open.empty())
    return Status::invalid(what + " \"" + text + "\": \"" + open.back() +
                           "\" is missing");
  return Status::ok();
}

Status checkPipelineArguments(int argc, const char *const *argv) {
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    bool isPipeline =
        i > 1 && std::string(argv[i - 1]).ends_with("pass-pipeline");
    if (isPipeline || argument.starts_with("-"))
      INGOT_RETURN_IF_ERROR(checkClosed("argument", argument));
  }
  return Status::ok();
}

} // namespace ingot
