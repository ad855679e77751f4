#include "compiler/driver/CalibratedWeights.h"

#include "compiler/frontend/huggingface/SafetensorsFile.h"
#include "compiler/package/OutputFile.h"
#include "dialects/StoredDetailsAttr.h"
#include "dialects/lm/LmOps.h"
#include "passes/prune/LayerEdits.h"
#include "passes/quantize/Calibrated.h"
#include "passes/quantize/QuantizeSpec.h"

#include "mlir/IR/Builders.h"

#include <filesystem>

using namespace mlir;

namespace ingot {
namespace {

class Reader {
public:
  Reader(const SafetensorsFile &file, const std::string &path, ModuleOp module,
         const std::string &prefix, bool prunes)
      : file_(file), path_(path), module_(module), prefix_(prefix),
        prunes_(prunes), symbols_(module), builder_(module.getContext()) {}

  Status read() {
    auto format = file_.metadata().find("format");
    if (format == file_.metadata().end() || format->second != kCalibratedFormat)
      return Status::invalid("expected the format \"" +
                             std::string(kCalibratedFormat) + "\", found " +
                             (format == file_.metadata().end()
                                  ? "none"
                                  : "\"" + format->second + "\""));
    addSource();
    for (const auto &[name, spec] : file_.metadata())
      if (name != "format" && name != "pass" && name.rfind(prefix_, 0) == 0)
        INGOT_RETURN_IF_ERROR(add(name, spec));
    if (prefix_.empty() && numUsed_ != file_.tensors().size())
      return Status::invalid("holds " + std::to_string(file_.tensors().size()) +
                             " tensors, of which " + std::to_string(numUsed_) +
                             " are told of");
    return Status::ok();
  }

private:
  void addSource() {
    std::string name = std::filesystem::path(path_).filename().string();
    // The bytes are mapped: hashing reads them once, as for every source.
    std::string hash = package::xxh3Text(file_.bytes());
    builder_.setInsertionPointToStart(module_.getBody());
    for (lm::SourceOp source : module_.getOps<lm::SourceOp>())
      builder_.setInsertionPointAfter(source);
    source_ = builder_.create<lm::SourceOp>(
        lm::nameLocation(builder_.getContext(), name),
        builder_.getStringAttr(prunes_ ? "pruned" : "calibrated"),
        builder_.getStringAttr(name), builder_.getStringAttr(path_),
        builder_.getI64IntegerAttr(std::int64_t(file_.sizeBytes())),
        builder_.getStringAttr(hash));
    symbols_.insert(source_);
  }

  Result<const SafetensorsTensor *> tensor(const std::string &name,
                                           SafetensorsDtype dtype,
                                           std::vector<std::uint64_t> shape) {
    const SafetensorsTensor *found = file_.find(name);
    if (!found)
      return Status::invalid("there is no tensor \"" + name + "\"");
    if (found->dtype != dtype || found->shape != shape)
      return Status::invalid("tensor \"" + name +
                             "\" does not have the type and shape that its "
                             "weight asks for");
    ++numUsed_;
    return found;
  }

  Status add(const std::string &name, const std::string &specText) {
    auto weight = symbols_.lookup<lm::WeightOp>(name);
    if (!weight)
      return Status::invalid("is of another model: no weight is named \"" +
                             name + "\"");
    if (prunes_)
      return addPruned(weight, name, specText);
    auto spec = parseQuantizeSpec(specText);
    if (!spec || (!spec->isInteger() && spec->encoding != "f32"))
      return Status::invalid("weight \"" + name + "\": unknown encoding \"" +
                             specText + "\"");
    auto rows = std::uint64_t(weight.getRows());
    auto columns = std::uint64_t(weight.getColumns());
    if (!spec->isInteger()) {
      std::vector<std::uint64_t> shape(weight.getShape().begin(),
                                       weight.getShape().end());
      INGOT_ASSIGN_OR_RETURN(
          const SafetensorsTensor *values,
          tensor(name + ".values", SafetensorsDtype::F32, shape));
      insert(weight, lm::WeightCode::F32, 0, lm::Stored::F32, *values, {},
             name);
      return Status::ok();
    }
    if (!weight.isMatrix())
      return Status::invalid("weight \"" + name + "\": codes of a vector");
    StoredCodes codes;
    codes.packing = CodePacking::Compressed;
    codes.bits = spec->encoding == "int8" ? 8 : 4;
    codes.group = spec->group;
    std::uint64_t perWord = std::uint64_t(32 / codes.bits);
    INGOT_ASSIGN_OR_RETURN(const SafetensorsTensor *words,
                           tensor(name + ".codes", SafetensorsDtype::I32,
                                  {rows, (columns + perWord - 1) / perWord}));
    INGOT_ASSIGN_OR_RETURN(const SafetensorsTensor *scales,
                           tensor(name + ".scales", SafetensorsDtype::F16,
                                  {rows, columnGroups(codes, columns)}));
    codes.scales.name = scales->name;
    codes.scales.source = source_.getSymName().str();
    codes.scales.byteOffset = scales->fileOffset;
    codes.scales.sizeBytes = scales->sizeBytes;
    codes.scales.type = PlaneType::F16;
    StoredDetails details;
    details.codes = codes;
    insert(weight, codes.bits == 8 ? lm::WeightCode::I8 : lm::WeightCode::I4,
           codes.group, lm::Stored::Codes, *words, details,
           name + " by " + spec->method);
    return Status::ok();
  }

  Status addPruned(lm::WeightOp weight, const std::string &name,
                   const std::string &type) {
    struct Known {
      const char *name;
      SafetensorsDtype dtype;
      lm::WeightCode code;
      lm::Stored stored;
    };
    static constexpr Known known[] = {
        {"f32", SafetensorsDtype::F32, lm::WeightCode::F32, lm::Stored::F32},
        {"f16", SafetensorsDtype::F16, lm::WeightCode::F16, lm::Stored::F16},
        {"bf16", SafetensorsDtype::BF16, lm::WeightCode::BF16,
         lm::Stored::BF16}};
    const Known *form = llvm::find_if(
        known, [&](const Known &one) { return type == one.name; });
    const SafetensorsTensor *values = file_.find(name + ".values");
    if (form == std::end(known) || !values || values->dtype != form->dtype ||
        values->shape.size() != weight.getShape().size())
      return Status::invalid("weight \"" + name +
                             "\": expected values of f32, f16 or bf16 in as "
                             "many dimensions as it has");
    ++numUsed_;
    std::vector<std::int64_t> shape(values->shape.begin(), values->shape.end());
    insert(weight, form->code, 0, form->stored, *values, {}, name, shape);
    return Status::ok();
  }

  void insert(lm::WeightOp weight, lm::WeightCode code, std::int64_t group,
              lm::Stored stored, const SafetensorsTensor &tensor,
              const StoredDetails &details, const std::string &partName,
              llvm::ArrayRef<std::int64_t> shape = {}) {
    if (shape.empty())
      shape = weight.getShape();
    MLIRContext *context = builder_.getContext();
    auto part = lm::PartAttr::get(
        context, FlatSymbolRefAttr::get(source_),
        builder_.getStringAttr(partName), std::int64_t(tensor.fileOffset),
        std::int64_t(tensor.sizeBytes), stored, shape[0],
        shape.size() == 2 ? shape[1] : 1, /*permute=*/0, /*stored_rows=*/0,
        /*first=*/0, /*run=*/0, /*stride=*/0, /*transposed=*/false,
        storedDetailsAttr(context, details,
                          [](std::uint32_t) { return std::string(); }));
    auto encoding = lm::EncodingAttr::get(context, code, group, false);
    builder_.setInsertionPointAfter(weight);
    std::string name = prunes_ ? (weight.getSymName() + kPrunedSuffix).str()
                               : calibratedName(weight.getSymName());
    builder_.create<lm::WeightOp>(
        lm::nameLocation(context, name), builder_.getStringAttr(name),
        builder_.getDenseI64ArrayAttr(shape), encoding, weight.getLayoutAttr(),
        builder_.getArrayAttr({part}), ElementsAttr(),
        lm::conversionMethod(part, encoding));
  }

  const SafetensorsFile &file_;
  std::string path_;
  ModuleOp module_;
  std::string prefix_;
  bool prunes_;
  SymbolTable symbols_;
  OpBuilder builder_;
  lm::SourceOp source_;
  std::size_t numUsed_ = 0;
};

} // namespace

Status addCalibratedWeights(const std::string &path, ModuleOp module,
                            const std::string &prefix) {
  INGOT_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(path));
  return Reader(file, path, module, prefix, false).read().withContext(path);
}

Status addPrunedWeights(const std::string &path, ModuleOp module) {
  INGOT_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(path));
  return Reader(file, path, module, {}, true).read().withContext(path);
}

bool hasCalibratedWeights(ModuleOp module) {
  return llvm::any_of(module.getOps<lm::WeightOp>(), [](lm::WeightOp weight) {
    return isCalibratedName(weight.getSymName());
  });
}

} // namespace ingot
