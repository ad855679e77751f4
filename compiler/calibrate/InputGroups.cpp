// 1. What is marked, by the parts of the weight: simplify joins weights, and a
//    part says which they were;
// 2. the linear operators of the imported program whose weights are marked, by
//    their input;
// 3. what makes the input of a group that is scaled, where it has no other reader.
#include "compiler/calibrate/InputGroups.h"

#include "passes/quantize/Calibrated.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace ingot {
namespace {

struct Mark {
  std::string launch;
  QuantizeSpec spec;
};

class Finder {
public:
  Finder(ModuleOp imported, ModuleOp marked)
      : imported_(imported), marked_(marked) {}

  Result<std::vector<InputGroup>> run() {
    readMarks();
    lm::ProgramOp program = *imported_.getOps<lm::ProgramOp>().begin();
    for (Operation &op : program.getEntryBlock())
      if (auto linear = dyn_cast<lm::LinearOp>(op))
        add(linear);
    if (numFound_ != marks_.size())
      return Status::unsupported(
          std::to_string(marks_.size()) +
          " tensors are to be calibrated, of which the program's linear "
          "operators read " +
          std::to_string(numFound_));
    std::vector<InputGroup> groups;
    for (auto &[value, group] : groups_)
      groups.push_back(group);
    std::size_t index = 0;
    for (auto &[value, group] : groups_)
      findFold(value, groups[index++], groups);
    return groups;
  }

private:
  void readMarks() {
    lm::ProgramOp program = *marked_.getOps<lm::ProgramOp>().begin();
    for (Operation &op : program.getEntryBlock()) {
      auto linear = dyn_cast<lm::LinearOp>(op);
      if (!linear)
        continue;
      lm::WeightOp weight = lm::lookupWeight(linear, linear.getWeightAttr());
      auto method = weight->getAttrOfType<StringAttr>(kCalibrateAttr);
      if (!method)
        continue;
      auto encoding =
          weight->getAttrOfType<lm::EncodingAttr>(kCalibrateEncodingAttr);
      Mark mark;
      mark.launch = lm::locationName(linear.getLoc()).str();
      mark.spec.encoding =
          encoding.getCode() == lm::WeightCode::I8 ? "int8" : "int4";
      mark.spec.group = encoding.getGroup();
      mark.spec.method = method.str();
      for (lm::PartAttr part : weight.getPartList())
        marks_[part] = mark;
    }
  }

  void add(lm::LinearOp linear) {
    lm::WeightOp weight = lm::lookupWeight(linear, linear.getWeightAttr());
    llvm::SmallVector<lm::PartAttr> parts = weight.getPartList();
    if (parts.empty())
      return;
    auto mark = marks_.find(parts.front());
    if (mark == marks_.end())
      return;
    numFound_ += parts.size();
    InputGroup &group = groups_[linear.getInput()];
    if (group.matrices.empty()) {
      group.launch = mark->second.launch;
      group.columns = weight.getColumns();
      llvm::StringRef rest = group.launch;
      if (rest.consume_front("layer."))
        rest.take_until([](char c) { return c == '.'; })
            .getAsInteger(10, group.layer);
    }
    lm::WeightOp bias;
    if (linear.getBiasAttr())
      bias = lm::lookupWeight(linear, linear.getBiasAttr());
    where_[linear] = {
        std::size_t(groups_.find(linear.getInput()) - groups_.begin()),
        group.matrices.size()};
    group.matrices.push_back({weight, bias, mark->second.spec});
  }

  static bool hasOneUse(ModuleOp module, lm::WeightOp weight) {
    auto uses = SymbolTable::getSymbolUses(weight.getSymNameAttr(), module);
    return uses && llvm::hasSingleElement(*uses);
  }

  void findFold(Value input, InputGroup &group,
                const std::vector<InputGroup> &groups) {
    for (const CalibratedMatrix &matrix : group.matrices)
      if (matrix.spec.method != "awq")
        return;
    if (std::size_t(std::distance(input.use_begin(), input.use_end())) !=
        group.matrices.size())
      return;
    Operation *maker = input.getDefiningOp();
    if (auto norm = dyn_cast_or_null<lm::RmsNormOp>(maker)) {
      foldNorm(group, lm::lookupWeight(norm, norm.getWeightAttr()), {},
               norm.getWeightOffset().convertToFloat());
    } else if (auto norm = dyn_cast_or_null<lm::LayerNormOp>(maker)) {
      lm::WeightOp bias;
      if (norm.getBiasAttr())
        bias = lm::lookupWeight(norm, norm.getBiasAttr());
      foldNorm(group, lm::lookupWeight(norm, norm.getWeightAttr()), bias, 0);
    } else if (auto attention = dyn_cast_or_null<lm::AttentionOp>(maker)) {
      auto values = attention.getValue().getDefiningOp<lm::LinearOp>();
      if (!isProducer(values, groups))
        return;
      setProducer(group, FoldInto::Values, values);
      auto head = std::int64_t(attention.getHeadDim());
      auto perKey = std::int64_t(attention.getHeads() / attention.getKvHeads());
      for (std::int64_t k = 0; k < group.columns; ++k)
        group.ties.push_back(k / head / perKey * head + k % head);
    } else if (auto gate = dyn_cast_or_null<lm::GateOp>(maker)) {
      auto both = gate.getGateUp().getDefiningOp<lm::ConcatOp>();
      if (!both || !both->hasOneUse() || both->getNumOperands() != 2)
        return;
      auto up = both->getOperand(1).getDefiningOp<lm::LinearOp>();
      if (isProducer(up, groups))
        setProducer(group, FoldInto::Up, up);
    }
  }

  void foldNorm(InputGroup &group, lm::WeightOp weight, lm::WeightOp bias,
                float offset) {
    if (!hasOneUse(imported_, weight) || (bias && !hasOneUse(imported_, bias)))
      return;
    group.fold = FoldInto::Norm;
    group.normWeight = weight;
    group.normBias = bias;
    group.normOffset = offset;
  }

  // A linear operator whose rows can be scaled: it gets codes, and nothing else
  // reads what it makes or its weights.
  bool isProducer(lm::LinearOp linear, const std::vector<InputGroup> &groups) {
    if (!linear || !linear->hasOneUse() || linear.getResidual() ||
        !where_.count(linear))
      return false;
    auto [group, matrix] = where_[linear];
    const CalibratedMatrix &found = groups[group].matrices[matrix];
    return hasOneUse(imported_, found.weight) &&
           (!found.bias || hasOneUse(imported_, found.bias));
  }

  void setProducer(InputGroup &group, FoldInto fold, lm::LinearOp linear) {
    group.fold = fold;
    std::tie(group.producerGroup, group.producerMatrix) = where_[linear];
  }

  ModuleOp imported_, marked_;
  llvm::DenseMap<Attribute, Mark> marks_; // by part
  std::size_t numFound_ = 0;
  llvm::MapVector<Value, InputGroup> groups_;
  llvm::DenseMap<Operation *, std::pair<std::size_t, std::size_t>> where_;
};

} // namespace

Result<std::vector<InputGroup>> findInputGroups(ModuleOp imported,
                                                ModuleOp marked) {
  return Finder(imported, marked).run();
}

} // namespace ingot
