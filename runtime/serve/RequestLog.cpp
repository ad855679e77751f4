#include "runtime/serve/RequestLog.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <ctime>

namespace ingot::serve {
namespace {

std::string timestamp() {
  auto now = std::chrono::system_clock::now();
  std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(
                    now.time_since_epoch())
                    .count() %
                1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char day[40], text[64];
  std::strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text, sizeof text, "%s.%03dZ", day, int(millis));
  return text;
}

// Words without blanks stay as they are; all else goes between quotes.
std::string quoted(const std::string &text) {
  bool isWord = !text.empty();
  for (char c : text)
    isWord &= c > ' ' && c != '"' && c != '\\' && c != 0x7f;
  if (isWord)
    return text;
  std::string dumped = nlohmann::json(text).dump(
      -1, ' ', true, nlohmann::json::error_handler_t::replace);
  return dumped;
}

std::string milliseconds(double seconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1fms", seconds * 1e3);
  return text;
}

} // namespace

std::string logLine(const RequestRecord &record) {
  std::string line = timestamp() + " " + std::to_string(record.status) + " " +
                     quoted(record.method) + " " + quoted(record.path) +
                     " id=" + quoted(record.requestId) +
                     " client=" + quoted(record.client);
  if (!record.user.empty())
    line += " user=" + quoted(record.user);
  if (!record.model.empty())
    line += " model=" + quoted(record.model);
  if (record.promptTokens >= 0)
    line += " prompt=" + std::to_string(record.promptTokens) +
            " cached=" + std::to_string(record.cachedTokens) +
            " output=" + std::to_string(record.outputTokens);
  if (record.firstTokenSeconds >= 0)
    line += " ttft=" + milliseconds(record.firstTokenSeconds);
  line += " time=" + milliseconds(record.seconds);
  if (!record.finish.empty())
    line += " finish=" + quoted(record.finish);
  if (!record.error.empty())
    line += " error=" + quoted(record.error);
  if (!record.note.empty())
    line += " note=" + quoted(record.note);
  return line;
}

std::string logJson(const RequestRecord &record) {
  nlohmann::ordered_json line = {{"time", timestamp()},
                                 {"status", record.status},
                                 {"method", record.method},
                                 {"path", record.path},
                                 {"request_id", record.requestId},
                                 {"client", record.client}};
  if (!record.user.empty())
    line["user"] = record.user;
  if (!record.model.empty())
    line["model"] = record.model;
  if (record.promptTokens >= 0) {
    line["prompt_tokens"] = record.promptTokens;
    line["cached_tokens"] = record.cachedTokens;
    line["output_tokens"] = record.outputTokens;
  }
  if (record.firstTokenSeconds >= 0)
    line["first_token_seconds"] = record.firstTokenSeconds;
  line["seconds"] = record.seconds;
  if (!record.finish.empty())
    line["finish"] = record.finish;
  if (!record.error.empty())
    line["error"] = record.error;
  if (!record.note.empty())
    line["note"] = record.note;
  return line.dump(-1, ' ', true,
                   nlohmann::ordered_json::error_handler_t::replace);
}

std::string messageJson(const std::string &message) {
  nlohmann::ordered_json line = {{"time", timestamp()}, {"message", message}};
  return line.dump(-1, ' ', true,
                   nlohmann::ordered_json::error_handler_t::replace);
}

} // namespace ingot::serve
