#include "cli/waiting.h"

#include <algorithm>

#include "base/clock.h"

namespace holdfast::cli {

namespace {

Error timed_out() { return {Reason::Timeout, "timed out waiting for the condition"}; }

}  // namespace

Result<Unit> wait_until(const client::Api<>& api, const std::string& name, std::chrono::nanoseconds timeout,
                        const Done& done) {
  using Seconds = std::chrono::seconds;
  const auto until = std::chrono::steady_clock::now() + timeout;
  while (true) {
    // A list, so that there is a version to start the watch from even if the object does not exist.
    Result<client::Object> list = api.list({.field_selector = "metadata.name=" + name}).wait();
    if (!list) return list.take_error();
    const std::span<const Value> items = list->root().items_at("items");
    Result<bool> met = done(items.empty() ? nullptr : &items[0]);
    if (!met) return met.take_error();
    if (*met) return Unit{};
    const auto left = until - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds(0)) return timed_out();
    client::WatchOptions options{.field_selector = "metadata.name=" + name,
                                 .resource_version = std::string(list->resource_version()),
                                 .timeout_seconds = std::max<int64_t>(1, std::chrono::ceil<Seconds>(left).count())};
    Result<client::Watch> watch = api.watch(options).wait();
    if (!watch) return watch.take_error();
    while (true) {
      Result<std::optional<client::WatchEvent>> event = watch->next().wait();
      if (!event || !*event) break;  // Closed or failed: list again.
      if ((*event)->type == client::WatchEvent::Type::Bookmark) continue;
      const bool gone = (*event)->type == client::WatchEvent::Type::Deleted;
      met = done(gone ? nullptr : &(*event)->object.root());
      if (!met) return met.take_error();
      if (*met) return Unit{};
      if (std::chrono::steady_clock::now() >= until) return timed_out();
    }
  }
}

Result<std::chrono::nanoseconds> parse_timeout(const std::string& text) {
  Result<int64_t> nanos = parse_go_duration(text);
  if (!nanos) return nanos.take_error();
  return *nanos < 0 ? std::chrono::nanoseconds(std::chrono::hours(24 * 7)) : std::chrono::nanoseconds(*nanos);
}

}  // namespace holdfast::cli
