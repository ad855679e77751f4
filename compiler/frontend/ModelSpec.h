// The effective model: what an importer learned from a Hugging Face folder or
// a GGUF file, with every default resolved and nothing left to guess. Plain
// values, no weights: a parameter says where its bytes lie, and what must be
// undone when they are read. The same model gives the same ModelSpec whichever
// way it came in; only `sources` and the TensorSources differ.
#pragma once

#include "compiler/stored/StoredDetails.h"
#include "compiler/stored/StoredForm.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ingot {

// How the elements of a weight are stored, in whichever file format.
using WeightDtype = StoredForm;

inline const char *weightDtypeName(WeightDtype dtype) {
  return storedFormName(dtype);
}
// Elements in one block along a row, and the bytes of one block.
inline std::uint64_t weightBlockElements(WeightDtype dtype) {
  return storedBlockElements(dtype);
}
inline std::uint64_t weightBlockBytes(WeightDtype dtype) {
  return storedBlockBytes(dtype);
}

// A reordering of the rows done by a converter, which the reader must undo.
enum class RowPermutation {
  None,
  // GGUF files of the llama architecture hold q and k for interleaved rotation.
  // In each head of D rows, stored row 2*i + s is logical row s*(D/2) + i.
  LlamaGgufRope,
};

// Where the bytes of one parameter lie. `shape` is [out, in] for a matrix
// ([vocab, hidden] for the embedding) and [n] for a vector; rows are contiguous.
struct TensorSource {
  std::string name;             // as the file spells it
  std::uint32_t fileIndex = 0;  // into ModelSpec::sources
  std::uint64_t byteOffset = 0; // from the start of that file
  std::uint64_t sizeBytes = 0;
  WeightDtype dtype = WeightDtype::F32;
  std::vector<std::int64_t> shape;
  RowPermutation permutation = RowPermutation::None;
  std::int64_t permutationHeads = 0; // heads of a permuted tensor, else 0
  // A part of a tensor that is fused with others: the bytes hold `storedRows`
  // rows (0: as `shape` says), and row r is stored row
  // first + r / run * stride + r % run.
  std::int64_t storedRows = 0;
  std::int64_t first = 0, run = 0, stride = 0;
  bool transposed = false; // the bytes are [in, stored rows]
  StoredDetails details;   // scales of codes, adapters

  bool operator==(const TensorSource &) const = default;
};

// The stored row that holds logical row `row` of `source`.
std::int64_t storedRow(const TensorSource &source, std::int64_t row);

enum class RotaryKind {
  Default,
  Linear,
  Llama3,
  Yarn,
  Dynamic,          // the base grows with the length beyond the original one
  LongRope,         // one of two lists of divisors, by length
  FrequencyFactors, // GGUF's rope_freqs.weight: a divisor for each frequency
};

// Which elements of a head form a pair: (i, i + dim/2) or (2i, 2i + 1).
enum class RotaryLayout { Half, Interleaved };

struct RotarySpec {
  RotaryKind kind = RotaryKind::Default;
  RotaryLayout layout = RotaryLayout::Half;
  std::int64_t dim = 0; // elements of a head that rotate: [0, dim)
  double theta = 10000.0;
  double factor = 1.0;                    // Linear, Llama3, Yarn, Dynamic
  double lowFreqFactor = 0.0;             // Llama3
  double highFreqFactor = 0.0;            // Llama3
  std::int64_t originalContextLength = 0; // Llama3, Yarn, Dynamic, LongRope
  double betaFast = 32.0, betaSlow = 1.0; // Yarn
  bool truncates = true;                  // Yarn
  std::vector<double> shortFactors, longFactors; // LongRope, [dim / 2]
  double attentionFactor = 1.0;                  // multiplies cos and sin
  // [dim / 2], scaling applied; LongRope: short, then long
  std::vector<float> invFreq;

  bool operator==(const RotarySpec &) const = default;
};

enum class Activation { Silu, Gelu, GeluTanh, Relu };

enum class NormKind { Rms, Layer };

// Norms of q and k before the rotation, of the model's kind and without bias.
enum class QkNorm {
  None,
  Head,    // of each head, all with the same weights
  OwnHead, // of each head, each with its own
  Row,     // of all heads together
};

const char *activationName(Activation activation);
const char *rotaryKindName(RotaryKind kind);

// Which projections carry a bias vector.
struct LayerBiases {
  bool q = false, k = false, v = false, o = false;
  bool gate = false, up = false, down = false;

  bool operator==(const LayerBiases &) const = default;
};

// How the rows of a text become its vector, and whether that has length 1.
enum class Pooling { Mean, Cls, Last };
struct EmbeddingSpec {
  Pooling pooling = Pooling::Mean;
  bool normalized = true;

  bool operator==(const EmbeddingSpec &) const = default;
};
const char *poolingName(Pooling pooling);

// Layers need not be alike: every size belongs to its layer.
struct LayerSpec {
  std::int64_t heads = 0;
  std::int64_t kvHeads = 0;
  std::int64_t headDim = 0;
  RotarySpec rotary;
  std::int64_t slidingWindow = 0; // keys a query sees, itself included; 0 = all
  QkNorm qkNorm = QkNorm::None;
  LayerBiases biases;
  std::int64_t ffnSize = 0;
  Activation activation = Activation::Silu;
  double softmaxScale = 0.0;
  double softCap = 0.0; // of the scores; 0 = none
  // Of ALiBi, one for each head; empty: none. Rounded: see lm.attention.
  std::vector<float> slopes;
  bool roundedSlopes = false;
  // x + attention(attnNorm(x)), then the same of the feed-forward; a post norm
  // is of what is added. Parallel: x + attention(..) + feed-forward(..), the
  // latter of ffnNorm(x), or of attnNorm(x) where there is no ffnNorm. A sum norm
  // is of the stream, once that has been added.
  bool attnNorm = true, attnPostNorm = false;
  bool ffnNorm = true, ffnPostNorm = false;
  bool attnSumNorm = false, ffnSumNorm = false;
  bool parallel = false;
  bool bidirectional = false; // each position sees the whole text
  bool gated = true;          // act(gate) * up; else act(up)
  // 0: one feed-forward. Else so many, of which the router takes the best for
  // each token; their sum is weighted by probabilities, of all experts or
  // (normalised) of those.
  std::int64_t experts = 0, expertsPerToken = 0;
  bool expertsNormalized = false;
  double residualScale = 1.0; // of what is added to the stream

  bool operator==(const LayerSpec &) const = default;
};

struct SourceFile {
  std::string path; // to open
  std::string name; // within the model folder
  std::uint64_t sizeBytes = 0;
};

struct TemplateSource {
  std::string name; // "default" for the one used when none is named
  std::string text;

  bool operator==(const TemplateSource &) const = default;
};

// What the model's authors recommend; absent where they say nothing.
struct DefaultSampling {
  std::optional<bool> doSample; // false: greedy whatever the others say
  std::optional<double> temperature;
  std::optional<double> topP;
  std::optional<std::int64_t> topK;
  std::optional<double> minP;
  std::optional<double> repetitionPenalty;

  bool operator==(const DefaultSampling &) const = default;
};

struct TokenizerLocation {
  enum class Kind { None, HuggingFaceJson, Gguf, SentencePiece };
  Kind kind = Kind::None;
  std::string path;       // tokenizer.json, tokenizer.model or the GGUF file
  std::string configPath; // tokenizer_config.json, or empty
};

// Parameters are keyed by role:
//   embed  final_norm  lm_head (absent when tiedHead)
//   positions (learned ones)  token_types (the vector of type 0)  embed_norm
//   layer.{i}.attn_norm .attn_post_norm .q .k .v .o .q_norm .k_norm
//   layer.{i}.ffn_norm .ffn_post_norm .gate .up .down
//   layer.{i}.attn_sum_norm .ffn_sum_norm
// with experts, in the place of the last three:
//   layer.{i}.router  layer.{i}.expert.{e}.gate .up .down
// and biases as layer.{i}.q.bias, final_norm.bias and so on. An encoder has
// neither final_norm nor lm_head.
struct ModelSpec {
  std::string family;       // the descriptor that read it
  std::string architecture; // as the input spells it
  std::int64_t vocabSize = 0;
  std::int64_t hiddenSize = 0;
  std::int64_t contextLength = 0;
  bool tiedHead = false;
  NormKind norm = NormKind::Rms; // of all norms
  bool normBias = false;         // of a layer norm
  double normOffset = 0.0;       // added to the weights of an RMS norm
  double normEps = 0.0;
  bool learnedPositions = false;
  std::int64_t firstPosition = 0; // row of the table that position 0 has
  bool tokenTypes = false;        // of which every token has the first
  bool embeddingNorm = false;
  std::optional<EmbeddingSpec> embedding; // of an encoder
  double embeddingScale = 1.0;
  double logitScale = 1.0;
  double logitSoftcap = 0.0; // 0 = none
  std::vector<LayerSpec> layers;

  std::vector<SourceFile> sources;
  std::map<std::string, TensorSource> parameters;

  std::vector<std::int64_t> eosIds; // ascending
  std::optional<std::int64_t> bosId;
  std::vector<TemplateSource> chatTemplates;
  DefaultSampling sampling;
  TokenizerLocation tokenizer;
  std::string licence; // text, or the identifier a GGUF names
  std::string modelCard;

  // What was left out by a rule, a line each, for the log.
  std::vector<std::string> notes;
};

// "layer.3.q"; the role within layer `layer`.
std::string layerRole(std::int64_t layer, const std::string &role);

} // namespace ingot
