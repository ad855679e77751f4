#include "compiler/frontend/huggingface/FolderContents.h"

#include "compiler/frontend/StrictJson.h"

#include <algorithm>
#include <set>

namespace ingot {
namespace {

bool holds(const std::vector<std::string> &names, const std::string &name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string ending(const std::vector<std::string> &names,
                   const std::string &suffix) {
  for (const std::string &name : names)
    if (name.ends_with(suffix))
      return name;
  return "";
}

} // namespace

std::string insteadOfWeights(const std::vector<std::string> &names) {
  if (std::string gguf = ending(names, ".gguf"); !gguf.empty())
    return "; it holds " + quoteName(gguf) + ": give that file itself";
  if (std::string onnx = ending(names, ".onnx"); !onnx.empty())
    return "; it holds " + quoteName(onnx) + ": give that file itself";
  for (const char *suffix :
       {".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack"}) {
    std::string weights;
    for (const std::string &name : names)
      if (name.ends_with(suffix) && name != "training_args.bin")
        weights = weights.empty() ? name : weights;
    if (!weights.empty())
      return "; weights in " + quoteName(weights) +
             " are not read: safetensors are written by "
             "AutoModelForCausalLM.from_pretrained(OLD).save_pretrained(NEW) "
             "of transformers";
  }
  return "";
}

std::string insteadOfConfig(const std::vector<std::string> &names) {
  if (holds(names, "adapter_config.json"))
    return "; it holds \"adapter_config.json\", an adapter: give the folder of "
           "the model that it is for, and this one to --lora";
  if (std::string gguf = ending(names, ".gguf"); !gguf.empty())
    return "; it holds " + quoteName(gguf) + ": give that file itself";
  if (std::string onnx = ending(names, ".onnx"); !onnx.empty())
    return "; it holds " + quoteName(onnx) + ": give that file itself";
  if (holds(names, "params.json"))
    return "; it holds \"params.json\", a checkpoint of another form than "
           "Hugging Face's";
  return "";
}

std::string insteadOfTokenizer(const std::vector<std::string> &names) {
  for (const char *name :
       {"vocab.json", "merges.txt", "vocab.txt", "tekken.json", "spiece.model",
        "sentencepiece.bpe.model", "sentencepiece.model", "vocab.model"})
    if (holds(names, name))
      return quoteName(name);
  if (std::string tiktoken = ending(names, ".tiktoken"); !tiktoken.empty())
    return quoteName(tiktoken);
  return "";
}

std::string missingShards(const std::vector<std::string> &names) {
  const std::string suffix = ".safetensors", middle = "-of-";
  const std::size_t tail = 14; // 00001-of-00003
  auto isNumber = [](const std::string &text) {
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return c >= '0' && c <= '9'; });
  };
  std::string missing;
  std::size_t numMissing = 0;
  std::set<std::string> seen;
  for (const std::string &name : names) {
    if (!name.ends_with(suffix) || name.size() < suffix.size() + tail)
      continue;
    std::string stem = name.substr(0, name.size() - suffix.size());
    std::string base = stem.substr(0, stem.size() - tail);
    std::string count = stem.substr(stem.size() - 5);
    if (stem.substr(stem.size() - 9, 4) != middle || !isNumber(count) ||
        !isNumber(stem.substr(base.size(), 5)) ||
        !seen.insert(base + count).second)
      continue;
    for (int i = 1; i <= std::stoi(count); ++i) {
      std::string number = std::to_string(i);
      std::string shard = base + std::string(5 - number.size(), '0') + number +
                          middle + count + suffix;
      if (holds(names, shard))
        continue;
      if (++numMissing <= 8)
        missing += (missing.empty() ? "" : ", ") + quoteName(shard);
    }
  }
  if (numMissing > 8)
    missing += " and " + std::to_string(numMissing - 8) + " more";
  return missing;
}

} // namespace ingot
