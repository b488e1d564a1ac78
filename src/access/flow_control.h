// Priority and fairness by the FlowSchemas and PriorityLevelConfigurations in the watch caches: a change counts as soon
// as somebody asks after the caches have it.
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
  // The registry must outlive this.
  FlowControl(flow::DispatcherOptions options, MetricRegistry& metrics, const resource::Registry& registry)
      : registry_(registry), dispatcher_(options, metrics) {}

  // Null: the caches are not ready, or there are none. Flows live as long as what this returns.
  std::shared_ptr<const flow::Schemas> schemas();
  flow::Dispatcher& dispatcher() { return dispatcher_; }

  // How many seats a request takes: lists by what they read (upstream's list_work_estimator), everything else one.
  int64_t seats_of(const request::RequestInfo& info, std::string_view level);

 private:
  void refresh();

  const resource::Registry& registry_;
  flow::Dispatcher dispatcher_;
  std::atomic<std::shared_ptr<const flow::Schemas>> schemas_;
  std::atomic<int64_t> next_look_{0};  // Of the steady clock, in nanoseconds.
  std::mutex mutex_;                   // Held while a look is taken; guards seen_.
  uint64_t seen_ = 0;                  // What the schemas were made of.
};

}  // namespace holdfast::access
