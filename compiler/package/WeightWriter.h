// Packs the weights of a plan module into a file. Work is cut into runs of
// tiles that any thread may take in any order; the bytes do not depend on it.
#pragma once

#include "compiler/package/ArtifactWriter.h"
#include "compiler/package/OutputFile.h"
#include "dialects/plan/Plan.h"
#include "runtime/support/MappedFile.h"

#include <map>
#include <string>

namespace ingot::package {

// The sources of a module, mapped; each is what it was at import.
class WeightSources {
public:
  // `hashed` off: contents are taken on trust, for looking only.
  static Result<WeightSources> open(mlir::ModuleOp module,
                                    const std::string &sourceFolder,
                                    bool hashed = true);
  std::span<const uint8_t> bytes(llvm::StringRef symbol) const;
  const std::vector<InputFile> &inputs() const { return inputs_; }
  // Whether `path` names one of the mapped files.
  bool contains(const std::string &path) const;

private:
  std::map<std::string, MappedFile> files_;
  std::vector<InputFile> inputs_;
};

// The conversions of a module, by stored form and encoding, errors unknown.
std::vector<Conversion> plannedConversions(mlir::ModuleOp module);

// How long the packing of all weights will take, from packing a tile of one
// weight of each kind. The sources' hashes are not compared.
Result<double> estimateWriteSeconds(mlir::ModuleOp module,
                                    const std::string &sourceFolder,
                                    unsigned threads);

// Writes all weights from `segmentOffset` of `file` on; adds warnings and to the
// errors of the module's planned conversions.
Status writeWeights(mlir::ModuleOp module, const WeightSources &sources,
                    const OutputFile &file, uint64_t segmentOffset,
                    const WriteOptions &options,
                    std::vector<std::string> &warnings,
                    std::vector<Conversion> &conversions);

} // namespace ingot::package
