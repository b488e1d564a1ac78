// API priority and fairness, configured by the FlowSchemas and PriorityLevelConfigurations in the watch caches. Changes
// take effect within one refresh interval after they reach the caches.
//
// Threading: any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "flow/flow.h"
#include "request/info.h"
#include "resource/registry.h"

namespace holdfast::access {

class FlowControl {
 public:
  // The registry must outlive this object.
  FlowControl(flow::DispatcherOptions options, MetricRegistry& metrics, const resource::Registry& registry)
      : registry_(registry), dispatcher_(options, metrics) {}

  // Null while the caches are not ready or hold no configuration. Flows stay valid as long as the returned pointer is
  // held.
  std::shared_ptr<const flow::Schemas> schemas();
  flow::Dispatcher& dispatcher() { return dispatcher_; }

  // Number of seats a request occupies: for lists, estimated from the data read (upstream's list_work_estimator); one
  // for everything else.
  int64_t seats_of(const request::RequestInfo& info, std::string_view level);

 private:
  void refresh();

  const resource::Registry& registry_;
  flow::Dispatcher dispatcher_;
  std::atomic<std::shared_ptr<const flow::Schemas>> schemas_;
  std::atomic<int64_t> next_refresh_{0};  // Steady clock, in nanoseconds.
  std::mutex mutex_;                      // Held during a refresh; guards seen_.
  uint64_t seen_ = 0;                     // Fingerprint of the objects that schemas_ was built from.
};

}  // namespace holdfast::access
