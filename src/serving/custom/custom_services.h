// The APIServices of custom resources: one per group version served by a CustomResourceDefinition, created and deleted
// with it. Equivalent to kube-apiserver's crd-autoregister and autoregister controllers.
//
// Nothing polls. CustomResources reports added and removed definitions, the aggregator reports APIServices changed by
// others; they are then reconciled one at a time.
//
// Threading: add, remove and look_at may be called from any thread.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "base/keyed_queue.h"
#include "base/task.h"
#include "base/task_group.h"
#include "net/net.h"
#include "own_calls/own_calls.h"
#include "resource/resource.h"

namespace holdfast::custom {

// Label for APIServices that a controller creates and deletes automatically.
inline constexpr std::string_view kAutomanaged = "kube-aggregator.kubernetes.io/automanaged";

class CustomServices {
 public:
  // The registry must outlive this object.
  CustomServices(const resource::Registry& registry, own_calls::Handler own, net::EventLoop& loop)
      : registry_(registry), own_(std::move(own)), loop_(loop), tasks_(loop, "APIServices of custom resources") {}

  // Adds or removes one definition that serves this group version.
  void add(std::string_view group, std::string_view version);
  void remove(std::string_view group, std::string_view version);
  // Reports that this APIService may have been changed or deleted.
  void look_at(std::string_view name);

  // Starts reconciling; all existing definitions must have been added before.
  void start();
  Task<void> close(Executor& executor);

 private:
  struct Wanted {
    std::string group, version;
    int definitions = 0;
  };

  // False if it has to be retried.
  Task<bool> settle(std::string name);

  const resource::Registry& registry_;
  const own_calls::Handler own_;
  net::EventLoop& loop_;
  TaskGroup tasks_;

  KeyedQueue<std::string> queue_{tasks_, [this](std::string name) { return settle(std::move(name)); }, {.workers = 1}};

  std::mutex mutex_;                                   // Guards the members below.
  std::map<std::string, Wanted, std::less<>> wanted_;  // By name.
  std::set<std::string, std::less<>> early_;           // To be reconciled after start().
  bool started_ = false;
};

}  // namespace holdfast::custom
