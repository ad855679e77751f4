#include "compiler/frontend/tokenizer/DecodedTexts.h"

#include "runtime/text/ByteAlphabet.h"

#include <charconv>
#include <string>

namespace ingot {
namespace {

using Kind = DecoderStep::Kind;

// Ends where the text is longer than `longest`, which the caller refuses.
void replaceAll(std::string &text, std::string_view from, std::string_view to,
                size_t longest = std::string::npos) {
  if (from.empty())
    return;
  for (size_t at = 0; text.size() <= longest &&
                      (at = text.find(from, at)) != std::string::npos;
       at += to.size())
    text.replace(at, from.size(), to);
}

// English as it was written before words were split off, word by word.
void cleanUp(std::string &text) {
  constexpr std::pair<std::string_view, std::string_view> changes[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (auto [from, to] : changes)
    replaceAll(text, from, to);
}

void strip(std::string &text, const DecoderStep &step) {
  for (uint32_t n = step.start; n > 0 && text.starts_with(step.text); --n)
    text.erase(0, step.text.size());
  for (uint32_t n = step.stop; n > 0 && text.ends_with(step.text); --n)
    text.resize(text.size() - step.text.size());
}

} // namespace

std::optional<uint8_t> byteOfToken(std::string_view spelling) {
  if (spelling.size() != 6 || !spelling.starts_with("<0x") ||
      spelling.back() != '>')
    return std::nullopt;
  unsigned byte = 0;
  auto parsed = std::from_chars(&spelling[3], &spelling[5], byte, 16);
  if (parsed.ec != std::errc() || parsed.ptr != &spelling[5])
    return std::nullopt;
  return static_cast<uint8_t>(byte);
}

Result<DecodedTexts> DecodedTexts::create(const DecoderSpec &decoder) {
  DecodedTexts texts;
  texts.scratch_ = std::make_unique<RegexScratch>();
  texts.joinWithSpaces_ = texts.differsAtStart_ = decoder.joinWithSpaces;
  for (const DecoderStep &what : decoder.steps) {
    Step step{what, std::nullopt};
    if (what.regex) {
      INGOT_ASSIGN_OR_RETURN(step.regex, SplitRegex::compile(*what.regex));
    }
    texts.differsAtStart_ |= what.kind == Kind::WordPiece || what.erasesFirst;
    texts.differsAtEnd_ |= what.kind == Kind::BytePairSuffix;
    texts.steps_.push_back(std::move(step));
  }
  if (texts.differsAtStart_ && texts.differsAtEnd_)
    return Status::unsupported("decoder: BPEDecoder beside WordPiece or "
                               "Metaspace");
  return texts;
}

Result<DecodedTexts::Text> DecodedTexts::read(const std::string &spelling,
                                              bool first, bool last) {
  // A few bytes of a hostile decoder can ask for any length.
  const size_t longest = 4096 + 4 * spelling.size();
  Text out{spelling};
  for (const Step &step : steps_) {
    const DecoderStep &what = step.what;
    std::string &text = out.bytes;
    switch (what.kind) {
    case Kind::ByteLevel:
      text = alphabetToBytes(text).value_or(text);
      break;
    case Kind::ByteFallback:
      if (auto byte = byteOfToken(text))
        return Text{std::string(1, static_cast<char>(*byte)), true};
      break;
    case Kind::Replace:
      if (step.regex) {
        std::vector<TextRange> matches;
        INGOT_RETURN_IF_ERROR(step.regex->findAll(text, *scratch_, matches));
        for (size_t i = matches.size(); i-- > 0 && text.size() <= longest;)
          text.replace(matches[i].begin, matches[i].end - matches[i].begin,
                       what.content);
      } else {
        replaceAll(text, what.text, what.content, longest);
      }
      break;
    case Kind::Metaspace:
      replaceAll(text, what.text, first && what.erasesFirst ? "" : " ");
      break;
    case Kind::WordPiece:
      if (!first) {
        if (text.starts_with(what.text))
          text.erase(0, what.text.size());
        else
          text.insert(0, " ");
      }
      if (what.cleanup)
        cleanUp(text);
      break;
    case Kind::BytePairSuffix:
      replaceAll(text, what.text, last ? "" : " ");
      break;
    case Kind::Ctc:
      replaceAll(text, what.text, "");
      if (what.cleanup) {
        cleanUp(text);
        replaceAll(text, what.content, " ");
      }
      break;
    case Kind::Strip:
      strip(text, what);
      break;
    }
    if (text.size() > longest)
      return Status::unsupported(
          "decoder: the " + std::to_string(spelling.size()) +
          " bytes of a token become more than " + std::to_string(longest));
  }
  if (joinWithSpaces_ && !first)
    out.bytes.insert(0, " ");
  return out;
}

} // namespace ingot
