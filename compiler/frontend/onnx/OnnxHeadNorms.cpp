// Norms of q and k: of heads that share their weights or have their own, or of rows.
// Own weights are a matrix with a row a head, by which a norm without weights is
// multiplied, or a norm for each head, whose results are concatenated.
#include "compiler/frontend/onnx/OnnxLayerReader.h"

#include "compiler/frontend/onnx/OnnxMovement.h"

using namespace mlir;

namespace ingot {

bool LayerReader::takeOwnNorms(Value &value, std::vector<std::int64_t> &place,
                               std::int64_t heads, Stream &stream) {
  const std::int64_t size = layer_.headDim, all = std::int64_t(place.size());
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getRank() != 4 || type.getDimSize(3) != size)
    return false;
  auto headOf = [&](std::int64_t i) { return i / size % heads; };
  if (auto product = value.getDefiningOp<onnx::MulOp>()) {
    for (auto [weights, other] : {std::pair(product.getA(), product.getB()),
                                  std::pair(product.getB(), product.getA())}) {
      auto matrix = constant(weights);
      auto found = norm(other, true);
      if (!matrix || !found ||
          matrix->shape != std::vector<std::int64_t>{heads, size} ||
          cast<ShapedType>(found->input.getType()).getShape() !=
              type.getShape())
        continue;
      // The heads are the dimension before the last, which has their weights.
      for (std::int64_t i = 0; i < all; ++i)
        if (place[i] % size != i % size ||
            place[i] / size != place[i - i % size] / size ||
            place[i] / size % heads != headOf(i))
          return false;
      matrix->shape = {heads * size};
      stream.ownWeights = {*matrix};
      stream.norm = found;
      value = found->input;
      return true;
    }
    return false;
  }
  auto concat = value.getDefiningOp<onnx::ConcatOp>();
  if (!concat || std::int64_t(concat->getNumOperands()) != heads)
    return false;
  const std::int64_t given =
      concat->getAttrOfType<IntegerAttr>("axis").getInt();
  const std::int64_t axis = given < 0 ? given + 4 : given;
  std::vector<Norm> norms;
  std::vector<Movement> inputs;
  for (Value part : concat->getOperands()) {
    auto found = norm(part);
    if (!found || axis == 3 ||
        cast<ShapedType>(part.getType()).getDimSize(axis) * heads !=
            type.getDimSize(axis))
      return false;
    norms.push_back(*found);
    inputs.push_back(traceMovement(found->input));
    const Norm &first = norms.front();
    if (found->kind != first.kind || found->eps != first.eps ||
        found->offset != first.offset || found->bias ||
        found->weight.shape != std::vector<std::int64_t>{size} ||
        inputs.back().source != inputs.front().source)
      return false;
  }
  // Of the elements from `axis` on, each part has so many in a run.
  std::int64_t run = type.getDimSize(axis) / heads;
  for (std::int64_t i = axis + 1; i < 4; ++i)
    run *= type.getDimSize(i);
  std::vector<std::int64_t> before(place);
  for (std::int64_t i = 0; i < all; ++i) {
    const std::int64_t part = place[i] / run % heads,
                       element =
                           place[i] / (run * heads) * run + place[i] % run;
    if (part != headOf(i) || place[i] % size != i % size ||
        place[i] / size != place[i - i % size] / size)
      return false;
    before[i] = inputs[part].from[element];
  }
  for (const Norm &one : norms)
    stream.ownWeights.push_back(one.weight);
  stream.norm = norms.front();
  value = inputs.front().source;
  place = std::move(before);
  return true;
}

Status LayerReader::readHeadNorms(Stream (&streams)[3]) {
  const std::int64_t heads[] = {layer_.heads, layer_.kvHeads};
  const char *roles[] = {"q_norm", "k_norm"};
  for (unsigned i : {0u, 1u}) {
    Stream &stream = streams[i], &other = streams[1 - i];
    const Norm &one = *stream.norm;
    if (one.kind != spec_.norm || one.eps != spec_.normEps ||
        one.offset != spec_.normOffset || one.bias)
      return Status::unsupported(
          "norms of q and k that are not of the model's kind, epsilon and "
          "number added to the weights, without bias");
    // One head's own weights are those of all.
    if (stream.ownWeights.empty() && !other.ownWeights.empty() &&
        heads[i] == 1 && !stream.normsRow)
      stream.ownWeights = {one.weight};
    if (stream.normsRow != other.normsRow ||
        (i == 1 && stream.ownWeights.empty() != other.ownWeights.empty()))
      return Status::unsupported("q and k are not prepared alike");
  }
  layer_.qkNorm = streams[0].normsRow              ? QkNorm::Row
                  : !streams[0].ownWeights.empty() ? QkNorm::OwnHead
                                                   : QkNorm::Head;
  for (unsigned i : {0u, 1u}) {
    const std::vector<TensorSource> &own = streams[i].ownWeights;
    if (own.empty())
      put(roles[i], streams[i].norm->weight);
    else if (own.size() == 1 && own[0].shape[0] == heads[i] * layer_.headDim &&
             heads[i] > 1)
      put(roles[i], own[0]);
    else
      for (std::size_t e = 0; e < own.size(); ++e)
        put(std::string(roles[i]) + "." + std::to_string(e), own[e]);
  }
  return Status::ok();
}

} // namespace ingot
