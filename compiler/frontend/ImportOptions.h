// Choices a user can make at import. Each default refuses rather than guesses.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ingot {

// An adapter to add to the weights, times a scale of the user's.
struct LoraRequest {
  std::string folder;
  double scale = 1.0;
};

struct ImportOptions {
  // Use the embedding as the head when the config says the head is its own
  // tensor and the files hold none.
  bool tieMissingHead = false;
  // Family descriptors of the user, tried before the built-in ones.
  std::vector<std::string> descriptorPaths;
  // Adapters, added in this order.
  std::vector<LoraRequest> loras;
  // Receives a line for each part of an ONNX graph that was recognised or left
  // alone, and why. Other models have nothing to say and refuse it.
  std::function<void(const std::string &)> explainFusion;
};

} // namespace ingot
