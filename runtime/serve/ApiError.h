// An error as OpenAI's clients read it: an HTTP status and an object that says
// what is wrong, with which field, under which code.
#pragma once

#include "runtime/serve/Http.h"
#include "runtime/support/Status.h"

#include <string>

namespace ingot::serve {

struct ApiError {
  int status = 400;
  std::string message;
  std::string param; // the field; empty: null
  std::string code;  // empty: null
  int retryAfterSeconds = 0;

  static ApiError invalid(std::string message, std::string param = {},
                          std::string code = {});
  static ApiError unsupported(std::string field, std::string what);
  static ApiError notFound(std::string message, std::string param = {},
                           std::string code = {});
  static ApiError overloaded(std::string message, int retryAfterSeconds);
  // A message of the runtime begins with the field it is about.
  static ApiError fromStatus(const Status &status);

  // {"error": {"message", "type", "param", "code"}}
  std::string json() const;
  HttpResponse response() const;
};

// Thrown while a request is read, caught before it leaves the reader.
struct ApiFailure {
  ApiError error;
};

} // namespace ingot::serve
