// The normalizers of tokenizer.json. Those that change single characters become
// character maps; what a map holds is the library's own knowledge of Unicode.
#include "compiler/frontend/tokenizer/CharacterTableBuilder.h"
#include "compiler/frontend/tokenizer/ComponentParts.h"
#include "compiler/frontend/tokenizer/HuggingFaceComponents.h"
#include "compiler/frontend/tokenizer/PrecompiledCharsmap.h"

namespace ingot {
namespace {

Status readBert(const ComponentReader &component, TokenizerSpec &spec) {
  INGOT_RETURN_IF_ERROR(
      component.allowOnly({"type", "clean_text", "handle_chinese_chars",
                           "strip_accents", "lowercase"}));
  INGOT_ASSIGN_OR_RETURN(bool clean, component.boolean("clean_text", true));
  INGOT_ASSIGN_OR_RETURN(bool chinese,
                         component.boolean("handle_chinese_chars", true));
  INGOT_ASSIGN_OR_RETURN(bool lowercase, component.boolean("lowercase", true));
  INGOT_ASSIGN_OR_RETURN(bool accents,
                         component.boolean("strip_accents", lowercase));
  CharacterMap map;
  if (clean)
    map.replace(charactersOf(CharacterClass::BertRemoved), "")
        .replace(charactersOf(CharacterClass::BertSpaces), " ");
  if (chinese)
    map.surroundWithSpaces(charactersOf(CharacterClass::BertChinese));
  if (accents) {
    spec.normalizer.push_back(map.finish());
    spec.normalizer.push_back(unicodeFormStep(NormalizerKind::Nfd));
    map = CharacterMap();
    map.replace(charactersOf(CharacterClass::BertMarks), "");
  }
  if (lowercase)
    map.lowercase();
  spec.normalizer.push_back(map.finish());
  return Status::ok();
}

} // namespace

NormalizerStep unicodeFormStep(NormalizerKind form) {
  NormalizerStep step{form};
  auto bounds = std::make_shared<std::vector<uint32_t>>(
      charactersOf(CharacterClass::NormalizationApart).bounds());
  step.apart = *bounds;
  step.owner = bounds;
  return step;
}

Status readNormalizer(const ComponentReader &component, TokenizerSpec &spec) {
  INGOT_ASSIGN_OR_RETURN(std::string type, component.string("type"));
  auto add = [&](NormalizerStep step) {
    spec.normalizer.push_back(std::move(step));
    return component.allowOnly({"type"});
  };
  constexpr std::pair<const char *, NormalizerKind> forms[] = {
      {"NFC", NormalizerKind::Nfc},
      {"NFD", NormalizerKind::Nfd},
      {"NFKC", NormalizerKind::Nfkc},
      {"NFKD", NormalizerKind::Nfkd}};
  for (auto [name, form] : forms)
    if (type == name)
      return add(unicodeFormStep(form));
  if (type == "Lowercase")
    return add(CharacterMap().lowercase().finish());
  if (type == "StripAccents")
    return add(CharacterMap()
                   .replace(charactersOf(CharacterClass::Accents), "")
                   .finish());
  if (type == "Nmt")
    return add(CharacterMap()
                   .replace(charactersOf(CharacterClass::NmtRemoved), "")
                   .replace(charactersOf(CharacterClass::NmtSpaces), " ")
                   .finish());
  if (type == "ByteLevel")
    return add({NormalizerKind::SpellBytes});
  if (type == "BertNormalizer")
    return readBert(component, spec);
  if (type == "Sequence")
    return readSequence(component, "normalizers",
                        [&](const ComponentReader &element) {
                          return readNormalizer(element, spec);
                        });
  if (type == "Strip") {
    INGOT_RETURN_IF_ERROR(
        component.allowOnly({"type", "strip_left", "strip_right"}));
    INGOT_ASSIGN_OR_RETURN(bool left, component.boolean("strip_left"));
    INGOT_ASSIGN_OR_RETURN(bool right, component.boolean("strip_right"));
    NormalizerStep step{NormalizerKind::Strip};
    step.options = (left ? StripLeft : 0u) | (right ? StripRight : 0u);
    spec.normalizer.push_back(std::move(step));
    return Status::ok();
  }
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
  if (type == "Precompiled") {
    INGOT_RETURN_IF_ERROR(
        component.allowOnly({"type", "precompiled_charsmap"}));
    std::string encoded; // null and "" are no rules at all
    if (component.has("precompiled_charsmap")) {
      INGOT_ASSIGN_OR_RETURN(encoded, component.string("precompiled_charsmap"));
    }
    Result<std::string> blob = decodeBase64(encoded);
    if (!blob)
      return blob.status().withContext(component.path());
    if (blob->empty())
      return Status::ok();
    Result<NormalizerStep> step = readPrecompiledCharsmap(*blob);
    if (!step)
      return step.status().withContext(component.path());
    step->options = WholeGraphemes;
    spec.normalizer.push_back(std::move(step).value());
    return Status::ok();
  }
  return component.unsupported("normalizer " + quoteName(type));
}

} // namespace ingot
