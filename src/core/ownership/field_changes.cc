#include "ownership/field_changes.h"

#include <unordered_map>

#include "ownership/typed.h"

namespace holdfast::ownership {

FieldChanges changes_between(Arena& arena, const MergeType& type, const Value& before, const Value& after) {
  const Comparison found = compare(arena, type, unfold_raw(arena, type, before), unfold_raw(arena, type, after));
  return {found.added, found.modified, found.removed};
}

FieldSet fields_of(Arena& arena, const MergeType& type, const Value& object) {
  return to_set(arena, type, unfold_raw(arena, type, object));
}

namespace {

void add_missing(SetBuilder& builder, FieldSet set, FieldSet present) {
  for (const SetEntry& entry : set.entries()) {
    const SetEntry* there = present.find(entry.element);
    // A leaf that is there has everything below it.
    if (there != nullptr && there->child_count == 0) continue;
    if (entry.child_count == 0) {
      if (there == nullptr) builder.add(entry.element, true, {});
      continue;
    }
    const size_t level = builder.open();
    add_missing(builder, entry.children(), there == nullptr ? FieldSet() : there->children());
    builder.add(entry.element, false, builder.close(level));
  }
}

}  // namespace

FieldSet missing_from(Arena& arena, FieldSet set, FieldSet present) {
  SetBuilder builder(arena);
  add_missing(builder, set, present);
  return builder.close(0);
}

struct FieldValues::State {
  Arena& arena;
  const MergeType& type;
  const Value object;
  std::unordered_map<const Value*, ItemIndex> lists;  // By their items.
};

FieldValues::FieldValues(Arena& arena, const MergeType& type, const Value& object)
    : state_(std::make_unique<State>(State{arena, type, unfold_raw(arena, type, object), {}})) {}

FieldValues::~FieldValues() = default;

const Value* FieldValues::at(Path path) {
  const Value* value = &state_->object;
  const MergeType* type = &state_->type;
  for (const PathElement& element : path) {
    if (element.is_field()) {
      if (!value->is_map()) return nullptr;
      value = value->find(element.name());
      if (value == nullptr) return nullptr;
      bool declared = false;
      const MergeType* member = type->member(element.name(), declared);
      type = member == nullptr ? &MergeTypes::deduced() : member;
      continue;
    }
    if (!value->is_list() || type->item == nullptr) return nullptr;
    const std::span<const Value> items = value->items();
    if (items.empty()) return nullptr;
    const ItemIndex& index = state_->lists.try_emplace(items.data(), state_->arena, *type, items).first->second;
    const size_t found = index.find(element, 0);
    if (found == index.count()) return nullptr;
    value = &items[found];
    type = type->item;
  }
  return value;
}

}  // namespace holdfast::ownership
