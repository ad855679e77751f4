#include "runtime/serve/ApiError.h"

#include <nlohmann/json.hpp>

namespace ingot::serve {
namespace {

using Json = nlohmann::ordered_json;

const char *typeOf(int status) {
  switch (status) {
  case 401:
    return "authentication_error";
  case 429:
    return "rate_limit_error";
  case 500:
  case 501:
    return "server_error";
  case 503:
    return "service_unavailable_error";
  default:
    return "invalid_request_error";
  }
}

// "top_p is 3, expected ..." and "logit_bias: token id ..." are about a field;
// "the prompt is empty" is not.
std::string fieldOf(const std::string &message) {
  std::size_t end = 0;
  while (end < message.size() &&
         ((message[end] >= 'a' && message[end] <= 'z') || message[end] == '_'))
    ++end;
  std::string_view rest = std::string_view(message).substr(end);
  bool isField =
      end > 0 && (rest.starts_with(":") || rest.starts_with("[") ||
                  rest.starts_with(" is ") || rest.starts_with(" has "));
  return isField ? message.substr(0, end) : std::string();
}

} // namespace

ApiError ApiError::invalid(std::string message, std::string param,
                           std::string code) {
  return {400, std::move(message), std::move(param), std::move(code), 0};
}

ApiError ApiError::unsupported(std::string field, std::string what) {
  std::string message = field + ": " + what;
  return {400, std::move(message), std::move(field), "unsupported_parameter",
          0};
}

ApiError ApiError::notFound(std::string message, std::string param,
                            std::string code) {
  return {404, std::move(message), std::move(param), std::move(code), 0};
}

ApiError ApiError::overloaded(std::string message, int retryAfterSeconds) {
  return {503, std::move(message), {}, "overloaded", retryAfterSeconds};
}

ApiError ApiError::fromStatus(const Status &status) {
  switch (status.code()) {
  case StatusCode::Busy:
    return overloaded(status.message(), 1);
  case StatusCode::InvalidInput:
  case StatusCode::Unsupported:
  case StatusCode::NotFound:
    return invalid(status.message(), fieldOf(status.message()));
  default:
    return {500, status.message(), {}, "internal_error", 0};
  }
}

std::string ApiError::json() const {
  auto orNull = [](const std::string &text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  Json body = {{"error",
                {{"message", message},
                 {"type", typeOf(status)},
                 {"param", orNull(param)},
                 {"code", orNull(code)}}}};
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HttpResponse ApiError::response() const {
  HttpResponse response;
  response.status = status;
  response.body = json();
  if (retryAfterSeconds > 0)
    response.headers.emplace_back("Retry-After",
                                  std::to_string(retryAfterSeconds));
  if (status == 401)
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

} // namespace ingot::serve
