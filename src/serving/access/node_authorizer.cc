#include "access/node_authorizer.h"

#include <algorithm>

#include "base/arena.h"
#include "bootstrap/bootstrap.h"
#include "resource/storage.h"

namespace holdfast::access {
namespace {

std::vector<rbac::Rule> node_rules() {
  Arena arena;
  const Value rules = bootstrap::node_rules(arena);
  return rbac::rules_from(&rules);
}

}  // namespace

NodeAuthorizer::NodeAuthorizer(const resource::Registry& registry, TimedExecutor& loop)
    : registry_(registry),
      rules_(node_rules()),
      tasks_(loop, "Node authorizer"),
      sources_{Source{tasks_, node_access::Kind::Pod, "", "pods"},
               Source{tasks_, node_access::Kind::Volume, "", "persistentvolumes"},
               Source{tasks_, node_access::Kind::Attachment, "storage.k8s.io", "volumeattachments"},
               Source{tasks_, node_access::Kind::Slice, "resource.k8s.io", "resourceslices"}} {}

void NodeAuthorizer::start() {
  for (Source& source : sources_) {
    tasks_.post([this, &source] { return follow(source); });
  }
}

bool NodeAuthorizer::ready() const {
  return std::all_of(sources_.begin(), sources_.end(),
                     [](const Source& source) { return source.listed.load(std::memory_order_acquire); });
}

Task<void> NodeAuthorizer::close(Executor& executor) {
  co_await tasks_.close(executor, [this] {
    for (Source& source : sources_) source.follower.cancel();
  });
}

Task<void> NodeAuthorizer::follow(Source& source) {
  resource::Storage* storage = registry_.snapshot()->storage_of(source.group, source.plural);
  if (storage == nullptr) {  // Not served: there are none.
    source.listed.store(true, std::memory_order_release);
    co_return;
  }
  co_await source.follower.run(
      storage->cache(),
      {.marks_initial_end = true,
       .begin = [this, &source] { graph_.begin_list(source.kind); },
       .see = cache::one_by_one([this, &source](const cache::Delivery& event) { see(source, event); })});
}

void NodeAuthorizer::see(Source& source, const cache::Delivery& event) {
  if (!event.object()) {
    if (!event.initial_events_end) return;
    // Deletions between two watches were not delivered.
    graph_.end_list(source.kind);
    source.listed.store(true, std::memory_order_release);
    return;
  }
  const cache::Entry& entry = *event.object();
  if (event.type == cache::EventType::Deleted) return graph_.erase(source.kind, entry.key());
  Arena arena;
  const store::Blob body = entry.body();
  const Result<Value> tree = registry_.snapshot()->storage_of(source.group, source.plural)->codec().tree(arena, *body);
  if (tree) {
    graph_.put(source.kind, entry.key(), *tree);
  } else {
    graph_.erase(source.kind, entry.key());
  }
}

}  // namespace holdfast::access
