// The Node authorizer over the watch caches: nodes may read what their pods need as soon as the caches have the pods.
//
// Threading: authorize() and ready() on any thread, the rest on the loop.
// Lifetime: close() ends the watches.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "auth/auth.h"
#include "base/task_group.h"
#include "cache/follower.h"
#include "node_access/node_access.h"
#include "rbac/rbac.h"
#include "resource/registry.h"

namespace holdfast::access {

class NodeAuthorizer final : public auth::Authorizer {
 public:
  // Both must outlive this object.
  NodeAuthorizer(const resource::Registry& registry, TimedExecutor& loop);

  auth::Decision authorize(const auth::Attributes& attributes) const override {
    return node_access::authorize(graph_, rules_, attributes);
  }

  void start();
  // Whether all objects that were stored at start are in the graph.
  bool ready() const;
  // Call once, before the caches are closed.
  Task<void> close(Executor& executor);

 private:
  struct Source {
    Source(TaskGroup& tasks, node_access::Kind of, std::string_view in_group, std::string_view named)
        : kind(of), group(in_group), plural(named), follower(tasks) {}
    const node_access::Kind kind;
    const std::string_view group, plural;
    cache::Follower follower;
    std::atomic<bool> listed{false};
  };
  Task<void> follow(Source& source);
  void see(Source& source, const cache::Delivery& event);

  const resource::Registry& registry_;
  const std::vector<rbac::Rule> rules_;  // Of the ClusterRole system:node, as Kubernetes creates it.
  node_access::Graph graph_;
  TaskGroup tasks_;
  std::array<Source, 4> sources_;
};

}  // namespace holdfast::access
