#include "table/table.h"

#include <algorithm>

#include "base/strings.h"
#include "table/cells.h"
#include "table/json_path.h"

namespace holdfast::table {
namespace {

constexpr types::Column kBuiltInScaleColumns[] = {
    {"Name", "string", "", "Name of the scaled object.", 0},
    {"Desired", "integer", "", "Replicas asked for.", 0},
    {"Available", "integer", "", "Replicas that exist.", 0},
    {"Age", "string", "", "Time since the object was created.", 0},
};
constexpr types::Column kCustomScaleColumns[] = {
    {"Name", "string", "name", "Name of the scaled object.", 0},
    {"Desired", "integer", "", "Replicas asked for.", 0},
    {"Available", "integer", "", "Replicas that exist.", 0},
    {"Age", "date", "", "Time since the object was created.", 0},
};
constexpr types::Column kDefaultCustomColumns[] = {
    {"Name", "string", "name", "Name of the object, unique within its namespace and kind.", 0, ".metadata.name"},
    {"Age", "date", "", "Time since the object was created.", 0, ".metadata.creationTimestamp"},
};

// A cell of a custom resource. Null if the value's type differs from the column's; a string column prints anything.
Value custom_cell(Arena& arena, const types::Column& column, const Value& object, UnixTime now) {
  std::vector<Value> found;
  if (!evaluate_json_path(column.json_path, object, found, 1) || found.empty()) return Value::null();
  const Value& value = found.front();
  if (column.type == "string") return Value::string(arena, json_path_text({value}));
  if (column.type == "integer") {
    if (value.is_int()) return value;
    if (value.is_double()) return Value::integer(static_cast<int64_t>(value.as_double()));
    return Value::null();
  }
  if (column.type == "number") return value.is_number() ? Value::number(value.number_value()) : Value::null();
  if (column.type == "boolean") return value.is_bool() ? value : Value::null();
  if (column.type == "date") {
    if (!value.is_string()) return Value::null();
    if (!parse_rfc3339(value.as_string())) return Value::string("<invalid>");
    return Value::string(arena, age_of(value.as_string(), now));
  }
  return Value::null();
}

Printer find_printer(const types::Resource& resource) {
  if (resource.group == "autoscaling" && resource.version == "v1")
    return workload_printer("HorizontalPodAutoscaler/v1");
  if (resource.group == "events.k8s.io") return core_printer("Event/events.k8s.io");
  for (auto find : {workload_printer, core_printer, cluster_printer}) {
    if (Printer printer = find(resource.kind)) return printer;
  }
  return nullptr;
}

}  // namespace

Value cells(Arena& arena, const types::Resource& resource, const Value& object, UnixTime now) {
  const bool custom = std::any_of(resource.columns.begin(), resource.columns.end(),
                                  [](const types::Column& column) { return !column.json_path.empty(); });
  if (custom || resource.columns.empty()) {
    ListBuilder row(arena);
    row.add(Value::string(object.text_at("metadata", "name")));
    const auto columns = resource.columns.empty() ? default_custom_columns() : resource.columns;
    for (const types::Column& column : columns.subspan(1)) row.add(custom_cell(arena, column, object, now));
    return row.build();
  }
  Row row(arena, object, now);
  if (Printer print = find_printer(resource)) {
    print(row);
  } else {
    row.name();
    row.text(object.text_at("metadata", "creationTimestamp"));
  }
  return row.build();
}

Value row_conditions(Arena& arena, const types::Resource& resource, const Value& object) {
  if (resource.kind != "Pod" || !resource.group.empty()) return Value::empty_list();
  const std::string_view phase = object.text_at("status", "phase");
  if (phase != "Succeeded" && phase != "Failed") return Value::empty_list();
  MapBuilder condition(arena);
  condition.add("type", Value::string("Completed"));
  condition.add("status", Value::string("True"));
  condition.add("reason", Value::string(phase));
  condition.add("message",
                Value::string(phase == "Succeeded" ? "The pod has completed successfully." : "The pod failed."));
  ListBuilder list(arena);
  list.add(condition.build());
  return list.build();
}

std::span<const types::Column> scale_columns(ScaleOf owner) {
  if (owner == ScaleOf::BuiltIn) return kBuiltInScaleColumns;
  return kCustomScaleColumns;
}

std::span<const types::Column> default_custom_columns() { return kDefaultCustomColumns; }

Value scale_cells(Arena& arena, ScaleOf owner, const Value& scale, UnixTime now) {
  Row row(arena, scale, now);
  row.name();
  row.integer(scale.int_at_or(0, "spec", "replicas"));
  row.integer(scale.int_at_or(0, "status", "replicas"));
  if (owner == ScaleOf::Custom && scale.text_at("metadata", "creationTimestamp").empty()) {
    row.add(Value::null());
  } else {
    row.age();
  }
  return row.build();
}

std::string age_text(int64_t seconds) {
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  auto two = [](int64_t large, const char* large_unit, int64_t small, const char* small_unit) {
    std::string text = std::to_string(large) + large_unit;
    if (small != 0) text += std::to_string(small) + small_unit;
    return text;
  };
  const int64_t minutes = seconds / 60, hours = seconds / 3600, days = hours / 24, years = days / 365;
  if (seconds < 60 * 2) return std::to_string(seconds) + "s";
  if (minutes < 10) return two(minutes, "m", seconds % 60, "s");
  if (hours < 3) return std::to_string(minutes) + "m";
  if (hours < 8) return two(hours, "h", minutes % 60, "m");
  if (hours < 48) return std::to_string(hours) + "h";
  if (hours < 24 * 8) return two(days, "d", hours % 24, "h");
  if (days < 365 * 2) return std::to_string(days) + "d";
  if (days < 365 * 8) return two(years, "y", days % 365, "d");
  return std::to_string(years) + "y";
}

std::string age_of(std::string_view rfc3339, UnixTime now) {
  const auto time = parse_rfc3339(rfc3339);
  if (!time) return "<unknown>";
  int64_t seconds = now.seconds - time->seconds;
  // Go truncates the duration towards zero.
  if (seconds > 0 && now.nanos < time->nanos) --seconds;
  if (seconds < 0 && now.nanos > time->nanos) ++seconds;
  return age_text(seconds);
}

std::string join_strings(std::span<const Value> strings, std::string_view separator) {
  return join(strings, separator,
              [](const Value& item) { return item.is_string() ? item.as_string() : std::string_view(); });
}

std::string map_text(std::span<const Member> members) {
  std::vector<std::string> parts;
  for (const Member& member : members) {
    parts.push_back(std::string(member.key) + "=" +
                    std::string(member.value.is_string() ? member.value.as_string() : ""));
  }
  std::sort(parts.begin(), parts.end());
  return join(parts, ",");
}

std::string container_names(const Value* pod_spec) {
  std::vector<std::string> names;
  if (pod_spec != nullptr) {
    for (const Value& container : pod_spec->items_at("containers")) names.emplace_back(container.text_at("name"));
  }
  return join(names, ",");
}

std::string container_images(const Value* pod_spec) {
  std::vector<std::string> images;
  if (pod_spec != nullptr) {
    for (const Value& container : pod_spec->items_at("containers")) images.emplace_back(container.text_at("image"));
  }
  return join(images, ",");
}

void containers(Row& row, const Value* pod_spec) {
  row.text(container_names(pod_spec));
  row.text(container_images(pod_spec));
}

std::string_view or_none(std::string_view text) { return text.empty() ? "<none>" : text; }

bool bool_at(const Value& object, std::string_view a, std::string_view b) {
  const Value* found = object.get(a, b);
  return found != nullptr && found->is_bool() && found->as_bool();
}

std::string int_or_string_text(const Value& value) {
  if (value.is_string()) return std::string(value.as_string());
  return value.is_int() ? std::to_string(value.as_int()) : std::string();
}

}  // namespace holdfast::table
