// A CUDA artifact from anywhere is refused with a sentence, or runs; it never crashes
// whoever opens it, and never gives the driver an image that is not what the plan says.
#include "test/e2e/CompiledModel.h"
#include "test/e2e/StandInModel.h"
#include "test/runtime/plan/TinyArtifact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>

using namespace ingot;
using namespace ingot::test;
using testing::HasSubstr;

namespace {

using Bytes = std::vector<std::uint8_t>;

class CudaHostileTest : public testing::Test {
protected:
  void SetUp() override {
    if (std::string missing = whyNoNvrtc(); !missing.empty())
      GTEST_SKIP() << missing;
    std::string path =
        compiledModel("tiny-llama", "f16", "f16",
                      "--target cuda:sm_90,cpu --levels x86-64-v3 --table f16");
    ASSERT_FALSE(path.empty());
    std::ifstream in(path, std::ios::binary);
    file_ = {std::istreambuf_iterator<char>(in),
             std::istreambuf_iterator<char>()};
    auto artifact = Artifact::open(path);
    ASSERT_TRUE(artifact.isOk()) << artifact.status().message();
    for (const auto &segment : artifact->segments())
      segments_.push_back({segment.kind,
                           {artifact->segment(segment.kind).begin(),
                            artifact->segment(segment.kind).end()}});
    fbs::GetPlan(bytesOf(container::SegmentKind::Plan).data())
        ->UnPackTo(&plan_);
  }

  Bytes &bytesOf(container::SegmentKind kind) {
    for (RawSegment &segment : segments_)
      if (segment.kind == kind)
        return segment.bytes;
    std::abort();
  }
  fbs::TargetT &target() {
    for (auto &target : plan_.targets)
      if (target->name == "cuda")
        return *target;
    std::abort();
  }
  // Where the image of a kernel for sm_90 begins, in the code.
  std::uint64_t imageOf(std::size_t kernel) {
    return target().levels[0]->code_offset +
           target().kernels[kernel]->symbols[0]->offset;
  }

  // Opens what plan_ and segments_ say now, for the device.
  Status open(const std::string &settings = "memory=64") {
    flatbuffers::FlatBufferBuilder builder;
    fbs::FinishPlanBuffer(builder, fbs::Plan::Pack(builder, &plan_));
    bytesOf(container::SegmentKind::Plan)
        .assign(builder.GetBufferPointer(),
                builder.GetBufferPointer() + builder.GetSize());
    return openBytes(packContainer(segments_), settings);
  }
  Status openBytes(const Bytes &bytes, const std::string &settings) {
    StandInScope scope(settings);
    auto engine =
        Engine::open(folder_.write("x.ingot", bytes), deviceOptions(32));
    return engine ? Status::ok() : engine.status();
  }
  std::string refused() {
    Status status = open();
    EXPECT_FALSE(status.isOk());
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
    return status.message();
  }

  TempFolder folder_;
  Bytes file_;
  std::vector<RawSegment> segments_;
  fbs::PlanT plan_;
};

TEST_F(CudaHostileTest, asItIsItOpens) {
  Status status = open();
  EXPECT_TRUE(status.isOk()) << status.message();
}

TEST_F(CudaHostileTest, aTruncatedCubin) {
  // Its tables stand at its end.
  target().kernels[2]->symbols[0]->size -= 64;
  EXPECT_THAT(refused(), HasSubstr("of a cubin leave"));
  target().kernels[2]->symbols[0]->size = 40;
  EXPECT_THAT(refused(), HasSubstr("shorter than its header"));
}

TEST_F(CudaHostileTest, theImageOfAnotherKernel) {
  auto &kernels = target().kernels;
  std::swap(kernels[1]->symbols[0]->offset, kernels[2]->symbols[0]->offset);
  std::swap(kernels[1]->symbols[0]->size, kernels[2]->symbols[0]->size);
  EXPECT_THAT(refused(), HasSubstr("was not compiled of the text " +
                                   kernels[1]->source_hash));
}

TEST_F(CudaHostileTest, anotherHash) {
  std::string &hash = target().kernels[1]->source_hash;
  std::string before = hash;
  hash = "0123456789abcdef";
  EXPECT_THAT(refused(), HasSubstr("was not compiled of the text "
                                   "0123456789abcdef that the plan names"));
  // In the image too, it is a text that the stand-in driver has no kernel of.
  Bytes &code = bytesOf(container::SegmentKind::Code);
  std::string mark = "ingot_source_" + before;
  for (auto at = code.begin();;) {
    at = std::search(at, code.end(), mark.begin(), mark.end());
    if (at == code.end())
      break;
    std::copy(hash.begin(), hash.end(), at + 13);
  }
  EXPECT_THAT(refused(),
              HasSubstr("cuModuleGetFunction: CUDA_ERROR_NOT_FOUND"));
}

TEST_F(CudaHostileTest, aNameThatIsNoKernels) {
  target().kernels[1]->name = "cuLaunchKernel";
  EXPECT_THAT(refused(), HasSubstr("kernel cuLaunchKernel for sm_90: "
                                   "cuModuleGetFunction"));
}

TEST_F(CudaHostileTest, moreSharedMemoryThanTheDeviceHas) {
  target().kernels[1]->shared_bytes = 200 * 1024;
  EXPECT_THAT(refused(), HasSubstr("needs 204800 bytes of shared memory"));
}

TEST_F(CudaHostileTest, aDriverThatNobodyHas) {
  for (auto &level : target().levels)
    level->driver_version = ~0u;
  EXPECT_THAT(refused(), HasSubstr("or newer, found one for CUDA"));
}

// Bytes of the tables of cubins and of the text of PTX, changed at random.
TEST_F(CudaHostileTest, damagedCode) {
  std::mt19937 random(5);
  const Bytes whole = bytesOf(container::SegmentKind::Code);
  int numRefused = 0;
  for (int turn = 0; turn < 120; ++turn) {
    Bytes &code = bytesOf(container::SegmentKind::Code);
    code = whole;
    std::uint64_t image = imageOf(random() % target().kernels.size());
    // The header, or anything in the image's first half page.
    std::uint64_t range = turn % 2 ? 64 : 2048;
    for (int i = 0; i < 1 + turn % 7; ++i)
      code[std::min<std::size_t>(image + random() % range, code.size() - 1)] =
          std::uint8_t(random());
    bool isText = turn % 5 == 0; // PTX serves a later chip
    Status status = open(isText ? "memory=64,sm=120" : "memory=64");
    numRefused += !status.isOk();
  }
  EXPECT_GT(numRefused, 20);
}

// The plan's bytes themselves.
TEST_F(CudaHostileTest, damagedPlan) {
  std::mt19937 random(6);
  ASSERT_TRUE(open().isOk());
  const Bytes whole = bytesOf(container::SegmentKind::Plan);
  int numRefused = 0;
  for (int turn = 0; turn < 150; ++turn) {
    Bytes &bytes = bytesOf(container::SegmentKind::Plan);
    bytes = whole;
    for (int i = 0; i < 1 + turn % 4; ++i)
      bytes[random() % bytes.size()] = std::uint8_t(random());
    numRefused += !openBytes(packContainer(segments_), "memory=64").isOk();
  }
  EXPECT_GT(numRefused, 50);
}

} // namespace
