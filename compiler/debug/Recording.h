// What a run of a model went through: every intermediate under the name of the
// operator of the imported model that it is the result of ("layer.3.q"), with
// the launch or operator that wrote it. Made from an artifact, from an lm module
// or from a file of tensors; what compares and traces knows only this.
//
// Operators that were merged are recorded part by part; of operators that were
// fused, the result of the last. Around attention there are three more names:
// "layer.3.query", what it asks with, and "layer.3.keys" and "layer.3.values",
// what its cache holds.
#pragma once

#include "compiler/reference/LmMath.h"
#include "dialects/lm/Provenance.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ingot::debug {

// How the numbers of a tensor are kept where it is written.
enum class Storage { F32, Quantized, F16, I8Heads };

// A launch or an operator that wrote.
struct Producer {
  std::string name;     // "layer.3.qkv"
  std::string op;       // "linear"
  std::string kernel;   // of a launch; the latest that ran
  std::string settings; // "k = 64, n = 192, weight layer.3.qkv int8-g64"
  std::int32_t layer = -1;
  std::vector<lm::Origin> origins;
  // Of the weight that it reads; null code of none.
  std::optional<WeightEncoding> encoding;
  std::vector<std::size_t> inputs; // tensors of the recording, by index
};

struct RecordedTensor {
  std::string name;
  std::size_t producer = 0;
  // One row a position; of what experts work on, one a slot, in the order of the
  // slots. Codes where Quantized.
  LmRows rows;
  Storage storage = Storage::F32;
  std::int64_t headDim = 0; // of I8Heads
};

// The first number that is not finite.
struct NonFinite {
  std::string tensor;
  std::string launch;
  std::int32_t layer = -1;
  std::int64_t position = 0;
  std::int64_t column = 0;
  float value = 0;
};

// A slot of the cache that holds something else than was written.
struct ChangedSlot {
  std::string tensor; // "layer.3.keys"
  std::int64_t position = 0;
  std::int64_t readAt = 0; // the first position of the step that read it
};

struct Recording {
  std::string source;          // for people
  bool isProgram = true;       // false: tensors of a file, without dataflow
  bool roundsToNearest = true; // how its weights came to their encoding
  // AWQ: columns of weights were scaled up, what makes their inputs down.
  bool foldsScales = false;
  std::string codesHash; // of the file of calibrated codes; empty: it has none
  std::vector<Producer> producers;
  std::vector<RecordedTensor> tensors; // in the order of writing
  std::vector<ChangedSlot> changedSlots;
  std::optional<NonFinite> nonFinite;

  // The first tensor of a name; null: none.
  const RecordedTensor *find(llvm::StringRef name) const;
  const Producer &producerOf(const RecordedTensor &tensor) const {
    return producers[tensor.producer];
  }
};

struct RecordOptions {
  // Which tensors are kept; null: all. The watch sees all.
  std::function<bool(const std::string &name, std::int32_t layer)> keep;
  bool watchNonFinite = false;
};

// Adds rows to a recording: what its makers share.
class Recorder {
public:
  explicit Recorder(const RecordOptions &options) : options_(options) {}

  std::size_t addProducer(Producer producer);
  // Rows that continue a tensor of the same name and producer's name (the next
  // step of a sequence) are added to it. `firstPosition` is that of row 0.
  // Returns the tensor's index; none where it is not kept.
  std::optional<std::size_t> add(const std::string &name, std::size_t producer,
                                 LmRows rows, std::int64_t firstPosition,
                                 Storage storage = Storage::F32,
                                 std::int64_t headDim = 0);
  Recording take() { return std::move(recording_); }
  Recording &recording() { return recording_; }

private:
  void watch(const std::string &name, std::size_t producer, const LmRows &rows,
             std::int64_t firstPosition);

  RecordOptions options_;
  Recording recording_;
  std::map<std::string, std::size_t> producers_; // by name
  std::map<std::string, std::size_t> tensors_;   // by name, producer and form
};

// The numbers that quantised rows stand for; float32 rows as they are.
LmRows floatRows(const LmRows &rows);
LmRows rowOf(const LmRows &rows, std::int64_t row); // of float rows
// 8 or 16: what the codes of quantised rows have.
std::int64_t bitsOf(const LmRows &rows);
// Columns [first, first + columns).
LmRows columnsOf(const LmRows &rows, std::int64_t first, std::int64_t columns);
// Rows of experts, ordered as a step has them, in the order of their slots (token
// by token), and back; order[r] is the slot of row r. Steps order their own
// slots, so only the former can be told from one run to another.
LmRows inSlotOrder(const LmRows &rows, std::span<const std::int64_t> order);
LmRows inExpertOrder(const LmRows &rows, std::span<const std::int64_t> order);
// "layer.3" of "layer.3.attention"; empty where there is no dot.
std::string prefixOf(llvm::StringRef name);
// 3 of "layer.3.q", also behind the prefix of an exit; of the rest of an exit's
// head the layer that it stands behind; else -1.
std::int32_t layerOf(llvm::StringRef name);

} // namespace ingot::debug
