// The one status type of the runtime. Libraries return it; they neither print
// nor exit. A message names the thing, what was expected and what was found:
//   tensor "blk.0.attn_q.weight": data_offsets end 4096 past the data section (2048 bytes)
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace ingot {

enum class StatusCode {
  Ok,
  InvalidInput, // a file, flag or request that breaks its format or range
  Unsupported,  // well formed, but not something this build can do
  NotFound,     // a named thing does not exist
  IoError,      // the operating system refused; the message holds its text
  OutOfMemory,  // does not fit the memory contract
  Internal,     // an invariant of ours is broken
  Busy,         // a queue is full now; the same request may fit later
};

const char *statusCodeName(StatusCode code);

class [[nodiscard]] Status {
public:
  Status() = default;
  Status(StatusCode code, std::string message)
      : code_(code), message_(std::move(message)) {}

  static Status ok() { return Status(); }
  static Status invalid(std::string message) {
    return Status(StatusCode::InvalidInput, std::move(message));
  }
  static Status unsupported(std::string message) {
    return Status(StatusCode::Unsupported, std::move(message));
  }
  static Status notFound(std::string message) {
    return Status(StatusCode::NotFound, std::move(message));
  }
  static Status io(std::string message) {
    return Status(StatusCode::IoError, std::move(message));
  }
  static Status outOfMemory(std::string message) {
    return Status(StatusCode::OutOfMemory, std::move(message));
  }
  static Status internal(std::string message) {
    return Status(StatusCode::Internal, std::move(message));
  }
  static Status busy(std::string message) {
    return Status(StatusCode::Busy, std::move(message));
  }

  bool isOk() const { return code_ == StatusCode::Ok; }
  explicit operator bool() const { return isOk(); }
  StatusCode code() const { return code_; }
  const std::string &message() const { return message_; }

  // Returns the same status with "context: " put before its message.
  Status withContext(const std::string &context) const {
    return isOk() ? *this : Status(code_, context + ": " + message_);
  }

private:
  StatusCode code_ = StatusCode::Ok;
  std::string message_;
};

// A value or the status that says why there is none.
template <typename T> class [[nodiscard]] Result {
  static_assert(!std::is_same_v<T, Status>, "return Status itself");

public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}

  bool isOk() const { return value_.has_value(); }
  explicit operator bool() const { return isOk(); }
  const Status &status() const { return status_; }

  T &value() & { return *value_; }
  const T &value() const & { return *value_; }
  T &&value() && { return std::move(*value_); }
  T *operator->() { return &*value_; }
  const T *operator->() const { return &*value_; }
  T &operator*() & { return *value_; }
  const T &operator*() const & { return *value_; }

private:
  std::optional<T> value_;
  Status status_;
};

} // namespace ingot

// Returns early with the status of EXPR when it is not ok.
#define INGOT_RETURN_IF_ERROR(EXPR)                                            \
  do {                                                                         \
    if (::ingot::Status ingotStatus_ = (EXPR); !ingotStatus_.isOk())           \
      return ingotStatus_;                                                     \
  } while (0)

#define INGOT_CONCAT_INNER_(A, B) A##B
#define INGOT_CONCAT_(A, B) INGOT_CONCAT_INNER_(A, B)
#define INGOT_ASSIGN_OR_RETURN_IMPL_(TMP, LHS, EXPR)                           \
  auto TMP = (EXPR);                                                           \
  if (!TMP.isOk())                                                             \
    return TMP.status();                                                       \
  LHS = std::move(TMP).value()
// INGOT_ASSIGN_OR_RETURN(auto file, MappedFile::open(path));
#define INGOT_ASSIGN_OR_RETURN(LHS, EXPR)                                      \
  INGOT_ASSIGN_OR_RETURN_IMPL_(INGOT_CONCAT_(ingotResult_, __LINE__), LHS, EXPR)
