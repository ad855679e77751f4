#include "test/runtime/plan/TinyExpertsArtifact.h"

#include "runtime/plan/CudaAbi.h"
#include "test/runtime/plan/TinyCudaArtifact.h"

namespace ingot::test {

// The tiny model with a choice of two of two experts behind its feed-forward:
// what a layer of experts launches, over the weights of gate and up.
TinyArtifact withExperts() {
  TinyArtifact tiny = TinyArtifact::make();
  fbs::TargetT &target = *tiny.plan.targets[0];
  target.slots = 2;
  auto buffer = [&](const char *name, std::uint32_t columns,
                    fbs::Domain domain) {
    auto made = std::make_unique<fbs::BufferT>();
    made->name = name;
    made->domain = domain;
    made->columns = columns;
    made->row_bytes = columns * 4;
    made->offset = target.token_arena_bytes;
    target.token_arena_bytes +=
        made->row_bytes * (domain == fbs::Domain::slot ? 2 : 1);
    target.buffers.push_back(std::move(made));
    return int(target.buffers.size()) - 1;
  };
  const auto token = fbs::Domain::token, slot = fbs::Domain::slot;
  int logits = buffer("router", 2, token), routes = buffer("routes", 4, token);
  int order = buffer("order", 7, token), slots = buffer("slots", 32, slot);
  int fed = buffer("fed", 48, slot), sum = buffer("sum", 48, token);
  auto launch = [&](const char *name, const char *op, auto params) {
    auto kernel = std::make_unique<fbs::KernelT>(*target.kernels[kGated]);
    kernel->name = kernel->op = op;
    target.kernels.push_back(std::move(kernel));
    auto made = std::make_unique<fbs::LaunchT>();
    made->name = name;
    made->params.Set(std::move(params));
    made->variants.push_back(std::make_unique<fbs::VariantT>());
    made->variants[0]->first = 1;
    made->variants[0]->kernel = std::uint32_t(target.kernels.size()) - 1;
    auto &launches = target.segments[0]->launches;
    launches.insert(launches.end() - 3, std::move(made));
  };
  fbs::RouteT route;
  route.logits = logits, route.routes = routes;
  fbs::OrderSlotsT orderSlots;
  orderSlots.routes = routes, orderSlots.order = order;
  fbs::DispatchT dispatch;
  dispatch.input = 0, dispatch.order = order, dispatch.output = slots;
  fbs::ExpertLinearT linear;
  linear.input = slots, linear.order = order, linear.weight = 6;
  linear.output = fed, linear.k = dispatch.width = 32, linear.n = 48;
  fbs::CombineT combine;
  combine.input = fed, combine.order = order, combine.routes = routes;
  combine.output = sum, combine.width = 48;
  auto choose = [](auto &op) { op.experts = op.top_k = 2; };
  choose(route), choose(orderSlots), choose(dispatch), choose(linear),
      choose(combine);
  launch("route", "route", route);
  launch("order", "order_slots", orderSlots);
  launch("dispatch", "dispatch", dispatch);
  launch("experts", "expert_linear", linear);
  launch("combine", "combine", combine);
  return tiny;
}

// The same model's experts for CUDA devices: rows of tokens and slots are half rows.
TinyArtifact withCudaExperts() {
  TinyArtifact tiny = tinyCudaArtifact();
  fbs::TargetT &target = *tiny.plan.targets[0];
  target.slots = 2;
  auto buffer = [&](const char *name, std::uint32_t columns, fbs::Domain domain,
                    int parts) {
    auto made = std::make_unique<fbs::BufferT>();
    made->name = name;
    made->domain = domain;
    made->columns = columns;
    made->row_bytes = columns * 4;
    if (parts > 0) {
      made->dtype = fbs::DType::f16;
      made->row_bytes = std::uint64_t(ingot::abi::halfRowBytes(columns, parts));
      made->scales_offset =
          std::uint32_t(ingot::abi::halfRowScaleOffset(columns, parts));
      made->sums_offset =
          std::uint32_t(ingot::abi::halfRowRestOffset(columns, parts));
    }
    target.token_arena_bytes = (target.token_arena_bytes + 63) / 64 * 64;
    made->offset = target.token_arena_bytes;
    target.token_arena_bytes +=
        made->row_bytes * (domain == fbs::Domain::slot ? 2 : 1);
    target.buffers.push_back(std::move(made));
    return int(target.buffers.size()) - 1;
  };
  const auto token = fbs::Domain::token, slot = fbs::Domain::slot;
  fbs::DispatchT dispatch;
  dispatch.input = buffer("token halves", 32, token, 2);
  dispatch.order = buffer("order", 7, token, 0);
  dispatch.output = buffer("slot halves", 32, slot, 2);
  dispatch.width = 32;
  fbs::ExpertLinearT linear;
  linear.input = dispatch.output, linear.order = dispatch.order;
  linear.weight = 6, linear.k = 32, linear.n = 48;
  linear.output = buffer("fed", 48, slot, 0);
  auto launch = [&](const char *name, const char *op, const char *kernelName,
                    auto params) {
    params.experts = params.top_k = 2;
    auto kernel = std::make_unique<fbs::KernelT>(*target.kernels[0]);
    kernel->op = op;
    kernel->name = kernelName;
    target.kernels.push_back(std::move(kernel));
    auto made = std::make_unique<fbs::LaunchT>();
    made->name = name;
    made->params.Set(std::move(params));
    made->variants.push_back(std::make_unique<fbs::VariantT>());
    made->variants[0]->first = 1;
    made->variants[0]->kernel = std::uint32_t(target.kernels.size()) - 1;
    auto &launches = target.segments[0]->launches;
    launches.insert(launches.end() - 3, std::move(made));
  };
  launch("dispatch", "dispatch", "dispatch", dispatch);
  launch("experts", "expert_linear", "expert_linear_f16x2_t8", linear);
  return tiny;
}

} // namespace ingot::test
