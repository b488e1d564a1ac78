// The APIServices of custom resources: one for each group version that a CustomResourceDefinition serves, made and
// removed with it. As kube-apiserver's crd-autoregister and autoregister controllers.
//
// Nothing polls. CustomResources reports definitions that came and went, the aggregator reports APIServices that others
// changed; one coroutine then reconciles them one by one.
//
// Threading: add, remove and look_at may be called from any thread.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "base/task.h"
#include "base/task_group.h"
#include "net/net.h"
#include "own_calls/own_calls.h"
#include "resource/resource.h"

namespace holdfast::custom {

// The controller that creates and removes an APIService automatically.
inline constexpr std::string_view kAutomanaged = "kube-aggregator.kubernetes.io/automanaged";

class CustomServices {
 public:
  // The registry outlives it.
  CustomServices(const resource::Registry& registry, own_calls::Handler own, net::EventLoop& loop)
      : registry_(registry), own_(std::move(own)), loop_(loop), tasks_(loop, "APIServices of custom resources") {}

  // One more definition that serves this group version; one less.
  void add(std::string_view group, std::string_view version);
  void remove(std::string_view group, std::string_view version);
  // This APIService may have been changed or removed.
  void look_at(std::string_view name);

  // From here on; before, all definitions there are must have been added.
  void start();
  Task<void> close(Executor& executor);

 private:
  struct Wanted {
    std::string group, version;
    int definitions = 0;
  };

  void wake();
  Task<void> work();
  // False: try again later.
  Task<bool> settle(std::string name);

  const resource::Registry& registry_;
  const own_calls::Handler own_;
  net::EventLoop& loop_;
  TaskGroup tasks_;

  std::mutex mutex_;                                   // Guards what follows.
  std::map<std::string, Wanted, std::less<>> wanted_;  // By name.
  std::set<std::string, std::less<>> touched_;         // To be looked at.
  bool started_ = false, woken_ = false;
};

}  // namespace holdfast::custom
