// Building blocks of generated apply configurations (holdfast applygen): trees of fields to set and to unset.
//
// A generated type is a thin, typed interface to Fields. Each of its functions is one call into this file, so programs
// contain code only for the fields they use.
//
//   apps_v1::Deployment("web")
//       .with_spec(apps_v1::DeploymentSpec().with_replicas(3).unset_min_ready_seconds())
//
// The last call that sets or unsets a field wins. Each with_x of a list appends; with_x of a keyed list replaces the
// item with the same keys, set or unset, and unset_x_item marks it as unset.
//
// A map's key may be that of markers, k8s_io__value: apply configurations double it (Form::Config), objects do not.
//
// They are read by x(): a copy of the value, nullopt if it is absent or unset; lists and maps are empty then.
//
//   apps_v1::Deployment::of(object).spec()->replicas()
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "client/object.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::client::apply {

class Fields;

// What a tree is written as, or read from.
enum class Form : uint8_t {
  Config,  // An apply configuration: {k8s_io__value: unset} is a marker, and data with this key doubles it.
  Object,  // Everything is data.
};

// A value in a configuration.
class Node {
 public:
  struct Unset {};
  // The value of k8s_io__value in an item of a list that is unset, next to its keys.
  struct UnsetItem {};

  Node() = default;
  Node(bool b) : data_(b) {}
  Node(int32_t i) : data_(int64_t{i}) {}
  Node(int64_t i) : data_(i) {}
  Node(double d) : data_(d) {}
  Node(std::string text) : data_(std::move(text)) {}
  Node(std::string_view text) : data_(std::string(text)) {}
  Node(const char* text) : data_(std::string(text)) {}
  Node(Fields fields);
  Node(std::vector<Node> items) : data_(std::move(items)) {}
  Node(Unset unset) : data_(unset) {}
  Node(UnsetItem unset) : data_(unset) {}
  // Any JSON; copied.
  static Node of(const Value& value, Form form = Form::Config);

  Value to_value(Arena& arena, Form form = Form::Config) const;
  bool is_unset() const { return std::holds_alternative<Unset>(data_); }
  bool is_unset_item() const { return std::holds_alternative<UnsetItem>(data_); }
  bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  std::vector<Node>* items() { return std::get_if<std::vector<Node>>(&data_); }
  const std::vector<Node>* items() const { return std::get_if<std::vector<Node>>(&data_); }
  // nullopt if it is something else.
  std::optional<bool> as_bool() const;
  std::optional<int64_t> as_int() const;
  std::optional<double> as_double() const;  // Integers, too.
  const std::string* as_text() const { return std::get_if<std::string>(&data_); }
  Fields* fields();
  const Fields* fields() const;
  // Compares scalars only; used to find an item by its keys.
  bool same_scalar(const Node& other) const;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<Node>, std::shared_ptr<Fields>, Unset,
               UnsetItem>
      data_;
};

// A string or an integer, as used for ports and limits.
class IntOrString {
 public:
  IntOrString(int32_t number) : node_(number) {}
  IntOrString(std::string text) : node_(std::move(text)) {}
  IntOrString(const char* text) : node_(text) {}
  // Either, as it was read.
  explicit IntOrString(Node node) : node_(std::move(node)) {}
  operator Node() const { return node_; }

  std::optional<int64_t> number() const { return node_.as_int(); }
  // Empty for a number.
  std::string text() const { return node_.as_text() == nullptr ? "" : *node_.as_text(); }

 private:
  Node node_;
};

// Raw bytes, as read from their JSON form.
struct Bytes {
  std::string raw;
};

// A key of the items of a keyed list, and what it is in an item without it.
struct ItemKey {
  std::string_view name;
  Node fallback = {};
};
// The same for one item.
struct Key {
  std::string_view name;
  Node value;
  Node fallback = {};
};

// The members of a struct or map, in insertion order.
class Fields {
 public:
  void set(std::string_view name, Node value);
  void unset(std::string_view name) { set(name, Node::Unset{}); }
  // Removes the field from the configuration.
  void forget(std::string_view name);

  void append(std::string_view list, Node item);
  void put_item(std::string_view list, Fields item, std::initializer_list<ItemKey> keys);
  void unset_item(std::string_view list, std::initializer_list<Key> keys);
  // Of a set: removed from what is set, and unset.
  void unset_element(std::string_view set, Node element);
  void put_entry(std::string_view map, std::string_view key, Node value);
  void unset_entry(std::string_view map, std::string_view key) { put_entry(map, key, Node::Unset{}); }
  // The nested struct `name`, created if absent. Used by setters of nested fields.
  Fields& child(std::string_view name);

  const Node* find(std::string_view name) const;
  bool empty() const { return members_.empty(); }
  const std::vector<std::pair<std::string, Node>>& members() const { return members_; }
  Value to_value(Arena& arena, Form form = Form::Config) const;
  static Fields of(const Value& map, Form form = Form::Config);

 private:
  friend class Node;
  Node& at(std::string_view name);
  std::vector<Node>& list_at(std::string_view name);
  std::vector<std::pair<std::string, Node>> members_;
};

// Bytes in their JSON form.
Node bytes(std::string_view raw);

// --- Reading

template <class T>
struct IsList : std::false_type {};
template <class T>
struct IsList<std::vector<T>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class T>
struct IsMap<std::map<std::string, T>> : std::true_type {};

std::optional<int32_t> narrow(std::optional<int64_t> number);
std::optional<Bytes> bytes_of(const Node& node);

// nullopt if the node is unset or of another type. Items and entries of another type are left out.
template <class T>
std::optional<T> read(const Node& node) {
  if constexpr (std::is_same_v<T, bool>) {
    return node.as_bool();
  } else if constexpr (std::is_same_v<T, int32_t>) {
    return narrow(node.as_int());
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return node.as_int();
  } else if constexpr (std::is_same_v<T, double>) {
    return node.as_double();
  } else if constexpr (std::is_same_v<T, std::string>) {
    return node.as_text() == nullptr ? std::nullopt : std::optional<T>(*node.as_text());
  } else if constexpr (std::is_same_v<T, Bytes>) {
    return bytes_of(node);
  } else if constexpr (std::is_same_v<T, IntOrString>) {
    return node.as_int() || node.as_text() != nullptr ? std::optional<T>(T(node)) : std::nullopt;
  } else if constexpr (std::is_same_v<T, Node>) {
    return node.is_unset() || node.is_null() ? std::nullopt : std::optional<T>(node);
  } else if constexpr (IsList<T>::value) {
    if (node.items() == nullptr) return std::nullopt;
    T items;
    for (const Node& item : *node.items()) {
      if (std::optional<typename T::value_type> one = read<typename T::value_type>(item)) {
        items.push_back(std::move(*one));
      }
    }
    return items;
  } else if constexpr (IsMap<T>::value) {
    if (node.fields() == nullptr) return std::nullopt;
    T entries;
    for (const auto& [key, value] : node.fields()->members()) {
      if (std::optional<typename T::mapped_type> one = read<typename T::mapped_type>(value)) {
        entries.emplace(key, std::move(*one));
      }
    }
    return entries;
  } else {
    return node.fields() == nullptr ? std::nullopt : std::optional<T>(T(*node.fields()));
  }
}
template <class T>
std::optional<T> read(const Fields& fields, std::string_view name) {
  const Node* node = fields.find(name);
  return node == nullptr ? std::nullopt : read<T>(*node);
}
template <class T>
T read_all(const Fields& fields, std::string_view name) {
  return read<T>(fields, name).value_or(T());
}

// The base of generated structs.
template <class Self>
class Struct {
 public:
  Struct() = default;
  explicit Struct(Fields fields) : fields_(std::move(fields)) {}

  const Fields& fields() const { return fields_; }
  Value to_value(Arena& arena, Form form = Form::Config) const { return fields_.to_value(arena, form); }

 protected:
  Self& self() { return static_cast<Self&>(*this); }
  Self& set(std::string_view name, Node value) {
    fields_.set(name, std::move(value));
    return self();
  }
  Self& unset(std::string_view name) {
    fields_.unset(name);
    return self();
  }
  Self& append(std::string_view list, Node item) {
    fields_.append(list, std::move(item));
    return self();
  }
  template <class T>
  Self& append_all(std::string_view list, std::initializer_list<T> items) {
    for (const T& item : items) fields_.append(list, item);
    return self();
  }
  Self& put_item(std::string_view list, Fields item, std::initializer_list<ItemKey> keys) {
    fields_.put_item(list, std::move(item), keys);
    return self();
  }
  Self& unset_item(std::string_view list, std::initializer_list<Key> keys) {
    fields_.unset_item(list, keys);
    return self();
  }
  Self& put_entry(std::string_view map, std::string_view key, Node value) {
    fields_.put_entry(map, key, std::move(value));
    return self();
  }
  Self& unset_entry(std::string_view map, std::string_view key) {
    fields_.unset_entry(map, key);
    return self();
  }

  Fields fields_;
};

// Identifies a generated kind, for reading back what a manager applied.
struct KindSource {
  std::string_view api_version, kind;
  std::string_view crd_schema;  // openAPIV3Schema as JSON; empty for built-in kinds.
};
// What to do if an object was read without managedFields.
enum class IfDropped : uint8_t { ReturnNothing, Refuse };
// The fields that `manager` applied through `subresource` (empty: the object itself), with markers for fields it owns
// as unset: applying the result again changes nothing. nullopt if it has applied nothing.
//
// An object that was read without managedFields (Object::dropped) does not tell what a manager applied: nullopt, too,
// or BadRequest if that is to be refused. Applying a configuration made from nothing gives up everything that the
// manager owned, so a program that extracts, changes and applies should refuse. BadRequest also if other fields were
// dropped: the manager may own them.
Result<std::optional<Fields>> extract(const KindSource& kind, const Object& object, std::string_view manager,
                                      std::string_view subresource, IfDropped if_dropped = IfDropped::ReturnNothing);

// The base of generated kinds: the fields common to all objects.
template <class Self>
class Kind : public Struct<Self> {
 public:
  explicit Kind(Fields fields) : Struct<Self>(std::move(fields)) {}
  Kind(std::string_view api_version, std::string_view kind, std::string_view name, std::string_view space) {
    this->fields_.set("apiVersion", api_version);
    this->fields_.set("kind", kind);
    metadata().set("name", name);
    if (!space.empty()) metadata().set("namespace", space);
  }

  Self& with_labels(std::string_view key, std::string_view value) {
    metadata().put_entry("labels", key, value);
    return this->self();
  }
  Self& unset_labels() {
    metadata().unset("labels");
    return this->self();
  }
  Self& unset_labels_key(std::string_view key) {
    metadata().unset_entry("labels", key);
    return this->self();
  }
  Self& with_annotations(std::string_view key, std::string_view value) {
    metadata().put_entry("annotations", key, value);
    return this->self();
  }
  Self& unset_annotations() {
    metadata().unset("annotations");
    return this->self();
  }
  Self& unset_annotations_key(std::string_view key) {
    metadata().unset_entry("annotations", key);
    return this->self();
  }
  Self& with_finalizers(std::initializer_list<std::string_view> finalizers) {
    for (const std::string_view finalizer : finalizers) metadata().append("finalizers", finalizer);
    return this->self();
  }
  Self& unset_finalizers() {
    metadata().unset("finalizers");
    return this->self();
  }
  Self& unset_finalizers_item(std::string_view finalizer) {
    metadata().unset_element("finalizers", finalizer);
    return this->self();
  }
  // Adds an owner: the object is deleted once all of its owners are.
  Self& with_owner(const Object& owner) {
    metadata().put_item("ownerReferences", reference_to(owner), {{"uid"}});
    return this->self();
  }
  // Sets the controlling owner: the object is deleted together with it.
  Self& with_controller(const Object& owner) {
    Fields reference = reference_to(owner);
    reference.set("controller", true);
    reference.set("blockOwnerDeletion", true);
    metadata().put_item("ownerReferences", std::move(reference), {{"uid"}});
    return this->self();
  }
  Self& unset_owner_references() {
    metadata().unset("ownerReferences");
    return this->self();
  }
  Self& unset_owner_references_item(std::string_view uid) {
    metadata().unset_item("ownerReferences", {{"uid", uid}});
    return this->self();
  }

  // An object that was read, as this type.
  static Self of(const Object& object) {
    Self self(Fields::of(object.root(), Form::Object));
    self.dropped_.assign(object.dropped().begin(), object.dropped().end());
    return self;
  }
  // See Object::dropped.
  std::span<const std::string> dropped() const { return dropped_; }
  std::string name() const { return text("name"); }
  std::string space() const { return text("namespace"); }
  std::string uid() const { return text("uid"); }
  std::string resource_version() const { return text("resourceVersion"); }
  std::map<std::string, std::string> labels() const { return all<std::map<std::string, std::string>>("labels"); }
  std::map<std::string, std::string> annotations() const {
    return all<std::map<std::string, std::string>>("annotations");
  }
  std::vector<std::string> finalizers() const { return all<std::vector<std::string>>("finalizers"); }

  // The fields that `manager` applied to the object, through `subresource` if given. See apply::extract.
  static Result<std::optional<Self>> extract(const Object& object, std::string_view manager,
                                             std::string_view subresource = {},
                                             IfDropped if_dropped = IfDropped::ReturnNothing) {
    Result<std::optional<Fields>> fields = apply::extract(Self::source(), object, manager, subresource, if_dropped);
    if (!fields) return fields.take_error();
    if (!*fields) return std::optional<Self>();
    return std::optional<Self>(Self(std::move(**fields)));
  }

 private:
  Fields& metadata() { return this->fields_.child("metadata"); }
  template <class T>
  T all(std::string_view field) const {
    const Node* metadata = this->fields_.find("metadata");
    return metadata == nullptr || metadata->fields() == nullptr ? T() : read_all<T>(*metadata->fields(), field);
  }
  std::string text(std::string_view field) const { return all<std::string>(field); }
  static Fields reference_to(const Object& owner) {
    Fields reference;
    reference.set("apiVersion", owner.root().text_at("apiVersion"));
    reference.set("kind", owner.root().text_at("kind"));
    reference.set("name", owner.name());
    reference.set("uid", owner.uid());
    return reference;
  }

  std::vector<std::string> dropped_;
};

}  // namespace holdfast::client::apply
