// The post-processors of tokenizer.json: which ids go around a text. One after
// the other, each goes around what the one before made.
#include "compiler/frontend/tokenizer/ComponentParts.h"
#include "compiler/frontend/tokenizer/HuggingFaceComponents.h"

namespace ingot {
namespace {

using Json = nlohmann::json;

void wrap(TokenizerSpec &spec, const std::vector<int32_t> &before,
          const std::vector<int32_t> &after) {
  spec.prefixIds.insert(spec.prefixIds.begin(), before.begin(), before.end());
  spec.suffixIds.insert(spec.suffixIds.end(), after.begin(), after.end());
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
  std::vector<int32_t> before, after;
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
    INGOT_RETURN_IF_ERROR(
        appendTemplateIds(component, name, spec, textSeen ? after : before));
  }
  if (!textSeen)
    return component.invalid("\"single\" does not hold the text (Sequence A)");
  wrap(spec, before, after);
  return Status::ok();
}

// Both processors put the same around one text; their other switches move
// offsets.
Status readClsAndSep(const ComponentReader &component, TokenizerSpec &spec) {
  INGOT_ASSIGN_OR_RETURN(TokenAndId cls, readTokenAndId(component, "cls"));
  INGOT_ASSIGN_OR_RETURN(TokenAndId sep, readTokenAndId(component, "sep"));
  for (const TokenAndId &one : {cls, sep})
    if (static_cast<size_t>(one.id) >= spec.tokens.size() ||
        !spec.tokens[static_cast<size_t>(one.id)].present)
      return component.invalid(quoteName(one.token) + ": " +
                               std::to_string(one.id) +
                               " is not an id of the vocabulary");
  wrap(spec, {static_cast<int32_t>(cls.id)}, {static_cast<int32_t>(sep.id)});
  return Status::ok();
}

} // namespace

Status readPostProcessor(const ComponentReader &component,
                         TokenizerSpec &spec) {
  INGOT_ASSIGN_OR_RETURN(std::string type, component.string("type"));
  if (type == "ByteLevel") // moves offsets only
    return component.allowOnly(
        {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  if (type == "TemplateProcessing")
    return readTemplate(component, spec);
  if (type == "BertProcessing") {
    INGOT_RETURN_IF_ERROR(component.allowOnly({"type", "sep", "cls"}));
    return readClsAndSep(component, spec);
  }
  if (type == "RobertaProcessing") {
    INGOT_RETURN_IF_ERROR(component.allowOnly(
        {"type", "sep", "cls", "trim_offsets", "add_prefix_space"}));
    return readClsAndSep(component, spec);
  }
  if (type == "Sequence")
    return readSequence(component, "processors",
                        [&](const ComponentReader &element) {
                          return readPostProcessor(element, spec);
                        });
  return component.unsupported("post-processor " + quoteName(type));
}

} // namespace ingot
