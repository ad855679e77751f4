// What NVRTC makes of the kernels: they compile for every tested SM without spills,
// the cache gives the same images, errors name kernel and line, and the PTX of the
// wrappers has the operands in the order of the PTX specification, which the emulator
// cannot see. Skipped where there is no NVRTC.
//
// Every kernel is compiled for one of the tested SMs, in turn;
// INGOT_TEST_ALL_SMS=1 compiles each for all of them (some minutes); with another
// value, those alone whose names hold it.
#include "compiler/codegen/cuda/CompileCuda.h"
#include "compiler/codegen/cuda/KernelSources.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>

namespace ingot::codegen {
namespace {

const std::vector<std::string> kTestedSms = {"sm_80", "sm_86", "sm_89", "sm_90",
                                             "sm_90a"};

class NvrtcTest : public testing::Test {
protected:
  void SetUp() override {
    auto opened = Nvrtc::open();
    if (!opened)
      GTEST_SKIP() << opened.status().message();
    nvrtc = std::make_unique<Nvrtc>(std::move(*opened));
  }
  std::unique_ptr<Nvrtc> nvrtc;
};

class TempFolder {
public:
  TempFolder()
      : path_(std::filesystem::temp_directory_path() /
              ("ingot-nvrtc-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }

private:
  std::filesystem::path path_;
};

bool holds(const std::vector<std::uint8_t> &image, const std::string &text) {
  return std::search(image.begin(), image.end(), text.begin(), text.end()) !=
         image.end();
}

TEST_F(NvrtcTest, NoKernelSpills) {
  const char *all = std::getenv("INGOT_TEST_ALL_SMS");
  std::vector<std::string> names = commonCudaKernels();
  if (all && all != std::string("1"))
    std::erase_if(names, [&](const std::string &name) {
      return name.find(all) == name.npos;
    });
  ASSERT_FALSE(names.empty()) << "INGOT_TEST_ALL_SMS=" << all;
  // Kernels that share an SM here are compiled together, by two threads.
  for (std::size_t turn = 0; turn < kTestedSms.size(); ++turn) {
    std::vector<std::string> own;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (all || i % kTestedSms.size() == turn)
        own.push_back(names[i]);
    CompileCudaOptions options;
    options.threads = 2;
    options.withPtx = all && turn == 0;
    auto compiled = compileCuda(std::vector{kTestedSms[turn]}, own, options);
    ASSERT_TRUE(compiled) << compiled.status().message();
    for (const CudaImage &image : compiled->levels[0].images) {
      EXPECT_EQ(image.resources.spillBytes, 0u)
          << image.kernel << " on " << kTestedSms[turn] << ": "
          << image.resources.registers << " registers";
      EXPECT_EQ(image.resources.stackBytes, 0u)
          << image.kernel << " on " << kTestedSms[turn];
      EXPECT_TRUE(holds(image.bytes, "ingot_" + image.kernel));
      if (all)
        std::printf("%-32s %-7s %3u registers\n", image.kernel.c_str(),
                    kTestedSms[turn].c_str(), image.resources.registers);
    }
  }
}

TEST_F(NvrtcTest, ImagesNameTheirTextAndCacheGivesTheSame) {
  TempFolder folder;
  CompileCudaOptions options;
  options.cacheFolder = folder.path();
  options.threads = 2;
  const std::vector<std::string> sms = {"sm_80", "sm_90a"};
  const std::vector<std::string> names = {"add", "rms_norm"};
  auto first = compileCuda(sms, names, options);
  ASSERT_TRUE(first) << first.status().message();
  EXPECT_EQ(first->compiled, 6u);
  EXPECT_EQ(first->cacheHits, 0u);
  ASSERT_EQ(first->levels.size(), 3u);
  EXPECT_EQ(first->levels[2].name, "compute_80");
  for (const CudaLevel &level : first->levels)
    for (std::size_t i = 0; i < names.size(); ++i) {
      const CudaImage &image = level.images[i];
      EXPECT_EQ(image.kernel, names[i]);
      auto kernel = cudaKernel(names[i]);
      EXPECT_EQ(image.textHash, cudaTextHash(*cudaKernelText(*kernel)));
      char mark[40];
      std::snprintf(mark, sizeof mark, "ingot_source_%016llx",
                    static_cast<unsigned long long>(image.textHash));
      EXPECT_TRUE(holds(image.bytes, mark)) << level.name;
    }
  EXPECT_TRUE(holds(first->levels[2].images[0].bytes, ".target sm_80"));

  auto second = compileCuda(sms, names, options);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->compiled, 0u);
  EXPECT_EQ(second->cacheHits, 6u);
  for (std::size_t level = 0; level < 3; ++level)
    for (std::size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(second->levels[level].images[i].bytes,
                first->levels[level].images[i].bytes);
      EXPECT_EQ(second->levels[level].images[i].resources.registers,
                first->levels[level].images[i].resources.registers);
    }

  // A damaged entry is made anew; so is one that was cut.
  std::vector<std::filesystem::path> entries;
  for (const auto &entry :
       std::filesystem::recursive_directory_iterator(folder.path()))
    if (entry.is_regular_file())
      entries.push_back(entry.path());
  ASSERT_EQ(entries.size(), 6u);
  {
    std::fstream damaged(entries[0],
                         std::ios::in | std::ios::out | std::ios::binary);
    damaged.seekp(300);
    damaged.put('\x5a');
    damaged.put('\xa5');
  }
  std::filesystem::resize_file(entries[1], 100);
  auto third = compileCuda(sms, names, options);
  ASSERT_TRUE(third);
  EXPECT_EQ(third->compiled, 2u);
  EXPECT_EQ(third->cacheHits, 4u);
}

// The kernels of a Llama-shaped model with int8 weights and a float16 head, for one
// SM and as PTX; again from the cache. The times are printed, not judged.
TEST_F(NvrtcTest, TargetsALlamaShapedModel) {
  std::vector<std::string> names = {"embed_f16",
                                    "rope_table",
                                    "rms_norm",
                                    "gated_silu",
                                    "rope_cache_write_h128_f16",
                                    "attention_h128_f16",
                                    "attention_split_h128_f16",
                                    "attention_merge",
                                    "gather_rows"};
  for (const char *encoding : {"i8g128", "f16x2"})
    for (const char *tile : {"t8", "t16", "t32", "t64", "p64"})
      names.push_back(std::string("linear_") + encoding + "_" + tile);
  TempFolder folder;
  CompileCudaOptions options;
  options.cacheFolder = folder.path();
  options.threads = 2;
  const std::vector<std::string> sms = {"sm_90a"};
  for (int turn = 0; turn < 2; ++turn) {
    const auto begin = std::chrono::steady_clock::now();
    auto compiled = compileCuda(sms, names, options);
    ASSERT_TRUE(compiled) << compiled.status().message();
    const std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(compiled->compiled, turn == 0 ? 2 * names.size() : 0);
    std::size_t bytes = 0;
    for (const CudaImage &image : compiled->levels[0].images)
      bytes += image.bytes.size();
    std::printf("%s: %zu kernels, %.2f s, %zu bytes of cubins\n",
                turn == 0 ? "compiled" : "from the cache", names.size(),
                seconds.count(), bytes);
  }
}

TEST_F(NvrtcTest, ErrorsNameKernelTargetAndLine) {
  auto text = cudaKernelText(*cudaKernel("add"));
  ASSERT_TRUE(text);
  const std::size_t at = text->find("params.residual");
  ASSERT_NE(at, std::string::npos);
  text->replace(at, 15, "params.remainder");
  auto broken =
      nvrtc->compile("add", *text, "sm_80",
                     {"--std=c++17", "--device-as-default-execution-space"});
  ASSERT_FALSE(broken);
  const std::string &message = broken.status().message();
  EXPECT_NE(message.find("CUDA kernel \"add\" for sm_80"), std::string::npos)
      << message;
  EXPECT_NE(message.find("compiler/kernels/cuda/Add.cu("), std::string::npos)
      << message;
  EXPECT_NE(message.find("remainder"), std::string::npos) << message;
}

TEST_F(NvrtcTest, UnknownTargetsAreRefusedByName) {
  for (const char *target :
       {"sm_75", "sm_999", "sm_80a", "sm_90b", "sm_", "90", "compute_80"}) {
    const std::vector<std::string> sms = {target};
    const std::vector<std::string> names = {"add"};
    auto compiled = compileCuda(sms, names, {});
    ASSERT_FALSE(compiled) << target;
    EXPECT_NE(compiled.status().message().find(target), std::string::npos)
        << compiled.status().message();
  }
  const std::vector<std::string> twice = {"sm_80", "sm_80"};
  EXPECT_FALSE(compileCuda(twice, std::vector<std::string>{"add"}, {}));
}

// ---- the wrappers as PTX ----

// A kernel that calls one wrapper with its parameters in order; each parameter is
// a register that PTX loads from ld.param.
std::string probe(const std::string &parameters, const std::string &body) {
  return *flattenCudaSource("compiler/kernels/cuda/Device.h") +
         "using namespace ingot::device;\n"
         "extern \"C\" __global__ void probe(" +
         parameters + ") {\n" + body + "\n}\n";
}

class WrapperPtx {
public:
  explicit WrapperPtx(std::string text) : text_(std::move(text)) {
    // ld.param.b32 %r1, [probe_param_3];
    const std::regex load(R"(ld\.param\.\w+\s+(%\w+), \[probe_param_(\d+)\])");
    for (std::sregex_iterator at(text_.begin(), text_.end(), load), end;
         at != end; ++at)
      parameter_[(*at)[1]] = std::stoi((*at)[2]);
    // cvta.to.global.u64 %rd2, %rd1; mov: another name of the same.
    const std::regex move(
        R"((?:cvta\.to\.\w+\.u64|mov\.\w+|cvt\.u32\.u64|cvta\.to\.shared\.u64)\s+(%\w+), (%\w+);)");
    for (std::sregex_iterator at(text_.begin(), text_.end(), move), end;
         at != end; ++at)
      if (parameter_.count((*at)[2]))
        parameter_[(*at)[1]] = parameter_[(*at)[2]];
    // st.global.b32 [%rd2+8], %r9;
    const std::regex store(
        R"(st\.global\.\w+\s+\[(%\w+)(?:\+(\d+))?\], (%\w+);)");
    for (std::sregex_iterator at(text_.begin(), text_.end(), store), end;
         at != end; ++at)
      stored_[(*at)[3]] = (*at)[2].matched ? std::stoi((*at)[2]) / 4 : 0;
  }
  // The operands of the one instruction that begins so.
  std::vector<std::string> operands(const std::string &instruction) const {
    std::size_t at = text_.find(instruction + " ");
    if (at == text_.npos)
      at = text_.find(instruction + "\t");
    if (at == text_.npos)
      return {};
    const std::string line = text_.substr(
        at + instruction.size(), text_.find(';', at) - at - instruction.size());
    std::vector<std::string> names;
    const std::regex operand(R"(%\w+|-?\d+)");
    for (std::sregex_iterator found(line.begin(), line.end(), operand), end;
         found != end; ++found)
      names.push_back(found->str());
    return names;
  }
  int parameterOf(const std::string &name) const {
    auto found = parameter_.find(name);
    return found == parameter_.end() ? -1 : found->second;
  }
  // The word of the output that a register goes to.
  int wordOf(const std::string &name) const {
    auto found = stored_.find(name);
    return found == stored_.end() ? -1 : found->second;
  }
  const std::string &text() const { return text_; }

private:
  std::string text_;
  std::map<std::string, int> parameter_, stored_;
};

class WrapperTest : public NvrtcTest {
protected:
  WrapperPtx compile(const std::string &parameters, const std::string &body) {
    auto output =
        nvrtc->compile("probe", probe(parameters, body), "compute_80",
                       {"--std=c++17", "--device-as-default-execution-space"});
    EXPECT_TRUE(output) << output.status().message();
    return WrapperPtx(
        output ? std::string(output->image.begin(), output->image.end() - 1)
               : "");
  }
};

// mma.sync.aligned.m16n8k16.row.col.dtype.f16.f16.ctype d, a, b, c
TEST_F(WrapperTest, MmaTakesDThenAThenBThenC) {
  const WrapperPtx ptx = compile(
      "uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, "
      "uint32_t b1, float c0, float c1, float c2, float c3, float *out",
      "uint32_t a[4] = {a0, a1, a2, a3}; float c[4] = {c0, c1, c2, c3};\n"
      "mmaF16(c, a, b0, b1);\n"
      "for (int i = 0; i < 4; ++i) out[i] = c[i];");
  const auto operands =
      ptx.operands("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
  ASSERT_EQ(operands.size(), 14u) << ptx.text();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(ptx.wordOf(operands[std::size_t(i)]), i) << ptx.text();
    EXPECT_EQ(ptx.parameterOf(operands[std::size_t(4 + i)]), i);
  }
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(ptx.parameterOf(operands[std::size_t(8 + i)]), 4 + i);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(ptx.parameterOf(operands[std::size_t(10 + i)]), 6 + i);
}

// ldmatrix.sync.aligned.m8n8.x4{.trans}.shared.b16 {r0, r1, r2, r3}, [p]
TEST_F(WrapperTest, LdmatrixGivesItsMatricesInOrder) {
  for (const auto &[wrapper, instruction] :
       {std::pair{"loadMatrices4", "ldmatrix.sync.aligned.m8n8.x4.shared.b16"},
        {"loadMatrices4Transposed",
         "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"}}) {
    const WrapperPtx ptx = compile(
        "uint32_t *out",
        std::string("SharedMemory memory; uint16_t *rows = "
                    "memory.take<uint16_t>(1024); uint32_t words[4];\n") +
            wrapper +
            "(words, rows + threadIdx.x * 8);\n"
            "for (int i = 0; i < 4; ++i) out[i] = words[i];");
    const auto operands = ptx.operands(instruction);
    ASSERT_EQ(operands.size(), 5u) << ptx.text();
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(ptx.wordOf(operands[std::size_t(i)]), i) << ptx.text();
    // An address in shared memory has 32 bits.
    EXPECT_TRUE(operands[4].starts_with("%r") &&
                !operands[4].starts_with("%rd"))
        << operands[4];
  }
}

// cp.async.cg.shared.global [dst], [src], 16, src-size
TEST_F(WrapperTest, CopyAsyncTakesTargetSourceAndBothSizes) {
  const WrapperPtx ptx =
      compile("const void *from, int32_t bytes",
              "SharedMemory memory; uint8_t *to = memory.take<uint8_t>(16);\n"
              "copyAsync16(to, from, bytes); commitCopies();\n"
              "waitCopies<3>(); waitCopies<0>();");
  const auto operands = ptx.operands("cp.async.cg.shared.global");
  ASSERT_EQ(operands.size(), 4u) << ptx.text();
  EXPECT_EQ(ptx.parameterOf(operands[0]), -1);
  EXPECT_EQ(ptx.parameterOf(operands[1]), 0);
  EXPECT_EQ(operands[2], "16");
  EXPECT_EQ(ptx.parameterOf(operands[3]), 1);
  const std::size_t commit = ptx.text().find("cp.async.commit_group;");
  const std::size_t three = ptx.text().find("cp.async.wait_group 3;");
  const std::size_t none = ptx.text().find("cp.async.wait_group 0;");
  EXPECT_LT(ptx.text().find("cp.async.cg"), commit);
  EXPECT_LT(commit, three);
  EXPECT_LT(three, none);
  EXPECT_NE(none, std::string::npos);
}

// cvt.rn.f16x2.f32 d, a, b: a goes to the upper half.
TEST_F(WrapperTest, PackedHalvesHaveTheSecondOnTop) {
  const WrapperPtx ptx = compile("float low, float high, uint32_t *out",
                                 "out[0] = packHalves(low, high);");
  const auto operands = ptx.operands("cvt.rn.f16x2.f32");
  ASSERT_EQ(operands.size(), 3u) << ptx.text();
  EXPECT_EQ(ptx.parameterOf(operands[1]), 1);
  EXPECT_EQ(ptx.parameterOf(operands[2]), 0);
  const WrapperPtx difference = compile("uint32_t a, uint32_t b, uint32_t *out",
                                        "out[0] = subtractHalves(a, b);");
  const auto terms = difference.operands("sub.rn.f16x2");
  ASSERT_EQ(terms.size(), 3u) << difference.text();
  EXPECT_EQ(difference.parameterOf(terms[1]), 0);
  EXPECT_EQ(difference.parameterOf(terms[2]), 1);
}

// The device does what the emulator does: every product, sum, quotient and root is
// rounded by itself and keeps its denormals. ptxas may join operations that do not say
// how they round, so each has to say it.
TEST_F(NvrtcTest, ArithmeticIsAsItIsWritten) {
  const std::vector<std::string> kernels = {"rms_norm",
                                            "layer_norm",
                                            "rope_table",
                                            "gated_gelu_tanh",
                                            "cap",
                                            "sample",
                                            "attention_merge",
                                            "rope_cache_write_h64_i8",
                                            "attention_split_h64_i8",
                                            "linear_i4g32m_t8"};
  auto made = compileCuda({}, kernels, CompileCudaOptions());
  ASSERT_TRUE(made) << made.status().message();
  ASSERT_EQ(made->levels.size(), 1u);
  const std::regex loose(
      R"((add|sub|mul)\.f(32|64)|(fma|add|sub|mul|div|sqrt|rcp)[a-z.0-9]*\.ftz|\b(div|sqrt|rcp)\.(approx|full)[a-z.0-9]*)");
  std::size_t products = 0;
  for (const CudaImage &image : made->levels[0].images) {
    const std::string ptx(image.bytes.begin(), image.bytes.end());
    std::smatch found;
    EXPECT_FALSE(std::regex_search(ptx, found, loose))
        << image.kernel << ": " << found.str();
    products += ptx.find("mul.rn.f32") != ptx.npos;
  }
  EXPECT_GT(products, kernels.size() / 2);
}

// The kernels reach shared memory as shared memory: no generic address of it.
TEST_F(NvrtcTest, SharedMemoryIsNeverReachedByGenericAddresses) {
  for (const char *name : {"linear_f16_t8", "linear_i4g32_p64",
                           "attention_h64_f16", "attention_split_h64_i8",
                           "rope_cache_write_h64_f16", "attention_merge"}) {
    auto text = cudaKernelText(*cudaKernel(name));
    ASSERT_TRUE(text);
    auto output = nvrtc->compile(
        name, *text, "compute_80",
        {"--std=c++17", "--fmad=false", "--device-as-default-execution-space"});
    ASSERT_TRUE(output) << output.status().message();
    const std::string ptx(output->image.begin(), output->image.end() - 1);
    const std::regex generic(
        R"(\b(ld|st)\.(?!shared|global|param|const|local)[^\n]*)");
    std::smatch found;
    EXPECT_FALSE(std::regex_search(ptx, found, generic))
        << name << ": " << found.str();
  }
}

} // namespace
} // namespace ingot::codegen
