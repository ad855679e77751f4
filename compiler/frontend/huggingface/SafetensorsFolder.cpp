#include "compiler/frontend/huggingface/SafetensorsFolder.h"

#include "compiler/frontend/StrictJson.h"
#include "compiler/frontend/huggingface/FolderContents.h"

#include <set>

namespace ingot {
namespace {

constexpr const char *indexName = "model.safetensors.index.json";
constexpr std::uint64_t maxIndexBytes = 64 << 20;

bool isSafetensorsName(const std::string &name) {
  const std::string suffix = ".safetensors";
  return name.size() > suffix.size() &&
         name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
}

void appendItem(std::string &list, const std::string &item) {
  list += (list.empty() ? "" : ", ") + item;
}

} // namespace

Result<SafetensorsFolder> SafetensorsFolder::open(const ModelFolder &folder) {
  SafetensorsFolder result;
  if (folder.has(indexName))
    INGOT_RETURN_IF_ERROR(result.openIndexed(folder));
  else
    INGOT_RETURN_IF_ERROR(result.openPlain(folder));
  return result;
}

// 1. read the index, 2. open every shard it names, 3. look each name up in its
// own shard only, 4. count what the index leaves out.
Status SafetensorsFolder::openIndexed(const ModelFolder &folder) {
  std::string where = folder.path() + "/" + indexName;
  INGOT_ASSIGN_OR_RETURN(auto text, folder.readText(indexName, maxIndexBytes));
  INGOT_ASSIGN_OR_RETURN(auto json, parseStrictJson(text, where));
  if (!json.is_object())
    return Status::invalid(where + ": expected an object, found " +
                           jsonForMessage(json));
  // "metadata" holds total_size, which files in the wild often state wrongly;
  // the shards themselves are checked byte by byte instead.
  for (const auto &item : json.items())
    if (item.key() != "weight_map" && item.key() != "metadata")
      return Status::invalid(where + ": unknown key " + quoteName(item.key()));
  if (!json.contains("weight_map") || !json["weight_map"].is_object())
    return Status::invalid(where + ": expected an object \"weight_map\"");

  std::map<std::string, std::size_t> shards;
  for (const auto &item : json["weight_map"].items()) {
    if (!item.value().is_string())
      return Status::invalid(
          where + ": weight_map: tensor " + quoteName(item.key()) +
          ": expected a file name, found " + jsonForMessage(item.value()));
    std::string shard = item.value().get<std::string>();
    if (!isSafetensorsName(shard) || shard.find('/') != std::string::npos ||
        shard.find('\\') != std::string::npos ||
        shard.find('\0') != std::string::npos)
      return Status::invalid(where + ": weight_map: tensor " +
                             quoteName(item.key()) +
                             ": expected the plain name of a .safetensors "
                             "file, found " +
                             quoteName(shard));
    shards.emplace(shard, 0);
  }
  std::string missing;
  for (const auto &[shard, index] : shards)
    if (!folder.has(shard))
      appendItem(missing, quoteName(shard));
  if (!missing.empty())
    return Status::notFound(where + ": missing files: " + missing);

  for (auto &[shard, index] : shards) {
    INGOT_ASSIGN_OR_RETURN(auto path, folder.resolve(shard));
    INGOT_ASSIGN_OR_RETURN(auto file, SafetensorsFile::open(path));
    index = files_.size();
    files_.push_back(std::move(file));
    fileNames_.push_back(shard);
  }
  for (const auto &item : json["weight_map"].items()) {
    std::string shard = item.value().get<std::string>();
    std::size_t index = shards[shard];
    const SafetensorsTensor *tensor = files_[index].find(item.key());
    if (!tensor)
      appendItem(missing, quoteName(item.key()) + " in " + quoteName(shard));
    else
      tensors_[item.key()] = {index, tensor};
  }
  if (!missing.empty())
    return Status::invalid(where +
                           ": the files do not hold these tensors: " + missing);

  std::size_t unindexed = 0;
  for (std::size_t i = 0; i < files_.size(); ++i)
    for (const SafetensorsTensor &tensor : files_[i].tensors()) {
      auto found = tensors_.find(tensor.name);
      if (found == tensors_.end() || found->second.fileIndex != i)
        ++unindexed;
    }
  if (unindexed > 0)
    notes_.push_back(std::to_string(unindexed) +
                     " tensors in the shards are not those that " + indexName +
                     " names, and are left out");
  INGOT_ASSIGN_OR_RETURN(auto names, folder.list());
  std::string stray;
  for (const std::string &name : names)
    if (isSafetensorsName(name) && !shards.count(name))
      appendItem(stray, quoteName(name));
  if (!stray.empty())
    notes_.push_back(std::string("files that ") + indexName +
                     " does not name are left out: " + stray);
  return Status::ok();
}

Status SafetensorsFolder::openPlain(const ModelFolder &folder) {
  INGOT_ASSIGN_OR_RETURN(auto names, folder.list());
  if (std::string missing = missingShards(names); !missing.empty())
    return Status::notFound(folder.path() + ": missing files: " + missing);
  // Beside model.safetensors, what Mistral's own programs read is a copy.
  const std::string copy = "consolidated.safetensors";
  bool leavesCopy = folder.has("model.safetensors") && folder.has(copy);
  if (leavesCopy)
    notes_.push_back("file " + quoteName(copy) +
                     " beside model.safetensors is left out");
  for (const std::string &name : names) {
    if (!isSafetensorsName(name) || (leavesCopy && name == copy))
      continue;
    INGOT_ASSIGN_OR_RETURN(auto path, folder.resolve(name));
    INGOT_ASSIGN_OR_RETURN(auto file, SafetensorsFile::open(path));
    files_.push_back(std::move(file));
    fileNames_.push_back(name);
  }
  if (files_.empty())
    return Status::notFound(folder.path() +
                            ": holds no .safetensors file (expected "
                            "model.safetensors, or shards with " +
                            std::string(indexName) + ")" +
                            insteadOfWeights(names));
  std::string twice;
  for (std::size_t i = 0; i < files_.size(); ++i)
    for (const SafetensorsTensor &tensor : files_[i].tensors()) {
      auto [found, inserted] =
          tensors_.emplace(tensor.name, LocatedTensor{i, &tensor});
      if (!inserted)
        appendItem(twice, quoteName(tensor.name) + " in " +
                              quoteName(fileNames_[found->second.fileIndex]) +
                              " and " + quoteName(fileNames_[i]));
    }
  if (!twice.empty())
    return Status::invalid(
        folder.path() +
        ": no index says which file holds these tensors: " + twice);
  return Status::ok();
}

} // namespace ingot
