#include "compiler/debug/Comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

namespace ingot::debug {

const Difference *Comparison::first() const {
  for (const Difference &difference : differences)
    if (difference.diverges)
      return &difference;
  return nullptr;
}

Measured measure(const LmRows &actual, const LmRows &expected,
                 const LmRows *base, double allowed,
                 const std::vector<double> &rowsAllowed) {
  constexpr double kSumRounding = 1e-6;
  Measured result;
  double allError = 0, allSize = 0;
  std::vector<double> sizes(std::size_t(expected.rows));
  for (std::int64_t r = 0; r < expected.rows; ++r) {
    double size = 0;
    for (std::int64_t k = 0; k < expected.columns; ++k) {
      double part = expected.row(r)[k];
      if (base)
        part -= base->row(r)[k];
      size += part * part;
    }
    sizes[std::size_t(r)] = size;
    allSize += size;
  }
  // A row of zeros among others is held to a small part of their size.
  double least = std::isfinite(allSize) && expected.rows > 0
                     ? 1e-6 * allSize / double(expected.rows)
                     : 0;
  double worstShare = -1;
  for (std::int64_t r = 0; r < expected.rows; ++r) {
    double error = 0, whole = 0, largest = -1;
    std::int64_t column = -1;
    for (std::int64_t k = 0; k < expected.columns; ++k) {
      float a = actual.row(r)[k], b = expected.row(r)[k];
      double difference = double(a) - b;
      if (std::memcmp(&a, &b, sizeof a) == 0 ||
          (std::isnan(a) && std::isnan(b)))
        difference = 0; // also of infinities
      else if (!std::isfinite(difference))
        difference = std::numeric_limits<double>::infinity();
      error += difference * difference;
      whole += double(b) * b;
      if (std::abs(difference) > largest) {
        largest = std::abs(difference);
        column = k;
      }
    }
    double size = std::sqrt(std::max(sizes[std::size_t(r)], least));
    double ownAllowed =
        rowsAllowed.empty() ? allowed : rowsAllowed[std::size_t(r)];
    double limit = ownAllowed * size + kSumRounding * std::sqrt(whole);
    double distance = std::sqrt(error);
    bool isBeyond =
        std::isfinite(limit) ? !(distance <= limit) : !(distance == 0);
    if (isBeyond) {
      ++result.numBeyond;
      if (result.firstBeyond < 0)
        result.firstBeyond = r;
    }
    allError += error;
    double relative = distance == 0 ? 0 : distance / std::max(size, 1e-30);
    double share = limit > 0 ? distance / limit : distance;
    if (distance == 0)
      share = 0;
    if (!(share <= worstShare)) {
      worstShare = share;
      result.worst = relative;
      result.allowedOfWorst = limit / std::max(size, 1e-30);
      result.worstRow = r;
      result.worstColumn = column;
    }
  }
  result.error =
      allError == 0 ? 0 : std::sqrt(allError / std::max(allSize, 1e-30));
  return result;
}

double slackOf(const RecordedTensor &tensor) {
  switch (tensor.storage) {
  case Storage::F32:
    return 0;
  case Storage::F16:
    return 2e-4;
  case Storage::Quantized:
  case Storage::I8Heads:
    return 5e-3;
  }
  return 0;
}

void fill(Difference &difference, const Measured &measured) {
  difference.error = measured.error;
  difference.worst = measured.worst;
  difference.allowed = measured.allowedOfWorst;
  difference.diverges = !measured.isWithin();
  difference.firstPosition = measured.firstBeyond;
  difference.numPositions = measured.numBeyond;
  difference.worstPosition = measured.worstRow;
  difference.worstColumn = measured.worstColumn;
}

namespace {

bool isCodes(const std::optional<WeightEncoding> &encoding, WeightCode code) {
  return encoding && encoding->code == code;
}

// What it is known to cost, relative, that two producers keep weights or rows
// in different forms.
double knownCost(const Producer &a, const RecordedTensor &aTensor,
                 const Producer &b, const RecordedTensor &bTensor,
                 bool isOneChoice) {
  double cost = 0;
  if (a.encoding != b.encoding || !isOneChoice) {
    for (const auto &encoding : {a.encoding, b.encoding}) {
      if (isCodes(encoding, WeightCode::I4))
        cost = std::max(cost, 0.25);
      if (isCodes(encoding, WeightCode::I8))
        cost = std::max(cost, 0.02);
      if (isCodes(encoding, WeightCode::BF16))
        cost = std::max(cost, 0.005);
      if (isCodes(encoding, WeightCode::F16))
        cost = std::max(cost, 1e-3);
    }
  }
  if (aTensor.storage != bTensor.storage)
    for (Storage storage : {aTensor.storage, bTensor.storage}) {
      if (storage == Storage::Quantized || storage == Storage::I8Heads)
        cost = std::max(cost, 0.02);
      if (storage == Storage::F16)
        cost = std::max(cost, 1e-3);
    }
  return cost;
}

class Alignment {
public:
  Alignment(const Recording &observed, const Recording &reference,
            const CompareOptions &options)
      : observed_(observed), reference_(reference), options_(options) {}

  Result<Comparison> run() {
    Comparison comparison;
    comparison.isLocal = false;
    comparison.observed = observed_.source;
    comparison.reference = reference_.source;
    comparison.changedSlots = observed_.changedSlots;
    std::set<std::string> seen;
    std::optional<std::size_t> before;
    errors_.resize(observed_.tensors.size());
    for (std::size_t t = 0; t < observed_.tensors.size(); ++t) {
      const RecordedTensor &ours = observed_.tensors[t];
      const Producer &producer = observed_.producerOf(ours);
      if (producer.op == "rope_table")
        continue; // its effect is the query's and the keys'
      if (!seen.insert(ours.name).second)
        continue;
      const RecordedTensor *theirs = reference_.find(ours.name);
      if (!theirs || theirs->rows.rows != ours.rows.rows ||
          theirs->rows.columns != ours.rows.columns) {
        comparison.onlyObserved.push_back(ours.name);
        continue;
      }
      std::vector<double> before_ = explained(t, before);
      comparison.differences.push_back(
          compare(ours, *theirs, before_, errors_[t]));
      before = t;
      comparison.numPositions =
          std::max(comparison.numPositions, std::size_t(ours.rows.rows));
    }
    for (const RecordedTensor &tensor : reference_.tensors)
      if (!seen.count(tensor.name) &&
          reference_.producerOf(tensor).op != "rope_table")
        comparison.onlyReference.push_back(tensor.name);
    if (comparison.differences.empty())
      return Status::invalid("the two have no tensor of one name and shape");
    return comparison;
  }

private:
  // Of each row, the largest error of what it was made from.
  std::vector<double> explained(std::size_t tensor,
                                std::optional<std::size_t> before) const {
    std::set<std::size_t> sources, visited;
    collect(tensor, sources, visited);
    if (!observed_.isProgram && before)
      sources.insert(*before);
    std::vector<double> rows(std::size_t(observed_.tensors[tensor].rows.rows));
    for (std::size_t source : sources) {
      const std::vector<double> &of = errors_[source];
      // Rows of experts and of earlier positions mix: then the worst counts.
      double worst = of.empty() ? 0 : *std::max_element(of.begin(), of.end());
      bool mixes =
          observed_.producerOf(observed_.tensors[tensor]).op == "attention" ||
          of.size() != rows.size();
      for (std::size_t r = 0; r < rows.size(); ++r)
        rows[r] = std::max(rows[r], mixes ? worst : of[r]);
    }
    return rows;
  }

  // The nearest tensors that were compared, up the dataflow.
  void collect(std::size_t tensor, std::set<std::size_t> &sources,
               std::set<std::size_t> &visited) const {
    for (std::size_t input :
         observed_.producerOf(observed_.tensors[tensor]).inputs) {
      if (!visited.insert(input).second)
        continue;
      if (!errors_[input].empty())
        sources.insert(input);
      else
        collect(input, sources, visited);
    }
  }

  Difference compare(const RecordedTensor &ours, const RecordedTensor &theirs,
                     const std::vector<double> &explained,
                     std::vector<double> &errors) const {
    const Producer &producer = observed_.producerOf(ours);
    const Producer &other = reference_.producerOf(theirs);
    LmRows actual = floatRows(ours.rows), expected = floatRows(theirs.rows);
    double cost = knownCost(producer, ours, other, theirs,
                            observed_.codesHash == reference_.codesHash);
    std::vector<double> allowed;
    for (double error : explained)
      allowed.push_back(options_.tolerance + cost + slackOf(ours) +
                        options_.growth * error);
    Difference difference;
    difference.name = ours.name;
    difference.op = producer.op;
    for (const lm::Origin &origin : producer.origins)
      difference.operators.push_back(origin.name);
    difference.layer = layerOf(ours.name);
    fill(difference,
         measure(actual, expected, nullptr, options_.tolerance, allowed));
    difference.explained =
        explained.empty()
            ? 0
            : *std::max_element(explained.begin(), explained.end());
    difference.launch = producer.name;
    difference.kernel = producer.kernel;
    difference.settings = producer.settings;
    difference.referenceSettings = other.settings;
    if (cost > 0)
      difference.note =
          producer.encoding == other.encoding && ours.storage == theirs.storage
              ? "the sides' codes were chosen by different methods or texts"
              : "the sides keep it in different encodings";
    for (std::int64_t r = 0; r < expected.rows; ++r) {
      errors.push_back(
          measure(rowOf(actual, r), rowOf(expected, r), nullptr, 0).error);
    }
    return difference;
  }

  const Recording &observed_;
  const Recording &reference_;
  const CompareOptions &options_;
  std::vector<std::vector<double>> errors_; // of each row, by tensor
};

} // namespace

Result<Comparison> compareRecordings(const Recording &observed,
                                     const Recording &reference,
                                     const CompareOptions &options) {
  return Alignment(observed, reference, options).run();
}

} // namespace ingot::debug
