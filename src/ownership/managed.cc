#include "ownership/managed.h"

#include <algorithm>

#include "base/text.h"

namespace holdfast::ownership {
namespace {

constexpr size_t kMaxManagerBytes = 128;

void append_member(std::string& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  out += out.size() > 1 ? "," : "";
  out += json_quote(name);
  out += ':';
  out += json_quote(value);
}

}  // namespace

std::string_view name_of(Operation operation) { return operation == Operation::Apply ? "Apply" : "Update"; }

bool same_manager(const ManagerEntry& a, const ManagerEntry& b) {
  return a.operation == b.operation && a.manager == b.manager && a.subresource == b.subresource &&
         (a.operation == Operation::Apply || a.api_version == b.api_version);
}

std::string identity_text(const ManagerEntry& entry) {
  std::string out = "{";
  append_member(out, "manager", entry.manager);
  append_member(out, "operation", name_of(entry.operation));
  if (entry.operation == Operation::Update) append_member(out, "apiVersion", entry.api_version);
  append_member(out, "subresource", entry.subresource);
  return out + "}";
}

std::string manager_text(const ManagerEntry& entry) {
  std::string out = go_quote(entry.manager);
  if (!entry.subresource.empty()) out += " with subresource " + go_quote(entry.subresource);
  if (entry.operation == Operation::Update) out += " using " + std::string(entry.api_version);
  return out;
}

Result<Managed> decode_managed(Arena& arena, const Value& list, const ManagedOptions& options) {
  Managed managed;
  if (list.is_null()) return managed;
  if (!list.is_list()) return bad_request("managedFields must be a list");
  managed.reserve(list.count());
  for (size_t i = 0; i < list.count(); ++i) {
    const Value& item = list.items()[i];
    ManagerEntry entry;
    const std::string_view operation = item.text_at("operation");
    if (operation == "Apply") {
      entry.operation = Operation::Apply;
    } else if (operation == "Update") {
      entry.operation = Operation::Update;
    } else {
      return bad_request("operation must be `Apply` or `Update`");
    }
    entry.api_version = item.text_at("apiVersion");
    if (entry.api_version.empty()) return bad_request("apiVersion must not be empty");
    entry.manager = item.text_at("manager");
    entry.subresource = item.text_at("subresource");
    const std::string_view form = item.text_at("fieldsType");
    if (form.empty()) return bad_request("missing fieldsType in managed fields entry " + std::to_string(i));
    if (form == "FieldsV1") {
      if (const Value* fields = item.find("fieldsV1"); fields != nullptr && !fields->is_null()) {
        Result<FieldSet> set = parse_fields_v1(arena, *fields);
        if (!set) return bad_request("error decoding set: " + set.error().message);
        entry.fields = *set;
      }
    } else {
      (void)options;
      return bad_request("invalid fieldsType " + go_quote(form) + " in managed fields entry " + std::to_string(i));
    }
    if (const Value* time = item.find("time"); time != nullptr && !time->is_null()) {
      const std::optional<UnixTime> parsed = parse_rfc3339(time->is_string() ? time->as_string() : "");
      if (!parsed) return bad_request("time must be RFC 3339 in managed fields entry " + std::to_string(i));
      entry.time = parsed->seconds;
    }
    const auto twin =
        std::find_if(managed.begin(), managed.end(), [&](const ManagerEntry& e) { return same_manager(e, entry); });
    if (twin == managed.end()) {
      managed.push_back(entry);
    } else {
      *twin = entry;
    }
  }
  return managed;
}

void sort_managed(Managed& managed) {
  auto before = [](const ManagerEntry& a, const ManagerEntry& b) {
    if (a.operation != b.operation) return a.operation < b.operation;
    const int64_t x = a.time.value_or(0), y = b.time.value_or(0);
    if (x != y) return x < y;
    if (a.manager != b.manager) return a.manager < b.manager;
    if (a.api_version != b.api_version) return a.api_version < b.api_version;
    return a.subresource < b.subresource;
  };
  // Few entries, mostly in order.
  for (size_t i = 1; i < managed.size(); ++i) {
    for (size_t j = i; j > 0 && before(managed[j], managed[j - 1]); --j) std::swap(managed[j], managed[j - 1]);
  }
}

Value encode_managed(Arena& arena, Managed managed, MemberOrder order) {
  if (managed.empty()) return Value();
  sort_managed(managed);
  ListBuilder list(arena);
  std::string text;
  for (const ManagerEntry& entry : managed) {
    MapBuilder item(arena);
    if (!entry.manager.empty()) item.add("manager", Value::string(entry.manager));
    item.add("operation", Value::string(name_of(entry.operation)));
    item.add("apiVersion", Value::string(entry.api_version));
    if (entry.time) item.add("time", Value::string(arena, format_rfc3339({*entry.time, 0})));
    item.add("fieldsType", Value::string("FieldsV1"));
    text.clear();
    append_fields_v1(text, entry.fields, order);
    item.add("fieldsV1", Value::raw(arena.copy(std::string_view(text))));
    if (!entry.subresource.empty()) item.add("subresource", Value::string(entry.subresource));
    list.add(item.build());
  }
  return list.build();
}

bool resets_managed(const Value& list) {
  if (!list.is_list()) return false;
  if (list.count() == 0) return true;
  if (list.count() != 1 || !list.items()[0].is_map()) return list.count() == 1 && list.items()[0].is_null();
  for (const Member& m : list.items()[0].members()) {
    const bool empty = m.value.is_null() || (m.value.is_string() && m.value.as_string().empty());
    if (!empty) return false;
  }
  return true;
}

std::string manager_name(std::string_view field_manager, std::string_view user_agent) {
  if (!field_manager.empty()) return std::string(field_manager);
  const std::string_view product = user_agent.substr(0, user_agent.find('/'));
  std::string name;
  for (size_t at = 0; at < product.size();) {
    const Rune rune = decode_rune(product, at);
    if (is_print(rune.value)) {
      std::string text;
      append_utf8(text, rune.value);
      if (name.size() + text.size() > kMaxManagerBytes) break;
      name += text;
    }
    at += rune.length;
  }
  return name.empty() ? "unknown" : name;
}

}  // namespace holdfast::ownership
