#include "runtime/serve/Metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ingot::serve {
namespace {

void appendEscaped(std::string &out, std::string_view text, bool quotes) {
  for (char c : text) {
    if (c == '\\')
      out += "\\\\";
    else if (c == '\n')
      out += "\\n";
    else if (c == '"' && quotes)
      out += "\\\"";
    else
      out += c;
  }
}

std::string labelText(const Labels &labels) {
  std::string text;
  for (const auto &[name, value] : labels) {
    if (!text.empty())
      text += ',';
    text += name + "=\"";
    appendEscaped(text, value, /*quotes=*/true);
    text += '"';
  }
  return text;
}

// Shortest text that is the same number; "+Inf" as the format spells it.
std::string number(double value) {
  if (std::isinf(value))
    return value > 0 ? "+Inf" : "-Inf";
  char text[40];
  for (int digits = 6; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value)
      break;
  }
  return text;
}

void appendSample(std::string &out, const std::string &name,
                  const std::string &labels, const std::string &value) {
  out += name;
  if (!labels.empty())
    out += "{" + labels + "}";
  out += " " + value + "\n";
}

} // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

void Histogram::observe(double value, std::uint64_t times) {
  std::size_t bucket =
      std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  std::lock_guard lock(mutex_);
  counts_[bucket] += times;
  sum_ += value * double(times);
}

std::uint64_t Histogram::count() const {
  std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (std::uint64_t count : counts_)
    sum += count;
  return sum;
}

MetricRegistry::Series &MetricRegistry::find(const std::string &name,
                                             const std::string &help,
                                             const char *type,
                                             const Labels &labels) {
  auto family =
      std::find_if(families_.begin(), families_.end(),
                   [&](const Family &each) { return each.name == name; });
  if (family == families_.end()) {
    families_.push_back({name, help, type, {}});
    family = families_.end() - 1;
  }
  std::string text = labelText(labels);
  for (Series &series : family->series)
    if (series.labels == text)
      return series;
  family->series.emplace_back();
  family->series.back().labels = std::move(text);
  return family->series.back();
}

Counter &MetricRegistry::counter(const std::string &name,
                                 const std::string &help,
                                 const Labels &labels) {
  std::lock_guard lock(mutex_);
  Series &series = find(name, help, "counter", labels);
  if (!series.counter)
    series.counter = std::make_unique<Counter>();
  return *series.counter;
}

Gauge &MetricRegistry::gauge(const std::string &name, const std::string &help,
                             const Labels &labels) {
  std::lock_guard lock(mutex_);
  Series &series = find(name, help, "gauge", labels);
  if (!series.gauge)
    series.gauge = std::make_unique<Gauge>();
  return *series.gauge;
}

Histogram &MetricRegistry::histogram(const std::string &name,
                                     const std::string &help,
                                     const std::vector<double> &bounds,
                                     const Labels &labels) {
  std::lock_guard lock(mutex_);
  Series &series = find(name, help, "histogram", labels);
  if (!series.histogram)
    series.histogram = std::make_unique<Histogram>(bounds);
  return *series.histogram;
}

std::string MetricRegistry::text() const {
  std::lock_guard lock(mutex_);
  std::string out;
  for (const Family &family : families_) {
    out += "# HELP " + family.name + " ";
    appendEscaped(out, family.help, /*quotes=*/false);
    out += "\n# TYPE " + family.name + " " + family.type + "\n";
    for (const Series &series : family.series) {
      if (series.counter)
        appendSample(out, family.name, series.labels,
                     std::to_string(series.counter->value()));
      if (series.gauge)
        appendSample(out, family.name, series.labels,
                     number(series.gauge->value()));
      if (!series.histogram)
        continue;
      const Histogram &histogram = *series.histogram;
      std::lock_guard values(histogram.mutex_);
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < histogram.counts_.size(); ++i) {
        sum += histogram.counts_[i];
        std::string bound = i < histogram.bounds_.size()
                                ? number(histogram.bounds_[i])
                                : "+Inf";
        std::string labels = series.labels;
        if (!labels.empty())
          labels += ',';
        appendSample(out, family.name + "_bucket",
                     labels + "le=\"" + bound + "\"", std::to_string(sum));
      }
      appendSample(out, family.name + "_sum", series.labels,
                   number(histogram.sum_));
      appendSample(out, family.name + "_count", series.labels,
                   std::to_string(sum));
    }
  }
  return out;
}

} // namespace ingot::serve
