// Each step maps the list of pieces to a new list. Every piece is a text of its
// own to the step: a lookahead does not see past its end.
#include "runtime/text/PreTokenizer.h"

#include "runtime/text/Utf8.h"

#include <utility>

namespace ingot {
namespace {

void add(std::vector<TextRange> &out, size_t begin, size_t end) {
  if (begin < end)
    out.push_back({begin, end});
}

// Cuts `piece` at `matches` (relative to its begin).
//   text  a,,b   matches [1,2) [2,3)
//   Removed a|b  Isolated a|,|,|b  MergedWithPrevious a,|,|b
//   MergedWithNext a|,|,b  Contiguous a|,,|b
void cut(TextRange piece, const std::vector<TextRange> &matches,
         SplitBehavior behavior, bool invert, std::vector<TextRange> &out) {
  // A walk over matches and the gaps between them, in order.
  size_t open = piece.begin; // start of what MergedWith* and Contiguous hold
  bool previousIsMatch = false, any = false;
  auto segment = [&](size_t begin, size_t end, bool isMatch) {
    isMatch ^= invert;
    switch (behavior) {
    case SplitBehavior::Removed:
      if (!isMatch)
        add(out, begin, end);
      break;
    case SplitBehavior::Isolated:
      add(out, begin, end);
      break;
    case SplitBehavior::Contiguous:
      if (any && isMatch != previousIsMatch) {
        add(out, open, begin);
        open = begin;
      }
      break;
    case SplitBehavior::MergedWithPrevious:
      // A match joins a gap before it, never another match.
      if (any && !(isMatch && !previousIsMatch)) {
        add(out, open, begin);
        open = begin;
      }
      break;
    case SplitBehavior::MergedWithNext:
      if (any && !(!isMatch && previousIsMatch)) {
        add(out, open, begin);
        open = begin;
      }
      break;
    }
    previousIsMatch = isMatch;
    any = true;
  };
  size_t at = piece.begin;
  for (TextRange match : matches) {
    size_t begin = piece.begin + match.begin, end = piece.begin + match.end;
    if (at < begin)
      segment(at, begin, false);
    segment(begin, end, true);
    at = end;
  }
  if (at < piece.end)
    segment(at, piece.end, false);
  if (behavior != SplitBehavior::Removed && behavior != SplitBehavior::Isolated)
    add(out, open, piece.end);
}

} // namespace

Result<PreTokenizer> PreTokenizer::create(std::vector<PreTokenizerStep> steps) {
  PreTokenizer preTokenizer;
  for (PreTokenizerStep &what : steps) {
    Step step{std::move(what), std::nullopt};
    if (step.what.kind == PreTokenizerKind::Split) {
      if (step.what.pattern.empty())
        return Status::invalid("pre-tokenizer: Split with an empty pattern");
      INGOT_ASSIGN_OR_RETURN(step.regex,
                             SplitRegex::compile(step.what.pattern));
    }
    if (step.what.kind == PreTokenizerKind::Metaspace &&
        (step.what.replacement.empty() ||
         findInvalidUtf8(step.what.replacement) != std::string_view::npos))
      return Status::invalid("pre-tokenizer: Metaspace needs a replacement "
                             "character in valid UTF-8");
    preTokenizer.steps_.push_back(std::move(step));
  }
  return preTokenizer;
}

Status PreTokenizer::split(std::string_view text, bool atStart,
                           RegexScratch &scratch, Pieces &pieces) const {
  pieces.text = text;
  pieces.ranges.clear();
  add(pieces.ranges, 0, text.size());
  for (const Step &step : steps_) {
    pieces.nextRanges.clear();
    if (step.what.kind == PreTokenizerKind::Split) {
      for (TextRange piece : pieces.ranges) {
        INGOT_RETURN_IF_ERROR(step.regex->findAll(
            pieces.text.substr(piece.begin, piece.end - piece.begin), scratch,
            pieces.matches));
        cut(piece, pieces.matches, step.what.behavior, step.what.invert,
            pieces.nextRanges);
      }
      std::swap(pieces.ranges, pieces.nextRanges);
      continue;
    }
    // The rewriting steps.
    pieces.nextBuffer.clear();
    for (TextRange piece : pieces.ranges) {
      std::string_view view =
          pieces.text.substr(piece.begin, piece.end - piece.begin);
      size_t begin = pieces.nextBuffer.size();
      if (step.what.kind == PreTokenizerKind::PrefixSpace) {
        if (view.front() != ' ')
          pieces.nextBuffer.push_back(' ');
        pieces.nextBuffer.append(view);
      } else {
        const std::string &mark = step.what.replacement;
        bool first = atStart && piece.begin == 0;
        bool prepend =
            step.what.prependScheme == PrependScheme::Always ||
            (step.what.prependScheme == PrependScheme::First && first);
        if (prepend && view.front() != ' ' && !view.starts_with(mark))
          pieces.nextBuffer.append(mark);
        for (char c : view)
          if (c == ' ')
            pieces.nextBuffer.append(mark);
          else
            pieces.nextBuffer.push_back(c);
      }
      add(pieces.nextRanges, begin, pieces.nextBuffer.size());
    }
    std::swap(pieces.buffer, pieces.nextBuffer);
    std::swap(pieces.ranges, pieces.nextRanges);
    pieces.text = pieces.buffer;
  }
  return Status::ok();
}

} // namespace ingot
