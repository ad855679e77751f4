// PCRE2 with UTF and Unicode properties, as the tokenizers' patterns expect.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "runtime/text/SplitRegex.h"

#include "runtime/text/Utf8.h"

#include <pcre2.h>

#include <new>
#include <string>

namespace ingot {
namespace {

constexpr size_t JitStackStart = 32 * 1024;
constexpr size_t JitStackLimit = 1024 * 1024;

std::string errorText(int code) {
  PCRE2_UCHAR buffer[256];
  if (pcre2_get_error_message(code, buffer, sizeof buffer) < 0)
    return "PCRE2 error " + std::to_string(code);
  return reinterpret_cast<const char *>(buffer);
}

} // namespace

struct RegexScratch::Memory {
  pcre2_match_data *match = nullptr;
  pcre2_match_context *context = nullptr;
  pcre2_jit_stack *stack = nullptr;

  Memory() {
    match = pcre2_match_data_create(1, nullptr);
    context = pcre2_match_context_create(nullptr);
    stack = pcre2_jit_stack_create(JitStackStart, JitStackLimit, nullptr);
    if (!match || !context)
      throw std::bad_alloc();
    if (stack)
      pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Memory() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(match);
  }
};

RegexScratch::RegexScratch() : memory_(std::make_unique<Memory>()) {}
RegexScratch::~RegexScratch() = default;

struct SplitRegex::Code {
  pcre2_code *code = nullptr;
  bool jit = false;
  ~Code() { pcre2_code_free(code); }
};

SplitRegex::SplitRegex(std::unique_ptr<Code> code) : code_(std::move(code)) {}
SplitRegex::SplitRegex(SplitRegex &&) noexcept = default;
SplitRegex &SplitRegex::operator=(SplitRegex &&) noexcept = default;
SplitRegex::~SplitRegex() = default;

Result<SplitRegex> SplitRegex::compile(std::string_view pattern) {
  auto code = std::make_unique<Code>();
  int error = 0;
  PCRE2_SIZE offset = 0;
  code->code = pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY,
      &error, &offset, nullptr);
  if (!code->code)
    return Status::invalid("regex \"" + std::string(pattern) +
                           "\": " + errorText(error) + " at byte " +
                           std::to_string(offset));
  code->jit = pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE) == 0;
  return SplitRegex(std::move(code));
}

Status SplitRegex::findAll(std::string_view text, RegexScratch &scratch,
                           std::vector<TextRange> &matches) const {
  RegexScratch::Memory &memory = *scratch.memory_;
  auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const PCRE2_SIZE *found = pcre2_get_ovector_pointer(memory.match);
  matches.clear();
  size_t at = 0;
  while (at <= text.size()) {
    int rc = PCRE2_ERROR_JIT_STACKLIMIT;
    if (code_->jit)
      rc = pcre2_jit_match(code_->code, subject, text.size(), at, 0,
                           memory.match, memory.context);
    // The interpreter keeps its frames on the heap, within its own limit.
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
      rc = pcre2_match(code_->code, subject, text.size(), at,
                       PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, memory.match,
                       memory.context);
    if (rc == PCRE2_ERROR_NOMATCH)
      break;
    if (rc < 0)
      return Status::invalid("splitting text near byte " + std::to_string(at) +
                             ": " + errorText(rc));
    size_t begin = found[0], end = found[1];
    // \K in a lookahead could move the start past the end or backwards.
    if (begin > end || begin < at || end > text.size())
      return Status::invalid("splitting text near byte " + std::to_string(at) +
                             ": the regex moves backwards");
    if (begin == end) {
      if (matches.empty() || matches.back().end != begin)
        matches.push_back({begin, end});
      at = end < text.size() ? end + utf8Length(text[end]) : end + 1;
    } else {
      matches.push_back({begin, end});
      at = end;
    }
  }
  return Status::ok();
}

} // namespace ingot
