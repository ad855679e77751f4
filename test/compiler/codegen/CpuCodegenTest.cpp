// What compileLevel promises: code that maps without a dynamic linker, the same
// bytes each time, vector instructions of the level where they matter, and
// errors that name what is wrong.
#include "compiler/codegen/cpu/CpuCodegen.h"
#include "compiler/codegen/cpu/CodeObject.h"
#include "compiler/codegen/cpu/KernelLimits.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>
#include <unistd.h>

namespace ingot::codegen {
namespace {

std::vector<KernelRequest>
requestsFor(const std::vector<std::pair<std::string, KernelConfig>> &configs) {
  std::vector<KernelRequest> requests;
  for (const auto &[op, config] : configs) {
    auto variants = variantsFor(op, config);
    EXPECT_TRUE(variants.isOk()) << variants.status().message();
    if (variants)
      for (const KernelVariant &variant : *variants)
        requests.push_back({variant.name, variant.op, variant.constants});
  }
  return requests;
}

KernelConfig linear(const std::string &encoding, std::int64_t group) {
  KernelConfig config = {{"encoding", encoding}};
  if (group)
    config["group"] = group;
  return config;
}

// All that a small decoder model with int8 weights needs.
std::vector<KernelRequest> modelRequests() {
  return requestsFor(
      {{"embed", {{"encoding", "i8"}, {"group", 32}}},
       {"rope_table", {}},
       {"rms_norm", {{"group", 32}, {"bits", 16}}},
       {"linear", linear("i8", 32)},
       {"rope_cache_write", {{"head_dim", 64}, {"kv", "f16"}}},
       {"attention",
        {{"head_dim", 64}, {"kv", "f16"}, {"group", 32}, {"bits", 16}}},
       {"gated", {{"activation", "silu"}, {"group", 32}, {"bits", 16}}},
       {"gather_rows", {}}});
}

// The disassembly of one kernel, by llvm-objdump.
std::string disassemble(const CompiledLevel &level, const std::string &kernel) {
  std::string path = testing::TempDir() + "ingot-codegen-XXXXXX";
  const int file = mkstemp(path.data());
  EXPECT_GE(file, 0);
  EXPECT_EQ(write(file, level.elf.data(), level.elf.size()),
            static_cast<ssize_t>(level.elf.size()));
  close(file);
  const std::string command = std::string(INGOT_OBJDUMP) +
                              " -d --no-show-raw-insn " +
                              "--disassemble-symbols=" + kernel + " " + path;
  std::string text;
  if (FILE *pipe = popen(command.c_str(), "r")) {
    char line[512];
    while (std::fgets(line, sizeof line, pipe))
      text += line;
    EXPECT_EQ(pclose(pipe), 0) << command;
  }
  std::remove(path.c_str());
  return text;
}

// The innermost loops of a disassembly: texts from a jump's target to the jump,
// that hold no smaller one.
std::vector<std::string> innermostLoops(const std::string &text) {
  std::vector<std::pair<unsigned long, std::string>> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    unsigned long address;
    if (std::sscanf(line.c_str(), " %lx:", &address) == 1)
      lines.push_back({address, line});
  }
  std::vector<std::pair<std::size_t, std::size_t>> loops;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    unsigned long target;
    const std::size_t jump = lines[i].second.find("\tj");
    const std::size_t hex =
        jump == std::string::npos ? jump : lines[i].second.find("0x", jump);
    if (hex == std::string::npos ||
        std::sscanf(lines[i].second.c_str() + hex, "%lx", &target) != 1)
      continue;
    for (std::size_t j = 0; j <= i; ++j)
      if (lines[j].first == target)
        loops.push_back({j, i});
  }
  std::vector<std::string> texts;
  for (const auto &[begin, end] : loops) {
    bool inner = true;
    for (const auto &[otherBegin, otherEnd] : loops)
      inner = inner && !(otherBegin >= begin && otherEnd <= end &&
                         (otherBegin != begin || otherEnd != end));
    std::string body;
    for (std::size_t i = begin; i <= end; ++i)
      body += lines[i].second + "\n";
    if (inner)
      texts.push_back(body);
  }
  return texts;
}

class LevelCodegenTest : public ::testing::TestWithParam<std::string> {};

TEST_P(LevelCodegenTest, CodeMapsWithoutALinker) {
  const std::vector<KernelRequest> requests = modelRequests();
  auto level = compileLevel(GetParam(), requests);
  ASSERT_TRUE(level.isOk()) << level.status().message();
  EXPECT_EQ(level->mapOffset, 0u);
  EXPECT_EQ(level->mapVaddr, 0u);
  EXPECT_LE(level->mapSize, level->elf.size());
  EXPECT_GT(level->ehFrameSize, 0u);
  ASSERT_EQ(level->kernels.size(), requests.size());
  std::set<std::uint64_t> offsets;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(level->kernels[i].name, requests[i].name);
    EXPECT_LE(level->kernels[i].offset + level->kernels[i].size,
              level->mapSize);
    offsets.insert(level->kernels[i].offset);
  }
  EXPECT_EQ(offsets.size(), requests.size());
  EXPECT_LE(requests.size(), 64u);
}

TEST_P(LevelCodegenTest, SameRequestsGiveTheSameBytes) {
  const std::vector<KernelRequest> requests =
      requestsFor({{"gather_rows", {}},
                   {"quantize", {{"group", 32}, {"bits", 8}}},
                   {"rms_norm", {{"group", 32}, {"bits", 16}}}});
  auto first = compileLevel(GetParam(), requests, 2);
  auto second = compileLevel(GetParam(), requests, 1);
  ASSERT_TRUE(first.isOk() && second.isOk());
  EXPECT_EQ(first->elf, second->elf);
}

// The sources' limits are the catalog's.
TEST_P(LevelCodegenTest, LargestConstantsCompile) {
  auto level = compileLevel(
      GetParam(),
      requestsFor({{"quantize", {{"group", kLargestGroup}, {"bits", 8}}},
                   {"quantize", {{"group", kLargestWideGroup}, {"bits", 16}}},
                   {"linear", linear("i8", kLargestWideGroup)},
                   {"rope_cache_write",
                    {{"head_dim", kLargestHeadDim}, {"kv", "f32"}}}}));
  EXPECT_TRUE(level.isOk()) << level.status().message();
}

INSTANTIATE_TEST_SUITE_P(Levels, LevelCodegenTest,
                         ::testing::Values("x86-64-v3", "avx512-vnni"),
                         [](const auto &info) {
                           return std::string(
                               info.param == "x86-64-v3" ? "v3" : "avx512");
                         });

TEST(CpuCodegenTest, VnniIsInTheInnerLoopsOfLinear) {
  for (const auto &[encoding, instruction] :
       {std::pair{"i8", "vpdpwssd"}, {"i4", "vpdpbusd"}}) {
    const std::vector<KernelRequest> requests =
        requestsFor({{"linear", linear(encoding, 128)}});
    auto level = compileLevel("avx512-vnni", requests);
    ASSERT_TRUE(level.isOk()) << level.status().message();
    for (const KernelRequest &request : requests) {
      int loops = 0;
      for (const std::string &loop :
           innermostLoops(disassemble(*level, request.name))) {
        const bool dot = loop.find(instruction) != std::string::npos &&
                         loop.find("%zmm") != std::string::npos;
        loops += dot;
        // No spills beside the dot products.
        if (dot)
          EXPECT_EQ(loop.find("(%rsp), %zmm"), std::string::npos)
              << request.name << "\n"
              << loop;
      }
      EXPECT_GT(loops, 0) << request.name;
    }
  }
}

TEST(CpuCodegenTest, TheBaselineNeverSaturatesInt8) {
  const std::vector<KernelRequest> requests =
      requestsFor({{"linear", linear("i8", 32)}});
  auto level = compileLevel("x86-64-v3", requests);
  ASSERT_TRUE(level.isOk()) << level.status().message();
  for (const KernelRequest &request : requests) {
    const std::string text = disassemble(*level, request.name);
    EXPECT_NE(text.find("vpmaddwd"), std::string::npos);
    EXPECT_EQ(text.find("vpmaddubsw"), std::string::npos);
  }
}

TEST(CpuCodegenTest, ErrorsNameWhatIsWrong) {
  auto message = [](const Result<CompiledLevel> &result) {
    return result.status().message();
  };
  EXPECT_EQ(message(compileLevel("mmx", modelRequests())),
            "unknown CPU level \"mmx\"; known: x86-64-v3, avx512-vnni");
  EXPECT_EQ(message(compileLevel("x86-64-v3", {})),
            "level x86-64-v3: no kernels to compile");
  EXPECT_EQ(message(compileLevel("x86-64-v3", {{"A b", "gather_rows", {}}})),
            "kernel name \"A b\": expected [a-z0-9_]+");
  EXPECT_EQ(message(compileLevel("x86-64-v3", {{"a", "gather_rows", {}},
                                               {"a", "rope_table", {}}})),
            "kernel name \"a\" is used twice");
  EXPECT_EQ(message(compileLevel("x86-64-v3", {{"a", "softmax", {}}})),
            "no CPU kernel for the operation \"softmax\"");
}

TEST(KernelCatalogTest, RangesCoverAllCounts) {
  auto variants = variantsFor("linear", linear("i4", 32));
  ASSERT_TRUE(variants.isOk());
  std::uint32_t next = 1;
  for (const KernelVariant &variant : *variants) {
    EXPECT_EQ(variant.first, next);
    next = variant.last + 1;
  }
  EXPECT_EQ(variants->back().last, 0u);
  EXPECT_EQ((*variants)[0].name, "linear_i4g32_t1");
  EXPECT_EQ(variants->size(), 3u);
}

TEST(KernelCatalogTest, NamesFollowTheGrammar) {
  auto nameOf = [](const std::string &op, const KernelConfig &config) {
    auto variants = variantsFor(op, config);
    return variants ? variants->front().name : variants.status().message();
  };
  EXPECT_EQ(nameOf("embed", {{"encoding", "f16"}}), "embed_f16");
  EXPECT_EQ(
      nameOf("embed", {{"encoding", "i4"}, {"group", 64}, {"minimum", 1}}),
      "embed_i4g64m");
  EXPECT_EQ(nameOf("rms_norm", {}), "rms_norm_f32");
  EXPECT_EQ(nameOf("quantize", {{"group", 128}, {"bits", 16}}),
            "quantize_q16g128");
  EXPECT_EQ(nameOf("gated",
                   {{"activation", "gelu_tanh"}, {"group", 32}, {"bits", 8}}),
            "gated_gelu_tanh_q8g32");
  EXPECT_EQ(
      nameOf("activate", {{"activation", "relu"}, {"group", 64}, {"bits", 16}}),
      "activate_relu_q16g64");
  EXPECT_EQ(nameOf("layer_norm", {{"group", 128}, {"bits", 8}}),
            "layer_norm_q8g128");
  EXPECT_EQ(nameOf("add", {}), "add");
  EXPECT_EQ(nameOf("cap", {}), "cap");
  EXPECT_EQ(nameOf("attention", {{"head_dim", 80}, {"kv", "f32"}}),
            "attention_h80_f32_f32");
  EXPECT_EQ(
      nameOf("attention",
             {{"head_dim", 64}, {"kv", "i8"}, {"group", 32}, {"bits", 8}}),
      "attention_h64_i8_q8g32");
  EXPECT_EQ(nameOf("rope_cache_write", {{"head_dim", 8}, {"kv", "i8"}}),
            "rope_cache_write_h8_i8");
}

TEST(KernelCatalogTest, RefusesWhatHasNoKernel) {
  auto message = [](const std::string &op, const KernelConfig &config) {
    return variantsFor(op, config).status().message();
  };
  EXPECT_EQ(message("linear", {{"encoding", "i8"}}),
            "kernel linear: needs \"group\"");
  EXPECT_EQ(message("quantize", {{"group", 40}, {"bits", 8}}),
            "kernel quantize: \"group\": expected a multiple of 32 up to 1024, "
            "found 40");
  EXPECT_EQ(message("quantize", {{"group", 512}, {"bits", 16}}),
            "kernel quantize: \"group\": expected a multiple of 32 up to 256, "
            "found 512");
  EXPECT_EQ(message("linear", {{"encoding", "i8"}, {"group", 512}}),
            "kernel linear: \"group\": expected a multiple of 32 up to 256, "
            "found 512");
  EXPECT_EQ(message("rms_norm", {{"group", 32}}),
            "kernel rms_norm: needs \"bits\"");
  EXPECT_EQ(
      message("rms_norm", {{"group", 32}, {"bits", 12}}),
      "kernel rms_norm: \"bits\": expected 8 or 16 with a group, found 12");
  EXPECT_EQ(message("layer_norm", {{"group", 32}}),
            "kernel layer_norm: needs \"bits\"");
  EXPECT_EQ(message("activate",
                    {{"activation", "silu"}, {"group", 512}, {"bits", 16}}),
            "kernel activate: \"group\": expected a multiple of 32 up to 256, "
            "found 512");
  EXPECT_EQ(message("gated", {{"activation", "silu"}, {"bits", 8}}),
            "kernel gated: \"bits\": expected 8 or 16 with a group, found 8");
  EXPECT_EQ(message("linear", {{"encoding", "i3"}}),
            "kernel linear: \"encoding\": expected one of f32, f16, bf16, i8, "
            "i4, found \"i3\"");
  EXPECT_EQ(
      message("linear", {{"encoding", "i8"}, {"group", 32}, {"minimum", 1}}),
      "kernel linear: \"minimum\": expected 0, or 1 for i4, found 1 for i8");
  EXPECT_EQ(message("gather_rows", {{"width", 4}}),
            "kernel gather_rows: unknown key \"width\"");
  EXPECT_EQ(message("attention", {{"head_dim", 64}, {"kv", "i4"}}),
            "kernel attention: \"kv\": expected one of f32, f16, i8, found "
            "\"i4\"");
  EXPECT_EQ(message("attention", {{"head_dim", 20}, {"kv", "f16"}}),
            "kernel attention: \"head_dim\": expected a multiple of 8 up to "
            "512, found 20");
  EXPECT_EQ(
      message("attention",
              {{"head_dim", 64}, {"kv", "f16"}, {"group", 128}, {"bits", 8}}),
      "kernel attention: \"group\": 128 does not divide a head of 64; a "
      "quantize launch "
      "must follow");
}

// The checks on objects can fail: an object with an import or writable data.
TEST(CodeObjectTest, RefusesImportsAndWritableData) {
  auto build = [](const std::string &source) {
    const std::string base =
        testing::TempDir() + "ingot-object-" + std::to_string(getpid());
    std::ofstream(base + ".s") << source;
    const std::string command = std::string(INGOT_LLVM_MC) +
                                " -filetype=obj -triple=x86_64-linux-gnu " +
                                base + ".s -o " + base + ".o";
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::ifstream file(base + ".o", std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    std::remove((base + ".s").c_str());
    std::remove((base + ".o").c_str());
    return NamedObject{"k",
                       std::vector<std::uint8_t>(bytes.begin(), bytes.end())};
  };
  EXPECT_EQ(checkObject(build("call memcpy\n")).message(),
            "kernel k: needs the outside symbol \"memcpy\"");
  EXPECT_EQ(checkObject(build(".data\n.long 1\n")).message(),
            "kernel k: has writable data (section .data, 4 bytes)");
  EXPECT_EQ(
      checkObject(build(".section .init_array,\"aw\",@init_array\n.quad 0\n"))
          .message(),
      "kernel k: has constructors (section .init_array)");
  EXPECT_TRUE(checkObject(build("ret\n")).isOk());
  EXPECT_FALSE(checkObject({"k", {1, 2, 3}}).isOk());
}

} // namespace
} // namespace ingot::codegen
