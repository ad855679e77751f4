#include "tools/ingot/ChatLoop.h"

#include "tools/ingot/Report.h"

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
  auto messages = nlohmann::ordered_json::array();
  if (!options.system.empty())
    messages.push_back({{"role", "system"}, {"content", options.system}});
  std::optional<std::string> next = options.firstMessage;
  bool isPrompting = options.isInteractive && ::isatty(STDIN_FILENO) &&
                     ::isatty(STDERR_FILENO);
  const Colour &c = errorColour();
  if (isPrompting)
    std::fprintf(stderr, "%s%s. An empty line or end of input ends it.%s\n",
                 c.dim, engine.model().name()->c_str(), c.off);
  for (;;) {
    if (!next) {
      if (!options.isInteractive)
        return Status::ok();
      if (isPrompting)
        std::fprintf(stderr, "%s> %s", c.bold, c.off);
      std::string line;
      if (!std::getline(std::cin, line) || line.empty())
        return Status::ok();
      next = std::move(line);
    }
    messages.push_back({{"role", "user"}, {"content", *next}});
    next.reset();
    GenerateRequest request = base;
    request.chat.emplace();
    // Bytes that are not UTF-8 are refused by the tokenizer's rules, not by
    // an exception of the writer.
    request.chat->messagesJson =
        messages.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    interrupted = 0;
    auto result = engine.generate(std::move(request));
    if (!result)
      return result.status();
    if (options.isInteractive || ::isatty(STDOUT_FILENO))
      std::fputc('\n', stdout);
    std::fflush(stdout);
    messages.push_back({{"role", "assistant"}, {"content", result->text}});
    onResult(*result);
  }
}

} // namespace ingot::cli
