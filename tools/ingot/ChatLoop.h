// A conversation at the terminal through the model's own template. What the
// user types is user content, whatever it spells.
#pragma once

#include "runtime/engine/Engine.h"

#include <functional>
#include <optional>
#include <string>

namespace ingot::cli {

struct ChatOptions {
  std::string system; // empty: none
  std::optional<std::string> firstMessage;
  bool isInteractive = true; // go on with lines of standard input
};

// `base` holds everything of a request but its prompt.
Status chatLoop(Engine &engine, const GenerateRequest &base,
                const ChatOptions &options,
                const std::function<void(const GenerateResult &)> &onResult);

// While one lives, the first interrupt ends the answer that is being written;
// a second ends the program.
class InterruptScope {
public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope &) = delete;
  InterruptScope &operator=(const InterruptScope &) = delete;
};
// Was the latest answer cut short by an interrupt?
bool isInterrupted();

} // namespace ingot::cli
