// `tokenize`: a line of text in, a JSON list of ids out, or the way back.
#include "compiler/driver/TextModel.h"
#include "tools/ingot-compiler/Commands.h"

#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

struct TokenizeFlags {
  std::string path;
  bool noSpecial = false;
  bool decode = false;
  bool keepSpecial = false;
  bool jsonText = false;
};

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
  INGOT_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                         tokenizer.encode(text, options));
  return Json(ids).dump();
}

Result<std::string> decodeLine(const Tokenizer &tokenizer,
                               const std::string &line,
                               const TokenizeFlags &flags) {
  Json list = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array())
    return Status::invalid("expected a JSON list of ids");
  std::vector<int32_t> ids;
  for (const Json &element : list) {
    if (!element.is_number_integer() || element < INT32_MIN ||
        element > INT32_MAX)
      return Status::invalid("expected ids of 32 bits");
    ids.push_back(element.get<int32_t>());
  }
  INGOT_ASSIGN_OR_RETURN(std::string text,
                         tokenizer.decode(ids, !flags.keepSpecial));
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Status runTokenize(const TokenizeFlags &flags) {
  INGOT_ASSIGN_OR_RETURN(TextModel model, TextModel::open(flags.path));
  std::string line;
  for (size_t number = 1; std::getline(std::cin, line); ++number) {
    Result<std::string> answer =
        flags.decode ? decodeLine(model.tokenizer(), line, flags)
                     : encodeLine(model.tokenizer(), line, flags);
    if (!answer)
      return answer.status().withContext("line " + std::to_string(number));
    std::cout << *answer << "\n";
  }
  std::cout.flush();
  return std::cout ? Status::ok()
                   : Status::io("standard output cannot be written");
}

} // namespace

Command addTokenizeCommand(CLI::App &app) {
  auto flags = std::make_shared<TokenizeFlags>();
  CLI::App *command = app.add_subcommand(
      "tokenize",
      "Texts to ids, a line each on standard input, JSON lines out");
  command
      ->add_option("MODEL", flags->path,
                   "Model folder, tokenizer.json, GGUF file or artifact")
      ->required();
  command->add_flag("--no-special", flags->noSpecial,
                    "Leave out the special tokens around a text (BOS)");
  command->add_flag(
      "--decode", flags->decode,
      "The other way: a JSON list of ids a line, JSON strings out");
  command
      ->add_flag("--keep-special", flags->keepSpecial,
                 "Keep special tokens in decoded text")
      ->needs("--decode");
  command->add_flag(
      "--json-text", flags->jsonText,
      "Lines are JSON strings, so that a text may hold line breaks");
  return [flags] { return finish(runTokenize(*flags)); };
}

} // namespace ingot
