#include "compiler/stored/WeightConversion.h"

#include "compiler/stored/StoredRows.h"

namespace ingot {
namespace {

KeptCodes keptOf(StoredForm form, const StoredDetails &details) {
  if (form != StoredForm::Codes)
    return keptCodes(form);
  return details.codes ? keptCodes(*details.codes) : KeptCodes();
}

} // namespace

WeightEncoding nativeEncoding(StoredForm form, const StoredDetails &details) {
  if (KeptCodes kept = keptOf(form, details); kept.group != 0)
    return {kept.int8 ? WeightCode::I8 : WeightCode::I4, kept.group,
            kept.minimum};
  switch (form) {
  case StoredForm::F16:
  case StoredForm::F8E4M3:
  case StoredForm::F8E5M2:
    return {WeightCode::F16, 0, false};
  case StoredForm::BF16:
    return {WeightCode::BF16, 0, false};
  case StoredForm::Q5_1:
  case StoredForm::Q5_K:
  case StoredForm::Q6_K:
    return {WeightCode::I8, 32, false};
  case StoredForm::Codes:
    if (details.codes && isFloatPacking(details.codes->packing))
      return {WeightCode::F16, 0, false};
    return {WeightCode::I8, 32, false};
  default:
    return {WeightCode::F32, 0, false};
  }
}

WeightConversion conversionTo(const WeightEncoding &encoding, StoredForm form,
                              const StoredDetails &details) {
  if (!details.adapters.empty())
    return WeightConversion::Round;
  const bool integer =
      encoding.code == WeightCode::I8 || encoding.code == WeightCode::I4;
  if (integer) {
    KeptCodes kept = keptOf(form, details);
    if (kept.group == 0 || encoding.group == 0 ||
        kept.int8 != (encoding.code == WeightCode::I8) ||
        kept.minimum != encoding.minimum || kept.group % encoding.group != 0)
      return WeightConversion::Round;
    return kept.exact ? WeightConversion::Exact : WeightConversion::KeepCodes;
  }
  if (form == StoredForm::Codes || form == StoredForm::F64 ||
      nativeEncoding(form, details) != encoding)
    return WeightConversion::Round;
  return WeightConversion::Exact;
}

std::string describeStored(StoredForm form, const StoredDetails &details) {
  std::string text = storedFormName(form);
  if (details.codes) {
    const StoredCodes &codes = *details.codes;
    text = codePackingName(codes.packing);
    if (!isFloatPacking(codes.packing))
      text += " " + std::to_string(codes.bits) + "-bit";
    if (codes.zeros)
      text += " with zero points";
    if (codes.index)
      text += " by index";
  }
  return details.adapters.empty() ? text : text + "+lora";
}

} // namespace ingot
