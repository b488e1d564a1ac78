#include "client/apply.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/api_version.h"
#include "base/base64.h"
#include "base/strings.h"
#include "codec/codec.h"
#include "ownership/ownership.h"
#include "schema/schema.h"

namespace holdfast::client::apply {

Node::Node(Fields fields) : data_(std::make_shared<Fields>(std::move(fields))) {}

Fields* Node::fields() {
  auto* shared = std::get_if<std::shared_ptr<Fields>>(&data_);
  if (shared == nullptr) return nullptr;
  // Copy on write: configurations are values.
  if (shared->use_count() > 1) *shared = std::make_shared<Fields>(**shared);
  return shared->get();
}

const Fields* Node::fields() const {
  const auto* shared = std::get_if<std::shared_ptr<Fields>>(&data_);
  return shared == nullptr ? nullptr : shared->get();
}

Node Node::of(const Value& value, Form form) {
  switch (value.kind()) {
    case Value::Kind::Null:
      return {};
    case Value::Kind::Bool:
      return value.as_bool();
    case Value::Kind::Int:
      return value.as_int();
    case Value::Kind::Double:
      return value.as_double();
    case Value::Kind::String:
      return value.as_string();
    case Value::Kind::Raw: {
      Arena arena;
      Result<Value> parsed = codec::decode_json(arena, value.raw_json());
      return parsed ? of(*parsed, form) : Node();
    }
    case Value::Kind::List: {
      std::vector<Node> items;
      items.reserve(value.count());
      for (const Value& item : value.items()) items.push_back(of(item, form));
      return items;
    }
    case Value::Kind::Map:
      if (form == Form::Config && value.count() == 1 && value.text_at(ownership::kUnsetKey) == ownership::kUnsetValue) {
        return Unset{};
      }
      return Fields::of(value, form);
  }
  return {};
}

Value Node::to_value(Arena& arena, Form form) const {
  struct Visitor {
    Arena& arena;
    Form form;
    Value operator()(std::monostate) const { return Value::null(); }
    Value operator()(bool b) const { return Value::boolean(b); }
    Value operator()(int64_t i) const { return Value::integer(i); }
    Value operator()(double d) const { return Value::number(d); }
    Value operator()(const std::string& text) const { return Value::string(arena, text); }
    Value operator()(const std::vector<Node>& items) const {
      ListBuilder list(arena);
      for (const Node& item : items) list.add(item.to_value(arena, form));
      return list.build();
    }
    Value operator()(const std::shared_ptr<Fields>& fields) const { return fields->to_value(arena, form); }
    Value operator()(UnsetItem) const { return Value::string(ownership::kUnsetValue); }
    Value operator()(Unset) const {
      MapBuilder marker(arena);
      marker.add(ownership::kUnsetKey, Value::string(ownership::kUnsetValue));
      return marker.build();
    }
  };
  return std::visit(Visitor{arena, form}, data_);
}

std::optional<bool> Node::as_bool() const {
  const bool* b = std::get_if<bool>(&data_);
  return b == nullptr ? std::nullopt : std::optional<bool>(*b);
}
std::optional<int64_t> Node::as_int() const {
  const int64_t* i = std::get_if<int64_t>(&data_);
  return i == nullptr ? std::nullopt : std::optional<int64_t>(*i);
}
std::optional<double> Node::as_double() const {
  if (const int64_t* i = std::get_if<int64_t>(&data_)) return static_cast<double>(*i);
  const double* d = std::get_if<double>(&data_);
  return d == nullptr ? std::nullopt : std::optional<double>(*d);
}

std::optional<int32_t> narrow(std::optional<int64_t> number) {
  if (!number || !std::in_range<int32_t>(*number)) return std::nullopt;
  return static_cast<int32_t>(*number);
}

std::optional<Bytes> bytes_of(const Node& node) {
  if (node.as_text() == nullptr) return std::nullopt;
  std::optional<std::string> raw = base64_decode(*node.as_text());
  return raw ? std::optional<Bytes>(Bytes{std::move(*raw)}) : std::nullopt;
}

bool Node::same_scalar(const Node& other) const {
  if (data_.index() != other.data_.index()) return false;
  if (const bool* b = std::get_if<bool>(&data_)) return *b == std::get<bool>(other.data_);
  if (const int64_t* i = std::get_if<int64_t>(&data_)) return *i == std::get<int64_t>(other.data_);
  if (const std::string* text = std::get_if<std::string>(&data_)) return *text == std::get<std::string>(other.data_);
  return false;
}

const Node* Fields::find(std::string_view name) const {
  for (const auto& [key, value] : members_) {
    if (key == name) return &value;
  }
  return nullptr;
}

Node& Fields::at(std::string_view name) {
  for (auto& [key, value] : members_) {
    if (key == name) return value;
  }
  return members_.emplace_back(std::string(name), Node()).second;
}

void Fields::set(std::string_view name, Node value) { at(name) = std::move(value); }

void Fields::forget(std::string_view name) {
  std::erase_if(members_, [&](const auto& member) { return member.first == name; });
}

Fields& Fields::child(std::string_view name) {
  Node& node = at(name);
  if (node.fields() == nullptr) node = Fields();
  return *node.fields();
}

std::vector<Node>& Fields::list_at(std::string_view name) {
  Node& node = at(name);
  if (node.items() == nullptr) node = std::vector<Node>();
  return *node.items();
}

void Fields::append(std::string_view list, Node item) { list_at(list).push_back(std::move(item)); }

void Fields::put_item(std::string_view list, Fields item, std::initializer_list<ItemKey> keys) {
  std::vector<Node>& items = list_at(list);
  for (Node& other : items) {
    const Fields* fields = std::as_const(other).fields();
    const auto same_key = [&](const ItemKey& key) {
      const Node *a = fields->find(key.name), *b = item.find(key.name);
      return (a == nullptr && b == nullptr) ||
             (a == nullptr ? key.fallback : *a).same_scalar(b == nullptr ? key.fallback : *b);
    };
    const bool same = fields != nullptr && std::all_of(keys.begin(), keys.end(), same_key);
    if (same) {
      other = std::move(item);
      return;
    }
  }
  items.emplace_back(std::move(item));
}

void Fields::unset_item(std::string_view list, std::initializer_list<Key> keys) {
  Fields item;
  std::vector<Node>& items = list_at(list);
  for (const Key& key : keys) item.set(key.name, key.value);
  std::erase_if(items, [&](const Node& other) {
    const Fields* fields = std::as_const(other).fields();
    return fields != nullptr && std::all_of(keys.begin(), keys.end(), [&](const Key& key) {
             const Node* theirs = fields->find(key.name);
             return (theirs == nullptr ? key.fallback : *theirs).same_scalar(key.value);
           });
  });
  item.set(ownership::kUnsetKey, Node::UnsetItem{});
  items.emplace_back(std::move(item));
}

void Fields::unset_element(std::string_view set, Node element) {
  std::vector<Node>& items = list_at(set);
  std::erase_if(items, [&](const Node& other) {
    const Fields* marker = std::as_const(other).fields();
    const Node* unset = marker == nullptr ? &other : marker->find(ownership::kUnsetElement);
    return unset != nullptr && unset->same_scalar(element);
  });
  Fields item;
  item.set(ownership::kUnsetKey, Node::UnsetItem{});
  item.set(ownership::kUnsetElement, std::move(element));
  items.emplace_back(std::move(item));
}

void Fields::put_entry(std::string_view map, std::string_view key, Node value) {
  child(map).set(key, std::move(value));
}

Value Fields::to_value(Arena& arena, Form form) const {
  MapBuilder map(arena);
  for (const auto& [key, node] : members_) {
    Value value = node.to_value(arena, form);
    const bool doubled = form == Form::Config && key == ownership::kUnsetKey && !node.is_unset_item();
    map.add_copy(key, doubled ? with_member(arena, Value::empty_map(), ownership::kUnsetKey, value) : value);
  }
  return map.build();
}

Fields Fields::of(const Value& map, Form form) {
  Fields fields;
  for (const Member& member : map.members()) {
    const Value& value = member.value;
    const bool special = form == Form::Config && member.key == ownership::kUnsetKey;
    const Value* doubled = special && value.is_map() && value.count() == 1 ? value.find(ownership::kUnsetKey) : nullptr;
    const bool marker = special && value.is_string() && value.as_string() == ownership::kUnsetValue;
    fields.members_.emplace_back(
        member.key, marker ? Node(Node::UnsetItem{}) : Node::of(doubled == nullptr ? value : *doubled, form));
  }
  return fields;
}

Node bytes(std::string_view raw) { return base64_encode(raw); }

namespace {

// Extracts owned fields of one kind. Cached forever: programs use a handful of kinds.
struct Reader {
  std::shared_ptr<const schema::Schema> schema;  // For custom resources.
  std::unique_ptr<ownership::MergeTypes> merge_types;
  std::unique_ptr<ownership::FieldManager> manager;
};

Result<const ownership::FieldManager*> reader_of(const KindSource& kind) {
  static std::mutex mutex;
  static std::map<std::string, Reader, std::less<>> readers;
  // A schema may change while a program runs, if it is that of a server.
  const std::string name =
      std::string(kind.api_version) + " " + std::string(kind.kind) + " " + std::string(kind.crd_schema);
  std::lock_guard lock(mutex);
  if (const auto found = readers.find(name); found != readers.end()) return found->second.manager.get();
  Reader reader;
  const ownership::MergeType* type = nullptr;
  if (kind.crd_schema.empty()) {
    const auto [group, version] = split_api_version(kind.api_version);
    const types::Resource* resource = types::find_kind(group, version, kind.kind);
    if (resource == nullptr) return bad_request("no built-in kind " + name.substr(0, name.size() - 1));
    type = &ownership::builtin_merge_types().of(*resource->type);
  } else {
    Result<codec::Document> written = codec::parse_json(std::string(kind.crd_schema));
    if (!written) return written.take_error();
    reader.schema = schema::Schema::build(written->root(), false);
    reader.merge_types = std::make_unique<ownership::MergeTypes>();
    type = &reader.merge_types->of(reader.schema->root());
  }
  ownership::FieldManagerOptions options;
  options.api_version = kind.api_version;
  options.kind = kind.kind;
  options.versions.push_back({std::string(kind.api_version), type, {}});
  options.unset_markers = true;
  options.fields_v2 = true;
  if (reader.schema != nullptr) {
    // A container that was unset and has its default again differs from one that was set to the same value.
    options.declared_defaults = [schema = reader.schema](Arena& arena, const Value& object) {
      return schema::apply_defaults(arena, schema->root(), object);
    };
  }
  reader.manager = std::make_unique<ownership::FieldManager>(std::move(options));
  return readers.emplace(name, std::move(reader)).first->second.manager.get();
}

}  // namespace

Result<std::optional<Fields>> extract(const KindSource& kind, const Object& object, std::string_view manager,
                                      std::string_view subresource, IfDropped if_dropped) {
  if (lacks_more_than_ownership(object.dropped())) {
    return bad_request(object.key() + " was read without " + join(object.dropped(), ", ") +
                       ", which may be owned; read it with drop_fields = DropFields::kKeep to extract");
  }
  if (if_dropped == IfDropped::Refuse && !object.dropped().empty()) {
    return bad_request(
        object.key() +
        " was read without metadata.managedFields; read it with drop_fields = DropFields::kKeep to extract");
  }
  const Value* list = object.root().get("metadata", "managedFields");
  if (list == nullptr || list->is_null()) return std::optional<Fields>();
  Result<const ownership::FieldManager*> reader = reader_of(kind);
  if (!reader) return reader.take_error();
  Arena arena;
  Result<ownership::Managed> managed = ownership::decode_managed(arena, *list, {.fields_v2 = true});
  if (!managed) return managed.take_error();
  constexpr std::string_view kPath[] = {"metadata", "managedFields"};
  const Value plain = without_path(arena, object.root(), kPath);
  Result<Value> applied = (*reader)->extract(arena, plain, *managed, manager, subresource);
  if (!applied) return applied.take_error();
  if (applied->is_null()) return std::optional<Fields>();
  Fields fields = Fields::of(*applied);
  // Every configuration identifies the object, whoever owns those fields.
  Fields& metadata = fields.child("metadata");
  metadata.set("name", object.name());
  if (!object.space().empty()) metadata.set("namespace", object.space());
  return std::optional<Fields>(std::move(fields));
}

}  // namespace holdfast::client::apply
