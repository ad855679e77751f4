// Operands of launches. Each check states what the binding in
// runtime/execute/cpu will hand to a kernel, so that a kernel never sees a
// shape that its buffers do not hold.
#include "runtime/plan/CudaKernelNames.h"
#include "runtime/plan/KernelAbi.h"
#include "runtime/plan/LibraryUse.h"
#include "runtime/plan/VerifyPlan.h"

#include <cmath>
#include <string>

namespace ingot {
namespace {

std::string str(std::uint64_t value) { return std::to_string(value); }

class LaunchVerifier {
public:
  LaunchVerifier(const fbs::Plan &plan, const fbs::Target &target)
      : plan_(plan), target_(target), isCuda_(isCuda(target)) {}

  Status verify(const fbs::Launch &launch) {
    const char *op = nullptr;
    if (launch.params_type() != fbs::Params::NONE && !launch.params())
      return Status::invalid("has no parameters");
    switch (launch.params_type()) {
    case fbs::Params::Embed:
      op = "embed";
      INGOT_RETURN_IF_ERROR(check(*launch.params_as_Embed()));
      break;
    case fbs::Params::RopeTable:
      op = "rope_table";
      INGOT_RETURN_IF_ERROR(check(*launch.params_as_RopeTable()));
      break;
    case fbs::Params::RmsNorm:
      op = "rms_norm";
      INGOT_RETURN_IF_ERROR(check(*launch.params_as_RmsNorm()));
      break;
    case fbs::Params::Quantize:
      op = "quantize";
      INGOT_RETURN_IF_ERROR(check(*launch.params_as_Quantize()));
      break;
    case fbs::Params::Linear:
      op = "linear";
      INGOT_RETURN_IF_ERROR(check(*launch.params_as_Linear()));
      break;
    case fbs::Params::Gated:
      op = "gated";
      INGOT_RETURN_IF_ERROR(check(*launch.params_as_Gated()));
      break;
    case fbs::Params::RopeCacheWrite:
      op = "rope_cache_write";
      INGOT_RETURN_IF_ERROR(check(*launch.params_as_RopeCacheWrite()));
      break;
    case fbs::Params::Attention:
      op = launch.params_as_Attention()->slopes() ? "alibi_attention"
                                                  : "attention";
      INGOT_RETURN_IF_ERROR(check(*launch.params_as_Attention()));
      break;
    case fbs::Params::GatherRows:
      op = "gather_rows";
      INGOT_RETURN_IF_ERROR(check(*launch.params_as_GatherRows()));
      break;
    case fbs::Params::LayerNorm:
      op = "layer_norm";
      INGOT_RETURN_IF_ERROR(check(*launch.params_as_LayerNorm()));
      break;
    case fbs::Params::Activate:
      op = "activate";
      INGOT_RETURN_IF_ERROR(check(*launch.params_as_Activate()));
      break;
    case fbs::Params::Add:
      op = "add";
      INGOT_RETURN_IF_ERROR(check(*launch.params_as_Add()));
      break;
    case fbs::Params::Route:
      op = "route";
      INGOT_RETURN_IF_ERROR(check(*launch.params_as_Route()));
      break;
    case fbs::Params::OrderSlots:
      op = "order_slots";
      INGOT_RETURN_IF_ERROR(check(*launch.params_as_OrderSlots()));
      break;
    case fbs::Params::Dispatch:
      op = "dispatch";
      INGOT_RETURN_IF_ERROR(check(*launch.params_as_Dispatch()));
      break;
    case fbs::Params::ExpertLinear:
      op = "expert_linear";
      INGOT_RETURN_IF_ERROR(check(*launch.params_as_ExpertLinear()));
      break;
    case fbs::Params::Combine:
      op = "combine";
      INGOT_RETURN_IF_ERROR(check(*launch.params_as_Combine()));
      break;
    case fbs::Params::Cap:
      op = "cap";
      INGOT_RETURN_IF_ERROR(check(*launch.params_as_Cap()));
      break;
    case fbs::Params::Pool:
      op = "pool";
      if (isCuda_)
        return Status::unsupported("operation \"pool\" has no kernels for "
                                   "CUDA");
      INGOT_RETURN_IF_ERROR(check(*launch.params_as_Pool()));
      break;
    default:
      return Status::unsupported(
          "operation " + str(static_cast<unsigned>(launch.params_type())) +
          " is unknown to this runtime");
    }
    INGOT_RETURN_IF_ERROR(checkVariants(launch, op));
    if (!isCuda_)
      return Status::ok();
    if (auto *linear = launch.params_as_Linear())
      return checkParts(launch, linear->input());
    if (auto *linear = launch.params_as_ExpertLinear())
      return checkParts(launch, linear->input());
    return Status::ok();
  }

private:
  static constexpr int kAnyDomain = -1;

  Status checkVariants(const fbs::Launch &launch, const char *op) {
    if (!launch.variants() || launch.variants()->size() == 0)
      return Status::invalid("has no variant");
    std::uint64_t next = 1;
    bool open = true;
    for (const fbs::Variant *variant : *launch.variants()) {
      if (!open || variant->first() != next ||
          (variant->last() != 0 && variant->last() < variant->first()))
        return Status::invalid("variant [" + str(variant->first()) + ", " +
                               str(variant->last()) +
                               "]: row counts must be covered from 1 up, each "
                               "once; expected to begin at " +
                               str(next));
      open = variant->last() != 0;
      next = std::uint64_t(variant->last()) + 1;
      if (variant->kernel() >= target_.kernels()->size())
        return Status::invalid("variant: kernel " + str(variant->kernel()) +
                               " of " + str(target_.kernels()->size()));
      auto found = target_.kernels()->Get(variant->kernel())->op();
      if (isCuda_ && found->string_view() == kLibraryLinear &&
          launch.params_as_Linear()) {
        INGOT_RETURN_IF_ERROR(
            checkLibrary(*launch.params_as_Linear(), *variant));
        continue;
      }
      if (found->string_view() != op)
        return Status::invalid("variant: kernel is for \"" + found->str() +
                               "\", the launch is \"" + op + "\"");
    }
    if (open)
      return Status::invalid("variants end at " + str(next - 1) +
                             " rows; the last must have no bound");
    return Status::ok();
  }

  // A variant that is left to a library (LibraryUse.h).
  Status checkLibrary(const fbs::Linear &linear, const fbs::Variant &variant) {
    auto code = plan_.weights()->Get(linear.weight())->encoding()->code();
    if (linear.domain() != fbs::Domain::token ||
        (code != fbs::WeightCode::f16 && code != fbs::WeightCode::bf16))
      return Status::invalid(
          "variant: a library multiplies rows of tokens with f16 or bf16 "
          "weights only");
    if (variant.first() <= kMostRowsWithoutLibrary)
      return Status::invalid("variant from " + str(variant.first()) +
                             " rows on is left to a library, expected more "
                             "than " +
                             str(kMostRowsWithoutLibrary));
    // A grid that lays the weights out has at most 65535 blocks along K.
    if (linear.k() > kMostLibraryColumns)
      return Status::invalid("k " + str(linear.k()) +
                             " is left to a library, expected at most " +
                             str(kMostLibraryColumns));
    for (const fbs::Kernel *kernel : *target_.kernels())
      if (kernel->op()->string_view() == kLibraryFinish)
        return Status::ok();
    return Status::invalid("variant: is left to a library, and no kernel is "
                           "for \"" +
                           std::string(kLibraryFinish) + "\"");
  }

  // Kernels that read two parts of half rows find them.
  Status checkParts(const fbs::Launch &launch, std::int32_t index) {
    const fbs::Buffer &input = *target_.buffers()->Get(unsigned(index));
    for (const fbs::Variant *variant : *launch.variants()) {
      auto kernel = target_.kernels()->Get(variant->kernel())->name();
      if (input.sums_offset() == 0 && readsTwoParts(kernel->string_view()))
        return Status::invalid("kernel \"" + kernel->str() +
                               "\" reads half rows of two parts, input: "
                               "buffer \"" +
                               input.name()->str() + "\" has one");
    }
    return Status::ok();
  }

  // A kernel of a launch beside its variants.
  Status checkSideKernel(const char *operand, int index, const char *op) {
    if (index < 0 || std::uint32_t(index) >= target_.kernels()->size())
      return Status::invalid(std::string(operand) + ": kernel " +
                             std::to_string(index) + " of " +
                             str(target_.kernels()->size()));
    auto found = target_.kernels()->Get(index)->op();
    if (found->string_view() != op)
      return Status::invalid(std::string(operand) + ": kernel is for \"" +
                             found->str() + "\", expected \"" + op + "\"");
    return Status::ok();
  }

  // How the target's matrices are packed.
  const char *matrixLayout() const { return isCuda_ ? "mma16" : "r16"; }

  Result<const fbs::Buffer *> buffer(const char *operand, int index,
                                     int domain) {
    if (index < 0 || std::uint32_t(index) >= target_.buffers()->size())
      return Status::invalid(std::string(operand) + ": buffer " +
                             std::to_string(index) + " of " +
                             str(target_.buffers()->size()));
    const fbs::Buffer *found = target_.buffers()->Get(index);
    if (domain != kAnyDomain && int(found->domain()) != domain)
      return Status::invalid(std::string(operand) + ": buffer \"" +
                             found->name()->str() +
                             "\" has rows of another "
                             "domain");
    return found;
  }

  // A float32 buffer without padding between rows.
  Status dense(const char *operand, int index, std::uint64_t width,
               int domain) {
    INGOT_ASSIGN_OR_RETURN(const fbs::Buffer *found,
                           buffer(operand, index, domain));
    if (found->dtype() != fbs::DType::f32 || found->row_bytes() != width * 4)
      return Status::invalid(std::string(operand) + ": buffer \"" +
                             found->name()->str() + "\" has rows of " +
                             str(found->row_bytes()) +
                             " bytes, expected float32 [" + str(width) + "]");
    return Status::ok();
  }

  // A float32 buffer that holds columns [begin, end) of each row.
  Status strided(const char *operand, int index, std::uint64_t end,
                 int domain) {
    INGOT_ASSIGN_OR_RETURN(const fbs::Buffer *found,
                           buffer(operand, index, domain));
    if (found->dtype() != fbs::DType::f32 || found->columns() < end)
      return Status::invalid(
          std::string(operand) + ": buffer \"" + found->name()->str() +
          "\" has " + str(found->columns()) +
          " columns, expected float32 with at least " + str(end));
    return Status::ok();
  }

  Status quantized(const char *operand, int index, std::uint64_t width,
                   const fbs::Encoding *reader, int domain) {
    INGOT_ASSIGN_OR_RETURN(const fbs::Buffer *found,
                           buffer(operand, index, domain));
    if (isCuda_) {
      if (found->dtype() != fbs::DType::f16 || found->columns() != width)
        return Status::invalid(std::string(operand) + ": buffer \"" +
                               found->name()->str() +
                               "\" is not half rows of " + str(width));
      return Status::ok();
    }
    // int8 weights are multiplied with codes of 16 bits, int4 with 8.
    bool wide = reader && reader->code() == fbs::WeightCode::i8;
    if (found->dtype() == fbs::DType::f32 || found->columns() != width ||
        (reader && (found->group() != reader->group() ||
                    (found->dtype() == fbs::DType::i16) != wide)))
      return Status::invalid(
          std::string(operand) + ": buffer \"" + found->name()->str() +
          "\" is not quantised rows of " + str(width) +
          (reader ? " in groups of " + str(reader->group()) + " with " +
                        (wide ? "16" : "8") + " bits"
                  : std::string()));
    return Status::ok();
  }

  // Float32 output, quantised output, or both.
  Status outputs(int output, int quantizedOutput, std::uint64_t width,
                 int domain) {
    if (output == -1 && quantizedOutput == -1)
      return Status::invalid("has neither output nor quantized");
    if (output != -1)
      INGOT_RETURN_IF_ERROR(dense("output", output, width, domain));
    if (quantizedOutput != -1)
      INGOT_RETURN_IF_ERROR(
          quantized("quantized", quantizedOutput, width, nullptr, domain));
    return Status::ok();
  }

  Result<const fbs::Weight *> weight(const char *operand, int index,
                                     const char *layout) {
    if (index < 0 || std::uint32_t(index) >= plan_.weights()->size())
      return Status::invalid(std::string(operand) + ": weight " +
                             std::to_string(index) + " of " +
                             str(plan_.weights()->size()));
    const fbs::Weight *found = plan_.weights()->Get(index);
    if (found->layout()->string_view() != layout)
      return Status::invalid(std::string(operand) + ": weight \"" +
                             found->name()->str() + "\" has layout \"" +
                             found->layout()->str() + "\", expected \"" +
                             layout + "\"");
    return found;
  }

  Status vectorWeight(const char *operand, int index, std::uint64_t width) {
    INGOT_ASSIGN_OR_RETURN(const fbs::Weight *found,
                           weight(operand, index, "row"));
    if (std::uint64_t(found->rows()) * found->columns() != width)
      return Status::invalid(
          std::string(operand) + ": weight \"" + found->name()->str() +
          "\" has " + str(std::uint64_t(found->rows()) * found->columns()) +
          " elements, expected " + str(width));
    return Status::ok();
  }

  static Status dimension(const char *what, std::uint64_t value) {
    if (value == 0 || value > kMaxDimension)
      return Status::invalid(std::string(what) + " is " + str(value) +
                             ", expected 1 to " + str(kMaxDimension));
    return Status::ok();
  }

  static constexpr int kToken = int(fbs::Domain::token);
  static constexpr int kLogitRow = int(fbs::Domain::logit_row);
  static constexpr int kSlot = int(fbs::Domain::slot);
  static constexpr std::uint64_t kMaxExperts = 1 << 16;

  Status check(const fbs::Embed &op) {
    INGOT_ASSIGN_OR_RETURN(const fbs::Weight *table,
                           weight("table", op.table(), matrixLayout()));
    std::uint32_t needed =
        op.by_position() ? plan_.model()->context() : plan_.model()->vocab();
    if (table->rows() < needed)
      return Status::invalid("table: " + str(table->rows()) + " rows, the " +
                             (op.by_position() ? "context" : "vocabulary") +
                             " has " + str(needed));
    if (op.bias() != -1)
      INGOT_RETURN_IF_ERROR(vectorWeight("bias", op.bias(), table->columns()));
    return dense("output", op.output(), table->columns(), kToken);
  }

  Status check(const fbs::RopeTable &op) {
    INGOT_RETURN_IF_ERROR(dimension("rotary_dim", op.rotary_dim()));
    if (op.rotary_dim() % 2 != 0)
      return Status::invalid("rotary_dim is odd");
    if (op.scaling() > fbs::RopeScaling::listed)
      return Status::invalid("scaling is unknown");
    bool isListed = op.scaling() == fbs::RopeScaling::listed;
    bool isDynamic = op.scaling() == fbs::RopeScaling::dynamic;
    INGOT_RETURN_IF_ERROR(vectorWeight("inv_freq", op.inv_freq(),
                                       op.rotary_dim() / (isListed ? 1 : 2)));
    if (isListed || isDynamic)
      INGOT_RETURN_IF_ERROR(dimension("original", op.original()));
    auto isPositive = [](double x) { return x > 0 && x <= 1e300; };
    if (isDynamic && (op.rotary_dim() < 4 || !isPositive(op.theta()) ||
                      !isPositive(op.factor())))
      return Status::invalid("dynamic scaling needs a positive theta and "
                             "factor, and a rotary_dim of 4");
    return dense("output", op.output(), op.rotary_dim(), kToken);
  }

  Status check(const fbs::LayerNorm &op) {
    INGOT_RETURN_IF_ERROR(dimension("width", op.width()));
    if (op.domain() > fbs::Domain::logit_row)
      return Status::invalid("domain is unknown");
    int domain = int(op.domain());
    INGOT_RETURN_IF_ERROR(dense("input", op.input(), op.width(), domain));
    INGOT_RETURN_IF_ERROR(vectorWeight("weight", op.weight(), op.width()));
    if (op.bias() != -1)
      INGOT_RETURN_IF_ERROR(vectorWeight("bias", op.bias(), op.width()));
    return outputs(op.output(), op.quantized(), op.width(), domain);
  }

  Status check(const fbs::Activate &op) {
    INGOT_RETURN_IF_ERROR(dimension("width", op.width()));
    if (!op.activation())
      return Status::invalid("activation is missing");
    INGOT_RETURN_IF_ERROR(dense("input", op.input(), op.width(), kToken));
    return outputs(op.output(), op.quantized(), op.width(), kToken);
  }

  Status check(const fbs::Add &op) {
    INGOT_RETURN_IF_ERROR(dimension("width", op.width()));
    INGOT_RETURN_IF_ERROR(dense("residual", op.residual(), op.width(), kToken));
    INGOT_RETURN_IF_ERROR(dense("update", op.update(), op.width(), kToken));
    return dense("output", op.output(), op.width(), kToken);
  }

  Status check(const fbs::Cap &op) {
    INGOT_RETURN_IF_ERROR(dimension("width", op.width()));
    if (op.domain() > fbs::Domain::logit_row)
      return Status::invalid("domain is unknown");
    if (!(op.soft_cap() >= 0))
      return Status::invalid("soft_cap is negative");
    int domain = int(op.domain());
    INGOT_RETURN_IF_ERROR(dense("input", op.input(), op.width(), domain));
    return dense("output", op.output(), op.width(), domain);
  }

  Status check(const fbs::RmsNorm &op) {
    INGOT_RETURN_IF_ERROR(dimension("width", op.width()));
    if (op.domain() > fbs::Domain::logit_row)
      return Status::invalid("domain is unknown");
    int domain = int(op.domain());
    INGOT_RETURN_IF_ERROR(dense("input", op.input(), op.width(), domain));
    INGOT_RETURN_IF_ERROR(vectorWeight("weight", op.weight(), op.width()));
    return outputs(op.output(), op.quantized(), op.width(), domain);
  }

  Status check(const fbs::Quantize &op) {
    INGOT_RETURN_IF_ERROR(dimension("width", op.width()));
    if (op.domain() > fbs::Domain::slot)
      return Status::invalid("domain is unknown");
    INGOT_RETURN_IF_ERROR(
        dense("input", op.input(), op.width(), int(op.domain())));
    return quantized("output", op.output(), op.width(), nullptr,
                     int(op.domain()));
  }

  Status check(const fbs::Linear &op) {
    INGOT_RETURN_IF_ERROR(dimension("k", op.k()));
    INGOT_RETURN_IF_ERROR(dimension("n", op.n()));
    if (op.domain() > fbs::Domain::logit_row)
      return Status::invalid("domain is unknown");
    int domain = int(op.domain());
    INGOT_ASSIGN_OR_RETURN(const fbs::Weight *matrix,
                           weight("weight", op.weight(), matrixLayout()));
    if (matrix->rows() != op.n() || matrix->columns() != op.k())
      return Status::invalid("weight: \"" + matrix->name()->str() + "\" is [" +
                             str(matrix->rows()) + ", " +
                             str(matrix->columns()) + "], expected [" +
                             str(op.n()) + ", " + str(op.k()) + "]");
    if (isCuda_ || matrix->encoding()->group() != 0)
      INGOT_RETURN_IF_ERROR(
          quantized("input", op.input(), op.k(), matrix->encoding(), domain));
    else
      INGOT_RETURN_IF_ERROR(dense("input", op.input(), op.k(), domain));
    std::uint64_t end = std::uint64_t(op.output_column()) + op.n();
    INGOT_RETURN_IF_ERROR(strided("output", op.output(), end, domain));
    if (op.bias() != -1)
      INGOT_RETURN_IF_ERROR(vectorWeight("bias", op.bias(), op.n()));
    if (op.residual() != -1)
      INGOT_RETURN_IF_ERROR(strided("residual", op.residual(), end, domain));
    return Status::ok();
  }

  Status check(const fbs::Gated &op) {
    INGOT_RETURN_IF_ERROR(dimension("width", op.width()));
    if (!op.activation())
      return Status::invalid("activation is missing");
    if (op.domain() != fbs::Domain::token && op.domain() != fbs::Domain::slot)
      return Status::invalid("domain is neither token nor slot");
    int domain = int(op.domain());
    INGOT_RETURN_IF_ERROR(
        dense("input", op.input(), std::uint64_t(op.width()) * 2, domain));
    return outputs(op.output(), op.quantized(), op.width(), domain);
  }

  // A choice of experts that the target has slots for, and the order of slots
  // where it is an operand.
  Status choices(std::uint64_t experts, std::uint64_t topK) {
    if (experts == 0 || experts > kMaxExperts || topK == 0 || topK > experts ||
        topK != target_.slots())
      return Status::invalid(str(topK) + " of " + str(experts) +
                             " experts in a target with " +
                             str(target_.slots()) + " slots");
    return Status::ok();
  }
  Status order(int index, std::uint64_t experts, std::uint64_t topK) {
    INGOT_RETURN_IF_ERROR(choices(experts, topK));
    return dense("order", index, 2 * topK + experts + 1, kToken);
  }

  Status check(const fbs::Route &op) {
    INGOT_RETURN_IF_ERROR(choices(op.experts(), op.top_k()));
    INGOT_RETURN_IF_ERROR(dense("logits", op.logits(), op.experts(), kToken));
    return dense("routes", op.routes(), std::uint64_t(op.top_k()) * 2, kToken);
  }

  Status check(const fbs::OrderSlots &op) {
    INGOT_RETURN_IF_ERROR(order(op.order(), op.experts(), op.top_k()));
    return dense("routes", op.routes(), std::uint64_t(op.top_k()) * 2, kToken);
  }

  bool isHalves(std::int32_t index) const {
    return index >= 0 && std::uint32_t(index) < target_.buffers()->size() &&
           target_.buffers()->Get(unsigned(index))->dtype() == fbs::DType::f16;
  }
  int partsOf(std::int32_t index) const {
    return target_.buffers()->Get(unsigned(index))->sums_offset() ? 2 : 1;
  }

  Status check(const fbs::Dispatch &op) {
    INGOT_RETURN_IF_ERROR(dimension("width", op.width()));
    INGOT_RETURN_IF_ERROR(order(op.order(), op.experts(), op.top_k()));
    if (isCuda_ && isHalves(op.input())) {
      INGOT_RETURN_IF_ERROR(
          quantized("input", op.input(), op.width(), nullptr, kToken));
      INGOT_RETURN_IF_ERROR(
          quantized("output", op.output(), op.width(), nullptr, kSlot));
      if (partsOf(op.input()) < partsOf(op.output()))
        return Status::invalid("output: half rows of two parts, the input has "
                               "one");
      return Status::ok();
    }
    INGOT_RETURN_IF_ERROR(dense("input", op.input(), op.width(), kToken));
    return dense("output", op.output(), op.width(), kSlot);
  }

  Status check(const fbs::ExpertLinear &op) {
    INGOT_RETURN_IF_ERROR(dimension("k", op.k()));
    INGOT_RETURN_IF_ERROR(dimension("n", op.n()));
    INGOT_RETURN_IF_ERROR(order(op.order(), op.experts(), op.top_k()));
    INGOT_ASSIGN_OR_RETURN(const fbs::Weight *matrix,
                           weight("weight", op.weight(), matrixLayout()));
    if (op.n() % 16 != 0 ||
        matrix->rows() != std::uint64_t(op.experts()) * op.n() ||
        matrix->columns() != op.k())
      return Status::invalid("weight: \"" + matrix->name()->str() + "\" is [" +
                             str(matrix->rows()) + ", " +
                             str(matrix->columns()) + "], expected " +
                             str(op.experts()) + " times [" + str(op.n()) +
                             ", " + str(op.k()) + "] in tiles of 16");
    if (isCuda_ || matrix->encoding()->group() != 0)
      INGOT_RETURN_IF_ERROR(
          quantized("input", op.input(), op.k(), matrix->encoding(), kSlot));
    else
      INGOT_RETURN_IF_ERROR(dense("input", op.input(), op.k(), kSlot));
    return dense("output", op.output(), op.n(), kSlot);
  }

  Status check(const fbs::Combine &op) {
    INGOT_RETURN_IF_ERROR(dimension("width", op.width()));
    INGOT_RETURN_IF_ERROR(order(op.order(), op.experts(), op.top_k()));
    INGOT_RETURN_IF_ERROR(
        dense("routes", op.routes(), std::uint64_t(op.top_k()) * 2, kToken));
    INGOT_RETURN_IF_ERROR(dense("input", op.input(), op.width(), kSlot));
    return dense("output", op.output(), op.width(), kToken);
  }

  Status heads(std::uint32_t heads, std::uint32_t kvHeads,
               std::uint32_t headDim) {
    INGOT_RETURN_IF_ERROR(dimension("heads", heads));
    INGOT_RETURN_IF_ERROR(dimension("kv_heads", kvHeads));
    INGOT_RETURN_IF_ERROR(dimension("head_dim", headDim));
    if (heads % kvHeads != 0)
      return Status::invalid(str(heads) + " heads are not a multiple of " +
                             str(kvHeads) + " kv_heads");
    return dimension("(heads + 2 * kv_heads) * head_dim",
                     (std::uint64_t(heads) + 2 * std::uint64_t(kvHeads)) *
                         headDim);
  }

  Result<const fbs::StateGroup *> state(int index, std::uint32_t layer,
                                        std::uint32_t kvHeads,
                                        std::uint32_t headDim) {
    if (index < 0 || std::uint32_t(index) >= plan_.states()->size())
      return Status::invalid("state: group " + std::to_string(index) + " of " +
                             str(plan_.states()->size()));
    const fbs::StateGroup *group = plan_.states()->Get(index);
    if (layer >= group->layers())
      return Status::invalid("state_layer " + str(layer) + " of " +
                             str(group->layers()));
    if (group->kv_heads() != kvHeads || group->head_dim() != headDim)
      return Status::invalid("state \"" + group->name()->str() + "\" has " +
                             str(group->kv_heads()) + " heads of " +
                             str(group->head_dim()) + ", the launch " +
                             str(kvHeads) + " of " + str(headDim));
    return group;
  }

  Status check(const fbs::RopeCacheWrite &op) {
    INGOT_RETURN_IF_ERROR(heads(op.heads(), op.kv_heads(), op.head_dim()));
    if (auto group =
            state(op.state(), op.state_layer(), op.kv_heads(), op.head_dim());
        !group)
      return group.status();
    if ((op.rotary_dim() == 0) != (op.table() == -1) ||
        op.rotary_dim() % 2 != 0 || op.rotary_dim() > op.head_dim())
      return Status::invalid("rotary_dim " + str(op.rotary_dim()) +
                             ", expected even, 2 to " + str(op.head_dim()) +
                             ", or 0 without a table");
    if (op.norm_kind() > fbs::NormKind::layer)
      return Status::invalid("norm_kind is unknown");
    if (op.norm_rows() && op.norm_kind() != fbs::NormKind::rms)
      return Status::invalid("a norm of rows is RMS");
    if ((op.q_norm() == -1) != (op.k_norm() == -1))
      return Status::invalid("q_norm and k_norm belong together");
    std::uint64_t width =
        (std::uint64_t(op.heads()) + 2 * std::uint64_t(op.kv_heads())) *
        op.head_dim();
    INGOT_RETURN_IF_ERROR(dense("input", op.input(), width, kToken));
    if (op.table() != -1)
      INGOT_RETURN_IF_ERROR(
          dense("table", op.table(), op.rotary_dim(), kToken));
    if (op.q_norm() != -1) {
      // One vector for all heads, or one of all heads' own.
      INGOT_ASSIGN_OR_RETURN(const fbs::Weight *first,
                             weight("q_norm", op.q_norm(), "row"));
      bool isOwn = op.norm_rows() || first->rows() != op.head_dim();
      std::uint64_t head = op.head_dim();
      INGOT_RETURN_IF_ERROR(vectorWeight("q_norm", op.q_norm(),
                                         isOwn ? head * op.heads() : head));
      INGOT_RETURN_IF_ERROR(vectorWeight("k_norm", op.k_norm(),
                                         isOwn ? head * op.kv_heads() : head));
    }
    return dense("query", op.query(), std::uint64_t(op.heads()) * op.head_dim(),
                 kToken);
  }

  Status check(const fbs::Attention &op) {
    INGOT_RETURN_IF_ERROR(heads(op.heads(), op.kv_heads(), op.head_dim()));
    INGOT_ASSIGN_OR_RETURN(
        const fbs::StateGroup *group,
        state(op.state(), op.state_layer(), op.kv_heads(), op.head_dim()));
    if (op.window() > kMaxDimension ||
        (group->window() != 0 &&
         (op.window() == 0 || op.window() > group->window())))
      return Status::invalid("window " + str(op.window()) +
                             ", the state keeps " + str(group->window()) +
                             " positions");
    if (op.bidirectional() != (plan_.model()->embedding() != nullptr))
      return Status::invalid(op.bidirectional()
                                 ? "looks both ways in a model that generates"
                                 : "looks back alone in an encoder");
    if (op.bidirectional() && (op.window() != 0 || group->window() != 0))
      return Status::invalid("looks both ways, and has a window");
    if (auto *slopes = op.slopes()) {
      if (isCuda_)
        return Status::unsupported("slopes have no kernels for CUDA");
      if (op.bidirectional())
        return Status::invalid("looks both ways, and has slopes");
      if (slopes->size() != op.heads())
        return Status::invalid(str(slopes->size()) + " slopes of " +
                               str(op.heads()) + " heads");
      for (float slope : *slopes)
        if (!std::isfinite(slope))
          return Status::invalid("a slope is not finite");
    } else if (op.rounded_slopes()) {
      return Status::invalid("rounded slopes, and none given");
    }
    std::uint64_t width = std::uint64_t(op.heads()) * op.head_dim();
    INGOT_RETURN_IF_ERROR(dense("query", op.query(), width, kToken));
    INGOT_RETURN_IF_ERROR(outputs(op.output(), op.quantized(), width, kToken));
    if (isCuda_) {
      // Segments are merged in the float32 output, whoever reads it.
      if (op.output() == -1 || op.head_dim() % 8 != 0)
        return Status::invalid("an output in float32 and a head_dim in whole "
                               "eights are expected, found buffer " +
                               std::to_string(op.output()) + " and " +
                               str(op.head_dim()));
      INGOT_RETURN_IF_ERROR(checkSideKernel("split_kernel", op.split_kernel(),
                                            "attention_split"));
      return checkSideKernel("merge_kernel", op.merge_kernel(),
                             "attention_merge");
    }
    if (op.quantized() != -1) {
      std::uint32_t size = target_.buffers()->Get(op.quantized())->group();
      if (op.head_dim() % size != 0)
        return Status::invalid("quantized: groups of " + str(size) +
                               " straddle heads of " + str(op.head_dim()));
    }
    return Status::ok();
  }

  Status check(const fbs::GatherRows &op) {
    INGOT_RETURN_IF_ERROR(dimension("width", op.width()));
    INGOT_RETURN_IF_ERROR(dense("input", op.input(), op.width(), kToken));
    return dense("output", op.output(), op.width(), kLogitRow);
  }

  // The pooling of an encoder's plan is what its description says.
  Status check(const fbs::Pool &op) {
    INGOT_RETURN_IF_ERROR(dimension("width", op.width()));
    const fbs::EmbeddingInfo *embedding = plan_.model()->embedding();
    if (!embedding || plan_.states()->size() == 0)
      return Status::invalid("pools in a model that generates");
    if (op.kind() != embedding->pooling() ||
        op.normalize() != embedding->normalized())
      return Status::invalid("pools otherwise than the model says");
    INGOT_RETURN_IF_ERROR(dense("input", op.input(), op.width(), kToken));
    return dense("output", op.output(), op.width(), kLogitRow);
  }

  const fbs::Plan &plan_;
  const fbs::Target &target_;
  const bool isCuda_;
};

} // namespace

namespace {

Status verifySegment(const fbs::ProgramSegment &segment,
                     const fbs::Target &target, LaunchVerifier &verifier) {
  if (!segment.name() || !segment.launches())
    return Status::invalid("segment: name or launches is missing");
  for (int index : {segment.input(), segment.output()})
    if (index < -1 || index >= std::int64_t(target.buffers()->size()))
      return Status::invalid("segment \"" + segment.name()->str() +
                             "\": cut at buffer " + std::to_string(index) +
                             " of " + str(target.buffers()->size()));
  for (const fbs::Launch *launch : *segment.launches()) {
    if (!launch->name())
      return Status::invalid("segment \"" + segment.name()->str() +
                             "\": a launch without a name");
    if (Status status = verifier.verify(*launch); !status)
      return status.withContext("launch \"" + launch->name()->str() + "\"");
  }
  return Status::ok();
}

bool writesLogits(const fbs::ProgramSegment &head, const fbs::Target &target) {
  for (const fbs::Launch *launch : *head.launches()) {
    auto *linear = launch->params_as_Linear();
    auto *cap = launch->params_as_Cap();
    if ((linear && linear->output() == target.logits()) ||
        (cap && cap->output() == target.logits()))
      return true;
  }
  return false;
}

// What the executor will copy out of and into a cut, and run behind it.
Status verifyExit(const fbs::Exit &exit, const fbs::Exit *before,
                  const fbs::Plan &plan, const fbs::Target &target,
                  LaunchVerifier &verifier) {
  if (!exit.name() || !exit.head())
    return Status::invalid("name or head is missing");
  if (exit.after() == 0 || exit.after() >= target.segments()->size() ||
      (before && exit.after() <= before->after()))
    return Status::invalid("after segment " + str(exit.after()) + " of " +
                           str(target.segments()->size()) +
                           ": expected one between the first and the last, "
                           "each later than the one before");
  if (exit.layers() == 0 || exit.layers() >= plan.model()->layers()->size() ||
      (before && exit.layers() <= before->layers()))
    return Status::invalid("after " + str(exit.layers()) + " layers of " +
                           str(plan.model()->layers()->size()) +
                           ": expected fewer than all, each more than the one "
                           "before");
  int cut = target.segments()->Get(exit.after() - 1)->output();
  if (cut < 0 || cut >= std::int64_t(target.buffers()->size()) ||
      target.segments()->Get(exit.after())->input() != cut)
    return Status::invalid("the segments before and behind it do not meet in "
                           "a buffer");
  const fbs::Buffer &hidden = *target.buffers()->Get(cut);
  if (hidden.domain() != fbs::Domain::token ||
      hidden.dtype() != fbs::DType::f32 ||
      hidden.row_bytes() != std::uint64_t(hidden.columns()) * 4)
    return Status::invalid("the cut is no float32 row of a token");
  if (exit.confidence()) {
    float lowest = 0;
    if (exit.confidence()->size() < 2 || exit.confidence()->size() > 256)
      return Status::invalid(str(exit.confidence()->size()) +
                             " confidences, expected 2 to 256");
    for (float entry : *exit.confidence()) {
      if (!(entry >= lowest && entry <= 1))
        return Status::invalid("confidences are not ascending within 0 and 1");
      lowest = entry;
    }
  }
  for (const fbs::ProgramSegment *segment : {exit.head(), exit.fill()})
    if (segment)
      INGOT_RETURN_IF_ERROR(verifySegment(*segment, target, verifier));
  if (!writesLogits(*exit.head(), target))
    return Status::invalid("the head does not write the logits");
  return Status::ok();
}

} // namespace

// An encoder ends with the pooling of its rows, once; it has no exits, since a
// vector is made of whole texts.
static Status verifyEncoder(const fbs::Target &target) {
  if (target.segments()->size() != 1 ||
      (target.exits() && target.exits()->size() != 0))
    return Status::invalid("an encoder has one segment and no exits");
  const auto &launches = *target.segments()->Get(0)->launches();
  std::uint32_t pools = 0;
  for (const fbs::Launch *launch : launches)
    pools += launch->params_type() == fbs::Params::Pool;
  const fbs::Pool *last =
      launches.size() == 0
          ? nullptr
          : launches.Get(launches.size() - 1)->params_as_Pool();
  if (pools != 1 || !last || last->output() != target.logits())
    return Status::invalid("an encoder ends with one launch that pools into "
                           "its vectors; found " +
                           str(pools));
  return Status::ok();
}

Status verifyLaunches(const fbs::Plan &plan, const fbs::Target &target) {
  LaunchVerifier verifier(plan, target);
  for (const fbs::ProgramSegment *segment : *target.segments())
    INGOT_RETURN_IF_ERROR(verifySegment(*segment, target, verifier));
  if (plan.model()->embedding())
    return verifyEncoder(target);
  const fbs::Exit *before = nullptr;
  if (target.exits())
    for (const fbs::Exit *exit : *target.exits()) {
      if (Status status = verifyExit(*exit, before, plan, target, verifier);
          !status)
        return status.withContext("exit \"" + textOf(exit->name()) + "\"");
      before = exit;
    }
  return Status::ok();
}

} // namespace ingot
