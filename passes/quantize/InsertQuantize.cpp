// --insert-quantize
//
// 1. For each linear operator, also of experts, of an integer encoding that reads
//    float32 rows:
// 2. take the quantize operator of that value, group and bits, or make one behind
//    the value's definition, named after it;
// 3. let the linear operator read its rows.
#include "passes/Passes.h"

#include "dialects/lm/LmOps.h"
#include "dialects/lm/Provenance.h"

#include "llvm/ADT/TypeSwitch.h"

namespace ingot {
#define GEN_PASS_DEF_INSERTQUANTIZEPASS
#include "passes/Passes.h.inc"
} // namespace ingot

using namespace mlir;
using namespace ingot;

namespace {

lm::QuantizeOp createQuantize(Value value, lm::EncodingAttr encoding) {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  llvm::StringRef producer = lm::locationName(value.getLoc());
  Location location =
      producer.empty()
          ? value.getLoc()
          : lm::derivedLocation(value.getContext(),
                                (producer + ".quantize").str(), value.getLoc());
  auto type =
      lm::QuantizedType::get(value.getContext(), lm::columnsOf(value.getType()),
                             encoding.getGroup(), encoding.getActivationBits());
  return builder.create<lm::QuantizeOp>(location, type, value);
}

struct InsertQuantize : ingot::impl::InsertQuantizePassBase<InsertQuantize> {
  void runOnOperation() override {
    llvm::DenseMap<std::tuple<Value, std::int64_t, std::int64_t>, Value>
        quantized;
    auto visit = [&](auto linear) {
      Value input = linear.getInput();
      lm::EncodingAttr encoding =
          lm::lookupWeight(linear, linear.getWeightAttr()).getEncoding();
      if (!encoding.isInteger() || isa<lm::QuantizedType>(input.getType()))
        return;
      Value &rows =
          quantized[{input, encoding.getGroup(), encoding.getActivationBits()}];
      if (!rows) {
        rows = createQuantize(input, encoding);
        ++numInserted;
      }
      linear.getInputMutable().assign(rows);
    };
    getOperation().walk([&](Operation *op) {
      llvm::TypeSwitch<Operation *>(op).Case<lm::LinearOp, lm::ExpertLinearOp>(
          visit);
    });
  }
};

} // namespace
