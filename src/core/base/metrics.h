// Counters, gauges and histograms, exported in Prometheus' text format.
//
//   auto& total = registry.counters("apiserver_request_total", "Requests by verb and code.", {"verb", "code"});
//   total.with({"GET", "200"}).add();
//
// Threading: any thread. with() takes a shared lock; keep the reference on hot paths. References are valid as long as
// the registry. Families are created during startup.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace holdfast {

class Counter {
 public:
  void add(uint64_t count = 1) { value_.fetch_add(count, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

class Gauge {
 public:
  void set(int64_t value) { value_.store(value, std::memory_order_relaxed); }
  void add(int64_t by) { value_.fetch_add(by, std::memory_order_relaxed); }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

class Histogram {
 public:
  explicit Histogram(std::span<const double> upper_bounds);  // Ascending; must outlive the histogram.
  void observe(double value);
  std::span<const double> bounds() const { return bounds_; }
  uint64_t in_bucket(size_t index) const { return buckets_[index].load(std::memory_order_relaxed); }
  double sum() const { return static_cast<double>(sum_micros_.load(std::memory_order_relaxed)) / 1e6; }

 private:
  std::span<const double> bounds_;
  std::unique_ptr<std::atomic<uint64_t>[]> buckets_;  // One more than bounds, for larger values.
  std::atomic<uint64_t> sum_micros_{0};               // Values times a million: adding integers never loses small ones.
};

using LabelValues = std::span<const std::string_view>;

// All metrics of one name, one per combination of label values seen, up to limits::kMetricSeries; the rest is counted
// with "other" for every label.
template <class Metric>
class Family {
 public:
  Family(std::string name, std::string help, std::vector<std::string> labels, std::function<Metric*()> make)
      : name_(std::move(name)), help_(std::move(help)), labels_(std::move(labels)), make_(std::move(make)) {}

  Metric& with(std::initializer_list<std::string_view> values) {
    return with(LabelValues(values.begin(), values.size()));
  }
  Metric& with(LabelValues values);
  void render(std::string& out) const;

 private:
  struct Entry {
    std::vector<std::string> values;
    std::unique_ptr<Metric> metric;
  };
  Entry* find(uint64_t hash, LabelValues values) const;
  Entry& add(uint64_t hash, LabelValues values);

  const std::string name_, help_;
  const std::vector<std::string> labels_;
  const std::function<Metric*()> make_;
  mutable std::shared_mutex mutex_;  // Guards entries_.
  std::unordered_multimap<uint64_t, std::unique_ptr<Entry>> entries_;
};

class MetricRegistry {
 public:
  MetricRegistry();
  ~MetricRegistry();

  Family<Counter>& counters(std::string name, std::string help, std::vector<std::string> labels = {});
  Family<Gauge>& gauges(std::string name, std::string help, std::vector<std::string> labels = {});
  Family<Histogram>& histograms(std::string name, std::string help, std::span<const double> upper_bounds,
                                std::vector<std::string> labels = {});
  // A value computed when metrics are scraped; `type` is "gauge" or "counter".
  void computed(std::string name, std::string help, std::string_view type, std::function<double()> value);

  // Likewise, with one value per combination of label values.
  struct Labelled {
    std::vector<std::string> labels;
    double value;
  };
  void computed_by(std::string name, std::string help, std::string_view type, std::vector<std::string> labels,
                   std::function<std::vector<Labelled>()> values);

  std::string render() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast
