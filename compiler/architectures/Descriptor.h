// A family of models as data. A descriptor says which key of a config feeds
// which field, which keys may be ignored and why, what each tensor is called,
// and how the block varies. The importers hold no name of any family: a new one
// is a new JSON file. docs: compiler/architectures/README.md
#pragma once

#include "compiler/frontend/ModelSpec.h"
#include "runtime/support/Status.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

// What becomes of one key of a config or of GGUF metadata.
struct KeyRule {
  enum class Kind {
    Field,  // its value is the field `field`
    Ignore, // it may be left out of account; `why` says why
    Expect, // it must hold one of `expected`; `why` says what others mean
  };
  Kind kind = Kind::Field;
  std::string field;
  bool required = false;
  nlohmann::json defaultValue; // null: none
  nlohmann::json nullValue;    // stands for an explicit null; null: as absent
  nlohmann::json expected;     // array
  std::string why;
};

struct IgnoredTensor {
  std::string pattern; // may hold {i}
  std::string why;
};

// Rules for keys; one that ends in '*' holds for every key with that prefix
// and without a rule of its own.
using KeyRules = std::map<std::string, KeyRule>;

const KeyRule *findKeyRule(const KeyRules &rules, const std::string &key);

enum class BiasRule { Never, Always, AttentionBias, MlpBias };

enum class WindowRule {
  EveryLayer, // slidingWindow holds for all layers
  Qwen,       // gated by useSlidingWindow; layerTypes or maxWindowLayers choose
  Pattern,    // all but each windowPattern-th layer, or as layerTypes say
};

enum class RotaryLayers {
  All,
  Listed,  // noRopeLayers, or all but each noRopeInterval-th
  Sliding, // those with a window
};

// Scores that fall with distance, by a slope of each head.
enum class AlibiRule {
  None,
  Exact,   // slopes of powers of two, those between behind them
  Rounded, // the same slopes; slopes, positions and products in bfloat16
  Bias,    // slopes by field alibiBias, those between before them
};

// How the block of a family varies; what each means is in README.md.
struct BlockDescriptor {
  bool rotates = true;
  bool interleavedRotary = false;
  RotaryLayers rotaryLayers = RotaryLayers::All;
  bool learnedPositions = false;
  bool encoder = false; // looks both ways and gives vectors, not logits
  bool tokenTypes = false;
  bool embeddingNorm = false;
  NormKind norm = NormKind::Rms;
  bool normBias = false;
  double normOffset = 0.0;
  std::set<std::string> norms = {"attn", "ffn"};
  bool parallel = false;
  QkNorm qkNorm = QkNorm::None;
  bool gated = true;
  bool experts = false; // each gated
  WindowRule window = WindowRule::EveryLayer;
  std::int64_t windowPattern = 0; // 0: a field must say
  AlibiRule alibi = AlibiRule::None;
  std::int64_t noRopeInterval = 0;        // 0: a field must say
  std::int64_t kvHeads = 0;               // 0: a field says, or as heads
  std::int64_t ffnMultiple = 0;           // of the hidden size; 0: a field says
  bool scalesEmbedding = false;           // by the root of the hidden size
  std::string activation;                 // where no key states it
  double attentionScale = 0.0;            // 0: a field says, or by head size
  std::map<std::string, BiasRule> biases; // of q k v o gate up down
};

// How one kind of input spells the family.
struct RouteDescriptor {
  std::vector<std::string> names;         // model_type or general.architecture
  std::vector<std::string> architectures; // Hugging Face class names
  KeyRules keys;
  std::map<std::string, std::string> tensors; // role pattern to name pattern
  std::vector<IgnoredTensor> ignoredTensors;
  std::string optionalPrefix;       // of tensor names, absent from some files
  std::set<std::string> transposed; // roles whose matrices are [in, out]
  bool groupedQkv = false;       // rows of role qkv by key head, see README.md
  bool permutedRotary = false;   // q and k rows as RowPermutation says
  bool biasesByPresence = false; // no key tells, so the tensors do
  BlockDescriptor block;         // as this input has it
};

struct Descriptor {
  std::string family;
  std::string about;
  RouteDescriptor huggingFace; // names empty: no such input
  RouteDescriptor gguf;
  KeyRules generationConfig;

  // What differs where some fields have some values: JSON that replaces parts of
  // `source`. Every case alone has been parsed once.
  struct Case {
    std::map<std::string, nlohmann::json> when; // field, or "tensor.NAME"
    nlohmann::json patch;
  };
  std::vector<Case> cases;
  nlohmann::json source, shared;
  std::string name; // for messages
};

// The descriptor with the patches of all cases that hold, in order. `find` gives
// the value of a field, or null; a field that is not there counts as false.
// `tensors` are the names in the input.
using FindField = std::function<const nlohmann::json *(const std::string &)>;
Result<Descriptor> resolveCases(const Descriptor &descriptor,
                                const FindField &find,
                                const std::set<std::string> &tensors);

// `text` is the JSON of a descriptor and `shared` that of the rules that hold
// for every family. Refuses keys, fields and roles that no importer knows.
Result<Descriptor> parseDescriptor(std::string_view text,
                                   std::string_view shared,
                                   const std::string &name);

// Shared, since those built into the program are parsed once in its life.
using DescriptorList = std::vector<std::shared_ptr<const Descriptor>>;

// The descriptors built into the program, and those of the user before them.
Result<DescriptorList>
loadDescriptors(const std::vector<std::string> &userPaths);

// The JSON files of this folder, as the build embedded them.
struct EmbeddedDescriptor {
  const char *name;
  std::string_view text;
};
const std::vector<EmbeddedDescriptor> &embeddedDescriptors();

// "blk.{i}.attn_q.weight" with its number put in, and that of an expert for {e}.
std::string expandPattern(const std::string &pattern, std::int64_t layer,
                          std::int64_t expert = 0);
// Whether `name` is `pattern` with some number for {i}.
bool matchesPattern(const std::string &pattern, const std::string &name);

} // namespace ingot
