// The currently served resources: the built-in ones, and custom ones that come and go at run time.
//
// A Snapshot is immutable. A request takes one and keeps it, so whatever it looks up stays valid until it ends, even if
// a CRD changes in the meantime. Taking one is lock-free: each thread remembers the newest it has seen. Changing one
// custom resource copies the pointers to all others, so thousands can be added one at a time.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
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
  // The same kind in its stored version; usually `resource` itself.
  const types::Resource* stored = nullptr;
  const kinds::Rules* rules = nullptr;
  std::shared_ptr<const ObjectRules> object_rules = {};
  bool enabled = true;  // By --runtime-config. If off, only the server itself uses its storage.
  bool custom = false;
  const crd::Version* version = nullptr;         // Of a custom resource: this version in its definition.
  bool established = true;                       // Shown in discovery.
  bool terminating = false;                      // The definition is being deleted: creates are rejected.
  Storage* storage = nullptr;                    // Null if nothing is stored (reviews).
  std::shared_ptr<Managers> managers = {};       // Null if nothing is stored.
  std::shared_ptr<const void> keeps_alive = {};  // Owns a custom resource's types, storage and strings.

  // Custom resources support every verb; discovery (Resource::verbs) shows fewer for a terminating one.
  bool has_verb(std::string_view verb) const;
  const types::Subresource* subresource(std::string_view name) const;
};

// A custom resource with all its served versions.
struct CustomServed {
  std::string name;  // Name of its definition: plural.group.
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
      std::set<std::string_view> groups;
      std::unordered_map<std::string, Storage*> storages;  // By plural.group; also of resources that are not enabled.
    };
    // `custom` must be sorted by name.
    Snapshot(std::shared_ptr<const Builtin> builtin, std::vector<CustomServedRef> custom)
        : builtin_(std::move(builtin)), custom_(std::move(custom)) {}

    const Served* find(std::string_view group, std::string_view version, std::string_view plural) const;
    const Served* find_kind(std::string_view group, std::string_view version, std::string_view kind) const;
    // Whether anything is served for the group, and whether anything built in is: determines the message of a 404.
    bool has_group(std::string_view group) const;
    bool serves_builtin_group(std::string_view group) const;
    // Whether the group is built in, served or not.
    static bool is_builtin_group(std::string_view group);

    // The storage of a resource in any version; null if the resource does not exist or is not stored.
    Storage* storage_of(std::string_view group, std::string_view plural) const;

    // All served resources; collected on first use.
    const std::vector<Served>& all() const;
    // In discovery order: built-in resources as in the catalog, then established custom ones.
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
  // Replaces custom resources by name; those without versions are removed. Requests in flight keep their snapshot.
  void update(std::vector<CustomServedRef> changed);
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

 private:
  static uint64_t next_id();

  const uint64_t id_;                 // Distinguishes registries in thread-local caches (tests create several).
  std::atomic<uint64_t> version_{1};  // 0 in a thread's cache means not seen yet.
  mutable std::mutex mutex_;
  SnapshotRef current_;  // Guarded by mutex_; never null.
};

}  // namespace holdfast::resource
