// Validates objects against the schema of their version.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/hash.h"
#include "base/strings.h"
#include "base/text.h"
#include "codec/codec.h"
#include "crd/crd.h"
#include "crd/rules.h"

namespace holdfast::crd {
namespace {

using types::Constraints;
using types::Shape;
using types::Type;

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::Null:
      return "null";
    case Value::Kind::Bool:
      return "boolean";
    case Value::Kind::Int:
      return "integer";
    case Value::Kind::Double:
      return "number";
    case Value::Kind::String:
      return "string";
    case Value::Kind::List:
      return "array";
    default:
      return "object";
  }
}

// The types allowed by a schema, as listed in errors; empty if any.
std::string_view wanted_type(const Type& type) {
  switch (type.shape) {
    case Shape::Bool:
      return "boolean";
    case Shape::Int32:
    case Shape::Int64:
      return "integer";
    case Shape::Double:
      return "number";
    case Shape::String:
      return "string";
    case Shape::List:
      return "array";
    case Shape::Map:
    case Shape::Struct:
      return "object";
    case Shape::IntOrString:
      return "integer,string";
    default:
      return "";
  }
}

bool is_integral(double number) { return std::floor(number) == number && std::abs(number) < 9.007199254740992e15; }

bool type_allows(const Type& type, const Value& value) {
  switch (type.shape) {
    case Shape::Bool:
      return value.is_bool();
    case Shape::Int32:
    case Shape::Int64:
      return value.is_int() || (value.is_double() && is_integral(value.as_double()));
    case Shape::Double:
      return value.is_number();
    case Shape::String:
      return value.is_string();
    case Shape::List:
      return value.is_list();
    case Shape::Map:
    case Shape::Struct:
      return value.is_map();
    case Shape::IntOrString:
      return value.is_int() || value.is_string() || (value.is_double() && is_integral(value.as_double()));
    default:
      return true;
  }
}

std::string number_text(double number) { return codec::float_text(number, codec::FloatText::Go); }

// Indexes the items of a keyed list by their keys; the first of several with the same keys wins.
class ItemsByKey {
 public:
  ItemsByKey(const Type& list, const Value& items) : list_(list) {
    for (const Value& item : items.items()) {
      if (item.is_map()) items_.emplace(key_of(item), &item);
    }
  }
  const Value* find(const Value& item) const {
    if (!item.is_map()) return nullptr;
    const auto found = items_.find(key_of(item));
    return found == items_.end() ? nullptr : found->second;
  }

 private:
  std::string key_of(const Value& item) const {
    std::string key;
    for (const std::string_view name : list_.list_keys) {
      if (const Value* part = item.find(name)) key += codec::encode_json_sorted(*part);
      key += '\n';
    }
    return key;
  }
  const Type& list_;
  std::unordered_map<std::string, const Value*, KeyHash> items_;
};

// Whether a value is unchanged, as decided by CachedDeepEqual of CorrelatedObject: the order of a keyed list is
// ignored, and values with undeclared members always count as changed.
bool unchanged(const Type& type, const Value& value, const Value& old) {
  if (value.is_list() && old.is_list() && type.shape == Shape::List && type.list_kind == types::ListKind::Keyed) {
    if (value.count() != old.count()) return false;
    const ItemsByKey before(type, old);
    return std::all_of(value.items().begin(), value.items().end(), [&](const Value& item) {
      const Value* match = before.find(item);
      return match != nullptr && unchanged(*type.element, item, *match);
    });
  }
  if (value.is_map() && old.is_map()) {
    if (value.count() != old.count()) return false;
    return std::all_of(value.members().begin(), value.members().end(), [&](const Member& member) {
      const Type* child = schema::member_type(type, member.key);
      const Value* before = old.find(member.key);
      return child != nullptr && before != nullptr && unchanged(*child, member.value, *before);
    });
  }
  return equal(value, old);
}

struct Checker {
  FieldErrors& errors;
  size_t unnamed = 0;  // Length of the path prefix omitted in messages: the path of the validated part.

  std::string name_of(const Path* at) const {
    std::string name = at == nullptr ? std::string() : at->text();
    name.erase(0, std::min(name.size(), unnamed));
    if (name.starts_with('.')) name.erase(0, 1);
    return name;
  }
  // "spec.x in body", the beginning of most messages. The validated value itself has no name.
  std::string in_body(const Path* at) const { return name_of(at) + " in body "; }
  static Path place(const Path* at) { return at == nullptr ? Path("") : *at; }

  void check(const Type& type, const Value& value, const Value* old, bool root, const Path* at) {
    // Ratcheting: unchanged values are not validated again.
    if (old != nullptr && !root && unchanged(type, value, *old)) return;
    if (value.is_null()) {
      if (!type.nullable && !wanted_type(type).empty()) {
        wrong_type(type, value, at);
        if (type.constraints != nullptr) enumeration(*type.constraints, value, at);
      }
      return;
    }
    if (!type_allows(type, value)) wrong_type(type, value, at);
    if (type.constraints != nullptr) alternatives(*type.constraints, value, at);
    if (value.is_string()) text(type, value.as_string(), at);
    if (value.is_number()) number(type, value, at);
    if (value.is_list()) list(type, value, old, at);
    if (type.constraints != nullptr) enumeration(*type.constraints, value, at);
    if (value.is_map()) object(type, value, old, at);
  }

  void wrong_type(const Type& type, const Value& value, const Path* at) {
    errors.type_invalid(place(at), type_name(value),
                        in_body(at) + "must be of type " + std::string(wanted_type(type)) + ": \"" +
                            std::string(type_name(value)) + "\"");
  }

  bool valid(const Type& type, const Value& value) {
    FieldErrors found;
    const Path nowhere("");
    Checker{found}.check(type, value, nullptr, false, &nowhere);
    return found.empty();
  }

  // Checks anyOf, oneOf, allOf and not.
  void alternatives(const Constraints& c, const Value& value, const Path* at) {
    const std::string name = "\"" + name_of(at) + "\"";
    auto report = [&](const std::string& detail) { errors.invalid(place(at), "", detail); };
    if (!c.any_of.empty()) {
      const bool any = std::any_of(c.any_of.begin(), c.any_of.end(), [&](const Type* t) { return valid(*t, value); });
      if (!any) {
        report(name + " must validate at least one schema (anyOf)");
        check(*c.any_of.front(), value, nullptr, false, at);
      }
    }
    if (!c.one_of.empty()) {
      const auto matching =
          std::count_if(c.one_of.begin(), c.one_of.end(), [&](const Type* t) { return valid(*t, value); });
      if (matching != 1) {
        report(name + " must validate one and only one schema (oneOf). " +
               (matching == 0 ? std::string("Found none valid")
                              : "Found " + std::to_string(matching) + " valid alternatives"));
        if (matching == 0) check(*c.one_of.front(), value, nullptr, false, at);
      }
    }
    if (!c.all_of.empty()) {
      size_t matching = 0;
      for (const Type* t : c.all_of) {
        if (valid(*t, value))
          ++matching;
        else
          check(*t, value, nullptr, false, at);
      }
      if (matching != c.all_of.size())
        report(name + " must validate all the schemas (allOf)" + (matching == 0 ? ". None validated" : ""));
    }
    if (c.not_schema != nullptr && valid(*c.not_schema, value)) report(name + " must not validate the schema (not)");
  }

  void text(const Type& type, std::string_view value, const Path* at) {
    if (const Constraints* c = type.constraints) {
      const auto length = static_cast<int64_t>(count_characters(value));
      if (c->max_length != nullptr && length > *c->max_length) errors.too_long(place(at), *c->max_length);
      if (c->min_length != nullptr && length < *c->min_length) {
        errors.invalid(place(at), value,
                       in_body(at) + "should be at least " + std::to_string(*c->min_length) + " chars long");
      }
      if (!c->pattern.empty() && !pattern_matches(c->pattern, value)) {
        errors.invalid(place(at), value, in_body(at) + "should match '" + std::string(c->pattern) + "'");
      }
    }
    const bool speaks_of_text = type.shape == Shape::String || type.shape == Shape::Any;
    if (speaks_of_text && !type.format.empty() && !has_format(type.format, value)) {
      std::string shown(type.format);
      errors.type_invalid(place(at), value, in_body(at) + "must be of type " + shown + ": " + go_quote(value));
    }
  }

  void number(const Type& type, const Value& value, const Path* at) {
    const Constraints* c = type.constraints;
    const double n = value.number_value();
    const bool beyond_int32 = type.format == "int32" && (n > 2147483647.0 || n < -2147483648.0);
    if (type.shape == Shape::Int64 && (beyond_int32 || (value.is_double() && !is_integral(n)))) {
      const std::string format = type.format.empty() ? " (default format)" : " with format " + std::string(type.format);
      errors.invalid(Path("<nil>"), "", "Checked value must be of type integer" + format + " in " + name_of(at));
    }
    if (c == nullptr) return;
    if (c->multiple_of != nullptr && *c->multiple_of != 0) {
      const double ratio = n / *c->multiple_of;
      if (std::abs(ratio - std::round(ratio)) > 1e-9) {
        errors.invalid(place(at), value, in_body(at) + "should be a multiple of " + number_text(*c->multiple_of));
      }
    }
    if (c->maximum != nullptr && (c->exclusive_maximum ? n >= *c->maximum : n > *c->maximum)) {
      errors.invalid(place(at), value,
                     in_body(at) + "should be less than " + (c->exclusive_maximum ? "" : "or equal to ") +
                         number_text(*c->maximum));
    }
    if (c->minimum != nullptr && (c->exclusive_minimum ? n <= *c->minimum : n < *c->minimum)) {
      errors.invalid(place(at), value,
                     in_body(at) + "should be greater than " + (c->exclusive_minimum ? "" : "or equal to ") +
                         number_text(*c->minimum));
    }
  }

  void list(const Type& type, const Value& value, const Value* old, const Path* at) {
    if (type.shape == Shape::List) {
      // In keyed lists, items are compared with the old item of the same key; elsewhere with nothing.
      std::optional<ItemsByKey> before;
      if (old != nullptr && old->is_list() && type.list_kind == types::ListKind::Keyed) before.emplace(type, *old);
      for (size_t i = 0; i < value.count(); ++i) {
        const Value& item = value.items()[i];
        const Path here = at->index(i);
        check(*type.element, item, before ? before->find(item) : nullptr, false, &here);
      }
    }
    if (type.constraints == nullptr) return;
    const auto count = static_cast<int64_t>(value.count());
    if (const int64_t* least = type.constraints->min_items; least != nullptr && count < *least) {
      errors.invalid(place(at), count, in_body(at) + "should have at least " + std::to_string(*least) + " items");
    }
    if (const int64_t* most = type.constraints->max_items; most != nullptr && count > *most)
      errors.too_many(place(at), count, *most);
  }

  void enumeration(const Constraints& c, const Value& value, const Path* at) {
    if (c.enum_values.empty()) return;
    for (const Value& allowed : c.enum_values) {
      if (equal(allowed, value, Numbers::ByValue)) return;
    }
    std::vector<std::string> texts;
    for (const Value& allowed : c.enum_values)
      texts.push_back(allowed.is_string() ? std::string(allowed.as_string()) : codec::encode_json(allowed));
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    errors.not_supported(place(at), value, views);
  }

  void object(const Type& type, const Value& value, const Value* old, const Path* at) {
    if (type.constraints != nullptr) {
      const auto count = static_cast<int64_t>(value.count());
      if (const int64_t* least = type.constraints->min_properties; least != nullptr && count < *least) {
        errors.invalid(place(at), count,
                       in_body(at) + "should have at least " + std::to_string(*least) + " properties");
      }
      if (const int64_t* most = type.constraints->max_properties; most != nullptr && count > *most)
        errors.too_many(place(at), count, *most);
    }
    for (const Member& member : value.members()) {
      const Type* child = schema::member_type(type, member.key);
      if (child == nullptr) continue;
      const Path here = at == nullptr ? Path(member.key) : at->child(member.key);
      // Both objects were converted to the same version, so it is meaningless that these are unchanged.
      const bool always = at == nullptr && (member.key == "apiVersion" || member.key == "kind");
      check(*child, member.value, old == nullptr || always ? nullptr : old->find(member.key), false, &here);
    }
    if (type.constraints == nullptr) return;
    for (std::string_view name : type.constraints->required) {
      if (!value.has(name)) errors.required(at == nullptr ? Path(name) : at->child(name));
    }
  }
};

struct UniqueItems {
  FieldErrors& errors;

  void check(const Type& type, const Value& value, const Path* at) {
    if (value.is_map()) {
      for (const Member& member : value.members()) {
        const Type* child = schema::member_type(type, member.key);
        if (child == nullptr) continue;
        if (type.shape == Shape::Map) {
          const Path here = at->key(member.key);
          check(*child, member.value, &here);
        } else {
          const Path here = at == nullptr ? Path(member.key) : at->child(member.key);
          check(*child, member.value, &here);
        }
      }
      return;
    }
    if (!value.is_list() || type.shape != Shape::List) return;
    if (type.list_kind == types::ListKind::Set) set(value, at);
    if (type.list_kind == types::ListKind::Keyed) keyed(type, value, at);
    for (size_t i = 0; i < value.count(); ++i) {
      const Path here = at->index(i);
      check(*type.element, value.items()[i], &here);
    }
  }

  // Reports the second occurrence of each value.
  void set(const Value& list, const Path* at) {
    std::unordered_map<std::string, int, KeyHash> seen;
    for (size_t i = 0; i < list.count(); ++i) {
      // An integer and a double with the same value are different items here.
      std::string key = codec::encode_json_sorted(list.items()[i]);
      if (list.items()[i].is_double()) key += "d";
      if (++seen[key] == 2) errors.duplicate(at->index(i), list.items()[i]);
    }
  }

  void keyed(const Type& type, const Value& list, const Path* at) {
    Arena arena;
    for (size_t i = 0; i < list.count(); ++i) {
      const Value& item = list.items()[i];
      if (!item.is_map() && !item.is_null()) {
        errors.invalid(at->index(i), item, "must be an object for an array of list-type map");
        return;
      }
    }
    std::unordered_map<std::string, int, KeyHash> seen;
    for (size_t i = 0; i < list.count(); ++i) {
      MapBuilder key(arena);
      for (std::string_view name : type.list_keys) {
        if (const Value* found = list.items()[i].find(name)) key.add(name, *found);
      }
      const Value value = key.build();
      if (++seen[codec::encode_json_sorted(value)] == 2) errors.duplicate(at->index(i), value);
    }
  }
};

// Embedded resources must have apiVersion, kind, and metadata that is valid for a top-level object.
struct Embedded {
  FieldErrors& errors;

  void check(const Type& type, const Value& value, const Path* at) {
    if (value.is_list() && type.shape == Shape::List) {
      for (size_t i = 0; i < value.count(); ++i) {
        const Path here = at->index(i);
        check(*type.element, value.items()[i], &here);
      }
    }
    if (!value.is_map()) return;
    if (type.embedded_resource && at != nullptr) resource(value, at);
    for (const Member& member : value.members()) {
      const Type* child = schema::member_type(type, member.key);
      if (child == nullptr) continue;
      const Path here = at == nullptr              ? Path(member.key)
                        : type.shape == Shape::Map ? at->key(member.key)
                                                   : at->child(member.key);
      check(*child, member.value, &here);
    }
  }

  // `at` is null if the resource itself is validated.
  static Path under(const Path* at, std::string_view member) {
    return at == nullptr ? Path(member) : at->child(member);
  }

  // Whether Go's decoder can decode it; all other checks apply to the decoded value.
  bool readable(const Value& value, const Path* at) {
    const size_t before = errors.count();
    for (const std::string_view name : {"apiVersion", "kind"}) {
      const Value* text = value.find(name);
      if (text != nullptr && !text->is_string()) errors.invalid(under(at, name), *text, "must be a string");
    }
    if (const Value* metadata = value.find("metadata")) {
      Arena arena;
      static const Type& object_meta = *types::find_type("meta/v1.ObjectMeta");
      const Result<Value> typed = codec::to_typed(arena, object_meta, *metadata);
      if (!typed) errors.invalid(under(at, "metadata"), *metadata, typed.error().message);
    }
    if (errors.count() > before) errors.cut_to(before + 1);  // Only the first error is reported.
    return errors.count() == before;
  }

  void resource(const Value& value, const Path* at) {
    if (!readable(value, at)) return;
    for (std::string_view name : {"apiVersion", "kind"}) {
      if (!value.has(name)) errors.required(under(at, name));
    }
    if (const Value* version = value.find("apiVersion");
        version != nullptr && name_is_text(*version, at, "apiVersion")) {
      const std::string_view text = version->as_string();
      if (std::count(text.begin(), text.end(), '/') > 1)
        errors.invalid(under(at, "apiVersion"), text, "unexpected GroupVersion string: " + std::string(text));
    }
    if (const Value* kind = value.find("kind"); kind != nullptr && name_is_text(*kind, at, "kind")) {
      const std::string why = join(kinds::dns1035_label_errors(to_lower(kind->as_string())), ",");
      if (!why.empty())
        errors.invalid(under(at, "kind"), kind->as_string(), "may have mixed case, but should otherwise match: " + why);
    }
    if (const Value* metadata = value.find("metadata"); metadata != nullptr && metadata->is_map()) {
      Arena arena;
      // The name is optional.
      const Value named = metadata->text_at("name").empty()
                              ? with_member(arena, *metadata, "name", Value::string("fakename"))
                              : *metadata;
      kinds::validate_metadata(named, !named.text_at("namespace").empty(), kinds::name_is_path_segment,
                               under(at, "metadata"), errors);
    }
  }

  bool name_is_text(const Value& value, const Path* at, std::string_view member) {
    if (!value.is_string())
      errors.invalid(under(at, member), value, "must be a string");
    else if (value.as_string().empty())
      errors.invalid(under(at, member), value, "must not be empty");
    else
      return true;
    return false;
  }
};

const Value* at_path(const Value& object, const std::vector<std::string>& path) {
  const Value* here = &object;
  for (const std::string& key : path) {
    here = here == nullptr ? nullptr : here->find(key);
  }
  return here;
}

// What Kubernetes' accessors say about a value that they cannot return (NestedInt64, NestedString of
// unstructured/helpers.go); empty if they can, or if there is none.
std::string accessor_error(const Value& object, const std::vector<std::string>& path, bool wants_text) {
  const Value* here = &object;
  std::string text;
  const auto error = [&](std::string_view wanted) {
    return text + " accessor error: " + codec::go_text(*here) + " is of the type " +
           std::string(codec::go_type(*here)) + ", expected " + std::string(wanted);
  };
  for (const std::string& key : path) {
    if (here->is_null()) return "";
    text += "." + key;
    if (!here->is_map()) return error("map[string]interface{}");
    here = here->find(key);
    if (here == nullptr) return "";
  }
  if (wants_text ? here->is_string() : here->is_int()) return "";
  return error(wants_text ? "string" : "int64");
}

void check_replicas(const Value& object, const std::vector<std::string>& path, const std::string& text,
                    FieldErrors& errors) {
  const Path at(text);
  if (const std::string problem = accessor_error(object, path, false); !problem.empty()) {
    errors.invalid(at, 0, problem);
    return;
  }
  const Value* replicas = at_path(object, path);
  if (replicas == nullptr || !replicas->is_int()) return;
  if (replicas->as_int() < 0)
    errors.invalid(at, replicas->as_int(), "should be a non-negative integer");
  else if (replicas->as_int() > 2147483647)
    errors.invalid(at, replicas->as_int(), "should be less than or equal to 2147483647");
}

void check_scale_spec(const Value& object, const ScalePaths& scale, FieldErrors& errors) {
  check_replicas(object, scale.spec_replicas, scale.spec_replicas_text, errors);
}

void check_scale_status(const Value& object, const ScalePaths& scale, FieldErrors& errors) {
  check_replicas(object, scale.status_replicas, scale.status_replicas_text, errors);
  if (scale.label_selector_text.empty()) return;
  if (const std::string problem = accessor_error(object, scale.label_selector, true); !problem.empty()) {
    errors.invalid(Path(scale.label_selector_text), "", problem);
  }
}

// Objects that already had duplicates may keep them.
void check_new_duplicates(const Type& root, const Value& object, const Value* old, FieldErrors& errors) {
  FieldErrors before;
  if (old != nullptr) validate_unique_items(root, *old, nullptr, before);
  if (before.empty()) validate_unique_items(root, object, nullptr, errors);
}

Error invalid(const Version& version, const Value& object, const FieldErrors& errors) {
  return errors.to_error(version.resource->group, version.resource->kind, object.text_at("metadata", "name"));
}

}  // namespace

void validate_embedded(const Type& type, const Value& value, const Path& at, FieldErrors& errors) {
  Embedded{errors}.check(type, value, &at);
}

void validate_lone_resource(const Value& value, FieldErrors& errors) { Embedded{errors}.resource(value, nullptr); }

void validate_value(const Type& type, const Value& value, const Value* old, const Path* at, FieldErrors& errors) {
  Checker{errors, at == nullptr ? 0 : at->text().size()}.check(type, value, old, at == nullptr, at);
}

void validate_unique_items(const Type& type, const Value& value, const Path* at, FieldErrors& errors) {
  UniqueItems{errors}.check(type, value, at);
}

Result<Unit> validate_object(const Version& version, const Value& object, const Value* old) {
  FieldErrors errors;
  const types::Resource& resource = *version.resource;
  const std::string api_version = std::string(resource.group) + "/" + std::string(resource.version);
  if (object.text_at("kind") != resource.kind)
    errors.invalid(Path("kind"), object.text_at("kind"), "must be " + std::string(resource.kind));
  if (object.text_at("apiVersion") != api_version)
    errors.invalid(Path("apiVersion"), object.text_at("apiVersion"), "must be " + api_version);
  if (!errors.empty()) {
    // The error uses the object's own group and kind.
    const std::string_view named = object.text_at("apiVersion");
    const size_t slash = named.find('/');
    return errors.to_error(slash == std::string_view::npos ? std::string_view{} : named.substr(0, slash),
                           object.text_at("kind"), object.text_at("metadata", "name"));
  }

  const Value* metadata = object.find("metadata");
  const Value own_metadata = metadata == nullptr ? Value::empty_map() : *metadata;
  const Path at("metadata");
  if (old == nullptr) {
    kinds::validate_metadata(own_metadata, resource.namespaced, kinds::name_is_dns_subdomain, at, errors);
  } else {
    const Value* before = old->find("metadata");
    kinds::validate_metadata_update(own_metadata, before == nullptr ? Value::empty_map() : *before, at, errors);
  }
  const Type& root = version.schema->root();
  validate_value(root, object, old, nullptr, errors);
  if (version.scale) {
    check_scale_spec(object, *version.scale, errors);
    check_scale_status(object, *version.scale, errors);
  }
  Embedded{errors}.check(root, object, nullptr);
  check_new_duplicates(root, object, old, errors);
  run_rules(version, object, old, errors);
  if (!errors.empty()) return invalid(version, object, errors);
  return Unit{};
}

Result<Unit> validate_object_status(const Version& version, const Value& object, const Value& old) {
  FieldErrors errors;
  const Value empty = Value::empty_map();
  const Value *next = object.find("metadata"), *before = old.find("metadata");
  kinds::validate_metadata_update(next == nullptr ? empty : *next, before == nullptr ? empty : *before,
                                  Path("metadata"), errors);
  const types::Field* field = types::find_member(version.schema->root(), "status");
  const Value* status = object.find("status");
  if (field != nullptr && status != nullptr) {
    const Path at("status");
    validate_value(*field->type, *status, old.find("status"), &at, errors);
  }
  if (version.scale) check_scale_status(object, *version.scale, errors);
  check_new_duplicates(version.schema->root(), object, &old, errors);
  run_rules(version, object, &old, errors);
  if (!errors.empty()) return invalid(version, object, errors);
  return Unit{};
}

Result<Value> scale_of(Arena& arena, const ScalePaths& paths, const Value& object) {
  const Value* replicas = at_path(object, paths.spec_replicas);
  if (replicas == nullptr || !replicas->is_int()) {
    return Error{Reason::Unknown, "the spec replicas field \"" + paths.spec_replicas_text + "\" does not exist"};
  }
  kinds::ScaleFields fields{.spec_replicas = replicas->as_int()};
  const Value* current = at_path(object, paths.status_replicas);
  if (current != nullptr && current->is_int()) fields.status_replicas = current->as_int();
  if (!paths.label_selector.empty()) {
    const Value* selector = at_path(object, paths.label_selector);
    if (selector != nullptr && selector->is_string()) fields.selector = selector->as_string();
  }
  return kinds::make_scale(arena, object, fields);
}

Result<Value> with_scale(Arena& arena, const ScalePaths& paths, const Value& object, const Value& scale) {
  const std::vector<std::string_view> path(paths.spec_replicas.begin(), paths.spec_replicas.end());
  return with_path(arena, object, path, Value::integer(scale.int_at_or(0, "spec", "replicas")));
}

std::string selectable_value(const Value& object, std::string_view field) {
  const Value* here = &object;
  for (size_t start = 0; start <= field.size() && here != nullptr;) {
    const size_t dot = std::min(field.find('.', start), field.size());
    here = here->find(field.substr(start, dot - start));
    start = dot + 1;
  }
  if (here == nullptr) return "";
  if (here->is_string()) return std::string(here->as_string());
  if (here->is_bool() || here->is_number()) return codec::encode_json(*here);
  return "";
}

}  // namespace holdfast::crd
