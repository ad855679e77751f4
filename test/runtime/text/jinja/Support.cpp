// See Support.h.
#include "Support.h"

#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>

namespace ingot::jinjatest {

using Json = nlohmann::ordered_json;

Result<Rendered> render(const std::string &source, const Request &request) {
  INGOT_ASSIGN_OR_RETURN(ChatTemplate parsed, ChatTemplate::parse(source));
  Json messages = Json::parse(request.messages);
  Json tools = Json::parse(request.tools);
  Json documents = Json::parse(request.documents);
  Json kwargs = Json::parse(request.kwargs);
  ChatInputs inputs;
  inputs.messages = &messages;
  inputs.tools = &tools;
  inputs.documents = &documents;
  inputs.kwargs = &kwargs;
  inputs.addGenerationPrompt = request.addGenerationPrompt;
  inputs.bosToken = request.bosToken;
  inputs.eosToken = request.eosToken;
  inputs.templateRoles = request.templateRoles;
  inputs.normalizeMessages = request.normalizeMessages;
  inputs.limits = request.limits;
  inputs.now.tm_year = 125;
  inputs.now.tm_mday = 15;
  inputs.now.tm_hour = 12;
  inputs.now.tm_wday = 3;
  inputs.now.tm_yday = 14;
  return parsed.render(inputs);
}

std::string text(const std::string &source, const Request &request) {
  auto out = render(source, request);
  return out ? out->text : "ERROR: " + out.status().message();
}

std::string marked(const std::string &source, const Request &request) {
  auto out = render(source, request);
  if (!out)
    return "ERROR: " + out.status().message();
  std::string shown;
  size_t pos = 0;
  for (auto &range : out->userRanges) {
    shown += out->text.substr(pos, range.begin - pos) + "«" +
             out->text.substr(range.begin, range.end - range.begin) + "»";
    pos = range.end;
  }
  return shown + out->text.substr(pos);
}

Request user(const std::string &content) {
  Request request;
  request.messages =
      Json::array({{{"role", "user"}, {"content", content}}}).dump();
  return request;
}

std::string readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

} // namespace ingot::jinjatest
