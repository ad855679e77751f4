#include "test/runtime/plan/TinyCudaArtifact.h"

#include "runtime/plan/CudaAbi.h"

#include <algorithm>
#include <cstring>
#include <elf.h>

namespace ingot::test {
namespace {

constexpr const char *kSourceMark = "ingot_source_";

// Puts a cubin and a text of each kernel into the code of the two levels.
void addCudaCode(TinyArtifact &tiny) {
  fbs::TargetT &target = *tiny.plan.targets[0];
  tiny.code.clear();
  target.levels.clear();
  for (auto &kernel : target.kernels) {
    kernel->source_hash = "0123456789abcde0";
    kernel->source_hash.back() =
        "0123456789abcdef"[std::size_t(&kernel - &target.kernels[0]) % 16];
    kernel->symbols.clear();
  }
  for (const char *name : {"sm_90", "compute_80"}) {
    auto level = std::make_unique<fbs::LevelT>();
    level->name = name;
    level->driver_version = 12000;
    level->code_offset = tiny.code.size();
    std::uint64_t end = 0;
    for (auto &kernel : target.kernels) {
      auto image = name[0] == 's' ? tinyCubin(kernel->source_hash)
                                  : tinyPtx(kernel->source_hash);
      auto symbol = std::make_unique<fbs::KernelSymbolT>();
      symbol->level = std::uint32_t(target.levels.size());
      symbol->offset = end;
      symbol->size = image.size();
      kernel->symbols.push_back(std::move(symbol));
      tiny.code.resize(level->code_offset + end);
      tiny.code.insert(tiny.code.end(), image.begin(), image.end());
      end = (end + image.size() + 63) / 64 * 64;
    }
    level->code_size = (end + container::kPageBytes - 1) /
                       container::kPageBytes * container::kPageBytes;
    tiny.code.resize(level->code_offset + level->code_size);
    target.levels.push_back(std::move(level));
  }
}

} // namespace

std::vector<std::uint8_t> tinyCubin(const std::string &sourceHash) {
  std::string name = kSourceMark + sourceHash;
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = EM_CUDA;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 1;
  header.e_shoff = sizeof header;
  Elf64_Shdr section{};
  section.sh_type = SHT_STRTAB;
  section.sh_offset = sizeof header + sizeof section;
  section.sh_size = name.size() + 1;
  std::vector<std::uint8_t> bytes(section.sh_offset + section.sh_size);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, &section, sizeof section);
  std::copy(name.begin(), name.end(),
            bytes.begin() + std::ptrdiff_t(section.sh_offset));
  return bytes;
}

std::vector<std::uint8_t> tinyPtx(const std::string &sourceHash) {
  std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n"
                     ".global .b8 " +
                     (kSourceMark + sourceHash) + ";\n";
  std::vector<std::uint8_t> bytes(text.begin(), text.end());
  bytes.push_back(0);
  return bytes;
}

TinyArtifact tinyCudaArtifact() {
  TinyArtifact tiny = TinyArtifact::make();
  fbs::TargetT &target = *tiny.plan.targets[0];
  target.name = "cuda";
  target.weight_layout = "mma16";
  for (auto &weight : tiny.plan.weights)
    if (weight->layout == "r16") {
      weight->layout = "mma16";
      weight->encoding->code = fbs::WeightCode::f16;
    }
  tiny.plan.states[0]->dtype = fbs::DType::f16;
  for (auto &kernel : target.kernels) {
    kernel->block_threads = 128;
    kernel->tile_rows = kernel->tile_tokens = 16;
  }
  auto addKernel = [&](const char *op) {
    auto kernel = std::make_unique<fbs::KernelT>(*target.kernels[0]);
    kernel->name = kernel->op = op;
    target.kernels.push_back(std::move(kernel));
    return int(target.kernels.size()) - 1;
  };
  int split = addKernel("attention_split"),
      merge = addKernel("attention_merge");
  auto halves = [&](std::uint32_t columns, fbs::Domain domain) {
    std::uint64_t &end = domain == fbs::Domain::token
                             ? target.token_arena_bytes
                             : target.logit_row_arena_bytes;
    end = (end + 63) / 64 * 64;
    auto buffer = std::make_unique<fbs::BufferT>();
    buffer->name = "halves" + std::to_string(target.buffers.size());
    buffer->domain = domain;
    buffer->dtype = fbs::DType::f16;
    buffer->columns = columns;
    buffer->row_bytes = std::uint64_t(abi::halfRowBytes(columns));
    buffer->scales_offset = std::uint32_t(abi::halfRowScaleOffset(columns));
    buffer->offset = end;
    end += buffer->row_bytes;
    target.buffers.push_back(std::move(buffer));
    return int(target.buffers.size()) - 1;
  };
  std::vector<std::unique_ptr<fbs::LaunchT>> launches;
  for (auto &launch : target.segments[0]->launches) {
    if (auto *attention = launch->params.AsAttention()) {
      attention->split_kernel = split;
      attention->merge_kernel = merge;
    }
    if (launch->params.AsQuantize())
      continue;
    if (auto *linear = launch->params.AsLinear()) {
      fbs::QuantizeT quantize;
      quantize.input = linear->input;
      quantize.width = linear->k;
      quantize.domain = linear->domain;
      quantize.output = linear->input = halves(linear->k, linear->domain);
      auto made = std::make_unique<fbs::LaunchT>();
      made->name = launch->name + ".halves";
      made->params.Set(std::move(quantize));
      made->variants.push_back(std::make_unique<fbs::VariantT>());
      made->variants[0]->first = 1;
      made->variants[0]->kernel = kQuantize;
      launches.push_back(std::move(made));
    }
    launches.push_back(std::move(launch));
  }
  target.segments[0]->launches = std::move(launches);
  // Nothing has codes any more; the buffer that had them takes halves' place.
  for (auto &buffer : target.buffers)
    if (buffer->dtype == fbs::DType::i8) {
      buffer->dtype = fbs::DType::f32;
      buffer->columns = 1;
      buffer->scales_offset = buffer->sums_offset = buffer->group = 0;
    }
  addCudaCode(tiny);
  return tiny;
}

} // namespace ingot::test
