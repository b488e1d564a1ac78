#include "ownership/merge_type.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace holdfast::ownership {
namespace {

// Kubernetes' converter also special-cases this type by name (kube-openapi schemaconv).
constexpr std::string_view kRawExtension = "io.k8s.apimachinery.pkg.runtime.RawExtension";

struct Untyped {
  MergeType atomic, deduced;
  Untyped() {
    atomic.offers = deduced.offers = MergeType::kMap | MergeType::kScalar | MergeType::kList;
    atomic.atomic_map = true;
    atomic.item = deduced.item = &atomic;
    atomic.element = &atomic;
    deduced.element = &deduced;
  }
};
const Untyped& untyped() {
  static const Untyped types;
  return types;
}

// At namespace scope because functions return their addresses.
const Value kEmptyText = Value::string("");
const Value kZero = Value::integer(0);
const Value kFalse = Value::boolean(false);
const Value kNull = Value::null();
const Value kEmptyStruct = Value::empty_map();

// The default that OpenAPI implies for a built-in field that Go always writes: the zero value.
const Value* implied_default(const types::Field& field) {
  if (field.pointer || field.omit_empty || field.omit_zero || field.type == nullptr) return nullptr;
  switch (field.type->shape) {
    case types::Shape::String:
      return &kEmptyText;
    case types::Shape::Int32:
    case types::Shape::Int64:
    case types::Shape::Double:
      return &kZero;
    case types::Shape::Bool:
      return &kFalse;
    default:
      return nullptr;
  }
}

// A non-pointer field that Go omits when zero cannot have a visible default of zero.
const Value* visible_default(const types::Field& field) {
  const Value* value = field.default_value;
  if (value == nullptr || !value->is_scalar()) return nullptr;
  const bool zero = (value->is_string() && value->as_string().empty()) || (value->is_bool() && !value->as_bool()) ||
                    (value->is_number() && value->number_value() == 0);
  return zero && field.omit_empty && !field.pointer ? nullptr : value;
}

// What Go writes for an empty field of a built-in type; null if it writes nothing.
const Value* written_zero(const types::Field& field) {
  if (field.omit_zero || field.type == nullptr) return nullptr;
  // Go's omitempty does not apply to structs.
  if (field.type->shape == types::Shape::Struct && !field.pointer) return &kEmptyStruct;
  if (field.omit_empty) return nullptr;
  if (field.pointer || field.type->shape == types::Shape::List || field.type->shape == types::Shape::Map) return &kNull;
  return implied_default(field);
}

// Fields of built-in types that the server keeps in step: whichever is absent is set from the other.
struct Aliases {
  std::string_view type, one, other;
};
constexpr Aliases kAliases[] = {
    {"io.k8s.api.core.v1.NodeSpec", "podCIDR", "podCIDRs"},
    {"io.k8s.api.core.v1.PodSpec", "serviceAccount", "serviceAccountName"},
    {"io.k8s.api.core.v1.PodStatus", "hostIP", "hostIPs"},
    {"io.k8s.api.core.v1.PodStatus", "podIP", "podIPs"},
    {"io.k8s.api.core.v1.Secret", "data", "stringData"},
    {"io.k8s.api.core.v1.ServiceSpec", "clusterIP", "clusterIPs"},
};
std::string_view alias_of(std::string_view type, std::string_view field) {
  for (const Aliases& aliases : kAliases) {
    if (aliases.type != type) continue;
    if (aliases.one == field) return aliases.other;
    if (aliases.other == field) return aliases.one;
  }
  return {};
}

}  // namespace

bool MergeType::is_deduced_map() const {
  if (!fields.empty() || element == nullptr) return false;
  return element == &untyped().deduced ||
         (element_in_place && (element->offers & kScalar) != 0 && element->scalar == ScalarKind::Untyped);
}

bool MergeType::has_declared_key_default(size_t position) const {
  const Value* value = key_defaults[position];
  return value != nullptr && value != &kEmptyText && value != &kZero && value != &kFalse;
}

struct MergeTypes::State {
  using Key = std::pair<const types::Type*, int>;  // With the override of its map kind.
  static constexpr int kNoOverride = -1;

  std::mutex mutex;
  Arena arena;
  std::map<Key, MergeType*> made;
  std::vector<std::pair<Key, MergeType*>> pending;

  MergeType* get(const types::Type& type, int map_override = kNoOverride) {
    const Key key{&type, map_override};
    auto [at, fresh] = made.try_emplace(key, nullptr);
    if (fresh) {
      at->second = arena.make<MergeType>();
      pending.push_back({key, at->second});
    }
    return at->second;
  }

  // The type of a field, item or element.
  const MergeType* reference(const types::Type& type, int map_override = kNoOverride) {
    if (type.shape == types::Shape::Any && type.members.empty()) {
      return type.any_kind == types::AnyKind::Atomic ? &untyped().atomic : &untyped().deduced;
    }
    return get(type, map_override);
  }

  void fill_pending() {
    while (!pending.empty()) {
      const auto [key, out] = pending.back();
      pending.pop_back();
      fill(*key.first, key.second, *out);
    }
  }

  void fill(const types::Type& type, int map_override, MergeType& out) {
    switch (type.shape) {
      case types::Shape::Bool:
        return scalar(out, ScalarKind::Boolean);
      case types::Shape::Int32:
      case types::Shape::Int64:
      case types::Shape::Double:
        return scalar(out, ScalarKind::Numeric);
      case types::Shape::String:
        // Only plain strings and base64 are strings to the engine; a string of any other format may be any scalar.
        return scalar(out, type.format.empty() || type.format == "byte" ? ScalarKind::String : ScalarKind::Untyped);
      case types::Shape::Bytes:
      case types::Shape::Duration:
        return scalar(out, ScalarKind::String);
      case types::Shape::Time:
      case types::Shape::MicroTime:
      case types::Shape::Quantity:
        return scalar(out, ScalarKind::Untyped);
      case types::Shape::Raw:
        out = type.openapi_name == kRawExtension ? untyped().atomic : untyped().deduced;
        out.holds_raw = true;
        return;
      case types::Shape::FieldsV1:
        out.offers = MergeType::kMap;
        out.element = &untyped().deduced;
        return;
      case types::Shape::IntOrString:
      case types::Shape::SchemaOrBool:
      case types::Shape::SchemaOrArray:
      case types::Shape::SchemaOrStringArray:
        // OpenAPI declares no type for these.
        out = untyped().deduced;
        out.holds_raw = type.shape != types::Shape::IntOrString;  // Defaults, enums and examples of a schema.
        return;
      case types::Shape::Any:
        if (type.any_kind == types::AnyKind::Atomic) {
          out = untyped().atomic;
          return;
        }
        out = untyped().deduced;
        if (!type.members.empty()) map(type, map_override, out);
        return;
      case types::Shape::List:
        return list(type, out);
      case types::Shape::Map:
      case types::Shape::Struct:
        out.offers = MergeType::kMap;
        return map(type, map_override, out);
    }
  }

  static void scalar(MergeType& out, ScalarKind kind) {
    out.offers = MergeType::kScalar;
    out.scalar = kind;
  }

  void list(const types::Type& type, MergeType& out) {
    out.offers = MergeType::kList;
    out.item = type.element == nullptr ? &untyped().atomic : reference(*type.element);
    out.atomic_list = type.list_kind == types::ListKind::Atomic;
    if (type.list_kind != types::ListKind::Keyed) return;
    std::vector<std::string_view> keys(type.list_keys.begin(), type.list_keys.end());
    std::sort(keys.begin(), keys.end());
    const Value** defaults = arena.allocate_array<const Value*>(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      defaults[i] = nullptr;
      if (type.element == nullptr) continue;
      if (const types::Field* field = types::find_member(*type.element, keys[i])) {
        defaults[i] = default_of(*type.element, *field);
      }
    }
    out.keys_in_schema_order = type.list_keys;
    out.keys = arena.copy(std::span<const std::string_view>(keys));
    out.key_defaults = std::span<const Value* const>(defaults, keys.size());
  }

  static const Value* default_of(const types::Type& owner, const types::Field& field) {
    if (field.default_value != nullptr) return field.default_value;
    if (field.type != nullptr && field.type->default_value != nullptr) return field.type->default_value;
    return owner.openapi_name.empty() ? nullptr : implied_default(field);
  }

  void map(const types::Type& type, int map_override, MergeType& out) {
    out.atomic_map = map_override == kNoOverride ? type.map_kind == types::MapKind::Atomic
                                                 : map_override == static_cast<int>(types::MapKind::Atomic);
    std::vector<MergeField> fields;
    fields.reserve(type.members.size());
    for (const types::Field* member : type.members) {
      // Our own fields are removed from a body before it gets here.
      if (!member->exists(nullptr)) continue;
      const int override = member->overrides_map_kind ? static_cast<int>(member->map_kind) : kNoOverride;
      const MergeType* field_type = member->type == nullptr ? &untyped().deduced : reference(*member->type, override);
      const Value* when_absent = visible_default(*member);
      if (when_absent == nullptr && !type.openapi_name.empty()) when_absent = written_zero(*member);
      const std::string_view alias = alias_of(type.openapi_name, member->name);
      out.has_aliases |= !alias.empty();
      fields.push_back({member->name, field_type, default_of(type, *member), when_absent, alias});
    }
    if (type.element != nullptr) {
      out.element = reference(*type.element);
    } else if (type.preserve_unknown || type.open_to_merge || type.members.empty()) {
      out.element = type.any_kind == types::AnyKind::Atomic ? &untyped().atomic : &untyped().deduced;
    }
    out.element_in_place = type.element != nullptr && type.element->openapi_name.empty();
    if (fields.empty()) return;
    const size_t slot_count = std::bit_ceil(fields.size() * 2);
    uint16_t* slots = arena.allocate_array<uint16_t>(slot_count);
    std::fill_n(slots, slot_count, uint16_t{0});
    out.fields = arena.copy(std::span<const MergeField>(fields));
    for (size_t i = 0; i < fields.size(); ++i) {
      size_t at = MergeType::field_hash(fields[i].name) & (slot_count - 1);
      while (slots[at] != 0) at = (at + 1) & (slot_count - 1);
      slots[at] = static_cast<uint16_t>(i + 1);
    }
    out.slots = std::span<const uint16_t>(slots, slot_count);
  }

  // Marks every type from which a raw value can be reached, so that other types are not searched for one.
  void mark_raw() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& [key, type] : made) {
        if (type->holds_raw) continue;
        bool raw =
            (type->item != nullptr && type->item->holds_raw) || (type->element != nullptr && type->element->holds_raw);
        for (const MergeField& field : type->fields) raw |= field.type->holds_raw;
        if (raw) type->holds_raw = changed = true;
      }
    }
  }
};

MergeTypes::MergeTypes() : state_(std::make_unique<State>()) {}
MergeTypes::~MergeTypes() = default;

const MergeType& MergeTypes::of(const types::Type& type) {
  std::lock_guard lock(state_->mutex);
  const size_t before = state_->made.size();
  const MergeType* made = state_->get(type);
  if (state_->made.size() != before) {
    state_->fill_pending();
    state_->mark_raw();
  }
  return *made;
}

const MergeType& MergeTypes::deduced() { return untyped().deduced; }
const MergeType& MergeTypes::untyped_atomic() { return untyped().atomic; }

MergeTypes& builtin_merge_types() {
  static MergeTypes types;
  return types;
}

}  // namespace holdfast::ownership
