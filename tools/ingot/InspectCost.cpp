// `ingot inspect --cost SM`: what a step will cost on a chip (runtime/execute/cuda/cost),
// for people as a table of kernels under each step, for programs as JSON.
#include "tools/ingot/Commands.h"
#include "tools/ingot/Report.h"

#include "runtime/execute/cuda/cost/PredictStep.h"
#include "runtime/plan/VerifyPlan.h"
#include "runtime/support/Printable.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace ingot::cli {
namespace {

using Json = nlohmann::ordered_json;
using cuda::KernelCost;
using cuda::KernelFacts;
using cuda::LaunchTraffic;
using cuda::PredictedCost;
using cuda::StepCost;
using cuda::Stream;

constexpr std::int32_t kContext = 1024;
constexpr std::int32_t kPrompt = 512;

Json streamJson(const Stream &stream) {
  return {{"bytes_read", stream.bytesRead},
          {"bytes_written", stream.bytesWritten},
          {"sectors_read", stream.sectorsRead},
          {"sectors_written", stream.sectorsWritten},
          {"ideal_sectors_read", stream.idealRead},
          {"ideal_sectors_written", stream.idealWritten}};
}

// Of memory that threads go along; all lanes load the step's arrays together.
double sectorsOverIdeal(const LaunchTraffic &traffic) {
  const double ideal = traffic.ideal() - traffic.arrays.ideal();
  return ideal > 0 ? (traffic.sectors() - traffic.arrays.sectors()) / ideal : 1;
}

Json trafficJson(const LaunchTraffic &traffic) {
  return {{"bytes", traffic.bytes()},
          {"weights", streamJson(traffic.weights)},
          {"cache", streamJson(traffic.cache)},
          {"activations", streamJson(traffic.activations)},
          {"arrays", streamJson(traffic.arrays)},
          {"sectors_over_ideal", sectorsOverIdeal(traffic)},
          {"bank_passes_over_ideal", traffic.conflict},
          {"flops", traffic.flops},
          {"needed_bytes", traffic.neededBytes},
          {"needed_flops", traffic.neededFlops},
          {"blocks", traffic.blocks}};
}

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

Json costJson(const PredictedCost &cost) {
  const cuda::Chip &chip = cost.chip;
  auto kernels = Json::array();
  for (const KernelFacts &facts : cost.kernels)
    kernels.push_back({{"name", facts.name},
                       {"op", facts.op},
                       {"block_threads", facts.needs.threads},
                       {"registers", facts.needs.registers},
                       {"shared_bytes", facts.needs.sharedBytes},
                       {"spill_bytes", facts.spillBytes},
                       {"blocks_of_multiprocessor", facts.occupancy.blocks},
                       {"occupancy", facts.occupancy.share},
                       {"occupancy_limit", facts.occupancy.limit}});
  auto steps = Json::array();
  for (const StepCost &step : cost.steps) {
    auto kernelCost = [&](const KernelCost &kernel) {
      Json one = {{"kernel", cost.kernels[kernel.kernel].name},
                  {"launches", kernel.launches},
                  {"seconds", kernel.seconds},
                  {"roofline_share", kernel.roofline()},
                  {"multiprocessors_filled", kernel.fill}};
      one.update(trafficJson(kernel.traffic));
      return one;
    };
    auto parts = Json::array();
    for (const KernelCost &kernel : step.kernels)
      parts.push_back(kernelCost(kernel));
    Json one = {{"name", step.name},
                {"rows", step.rows},
                {"context", step.context},
                {"launches", step.launches},
                {"library_products", step.libraryProducts},
                {"seconds", step.seconds},
                {"tokens_per_second", share(step.rows, step.seconds)},
                {"roofline_share", share(step.idealSeconds, step.seconds)}};
    one.update(trafficJson(step.traffic));
    if (const cuda::ExpertCost &experts = step.experts; experts.experts > 0)
      one["experts"] = {{"experts", experts.experts},
                        {"used", experts.used},
                        {"fewest", experts.fewest},
                        {"fewest_seconds", experts.fewestSeconds},
                        {"most", experts.most},
                        {"most_seconds", experts.mostSeconds}};
    one["kernels"] = parts;
    one["choosing"] = step.choosing ? kernelCost(*step.choosing) : Json();
    steps.push_back(one);
  }
  return {{"level", cost.level},
          {"device", chip.device},
          {"bytes_per_second", chip.bytesPerSecond},
          {"tensor_flops_per_second", chip.tensorFlops},
          {"multiprocessors", chip.multiprocessors},
          {"cache_bytes", chip.cacheBytes},
          {"weights_bytes", cost.weightsBytes},
          {"kernels", kernels},
          {"steps", steps}};
}

std::string timeText(double seconds) {
  return seconds < 1e-3 ? format("%.1f us", seconds * 1e6)
                        : format("%.2f ms", seconds * 1e3);
}

void printStep(const PredictedCost &cost, const StepCost &step) {
  const LaunchTraffic &all = step.traffic;
  const bool isPrompt = step.name.rfind("prompt", 0) == 0;
  std::printf("\n%s\n",
              isPrompt
                  ? format("a prompt of %d tokens", step.rows).c_str()
                  : format("decoding %d sequence%s of %d tokens", step.rows,
                           step.rows == 1 ? "" : "s", step.context)
                        .c_str());
  std::printf("  %-34s %8s %10s %10s %6s %6s %5s %6s %6s\n", "kernel",
              "launches", "least time", "moves", "x sect", "x bank", "occup",
              "filled", "roof");
  for (const KernelCost &kernel : step.kernels) {
    const KernelFacts &facts = cost.kernels[kernel.kernel];
    std::printf(
        "  %-34s %8u %10s %10s %6.2f %6.2f %3.0f %% %4.0f %% %4.0f %%\n",
        printable(facts.name).c_str(), kernel.launches,
        timeText(kernel.seconds).c_str(),
        bytesText(kernel.traffic.bytes()).c_str(),
        sectorsOverIdeal(kernel.traffic), kernel.traffic.conflict,
        100 * facts.occupancy.share, 100 * kernel.fill,
        100 * kernel.roofline());
  }
  std::printf("  at least %s: %s of weights, %s of the cache, %s of "
              "activations, %.3g G operations; %.0f tokens/s at most, %.0f %% "
              "of the roofline\n",
              timeText(step.seconds).c_str(),
              bytesText(all.weights.bytes()).c_str(),
              bytesText(all.cache.bytes()).c_str(),
              bytesText(all.activations.bytes() + all.arrays.bytes()).c_str(),
              all.flops / 1e9, share(step.rows, step.seconds),
              100 * share(step.idealSeconds, step.seconds));
  if (const cuda::ExpertCost &experts = step.experts; experts.experts > 0)
    std::printf("  with %d of %d experts of a layer, as tokens choose that "
                "choose evenly; at least %s where all choose the same %d, %s "
                "where they choose %d\n",
                experts.used, experts.experts,
                timeText(experts.fewestSeconds).c_str(), experts.fewest,
                timeText(experts.mostSeconds).c_str(), experts.most);
  if (step.libraryProducts > 0)
    std::printf(
        "  without %u products by cuBLASLt, in an order and with reads that "
        "the library chooses\n",
        step.libraryProducts);
  if (step.choosing)
    std::printf("  and at least %s (%s) in a step whose tokens the device "
                "chooses\n",
                timeText(step.choosing->seconds).c_str(),
                bytesText(step.choosing->traffic.bytes()).c_str());
  std::printf(
      "  apart from that %u launches: each microsecond between two adds "
      "%s\n",
      step.launches, timeText(1e-6 * step.launches).c_str());
}

void printCost(const PredictedCost &cost) {
  const cuda::Chip &chip = cost.chip;
  std::printf("cost on %s, %s: %.2f TB/s, %.0f TFLOP/s of dense float16, %d "
              "multiprocessors, %s of L2\n",
              printable(cost.level).c_str(), std::string(chip.device).c_str(),
              chip.bytesPerSecond / 1e12, chip.tensorFlops / 1e12,
              chip.multiprocessors, bytesText(double(chip.cacheBytes)).c_str());
  if (cost.weightsBytes < double(chip.cacheBytes))
    std::printf("note: the weights (%s) fit into L2, from which a device may "
                "read them faster than this\n",
                bytesText(cost.weightsBytes).c_str());
  std::printf("  %-34s %7s %9s %10s %6s %16s %9s\n", "kernel", "threads",
              "registers", "shared", "spills", "blocks at once", "occupancy");
  for (const KernelFacts &facts : cost.kernels)
    std::printf("  %-34s %7d %9d %10d %6u %4d by %-9s %7.0f %%\n",
                printable(facts.name).c_str(), facts.needs.threads,
                facts.needs.registers, facts.needs.sharedBytes,
                facts.spillBytes, facts.occupancy.blocks,
                std::string(facts.occupancy.limit).c_str(),
                100 * facts.occupancy.share);
  for (const StepCost &step : cost.steps)
    printStep(cost, step);
  std::printf(
      "\nx sect: sectors asked for, over the fewest for as many bytes; "
      "below 1 where lanes ask\nfor the same. x bank: passes of shared "
      "memory, over the fewest, at the worst place.\noccup: of the warps "
      "that a multiprocessor holds. filled: multiprocessors that have\n"
      "work. roof: the time of what the operation cannot do without, "
      "over the least time\nof the kernel.\n");
}

} // namespace

Status inspectCost(const Artifact &artifact, const InspectFlags &flags) {
  const fbs::Plan &plan = artifact.plan();
  const fbs::Target *target = artifact.target(kCudaTarget);
  if (!target)
    return Status::notFound(flags.path +
                            ": has no code for CUDA (compile "
                            "--target cuda:" +
                            flags.cost + ")");
  const auto limit =
      std::int32_t(std::min<std::uint32_t>(plan.model()->context(), 1u << 24));
  for (std::int32_t wanted : {flags.context, flags.prompt})
    if (wanted > limit)
      return Status::invalid("sequences of " + std::to_string(wanted) +
                             " tokens: the model's context is " +
                             std::to_string(limit));
  cuda::CostRequest request;
  request.level = flags.cost;
  request.rows = flags.rows;
  request.context =
      flags.context > 0 ? flags.context : std::min(kContext, limit);
  request.prompt =
      flags.prompt > 0 ? flags.prompt : std::min(kPrompt, request.context);
  auto cost = cuda::predictCost(plan, *target, request);
  if (!cost)
    return cost.status().withContext(flags.path);
  if (flags.json)
    std::printf("%s\n", jsonText(costJson(*cost)).c_str());
  else
    printCost(*cost);
  return Status::ok();
}

} // namespace ingot::cli
