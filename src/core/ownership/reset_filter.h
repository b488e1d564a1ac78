// Fields that writes through an endpoint never own (reset fields): status on the main endpoint, spec on /status, ...
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "ownership/field_set.h"

namespace holdfast::ownership {

// Paths are dotted; "spec.containers[].resources" refers to every item of the list.
class ResetFilter {
 public:
  ResetFilter() = default;
  // Drops `reset` and everything below; if `keep_only` is not empty, drops everything outside of it.
  ResetFilter(std::span<const std::string_view> reset, std::span<const std::string_view> keep_only);

  bool empty() const { return reset_.below.empty() && keep_.below.empty(); }
  FieldSet apply(Arena& arena, FieldSet set) const;

 private:
  struct Node {
    std::string name;
    bool any_item = false;
    std::vector<Node> below;  // Empty if the path ends here.
  };
  static void add(Node& root, std::string_view path);
  static const Node* match(const Node& parent, const PathElement& element);
  static FieldSet exclude(Arena& arena, const Node& at, FieldSet set);
  static FieldSet include(Arena& arena, const Node& at, FieldSet set);

  Node reset_, keep_;
};

}  // namespace holdfast::ownership
