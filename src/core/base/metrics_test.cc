#include "base/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/limits.h"

namespace holdfast {
namespace {

TEST(Metrics, AreExportedInThePrometheusFormat) {
  MetricRegistry registry;
  auto& total = registry.counters("requests_total", "Requests.", {"verb", "code"});
  total.with({"GET", "200"}).add();
  total.with({"GET", "200"}).add(2);
  total.with({"DELETE", "a\"b"}).add();
  registry.gauges("open", "Open things.").with({}).set(-3);
  static constexpr double kBounds[] = {0.005, 1};
  auto& seconds = registry.histograms("seconds", "Durations.", kBounds, {"verb"});
  seconds.with({"GET"}).observe(0.001);
  seconds.with({"GET"}).observe(0.5);
  seconds.with({"GET"}).observe(7);
  registry.computed("answer", "Asked for.", "gauge", [] { return 42.5; });
  EXPECT_EQ(registry.render(),
            "# HELP answer Asked for.\n# TYPE answer gauge\nanswer 42.5\n"
            "# HELP open Open things.\n# TYPE open gauge\nopen -3\n"
            "# HELP requests_total Requests.\n# TYPE requests_total counter\n"
            "requests_total{verb=\"DELETE\",code=\"a\\\"b\"} 1\nrequests_total{verb=\"GET\",code=\"200\"} 3\n"
            "# HELP seconds Durations.\n# TYPE seconds histogram\n"
            "seconds_bucket{verb=\"GET\",le=\"0.005\"} 1\nseconds_bucket{verb=\"GET\",le=\"1\"} 2\n"
            "seconds_bucket{verb=\"GET\",le=\"+Inf\"} 3\nseconds_sum{verb=\"GET\"} 7.501\n"
            "seconds_count{verb=\"GET\"} 3\n");
}

TEST(Metrics, AnUnusedFamilyIsNotExported) {
  MetricRegistry registry;
  registry.counters("unused_total", "Nothing.", {"verb"});
  EXPECT_EQ(registry.render(), "");
}

TEST(Metrics, SeriesOfOneMetricAreLimited) {
  MetricRegistry registry;
  auto& family = registry.counters("requests_total", "Requests.", {"verb"});
  for (size_t i = 0; i < limits::kMetricSeries + 1000; ++i) family.with({"v" + std::to_string(i)}).add();
  const std::string text = registry.render();
  EXPECT_NE(text.find("requests_total{verb=\"other\"} 1000\n"), std::string::npos);
  EXPECT_EQ(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')), limits::kMetricSeries + 1 + 2);
}

}  // namespace
}  // namespace holdfast
