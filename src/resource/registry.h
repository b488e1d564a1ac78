// The resources that the server currently serves: the built-in ones, and custom ones that come and go at run time.
//
// A Snapshot is immutable. A request takes one and keeps it, so that what it looked up stays valid until it ends,
// whatever happens to the CRD meanwhile. Taking one costs no lock: each thread remembers the newest it saw. Changing
// one custom resource costs a copy of pointers to the others, so that thousands can come one by one.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "crd/crd.h"
#include "kinds/kinds.h"
#include "resource/object_rules.h"
#include "types/types.h"

namespace holdfast::resource {

class Managers;
class Storage;

// One resource in one served version.
struct Served {
  const types::Resource* resource = nullptr;
  // The same kind in its stored version; `resource` itself for nearly all.
  const types::Resource* stored = nullptr;
  const kinds::Rules* rules = nullptr;
  std::shared_ptr<const ObjectRules> object_rules = {};
  bool custom = false;
  const crd::Version* version = nullptr;         // Of a custom resource: what its definition says of this version.
  bool established = true;                       // Discovery shows it.
  bool terminating = false;                      // Its definition is being deleted: nothing new may be created.
  Storage* storage = nullptr;                    // Null: nothing is stored (reviews).
  std::shared_ptr<Managers> managers = {};       // Null likewise.
  std::shared_ptr<const void> keeps_alive = {};  // Of a custom resource: its types, storage and strings.

  // Custom resources serve every verb; what discovery shows of one that is terminating (Resource::verbs) is less.
  bool has_verb(std::string_view verb) const;
  const types::Subresource* subresource(std::string_view name) const;
};

// A custom resource in all its served versions.
struct CustomServed {
  std::string name;  // Of its definition: plural.group.
  std::vector<Served> versions;
};
using CustomServedRef = std::shared_ptr<const CustomServed>;

class Registry {
 public:
  class Snapshot {
   public:
    struct Builtin {
      std::vector<Served> served;
      std::unordered_map<std::string, const Served*> by_path;
      std::unordered_map<std::string, Storage*> storages;  // By plural.group.
    };
    // `custom` is sorted by name.
    Snapshot(std::shared_ptr<const Builtin> builtin, std::vector<CustomServedRef> custom)
        : builtin_(std::move(builtin)), custom_(std::move(custom)) {}

    const Served* find(std::string_view group, std::string_view version, std::string_view plural) const;
    const Served* find_kind(std::string_view group, std::string_view version, std::string_view kind) const;
    // Whether anything is served there, and whether that is built in: decides how a 404 is worded.
    bool has_group(std::string_view group) const;
    static bool is_builtin_group(std::string_view group);

    // Where the objects of a resource are, whatever its version; null: there is no such resource, or it stores nothing.
    Storage* storage_of(std::string_view group, std::string_view plural) const;

    // All of them; collected on first use.
    const std::vector<Served>& all() const;
    // In the order discovery wants: built-in ones as in the catalog, then custom ones that are established.
    const std::vector<const types::Resource*>& resources() const;

   private:
    friend class Registry;
    void gather() const;

    const std::shared_ptr<const Builtin> builtin_;
    const std::vector<CustomServedRef> custom_;
    mutable std::once_flag gathered_;
    mutable std::vector<Served> served_;
    mutable std::vector<const types::Resource*> resources_;
    mutable std::unordered_map<std::string, const Served*> by_kind_;
  };
  using SnapshotRef = std::shared_ptr<const Snapshot>;

  explicit Registry(std::vector<Served> builtin);
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  SnapshotRef snapshot() const;
  // Replaces custom resources by name; one without versions is removed. Requests under way keep what they have.
  void update(std::vector<CustomServedRef> changed);
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

 private:
  static uint64_t next_id();

  const uint64_t id_;                 // Distinguishes registries in thread-local caches (tests create several).
  std::atomic<uint64_t> version_{1};  // 0: not seen by any thread yet.
  mutable std::mutex mutex_;
  SnapshotRef current_;  // Guarded by mutex_; never null.
};

}  // namespace holdfast::resource
