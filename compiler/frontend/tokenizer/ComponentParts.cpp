#include "compiler/frontend/tokenizer/ComponentParts.h"

#include "compiler/frontend/tokenizer/RegexTranslation.h"
#include "runtime/text/Utf8.h"

namespace ingot {

using Json = nlohmann::json;

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

Result<TokenAndId> readTokenAndId(const ComponentReader &component,
                                  std::string_view key) {
  INGOT_ASSIGN_OR_RETURN(const Json *pair, component.array(key));
  if (pair->size() != 2 || !(*pair)[0].is_string() ||
      !(*pair)[1].is_number_unsigned() ||
      (*pair)[1].get<uint64_t>() > INT32_MAX)
    return component.invalid("\"" + std::string(key) +
                             "\": expected a token and its id, found " +
                             jsonForMessage(*pair));
  return TokenAndId{(*pair)[0].get<std::string>(), (*pair)[1].get<int64_t>()};
}

} // namespace ingot
