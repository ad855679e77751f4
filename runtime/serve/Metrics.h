// Counters, gauges and histograms in Prometheus' text format. Families are made
// once at the start; a series is made when its labels are first seen. Counters
// and histograms may be touched from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ingot::serve {

using Labels = std::vector<std::pair<std::string, std::string>>;

class Counter {
public:
  void add(std::uint64_t amount = 1) {
    value_.fetch_add(amount, std::memory_order_relaxed);
  }
  // For what is counted elsewhere.
  void set(std::uint64_t value) {
    value_.store(value, std::memory_order_relaxed);
  }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

private:
  std::atomic<std::uint64_t> value_{0};
};

class Gauge {
public:
  void set(double value) { value_.store(value, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

private:
  std::atomic<double> value_{0};
};

class Histogram {
public:
  // Upper bounds, ascending; infinity is understood.
  explicit Histogram(std::vector<double> bounds);

  void observe(double value, std::uint64_t times = 1);
  std::uint64_t count() const;

private:
  friend class MetricRegistry;
  std::vector<double> bounds_;
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> counts_; // of each bucket alone; last: infinity
  double sum_ = 0;
};

class MetricRegistry {
public:
  Counter &counter(const std::string &name, const std::string &help,
                   const Labels &labels = {});
  Gauge &gauge(const std::string &name, const std::string &help,
               const Labels &labels = {});
  Histogram &histogram(const std::string &name, const std::string &help,
                       const std::vector<double> &bounds,
                       const Labels &labels = {});

  // Text format 0.0.4: families in order of their making.
  std::string text() const;

private:
  struct Series {
    std::string labels; // as written between braces
    std::unique_ptr<Counter> counter;
    std::unique_ptr<Gauge> gauge;
    std::unique_ptr<Histogram> histogram;
  };
  struct Family {
    std::string name, help;
    const char *type = "";
    std::deque<Series> series;
  };
  Series &find(const std::string &name, const std::string &help,
               const char *type, const Labels &labels);

  mutable std::mutex mutex_;
  std::deque<Family> families_;
};

} // namespace ingot::serve
