#include "runtime/support/Status.h"

namespace ingot {

const char *statusCodeName(StatusCode code) {
  switch (code) {
  case StatusCode::Ok:
    return "ok";
  case StatusCode::InvalidInput:
    return "invalid input";
  case StatusCode::Unsupported:
    return "unsupported";
  case StatusCode::NotFound:
    return "not found";
  case StatusCode::IoError:
    return "I/O error";
  case StatusCode::OutOfMemory:
    return "out of memory";
  case StatusCode::Internal:
    return "internal error";
  case StatusCode::Busy:
    return "busy";
  }
  return "unknown status";
}

} // namespace ingot
