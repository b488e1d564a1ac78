// The custom resources that the server has: follows the CustomResourceDefinitions, serves what they define, and manages
// their life cycle (names accepted, established, terminating, gone).
//
// Nothing here polls. A definition that was just written is served before the write returns (settle); the watch reports
// those written by other servers.
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

#include "base/task.h"
#include "base/task_group.h"
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

// CustomResourceDefinitions.
bool is_definition(const types::Resource& resource);

class CustomResources {
 public:
  // Everything outlives it.
  struct Parts {
    const call::Settings& settings;
    const Clock& clock;
    store::Store& store;
    ownership::Pool& pool;
    cache::Executors executors;
    net::EventLoop& loop;  // Where definitions are followed and their status is written.
    resource::Registry& registry;
    webhook::Caller& caller;
    CustomServices& services;
    own_calls::Handler own;
  };
  explicit CustomResources(Parts parts)
      : parts_(std::move(parts)), loop_(parts_.loop), tasks_(parts_.loop, "custom resources") {}
  ~CustomResources();

  // Follows the definitions until close().
  void start();
  // Every definition there was at the start is served.
  bool listed() const { return listed_.load(std::memory_order_acquire); }
  // And its cache is filled.
  bool ready() const;
  void tick();
  // Ends what start() began, and every cache.
  Task<void> close(Executor& executor);

  // Takes the definition as far as it goes by itself, and serves it. Called after it was written.
  Task<void> settle(std::string name, net::EventLoop& loop);

 private:
  struct Kind {
    std::shared_ptr<const crd::Definition> definition;
    std::shared_ptr<ownership::MergeTypes> merge_types;
    std::shared_ptr<Conversions> conversions;  // Null: versions differ in their name alone.
    std::shared_ptr<resource::Storage> storage;
    std::vector<std::unique_ptr<kinds::Rules>> rules;
  };
  using KindRef = std::shared_ptr<const Kind>;

  // A definition as it was seen at some revision.
  struct Seen {
    std::string name;
    Value definition;   // Null: it is gone.
    Revision revision;  // Of this state, or of its end.
  };

  Task<void> follow();
  // As it is in the store now; nothing when it is not there, or cannot be read.
  Task<std::optional<Seen>> read(Arena& arena, std::string name, Executor& executor);
  // Serves what these say, unless something newer is known.
  void serve(std::span<const Seen> seen);
  // The definitions that went while nobody watched.
  void add_missing(resource::Storage& storage, std::vector<Seen>& seen) const;
  KindRef make_kind(const Value& definition, const KindRef& before);
  // Clients begin again with what is served now. Called after the registry has what replaces this, or nothing.
  Task<void> end_watches(std::shared_ptr<resource::Storage> replaced);
  resource::CustomServedRef served_of(const KindRef& kind) const;
  // The names that others of its group hold. mutex_ is held.
  crd::TakenNames taken_by_others(std::string_view group, std::string_view name) const;

  Task<bool> write_status(net::EventLoop& loop, Value definition);
  // Settles it in the background.
  void look_at(std::string name);
  // The last of those that settle a definition looks again if something newer than it has seen was announced.
  void end_settling(const std::string& name);
  // Removes the objects of a definition that is being deleted, then its finalizer. One task per definition; repeated
  // until done.
  void start_clean_up(const std::string& name);
  Task<void> clean_up(std::string name);
  Task<bool> clean_up_once(const std::string& name);

  const Parts parts_;
  net::EventLoop& loop_;
  TaskGroup tasks_;
  std::shared_ptr<cache::Watcher> watcher_;  // Owned by the loop.
  std::atomic<bool> listed_{false};

  struct Known {
    KindRef kind;  // Null: not served yet.
    Revision revision;
    std::string group;
    std::vector<std::string> served;  // Versions, as the definition asks for them.
  };
  // Says which group versions a definition serves now. mutex_ is held.
  void declare_services(Known& known, std::vector<std::string> served);
  using Names = std::map<std::string, crd::TakenNames, std::less<>>;  // By definition.
  mutable std::mutex mutex_;
  std::map<std::string, Known, std::less<>> kinds_;  // By name; guarded by mutex_, as what follows.
  std::map<std::string, Names, std::less<>> names_;  // By group: what is accepted.
  struct Settling {
    int count = 0;       // Calls of settle().
    Revision announced;  // The newest state that the watch has announced meanwhile.
    Revision deleted;
  };
  std::map<std::string, Settling, std::less<>> settling_;
  // Definitions that clean_up() is busy with. True: another one of that name may have been deleted meanwhile.
  std::map<std::string, bool, std::less<>> cleaning_;
};

}  // namespace holdfast::custom
