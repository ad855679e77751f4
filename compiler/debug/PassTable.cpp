// 1. Compile with a watch behind each pass: count, keep lines, save the stage.
// 2. A folder of stages has stages.json: which pass each file is behind, so that
//    a compilation goes on from any of them with the passes that were left.
#include "compiler/debug/PassTable.h"

#include "compiler/debug/ModuleLines.h"
#include "compiler/package/OutputFile.h"
#include "dialects/lm/LmOps.h"
#include "dialects/plan/Plan.h"
#include "runtime/plan/Artifact.h"
#include "runtime/plan/Container.h"
#include "runtime/support/Printable.h"

#include <nlohmann/json.hpp>

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

using namespace mlir;

namespace fs = std::filesystem;

namespace ingot::debug {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kIndex[] = "stages.json";

std::string nameOfPass(llvm::StringRef pass) {
  return pass.split('{').first.str();
}

template <typename WeightOp> std::uint64_t bytesOf(WeightOp weight) {
  auto encoding = weight.getEncoding();
  std::uint64_t rows = weight.getRows(), columns = weight.getColumns();
  using Code = decltype(encoding.getCode());
  std::uint64_t bits = encoding.getCode() == Code::F32  ? 32
                       : encoding.getCode() == Code::I8 ? 8
                       : encoding.getCode() == Code::I4 ? 4
                                                        : 16;
  std::uint64_t bytes = rows * ((columns * bits + 7) / 8);
  if (encoding.getGroup() > 0) {
    std::uint64_t groups =
        (columns + encoding.getGroup() - 1) / encoding.getGroup();
    bytes += rows * groups * (encoding.getMinimum() ? 4 : 2);
  }
  return bytes;
}

void count(ModuleOp module, PassRow &row) {
  module.walk([&](Operation *op) {
    if (isa<plan::LaunchOpInterface>(op))
      ++row.launches;
    else if (op->getParentOfType<lm::ProgramOp>() &&
             !op->hasTrait<OpTrait::IsTerminator>())
      ++row.operators;
  });
  for (auto weight : module.getOps<lm::WeightOp>())
    row.weightBytes += bytesOf(weight);
  for (auto weight : module.getOps<plan::WeightOp>())
    row.weightBytes += bytesOf(weight);
}

Result<std::string> readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return Status::notFound(path + ": no such file");
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

// The measurements of a ledger, by step.
Result<std::map<std::string, LedgerFigures>>
readLedger(const std::string &path) {
  INGOT_ASSIGN_OR_RETURN(std::string text, readFile(path));
  if (llvm::StringRef(text).starts_with(
          llvm::StringRef(container::kMagic, sizeof(container::kMagic)))) {
    INGOT_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(path));
    auto segment = artifact.segment(container::SegmentKind::Ledger);
    text.assign(segment.begin(), segment.end());
  }
  auto json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("measurements") ||
      !json["measurements"].is_array() || json["measurements"].empty())
    return Status::invalid(path + ": has no measurements of accuracy");
  std::map<std::string, LedgerFigures> figures;
  for (const Json &entry : json["measurements"]) {
    auto number = [&](const char *key, double &value) {
      bool isThere = entry.contains(key) && entry[key].is_number();
      if (isThere)
        value = entry[key].get<double>();
      return isThere;
    };
    LedgerFigures one;
    if (!entry.is_object() || !entry.contains("step") ||
        !entry["step"].is_string() || !number("perplexity", one.perplexity) ||
        !number("mean_kl", one.meanKl) || !number("p99_kl", one.p99Kl) ||
        !number("top1_agreement", one.agreement))
      return Status::invalid(path + ": a measurement lacks step, perplexity, "
                                    "mean_kl, p99_kl or top1_agreement");
    figures[entry["step"].get<std::string>()] = one;
  }
  return figures;
}

class Tabulation {
public:
  Tabulation(MLIRContext &context, const PassesRequest &request)
      : context_(context), request_(request), compile_(request.compile) {}

  Result<PassReport> run() {
    if (!request_.fromStage.empty())
      INGOT_RETURN_IF_ERROR(resume());
    if (!request_.ledger.empty()) {
      INGOT_ASSIGN_OR_RETURN(ledger_, readLedger(request_.ledger));
    }
    if (!request_.stagesFolder.empty()) {
      std::error_code error;
      fs::create_directories(request_.stagesFolder, error);
      if (error)
        return Status::io(request_.stagesFolder + ": " + error.message());
    }
    auto [name, number] = llvm::StringRef(request_.diffPass).split('#');
    wanted_ = name.str();
    if (llvm::StringRef(request_.diffPass).contains('#') &&
        (number.getAsInteger(10, wantedNumber_) || wantedNumber_ < 1))
      return Status::invalid("pass \"" + request_.diffPass +
                             "\": expected NAME#NUMBER");
    INGOT_RETURN_IF_ERROR(compile());
    INGOT_RETURN_IF_ERROR(status_);
    INGOT_RETURN_IF_ERROR(writeIndex());
    for (const auto &[step, figures] : ledger_)
      if (llvm::none_of(report_.rows, [&](const PassRow &row) {
            return nameOfPass(row.pass) == step;
          }))
        report_.otherSteps.emplace_back(step, figures);
    if (!wanted_.empty() && seen_ == 0)
      return Status::invalid("no pass \"" + wanted_ + "\" ran");
    if (!wanted_.empty() && wantedNumber_ == 0 && seen_ > 1)
      return Status::invalid("pass \"" + wanted_ + "\" ran " +
                             std::to_string(seen_) +
                             " times; name one: " + wanted_ + "#1");
    if (wantedNumber_ > seen_)
      return Status::invalid("pass \"" + wanted_ + "\" ran " +
                             std::to_string(seen_) + " times");
    return std::move(report_);
  }

private:
  Status compile() {
    compile_.afterPass = [&](Phase phase, const std::string &pass,
                             ModuleOp module, double seconds) {
      add(phase, pass, module, seconds);
    };
    return compileModel(context_, compile_).status();
  }

  void add(Phase phase, const std::string &pass, ModuleOp module,
           double seconds) {
    if (!status_)
      return;
    PassRow row;
    row.phase = phaseName(phase);
    row.pass = pass;
    row.seconds = seconds;
    count(module, row);
    std::string text = stageText(module);
    row.changed = text != text_ || report_.rows.empty();
    text_ = std::move(text);
    if (auto found = ledger_.find(nameOfPass(pass)); found != ledger_.end())
      row.ledger = found->second;
    report_.rows.push_back(std::move(row));
    if (!wanted_.empty())
      show(pass, module);
    if (!request_.stagesFolder.empty())
      status_ = save(phase, pass);
  }

  void show(const std::string &pass, ModuleOp module) {
    auto lines = linesByLayer(module);
    if (nameOfPass(pass) == wanted_ &&
        (++seen_ == wantedNumber_ || (wantedNumber_ == 0 && seen_ == 1)))
      compare(lines);
    lines_ = std::move(lines);
  }

  void compare(std::map<std::int64_t, std::vector<std::string>> &after) {
    std::map<std::string, std::vector<std::int64_t>> alike;
    std::vector<std::string> order;
    std::set<std::int64_t> layers;
    for (const auto *side : {&lines_, &after})
      for (const auto &[layer, lines] : *side)
        layers.insert(layer);
    for (std::int64_t layer : layers) {
      if (lines_[layer] == after[layer])
        continue;
      std::string text = lineDiff(lines_[layer], after[layer]);
      std::vector<std::int64_t> &same = alike[text];
      if (same.empty())
        order.push_back(text);
      same.push_back(layer);
    }
    for (const std::string &text : order)
      report_.diff.push_back({alike[text], text});
  }

  //===--------------------------------------------------------------------===//
  // Stages
  //===--------------------------------------------------------------------===//

  Status save(Phase phase, const std::string &pass) {
    char number[8];
    std::snprintf(number, sizeof(number), "%02zu", report_.rows.size() - 1);
    std::string name = std::string(number) + "-" + nameOfPass(pass) + ".mlir";
    stages_.push_back(
        {{"file", name}, {"phase", phaseName(phase)}, {"pass", pass}});
    return write(name, text_);
  }

  Status write(const std::string &name, const std::string &text) const {
    std::string path = request_.stagesFolder + "/" + name;
    return package::writeOutputFile(path, text);
  }

  Status writeIndex() const {
    if (request_.stagesFolder.empty())
      return Status::ok();
    Json index = Json::array();
    for (const Json &stage : stages_)
      index.push_back(stage);
    return write(kIndex, index.dump(1) + "\n");
  }

  // The passes behind the stage, phase by phase, as pipelines of the request.
  Status resume() {
    fs::path stage(request_.fromStage);
    std::string indexPath = (stage.parent_path() / kIndex).string();
    INGOT_ASSIGN_OR_RETURN(std::string text, readFile(indexPath));
    auto index = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    auto textOf = [](const Json &entry, const char *key) {
      return entry.is_object() && entry.contains(key) && entry[key].is_string()
                 ? entry[key].get<std::string>()
                 : std::string();
    };
    if (!index.is_array())
      return Status::invalid(indexPath + ": expected a list of stages");
    bool isBehind = false;
    std::map<Phase, std::string> pipelines;
    std::optional<Phase> phaseOfStage;
    for (const Json &entry : index) {
      std::optional<Phase> phase = phaseByName(textOf(entry, "phase"));
      std::string pass = textOf(entry, "pass");
      if (!phase || pass.empty())
        return Status::invalid(indexPath +
                               ": a stage lacks its file, phase or pass");
      if (isBehind)
        pipelines[*phase] += (pipelines[*phase].empty() ? "" : ",") + pass;
      if (textOf(entry, "file") == stage.filename().string()) {
        isBehind = true;
        phaseOfStage = phase;
      }
    }
    if (!phaseOfStage)
      return Status::invalid(indexPath + ": does not name " +
                             stage.filename().string());
    if (pipelines.empty())
      return Status::invalid(request_.fromStage +
                             ": is behind the last pass; none is left to run");
    compile_.modelPath = request_.fromStage;
    compile_.from = pipelines.begin()->first;
    for (Phase phase : kPhases)
      if (phase >= *compile_.from)
        compile_.options.pipelines[phaseName(phase)] = pipelines[phase];
    return Status::ok();
  }

  MLIRContext &context_;
  const PassesRequest &request_;
  CompileRequest compile_;
  PassReport report_;
  Status status_;
  std::string text_, wanted_;
  int wantedNumber_ = 0, seen_ = 0; // numbers of passes of one name, from 1
  std::map<std::int64_t, std::vector<std::string>> lines_;
  std::map<std::string, LedgerFigures> ledger_;
  std::vector<Json> stages_;
};

} // namespace

static std::string bytesText(std::uint64_t bytes) {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (bytes < 1u << 20)
    out << llvm::format("%.1f KiB", double(bytes) / 1024);
  else
    out << llvm::format("%.1f MiB", double(bytes) / (1 << 20));
  return text;
}

std::string passesText(const PassReport &report, const PassesRequest &request) {
  std::string text;
  llvm::raw_string_ostream out(text);
  std::size_t width = 4;
  for (const PassRow &row : report.rows)
    width = std::max(width, nameOfPass(row.pass).size());
  bool hasLedger = !request.ledger.empty();
  out << llvm::left_justify("phase", 10) << llvm::left_justify("pass", width)
      << "  operators  launches     weights      time  changed";
  if (hasLedger)
    out << "  perplexity   mean KL    p99 KL     top-1";
  out << "\n";
  auto figures = [&](const LedgerFigures &one) {
    out << llvm::format("  %10.4f  %8.6f  %8.6f  %7.2f %%", one.perplexity,
                        one.meanKl, one.p99Kl, 100 * one.agreement);
  };
  for (const PassRow &row : report.rows) {
    out << llvm::left_justify(row.phase, 10)
        << llvm::left_justify(nameOfPass(row.pass), width)
        << llvm::format("  %9llu  %8llu  ",
                        static_cast<unsigned long long>(row.operators),
                        static_cast<unsigned long long>(row.launches))
        << llvm::right_justify(bytesText(row.weightBytes), 10)
        << llvm::format("  %6.3f s", row.seconds)
        << (row.changed ? "      yes" : "        -");
    if (row.ledger)
      figures(*row.ledger);
    out << "\n";
  }
  for (const auto &[step, one] : report.otherSteps) {
    out << llvm::left_justify("ledger", 10) << llvm::left_justify(step, width)
        << std::string(50, ' ');
    figures(one);
    out << "\n";
  }
  if (request.diffPass.empty())
    return text;
  out << "\n" << printable(request.diffPass) << ": ";
  if (report.diff.empty())
    out << "changes nothing\n";
  else
    out << "what it changed, layer by layer\n";
  for (const LayerDiff &diff : report.diff) {
    std::vector<std::string> layers;
    for (std::int64_t layer : diff.layers)
      layers.push_back(std::to_string(layer));
    if (diff.layers.front() < 0)
      out << "\n@@ outside the layers @@\n";
    else
      out << "\n@@ " << (layers.size() == 1 ? "layer " : "layers ")
          << llvm::join(layers, ", ")
          << (layers.size() == 1 ? " @@\n" : ", alike @@\n");
    out << printableLines(diff.text);
  }
  return text;
}

std::string passesJson(const PassReport &report, const PassesRequest &request) {
  Json json;
  json["model"] =
      request.fromStage.empty() ? request.compile.modelPath : request.fromStage;
  auto figures = [](const LedgerFigures &one) {
    return Json{{"perplexity", one.perplexity},
                {"mean_kl", one.meanKl},
                {"p99_kl", one.p99Kl},
                {"top1_agreement", one.agreement}};
  };
  Json &passes = json["passes"] = Json::array();
  for (const PassRow &row : report.rows) {
    passes.push_back({{"phase", row.phase},
                      {"pass", row.pass},
                      {"operators", row.operators},
                      {"launches", row.launches},
                      {"weight_bytes", row.weightBytes},
                      {"seconds", row.seconds},
                      {"changed", row.changed}});
    if (row.ledger)
      passes.back()["ledger"] = figures(*row.ledger);
  }
  for (const auto &[step, one] : report.otherSteps)
    json["other_steps"][step] = figures(one);
  if (!request.diffPass.empty()) {
    Json &diff = json["diff"] = Json::array();
    for (const LayerDiff &one : report.diff)
      diff.push_back({{"layers", one.layers}, {"text", one.text}});
  }
  return json.dump(1, ' ', /*ensure_ascii=*/true,
                   Json::error_handler_t::replace) +
         "\n";
}

Result<PassReport> tabulatePasses(MLIRContext &context,
                                  const PassesRequest &request) {
  return Tabulation(context, request).run();
}

} // namespace ingot::debug
