// Building blocks of generated apply configurations (holdfast applygen): trees of fields to set and to unset.
//
// A generated type is a thin, typed interface to Fields. Each of its functions is one call into this file, so programs
// contain code only for the fields they use.
//
//   apps_v1::Deployment("web")
//       .with_spec(apps_v1::DeploymentSpec().with_replicas(3).unset_min_ready_seconds())
//
// The last call that sets or unsets a field wins. Each with_x of a list appends; with_x of a keyed list replaces the
// item with the same keys, and unset_x_item marks it as unset.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

// A value in a configuration.
class Node {
 public:
  struct Unset {};

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
  // Any JSON; copied.
  static Node of(const Value& value);

  Value to_value(Arena& arena) const;
  bool is_unset() const { return std::holds_alternative<Unset>(data_); }
  std::vector<Node>* items() { return std::get_if<std::vector<Node>>(&data_); }
  Fields* fields();
  const Fields* fields() const;
  // Compares scalars only; used to find an item by its keys.
  bool same_scalar(const Node& other) const;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<Node>, std::shared_ptr<Fields>, Unset>
      data_;
};

// A string or an integer, as used for ports and limits.
class IntOrString {
 public:
  IntOrString(int32_t number) : node_(number) {}
  IntOrString(std::string text) : node_(std::move(text)) {}
  IntOrString(const char* text) : node_(text) {}
  operator Node() const { return node_; }

 private:
  Node node_;
};

// The keys of an item of a keyed list.
struct Key {
  std::string_view name;
  Node value;
};

// The members of a struct or map, in insertion order.
class Fields {
 public:
  void set(std::string_view name, Node value);
  void unset(std::string_view name) { set(name, Node::Unset{}); }
  // Removes the field from the configuration.
  void forget(std::string_view name);

  void append(std::string_view list, Node item);
  void put_item(std::string_view list, Fields item, std::initializer_list<std::string_view> keys);
  void unset_item(std::string_view list, std::initializer_list<Key> keys);
  void put_entry(std::string_view map, std::string_view key, Node value);
  void unset_entry(std::string_view map, std::string_view key) { put_entry(map, key, Node::Unset{}); }
  // The nested struct `name`, created if absent. Used by setters of nested fields.
  Fields& child(std::string_view name);

  const Node* find(std::string_view name) const;
  bool empty() const { return members_.empty(); }
  Value to_value(Arena& arena) const;
  static Fields of(const Value& map);

 private:
  friend class Node;
  Node& at(std::string_view name);
  std::vector<Node>& list_at(std::string_view name);
  std::vector<std::pair<std::string, Node>> members_;
};

// Bytes in their JSON form.
Node bytes(std::string_view raw);

// The base of generated structs.
template <class Self>
class Struct {
 public:
  Struct() = default;
  explicit Struct(Fields fields) : fields_(std::move(fields)) {}

  const Fields& fields() const { return fields_; }
  Value to_value(Arena& arena) const { return fields_.to_value(arena); }

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
  Self& put_item(std::string_view list, Fields item, std::initializer_list<std::string_view> keys) {
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
// The fields that `manager` applied through `subresource` (empty: the object itself), with markers for fields it owns
// as unset. nullopt if it has applied nothing, or if the object has no managedFields because the client dropped them.
Result<std::optional<Fields>> extract(const KindSource& kind, const Object& object, std::string_view manager,
                                      std::string_view subresource);

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
  Self& unset_labels_key(std::string_view key) {
    metadata().unset_entry("labels", key);
    return this->self();
  }
  Self& with_annotations(std::string_view key, std::string_view value) {
    metadata().put_entry("annotations", key, value);
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
  // Sets the controlling owner: the object is deleted together with it.
  Self& with_controller(const Object& owner) {
    Fields reference;
    reference.set("apiVersion", owner.root().text_at("apiVersion"));
    reference.set("kind", owner.root().text_at("kind"));
    reference.set("name", owner.name());
    reference.set("uid", owner.uid());
    reference.set("controller", true);
    reference.set("blockOwnerDeletion", true);
    metadata().put_item("ownerReferences", std::move(reference), {"uid"});
    return this->self();
  }

  // The fields that `manager` applied to the object, through `subresource` if given. See apply::extract.
  static Result<std::optional<Self>> extract(const Object& object, std::string_view manager,
                                             std::string_view subresource = {}) {
    Result<std::optional<Fields>> fields = apply::extract(Self::source(), object, manager, subresource);
    if (!fields) return fields.take_error();
    if (!*fields) return std::optional<Self>();
    return std::optional<Self>(Self(std::move(**fields)));
  }

 private:
  Fields& metadata() { return this->fields_.child("metadata"); }
};

}  // namespace holdfast::client::apply
