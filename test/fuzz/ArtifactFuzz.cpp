// Any bytes as an artifact. Checksums are put right first, so that damage gets
// past them to what checks the meaning. An input that begins with "P" is a plan
// alone, in an artifact that is otherwise good, "C" the same in one for CUDA devices:
// most bytes of a whole one are weights, which nothing reads.
#include "runtime/execute/cuda/CudaCode.h"
#include "runtime/memory/MemoryContract.h"
#include "runtime/plan/VerifyPlan.h"
#include "test/fuzz/MemoryFile.h"
#include "test/runtime/plan/TinyCudaArtifact.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace ingot;
  static const test::TinyArtifact tiny = test::TinyArtifact::make();
  static const test::TinyArtifact forCuda = test::tinyCudaArtifact();
  if (size == 0)
    return 0;
  std::vector<uint8_t> file;
  if (data[0] == 'P' || data[0] == 'C') {
    const test::TinyArtifact &rest = data[0] == 'P' ? tiny : forCuda;
    file = test::packContainer(
        {{container::SegmentKind::Plan, {data + 1, data + size}},
         {container::SegmentKind::Code, rest.code},
         {container::SegmentKind::Weights, rest.weights}});
  } else {
    file.assign(data, data + size);
    test::fixChecksums(file);
  }
  fuzz::MemoryFile memory(file.data(), file.size());
  auto artifact = Artifact::open(memory.path());
  if (!artifact)
    return 0;
  // What was verified can be read.
  volatile uint64_t sum = 0;
  for (const auto &segment : artifact->segments())
    for (uint8_t byte : artifact->segment(segment.kind))
      sum = sum + byte;
  for (const fbs::Weight *weight : *artifact->plan().weights())
    sum = sum + weight->size();
  if (const fbs::Target *target = artifact->target("cpu"))
    (void)computeContract(artifact->plan(), *target, {});
  if (const fbs::Target *target = artifact->target(kCudaTarget)) {
    (void)computeContract(artifact->plan(), *target, {});
    cuda::DeviceProperties device;
    device.major = 9;
    if (auto level = cuda::chooseLevel(*target, "", device, 13000))
      (void)cuda::checkImages(*target, *level,
                              artifact->segment(container::SegmentKind::Code));
  }
  return 0;
}
