// From softmax(...) v backwards: probabilities, mask, soft cap, scale, q k^T; then
// keys and values through the repetition of heads to the past they are joined
// to. Every step must be the one expected, or the attention is left alone.
#include "passes/raise/Match.h"

#include "dialects/onnx/ShapeValues.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cmath>

using namespace mlir;

namespace ingot::raise {
namespace {

struct Found {
  Value query, keyTransposed, mask;
  bool isBoolMask = false;
  double scale = 1, softcap = 0;
};

RankedTensorType typeOf(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

std::int64_t axisOf(Operation *op) {
  return op->getAttrOfType<IntegerAttr>("axis").getInt();
}

// A number that stands for minus infinity in a mask.
bool isMinusInfinity(Value value) {
  auto one = number(value);
  return one && *one <= -1e4;
}

// What is said where a pattern has begun.
class Matcher {
public:
  Matcher(onnx::MatMulOp op, const Explain &explain)
      : op_(op), explain_(explain) {}

  std::optional<Found> match();
  // The keys or values that heads were repeated from.
  Value unrepeated(Value value, std::int64_t heads);

  void leave(const std::string &why) {
    if (explain_)
      explain_("fuse-attention: left alone " + onnx::describe(op_) + ": " +
               why);
  }

private:
  onnx::MatMulOp op_;
  const Explain &explain_;
};

std::optional<Found> Matcher::match() {
  Found found;
  Value value = throughCasts(op_.getA());
  // Rows of NaN, of queries that see nothing, are made zero by some exports.
  if (auto guard = value.getDefiningOp<onnx::WhereOp>())
    if (auto test = guard.getCondition().getDefiningOp<onnx::IsNaNOp>();
        test && throughCasts(test.getX()) == throughCasts(guard.getY()) &&
        number(guard.getX()) == 0.0)
      value = throughCasts(guard.getY());
  auto softmax = value.getDefiningOp<onnx::SoftmaxOp>();
  if (!softmax)
    return std::nullopt;
  auto type = typeOf(value);
  if (!type || type.getRank() != 4 ||
      (axisOf(softmax) != -1 && axisOf(softmax) != 3)) {
    leave("its softmax is not along the keys of four dimensions");
    return std::nullopt;
  }
  value = throughCasts(softmax.getInput());

  // The mask: added to the scores, or chosen by.
  auto isScores = [](Value candidate) {
    candidate = throughCasts(candidate);
    for (int depth = 0; depth < 8; ++depth) {
      if (candidate.getDefiningOp<onnx::MatMulOp>())
        return true;
      if (auto by = scaled(candidate)) {
        candidate = throughCasts(by->other);
        continue;
      }
      auto tanh = candidate.getDefiningOp<onnx::TanhOp>();
      if (!tanh)
        return false;
      candidate = throughCasts(tanh.getInput());
    }
    return false;
  };
  if (auto sum = value.getDefiningOp<onnx::AddOp>()) {
    const bool first = isScores(sum.getA()), second = isScores(sum.getB());
    if (first == second) {
      leave("which side of " + onnx::describe(sum) + " is the mask?");
      return std::nullopt;
    }
    found.mask = first ? sum.getB() : sum.getA();
    value = throughCasts(first ? sum.getA() : sum.getB());
  } else if (auto chosen = value.getDefiningOp<onnx::WhereOp>()) {
    if (!isScores(chosen.getX()) || !isMinusInfinity(chosen.getY())) {
      leave(onnx::describe(chosen) + " does not keep scores or drop them");
      return std::nullopt;
    }
    found.mask = chosen.getCondition();
    found.isBoolMask = true;
    value = throughCasts(chosen.getX());
  }
  // cap * tanh(scores / cap)
  if (auto outer = scaled(value))
    if (auto tanh = as<onnx::TanhOp>(outer->other)) {
      auto inner = scaled(tanh.getInput());
      if (!inner || std::abs(inner->number * outer->number - 1) > 1e-6) {
        leave("its scores are capped by one number and scaled by another");
        return std::nullopt;
      }
      found.softcap = std::abs(outer->number); // tanh is odd
      value = throughCasts(inner->other);
    }
  while (auto by = scaled(value)) {
    found.scale *= by->number;
    value = throughCasts(by->other);
  }
  auto product = value.getDefiningOp<onnx::MatMulOp>();
  if (!product) {
    leave("its scores are no product of queries and keys");
    return std::nullopt;
  }
  found.query = throughCasts(product.getA());
  found.keyTransposed = throughCasts(product.getB());
  while (auto by = scaled(found.query)) {
    found.scale *= by->number;
    found.query = throughCasts(by->other);
  }
  while (auto by = scaled(found.keyTransposed)) {
    found.scale *= by->number;
    found.keyTransposed = throughCasts(by->other);
  }
  return found;
}

// [b, h, s, d] from [b, h / n, s, d]: a dimension is put in, stretched and
// joined to the heads.
Value Matcher::unrepeated(Value value, std::int64_t heads) {
  auto joined = throughCasts(value).getDefiningOp<onnx::ReshapeOp>();
  if (!joined)
    return value;
  auto stretched = as<onnx::ExpandOp>(joined.getData());
  if (!stretched)
    return value;
  Value from = throughCasts(stretched.getInput());
  auto wide = typeOf(stretched.getResult()), narrow = typeOf(from),
       flat = typeOf(joined.getResult());
  if (!wide || !narrow || !flat || wide.getRank() != 5 ||
      narrow.getRank() != 5 || narrow.getDimSize(2) != 1 ||
      flat.getRank() != 4 || flat.getDimSize(1) != heads ||
      wide.getShape().drop_front(3) != narrow.getShape().drop_front(3) ||
      wide.getShape().take_front(2) != narrow.getShape().take_front(2) ||
      flat.getShape().drop_front(2) != wide.getShape().drop_front(3))
    return value;
  Operation *before = from.getDefiningOp();
  if (!before || !isa<onnx::UnsqueezeOp, onnx::ReshapeOp>(before))
    return value;
  auto own = typeOf(before->getOperand(0));
  if (!own || own.getRank() != 4 ||
      own.getShape() !=
          ArrayRef<std::int64_t>{narrow.getDimSize(0), narrow.getDimSize(1),
                                 narrow.getDimSize(3), narrow.getDimSize(4)})
    return value;
  return throughCasts(before->getOperand(0));
}

// past and new of their concatenation along the positions.
onnx::ConcatOp joinedPast(Value value) {
  auto concat = as<onnx::ConcatOp>(value);
  auto type = concat ? typeOf(concat.getResult()) : RankedTensorType();
  if (!type || concat->getNumOperands() != 2 || type.getRank() != 4 ||
      (axisOf(concat) != 2 && axisOf(concat) != -2))
    return {};
  return concat;
}

bool transposesLast(Value value, Value &from) {
  auto transpose = as<onnx::TransposeOp>(value);
  if (!transpose)
    return false;
  auto perm = transpose.getPerm();
  from = throughCasts(transpose.getData());
  return perm && *perm == ArrayRef<std::int64_t>{0, 1, 3, 2};
}

} // namespace

unsigned fuseAttention(ModuleOp module, const Explain &explain) {
  unsigned count = rewriteEach<onnx::MatMulOp>(
      module, [&](onnx::MatMulOp op, onnx::OpMaker &maker) -> Value {
        Matcher matcher(op, explain);
        std::optional<Found> found = matcher.match();
        if (!found)
          return {};
        auto query = typeOf(found->query), result = typeOf(op.getResult());
        if (!query || query.getRank() != 4 || !query.hasStaticShape() ||
            !result || !result.hasStaticShape()) {
          matcher.leave("its queries have no four known dimensions");
          return {};
        }
        const std::int64_t heads = query.getDimSize(1);
        Value keys, values = throughCasts(op.getB());
        if (!transposesLast(found->keyTransposed, keys)) {
          // Transposed before the heads were repeated: another order.
          matcher.leave("its keys are not transposed in their last two "
                        "dimensions");
          return {};
        }
        keys = matcher.unrepeated(keys, heads);
        values = matcher.unrepeated(values, heads);
        auto keyType = typeOf(keys), valueType = typeOf(values);
        if (!keyType || !valueType || keyType.getRank() != 4 ||
            valueType.getRank() != 4 ||
            keyType.getDimSize(1) != valueType.getDimSize(1) ||
            heads % keyType.getDimSize(1) != 0) {
          matcher.leave("its keys and values have different heads");
          return {};
        }
        Type element = result.getElementType();
        onnx::ConcatOp pastKeys = joinedPast(keys),
                       pastValues = joinedPast(values);
        const bool hasPast = pastKeys && pastValues;
        Value none = maker.none();
        SmallVector<Value> inputs{castTo(maker, found->query, element)};
        auto add = [&](Value value) {
          inputs.push_back(castTo(maker, throughCasts(value), element));
        };
        add(hasPast ? pastKeys->getOperand(1) : keys);
        add(hasPast ? pastValues->getOperand(1) : values);
        if (!found->mask)
          inputs.push_back(none);
        else if (found->isBoolMask)
          inputs.push_back(found->mask);
        else
          inputs.push_back(castTo(maker, found->mask, element));
        if (hasPast) {
          add(pastKeys->getOperand(0));
          add(pastValues->getOperand(0));
        }
        auto f32 = [&](StringRef name, double value) {
          return maker.builder.getNamedAttr(
              name, maker.builder.getF32FloatAttr(value));
        };
        FailureOr<Operation *> attention = maker.make(
            "Attention", inputs,
            {f32("scale", found->scale), f32("softcap", found->softcap)});
        if (failed(attention) ||
            (*attention)->getResult(0).getType() != op.getType()) {
          matcher.leave("its shapes are not those of an attention");
          return {};
        }
        (*attention)->getResult(3).setType(maker.builder.getNoneType());
        for (auto [i, concat] :
             {std::pair(1u, pastKeys), std::pair(2u, pastValues)}) {
          Value present = (*attention)->getResult(i);
          if (!hasPast || concat.getType() != present.getType()) {
            present.setType(maker.builder.getNoneType());
            continue;
          }
          // Before the attention too, if it is used there, it stays.
          concat.getResult().replaceUsesWithIf(present, [&](OpOperand &use) {
            Operation *user = use.getOwner();
            return (*attention)->getBlock() == user->getBlock() &&
                   (*attention)->isBeforeInBlock(user) &&
                   isa<func::ReturnOp>(user);
          });
        }
        if (explain)
          explain("fuse-attention: Attention of " + std::to_string(heads) +
                  " heads over " + std::to_string(keyType.getDimSize(1)) +
                  (hasPast ? " with a past" : "") + " from " +
                  onnx::describe(op));
        return (*attention)->getResult(0);
      });
  eraseUnused(module);
  return count;
}

} // namespace ingot::raise
