#include "render/table_view.h"

#include "render/object_forms.h"

#include "table/table.h"

namespace holdfast::render {
namespace {

// A Scale has its own columns, independent of the resource it belongs to.
bool is_scale(const Value& object) {
  return object.text_at("kind") == "Scale" && object.text_at("apiVersion") == "autoscaling/v1";
}
table::ScaleOf scale_of(const View& view) {
  return view.served->custom ? table::ScaleOf::Custom : table::ScaleOf::BuiltIn;
}

Value columns_value(Arena& arena, std::span<const types::Column> columns) {
  ListBuilder list(arena);
  for (const types::Column& column : columns) {
    MapBuilder item(arena);
    item.add("name", Value::string(column.name));
    item.add("type", Value::string(column.type));
    item.add("format", Value::string(column.format));
    item.add("description", Value::string(column.description));
    item.add("priority", Value::integer(column.priority));
    list.add(item.build());
  }
  return list.build();
}

}  // namespace

Value table_columns(Arena& arena, const View& view) { return columns_value(arena, view.served->resource->columns); }

Value table_row(Arena& arena, const View& view, const Value& object, bool always_object) {
  MapBuilder row(arena);
  if (is_scale(object)) {
    row.add("cells", table::scale_cells(arena, scale_of(view), object, view.now));
  } else {
    row.add("cells", table::cells(arena, *view.served->resource, object, view.now));
    const Value conditions = table::row_conditions(arena, *view.served->resource, object);
    if (conditions.count() > 0) row.add("conditions", conditions);
  }
  const IncludeObject include =
      always_object && view.include == IncludeObject::None ? IncludeObject::Metadata : view.include;
  switch (include) {
    case IncludeObject::None:
      row.add("object", Value::null());
      break;
    case IncludeObject::Object:
      row.add("object", object);
      break;
    case IncludeObject::Metadata:
      row.add("object", partial_metadata(arena, view, object));
      break;
  }
  return row.build();
}

Value table_of(Arena& arena, const View& view, const Value& object, bool with_columns) {
  MapBuilder table(arena);
  table.add("kind", Value::string("Table"));
  table.add("apiVersion", Value::string(arena, "meta.k8s.io/" + view.accepted.meta_version));
  MapBuilder metadata(arena);
  const std::string_view revision = object.text_at("metadata", "resourceVersion");
  if (!revision.empty()) metadata.add("resourceVersion", Value::string(revision));
  table.add("metadata", metadata.build());
  if (!with_columns) {
    table.add("columnDefinitions", Value::null());
  } else if (is_scale(object)) {
    table.add("columnDefinitions", columns_value(arena, table::scale_columns(scale_of(view))));
  } else {
    table.add("columnDefinitions", table_columns(arena, view));
  }
  const Value* annotations = object.get("metadata", "annotations");
  const bool ends_initial = annotations != nullptr && annotations->has("k8s.io/initial-events-end");
  const Value row = table_row(arena, view, object, ends_initial);
  table.add("rows", Value::list(arena.copy(std::span<const Value>(&row, 1))));
  return table.build();
}

}  // namespace holdfast::render
