// Artifacts whose plans lie about experts are refused, each lie with its own sentence:
// on the CPU, and on CUDA devices, whose rows are half rows.
#include "runtime/plan/CudaAbi.h"
#include "test/runtime/plan/PlanLies.h"
#include "test/runtime/plan/TinyExpertsArtifact.h"

#include <gmock/gmock.h>

using namespace ingot;
using namespace ingot::test;

TEST(HostileExpertsTest, expertsOnCudaDevices) {
  auto bufferOf = [](TinyArtifact &t, const char *name) -> fbs::BufferT & {
    for (auto &one : t.plan.targets[0]->buffers)
      if (one->name == name)
        return *one;
    std::abort();
  };
  auto onePart = [&](TinyArtifact &t, const char *name) {
    fbs::BufferT &buffer = bufferOf(t, name);
    buffer.row_bytes = std::uint64_t(ingot::abi::halfRowBytes(32));
    buffer.scales_offset = std::uint32_t(ingot::abi::halfRowScaleOffset(32));
    buffer.sums_offset = 0;
  };
  auto indexOf = [](TinyArtifact &t, const char *name) {
    auto &buffers = t.plan.targets[0]->buffers;
    for (std::size_t i = 0; i < buffers.size(); ++i)
      if (buffers[i]->name == name)
        return int(i);
    std::abort();
  };
  const Lie lies[] = {
      {"half rows of two parts, the input has one",
       [&](auto &t) { onePart(t, "token halves"); }},
      {"reads half rows of two parts, input: buffer \"slot halves",
       [&](auto &t) { onePart(t, "slot halves"); }},
      {"is not half rows of 32",
       [&](auto &t) {
         launch(t, "dispatch").params.AsDispatch()->output = indexOf(t, "fed");
       }},
      {"is not half rows of 32",
       [&](auto &t) {
         launch(t, "experts").params.AsExpertLinear()->input =
             indexOf(t, "fed");
       }},
      {"rows of another domain",
       [&](auto &t) {
         launch(t, "experts").params.AsExpertLinear()->input =
             indexOf(t, "token halves");
       }},
      {"expected \"mma16\"",
       [](auto &t) { t.plan.weights[6]->layout = "r16"; }},
      {"tiles of 16",
       [](auto &t) { launch(t, "experts").params.AsExpertLinear()->n = 32; }},
      {"input: buffer 99",
       [](auto &t) { launch(t, "dispatch").params.AsDispatch()->input = 99; }},
      {"2 of 2 experts in a target with 1 slots",
       [](auto &t) { t.plan.targets[0]->slots = 1; }},
  };
  TempFolder folder;
  Status status = openBytes(folder, withCudaExperts().bytes());
  EXPECT_TRUE(status.isOk()) << status.message();
  expectRefused(withCudaExperts, lies);
}

TEST(HostileExpertsTest, experts) {
  auto target = [](TinyArtifact &t) -> fbs::TargetT & {
    return *t.plan.targets[0];
  };
  auto buffer = [&](TinyArtifact &t, const char *name) -> fbs::BufferT & {
    for (auto &one : target(t).buffers)
      if (one->name == name)
        return *one;
    std::abort();
  };
  auto linear = [](TinyArtifact &t) -> fbs::ExpertLinearT & {
    return *launch(t, "experts").params.AsExpertLinear();
  };
  const Lie lies[] = {
      {"slots: 0", [&](auto &t) { target(t).slots = 0; }},
      {"slots: 4294967295", [&](auto &t) { target(t).slots = ~0u; }},
      {"2 of 2 experts in a target with 1 slots",
       [&](auto &t) { target(t).slots = 1; }},
      {"2 of 0 experts",
       [](auto &t) { launch(t, "route").params.AsRoute()->experts = 0; }},
      {"2 of 1 experts",
       [](auto &t) { launch(t, "route").params.AsRoute()->experts = 1; }},
      {"2 of 4294967295 experts",
       [](auto &t) { launch(t, "route").params.AsRoute()->experts = ~0u; }},
      {"0 of 2 experts",
       [](auto &t) { launch(t, "order").params.AsOrderSlots()->top_k = 0; }},
      {"4294967295 of 2 experts",
       [](auto &t) { launch(t, "combine").params.AsCombine()->top_k = ~0u; }},
      {"expected float32 [3]",
       [](auto &t) { launch(t, "route").params.AsRoute()->experts = 3; }},
      {"expected float32 [8]",
       [](auto &t) { launch(t, "order").params.AsOrderSlots()->experts = 3; }},
      {"expected float32 [8]", [&](auto &t) { linear(t).experts = 3; }},
      {"tiles of 16", [&](auto &t) { linear(t).n = 40; }},
      {"tiles of 16", [&](auto &t) { linear(t).n = 32; }},
      {"tiles of 16", [&](auto &t) { linear(t).k = 16; }},
      {"tiles of 16", [&](auto &t) { linear(t).weight = 3; }},
      {"weight 99", [&](auto &t) { linear(t).weight = 99; }},
      {"layout \"row\"", [&](auto &t) { linear(t).weight = 2; }},
      {"expected float32 [7]", [&](auto &t) { linear(t).order = 0; }},
      {"order: buffer -1", [&](auto &t) { linear(t).order = -1; }},
      {"rows of another domain",
       [](auto &t) { launch(t, "dispatch").params.AsDispatch()->output = 0; }},
      {"rows of another domain",
       [&](auto &t) { buffer(t, "fed").domain = fbs::Domain::token; }},
      {"rows of another domain",
       [&](auto &t) { buffer(t, "order").domain = fbs::Domain::slot; }},
      {"leave the arena",
       [&](auto &t) {
         buffer(t, "fed").offset = target(t).token_arena_bytes - 192;
       }},
      {"leave the arena", [&](auto &t) { target(t).slots = 1024; }},
      {"domain is unknown",
       [&](auto &t) { buffer(t, "fed").domain = fbs::Domain(3); }},
      {"neither token nor slot",
       [](auto &t) {
         launch(t, "layer.0.gate").params.AsGated()->domain =
             fbs::Domain::logit_row;
       }},
      {"domain is unknown",
       [](auto &t) {
         launch(t, "norm").params.AsRmsNorm()->domain = fbs::Domain::slot;
       }},
  };
  TempFolder folder;
  Status status = openBytes(folder, withExperts().bytes());
  EXPECT_TRUE(status.isOk()) << status.message();
  expectRefused(withExperts, lies);
}
