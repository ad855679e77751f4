#include "compiler/debug/Comparison.h"

#include "runtime/support/Printable.h"

#include <nlohmann/json.hpp>

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

namespace ingot::debug {
namespace {

// How much of what is allowed.
double share(const Difference &difference) {
  if (difference.worst == 0)
    return 0;
  return difference.allowed > 0 ? difference.worst / difference.allowed
                                : std::numeric_limits<double>::infinity();
}

std::string layerText(std::int32_t layer) {
  return layer < 0 ? "-" : std::to_string(layer);
}

// Layers in the order in which the run comes to them.
std::vector<std::pair<std::int32_t, std::vector<const Difference *>>>
byLayer(const Comparison &comparison) {
  std::vector<std::pair<std::int32_t, std::vector<const Difference *>>> layers;
  for (const Difference &difference : comparison.differences) {
    auto found = llvm::find_if(layers, [&](const auto &entry) {
      return entry.first == difference.layer;
    });
    // What comes before the layers and behind them is two rows.
    if (difference.layer < 0 && !layers.empty() && layers.back().first >= 0)
      found = layers.end();
    if (difference.layer < 0 && !layers.empty() && layers.back().first < 0)
      found = std::prev(layers.end());
    if (found == layers.end())
      found = layers.insert(layers.end(), {difference.layer, {}});
    found->second.push_back(&difference);
  }
  return layers;
}

} // namespace

std::string comparisonText(const Comparison &comparison) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << printable(comparison.observed) << " (observed) against "
      << printable(comparison.reference) << " (reference), "
      << comparison.numPositions << " positions\n"
      << (comparison.isLocal
              ? "Each operator of the reference ran on what the observed one "
                "was given: errors are its own.\n"
              : "Both ran by themselves: an error counts where it is more than "
                "what it was made from explains.\n");
  out << "\n"
      << llvm::left_justify("layer", 7) << llvm::right_justify("tensors", 8)
      << "  " << llvm::left_justify("furthest", 30)
      << llvm::right_justify("error", 11) << llvm::right_justify("allowed", 11)
      << llvm::right_justify("diverge", 9) << "  first\n";
  for (const auto &[layer, differences] : byLayer(comparison)) {
    const Difference *furthest = differences.front(), *first = nullptr;
    std::size_t count = 0;
    for (const Difference *difference : differences) {
      if (share(*difference) > share(*furthest))
        furthest = difference;
      count += difference->diverges;
      if (difference->diverges && !first)
        first = difference;
    }
    out << llvm::left_justify(layerText(layer), 7)
        << llvm::format("%8zu", differences.size()) << "  "
        << llvm::left_justify(printable(furthest->name), 30)
        << llvm::format("%11.3g%11.3g%9zu", furthest->worst, furthest->allowed,
                        count)
        << (first ? "  " + printable(first->name) + " from position " +
                        std::to_string(first->firstPosition)
                  : std::string())
        << "\n";
  }
  out << "\n";
  for (const ChangedSlot &slot : comparison.changedSlots)
    if (&slot == &comparison.changedSlots.front())
      out << "cache: " << printable(slot.tensor) << " of position "
          << slot.position << " is not what was written there, as the step "
          << "from position " << slot.readAt << " reads it ("
          << comparison.changedSlots.size() << " such slots)\n";
  const Difference *first = comparison.first();
  if (!first) {
    out << "no operator diverges (" << comparison.differences.size()
        << " tensors compared, " << comparison.onlyObserved.size()
        << " only observed, " << comparison.onlyReference.size()
        << " only in the reference)\n";
    return text;
  }
  std::vector<std::string> operators;
  for (const std::string &name : first->operators)
    operators.push_back(printable(name));
  out << "first to diverge: " << printable(first->name);
  if (first->layer >= 0)
    out << ", layer " << first->layer;
  out << ", position " << first->firstPosition << " (" << first->numPositions
      << " positions)\n"
      << llvm::format(
             "  error      %.3g, allowed %.3g; of all positions %.3g\n",
             first->worst, first->allowed, first->error)
      << "  worst at   position " << first->worstPosition << ", column "
      << first->worstColumn << "\n"
      << "  operators  " << llvm::join(operators, ", ") << " ("
      << printable(first->op) << ")\n";
  if (!comparison.isLocal)
    out << llvm::format("  explained  %.3g, by the error of what it was made "
                        "from\n",
                        first->explained);
  out << "  launch     " << printable(first->launch);
  if (!first->kernel.empty())
    out << ", kernel " << printable(first->kernel);
  out << "\n";
  if (!first->settings.empty())
    out << "  settings   " << printable(first->settings) << "\n";
  if (!first->referenceSettings.empty())
    out << "  reference  " << printable(first->referenceSettings) << "\n";
  if (!first->note.empty())
    out << "  compared   " << printable(first->note) << "\n";
  return text;
}

std::string comparisonJson(const Comparison &comparison) {
  using Json = nlohmann::ordered_json;
  // JSON has no infinity.
  auto number = [](double value) -> Json {
    return std::isfinite(value) ? Json(value) : Json("not finite");
  };
  auto entry = [&](const Difference &difference) {
    Json one = {{"name", difference.name},
                {"op", difference.op},
                {"operators", difference.operators},
                {"layer", difference.layer},
                {"diverges", difference.diverges},
                {"error", number(difference.error)},
                {"worst_error", number(difference.worst)},
                {"allowed", number(difference.allowed)}};
    if (difference.diverges) {
      one["first_position"] = difference.firstPosition;
      one["positions"] = difference.numPositions;
    }
    one["worst_position"] = difference.worstPosition;
    one["worst_column"] = difference.worstColumn;
    if (!comparison.isLocal)
      one["explained"] = number(difference.explained);
    one["launch"] = difference.launch;
    one["kernel"] = difference.kernel;
    one["settings"] = difference.settings;
    one["reference_settings"] = difference.referenceSettings;
    if (!difference.note.empty())
      one["note"] = difference.note;
    return one;
  };
  Json report;
  report["observed"] = comparison.observed;
  report["reference"] = comparison.reference;
  report["errors"] = comparison.isLocal ? "local" : "global";
  report["positions"] = comparison.numPositions;
  const Difference *first = comparison.first();
  report["equal"] = first == nullptr;
  report["first"] = first ? entry(*first) : Json();
  Json &all = report["tensors"] = Json::array();
  for (const Difference &difference : comparison.differences)
    all.push_back(entry(difference));
  report["only_observed"] = comparison.onlyObserved;
  report["only_reference"] = comparison.onlyReference;
  Json &slots = report["changed_slots"] = Json::array();
  for (const ChangedSlot &slot : comparison.changedSlots)
    slots.push_back({{"tensor", slot.tensor},
                     {"position", slot.position},
                     {"read_at", slot.readAt}});
  return report.dump(1, ' ', /*ensure_ascii=*/true,
                     Json::error_handler_t::replace) +
         "\n";
}

} // namespace ingot::debug
