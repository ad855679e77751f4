#include "runtime/plan/VerifyPlan.h"

#include "runtime/plan/Container.h"
#include "runtime/plan/CudaAbi.h"
#include "runtime/plan/KernelAbi.h"

#include <algorithm>
#include <set>
#include <string>

namespace ingot {
namespace {

std::string str(std::uint64_t value) { return std::to_string(value); }

std::uint64_t roundUp(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

bool isInside(std::uint64_t offset, std::uint64_t size, std::uint64_t bound) {
  return offset <= bound && size <= bound - offset;
}

std::string nameOf(const flatbuffers::String *name) {
  return name ? "\"" + name->str() + "\"" : "without a name";
}

Status checkDimension(const std::string &what, std::uint64_t value) {
  if (value == 0 || value > kMaxDimension)
    return Status::invalid(what + " is " + str(value) + ", expected 1 to " +
                           str(kMaxDimension));
  return Status::ok();
}

Status checkModel(const fbs::ModelInfo &model) {
  if (!model.family() || !model.name() || !model.architecture() ||
      !model.layers())
    return Status::invalid(
        "model: family, name, architecture or layers is missing");
  INGOT_RETURN_IF_ERROR(checkDimension("model: vocab", model.vocab()));
  INGOT_RETURN_IF_ERROR(checkDimension("model: hidden", model.hidden()));
  INGOT_RETURN_IF_ERROR(checkDimension("model: context", model.context()));
  if (model.bos() < -1 || model.bos() >= std::int64_t(model.vocab()))
    return Status::invalid("model: bos " + std::to_string(model.bos()) +
                           " is outside the vocabulary of " +
                           str(model.vocab()));
  for (std::int32_t id : listOf(model.eos()))
    if (id < 0 || id >= std::int64_t(model.vocab()))
      return Status::invalid("model: eos " + std::to_string(id) +
                             " is outside the vocabulary of " +
                             str(model.vocab()));
  if (model.embedding() && model.embedding()->pooling() > fbs::PoolKind::last)
    return Status::invalid("model: pooling is unknown");
  return Status::ok();
}

Status checkWeight(const fbs::Weight &weight, std::uint64_t weightsBytes) {
  if (!weight.name() || !weight.layout() || !weight.encoding())
    return Status::invalid("name, layout or encoding is missing");
  INGOT_RETURN_IF_ERROR(checkDimension("rows", weight.rows()));
  INGOT_RETURN_IF_ERROR(checkDimension("columns", weight.columns()));
  const fbs::Encoding &encoding = *weight.encoding();
  if (encoding.code() > fbs::WeightCode::i4)
    return Status::invalid("encoding code " +
                           str(static_cast<unsigned>(encoding.code())) +
                           " is unknown");
  bool integer = encoding.code() >= fbs::WeightCode::i8;
  if (integer ? (encoding.group() == 0 || encoding.group() % 32 != 0 ||
                 encoding.group() > kMaxDimension)
              : (encoding.group() != 0 || encoding.minimum()))
    return Status::invalid(
        "encoding group " + str(encoding.group()) +
        (integer ? ", expected a positive multiple of 32"
                 : ", expected 0 and no minimum for float codes"));
  auto layout = weight.layout()->string_view();
  if (layout == "row") {
    if (encoding.code() != fbs::WeightCode::f32)
      return Status::invalid("layout \"row\" holds f32 only");
  } else if (layout == "mma16") {
    if (encoding.code() == fbs::WeightCode::f32)
      return Status::invalid("layout \"mma16\" holds no f32");
  } else if (layout != "r16") {
    return Status::unsupported(
        "layout \"" + std::string(layout) +
        "\" is unknown, expected \"r16\", \"mma16\" or \"row\"");
  }
  if (!isInside(weight.offset(), weight.size(), weightsBytes))
    return Status::invalid("offset " + str(weight.offset()) + " and size " +
                           str(weight.size()) + " leave the weights (" +
                           str(weightsBytes) + " bytes)");
  if (weight.offset() % container::kTensorAlignment != 0)
    return Status::invalid("offset " + str(weight.offset()) +
                           " is not aligned to 64");
  PlaneBytes planes = weightPlaneBytes(weight);
  if (planes.codes > weight.size())
    return Status::invalid("size " + str(weight.size()) +
                           ", its codes alone take " + str(planes.codes));
  auto checkPlane = [&](const char *name, std::uint64_t offset,
                        bool wanted) -> Status {
    if (!wanted)
      return offset == 0 ? Status::ok()
                         : Status::invalid(std::string(name) +
                                           " given, the encoding has none");
    if (offset < planes.codes ||
        !isInside(offset, planes.scales, weight.size()) ||
        offset % container::kTensorAlignment != 0)
      return Status::invalid(
          std::string(name) + " at " + str(offset) + " (" + str(planes.scales) +
          " bytes): expected 64-byte aligned, after the "
          "codes (" +
          str(planes.codes) + ") and inside " + str(weight.size()));
    return Status::ok();
  };
  INGOT_RETURN_IF_ERROR(
      checkPlane("scales_offset", weight.scales_offset(), integer));
  return checkPlane("mins_offset", weight.mins_offset(), encoding.minimum());
}

Status checkState(const fbs::StateGroup &state) {
  if (!state.name())
    return Status::invalid("name is missing");
  INGOT_RETURN_IF_ERROR(checkDimension("layers", state.layers()));
  INGOT_RETURN_IF_ERROR(checkDimension("kv_heads", state.kv_heads()));
  INGOT_RETURN_IF_ERROR(checkDimension("head_dim", state.head_dim()));
  std::uint64_t element = state.dtype() == fbs::DType::f32   ? 4
                          : state.dtype() == fbs::DType::f16 ? 2
                          : state.dtype() == fbs::DType::i8  ? 1
                                                             : 0;
  if (element == 0)
    return Status::unsupported("dtype, expected f32, f16 or i8");
  if (state.block_tokens() != std::uint32_t(abi::kBlockTokens))
    return Status::unsupported("block_tokens " + str(state.block_tokens()) +
                               ", expected " + str(abi::kBlockTokens));
  if (state.window() > kMaxDimension)
    return Status::invalid("window " + str(state.window()) +
                           " is out of range");
  std::uint64_t width = std::uint64_t(state.kv_heads()) * state.head_dim();
  INGOT_RETURN_IF_ERROR(checkDimension("kv_heads * head_dim", width));
  std::uint64_t half =
      state.kv_heads() *
      std::uint64_t(abi::kvHeadBytes(state.head_dim(), std::int64_t(element)));
  if (state.value_offset() < half || state.value_offset() % 64 != 0 ||
      !isInside(state.value_offset(), half, state.layer_block_bytes()) ||
      state.layer_block_bytes() % 64 != 0 ||
      state.layer_block_bytes() > kMaxRowBytes)
    return Status::invalid("value_offset " + str(state.value_offset()) +
                           " and layer_block_bytes " +
                           str(state.layer_block_bytes()) +
                           " do not hold keys and values of " + str(half) +
                           " bytes each, 64-byte aligned");
  return Status::ok();
}

Status checkLevel(const fbs::Level &level, const fbs::Target &target,
                  std::uint64_t codeBytes) {
  if (!level.name())
    return Status::invalid("name is missing");
  if (!isInside(level.code_offset(), level.code_size(), codeBytes) ||
      level.code_offset() % container::kPageBytes != 0)
    return Status::invalid("code_offset " + str(level.code_offset()) +
                           " and code_size " + str(level.code_size()) +
                           ": expected page-aligned, inside the code (" +
                           str(codeBytes) + " bytes)");
  if (isCuda(target)) {
    if (!CudaLevel::parse(level.name()->string_view()))
      return Status::unsupported("is neither sm_N nor compute_N");
    return Status::ok();
  }
  if (level.map_size() == 0 ||
      !isInside(level.map_offset(), level.map_size(), level.code_size()) ||
      level.map_offset() % container::kPageBytes != 0)
    return Status::invalid("map_offset " + str(level.map_offset()) +
                           " and map_size " + str(level.map_size()) +
                           ": expected page-aligned, inside the level (" +
                           str(level.code_size()) + " bytes)");
  if (level.eh_frame_size() != 0 &&
      (level.eh_frame_offset() < level.map_offset() ||
       !isInside(level.eh_frame_offset() - level.map_offset(),
                 level.eh_frame_size(), level.map_size())))
    return Status::invalid("eh_frame at " + str(level.eh_frame_offset()) +
                           " is outside the mapped range");
  return Status::ok();
}

// What a launch may be asked for on every chip (CUDA's limits of a block), and what
// keeps the product of a grid within 31 bits.
Status checkGeometry(const fbs::Kernel &kernel) {
  if (kernel.block_threads() == 0 || kernel.block_threads() > 1024 ||
      kernel.block_threads() % 32 != 0 || kernel.shared_bytes() > 227 * 1024)
    return Status::invalid(
        "blocks of " + str(kernel.block_threads()) + " threads with " +
        str(kernel.shared_bytes()) +
        " bytes of shared memory, expected whole warps up to 1024 threads and "
        "at most 227 KiB");
  if (kernel.tile_rows() == 0 || kernel.tile_rows() > 1024 ||
      kernel.tile_tokens() == 0 || kernel.tile_tokens() > 1024)
    return Status::invalid("a tile of " + str(kernel.tile_rows()) + " x " +
                           str(kernel.tile_tokens()) +
                           ", expected 1 to 1024 each");
  return Status::ok();
}

// The hash of a kernel's text.
Status checkSourceHash(const fbs::Kernel &kernel) {
  std::string_view hash =
      kernel.source_hash() ? kernel.source_hash()->string_view() : "";
  if (hash.size() != 16 ||
      hash.find_first_not_of("0123456789abcdef") != hash.npos)
    return Status::invalid("source hash \"" + std::string(hash) +
                           "\", expected 16 hexadecimal digits");
  return Status::ok();
}

Status checkKernel(const fbs::Kernel &kernel, const fbs::Target &target) {
  if (!kernel.name() || !kernel.op() || !kernel.symbols())
    return Status::invalid("name, op or symbols is missing");
  if (isCuda(target)) {
    INGOT_RETURN_IF_ERROR(checkGeometry(kernel));
    INGOT_RETURN_IF_ERROR(checkSourceHash(kernel));
  }
  if (kernel.scratch_bytes() > (1u << 30))
    return Status::invalid("scratch_bytes " + str(kernel.scratch_bytes()) +
                           " is above 1 GiB");
  std::set<std::uint32_t> seen;
  for (const fbs::KernelSymbol *symbol : *kernel.symbols()) {
    if (symbol->level() >= target.levels()->size())
      return Status::invalid("symbol of level " + str(symbol->level()) +
                             ", the target has " +
                             str(target.levels()->size()));
    if (!seen.insert(symbol->level()).second)
      return Status::invalid("two symbols of level " + str(symbol->level()));
    const fbs::Level &level = *target.levels()->Get(symbol->level());
    if (isCuda(target)) {
      if (symbol->size() < 4 ||
          !isInside(symbol->offset(), symbol->size(), level.code_size()))
        return Status::invalid(
            "image at " + str(symbol->offset()) + " (" + str(symbol->size()) +
            " bytes) is outside the code of level " + nameOf(level.name()));
      if (symbol->offset() % container::kTensorAlignment != 0)
        return Status::invalid("image at " + str(symbol->offset()) +
                               " is not aligned to 64");
      continue;
    }
    if (symbol->size() == 0 || symbol->offset() < level.map_offset() ||
        !isInside(symbol->offset() - level.map_offset(), symbol->size(),
                  level.map_size()))
      return Status::invalid(
          "symbol at " + str(symbol->offset()) + " (" + str(symbol->size()) +
          " bytes) is outside the code of level " + nameOf(level.name()));
  }
  if (seen.size() != target.levels()->size())
    return Status::invalid("symbols for " + str(seen.size()) + " of " +
                           str(target.levels()->size()) + " levels");
  return Status::ok();
}

Status checkBuffer(const fbs::Buffer &buffer, const fbs::Target &target) {
  if (!buffer.name())
    return Status::invalid("name is missing");
  if (buffer.domain() > fbs::Domain::slot)
    return Status::invalid("domain is unknown");
  INGOT_RETURN_IF_ERROR(checkDimension("columns", buffer.columns()));
  if (buffer.row_bytes() == 0 || buffer.row_bytes() > kMaxRowBytes)
    return Status::invalid("row_bytes " + str(buffer.row_bytes()) +
                           " is out of range");
  std::uint64_t arena = buffer.domain() == fbs::Domain::logit_row
                            ? target.logit_row_arena_bytes()
                            : target.token_arena_bytes();
  std::uint64_t rows =
      buffer.domain() == fbs::Domain::slot ? target.slots() : 1;
  if (!isInside(buffer.offset(), rows * buffer.row_bytes(), arena) ||
      buffer.offset() % 4 != 0)
    return Status::invalid("offset " + str(buffer.offset()) +
                           " and row_bytes " + str(buffer.row_bytes()) +
                           " leave the arena (" + str(arena) +
                           " bytes a row) or are not 4-byte aligned");
  if (buffer.dtype() == fbs::DType::f32) {
    if (buffer.row_bytes() % 4 != 0 ||
        buffer.row_bytes() < std::uint64_t(buffer.columns()) * 4)
      return Status::invalid("row_bytes " + str(buffer.row_bytes()) +
                             " do not hold " + str(buffer.columns()) +
                             " float32 columns");
    return Status::ok();
  }
  if (isCuda(target)) {
    if (buffer.dtype() != fbs::DType::f16)
      return Status::unsupported("dtype, expected f32 or f16");
    const int parts = buffer.sums_offset() == 0 ? 1 : 2;
    auto bytes = std::uint64_t(abi::halfRowBytes(buffer.columns(), parts));
    auto scale =
        std::uint64_t(abi::halfRowScaleOffset(buffer.columns(), parts));
    auto rest = std::uint64_t(abi::halfRowRestOffset(buffer.columns(), parts));
    if (buffer.offset() % 16 != 0 || buffer.row_bytes() != bytes ||
        buffer.scales_offset() != scale || buffer.sums_offset() != rest)
      return Status::invalid(
          "half rows of " + str(buffer.columns()) + " columns in " +
          str(buffer.row_bytes()) + " bytes with the second part at " +
          str(buffer.sums_offset()) + " and the scale at " +
          str(buffer.scales_offset()) + ", expected " + str(bytes) + ", " +
          str(rest) + " and " + str(scale));
    return Status::ok();
  }
  if (buffer.dtype() != fbs::DType::i8 && buffer.dtype() != fbs::DType::i16)
    return Status::unsupported("dtype, expected f32, i8 or i16");
  if (buffer.group() == 0 || buffer.group() % 32 != 0 ||
      buffer.group() > kMaxDimension)
    return Status::invalid("group " + str(buffer.group()) +
                           ", expected a positive multiple of 32");
  std::uint64_t codes = roundUp(buffer.columns(), 32) *
                        (buffer.dtype() == fbs::DType::i16 ? 2 : 1);
  std::uint64_t plane =
      roundUp(buffer.columns(), buffer.group()) / buffer.group() * 4;
  std::uint64_t scales = buffer.scales_offset(), sums = buffer.sums_offset();
  bool apart = scales + plane <= sums || sums + plane <= scales;
  if (buffer.row_bytes() % 64 != 0 || scales < codes || sums < codes ||
      scales % 4 != 0 || sums % 4 != 0 || !apart ||
      !isInside(scales, plane, buffer.row_bytes()) ||
      !isInside(sums, plane, buffer.row_bytes()))
    return Status::invalid("row of " + str(buffer.row_bytes()) +
                           " bytes with scales at " + str(scales) +
                           " and sums at " + str(sums) + " does not hold " +
                           str(buffer.columns()) + " codes and planes of " +
                           str(plane) + " bytes");
  return Status::ok();
}

Status checkTarget(const fbs::Plan &plan, const fbs::Target &target,
                   const PlanBounds &bounds) {
  if (!target.levels() || !target.kernels() || !target.buffers() ||
      !target.segments() || !target.weight_layout())
    return Status::invalid(
        "levels, kernels, buffers, segments or weight_layout is missing");
  if (target.levels()->size() == 0 || target.segments()->size() == 0)
    return Status::invalid("has no level or no segment");
  if (target.slots() == 0 || target.slots() > kMaxSlots)
    return Status::invalid("slots: " + str(target.slots()) +
                           ", expected 1 to " + str(kMaxSlots));
  if (target.token_arena_bytes() > kMaxRowBytes ||
      target.logit_row_arena_bytes() > kMaxRowBytes)
    return Status::invalid("an arena takes more than " + str(kMaxRowBytes) +
                           " bytes a row");
  for (const fbs::Level *level : *target.levels())
    if (Status status = checkLevel(*level, target, bounds.codeBytes); !status)
      return status.withContext("level " + nameOf(level->name()));
  for (const fbs::Kernel *kernel : *target.kernels())
    if (Status status = checkKernel(*kernel, target); !status)
      return status.withContext("kernel " + nameOf(kernel->name()));
  for (const fbs::Buffer *buffer : *target.buffers())
    if (Status status = checkBuffer(*buffer, target); !status)
      return status.withContext("buffer " + nameOf(buffer->name()));
  if (target.logits() < 0 ||
      std::uint32_t(target.logits()) >= target.buffers()->size())
    return Status::invalid("logits: buffer " + std::to_string(target.logits()) +
                           " of " + str(target.buffers()->size()));
  const fbs::Buffer &logits = *target.buffers()->Get(target.logits());
  if (plan.model()->embedding()) {
    if (logits.domain() != fbs::Domain::logit_row ||
        logits.dtype() != fbs::DType::f32 ||
        logits.columns() != plan.model()->hidden() ||
        logits.row_bytes() != std::uint64_t(logits.columns()) * 4)
      return Status::invalid("logits: buffer " + nameOf(logits.name()) +
                             " is not a float32 vector of " +
                             str(plan.model()->hidden()) + " for a text");
    return verifyLaunches(plan, target);
  }
  if (logits.domain() != fbs::Domain::logit_row ||
      logits.dtype() != fbs::DType::f32 ||
      logits.columns() != plan.model()->vocab())
    return Status::invalid("logits: buffer " + nameOf(logits.name()) +
                           " is not a float32 row of logits for " +
                           str(plan.model()->vocab()) + " tokens");
  return verifyLaunches(plan, target);
}

} // namespace

bool isCuda(const fbs::Target &target) {
  return target.name()->string_view() == kCudaTarget;
}

std::optional<CudaLevel> CudaLevel::parse(std::string_view name) {
  CudaLevel level;
  auto skip = [&](std::string_view prefix) {
    if (name.substr(0, prefix.size()) != prefix)
      return false;
    name.remove_prefix(prefix.size());
    return true;
  };
  level.isText = skip("compute_");
  if (!level.isText && !skip("sm_"))
    return std::nullopt;
  if (!level.isText && !name.empty() &&
      (name.back() == 'a' || name.back() == 'f')) {
    level.suffix = name.back();
    name.remove_suffix(1);
  }
  // The last digit is the minor number, one or two before it the major.
  if (name.size() < 2 || name.size() > 3 || name[0] == '0')
    return std::nullopt;
  for (char c : name)
    if (c < '0' || c > '9')
      return std::nullopt;
  level.minor = name.back() - '0';
  level.major = name[0] - '0';
  if (name.size() == 3)
    level.major = level.major * 10 + (name[1] - '0');
  return level;
}

bool CudaLevel::runsOn(int deviceMajor, int deviceMinor) const {
  if (isText)
    return deviceMajor > major ||
           (deviceMajor == major && deviceMinor >= minor);
  if (suffix == 'a')
    return deviceMajor == major && deviceMinor == minor;
  return deviceMajor == major && deviceMinor >= minor;
}

PlaneBytes weightPlaneBytes(const fbs::Weight &weight) {
  std::uint64_t rows = weight.rows(), columns = weight.columns();
  if (weight.layout()->string_view() == "row")
    return {rows * columns * 4, 0};
  const fbs::Encoding &encoding = *weight.encoding();
  std::uint64_t paddedRows = roundUp(rows, abi::kTileRows);
  // In "mma16" as in "r16", but for what K is padded to.
  bool isMma = weight.layout()->string_view() == "mma16";
  std::uint64_t paddedColumns = roundUp(columns, isMma ? abi::kCudaUnit : 32);
  PlaneBytes planes;
  switch (encoding.code()) {
  case fbs::WeightCode::f32:
    planes.codes = paddedRows * paddedColumns * 4;
    break;
  case fbs::WeightCode::f16:
  case fbs::WeightCode::bf16:
    planes.codes = paddedRows * paddedColumns * 2;
    break;
  case fbs::WeightCode::i8:
    planes.codes = paddedRows * paddedColumns;
    break;
  case fbs::WeightCode::i4:
    planes.codes = paddedRows * paddedColumns / 2;
    break;
  }
  if (encoding.group() != 0)
    planes.scales = paddedRows *
                    (roundUp(columns, encoding.group()) / encoding.group()) * 2;
  return planes;
}

Status verifyPlan(const fbs::Plan &plan, const PlanBounds &bounds) {
  if (plan.abi_version() != abi::kKernelAbiVersion)
    return Status::unsupported(
        "kernels built for ABI version " + str(plan.abi_version()) +
        ", this runtime has version " + str(abi::kKernelAbiVersion) +
        "; rebuild the artifact's code with the compiler of this release "
        "(`ingot compile`; its weights need not change)");
  if (!plan.model() || !plan.states() || !plan.weights() || !plan.targets())
    return Status::invalid(
        "plan: model, states, weights or targets is missing");
  INGOT_RETURN_IF_ERROR(checkModel(*plan.model()));
  if (plan.weights_bytes() > bounds.weightsBytes)
    return Status::invalid("plan: weights_bytes " + str(plan.weights_bytes()) +
                           ", the segment has " + str(bounds.weightsBytes));
  for (const fbs::Weight *weight : *plan.weights())
    if (Status status = checkWeight(*weight, bounds.weightsBytes); !status)
      return status.withContext("weight " + nameOf(weight->name()));
  for (const fbs::StateGroup *state : *plan.states())
    if (Status status = checkState(*state); !status)
      return status.withContext("state " + nameOf(state->name()));
  std::set<std::string> names;
  for (const fbs::Target *target : *plan.targets()) {
    if (!target->name() || !names.insert(target->name()->str()).second)
      return Status::invalid("target " + nameOf(target->name()) +
                             ": the name is missing or taken");
    if (Status status = checkTarget(plan, *target, bounds); !status)
      return status.withContext("target " + nameOf(target->name()));
  }
  return Status::ok();
}

} // namespace ingot
