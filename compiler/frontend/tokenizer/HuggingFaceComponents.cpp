#include "compiler/frontend/tokenizer/HuggingFaceComponents.h"

#include "compiler/frontend/tokenizer/RegexTranslation.h"
#include "runtime/text/Utf8.h"

namespace ingot {
namespace {

using Json = nlohmann::json;

// Calls read for each element of component[key].
template <typename Read>
Status readSequence(const ComponentReader &component, std::string_view key,
                    Read read) {
  INGOT_RETURN_IF_ERROR(component.allowOnly({"type", key}));
  INGOT_ASSIGN_OR_RETURN(const Json *elements, component.array(key));
  for (size_t i = 0; i < elements->size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(
        ComponentReader element,
        ComponentReader::create((*elements)[i], component.path() + "." +
                                                    std::string(key) + "[" +
                                                    std::to_string(i) + "]"));
    INGOT_RETURN_IF_ERROR(read(element));
  }
  return Status::ok();
}

// {"String": "x"} or {"Regex": "x"}; one of the two is set.
struct Pattern {
  std::optional<std::string> string, regex;
};

Result<Pattern> readPattern(const ComponentReader &component) {
  INGOT_ASSIGN_OR_RETURN(ComponentReader pattern, component.object("pattern"));
  INGOT_RETURN_IF_ERROR(pattern.allowOnly({"String", "Regex"}));
  Pattern out;
  if (pattern.has("String") == pattern.has("Regex"))
    return pattern.invalid("expected either \"String\" or \"Regex\"");
  if (pattern.has("String")) {
    INGOT_ASSIGN_OR_RETURN(out.string, pattern.string("String"));
  } else {
    INGOT_ASSIGN_OR_RETURN(std::string regex, pattern.string("Regex"));
    Result<std::string> translated =
        translateRegex(regex, RegexDialect::Oniguruma);
    if (!translated)
      return translated.status().withContext(pattern.path());
    out.regex = std::move(translated).value();
  }
  return out;
}

PreTokenizerStep splitStep(std::string pattern, SplitBehavior behavior,
                           bool invert = false) {
  PreTokenizerStep step{PreTokenizerKind::Split, std::move(pattern)};
  step.behavior = behavior;
  step.invert = invert;
  return step;
}

Status readSplit(const ComponentReader &component, TokenizerSpec &spec) {
  INGOT_RETURN_IF_ERROR(
      component.allowOnly({"type", "pattern", "behavior", "invert"}));
  INGOT_ASSIGN_OR_RETURN(Pattern pattern, readPattern(component));
  INGOT_ASSIGN_OR_RETURN(std::string behavior, component.string("behavior"));
  INGOT_ASSIGN_OR_RETURN(bool invert, component.boolean("invert", false));
  constexpr std::pair<const char *, SplitBehavior> behaviors[] = {
      {"Removed", SplitBehavior::Removed},
      {"Isolated", SplitBehavior::Isolated},
      {"MergedWithPrevious", SplitBehavior::MergedWithPrevious},
      {"MergedWithNext", SplitBehavior::MergedWithNext},
      {"Contiguous", SplitBehavior::Contiguous}};
  for (auto [name, value] : behaviors)
    if (behavior == name) {
      spec.preTokenizer.push_back(splitStep(
          pattern.regex ? *pattern.regex : quoteRegex(*pattern.string), value,
          invert));
      return Status::ok();
    }
  return component.unsupported("behavior " + quoteName(behavior));
}

struct Metaspace {
  std::string replacement;
  PrependScheme scheme;
  bool split;
};

Result<Metaspace> readMetaspace(const ComponentReader &component) {
  INGOT_RETURN_IF_ERROR(
      component.allowOnly({"type", "replacement", "str_rep", "add_prefix_space",
                           "prepend_scheme", "split"}));
  Metaspace out;
  INGOT_ASSIGN_OR_RETURN(out.replacement, component.string("replacement"));
  if (out.replacement.empty() ||
      utf8Length(out.replacement[0]) != out.replacement.size())
    return component.invalid("\"replacement\": expected one character");
  // Files from before prepend_scheme say it with a bool, whose default is true.
  INGOT_ASSIGN_OR_RETURN(bool prefix,
                         component.boolean("add_prefix_space", true));
  out.scheme = prefix ? PrependScheme::Always : PrependScheme::Never;
  if (component.has("prepend_scheme")) {
    INGOT_ASSIGN_OR_RETURN(std::string scheme,
                           component.string("prepend_scheme"));
    if (scheme == "always")
      out.scheme = PrependScheme::Always;
    else if (scheme == "first")
      out.scheme = PrependScheme::First;
    else if (scheme == "never")
      out.scheme = PrependScheme::Never;
    else
      return component.unsupported("prepend_scheme " + quoteName(scheme));
    if (component.has("add_prefix_space") &&
        prefix != (out.scheme != PrependScheme::Never))
      return component.invalid(
          "\"add_prefix_space\" contradicts \"prepend_scheme\"");
  }
  INGOT_ASSIGN_OR_RETURN(out.split, component.boolean("split", true));
  return out;
}

// The ids of one special token of a TemplateProcessing.
Status appendTemplateIds(const ComponentReader &component,
                         const std::string &name, const TokenizerSpec &spec,
                         std::vector<int32_t> &out) {
  INGOT_ASSIGN_OR_RETURN(ComponentReader all,
                         component.object("special_tokens"));
  INGOT_ASSIGN_OR_RETURN(ComponentReader token, all.object(name));
  INGOT_RETURN_IF_ERROR(token.allowOnly({"id", "ids", "tokens"}));
  INGOT_ASSIGN_OR_RETURN(const Json *ids, token.array("ids"));
  for (const Json &id : *ids) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= spec.tokens.size() ||
        !spec.tokens[id.get<uint64_t>()].present)
      return token.invalid("\"ids\": " + jsonForMessage(id) +
                           " is not an id of the vocabulary");
    out.push_back(id.get<int32_t>());
  }
  return Status::ok();
}

Status readTemplate(const ComponentReader &component, TokenizerSpec &spec) {
  // "pair" is for two texts, which generation never encodes.
  INGOT_RETURN_IF_ERROR(
      component.allowOnly({"type", "single", "pair", "special_tokens"}));
  INGOT_ASSIGN_OR_RETURN(const Json *single, component.array("single"));
  bool textSeen = false;
  for (size_t i = 0; i < single->size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(
        ComponentReader piece,
        ComponentReader::create((*single)[i], component.path() + ".single[" +
                                                  std::to_string(i) + "]"));
    INGOT_RETURN_IF_ERROR(piece.allowOnly({"SpecialToken", "Sequence"}));
    if (piece.has("Sequence")) {
      INGOT_ASSIGN_OR_RETURN(ComponentReader text, piece.object("Sequence"));
      INGOT_ASSIGN_OR_RETURN(std::string id, text.string("id"));
      if (id != "A" || textSeen)
        return piece.unsupported("expected the text (Sequence A) just once");
      textSeen = true;
      continue;
    }
    INGOT_ASSIGN_OR_RETURN(ComponentReader token, piece.object("SpecialToken"));
    INGOT_ASSIGN_OR_RETURN(std::string name, token.string("id"));
    INGOT_RETURN_IF_ERROR(appendTemplateIds(
        component, name, spec, textSeen ? spec.suffixIds : spec.prefixIds));
  }
  if (!textSeen)
    return component.invalid("\"single\" does not hold the text (Sequence A)");
  return Status::ok();
}

} // namespace

Status readNormalizer(const ComponentReader &component, TokenizerSpec &spec) {
  INGOT_ASSIGN_OR_RETURN(std::string type, component.string("type"));
  constexpr std::pair<const char *, NormalizerKind> plain[] = {
      {"NFC", NormalizerKind::Nfc},
      {"NFD", NormalizerKind::Nfd},
      {"NFKC", NormalizerKind::Nfkc},
      {"NFKD", NormalizerKind::Nfkd},
      {"Lowercase", NormalizerKind::Lowercase}};
  for (auto [name, kind] : plain)
    if (type == name) {
      spec.normalizer.push_back({kind, "", ""});
      return component.allowOnly({"type"});
    }
  if (type == "Sequence")
    return readSequence(component, "normalizers",
                        [&](const ComponentReader &element) {
                          return readNormalizer(element, spec);
                        });
  if (type == "Prepend") {
    INGOT_RETURN_IF_ERROR(component.allowOnly({"type", "prepend"}));
    INGOT_ASSIGN_OR_RETURN(std::string text, component.string("prepend"));
    spec.normalizer.push_back({NormalizerKind::Prepend, "", text});
    return Status::ok();
  }
  if (type == "Replace") {
    INGOT_RETURN_IF_ERROR(component.allowOnly({"type", "pattern", "content"}));
    INGOT_ASSIGN_OR_RETURN(Pattern pattern, readPattern(component));
    INGOT_ASSIGN_OR_RETURN(std::string content, component.string("content"));
    spec.normalizer.push_back({pattern.regex ? NormalizerKind::ReplaceRegex
                                             : NormalizerKind::ReplaceString,
                               pattern.regex ? *pattern.regex : *pattern.string,
                               content});
    return Status::ok();
  }
  return component.unsupported("normalizer " + quoteName(type));
}

Status readPreTokenizer(const ComponentReader &component, TokenizerSpec &spec) {
  INGOT_ASSIGN_OR_RETURN(std::string type, component.string("type"));
  if (spec.byteLevel)
    return component.unsupported("a step after ByteLevel");
  if (type == "Sequence")
    return readSequence(component, "pretokenizers",
                        [&](const ComponentReader &element) {
                          return readPreTokenizer(element, spec);
                        });
  if (type == "Split")
    return readSplit(component, spec);
  if (type == "ByteLevel") {
    // trim_offsets moves offsets, not ids.
    INGOT_RETURN_IF_ERROR(component.allowOnly(
        {"type", "add_prefix_space", "trim_offsets", "use_regex"}));
    INGOT_ASSIGN_OR_RETURN(bool prefix, component.boolean("add_prefix_space"));
    INGOT_ASSIGN_OR_RETURN(bool regex, component.boolean("use_regex", true));
    if (prefix)
      spec.preTokenizer.push_back({PreTokenizerKind::PrefixSpace, ""});
    if (regex) {
      INGOT_ASSIGN_OR_RETURN(
          std::string pattern,
          translateRegex(Gpt2Regex, RegexDialect::Oniguruma));
      spec.preTokenizer.push_back(splitStep(pattern, SplitBehavior::Isolated));
    }
    spec.byteLevel = true;
    return Status::ok();
  }
  if (type == "Digits") {
    INGOT_RETURN_IF_ERROR(component.allowOnly({"type", "individual_digits"}));
    INGOT_ASSIGN_OR_RETURN(bool individual,
                           component.boolean("individual_digits", false));
    spec.preTokenizer.push_back(
        splitStep(individual ? "\\p{N}" : "\\p{N}+", SplitBehavior::Isolated));
    return Status::ok();
  }
  if (type == "Metaspace") {
    INGOT_ASSIGN_OR_RETURN(Metaspace metaspace, readMetaspace(component));
    PreTokenizerStep step{PreTokenizerKind::Metaspace, ""};
    step.replacement = metaspace.replacement;
    step.prependScheme = metaspace.scheme;
    spec.preTokenizer.push_back(step);
    if (metaspace.split)
      spec.preTokenizer.push_back(splitStep(quoteRegex(metaspace.replacement),
                                            SplitBehavior::MergedWithNext));
    return Status::ok();
  }
  return component.unsupported("pre-tokenizer " + quoteName(type));
}

Status readDecoder(const ComponentReader &component, TokenizerSpec &spec) {
  INGOT_ASSIGN_OR_RETURN(std::string type, component.string("type"));
  DecoderSpec &decoder = spec.decoder;
  // Only Fuse may stand between the tokens and a Strip: what strips single
  // tokens is another operation.
  if (decoder.byteLevel || decoder.stripCount > 0)
    return component.unsupported("a step after ByteLevel or Strip");
  if (type == "Sequence") {
    INGOT_RETURN_IF_ERROR(component.allowOnly({"type", "decoders"}));
    INGOT_ASSIGN_OR_RETURN(const Json *steps, component.array("decoders"));
    bool fused = false;
    for (size_t i = 0; i < steps->size(); ++i) {
      INGOT_ASSIGN_OR_RETURN(
          ComponentReader step,
          ComponentReader::create((*steps)[i], component.path() + ".decoders[" +
                                                   std::to_string(i) + "]"));
      INGOT_ASSIGN_OR_RETURN(std::string kind, step.string("type"));
      if (kind == "Sequence")
        return step.unsupported("a Sequence in a Sequence");
      if (kind == "Strip" && !fused)
        return step.unsupported("Strip without Fuse before it");
      if (fused && kind != "Strip" && kind != "Fuse")
        return step.unsupported("decoder " + quoteName(kind) + " after Fuse");
      INGOT_RETURN_IF_ERROR(readDecoder(step, spec));
      fused |= kind == "Fuse";
    }
    return Status::ok();
  }
  if (type == "ByteLevel") {
    decoder.byteLevel = true;
    return component.allowOnly(
        {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  }
  if (type == "ByteFallback") {
    decoder.byteFallback = true;
    return component.allowOnly({"type"});
  }
  if (type == "Fuse")
    return component.allowOnly({"type"});
  if (type == "Replace") {
    INGOT_RETURN_IF_ERROR(component.allowOnly({"type", "pattern", "content"}));
    INGOT_ASSIGN_OR_RETURN(Pattern pattern, readPattern(component));
    INGOT_ASSIGN_OR_RETURN(std::string content, component.string("content"));
    if (!pattern.string || pattern.string->empty())
      return component.unsupported("Replace with a regex or nothing to find");
    if (!decoder.eraseInFirst.empty())
      return component.unsupported("Replace beside Metaspace");
    decoder.replacements.emplace_back(*pattern.string, content);
    return Status::ok();
  }
  if (type == "Strip") {
    INGOT_RETURN_IF_ERROR(
        component.allowOnly({"type", "content", "start", "stop"}));
    INGOT_ASSIGN_OR_RETURN(decoder.stripText, component.string("content"));
    INGOT_ASSIGN_OR_RETURN(int64_t start, component.integer("start"));
    INGOT_ASSIGN_OR_RETURN(int64_t stop, component.integer("stop"));
    if (stop != 0)
      return component.unsupported("\"stop\" other than 0: text at the end "
                                   "would have to wait for the end");
    if (decoder.stripText.empty() || start < 0 || start > 1024)
      return component.invalid("expected a character in \"content\" and 0 to "
                               "1024 in \"start\"");
    decoder.stripCount = static_cast<uint32_t>(start);
    return Status::ok();
  }
  if (type == "Metaspace") {
    INGOT_ASSIGN_OR_RETURN(Metaspace metaspace, readMetaspace(component));
    if (!decoder.replacements.empty())
      return component.unsupported("Metaspace beside Replace");
    decoder.replacements.emplace_back(metaspace.replacement, " ");
    if (metaspace.scheme != PrependScheme::Never)
      decoder.eraseInFirst = metaspace.replacement;
    return Status::ok();
  }
  return component.unsupported("decoder " + quoteName(type));
}

Status readPostProcessor(const ComponentReader &component,
                         TokenizerSpec &spec) {
  INGOT_ASSIGN_OR_RETURN(std::string type, component.string("type"));
  if (type == "ByteLevel") // moves offsets only
    return component.allowOnly(
        {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  if (type == "TemplateProcessing") {
    if (!spec.prefixIds.empty() || !spec.suffixIds.empty())
      return component.unsupported("a second TemplateProcessing");
    return readTemplate(component, spec);
  }
  if (type == "Sequence")
    return readSequence(component, "processors",
                        [&](const ComponentReader &element) {
                          return readPostProcessor(element, spec);
                        });
  return component.unsupported("post-processor " + quoteName(type));
}

} // namespace ingot
