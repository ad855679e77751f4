// The reader of a decoder's layers: state and parts of OnnxLayers.cpp (blocks of the
// residual stream) and OnnxAttention.cpp (one attention).
#pragma once

#include "compiler/frontend/StrictJson.h"
#include "compiler/frontend/onnx/OnnxLayers.h"
#include "compiler/frontend/onnx/OnnxParts.h"
#include "compiler/frontend/onnx/OnnxProbe.h"
#include "dialects/onnx/OnnxOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <functional>
#include <map>

namespace ingot {

// One of q, k, v on its way to the attention.
struct Stream {
  Linear linear;
  std::optional<Norm> norm; // of each head, or of all
  bool normsRow = false;    // of all
  // Weights of norms of each head's own: a tensor each, or one of all.
  std::vector<TensorSource> ownWeights;
  // For each position, head and element of a head: its element of `product`.
  std::vector<std::int64_t> place;
  mlir::Value product;
  mlir::Operation *rotation = nullptr;
};

// Heads [first, first + count) of the `all` that lie in a tensor: [batch, heads,
// positions, size], or [batch, positions, heads * size].
struct HeadsOf {
  mlir::Value value;
  std::int64_t first = 0, count = 0, all = 0;
};

class LayerReader : private PartReader {
public:
  LayerReader(mlir::ModuleOp module, OnnxFile &file,
              const std::vector<ProbeInput> &inputs, const ProbeSizes &sizes,
              const std::function<void(const std::string &)> &explain,
              const ModelSpec *before, ModelSpec &spec)
      : PartReader(file), values_(module, file),
        function_(*module.getOps<mlir::func::FuncOp>().begin()),
        inputs_(inputs), sizes_(sizes), explain_(explain), before_(before),
        spec_(spec) {}

  Status run();
  bool usesPositions() const { return usesPositions_; }

private:
  // What a backward step found instead of what it looked for.
  Status stop(mlir::Value at, const std::string &expected) {
    std::string found = "an input of the graph";
    if (mlir::Operation *op = at.getDefiningOp())
      found = onnx::describe(op);
    return Status::unsupported("expected " + expected + ", found " + found);
  }
  // All norms of a model are alike.
  Status sameAsLast(const Norm &norm) const {
    if (norm.kind == spec_.norm && norm.eps == spec_.normEps &&
        norm.offset == spec_.normOffset &&
        norm.bias.has_value() == spec_.normBias)
      return Status::ok();
    return Status::unsupported(
        "norms of different kinds, epsilons or numbers added to their weights");
  }
  // A factor by which a value is multiplied, of which only the other side is left.
  double takeFactor(mlir::Value &value);
  // The norm of what a block adds, of which only what is normed is left.
  std::optional<Norm> takePostNorm(mlir::Value &update);
  Status readNormBefore(mlir::Value input, mlir::Value stream,
                        const std::string &role, bool &has);
  Status takeSoftCap(mlir::Value &logits);
  Status readHead(mlir::Value logits, mlir::Value &stream);
  Status readBlock(mlir::Value &stream);
  Status readFeedForward(mlir::Value update, mlir::Value stream, bool &is);
  Status readAttention(mlir::Value update, mlir::Value stream);
  Status noFeedForward(mlir::Value update);
  Status readSequential(mlir::Value &stream);
  Status readParallel(mlir::Value &stream, bool &is);
  Status readOperator(onnx::AttentionOp op, HeadsOf (&streams)[3]);
  Status readOperator(onnx::MultiHeadAttentionOp op, HeadsOf (&streams)[3]);
  Status readOperator(onnx::GroupQueryAttentionOp op, HeadsOf (&streams)[3]);
  bool meetsWholeHeads(mlir::Value value, llvm::ArrayRef<std::int64_t> place,
                       bool ofPositions) const;
  // Norms with weights of each head's own at `value`, of which what is normed is
  // left; whether there were any.
  bool takeOwnNorms(mlir::Value &value, std::vector<std::int64_t> &place,
                    std::int64_t heads, Stream &stream);
  void joinRepeatedHeads(Stream (&streams)[3]);
  Status readHeadNorms(Stream (&streams)[3]);
  Status readStream(const HeadsOf &from, const char *role, Stream &stream);
  bool isEmbedding(mlir::Value stream);
  Status readEmbedding(mlir::Value stream);
  Status readPositions(onnx::GatherOp gather);
  Status readRotation(mlir::Operation *op, RotarySpec &rotary);
  Status rotationOfTables(mlir::Value cosines, mlir::Value sines,
                          bool rowsAreSteps, std::int64_t half,
                          RotarySpec &rotary);
  Status readMask(mlir::Value mask, bool causal, std::int64_t &window);
  Status checkPast(mlir::Operation *attention, unsigned pastAt);
  void put(const std::string &role, TensorSource source) {
    pending_[role] = std::move(source);
  }

  ValueEvaluator values_;
  mlir::func::FuncOp function_;
  const std::vector<ProbeInput> &inputs_;
  const ProbeSizes &sizes_;
  const std::function<void(const std::string &)> &explain_;
  const ModelSpec *before_;
  ModelSpec &spec_;
  // Layers from the last to the first; parameters of the one being read.
  std::vector<LayerSpec> layers_;
  std::vector<std::map<std::string, TensorSource>> parameters_;
  std::map<std::string, TensorSource> pending_;
  LayerSpec layer_;
  mlir::Value attentionInput_, feedForwardInput_; // what their norms give
  std::map<std::pair<void *, void *>, RotarySpec> rotations_;
  std::vector<std::int64_t> pastLayers_;
  bool usesPositions_ = false;
  std::int64_t tableRows_ = 0; // positions that tables have, 0: any
};

} // namespace ingot
