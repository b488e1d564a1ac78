// Index of ownerReferences by uid: from an owner to the objects that refer to it.
//
//   objects:  uid of a ReplicaSet -> {kind, "ns/name", owners: [uid of a Deployment, place 0 in its list]}
//   owned:    uid of a Deployment -> [uid of the ReplicaSet, place 0 in its owners, blocks its owner's deletion]
//
// Objects without owners are not included, and owners need not exist. Both ends of an edge store where the other end
// is, so removing one of ten thousand dependents needs no search. Belongs to one loop.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.h"

namespace holdfast::controllers {

// The 128 bits of a UUID, or a hash of any other text.
struct Uid {
  std::array<uint64_t, 2> bits{};
  bool operator==(const Uid&) const = default;
  static Uid of(std::string_view text);
};
struct UidHash {
  // Keyed hash, because clients choose the uids in ownerReferences.
  size_t operator()(const Uid& uid) const {
    return hash_key({reinterpret_cast<const char*>(uid.bits.data()), sizeof uid.bits});
  }
};

class OwnerGraph {
 public:
  struct Object {
    uint32_t kind = 0;  // Assigned by the caller.
    std::string key;
  };
  struct Owner {
    Uid uid;
    bool blocked = false;  // By this object: blockOwnerDeletion.
  };
  struct Change {
    std::vector<Uid> gained, lost;
  };

  // Sets the owners of the object, without duplicates; an empty list removes the object.
  Change set(const Uid& object, uint32_t kind, std::string_view key, std::span<const Owner> owners);

  std::vector<Uid> dependents(const Uid& owner) const;
  // Those that block the deletion of their owner.
  std::vector<Uid> blocking_dependents(const Uid& owner) const;
  bool has_dependents(const Uid& owner) const { return owned_.contains(owner); }
  // Null if the object has no owners. Valid until the next set().
  const Object* find(const Uid& object) const;
  std::vector<Uid> objects() const;
  size_t count() const { return objects_.size(); }

 private:
  struct Edge {
    Uid owner;
    uint32_t place;  // Of the Link, in the owner's list.
  };
  struct Link {
    Uid object;
    uint32_t place;  // Of the Edge, in the object's list.
    bool blocks;
  };
  struct Node {
    Object object;
    std::vector<Edge> owners;
  };
  void unlink(const Edge& edge);

  std::unordered_map<Uid, Node, UidHash> objects_;
  std::unordered_map<Uid, std::vector<Link>, UidHash> owned_;
};

}  // namespace holdfast::controllers
