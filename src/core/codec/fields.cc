#include "codec/fields.h"

namespace holdfast::codec {

FieldPaths::FieldPaths() : nodes_(1) {}

FieldPaths::FieldPaths(std::span<const std::string> dotted) : FieldPaths() {
  for (const std::string& path : dotted) add(path);
}

FieldPaths FieldPaths::of(std::initializer_list<std::string_view> dotted) {
  FieldPaths paths;
  for (std::string_view path : dotted) paths.add(path);
  return paths;
}

void FieldPaths::add(std::string_view dotted) {
  Node at = kRoot;
  while (!dotted.empty()) {
    const size_t dot = dotted.find('.');
    const std::string_view key = dotted.substr(0, dot);
    dotted = dot == std::string_view::npos ? std::string_view{} : dotted.substr(dot + 1);
    Node next = child(at, key);
    if (next == kNone) {
      next = static_cast<Node>(nodes_.size());
      nodes_.push_back({.key = std::string(key), .next = nodes_[static_cast<size_t>(at)].first_child});
      nodes_[static_cast<size_t>(at)].first_child = next;
    }
    at = next;
  }
  if (at != kRoot) nodes_[static_cast<size_t>(at)].ends = true;
}

const FieldPaths& managed_fields_paths() {
  static const FieldPaths paths = FieldPaths::of({"metadata.managedFields", "items.metadata.managedFields"});
  return paths;
}

}  // namespace holdfast::codec
