#include "tools/ingot/ChatLoop.h"

#include "tools/ingot/Report.h"
#include "tools/text/InputText.h"

#include "runtime/support/Printable.h"
#include "runtime/text/Utf8.h"

#include <nlohmann/json.hpp>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <unistd.h>

namespace ingot::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void onInterrupt(int) {
  if (interrupted)
    ::_exit(130);
  interrupted = 1;
}

// JSON has no spelling for other bytes, and a replacement would be a guess.
Status checkUtf8(const char *what, const std::string &text) {
  std::size_t offset = findInvalidUtf8(text);
  if (offset == std::string::npos)
    return Status::ok();
  return Status::invalid(std::string(what) + ": byte " +
                         std::to_string(offset) + " is not valid UTF-8");
}

} // namespace

bool isInterrupted() { return interrupted != 0; }

InterruptScope::InterruptScope() {
  interrupted = 0;
  std::signal(SIGINT, onInterrupt);
}

InterruptScope::~InterruptScope() { std::signal(SIGINT, SIG_DFL); }

Status chatLoop(Engine &engine, const GenerateRequest &base,
                const ChatOptions &options,
                const std::function<void(const GenerateResult &)> &onResult) {
  INGOT_RETURN_IF_ERROR(checkUtf8("system message", options.system));
  auto messages = nlohmann::ordered_json::array();
  if (!options.system.empty())
    messages.push_back({{"role", "system"}, {"content", options.system}});
  std::optional<std::string> next = options.firstMessage;
  bool isPrompting = options.isInteractive && ::isatty(STDIN_FILENO) &&
                     ::isatty(STDERR_FILENO);
  const Colour &c = errorColour();
  if (isPrompting)
    std::fprintf(stderr, "%s%s. An empty line or end of input ends it.%s\n",
                 c.dim, printable(engine.model().name()->string_view()).c_str(),
                 c.off);
  for (;;) {
    if (!next) {
      if (!options.isInteractive)
        return Status::ok();
      if (isPrompting)
        std::fprintf(stderr, "%s> %s", c.bold, c.off);
      std::string line;
      if (!std::getline(std::cin, line) || line.empty()) {
        // A person ended it at leisure, whatever was cut short before.
        if (isPrompting)
          interrupted = 0;
        return Status::ok();
      }
      next = std::move(line);
    }
    INGOT_RETURN_IF_ERROR(checkUtf8("message", *next));
    messages.push_back({{"role", "user"}, {"content", *next}});
    next.reset();
    GenerateRequest request = base;
    request.chat.emplace();
    request.chat->messagesJson =
        messages.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    interrupted = 0;
    auto result = engine.generate(std::move(request));
    if (!result)
      return result.status();
    if (options.isInteractive || ::isatty(STDOUT_FILENO))
      std::fputc('\n', stdout);
    INGOT_RETURN_IF_ERROR(standardOutputStatus());
    messages.push_back({{"role", "assistant"}, {"content", result->text}});
    onResult(*result);
  }
}

} // namespace ingot::cli
