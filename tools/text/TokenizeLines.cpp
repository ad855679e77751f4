#include "tools/text/TokenizeLines.h"

#include "tools/text/InputText.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <iostream>
#include <vector>

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

Result<std::string> encodeLine(const Tokenizer &tokenizer,
                               const std::string &line,
                               const TokenizeFlags &flags) {
  std::string text = line;
  if (flags.jsonText) {
    Json value = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!value.is_string())
      return Status::invalid("expected a JSON string");
    text = value.get<std::string>();
  }
  EncodeOptions options;
  options.addSpecialTokens = !flags.noSpecial;
  INGOT_ASSIGN_OR_RETURN(auto ids, tokenizer.encode(text, options));
  return Json(ids).dump();
}

Result<std::string> decodeLine(const Tokenizer &tokenizer,
                               const std::string &line,
                               const TokenizeFlags &flags) {
  Json list = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array())
    return Status::invalid("expected a JSON list of ids");
  std::vector<std::int32_t> ids;
  for (const Json &id : list) {
    if (!id.is_number_integer() || id < INT32_MIN || id > INT32_MAX)
      return Status::invalid("expected ids of 32 bits");
    ids.push_back(id.get<std::int32_t>());
  }
  INGOT_ASSIGN_OR_RETURN(std::string text,
                         tokenizer.decode(ids, !flags.keepSpecial));
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace

CLI::App *addTokenizeFlags(CLI::App &app, TokenizeFlags &flags) {
  CLI::App *command = app.add_subcommand(
      "tokenize",
      "Texts to ids, a line each on standard input, JSON lines out");
  command
      ->add_option("MODEL", flags.path,
                   "Model folder, tokenizer.json, GGUF file or artifact")
      ->required();
  command->add_flag("--no-special", flags.noSpecial,
                    "Leave out the special tokens around a text (BOS)");
  command->add_flag(
      "--decode", flags.decode,
      "The other way: a JSON list of ids a line, JSON strings out");
  command
      ->add_flag("--keep-special", flags.keepSpecial,
                 "Keep special tokens in decoded text")
      ->needs("--decode");
  command->add_flag(
      "--json-text", flags.jsonText,
      "Lines are JSON strings, so that a text may hold line breaks");
  return command;
}

Status tokenizeLines(const Tokenizer &tokenizer, const TokenizeFlags &flags) {
  std::string line;
  for (std::size_t number = 1; std::getline(std::cin, line); ++number) {
    auto answer = flags.decode ? decodeLine(tokenizer, line, flags)
                               : encodeLine(tokenizer, line, flags);
    if (!answer)
      return answer.status().withContext("line " + std::to_string(number));
    std::cout << forStandardOutput(*answer) << "\n";
  }
  return standardOutputStatus();
}

} // namespace ingot
