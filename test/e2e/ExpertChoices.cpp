#include "test/e2e/ExpertChoices.h"

#include "dialects/lm/LmOps.h"

#include <algorithm>
#include <cmath>

namespace ingot::test {
namespace {

// Goes on from the routes that a device chose, and keeps the program's logits.
class ForcedChoices : public LmObserver {
public:
  ForcedChoices(const ExpertChoices &choices, mlir::Value result,
                ChoiceErrors &errors)
      : choices_(choices), result_(result), errors_(errors) {}

  Status stored(mlir::Operation &, LmCache &, LmRun &) override {
    return Status::ok();
  }
  Status ran(mlir::Operation &op, LmRun &run) override {
    if (auto route = mlir::dyn_cast<lm::RouteOp>(op))
      return force(route, run);
    if (op.getNumResults() == 1 && op.getResult(0) == result_) {
      const LmRows &rows = *run.rows(result_);
      for (std::int64_t r = 0; r < rows.rows; ++r)
        logits.emplace_back(rows.row(r), rows.row(r) + rows.columns);
    }
    return Status::ok();
  }

  std::vector<std::vector<float>> logits;

private:
  Status force(lm::RouteOp route, LmRun &run) {
    LmRows &routes = *run.rows(route.getRoutes());
    const LmRows &own = *run.rows(route.getLogits());
    if (next_ == choices_.layers.size())
      return Status::internal("more layers of experts than were recorded");
    const ExpertChoices::Layer &given = choices_.layers[next_++];
    const std::size_t rows = std::size_t(routes.rows);
    const std::int32_t topK = std::int32_t(route.getTopK());
    if (given.experts != own.columns || given.topK != topK ||
        given.routes.size() != rows * 2 * std::size_t(topK))
      return Status::internal("\"" + given.name + "\" has other choices than " +
                              std::to_string(topK) + " of " +
                              std::to_string(own.columns) + " experts for " +
                              std::to_string(rows) + " positions");
    for (std::size_t r = 0; r < rows; ++r)
      forceRow(own.row(std::int64_t(r)), given, r, route.getNormalized(),
               routes.row(std::int64_t(r)));
    return Status::ok();
  }

  void forceRow(const float *own, const ExpertChoices::Layer &given,
                std::size_t row, bool normalized, float *routes) {
    const float *device = &given.logits[row * std::size_t(given.experts)];
    double most = own[0], sum = 0, chosen = 0;
    for (std::int32_t e = 0; e < given.experts; ++e) {
      errors_.logits =
          std::max(errors_.logits, std::fabs(double(own[e]) - device[e]));
      most = std::max(most, double(own[e]));
    }
    for (std::int32_t e = 0; e < given.experts; ++e)
      sum += std::exp(own[e] - most);
    const std::vector<float> mine(routes, routes + given.topK);
    const float *theirs = &given.routes[row * 2 * std::size_t(given.topK)];
    auto has = [&](const float *list, float expert) {
      return std::find(list, list + given.topK, expert) != list + given.topK;
    };
    bool isOther = false;
    for (float left : mine)
      for (std::int32_t j = 0; j < given.topK; ++j)
        if (!has(theirs, left) && !has(mine.data(), theirs[j])) {
          isOther = true;
          errors_.lead = std::max(errors_.lead,
                                  double(own[int(left)]) - own[int(theirs[j])]);
        }
    errors_.others += isOther;
    for (std::int32_t j = 0; j < given.topK; ++j) {
      routes[j] = theirs[j];
      routes[given.topK + j] =
          float(std::exp(own[int(theirs[j])] - most) / sum);
      chosen += routes[given.topK + j];
    }
    if (normalized)
      for (std::int32_t j = 0; j < given.topK; ++j)
        routes[given.topK + j] = float(routes[given.topK + j] / chosen);
  }

  const ExpertChoices &choices_;
  mlir::Value result_;
  ChoiceErrors &errors_;
  std::size_t next_ = 0;
};

} // namespace

void ExpertChoices::record(Engine &engine) {
  cuda::CudaExecutor &executor = *engine.cudaExecutor();
  executor.observeLaunches([this, &executor](const cuda::CudaLaunch &launch,
                                             std::int32_t rows) {
    if (launch.op != fbs::Params::Route)
      return Status::ok();
    const abi::CudaRouteParams &params = launch.params.route;
    auto found =
        std::find_if(layers.begin(), layers.end(), [&](const Layer &layer) {
          return layer.name == launch.name;
        });
    if (found == layers.end())
      found = layers.insert(found,
                            {launch.name, params.experts, params.topK, {}, {}});
    auto append = [&](std::vector<float> &to, const float *from,
                      std::int32_t columns) {
      const std::size_t count = std::size_t(rows) * std::size_t(columns);
      to.resize(to.size() + count);
      return executor.read(from, {reinterpret_cast<std::uint8_t *>(
                                      to.data() + to.size() - count),
                                  count * sizeof(float)});
    };
    INGOT_RETURN_IF_ERROR(append(found->logits, params.logits, params.experts));
    return append(found->routes, params.routes, 2 * params.topK);
  });
}

Result<std::vector<std::vector<float>>>
logitsOfChoices(const LmExecutor &executor, const ExpertChoices &choices,
                std::span<const std::int32_t> tokens, mlir::ModuleOp module,
                ChoiceErrors &errors) {
  mlir::Value result;
  module.walk([&](lm::ReturnOp op) { result = op.getLogits(); });
  ForcedChoices forced(choices, result, errors);
  INGOT_RETURN_IF_ERROR(executor.observe(tokens, forced));
  return std::move(forced.logits);
}

} // namespace ingot::test
