#include "render/object_forms.h"

#include <algorithm>
#include <vector>

namespace holdfast::render {

Value with_sorted_members(Arena& arena, const Value& map) {
  std::vector<Member> members(map.members().begin(), map.members().end());
  std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.key < b.key; });
  MapBuilder sorted(arena);
  for (const Member& member : members) sorted.add(member.key, member.value);
  return sorted.build();
}

Value in_declared_order(Arena& arena, const types::Type& type, const Value& value) {
  if (value.is_list() && type.shape == types::Shape::List) {
    ListBuilder list(arena);
    for (const Value& item : value.items()) list.add(in_declared_order(arena, *type.element, item));
    return list.build();
  }
  if (value.is_map() && type.shape == types::Shape::Map) return with_sorted_members(arena, value);
  if (!value.is_map() || type.shape != types::Shape::Struct) return value;
  MapBuilder map(arena);
  for (const types::Field* field : type.members) {
    const Value* member = value.find(field->name);
    if (member != nullptr) map.add(field->name, in_declared_order(arena, *field->type, *member));
  }
  return map.build();
}

Value partial_metadata(Arena& arena, const View& view, const Value& tree) {
  MapBuilder partial(arena);
  partial.add("kind", Value::string("PartialObjectMetadata"));
  partial.add("apiVersion", Value::string(arena, "meta.k8s.io/" + view.accepted.meta_version));
  const Value* metadata = tree.find("metadata");
  Value shown = Value::empty_map();
  if (metadata != nullptr) {
    static const types::Type& type = *types::find_type("meta/v1.ObjectMeta");
    shown = view.served->custom ? in_declared_order(arena, type, *metadata)
                                : without_converted_annotations(arena, *view.served->resource, *metadata);
  }
  partial.add("metadata", shown);
  return partial.build();
}

}  // namespace holdfast::render
