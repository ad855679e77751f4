#include "passes/lower/WeightLayout.h"

#include "compiler/package/MmaLayout.h"
#include "compiler/stored/WeightConversion.h"
#include "dialects/StoredDetailsAttr.h"

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

// The verifier of the part has read its details.
static StoredDetails detailsOf(PartAttr part) {
  Result<StoredDetails> details = readStoredDetails(part.getDetails());
  return details ? *details : StoredDetails();
}

std::string describeStored(PartAttr part) {
  return ingot::describeStored(storedForm(part.getStored()), detailsOf(part));
}

bool isMovedExactly(WeightOp weight) {
  return !weight.getParts() ||
         llvm::all_of(
             weight.getParts()->getAsRange<PartAttr>(), [&](PartAttr part) {
               return conversionTo(packedEncoding(weight.getEncoding()),
                                   storedForm(part.getStored()),
                                   detailsOf(part)) == WeightConversion::Exact;
             });
}

Result<PlacementAttr> placementOf(WeightOp weight, uint64_t offset) {
  mlir::MLIRContext *context = weight.getContext();
  if (weight.getLayout() == Layout::Row)
    return PlacementAttr::get(context, offset, weight.getNumElements() * 4, 0,
                              0);
  bool isMma = weight.getLayout() == Layout::MMA16;
  INGOT_ASSIGN_OR_RETURN(package::PackedLayout layout,
                         (isMma ? package::mmaLayout : package::packedLayout)(
                             packedEncoding(weight.getEncoding()),
                             weight.getRows(), weight.getColumns()));
  return PlacementAttr::get(context, offset, layout.size, layout.scalesOffset,
                            layout.minsOffset);
}

} // namespace ingot::plan
