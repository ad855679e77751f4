// The weights of a model folder as one set of names, whether they lie in one
// file, in several, or in shards that an index assigns. The index decides: a
// copy of a tensor that it does not name is left out and counted.
#pragma once

#include "compiler/frontend/huggingface/ModelFolder.h"
#include "compiler/frontend/huggingface/SafetensorsFile.h"

#include <map>
#include <string>
#include <vector>

namespace ingot {

struct LocatedTensor {
  std::size_t fileIndex = 0;
  const SafetensorsTensor *tensor = nullptr;
};

class SafetensorsFolder {
public:
  static Result<SafetensorsFolder> open(const ModelFolder &folder);

  const std::vector<SafetensorsFile> &files() const { return files_; }
  const std::vector<std::string> &fileNames() const { return fileNames_; }
  const std::map<std::string, LocatedTensor> &tensors() const {
    return tensors_;
  }
  const std::vector<std::string> &notes() const { return notes_; }

private:
  Status openIndexed(const ModelFolder &folder);
  Status openPlain(const ModelFolder &folder);

  std::vector<SafetensorsFile> files_;
  std::vector<std::string> fileNames_;
  std::map<std::string, LocatedTensor> tensors_;
  std::vector<std::string> notes_;
};

} // namespace ingot
