#include "ownership/reset_filter.h"

namespace holdfast::ownership {

ResetFilter::ResetFilter(std::span<const std::string_view> reset, std::span<const std::string_view> keep_only) {
  for (const std::string_view path : reset) add(reset_, path);
  for (const std::string_view path : keep_only) add(keep_, path);
}

void ResetFilter::add(Node& root, std::string_view path) {
  Node* at = &root;
  auto step = [&](std::string_view name, bool any_item) {
    for (Node& child : at->below) {
      if (child.any_item == any_item && child.name == name) {
        at = &child;
        return;
      }
    }
    at->below.push_back({std::string(name), any_item, {}});
    at = &at->below.back();
  };
  while (!path.empty()) {
    const size_t dot = path.find('.');
    std::string_view name = path.substr(0, dot);
    const bool items = name.ends_with("[]");
    if (items) name.remove_suffix(2);
    step(name, false);
    if (items) step("", true);
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
}

const ResetFilter::Node* ResetFilter::match(const Node& parent, const PathElement& element) {
  for (const Node& child : parent.below) {
    if (child.any_item ? !element.is_field() : element.is_field() && element.name() == child.name) return &child;
  }
  return nullptr;
}

FieldSet ResetFilter::exclude(Arena& arena, const Node& at, FieldSet set) {
  SetBuilder out(arena);
  bool changed = false;
  for (const SetEntry& entry : set.entries()) {
    const Node* node = match(at, entry.element);
    if (node == nullptr) {
      out.add(entry.element, entry.member, entry.children());
    } else if (node->below.empty()) {
      changed = true;
    } else {
      const FieldSet below = exclude(arena, *node, entry.children());
      changed |= !below.same(entry.children());
      out.add(entry.element, entry.member, below);
    }
  }
  return changed ? out.close(0) : set;
}

FieldSet ResetFilter::include(Arena& arena, const Node& at, FieldSet set) {
  if (at.below.empty()) return set;
  SetBuilder out(arena);
  for (const SetEntry& entry : set.entries()) {
    const Node* node = match(at, entry.element);
    // Members on the way to a kept path are kept too, like in upstream's matcher.
    if (node != nullptr) out.add(entry.element, entry.member, include(arena, *node, entry.children()));
  }
  return out.close(0);
}

FieldSet ResetFilter::apply(Arena& arena, FieldSet set) const {
  if (set.empty()) return set;
  if (!reset_.below.empty()) set = exclude(arena, reset_, set);
  if (!keep_.below.empty()) set = include(arena, keep_, set);
  return set;
}

}  // namespace holdfast::ownership
