#define PCRE2_CODE_UNIT_WIDTH 8
#include "runtime/text/jinja/TextFilters.h"

#include <pcre2.h>

#include <memory>

namespace ingot::jinja {
namespace {

// Steps of the matcher for one match.
constexpr uint32_t MatchLimit = 1'000'000;

struct Free {
  void operator()(pcre2_code *code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data *data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context *context) const {
    pcre2_match_context_free(context);
  }
};

// One pattern and what its matches need.
class Matcher {
public:
  Matcher(const char *pattern, uint32_t options) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_.reset(pcre2_compile(
        reinterpret_cast<PCRE2_SPTR>(pattern), PCRE2_ZERO_TERMINATED,
        PCRE2_UTF | PCRE2_UCP | options, &error, &offset, nullptr));
    if (!code_)
      fail("a filter's pattern is wrong at byte " + std::to_string(offset));
    data_.reset(pcre2_match_data_create(1, nullptr));
    context_.reset(pcre2_match_context_create(nullptr));
    if (!data_ || !context_)
      throw std::bad_alloc();
    pcre2_set_match_limit(context_.get(), MatchLimit);
  }

  // The match at or behind `at`, or nothing.
  std::optional<ByteRange> find(std::string_view text, size_t at) {
    int rc = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                         text.size(), at, PCRE2_NO_UTF_CHECK, data_.get(),
                         context_.get());
    if (rc == PCRE2_ERROR_NOMATCH)
      return std::nullopt;
    if (rc < 0)
      fail("a filter's search takes too many steps for this text");
    const PCRE2_SIZE *found = pcre2_get_ovector_pointer(data_.get());
    return ByteRange{found[0], found[1]};
  }

private:
  std::unique_ptr<pcre2_code, Free> code_;
  std::unique_ptr<pcre2_match_data, Free> data_;
  std::unique_ptr<pcre2_match_context, Free> context_;
};

} // namespace

std::vector<ByteRange> findAll(Runtime &rt, const char *pattern,
                               std::string_view text) {
  rt.touch(16 * text.size());
  Matcher matcher(pattern, 0);
  std::vector<ByteRange> matches;
  for (size_t at = 0; at < text.size();) {
    auto match = matcher.find(text, at);
    if (!match)
      break;
    rt.step();
    if (match->end > match->begin)
      matches.push_back(*match);
    at = std::max(match->end, at + 1);
  }
  return matches;
}

bool matchesWhole(Runtime &rt, const char *pattern, std::string_view text,
                  bool ignoreCase) {
  rt.touch(16 * text.size());
  uint32_t options = PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOTALL;
  Matcher matcher(pattern, options | (ignoreCase ? PCRE2_CASELESS : 0u));
  return matcher.find(text, 0).has_value();
}

} // namespace ingot::jinja
