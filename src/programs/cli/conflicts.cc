#include "cli/conflicts.h"

#include <algorithm>

#include "cli/field_owners.h"
#include "cli/field_path.h"
#include "cli/print.h"
#include "codec/codec.h"
#include "ownership/ownership.h"
#include "table/table.h"

namespace holdfast::cli {

namespace {

std::string shown_value(const Value* value) {
  if (value == nullptr) return "(none)";
  if (value->is_map() && value->has(ownership::kUnsetKey)) return "(unset)";
  return value->is_string() ? std::string(value->as_string()) : codec::encode_json(*value);
}

// What the configuration says about a field: it may be unset together with a field that contains it.
std::string configured_value(const Value& config, std::string_view path) {
  const Value* value = value_at(config, path);
  for (std::string_view outer = path; value == nullptr;) {
    const size_t end = outer.find_last_of(".[");
    if (end == std::string_view::npos || end == 0) break;
    outer = outer.substr(0, end);
    const Value* around = value_at(config, outer);
    if (around == nullptr) continue;
    if (around->is_map() && around->has(ownership::kUnsetKey)) value = around;
    break;
  }
  return shown_value(value);
}

// The quoted part of: conflict with "alice" using apps/v1. Empty if the cause has none.
std::string manager_in(std::string_view message) {
  const size_t open = message.find('"');
  const size_t close = open == std::string_view::npos ? open : message.find('"', open + 1);
  return close == std::string_view::npos ? "" : std::string(message.substr(open + 1, close - open - 1));
}

}  // namespace

std::vector<FieldConflict> read_conflicts(const Error& error, const Value& config, const Value& live,
                                          std::string_view manager) {
  std::vector<FieldConflict> conflicts;
  const Result<FieldOwners> owners = FieldOwners::of(live);
  for (const Cause& cause : error.causes) {
    if (cause.type != "FieldManagerConflict") continue;
    const bool known = std::any_of(conflicts.begin(), conflicts.end(),
                                   [&](const FieldConflict& other) { return other.path == cause.field; });
    if (known) continue;  // A field with several owners has one cause per owner.
    FieldConflict conflict;
    conflict.path = cause.field;
    conflict.ours = configured_value(config, cause.field);
    conflict.live = shown_value(value_at(live, cause.field));
    if (owners) {
      for (const uint32_t position : owners->owners_of(cause.field)) {
        const ownership::ManagerEntry& entry = owners->managers()[position];
        if (entry.manager == manager && entry.operation == ownership::Operation::Apply) continue;
        conflict.owners.push_back({std::string(entry.manager), std::string(name_of(entry.operation)),
                                   std::string(entry.subresource), entry.time});
      }
    }
    if (conflict.owners.empty()) conflict.owners.push_back({manager_in(cause.message), "", "", std::nullopt});
    conflicts.push_back(std::move(conflict));
  }
  return conflicts;
}

std::string conflict_table(const std::vector<FieldConflict>& conflicts, const Terminal& terminal, UnixTime now) {
  // Values are truncated first: field paths must stay readable.
  const size_t room = std::max<size_t>(8, (terminal.columns - std::min<size_t>(terminal.columns, 40)) / 5);
  TableWriter table;
  table.add({"FIELD", "YOURS", "LIVE", "OWNER", "OPERATION", "SINCE"});
  for (const FieldConflict& conflict : conflicts) {
    bool first = true;
    for (const FieldConflict::Owner& owner : conflict.owners) {
      std::string operation = owner.operation;
      if (!owner.subresource.empty()) operation += "/" + owner.subresource;
      table.add({first ? conflict.path : "", first ? shortened(conflict.ours, room) : "",
                 first ? shortened(conflict.live, room) : "", owner.manager, operation,
                 owner.since ? table::age_text(now.seconds - *owner.since) : "<unknown>"});
      first = false;
    }
  }
  return table.take();
}

Value resolved(Arena& arena, const Value& config, const Value& live, const std::vector<FieldConflict>& conflicts) {
  Value result = config;
  for (const FieldConflict& conflict : conflicts) {
    const Value* shared = value_at(live, conflict.path);
    if (conflict.resolution == Resolution::Yield || (conflict.resolution == Resolution::Share && shared == nullptr)) {
      result = with_value_at(arena, result, conflict.path, nullptr);
    } else if (conflict.resolution == Resolution::Share) {
      result = with_value_at(arena, result, conflict.path, shared);
    }
  }
  return result;
}

}  // namespace holdfast::cli
