// The weights of an lm module as its reference executor sees them: read from
// the source files, in logical row order, in their encoding. Loaded whole: an
// oracle for small models.
#pragma once

#include "compiler/stored/StoredRows.h"
#include "dialects/lm/LmOps.h"
#include "runtime/support/MappedFile.h"
#include "runtime/support/Status.h"

#include <map>
#include <span>
#include <string>
#include <vector>

namespace ingot {

// A weight in its encoding. Integer codes are signed values (code - offset), or
// raw codes where the encoding has minima; `values` always holds what the codes
// stand for.
struct LoadedWeight {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t group = 0;         // 0 for float encodings
  std::int64_t groups = 0;        // of a row
  std::vector<float> values;      // [rows, columns]
  std::vector<std::int8_t> codes; // [rows, columns] of integer encodings
  std::vector<float> scales;      // [rows, groups], float16 values
  std::vector<float> mins;        // [rows, groups], empty where symmetric
};

class LmSourceFiles {
public:
  // Maps every lm.source of the module: its path, or where that is hidden its
  // name in `folder`. A file of another size is refused.
  static Result<LmSourceFiles> open(mlir::ModuleOp module,
                                    const std::string &folder);

  Result<LoadedWeight> load(lm::WeightOp weight) const;

private:
  Result<StoredRows> open(lm::PartAttr part) const;

  std::map<std::string, MappedFile> files_; // by symbol
};

} // namespace ingot
