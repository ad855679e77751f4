#include "compiler/debug/Recording.h"

#include "dialects/plan/Plan.h"

#include <cmath>

namespace ingot::debug {

const RecordedTensor *Recording::find(llvm::StringRef name) const {
  for (const RecordedTensor &tensor : tensors)
    if (tensor.name == name)
      return &tensor;
  return nullptr;
}

LmRows floatRows(const LmRows &rows) {
  if (rows.group == 0)
    return rows;
  LmRows result = LmRows::zeros(rows.rows, rows.columns);
  for (std::int64_t r = 0; r < rows.rows; ++r)
    for (std::int64_t k = 0; k < rows.columns; ++k)
      result.row(r)[k] = static_cast<float>(rows.codes[r * rows.columns + k]) *
                         rows.scales[r * rows.groups + k / rows.group];
  return result;
}

LmRows rowOf(const LmRows &rows, std::int64_t row) {
  LmRows one = LmRows::zeros(1, rows.columns);
  std::copy_n(rows.row(row), rows.columns, one.row(0));
  return one;
}

std::int64_t bitsOf(const LmRows &rows) {
  // Scales make the largest code of a group 127 or 32512.
  for (std::int16_t code : rows.codes)
    if (code > 127 || code < -127)
      return 16;
  return 8;
}

LmRows columnsOf(const LmRows &rows, std::int64_t first, std::int64_t columns) {
  LmRows whole = floatRows(rows);
  LmRows result = LmRows::zeros(rows.rows, columns);
  for (std::int64_t r = 0; r < rows.rows; ++r)
    std::copy_n(whole.row(r) + first, columns, result.row(r));
  return result;
}

namespace {

// Row r of the result is row from(r).
template <typename From> LmRows reordered(const LmRows &rows, From from) {
  LmRows result = rows;
  auto copy = [&](auto &to, const auto &source, std::int64_t width) {
    if (!source.empty())
      for (std::int64_t r = 0; r < rows.rows; ++r)
        std::copy_n(source.begin() + from(r) * width, width,
                    to.begin() + r * width);
  };
  copy(result.values, rows.values, rows.columns);
  copy(result.codes, rows.codes, rows.columns);
  copy(result.scales, rows.scales, rows.groups);
  return result;
}

} // namespace

LmRows inSlotOrder(const LmRows &rows, std::span<const std::int64_t> order) {
  std::vector<std::int64_t> rowOfSlot(order.size());
  for (std::size_t r = 0; r < order.size(); ++r)
    rowOfSlot[std::size_t(order[r])] = std::int64_t(r);
  return reordered(
      rows, [&](std::int64_t slot) { return rowOfSlot[std::size_t(slot)]; });
}

LmRows inExpertOrder(const LmRows &rows, std::span<const std::int64_t> order) {
  return reordered(rows,
                   [&](std::int64_t row) { return order[std::size_t(row)]; });
}

std::string prefixOf(llvm::StringRef name) {
  return name.contains('.') ? name.rsplit('.').first.str() : std::string();
}

std::int32_t layerOf(llvm::StringRef name) {
  if (std::optional<std::int32_t> layer = plan::locationLayer(name))
    return *layer;
  auto [first, rest] = name.split('.');
  std::int32_t layers = 0;
  if (!first.consume_front("exit") || first.getAsInteger(10, layers))
    return -1;
  return plan::locationLayer(rest).value_or(layers - 1);
}

std::size_t Recorder::addProducer(Producer producer) {
  auto [found, isNew] = producers_.try_emplace(
      producer.name + " " + producer.op, recording_.producers.size());
  if (isNew)
    recording_.producers.push_back(std::move(producer));
  else // a later step of the same launch
    recording_.producers[found->second].kernel = producer.kernel;
  return found->second;
}

void Recorder::watch(const std::string &name, std::size_t producer,
                     const LmRows &rows, std::int64_t firstPosition) {
  if (!options_.watchNonFinite || recording_.nonFinite)
    return;
  const Producer &from = recording_.producers[producer];
  for (std::int64_t r = 0; r < rows.rows; ++r)
    for (std::int64_t k = 0; k < rows.columns; ++k) {
      float value = rows.group ? rows.scales[r * rows.groups + k / rows.group]
                               : rows.values[r * rows.columns + k];
      if (std::isfinite(value))
        continue;
      recording_.nonFinite = {name, from.name, from.layer, firstPosition + r,
                              k,    value};
      return;
    }
}

std::optional<std::size_t> Recorder::add(const std::string &name,
                                         std::size_t producer, LmRows rows,
                                         std::int64_t firstPosition,
                                         Storage storage,
                                         std::int64_t headDim) {
  watch(name, producer, rows, firstPosition);
  if (options_.keep &&
      !options_.keep(name, recording_.producers[producer].layer))
    return std::nullopt;
  std::string key =
      name + " " + std::to_string(producer) + " " + std::to_string(rows.group);
  auto [found, isNew] = tensors_.try_emplace(key, recording_.tensors.size());
  if (isNew) {
    recording_.tensors.push_back(
        {name, producer, std::move(rows), storage, headDim});
    return found->second;
  }
  LmRows &all = recording_.tensors[found->second].rows;
  all.rows += rows.rows;
  auto append = [](auto &to, const auto &from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(all.values, rows.values);
  append(all.codes, rows.codes);
  append(all.scales, rows.scales);
  return found->second;
}

} // namespace ingot::debug
