// What the kubelet of a node may do: the Node authorizer.
//
// A node may read the objects that its pods need. The Graph knows which those are:
//
//   node <- pod <- secret, configmap, service account, resource claim
//   node <- pod <- claim <- volume <- secret
//   node <- volume attachment, resource slice
//
// It stores a number for each pair of object and node: how many pods (or volumes) give the node access to the object. A
// decision is therefore one lookup, however long the way from the node to the object is.
//
// Threading: any thread.
#pragma once

#include <cstdint>
#include <map>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "auth/auth.h"
#include "base/hash.h"
#include "rbac/rbac.h"
#include "value/value.h"

namespace holdfast::node_access {

enum class Kind : uint8_t {
  Secret,
  ConfigMap,
  ServiceAccount,
  Claim,  // PersistentVolumeClaim
  Volume,
  ResourceClaim,
  Pod,
  Attachment,
  Slice,
};

class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // The objects that relations are read from: Pod, Volume, Attachment or Slice. put() replaces what was known about the
  // object. Keys are "namespace/name", or "name" for cluster-scoped objects.
  void put(Kind kind, std::string_view key, const Value& object);
  void erase(Kind kind, std::string_view key);
  // Objects of this kind that are not put between the two calls are removed by the second one.
  void begin_list(Kind kind);
  void end_list(Kind kind);

  // Whether the object is related to the node. `ns` is empty for cluster-scoped objects.
  bool related(std::string_view node, Kind kind, std::string_view ns, std::string_view name) const;

  // Pairs of object and node, for tests of what is left behind.
  size_t size() const;

 private:
  using Id = uint32_t;
  static constexpr Id kNone = ~Id{0};

  // Numbers for the names of nodes and objects, as long as something refers to them.
  class Names {
   public:
    Id take(std::string_view name);  // Counts a reference.
    void release(Id id);
    Id find(std::string_view name) const;  // kNone if unknown.

   private:
    struct Slot {
      const std::string* name = nullptr;
      uint32_t references = 0;
    };
    std::unordered_map<std::string, Id, KeyHash, std::equal_to<>> ids_;
    std::vector<Slot> slots_;
    std::vector<Id> free_;
  };

  // What a pod refers to, sorted. The pods of a workload share it.
  using Objects = std::vector<Id>;
  using SharedObjects = std::map<Objects, uint32_t>;  // With the number of pods.

  struct Source {
    uint32_t round = 0;  // Of the last list that has it.
    Id node = kNone;
    SharedObjects::value_type* objects = nullptr;  // Of a pod; null if it refers to nothing.
  };
  struct VolumeSource {
    uint32_t round = 0;
    Id claim = kNone;
    Objects given;  // The volume and its secrets: a node that may read the claim may read these.
  };
  // A claim that pods or volumes refer to.
  struct Claim {
    std::unordered_set<Id> nodes;
    std::vector<const VolumeSource*> volumes;  // Usually one.
  };
  template <class T>
  using ByKey = std::unordered_map<std::string, T, KeyHash, std::equal_to<>>;

  static std::string name_of(Kind kind, std::string_view ns, std::string_view name);
  static std::string name_of_node(std::string_view node);
  static uint64_t pair_of(Id object, Id node) { return uint64_t{object} << 32 | node; }
  static std::vector<std::string> names_in(std::string_view key, const Value& pod);
  static std::vector<std::string> names_in_volume(std::string_view key, const Value& volume);
  const ByKey<Source>& sources_of(Kind kind) const;
  ByKey<Source>& sources_of(Kind kind);

  void put_source(Kind kind, std::string_view key, std::string_view node, const std::vector<std::string>& names);
  void put_volume(std::string_view key, const Value& volume);
  void erase_source(Kind kind, std::string_view key);
  void erase_volume(std::string_view key);
  void forget(const Source& source);
  // Adds or removes one reason for the node to have access to the object, and to what follows from that.
  void relate(Id object, Id node);
  void unrelate(Id object, Id node);
  void drop_unused_claim(Id id);

  mutable std::shared_mutex mutex_;
  Names names_;
  std::unordered_map<uint64_t, uint32_t> pairs_;  // By pair_of(): the reasons, at least one.
  std::unordered_map<Id, Claim> claims_;
  SharedObjects shared_;
  ByKey<Source> pods_, attachments_, slices_;
  ByKey<VolumeSource> volumes_;
  std::map<Kind, uint32_t> rounds_;
};

// Allow, or NoOpinion with the reason of Kubernetes' Node authorizer; NoOpinion for users that are not nodes. `rules`
// decide about resources of which all nodes may do the same (the ClusterRole system:node).
auth::Decision authorize(const Graph& graph, const std::vector<rbac::Rule>& rules, const auth::Attributes& attributes);

}  // namespace holdfast::node_access
