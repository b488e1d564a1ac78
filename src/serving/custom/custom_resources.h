// The served custom resources: watches CustomResourceDefinitions, serves their resources, and manages their lifecycle
// (names accepted, established, terminating, deleted).
//
// Nothing here polls. A definition written through this server is served before the write returns (settle); definitions
// written by other servers arrive through the watch.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/keyed_queue.h"
#include "base/task.h"
#include "base/task_group.h"
#include "cache/follower.h"
#include "call/call.h"
#include "crd/crd.h"
#include "custom/custom_services.h"
#include "net/net.h"
#include "own_calls/own_calls.h"
#include "resource/registry.h"
#include "resource/storage.h"
#include "webhook/webhook.h"

namespace holdfast::ownership {
class MergeTypes;
}

namespace holdfast::custom {

class Conversions;

// Whether this is the resource of CustomResourceDefinitions.
bool is_definition(const types::Resource& resource);

class CustomResources {
 public:
  // Everything here must outlive the CustomResources.
  struct Parts {
    const call::Settings& settings;
    const Clock& clock;
    store::Store& store;
    ownership::Pool& pool;
    cache::Executors executors;
    net::EventLoop& loop;  // Definitions are watched and their status is written on this loop.
    resource::Registry& registry;
    webhook::Caller& caller;
    CustomServices& services;
    own_calls::Handler own;
  };
  explicit CustomResources(Parts parts)
      : parts_(std::move(parts)), loop_(parts_.loop), tasks_(parts_.loop, "custom resources") {}
  ~CustomResources();

  // Watches the definitions until close().
  void start();
  // Whether every definition that existed at startup is served.
  bool listed() const { return listed_.load(std::memory_order_acquire); }
  // Whether, in addition, all their caches are populated.
  bool ready() const;
  void tick();
  // Stops the work begun by start(), and every cache.
  Task<void> close(Executor& executor);

  // Advances the definition through its lifecycle as far as possible, and serves it. Called after each write.
  Task<void> settle(std::string name, net::EventLoop& loop);

 private:
  struct Kind {
    std::shared_ptr<const crd::Definition> definition;
    std::shared_ptr<ownership::MergeTypes> merge_types;
    std::shared_ptr<Conversions> conversions;  // Null if versions differ only in their name.
    std::shared_ptr<resource::Storage> storage;
    std::vector<std::unique_ptr<kinds::Rules>> rules;
  };
  using KindRef = std::shared_ptr<const Kind>;

  // The state of a definition at a revision.
  struct Seen {
    std::string name;
    Value definition;   // Null if deleted.
    Revision revision;  // Of this state, or of the deletion.
  };

  Task<void> follow();
  void see(std::span<const cache::Delivery> events);
  // The current state in the store; nullopt if the definition does not exist or cannot be decoded.
  Task<std::optional<Seen>> read(Arena& arena, std::string name, Executor& executor);
  // Serves these states, except those that are not newer than what is already served.
  void serve(std::span<const Seen> seen);
  // Adds the definitions that were deleted while there was no watch.
  void add_missing(resource::Storage& storage, std::vector<Seen>& seen) const;
  KindRef make_kind(const Value& definition, const KindRef& before);
  // Makes clients reconnect to what is served now. Call after the registry has the replacement, if any.
  Task<void> end_watches(std::shared_ptr<resource::Storage> replaced);
  resource::CustomServedRef served_of(const KindRef& kind) const;
  // The names taken by other definitions of the group. Requires mutex_.
  crd::TakenNames taken_by_others(std::string_view group, std::string_view name) const;

  Task<bool> write_status(net::EventLoop& loop, Value definition);
  // Calls settle() in the background.
  void look_at(std::string name);
  // When the last settle() of a definition ends, starts another if the watch has announced a newer state than the one
  // served.
  void end_settling(const std::string& name);
  // Deletes the objects of a terminating definition, then removes its finalizer; false if it has to be retried.
  Task<bool> clean_up(std::string name);
  Task<Result<Value>> read_terminating(Arena& arena, const std::string& name);
  Task<bool> delete_objects(const std::string& name);

  const Parts parts_;
  net::EventLoop& loop_;
  TaskGroup tasks_;
  cache::Follower follower_{tasks_};  // Owned by the loop.
  // Terminating definitions. Those that wait for objects with finalizers of their own are retried.
  KeyedQueue<std::string> clean_ups_{tasks_,
                                     [this](std::string name) { return clean_up(std::move(name)); },
                                     {.longest_retry = std::chrono::seconds(1)}};
  std::atomic<bool> listed_{false};

  struct Known {
    KindRef kind;  // Null if not served yet.
    Revision revision;
    std::string group;
    std::vector<std::string> served;  // The versions to serve according to the definition.
  };
  // Registers the group versions that a definition now serves. Requires mutex_.
  void declare_services(Known& known, std::vector<std::string> served);
  using Names = std::map<std::string, crd::TakenNames, std::less<>>;  // By definition.
  mutable std::mutex mutex_;
  std::map<std::string, Known, std::less<>> kinds_;  // By name; guarded by mutex_, like the members below.
  std::map<std::string, Names, std::less<>> names_;  // Accepted names, by group.
  struct Settling {
    int count = 0;       // Number of running settle() calls.
    Revision announced;  // The newest state announced by the watch in the meantime.
    Revision deleted;
  };
  std::map<std::string, Settling, std::less<>> settling_;
};

}  // namespace holdfast::custom
