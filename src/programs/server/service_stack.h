// The parts of a server that run, in the order in which they were started. They stop in reverse, because each may use
// those below it.
//
//   services.push("controllers", [this] { ... });   right after they were made, so that an incomplete start ends as
//   well services.stop();
//
// Threading: push() and stop() from one thread, current() from any.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/task_group.h"

namespace holdfast::server {

class ServiceStack {
 public:
  ServiceStack() = default;
  ServiceStack(const ServiceStack&) = delete;
  ServiceStack& operator=(const ServiceStack&) = delete;

  // `name` is a literal. `stop` ends the service, waits for it, and destroys it.
  void push(const char* name, std::function<void()> stop) { services_.emplace_back(name, std::move(stop)); }

  // Stops everything. An exception is logged, and the others are stopped nevertheless.
  void stop() {
    while (!services_.empty()) {
      const auto [name, stop_one] = std::move(services_.back());
      services_.pop_back();
      current_.store(name, std::memory_order_relaxed);
      run_guarded(name, stop_one);
    }
    current_.store("", std::memory_order_relaxed);
  }

  // The one being stopped; empty if none is.
  std::string_view current() const { return current_.load(std::memory_order_relaxed); }

 private:
  std::vector<std::pair<const char*, std::function<void()>>> services_;
  std::atomic<const char*> current_{""};
};

}  // namespace holdfast::server
