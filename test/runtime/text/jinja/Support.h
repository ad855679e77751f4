// Renders templates from JSON text, so that the tests stay short.
#pragma once

#include "runtime/text/jinja/ChatTemplate.h"

#include <string>
#include <vector>

namespace ingot::jinjatest {

struct Request {
  std::string messages = "[]"; // JSON
  std::string tools = "null";
  std::string documents = "null";
  std::string kwargs = "null";
  bool addGenerationPrompt = true;
  std::string bosToken = "<s>";
  std::string eosToken = "</s>";
  std::vector<std::string> templateRoles;
  bool normalizeMessages = true;
  RenderLimits limits;
};

// Parses and renders; the clock stands at 2025-01-15 12:00:00.
Result<Rendered> render(const std::string &source, const Request &request = {});
// The text, or "ERROR: message".
std::string text(const std::string &source, const Request &request = {});
// The text with each user range in «», or "ERROR: message".
std::string marked(const std::string &source, const Request &request = {});
// One user message with this content.
Request user(const std::string &content);

std::string readFile(const std::string &path);

} // namespace ingot::jinjatest
