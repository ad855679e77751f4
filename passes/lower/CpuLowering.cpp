// The target @cpu: linears read float32 rows, or quantised rows where their weights
// are integers; lm.quantize makes those.
#include "passes/lower/TargetLowering.h"

using namespace mlir;

namespace ingot::plan {

namespace {

class CpuLowering : public TargetLowering {
public:
  CpuLowering(ModuleOp module, lm::ProgramOp program, UsedWeights &usedWeights)
      : TargetLowering(module, program, "cpu", Layout::R16, usedWeights) {}

private:
  FailureOr<ArrayAttr>
  variantsFor(Operation *op, StringRef kernelOp,
              const codegen::KernelConfig &config) override {
    Result<std::vector<codegen::KernelVariant>> found =
        codegen::variantsFor(kernelOp.str(), config);
    if (!found) {
      op->emitOpError() << "has no kernel: " << found.status().message();
      return failure();
    }
    SmallVector<Attribute> variants;
    for (const codegen::KernelVariant &variant : *found) {
      KernelOp &kernel = kernels[variant.name];
      DictionaryAttr constants = constantsOf(variant.constants);
      if (!kernel) {
        reserveKernelName(variant.name);
        kernel = kernelBuilder.create<KernelOp>(
            UnknownLoc::get(context), variant.name, variant.op, constants,
            variant.scratchBytes, GeometryAttr());
        ++numKernels;
      } else if (kernel.getConfig() != constants ||
                 kernel.getOp() != variant.op) {
        op->emitOpError() << "the catalogue gives two kernels the name "
                          << variant.name;
        return failure();
      } else if (kernel.getScratch() < variant.scratchBytes) {
        kernel.setScratch(variant.scratchBytes);
      }
      variants.push_back(variantAttr(variant.first, variant.last, kernel));
    }
    return ArrayAttr::get(context, variants);
  }

  FailureOr<AttentionKernels>
  attentionKernels(lm::CachedAttentionOp op,
                   codegen::KernelConfig config) override {
    FailureOr<ArrayAttr> variants = variantsFor(
        op, op.getSlopes() ? "alibi_attention" : "attention", config);
    if (failed(variants))
      return failure();
    return AttentionKernels{*variants, {}, {}};
  }

  FailureOr<ArrayAttr>
  linearVariants(lm::LinearOp op,
                 const codegen::KernelConfig &config) override {
    if (failed(checkInput(op)))
      return failure();
    return variantsFor(op, "linear", config);
  }
  FlatSymbolRefAttr linearInput(lm::LinearOp op) override {
    return read(op.getInput());
  }

  FailureOr<ArrayAttr> expertVariants(lm::ExpertLinearOp op,
                                      codegen::KernelConfig config) override {
    if (failed(checkInput(op)))
      return failure();
    return variantsFor(op, "expert_linear", config);
  }
  FlatSymbolRefAttr expertInput(lm::ExpertLinearOp op) override {
    return read(op.getInput());
  }
  // Of linears, also of experts: integers are multiplied with integers.
  template <typename Linear> static LogicalResult checkInput(Linear op) {
    lm::EncodingAttr encoding =
        lm::lookupWeight(op, op.getWeightAttr()).getEncoding();
    if (!encoding.isInteger() ||
        isa<lm::QuantizedType>(op.getInput().getType()))
      return success();
    return op.emitOpError()
           << "has a weight in " << encoding.getShortName()
           << " and an input in float32; insert-quantize gives it quantised "
              "rows";
  }

  Type rowsType(Type valueType) override {
    int64_t columns = lm::columnsOf(valueType);
    if (auto quantized = dyn_cast<lm::QuantizedType>(valueType))
      return QuantizedRowsType::get(context, columns, quantized.getGroup(),
                                    quantized.getBits());
    return RowsType::get(context, columns);
  }
  Results results(Operation *op, Value value, Domain domain, bool) override {
    FlatSymbolRefAttr name = symbol(resultPlace(op, value, domain));
    return isa<lm::QuantizedType>(value.getType()) ? Results{{}, name}
                                                   : Results{name, {}};
  }

  LogicalResult lowerQuantize(lm::QuantizeOp op) override {
    codegen::KernelConfig config;
    addQuantization(config, op.getResult().getType());
    FailureOr<ArrayAttr> variants = variantsFor(op, "quantize", config);
    if (failed(variants))
      return failure();
    Domain domain = domainOf(op.getInput());
    Place place = resultPlace(op, op.getResult(), domain);
    launchBuilder.create<QuantizeOp>(
        op.getLoc(), read(op.getInput()), symbol(place),
        integer(lm::columnsOf(op.getInput().getType())),
        DomainAttr::get(context, domain), *variants);
    return success();
  }

  DictionaryAttr constantsOf(const codegen::KernelConfig &config) {
    SmallVector<NamedAttribute> attributes;
    for (const auto &[name, value] : config) {
      Attribute attribute;
      if (const std::string *text = std::get_if<std::string>(&value))
        attribute = StringAttr::get(context, *text);
      else
        attribute = moduleBuilder.getI64IntegerAttr(std::get<int64_t>(value));
      attributes.emplace_back(StringAttr::get(context, name), attribute);
    }
    return DictionaryAttr::get(context, attributes);
  }
};

} // namespace

std::unique_ptr<TargetLowering> makeCpuLowering(ModuleOp module,
                                                lm::ProgramOp program,
                                                UsedWeights &usedWeights) {
  return std::make_unique<CpuLowering>(module, program, usedWeights);
}

} // namespace ingot::plan
