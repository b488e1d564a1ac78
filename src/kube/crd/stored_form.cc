// The format in which kube-apiserver stores CustomResourceDefinitions: apiextensions.k8s.io/v1beta1, which is no longer
// served. Per-version members that are the same in all versions are hoisted to the spec
// (Convert_v1_CustomResourceDefinitionSpec_To_apiextensions_CustomResourceDefinitionSpec), columns use JSONPath, and
// the members of the webhook are directly in conversion.
#include <algorithm>

#include "crd/crd.h"

namespace holdfast::crd {
namespace {

constexpr std::string_view kServed = "apiextensions.k8s.io/v1";
constexpr std::string_view kStored = "apiextensions.k8s.io/v1beta1";

// A per-version member in v1, and its name at the top of a v1beta1 spec.
struct PerVersion {
  std::string_view in_version, at_top;
};
constexpr PerVersion kSchema{"schema", "validation"}, kSubresources{"subresources", "subresources"},
    kColumns{"additionalPrinterColumns", "additionalPrinterColumns"},
    kSelectable{"selectableFields", "selectableFields"};
constexpr PerVersion kPerVersion[] = {kSchema, kSubresources, kColumns, kSelectable};

// Renames one member of each printer column.
Value rename_path(Arena& arena, const Value& columns, std::string_view from, std::string_view to) {
  if (!columns.is_list()) return columns;
  ListBuilder out(arena);
  for (const Value& column : columns.items()) {
    MapBuilder renamed(arena);
    for (const Member& member : column.members()) renamed.add(member.key == from ? to : member.key, member.value);
    out.add(renamed.build());
  }
  return out.build();
}

// A per-version member, converted from v1 to v1beta1 or back.
Value per_version(Arena& arena, std::string_view name, const Value& value, bool to_stored) {
  if (name != kColumns.in_version) return value;
  return to_stored ? rename_path(arena, value, "jsonPath", "JSONPath")
                   : rename_path(arena, value, "JSONPath", "jsonPath");
}

bool same_in_all(std::span<const Value> versions, std::string_view name) {
  const Value* first = versions.front().find(name);
  return std::all_of(versions.begin(), versions.end(), [&](const Value& version) {
    const Value* one = version.find(name);
    return (one == nullptr) == (first == nullptr) && (one == nullptr || equal(*one, *first));
  });
}

void add(MapBuilder& map, const Value& from, std::string_view key) {
  if (const Value* value = from.find(key)) map.add(key, *value);
}

Value stored_conversion(Arena& arena, const Value& conversion) {
  MapBuilder out(arena);
  add(out, conversion, "strategy");
  if (const Value* config = conversion.get("webhook", "clientConfig")) out.add("webhookClientConfig", *config);
  if (const Value* versions = conversion.get("webhook", "conversionReviewVersions")) {
    out.add("conversionReviewVersions", *versions);
  }
  return out.build();
}

Value served_conversion(Arena& arena, const Value& conversion) {
  MapBuilder webhook(arena);
  if (const Value* config = conversion.find("webhookClientConfig")) webhook.add("clientConfig", *config);
  const Value* reviews = conversion.find("conversionReviewVersions");
  if (reviews != nullptr && reviews->is_list() && reviews->count() > 0) {
    webhook.add("conversionReviewVersions", *reviews);
  } else if (conversion.text_at("strategy") == "Webhook") {
    ListBuilder defaulted(arena);
    defaulted.add(Value::string("v1beta1"));
    webhook.add("conversionReviewVersions", defaulted.build());
  }
  MapBuilder out(arena);
  add(out, conversion, "strategy");
  if (webhook.count() > 0) out.add("webhook", webhook.build());
  return out.build();
}

Value stored_spec(Arena& arena, const Value& spec) {
  const Value* versions = spec.find("versions");
  const bool any = versions != nullptr && versions->is_list() && versions->count() > 0;
  const auto moves = [&](const PerVersion& member) { return any && same_in_all(versions->items(), member.in_version); };

  MapBuilder out(arena);
  const auto add_moved = [&](const PerVersion& member) {
    if (!moves(member)) return;
    if (const Value* value = versions->items().front().find(member.in_version)) {
      out.add(member.at_top, per_version(arena, member.in_version, *value, true));
    }
  };
  add(out, spec, "group");
  if (any) out.add("version", Value::string(versions->items().front().text_at("name")));
  add(out, spec, "names");
  add(out, spec, "scope");
  add_moved(kSchema);
  add_moved(kSubresources);
  if (any) {
    ListBuilder list(arena);
    for (const Value& version : versions->items()) {
      MapBuilder kept(arena);
      for (const Member& member : version.members()) {
        const auto* known = std::find_if(std::begin(kPerVersion), std::end(kPerVersion),
                                         [&](const PerVersion& one) { return one.in_version == member.key; });
        if (known == std::end(kPerVersion)) {
          kept.add(member.key, member.value);
        } else if (!moves(*known)) {
          kept.add(member.key, per_version(arena, member.key, member.value, true));
        }
      }
      list.add(kept.build());
    }
    out.add("versions", list.build());
  }
  add_moved(kColumns);
  add_moved(kSelectable);
  if (const Value* conversion = spec.find("conversion")) out.add("conversion", stored_conversion(arena, *conversion));
  const Value* preserve = spec.find("preserveUnknownFields");
  out.add("preserveUnknownFields", Value::boolean(preserve != nullptr && preserve->is_bool() && preserve->as_bool()));
  return out.build();
}

Value served_spec(Arena& arena, const Value& spec) {
  MapBuilder out(arena);
  add(out, spec, "group");
  add(out, spec, "names");
  if (spec.text_at("scope").empty()) {
    out.add("scope", Value::string("Namespaced"));
  } else {
    add(out, spec, "scope");
  }

  ListBuilder versions(arena);
  const auto add_version = [&](const Value& version) {
    MapBuilder one(arena);
    for (const Member& member : version.members()) {
      one.add(member.key, per_version(arena, member.key, member.value, false));
    }
    for (const PerVersion& member : kPerVersion) {
      const Value* at_top = spec.find(member.at_top);
      if (at_top != nullptr && !at_top->is_null()) {
        one.set(member.in_version, per_version(arena, member.in_version, *at_top, false));
      }
    }
    versions.add(one.build());
  };
  const Value* listed = spec.find("versions");
  if (listed != nullptr && listed->is_list() && listed->count() > 0) {
    for (const Value& version : listed->items()) add_version(version);
  } else if (!spec.text_at("version").empty()) {
    MapBuilder only(arena);
    only.add("name", Value::string(spec.text_at("version")));
    only.add("served", Value::boolean(true));
    only.add("storage", Value::boolean(true));
    add_version(only.build());
  }
  if (versions.count() > 0) out.add("versions", versions.build());
  if (const Value* conversion = spec.find("conversion"); conversion != nullptr && conversion->is_map()) {
    out.add("conversion", served_conversion(arena, *conversion));
  }
  // The default is the opposite of that in v1.
  const Value* preserve = spec.find("preserveUnknownFields");
  if (preserve == nullptr || !preserve->is_bool() || preserve->as_bool()) {
    out.add("preserveUnknownFields", Value::boolean(true));
  }
  return out.build();
}

}  // namespace

Value stored_definition(Arena& arena, const Value& definition) {
  Value out = with_member(arena, definition, "apiVersion", Value::string(kStored));
  if (const Value* spec = definition.find("spec")) out = with_member(arena, out, "spec", stored_spec(arena, *spec));
  return out;
}

Value served_definition(Arena& arena, const Value& stored) {
  if (stored.text_at("apiVersion") != kStored) return stored;
  Value out = with_member(arena, stored, "apiVersion", Value::string(kServed));
  if (const Value* spec = stored.find("spec"); spec != nullptr && spec->is_map()) {
    out = with_member(arena, out, "spec", served_spec(arena, *spec));
  }
  return out;
}

}  // namespace holdfast::crd
