// Whether a model will compile, told before any long work: it is imported and
// taken through every phase with its weights unread, its tokenizer is built, and
// a few tiles of its weights are packed to learn how long all of them will take.
#pragma once

#include "compiler/driver/CompileModel.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ingot {

struct CheckReport {
  std::string modelPath;
  Status status;                        // of the whole; ok: it will compile
  std::vector<std::string> diagnostics; // of the compiler, where it fails

  // What follows is filled where the model compiles.
  std::string name, family;
  std::string embedding; // what an encoder gives; empty: it generates
  std::uint64_t parameters = 0, context = 0, sourceBytes = 0;
  struct Target {
    std::string name;
    std::vector<std::string> levels;
  };
  std::vector<Target> targets;
  struct Encoding {
    std::uint64_t tensors = 0, bytes = 0;
  };
  std::map<std::string, Encoding> encodings; // of the matrices
  std::vector<package::Conversion> conversions;
  std::uint64_t weightsBytes = 0;  // mapped from the artifact
  std::uint64_t artifactBytes = 0; // about: code is estimated
  // Of the target that takes most: a server runs one.
  std::uint64_t tokenArenaBytes = 0, logitRowArenaBytes = 0;
  std::uint64_t kvBytesPerToken = 0;
  std::string kvElements;               // of keys and values
  std::uint64_t compileMemoryBytes = 0; // about, beside mapped files
  double secondsRead = 0.0, secondsCode = 0.0, secondsWrite = 0.0; // estimates
  std::vector<std::string> notes;

  double seconds() const { return secondsRead + secondsCode + secondsWrite; }
};

// `request` as for compileModel; its output path is left out of account.
CheckReport checkModel(mlir::MLIRContext &context, CompileRequest request);

std::string checkTable(const CheckReport &report);
std::string checkJson(const CheckReport &report);

} // namespace ingot
