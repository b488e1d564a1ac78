// Field paths to omit while transcoding, and the requested form of an object.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::codec {

// A set of dotted paths ("metadata.managedFields"), walked from an object's root key by key. Lists are transparent:
// their items have the list's own path, so "spec.containers.env" refers to the env of every container.
//
//   Node node = paths.child(FieldPaths::kRoot, "metadata");     // kNone: nothing at or below it is in the set
//   node = paths.child(node, "managedFields");                  // paths.ends_at(node): this field is in the set
//
// There are few paths, so a step scans a handful of nodes.
class FieldPaths {
 public:
  using Node = int32_t;
  static constexpr Node kRoot = 0;
  static constexpr Node kNone = -1;

  FieldPaths();
  explicit FieldPaths(std::span<const std::string> dotted);
  static FieldPaths of(std::initializer_list<std::string_view> dotted);

  void add(std::string_view dotted);
  bool empty() const { return nodes_.size() == 1; }

  Node child(Node parent, std::string_view key) const {
    if (parent < 0) return kNone;
    for (Node n = nodes_[static_cast<size_t>(parent)].first_child; n != kNone; n = nodes_[static_cast<size_t>(n)].next)
      if (nodes_[static_cast<size_t>(n)].key == key) return n;
    return kNone;
  }
  bool ends_at(Node node) const { return node > 0 && nodes_[static_cast<size_t>(node)].ends; }

 private:
  struct Step {
    std::string key;
    Node first_child = kNone;
    Node next = kNone;
    bool ends = false;
  };
  std::vector<Step> nodes_;
};

// metadata.managedFields of an object, and of every item of a List.
const FieldPaths& managed_fields_paths();

// The parts of an object that a transcoder writes.
struct Shape {
  // Fields to omit, or null.
  const FieldPaths* drop = nullptr;
  // Only metadata, as a PartialObjectMetadata of meta.k8s.io/v1.
  bool metadata_only = false;
};

}  // namespace holdfast::codec
