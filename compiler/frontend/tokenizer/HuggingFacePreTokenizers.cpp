// The pre-tokenizers of tokenizer.json. Those that go by single characters become
// class tables; the others are regexes or rewrite the text.
#include "compiler/frontend/tokenizer/CharacterTableBuilder.h"
#include "compiler/frontend/tokenizer/ComponentParts.h"
#include "compiler/frontend/tokenizer/HuggingFaceComponents.h"
#include "compiler/frontend/tokenizer/RegexTranslation.h"
#include "runtime/text/Utf8.h"

namespace ingot {
namespace {

PreTokenizerStep splitStep(std::string pattern, SplitBehavior behavior,
                           bool invert = false) {
  PreTokenizerStep step{PreTokenizerKind::Split, std::move(pattern)};
  step.behavior = behavior;
  step.invert = invert;
  return step;
}

Result<SplitBehavior> readBehavior(const ComponentReader &component) {
  INGOT_ASSIGN_OR_RETURN(std::string behavior, component.string("behavior"));
  constexpr std::pair<const char *, SplitBehavior> behaviors[] = {
      {"Removed", SplitBehavior::Removed},
      {"Isolated", SplitBehavior::Isolated},
      {"MergedWithPrevious", SplitBehavior::MergedWithPrevious},
      {"MergedWithNext", SplitBehavior::MergedWithNext},
      {"Contiguous", SplitBehavior::Contiguous}};
  for (auto [name, value] : behaviors)
    if (behavior == name)
      return value;
  return component.unsupported("behavior " + quoteName(behavior));
}

Status readSplit(const ComponentReader &component, TokenizerSpec &spec) {
  INGOT_RETURN_IF_ERROR(
      component.allowOnly({"type", "pattern", "behavior", "invert"}));
  INGOT_ASSIGN_OR_RETURN(Pattern pattern, readPattern(component));
  INGOT_ASSIGN_OR_RETURN(SplitBehavior behavior, readBehavior(component));
  INGOT_ASSIGN_OR_RETURN(bool invert, component.boolean("invert", false));
  spec.preTokenizer.push_back(
      splitStep(pattern.regex ? *pattern.regex : quoteRegex(*pattern.string),
                behavior, invert));
  return Status::ok();
}

const CharacterSet &spaces() { return charactersOf(CharacterClass::Spaces); }

// Cuts at single characters of a set.
PreTokenizerStep cutAt(const CharacterSet &set, SplitBehavior behavior) {
  switch (behavior) {
  case SplitBehavior::Removed:
    return classStep({{set, ClassKind::Drop}});
  case SplitBehavior::Isolated:
    return classStep({{set, ClassKind::Single}});
  case SplitBehavior::Contiguous:
    return classStep({{set, ClassKind::Join}});
  case SplitBehavior::MergedWithPrevious:
  case SplitBehavior::MergedWithNext:
    break;
  }
  return splitStep("[" + regexRanges(set) + "]", behavior);
}

Status readByteLevel(const ComponentReader &component, TokenizerSpec &spec) {
  // trim_offsets moves offsets, not ids.
  INGOT_RETURN_IF_ERROR(component.allowOnly(
      {"type", "add_prefix_space", "trim_offsets", "use_regex"}));
  INGOT_ASSIGN_OR_RETURN(bool prefix, component.boolean("add_prefix_space"));
  INGOT_ASSIGN_OR_RETURN(bool regex, component.boolean("use_regex", true));
  if (prefix)
    spec.preTokenizer.push_back({PreTokenizerKind::PrefixSpace});
  if (regex) {
    INGOT_ASSIGN_OR_RETURN(std::string pattern,
                           translateRegex(Gpt2Regex, RegexDialect::Oniguruma));
    spec.preTokenizer.push_back(splitStep(pattern, SplitBehavior::Isolated));
  }
  spec.preTokenizer.push_back({PreTokenizerKind::SpellBytes});
  return Status::ok();
}

PreTokenizerStep scriptStep() {
  // Class 0: characters of no script.
  CharacterTableBuilder table;
  uint16_t numScripts = 0;
  for (const ScriptRange &range : unicodeScripts()) {
    table.set(CharacterSet({{range.first, range.last}}), range.script);
    numScripts = std::max(numScripts, range.script);
  }
  PreTokenizerStep step{PreTokenizerKind::Classes};
  step.classes.assign(numScripts + 1u, ClassKind::Join);
  step.classes[0] = ClassKind::Neutral;
  step.characters = table.finish(step.owner);
  return step;
}

} // namespace

Status readPreTokenizer(const ComponentReader &component, TokenizerSpec &spec) {
  INGOT_ASSIGN_OR_RETURN(std::string type, component.string("type"));
  auto add = [&](PreTokenizerStep step) {
    spec.preTokenizer.push_back(std::move(step));
    return component.allowOnly({"type"});
  };
  if (type == "Sequence")
    return readSequence(component, "pretokenizers",
                        [&](const ComponentReader &element) {
                          return readPreTokenizer(element, spec);
                        });
  if (type == "Split")
    return readSplit(component, spec);
  if (type == "ByteLevel")
    return readByteLevel(component, spec);
  if (type == "WhitespaceSplit")
    return add(classStep({{spaces(), ClassKind::Drop}}));
  if (type == "Whitespace")
    return add(classStep(
        {{charactersOf(CharacterClass::WordCharacters), ClassKind::Join},
         {spaces(), ClassKind::Drop}}));
  if (type == "BertPreTokenizer")
    return add(classStep(
        {{spaces(), ClassKind::Drop},
         {charactersOf(CharacterClass::Punctuation), ClassKind::Single}}));
  if (type == "UnicodeScripts")
    return add(scriptStep());
  if (type == "Punctuation") {
    INGOT_RETURN_IF_ERROR(component.allowOnly({"type", "behavior"}));
    SplitBehavior behavior = SplitBehavior::Isolated;
    if (component.has("behavior")) {
      INGOT_ASSIGN_OR_RETURN(behavior, readBehavior(component));
    }
    spec.preTokenizer.push_back(
        cutAt(charactersOf(CharacterClass::Punctuation), behavior));
    return Status::ok();
  }
  if (type == "Digits") {
    INGOT_RETURN_IF_ERROR(component.allowOnly({"type", "individual_digits"}));
    INGOT_ASSIGN_OR_RETURN(bool individual,
                           component.boolean("individual_digits", false));
    spec.preTokenizer.push_back(cutAt(charactersOf(CharacterClass::Numeric),
                                      individual ? SplitBehavior::Isolated
                                                 : SplitBehavior::Contiguous));
    return Status::ok();
  }
  if (type == "CharDelimiterSplit") {
    INGOT_RETURN_IF_ERROR(component.allowOnly({"type", "delimiter"}));
    INGOT_ASSIGN_OR_RETURN(std::string delimiter,
                           component.string("delimiter"));
    if (delimiter.empty() || utf8Length(delimiter[0]) != delimiter.size())
      return component.invalid("\"delimiter\": expected one character");
    uint32_t character = decodeUtf8(delimiter);
    spec.preTokenizer.push_back(
        cutAt(CharacterSet({{character, character}}), SplitBehavior::Removed));
    return Status::ok();
  }
  if (type == "FixedLength") {
    INGOT_RETURN_IF_ERROR(component.allowOnly({"type", "length"}));
    INGOT_ASSIGN_OR_RETURN(int64_t length, component.integer("length"));
    if (length < 1 || length > 65535)
      return component.unsupported("\"length\": expected 1 to 65535, found " +
                                   std::to_string(length));
    spec.preTokenizer.push_back(splitStep(
        "(?s).{1," + std::to_string(length) + "}", SplitBehavior::Isolated));
    return Status::ok();
  }
  if (type == "Metaspace") {
    INGOT_ASSIGN_OR_RETURN(Metaspace metaspace, readMetaspace(component));
    PreTokenizerStep step{PreTokenizerKind::Metaspace};
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

} // namespace ingot
