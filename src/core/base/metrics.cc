#include "base/metrics.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <map>
#include <mutex>

#include "base/hash.h"
#include "base/limits.h"

namespace holdfast {

namespace {

std::string number(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

// {a="1",b="2"}; `more` is an additional label, already formatted.
std::string label_text(std::span<const std::string> names, std::span<const std::string> values, std::string_view more) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!text.empty()) text += ',';
    text += names[i] + "=\"" + escaped(values[i]) + '"';
  }
  if (!more.empty()) {
    if (!text.empty()) text += ',';
    text += more;
  }
  return text.empty() ? text : '{' + text + '}';
}

std::string_view type_of(const Counter*) { return "counter"; }
std::string_view type_of(const Gauge*) { return "gauge"; }
std::string_view type_of(const Histogram*) { return "histogram"; }

using Labels = std::span<const std::string>;

uint64_t hash_of(LabelValues values) {
  uint64_t hash = 0;
  for (const std::string_view value : values) hash = hash_combine(hash, hash_key(value));
  return hash;
}

void render_one(std::string& out, const std::string& name, Labels labels, Labels values, const Counter& metric) {
  out += name + label_text(labels, values, {}) + ' ' + std::to_string(metric.value()) + '\n';
}
void render_one(std::string& out, const std::string& name, Labels labels, Labels values, const Gauge& metric) {
  out += name + label_text(labels, values, {}) + ' ' + std::to_string(metric.value()) + '\n';
}
void render_one(std::string& out, const std::string& name, Labels labels, Labels values, const Histogram& metric) {
  uint64_t count = 0;
  for (size_t i = 0; i <= metric.bounds().size(); ++i) {
    count += metric.in_bucket(i);
    const std::string bound = i < metric.bounds().size() ? number(metric.bounds()[i]) : "+Inf";
    out += name + "_bucket" + label_text(labels, values, "le=\"" + bound + '"') + ' ' + std::to_string(count) + '\n';
  }
  out += name + "_sum" + label_text(labels, values, {}) + ' ' + number(metric.sum()) + '\n';
  out += name + "_count" + label_text(labels, values, {}) + ' ' + std::to_string(count) + '\n';
}

void render_head(std::string& out, const std::string& name, const std::string& help, std::string_view type) {
  out += "# HELP " + name + ' ' + help + "\n# TYPE " + name + ' ' + std::string(type) + '\n';
}

}  // namespace

Histogram::Histogram(std::span<const double> upper_bounds)
    : bounds_(upper_bounds), buckets_(std::make_unique<std::atomic<uint64_t>[]>(upper_bounds.size() + 1)) {}

void Histogram::observe(double value) {
  const size_t index = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  buckets_[index].fetch_add(1, std::memory_order_relaxed);
  sum_micros_.fetch_add(static_cast<uint64_t>(std::max(0.0, value) * 1e6), std::memory_order_relaxed);
}

template <class Metric>
typename Family<Metric>::Entry* Family<Metric>::find(uint64_t hash, LabelValues values) const {
  for (auto [it, end] = entries_.equal_range(hash); it != end; ++it) {
    if (std::equal(values.begin(), values.end(), it->second->values.begin(), it->second->values.end())) {
      return it->second.get();
    }
  }
  return nullptr;
}

template <class Metric>
typename Family<Metric>::Entry& Family<Metric>::add(uint64_t hash, LabelValues values) {
  auto entry = std::make_unique<Entry>();
  entry->values.assign(values.begin(), values.end());
  entry->metric.reset(make_());
  return *entries_.emplace(hash, std::move(entry))->second;
}

template <class Metric>
Metric& Family<Metric>::with(LabelValues values) {
  assert(values.size() == labels_.size());
  const uint64_t hash = hash_of(values);
  {
    std::shared_lock lock(mutex_);
    if (Entry* entry = find(hash, values)) return *entry->metric;
  }
  std::unique_lock lock(mutex_);
  if (Entry* entry = find(hash, values)) return *entry->metric;
  if (entries_.size() < limits::kMetricSeries) return *add(hash, values).metric;
  const std::vector<std::string_view> others(values.size(), "other");
  const uint64_t others_hash = hash_of(others);
  Entry* entry = find(others_hash, others);
  return entry != nullptr ? *entry->metric : *add(others_hash, others).metric;
}

template <class Metric>
void Family<Metric>::render(std::string& out) const {
  std::shared_lock lock(mutex_);
  if (entries_.empty()) return;
  std::vector<const Entry*> sorted;
  for (const auto& [hash, entry] : entries_) sorted.push_back(entry.get());
  std::sort(sorted.begin(), sorted.end(), [](const Entry* a, const Entry* b) { return a->values < b->values; });
  render_head(out, name_, help_, type_of(static_cast<const Metric*>(nullptr)));
  for (const Entry* entry : sorted) render_one(out, name_, labels_, entry->values, *entry->metric);
}

template class Family<Counter>;
template class Family<Gauge>;
template class Family<Histogram>;

struct MetricRegistry::State {
  mutable std::mutex mutex;
  // Sorted by name for the output.
  std::map<std::string, std::function<void(std::string&)>> renderers;
  std::vector<std::shared_ptr<void>> families;

  template <class Metric>
  Family<Metric>& add(std::string name, std::string help, std::vector<std::string> labels,
                      std::function<Metric*()> make) {
    auto family = std::make_shared<Family<Metric>>(name, std::move(help), std::move(labels), std::move(make));
    std::lock_guard lock(mutex);
    families.push_back(family);
    const bool fresh = renderers.emplace(name, [f = family.get()](std::string& out) { f->render(out); }).second;
    assert(fresh);
    (void)fresh;
    return *family;
  }
};

MetricRegistry::MetricRegistry() : state_(std::make_unique<State>()) {}
MetricRegistry::~MetricRegistry() = default;

Family<Counter>& MetricRegistry::counters(std::string name, std::string help, std::vector<std::string> labels) {
  return state_->add<Counter>(std::move(name), std::move(help), std::move(labels), [] { return new Counter; });
}

Family<Gauge>& MetricRegistry::gauges(std::string name, std::string help, std::vector<std::string> labels) {
  return state_->add<Gauge>(std::move(name), std::move(help), std::move(labels), [] { return new Gauge; });
}

Family<Histogram>& MetricRegistry::histograms(std::string name, std::string help, std::span<const double> upper_bounds,
                                              std::vector<std::string> labels) {
  return state_->add<Histogram>(std::move(name), std::move(help), std::move(labels),
                                [upper_bounds] { return new Histogram(upper_bounds); });
}

void MetricRegistry::computed(std::string name, std::string help, std::string_view type,
                              std::function<double()> value) {
  std::lock_guard lock(state_->mutex);
  state_->renderers.emplace(name, [=](std::string& out) {
    render_head(out, name, help, type);
    out += name + ' ' + number(value()) + '\n';
  });
}

void MetricRegistry::computed_by(std::string name, std::string help, std::string_view type,
                                 std::vector<std::string> labels, std::function<std::vector<Labelled>()> values) {
  std::lock_guard lock(state_->mutex);
  state_->renderers.emplace(name, [=](std::string& out) {
    const std::vector<Labelled> all = values();
    if (all.empty()) return;
    render_head(out, name, help, type);
    for (const Labelled& one : all) {
      out += name + label_text(labels, one.labels, {}) + ' ' + number(one.value) + '\n';
    }
  });
}

std::string MetricRegistry::render() const {
  std::string out;
  std::lock_guard lock(state_->mutex);
  for (const auto& [name, render] : state_->renderers) render(out);
  return out;
}

}  // namespace holdfast
