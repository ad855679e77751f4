#include "passes/lower/WeightLayout.h"

#include "llvm/Support/ErrorHandling.h"

namespace ingot::plan {

package::WeightEncoding packedEncoding(EncodingAttr encoding) {
  package::WeightEncoding packed;
  switch (encoding.getCode()) {
  case Code::F32:
    packed.code = package::WeightCode::F32;
    break;
  case Code::F16:
    packed.code = package::WeightCode::F16;
    break;
  case Code::BF16:
    packed.code = package::WeightCode::BF16;
    break;
  case Code::I8:
    packed.code = package::WeightCode::I8;
    break;
  case Code::I4:
    packed.code = package::WeightCode::I4;
    break;
  }
  packed.group = static_cast<uint32_t>(encoding.getGroup());
  packed.minimum = encoding.getMinimum();
  return packed;
}

package::StoredForm storedForm(Stored stored) {
  switch (stored) {
  case Stored::F32:
    return package::StoredForm::F32;
  case Stored::F16:
    return package::StoredForm::F16;
  case Stored::BF16:
    return package::StoredForm::BF16;
  case Stored::Q8_0:
    return package::StoredForm::Q8_0;
  case Stored::Q4_0:
    return package::StoredForm::Q4_0;
  case Stored::Q4_1:
    return package::StoredForm::Q4_1;
  }
  llvm_unreachable("all forms are listed");
}

Result<PlacementAttr> placementOf(WeightOp weight, uint64_t offset) {
  mlir::MLIRContext *context = weight.getContext();
  if (weight.getLayout() == Layout::Row)
    return PlacementAttr::get(context, offset, weight.getNumElements() * 4, 0,
                              0);
  INGOT_ASSIGN_OR_RETURN(
      package::PackedLayout layout,
      package::packedLayout(packedEncoding(weight.getEncoding()),
                            weight.getRows(), weight.getColumns()));
  return PlacementAttr::get(context, offset, layout.size, layout.scalesOffset,
                            layout.minsOffset);
}

} // namespace ingot::plan
