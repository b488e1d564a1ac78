// The rules of a CustomResourceDefinition. Kubernetes keeps what is the same in all versions once, at the top, and
// names it there in errors: a definition with one version reports spec.validation.openAPIV3Schema.
#include <algorithm>
#include <functional>
#include <set>

#include "base/strings.h"
#include "base/text.h"
#include "base/url.h"
#include "codec/codec.h"
#include "crd/crd.h"
#include "crd/rules.h"

namespace holdfast::crd {
namespace {

constexpr size_t kMostSelectableFields = 8;

const Value* member_of(const Value& version, std::string_view key) {
  const Value* value = version.find(key);
  if (value == nullptr || (value->is_list() && value->count() == 0)) return nullptr;
  return value;
}

// Whether all versions say the same of `key`: then it belongs to the top.
bool is_shared(std::span<const Value> versions, std::string_view key) {
  if (versions.empty()) return false;
  const Value* first = member_of(versions.front(), key);
  return std::all_of(versions.begin(), versions.end(), [&](const Value& version) {
    const Value* own = member_of(version, key);
    return first == nullptr ? own == nullptr : own != nullptr && equal(*first, *own);
  });
}

void simple_path(const Path& at, std::string_view path, FieldErrors& errors) {
  if (path.empty())
    errors.invalid(at, path, "must not be empty");
  else if (!path.starts_with("."))
    errors.invalid(at, path, "must be a simple json path starting with .");
}

void validate_column(const Value& column, const Path& at, FieldErrors& errors) {
  static constexpr std::string_view kTypes[] = {"boolean", "date", "integer", "number", "string"};
  static constexpr std::string_view kFormats[] = {"byte",  "date",  "date-time", "double",
                                                  "float", "int32", "int64",     "password"};
  if (column.text_at("name").empty()) errors.required(at.child("name"));
  const std::string_view type = column.text_at("type"), format = column.text_at("format"),
                         path = column.text_at("jsonPath");
  if (type.empty())
    errors.required(at.child("type"), "must be one of boolean,date,integer,number,string");
  else if (std::find(std::begin(kTypes), std::end(kTypes), type) == std::end(kTypes)) {
    errors.invalid(at.child("type"), type, "must be one of boolean,date,integer,number,string");
  }
  if (!format.empty() && std::find(std::begin(kFormats), std::end(kFormats), format) == std::end(kFormats)) {
    errors.invalid(at.child("format"), format, "must be one of byte,date,date-time,double,float,int32,int64,password");
  }
  if (path.empty())
    errors.required(at.child("JSONPath"));
  else if (!path.starts_with("."))
    errors.invalid(at.child("JSONPath"), path, "must be a simple json path starting with .");
}

void validate_subresources(const Value* subresources, const Path& at, FieldErrors& errors) {
  const Value* scale = subresources == nullptr ? nullptr : subresources->find("scale");
  if (scale == nullptr || !scale->is_map()) return;
  auto replicas = [&](std::string_view key, std::string_view root) {
    const std::string_view path = scale->text_at(key);
    const std::string name = "scale." + std::string(key);
    const Path here = at.child(name);
    if (path.empty()) {
      errors.required(here);
      return;
    }
    const size_t before = errors.count();
    simple_path(here, path, errors);
    if (errors.count() == before && !path.starts_with("." + std::string(root) + ".")) {
      errors.invalid(here, path, "should be a json path under ." + std::string(root));
    }
  };
  replicas("specReplicasPath", "spec");
  replicas("statusReplicasPath", "status");
  if (const std::string_view path = scale->text_at("labelSelectorPath"); !path.empty()) {
    const Path here = at.child("scale.labelSelectorPath");
    const size_t before = errors.count();
    simple_path(here, path, errors);
    if (errors.count() == before && !path.starts_with(".spec.") && !path.starts_with(".status.")) {
      errors.invalid(here, path, "should be a json path under either .spec or .status");
    }
  }
}

// The part of the schema that a path like ".spec.color" leads to.
const Value* schema_at(const Value* schema, std::string_view path) {
  path.remove_prefix(1);
  while (schema != nullptr && !path.empty()) {
    const size_t dot = path.find('.');
    const std::string_view key = path.substr(0, dot);
    const Value* next = schema->get("properties", key);
    if (next == nullptr) {
      if (const Value* additional = schema->find("additionalProperties"); additional != nullptr && additional->is_map())
        next = additional;
    }
    schema = next;
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
  }
  return schema;
}

void validate_selectable(std::span<const Value> fields, const Value* schema, const Path& at, FieldErrors& errors) {
  std::set<std::string_view> seen;
  for (size_t i = 0; i < fields.size(); ++i) {
    const Path index = at.index(i), here = index.child("jsonPath");
    const std::string_view path = fields[i].text_at("jsonPath");
    if (path.empty()) {
      errors.required(here);
      continue;
    }
    if (!path.starts_with(".") || path.find_first_of("[]") != std::string_view::npos || path.size() == 1) {
      errors.invalid(here, path, "is an invalid path: must be a simple json path starting with .");
      continue;
    }
    if (path == ".metadata" || path.starts_with(".metadata.")) {
      errors.invalid(here, path, "must not point to fields in metadata");
    } else if (const Value* target = schema_at(schema, path);
               target == nullptr || (target->text_at("type") != "string" && target->text_at("type") != "boolean" &&
                                     target->text_at("type") != "integer")) {
      errors.invalid(here, path,
                     "must point to a field of type string, boolean or integer. Enum string fields and strings with "
                     "formats are allowed.");
    }
    if (!seen.insert(path).second) errors.duplicate(here, path);
  }
  if (seen.size() > kMostSelectableFields)
    errors.too_many(at, static_cast<int64_t>(seen.size()), kMostSelectableFields);
}

void validate_names(const Value& names, const Path& at, FieldErrors& errors) {
  auto label = [&](std::string_view key) {
    const std::string_view text = names.text_at(key);
    if (text.empty()) return;
    if (const auto why = kinds::dns1035_label_errors(text); !why.empty())
      errors.invalid(at.child(key), text, join(why, ","));
  };
  auto kind = [&](std::string_view key) {
    const std::string_view text = names.text_at(key);
    if (text.empty()) return;
    if (const auto why = kinds::dns1035_label_errors(to_lower(text)); !why.empty()) {
      errors.invalid(at.child(key), text, "may have mixed case, but should otherwise match: " + join(why, ","));
    }
  };
  label("plural");
  label("singular");
  kind("kind");
  kind("listKind");
  auto each = [&](std::string_view key) {
    const auto items = names.items_at(key);
    for (size_t i = 0; i < items.size(); ++i) {
      if (!items[i].is_string()) continue;
      if (const auto why = kinds::dns1035_label_errors(items[i].as_string()); !why.empty()) {
        errors.invalid(at.item(key, i), items[i].as_string(), join(why, ","));
      }
    }
  };
  each("shortNames");
  if (!names.text_at("kind").empty() && names.text_at("kind") == names.text_at("listKind")) {
    errors.invalid(at.child("listKind"), names.text_at("listKind"), "kind and listKind may not be the same");
  }
  each("categories");
}

void validate_conversion(const Value* conversion, const Path& at, FieldErrors& errors) {
  if (conversion == nullptr) return;
  const std::string_view strategy = conversion->text_at("strategy");
  if (strategy.empty())
    errors.required(at.child("strategy"));
  else if (strategy != "None" && strategy != "Webhook")
    errors.not_supported(at.child("strategy"), strategy, {"None", "Webhook"});
  const Value* webhook = conversion->find("webhook");
  const Value* client = webhook == nullptr ? nullptr : webhook->find("clientConfig");
  const auto versions = webhook == nullptr ? std::span<const Value>{} : webhook->items_at("conversionReviewVersions");
  // Errors name the fields as Kubernetes keeps them inside.
  if (strategy == "Webhook") {
    const Path client_at = at.child("webhookClientConfig");
    if (client == nullptr) {
      errors.required(client_at, "required when strategy is set to Webhook");
    } else if ((client->find("url") != nullptr) == (client->find("service") != nullptr)) {
      errors.required(client_at, "exactly one of url or service is required");
    } else if (client->find("url") != nullptr) {
      for (const UrlProblem& problem : webhook_url_problems(client->text_at("url"))) {
        if (problem.unparsable) {
          errors.required(client_at.child("url"), problem.why);
        } else {
          errors.invalid(client_at.child("url"), problem.part, problem.why);
        }
      }
    }
    const Path versions_at = at.child("conversionReviewVersions");
    if (versions.empty()) errors.required(versions_at);
    bool recognized = false;
    std::set<std::string_view> seen;
    for (size_t i = 0; i < versions.size(); ++i) {
      if (!versions[i].is_string()) continue;
      const std::string_view version = versions[i].as_string();
      if (!seen.insert(version).second)
        errors.invalid(versions_at.index(i), version, "duplicate version");
      else if (const auto why = kinds::dns1035_label_errors(version); !why.empty())
        errors.invalid(versions_at.index(i), version, join(why, ","));
      recognized |= version == "v1" || version == "v1beta1";
    }
    if (!versions.empty() && !recognized) {
      errors.invalid(versions_at, *webhook->find("conversionReviewVersions"),
                     "must include at least one of v1, v1beta1");
    }
  } else {
    if (client != nullptr)
      errors.forbidden(at.child("webhookClientConfig"), "should not be set when strategy is not set to Webhook");
    if (!versions.empty())
      errors.forbidden(at.child("conversionReviewVersions"), "should not be set when strategy is not set to Webhook");
  }
}

void validate_deprecation(const Value& version, const Path& at, FieldErrors& errors) {
  const Value* warning = version.find("deprecationWarning");
  if (warning == nullptr || !warning->is_string()) return;
  const std::string_view text = warning->as_string();
  const Path here = at.child("deprecationWarning");
  if (!flag_at(version, "deprecated")) {
    errors.invalid(here, text, "can only be set for deprecated versions");
    return;
  }
  if (text.size() > 256) errors.invalid(here, text, "must be <= 256 characters long");
  if (text.empty()) errors.invalid(here, text, "must not be an empty string");
}

// Versions as the structs inside kube-apiserver print them. What all of them share lies elsewhere there; versions that
// differ in their schemas are shown as they were written.
kinds::Shown shown_versions(std::span<const Value> versions, const Value* written) {
  if (versions.empty()) return Value::null();  // Go's nil, whether absent or empty.
  constexpr std::string_view kParts[] = {"schema", "subresources", "additionalPrinterColumns", "selectableFields"};
  for (const std::string_view part : kParts) {
    const bool there = std::any_of(versions.begin(), versions.end(), [&](const Value& v) { return v.has(part); });
    if (there && !is_shared(versions, part)) return kinds::Shown(written);
  }
  std::string out;
  const auto flag = [](const Value& version, std::string_view key) { return flag_at(version, key) ? "true" : "false"; };
  for (const Value& version : versions) {
    const Value* warning = version.find("deprecationWarning");
    out += (out.empty() ? "{\"Name\":" : ",{\"Name\":") + codec::encode_json_string(version.text_at("name")) +
           ",\"Served\":" + flag(version, "served") + ",\"Storage\":" + flag(version, "storage") +
           ",\"Deprecated\":" + flag(version, "deprecated") + ",\"DeprecationWarning\":" +
           (warning == nullptr || !warning->is_string() ? "null" : codec::encode_json_string(warning->as_string())) +
           ",\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}";
  }
  return kinds::Shown::verbatim("[" + out + "]");
}

// Whether a schema has a default anywhere.
bool has_default(const Value& schema) {
  if (!schema.is_map()) return false;
  if (schema.has("default")) return true;
  for (const std::string_view key : {"items", "additionalProperties", "not"}) {
    if (const Value* inner = schema.find(key); inner != nullptr && has_default(*inner)) return true;
  }
  for (const std::string_view key : {"allOf", "anyOf", "oneOf"}) {
    const auto inner = schema.items_at(key);
    if (std::any_of(inner.begin(), inner.end(), has_default)) return true;
  }
  for (const std::string_view key : {"properties", "patternProperties"}) {
    for (const Member& property : schema.members_at(key)) {
      if (has_default(property.value)) return true;
    }
  }
  return false;
}

bool status_enabled(const Value& version) { return version.get("subresources", "status") != nullptr; }

void validate_group(std::string_view group, const Path& at, FieldErrors& errors) {
  if (group.empty())
    errors.required(at);
  else if (const auto why = kinds::dns_subdomain_errors(group); !why.empty())
    errors.invalid(at, group, join(why, ","));
  else if (group.find('.') == std::string_view::npos)
    errors.invalid(at, group, "should be a domain with at least one dot");
}

void validate_scope(std::string_view scope, const Path& at, FieldErrors& errors) {
  if (scope.empty())
    errors.required(at);
  else if (scope != "Cluster" && scope != "Namespaced")
    errors.not_supported(at, scope, {"Cluster", "Namespaced"});
}

void validate_columns(const Value& version, const Path& at, FieldErrors& errors) {
  const auto columns = version.items_at("additionalPrinterColumns");
  for (size_t i = 0; i < columns.size(); ++i) {
    validate_column(columns[i], at.item("additionalPrinterColumns", i), errors);
  }
}

// What all versions have in common. Kubernetes holds that once, in the spec, and names it there in its errors.
struct Shared {
  explicit Shared(std::span<const Value> versions)
      : schema(is_shared(versions, "schema")),
        subresources(is_shared(versions, "subresources")),
        columns(is_shared(versions, "additionalPrinterColumns")),
        selectable(is_shared(versions, "selectableFields")) {}
  bool schema, subresources, columns, selectable;
};

const Value* schema_of(const Value& version) { return version.get("schema", "openAPIV3Schema"); }

void validate_version(const Value& version, const Shared& shared, const Path& at, FieldErrors& errors) {
  const std::string_view name = version.text_at("name");
  if (const auto why = kinds::dns1035_label_errors(name); !why.empty())
    errors.invalid(at.child("name"), name, join(why, ","));
  validate_deprecation(version, at, errors);
  const Value* schema = shared.schema ? nullptr : schema_of(version);
  if (schema != nullptr) {
    const Path schema_path = at.child("schema");
    validate_schema(*schema, status_enabled(version), schema_path.child("openAPIV3Schema"), errors);
  }
  if (!shared.subresources) validate_subresources(version.find("subresources"), at.child("subresources"), errors);
  if (!shared.columns) validate_columns(version, at, errors);
  const auto fields = version.items_at("selectableFields");
  if (shared.selectable || fields.empty()) return;
  if (schema == nullptr) {
    // A schema that all versions share is not theirs to Kubernetes, which words it the wrong way round.
    errors.invalid(at.child("selectableFields"), "",
                   "may only be set when `version.schema.openAPIV3Schema` is not included");
  } else {
    validate_selectable(fields, schema, at.child("selectableFields"), errors);
  }
}

// What holds for the list of versions as a whole.
void validate_version_list(const Value& spec, std::span<const Value> versions, const Path& at, FieldErrors& errors) {
  size_t storage = 0;
  std::set<std::string_view> names;
  for (const Value& version : versions) {
    storage += flag_at(version, "storage");
    names.insert(version.text_at("name"));
  }
  const Value* written = spec.find("versions");
  if (names.size() != versions.size())
    errors.invalid(at.child("versions"), shown_versions(versions, written), "must contain unique version names");
  if (storage != 1) {
    errors.invalid(at.child("versions"), shown_versions(versions, written),
                   "must have exactly one version marked as storage version");
  }
  // Inside, the first version is also the definition's own.
  const std::string_view first = versions.empty() ? std::string_view{} : versions[0].text_at("name");
  if (first.empty()) return;
  if (const auto why = kinds::dns1035_label_errors(first); !why.empty())
    errors.invalid(at.child("version"), first, join(why, ","));
}

void validate_shared(std::span<const Value> versions, const Shared& shared, const Path& at, FieldErrors& errors) {
  if (versions.empty()) return;
  const Value& first = versions[0];
  const Value* schema = schema_of(first);
  if (schema != nullptr && shared.schema) {
    const bool any_status = std::any_of(versions.begin(), versions.end(), status_enabled);
    const Path validation = at.child("validation");
    validate_schema(*schema, any_status, validation.child("openAPIV3Schema"), errors);
  }
  if (shared.subresources) validate_subresources(first.find("subresources"), at.child("subresources"), errors);
  if (shared.columns) validate_columns(first, at, errors);
  const auto fields = first.items_at("selectableFields");
  if (!shared.selectable || fields.empty()) return;
  if (!shared.schema || !first.has("schema")) {
    errors.invalid(at.child("selectableFields"), "", "may only be set when validations.schema is included");
  } else {
    validate_selectable(fields, schema, at.child("selectableFields"), errors);
  }
}

void validate_preserving(const Value& spec, std::span<const Value> versions, const Path& at, FieldErrors& errors) {
  const auto defaults = [](const Value& version) {
    const Value* schema = schema_of(version);
    return schema != nullptr && has_default(*schema);
  };
  if (flag_at(spec, "preserveUnknownFields") && std::any_of(versions.begin(), versions.end(), defaults)) {
    errors.invalid(at.child("preserveUnknownFields"), true, "must be false in order to use defaults in the schema");
  }
}

void validate_spec(const Value& spec, const Path& at, FieldErrors& errors) {
  validate_group(spec.text_at("group"), at.child("group"), errors);
  validate_scope(spec.text_at("scope"), at.child("scope"), errors);

  const auto versions = spec.items_at("versions");
  const Shared shared(versions);
  for (size_t i = 0; i < versions.size(); ++i) {
    if (schema_of(versions[i]) != nullptr) continue;
    const Path version = at.item("versions", i);
    errors.required(version.child("schema.openAPIV3Schema"));
  }
  validate_preserving(spec, versions, at, errors);
  for (size_t i = 0; i < versions.size(); ++i) validate_version(versions[i], shared, at.item("versions", i), errors);
  validate_version_list(spec, versions, at, errors);

  const Value empty = Value::empty_map();
  const Value* names = spec.find("names");
  const Path names_at = at.child("names");
  for (std::string_view key : {"plural", "singular", "kind", "listKind"}) {
    if (names == nullptr || names->text_at(key).empty()) errors.required(names_at.child(key));
  }
  validate_names(names == nullptr ? empty : *names, names_at, errors);
  validate_shared(versions, shared, at, errors);

  const std::string_view strategy = spec.text_at("conversion", "strategy");
  if (flag_at(spec, "preserveUnknownFields") && spec.has("conversion") && strategy != "None") {
    const Path conversion = at.child("conversion");
    errors.invalid(conversion.child("strategy"), strategy, "must be None if spec.preserveUnknownFields is true");
  }
  validate_conversion(spec.find("conversion"), at.child("conversion"), errors);
}

void validate_stored_versions(const Value& definition, FieldErrors& errors) {
  const Path status("status"), at = status.child("storedVersions");
  const auto stored = definition.items_at("status", "storedVersions");
  const Value* written = definition.get("status", "storedVersions");
  if (stored.empty()) {
    errors.invalid(at, written == nullptr ? Value::empty_list() : *written, "must have at least one stored version");
    return;
  }
  auto is_stored = [&](std::string_view name) {
    return std::any_of(stored.begin(), stored.end(),
                       [name](const Value& v) { return v.is_string() && v.as_string() == name; });
  };
  const auto versions = definition.items_at("spec", "versions");
  for (const Value& version : versions) {
    if (flag_at(version, "storage") && !is_stored(version.text_at("name"))) {
      errors.invalid(at, *written, "must have the storage version " + std::string(version.text_at("name")));
    }
  }
  for (size_t i = 0; i < stored.size(); ++i) {
    if (!stored[i].is_string()) continue;
    const std::string name(stored[i].as_string());
    const bool known =
        std::any_of(versions.begin(), versions.end(), [&](const Value& v) { return v.text_at("name") == name; });
    if (!known) {
      errors.invalid(at.index(i), name,
                     "missing from spec.versions; " + name +
                         " was previously a storage version, and must remain in spec.versions until a storage "
                         "migration ensures no data remains persisted in " +
                         name + " and removes " + name + " from status.storedVersions");
    }
  }
}

// Groups of Kubernetes itself are reserved: using one needs an approval annotation.
void validate_approval(const Value& definition, FieldErrors& errors) {
  if (!is_protected_group(definition.text_at("spec", "group"))) return;
  const std::string_view value = definition.text_at("metadata", "annotations", kApprovedAnnotation);
  const Path metadata("metadata"), annotations = metadata.child("annotations"),
                                   at = annotations.key(kApprovedAnnotation);
  const Approval approval = approval_of(value);
  if (approval == Approval::Missing) errors.required(at, kApprovalMissing);
  if (approval == Approval::Invalid) errors.invalid(at, value, kApprovalInvalid);
}

void validate_status_names(const Value& definition, FieldErrors& errors) {
  const Path status("status");
  if (const Value* names = definition.get("status", "acceptedNames"))
    validate_names(*names, status.child("acceptedNames"), errors);
}

void collect_formats(const Value& schema, std::set<std::string>& formats) {
  if (!schema.is_map()) return;
  if (const std::string_view format = schema.text_at("format");
      !format.empty() && !is_known_format(schema.text_at("type"), format))
    formats.emplace(format);
  for (const Member& member : schema.members()) {
    if (member.key == "properties" && member.value.is_map()) {
      for (const Member& property : member.value.members()) collect_formats(property.value, formats);
    } else if (member.key == "items" || member.key == "additionalProperties" || member.key == "not") {
      collect_formats(member.value, formats);
    } else if (member.value.is_list() && (member.key == "allOf" || member.key == "anyOf" || member.key == "oneOf")) {
      for (const Value& item : member.value.items()) collect_formats(item, formats);
    }
  }
}

std::set<std::string> unknown_formats(const Value& definition) {
  std::set<std::string> formats;
  for (const Value& version : definition.items_at("spec", "versions")) {
    if (const Value* schema = version.get("schema", "openAPIV3Schema")) collect_formats(*schema, formats);
  }
  return formats;
}

Error invalid(const Value& definition, const FieldErrors& errors) {
  return errors.to_error("apiextensions.k8s.io", "CustomResourceDefinition", definition.text_at("metadata", "name"));
}

// As upstream does for every kind, and then once more for definitions.
void validate_new_metadata(const Value* metadata, const Value* before, FieldErrors& errors) {
  const Value empty = Value::empty_map();
  const Value &next = metadata == nullptr ? empty : *metadata, &old = before == nullptr ? empty : *before;
  const Path at("metadata");
  kinds::validate_metadata(next, false, kinds::name_is_path_segment, at, errors);
  kinds::validate_metadata_update(next, old, at, errors);
  kinds::validate_metadata_update(next, old, at, errors);
}

}  // namespace

bool is_protected_group(std::string_view group) {
  const auto within = [group](std::string_view domain) {
    return group == domain || group.ends_with("." + std::string(domain));
  };
  return within("k8s.io") || within("kubernetes.io");
}

Approval approval_of(std::string_view annotation) {
  if (annotation.empty()) return Approval::Missing;
  if (annotation.starts_with("unapproved")) return Approval::Bypassed;
  return annotation.find("://") == std::string_view::npos ? Approval::Invalid : Approval::Approved;
}

Result<Unit> validate_definition(const Value& as_sent, const Value* old) {
  FieldErrors errors;
  Arena arena;
  const Value definition = with_read_raws(arena, as_sent);
  const Value empty = Value::empty_map();
  const Value* metadata = definition.find("metadata");
  const Value* spec = definition.find("spec");
  const Path metadata_at("metadata"), spec_at("spec");
  if (old == nullptr) {
    const std::string wanted = std::string(definition.text_at("spec", "names", "plural")) + "." +
                               std::string(definition.text_at("spec", "group"));
    const auto name_of_definition = [&wanted](std::string_view name, bool prefix) {
      std::vector<std::string> why = kinds::name_is_dns_subdomain(name, prefix);
      if (name != wanted) why.emplace_back("must be spec.names.plural+\".\"+spec.group");
      return why;
    };
    kinds::validate_metadata(metadata == nullptr ? empty : *metadata, false, name_of_definition, metadata_at, errors);
  } else {
    validate_new_metadata(metadata, old->find("metadata"), errors);
  }
  validate_spec(spec == nullptr ? empty : *spec, spec_at, errors);
  if (old != nullptr) {
    auto immutable = [&](const Path& at, const Value* next, const Value* before) {
      const Value a = next == nullptr ? Value::string("") : *next, b = before == nullptr ? Value::string("") : *before;
      if (!equal(a, b)) errors.invalid(at, a, "field is immutable");
    };
    const Path names = spec_at.child("names");
    if (has_condition(*old, "Established", "True")) {
      immutable(spec_at.child("scope"), definition.get("spec", "scope"), old->get("spec", "scope"));
      immutable(names.child("kind"), definition.get("spec", "names", "kind"), old->get("spec", "names", "kind"));
    }
    immutable(spec_at.child("group"), definition.get("spec", "group"), old->get("spec", "group"));
    immutable(names.child("plural"), definition.get("spec", "names", "plural"), old->get("spec", "names", "plural"));
  }
  validate_status_names(definition, errors);
  validate_stored_versions(definition, errors);
  if (old == nullptr || definition.text_at("metadata", "annotations", "api-approved.kubernetes.io") !=
                            old->text_at("metadata", "annotations", "api-approved.kubernetes.io")) {
    validate_approval(definition, errors);
  }
  const bool preserves = spec != nullptr && flag_at(*spec, "preserveUnknownFields");
  const bool preserved =
      old != nullptr && old->find("spec") != nullptr && flag_at(*old->find("spec"), "preserveUnknownFields");
  if (preserves && !preserved) {
    errors.invalid(
        spec_at.child("preserveUnknownFields"), true,
        "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead");
  }
  if (!errors.empty()) return invalid(definition, errors);
  return Unit{};
}

Result<Unit> validate_definition_status(const Value& next, const Value& old) {
  FieldErrors errors;
  validate_new_metadata(next.find("metadata"), old.find("metadata"), errors);
  validate_status_names(next, errors);
  if (!errors.empty()) return invalid(next, errors);
  return Unit{};
}

std::vector<std::string> definition_warnings(const Value& definition, const Value* old) {
  std::set<std::string> formats = unknown_formats(definition);
  if (old != nullptr) {
    for (const std::string& known : unknown_formats(*old)) formats.erase(known);
  }
  std::vector<std::string> warnings;
  for (const std::string& format : formats) warnings.push_back("unrecognized format " + go_quote(format));
  return warnings;
}

}  // namespace holdfast::crd
