#include "compiler/debug/TraceModel.h"

#include "compiler/frontend/huggingface/SafetensorsFile.h"
#include "runtime/support/Printable.h"

#include <nlohmann/json.hpp>

#include "llvm/Support/Format.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <limits>

namespace ingot::debug {
namespace {

TracedTensor summary(const Recording &recording, const RecordedTensor &tensor,
                     const LmRows &rows) {
  const Producer &from = recording.producerOf(tensor);
  TracedTensor traced{tensor.name, rows.rows, rows.columns,
                      from.name,   from.op,   from.kernel};
  double sum = 0;
  for (float value : rows.values) {
    sum += double(value) * value;
    traced.largest = std::max(traced.largest, std::abs(double(value)));
  }
  if (!rows.values.empty())
    traced.rms = std::sqrt(sum / double(rows.values.size()));
  return traced;
}

// A tensor that was written in two forms has the second one under this name.
std::string uniqueName(const std::string &name,
                       std::map<std::string, int> &used) {
  int count = used[name]++;
  return count == 0 ? name : name + "#" + std::to_string(count + 1);
}

template <typename Element>
std::span<const std::uint8_t> bytesOf(const std::vector<Element> &values) {
  return {reinterpret_cast<const std::uint8_t *>(values.data()),
          values.size() * sizeof(Element)};
}

} // namespace

Result<std::pair<std::int32_t, std::int32_t>>
readLayers(const std::string &text) {
  auto [first, last] = llvm::StringRef(text).split('-');
  std::int32_t begin = 0, end = std::numeric_limits<std::int32_t>::max();
  bool isRange = llvm::StringRef(text).contains('-');
  if (first.getAsInteger(10, begin) || begin < 0 ||
      (isRange && !last.empty() && last.getAsInteger(10, end)) ||
      (isRange && end < begin))
    return Status::invalid("layers \"" + text +
                           "\": expected a layer (3), a range (3-5) or all "
                           "from one on (3-)");
  return std::pair(begin, isRange ? end : begin);
}

Result<Trace> traceModel(const TraceRequest &request) {
  llvm::Regex ops(request.ops.empty() ? ".*" : request.ops);
  if (std::string why; !ops.isValid(why))
    return Status::invalid("regular expression \"" + request.ops +
                           "\": " + why);
  if (request.outputPath.empty() && !request.watchNonFinite)
    return Status::invalid("nothing is asked for: expected an output file or "
                           "the watch for numbers that are not finite");
  ArtifactRunOptions options = request.run;
  options.watchNonFinite = request.watchNonFinite;
  options.keep = [&](const std::string &name, std::int32_t layer) {
    if (request.outputPath.empty())
      return false;
    return ops.match(name) &&
           (!request.layers || (layer >= request.layers->first &&
                                layer <= request.layers->second));
  };
  INGOT_ASSIGN_OR_RETURN(SourceKind kind, kindOf(request.path));
  Recording recording;
  if (kind == SourceKind::Artifact) {
    INGOT_ASSIGN_OR_RETURN(
        recording, recordArtifact(request.path, request.tokens, options));
  } else if (kind == SourceKind::Module) {
    INGOT_ASSIGN_OR_RETURN(
        LmModel model,
        LmModel::open(request.path, request.sourceFolder, request.diagnostic));
    INGOT_ASSIGN_OR_RETURN(
        recording, recordModule(model.executor(), request.tokens, options));
  } else {
    return Status::invalid(request.path +
                           ": holds tensors, which cannot be run");
  }
  Trace trace;
  trace.nonFinite = recording.nonFinite;
  if (request.outputPath.empty())
    return trace;
  if (recording.tensors.empty())
    return Status::invalid(request.path + ": no tensor is named like \"" +
                           request.ops + "\" in the chosen layers");
  SafetensorsWriter writer;
  std::map<std::string, int> used;
  for (const RecordedTensor &tensor : recording.tensors) {
    LmRows rows = floatRows(tensor.rows);
    trace.tensors.push_back(summary(recording, tensor, rows));
    trace.tensors.back().name = uniqueName(tensor.name, used);
    INGOT_RETURN_IF_ERROR(
        writer.add(trace.tensors.back().name, SafetensorsDtype::F32,
                   {std::uint64_t(rows.rows), std::uint64_t(rows.columns)},
                   bytesOf(rows.values)));
  }
  INGOT_RETURN_IF_ERROR(writer.add("tokens", SafetensorsDtype::I32,
                                   {request.tokens.size()},
                                   bytesOf(request.tokens)));
  INGOT_RETURN_IF_ERROR(writer.write(request.outputPath));
  return trace;
}

std::string traceText(const Trace &trace, const TraceRequest &request) {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (!request.outputPath.empty()) {
    out << llvm::left_justify("tensor", 32) << llvm::right_justify("shape", 14)
        << llvm::right_justify("rms", 12) << llvm::right_justify("largest", 12)
        << "  launch and kernel\n";
    for (const TracedTensor &tensor : trace.tensors) {
      std::string shape =
          std::to_string(tensor.rows) + " x " + std::to_string(tensor.columns);
      out << llvm::left_justify(printable(tensor.name), 32)
          << llvm::right_justify(shape, 14)
          << llvm::format("%12.4g%12.4g", tensor.rms, tensor.largest) << "  "
          << printable(tensor.launch) << " "
          << printable(tensor.kernel.empty() ? tensor.op : tensor.kernel)
          << "\n";
    }
    out << trace.tensors.size() << " tensors of " << request.tokens.size()
        << " tokens in " << printable(request.outputPath) << "\n";
  }
  if (!request.watchNonFinite)
    return text;
  if (!trace.nonFinite) {
    out << "every number is finite\n";
    return text;
  }
  const NonFinite &found = *trace.nonFinite;
  out << "not finite: " << found.value << " in " << printable(found.tensor)
      << ", position " << found.position << ", column " << found.column
      << "; launch " << printable(found.launch);
  if (found.layer >= 0)
    out << ", layer " << found.layer;
  out << "\n";
  return text;
}

std::string traceJson(const Trace &trace, const TraceRequest &request) {
  nlohmann::ordered_json report;
  report["model"] = request.path;
  report["tokens"] = request.tokens;
  if (!request.outputPath.empty()) {
    report["output"] = request.outputPath;
    auto &tensors = report["tensors"] = nlohmann::ordered_json::array();
    for (const TracedTensor &tensor : trace.tensors)
      tensors.push_back({{"name", tensor.name},
                         {"rows", tensor.rows},
                         {"columns", tensor.columns},
                         {"rms", tensor.rms},
                         {"largest", tensor.largest},
                         {"launch", tensor.launch},
                         {"op", tensor.op},
                         {"kernel", tensor.kernel}});
  }
  if (request.watchNonFinite) {
    report["finite"] = !trace.nonFinite;
    if (const auto &found = trace.nonFinite)
      report["first_not_finite"] = {
          {"tensor", found->tensor}, {"launch", found->launch},
          {"layer", found->layer},   {"position", found->position},
          {"column", found->column}, {"value", std::to_string(found->value)}};
  }
  return report.dump(1, ' ', /*ensure_ascii=*/true,
                     nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

} // namespace ingot::debug
