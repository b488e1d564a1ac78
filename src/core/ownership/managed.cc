#include "ownership/managed.h"

#include <algorithm>

#include "base/base64.h"
#include "base/hash.h"
#include "base/text.h"
#include "ownership/fields_v2.h"
#include "ownership/manager_places.h"

namespace holdfast::ownership {
namespace {

constexpr size_t kMaxManagerBytes = 128;
constexpr size_t kMaxSubresourceBytes = 256;

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

bool is_valid(const ManagerEntry& entry) {
  size_t characters = 0;
  for (size_t at = 0; at < entry.manager.size(); ++characters) {
    const Rune rune = decode_rune(entry.manager, at);
    if (!is_print(rune.value)) return false;
    at += rune.length;
  }
  // Kubernetes counts bytes, see validate_managed_fields().
  return characters <= kMaxManagerBytes && entry.subresource.size() <= kMaxSubresourceBytes;
}

namespace {

// Equal for the same manager.
uint64_t hash_of_manager(const ManagerEntry& entry) {
  const uint64_t hash = hash_combine(hash_key(entry.manager), hash_key(entry.subresource));
  return entry.operation == Operation::Apply ? hash : hash_combine(hash, hash_key(entry.api_version));
}

}  // namespace

size_t ManagerPlaces::find(const ManagerEntry& who) {
  // Linear for a few entries; a list of thousands, which no real client sends, uses a table.
  constexpr size_t kFew = 32;
  if (managed_.size() < kFew) {
    const auto found =
        std::find_if(managed_.begin(), managed_.end(), [&](const ManagerEntry& e) { return same_manager(e, who); });
    return static_cast<size_t>(found - managed_.begin());
  }
  for (; indexed_ < managed_.size(); ++indexed_) by_hash_.emplace(hash_of_manager(managed_[indexed_]), indexed_);
  size_t first = managed_.size();
  const auto [from, to] = by_hash_.equal_range(hash_of_manager(who));
  for (auto at = from; at != to; ++at) {
    if (same_manager(managed_[at->second], who)) first = std::min(first, at->second);
  }
  return first;
}

void ManagerPlaces::put(const ManagerEntry& entry) {
  const size_t at = find(entry);
  if (at == managed_.size()) {
    managed_.push_back(entry);
  } else {
    managed_[at] = entry;
  }
}

namespace {

// What both forms of a list have in common: the checks, and that the later of two entries wins.
class Reader {
 public:
  Reader(const ManagedOptions& options, size_t count) : options_(options) { managed_.reserve(count); }

  // Reads everything but the fields; returns the format of the fields.
  Result<Unit> open(std::string_view operation, std::string_view api_version, std::string_view form) {
    entry_ = {};
    if (operation == "Apply") {
      entry_.operation = Operation::Apply;
    } else if (operation == "Update") {
      entry_.operation = Operation::Update;
    } else {
      return bad_request("operation must be `Apply` or `Update`");
    }
    if (api_version.empty()) return bad_request("apiVersion must not be empty");
    entry_.api_version = api_version;
    if (form.empty()) return bad_request("missing fieldsType in managed fields entry " + position());
    if (form != kFieldsV1 && !(options_.fields_v2 && form == kFieldsV2)) {
      return bad_request("invalid fieldsType " + go_quote(form) + " in managed fields entry " + position());
    }
    return Unit{};
  }

  Result<Unit> fields(Result<FieldSet> set) {
    if (!set) return bad_request("error decoding set: " + set.error().message);
    entry_.fields = *set;
    return Unit{};
  }

  Error bad_time() const { return bad_request("time must be RFC 3339 in managed fields entry " + position()); }

  void close() {
    ++count_;
    places_.put(entry_);
  }

  ManagerEntry& entry() { return entry_; }
  Managed take() { return std::move(managed_); }

 private:
  std::string position() const { return std::to_string(count_); }

  const ManagedOptions& options_;
  Managed managed_;
  ManagerPlaces places_{managed_};
  ManagerEntry entry_;
  size_t count_ = 0;
};

}  // namespace

Result<Managed> decode_managed(Arena& arena, const Value& list, const ManagedOptions& options) {
  if (list.is_null()) return Managed();
  if (!list.is_list()) return bad_request("managedFields must be a list");
  Reader reader(options, list.count());
  for (const Value& item : list.items()) {
    const std::string_view form = item.text_at("fieldsType");
    Result<Unit> step = reader.open(item.text_at("operation"), item.text_at("apiVersion"), form);
    if (!step) return step.take_error();
    reader.entry().manager = item.text_at("manager");
    reader.entry().subresource = item.text_at("subresource");
    if (form == kFieldsV2) {
      const std::string_view text = item.text_at("fieldsV2");
      const std::optional<std::string> bytes = base64_decode(text);
      if (!bytes) return bad_request("error decoding set: fieldsV2 is not valid base64");
      step = bytes->empty() ? Result<Unit>(Unit{})
                            : reader.fields(parse_fields_v2(arena, arena.copy(std::string_view(*bytes))));
    } else if (const Value* fields = item.find("fieldsV1"); fields != nullptr && !fields->is_null()) {
      step = reader.fields(parse_fields_v1(arena, *fields));
    }
    if (!step) return step.take_error();
    if (const Value* time = item.find("time"); time != nullptr && !time->is_null()) {
      const std::optional<UnixTime> parsed = parse_rfc3339(time->is_string() ? time->as_string() : "");
      if (!parsed) return reader.bad_time();
      reader.entry().time = parsed->seconds;
    }
    reader.close();
  }
  return reader.take();
}

Result<Managed> decode_managed(Arena& arena, const Owners& owners, const ManagedOptions& options) {
  Reader reader(options, owners.count());
  for (size_t i = 0; i < owners.count(); ++i) {
    const ManagedEntry found = owners.manager(i);
    Result<Unit> step = reader.open(found.operation, found.api_version, found.fields_type);
    if (!step) return step.take_error();
    reader.entry().manager = found.manager;
    reader.entry().subresource = found.subresource;
    if (found.time) reader.entry().time = found.time->seconds;
    if (owners.has_fields(i)) step = reader.fields(owners.field_set(i, arena));
    if (!step) return step.take_error();
    reader.close();
  }
  return reader.take();
}

std::vector<ManagedEntry> entries_of(Arena& arena, const Managed& managed, bool fields_v2) {
  std::vector<ManagedEntry> out;
  out.reserve(managed.size());
  std::string text;
  for (const ManagerEntry& entry : managed) {
    text.clear();
    if (fields_v2) {
      append_fields_v2(text, entry.fields);
    } else {
      append_fields_v1(text, entry.fields);
    }
    ManagedEntry made;
    made.manager = entry.manager;
    made.operation = name_of(entry.operation);
    made.api_version = entry.api_version;
    made.subresource = entry.subresource;
    if (entry.time) made.time = UnixTime{*entry.time, 0};
    made.fields_type = fields_v2 ? kFieldsV2 : kFieldsV1;
    made.fields = arena.copy(std::string_view(text));
    out.push_back(made);
  }
  return out;
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
  // Usually there are few entries, mostly sorted.
  constexpr size_t kFew = 32;
  if (managed.size() > kFew) {
    std::stable_sort(managed.begin(), managed.end(), before);
    return;
  }
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
