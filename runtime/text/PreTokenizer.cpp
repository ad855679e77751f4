// Each step maps the list of pieces to a new list. Every piece is a text of its
// own to the step: a lookahead does not see past its end.
#include "runtime/text/PreTokenizer.h"

#include "runtime/text/ByteAlphabet.h"
#include "runtime/text/Normalizer.h"
#include "runtime/text/Utf8.h"

#include <string>
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

// Cuts `piece` of `text` where the class of its characters says.
void cutByClass(std::string_view text, TextRange piece,
                const PreTokenizerStep &step, std::vector<TextRange> &out) {
  size_t open = piece.begin; // start of a run of a joining class ...
  uint16_t openClass = 0;
  bool isOpen = false; // ... if there is one
  auto close = [&](size_t end) {
    if (isOpen)
      add(out, open, end);
    isOpen = false;
  };
  for (size_t i = piece.begin; i < piece.end;) {
    uint16_t characterClass = step.characters[decodeUtf8(text.substr(i))];
    size_t next = i + utf8Length(text[i]);
    switch (step.classes[characterClass]) {
    case ClassKind::Join:
      if (isOpen && openClass == characterClass)
        break;
      close(i);
      open = i;
      openClass = characterClass;
      isOpen = true;
      break;
    case ClassKind::Single:
      close(i);
      add(out, i, next);
      break;
    case ClassKind::Drop:
      close(i);
      break;
    case ClassKind::Neutral:
      break;
    }
    i = next;
  }
  close(piece.end);
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
    if (step.what.kind == PreTokenizerKind::Classes)
      INGOT_RETURN_IF_ERROR(
          step.what.characters.verify(step.what.classes.size()));
    preTokenizer.steps_.push_back(std::move(step));
  }
  return preTokenizer;
}

// The steps that write the pieces anew. They stop where that makes more than
// `longest` bytes, which the caller refuses.
void PreTokenizer::rewrite(const PreTokenizerStep &step, bool atStart,
                           size_t longest, Pieces &pieces) {
  std::string &out = pieces.nextBuffer;
  out.clear();
  for (TextRange piece : pieces.ranges) {
    std::string_view view =
        pieces.text.substr(piece.begin, piece.end - piece.begin);
    size_t begin = out.size();
    if (begin > longest)
      break;
    if (step.kind == PreTokenizerKind::PrefixSpace) {
      if (view.front() != ' ')
        out.push_back(' ');
      out.append(view);
    } else if (step.kind == PreTokenizerKind::SpellBytes) {
      out += bytesToAlphabet(view);
    } else {
      const std::string &mark = step.replacement;
      bool first = atStart && piece.begin == 0;
      bool prepend = step.prependScheme == PrependScheme::Always ||
                     (step.prependScheme == PrependScheme::First && first);
      if (prepend && view.front() != ' ' && !view.starts_with(mark))
        out.append(mark);
      for (size_t i = 0; i < view.size() && out.size() <= longest; ++i)
        if (view[i] == ' ')
          out.append(mark);
        else
          out.push_back(view[i]);
    }
    add(pieces.nextRanges, begin, out.size());
  }
  std::swap(pieces.buffer, out);
  pieces.text = pieces.buffer;
}

Status PreTokenizer::split(std::string_view text, bool atStart,
                           RegexScratch &scratch, Pieces &pieces) const {
  const size_t longest = longestRewritten(text.size());
  pieces.text = text;
  pieces.ranges.clear();
  add(pieces.ranges, 0, text.size());
  for (const Step &step : steps_) {
    pieces.nextRanges.clear();
    switch (step.what.kind) {
    case PreTokenizerKind::Split:
      for (TextRange piece : pieces.ranges) {
        INGOT_RETURN_IF_ERROR(step.regex->findAll(
            pieces.text.substr(piece.begin, piece.end - piece.begin), scratch,
            pieces.matches));
        cut(piece, pieces.matches, step.what.behavior, step.what.invert,
            pieces.nextRanges);
      }
      break;
    case PreTokenizerKind::Classes:
      for (TextRange piece : pieces.ranges)
        cutByClass(pieces.text, piece, step.what, pieces.nextRanges);
      break;
    case PreTokenizerKind::PrefixSpace:
    case PreTokenizerKind::Metaspace:
    case PreTokenizerKind::SpellBytes: {
      // Text that an earlier step dropped is not there to tell where the input
      // begins.
      bool keptStart = !pieces.ranges.empty() && pieces.ranges[0].begin == 0;
      rewrite(step.what, atStart, longest, pieces);
      if (pieces.text.size() > longest)
        return Status::invalid(
            "splitting text: " + std::to_string(text.size()) +
            " bytes become more than " + std::to_string(longest));
      atStart &= keptStart;
      break;
    }
    }
    std::swap(pieces.ranges, pieces.nextRanges);
  }
  return Status::ok();
}

} // namespace ingot
