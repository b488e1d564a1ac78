// Validation of CustomResourceDefinitions. Internally, Kubernetes hoists members that are the same in all versions to
// the top of the spec, and error paths reflect that: a definition with one version reports
// spec.validation.openAPIV3Schema.
#include <algorithm>
#include <optional>
#include <set>

#include "base/strings.h"
#include "base/text.h"
#include "base/url.h"
#include "base/webhook_path.h"
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

// Whether `key` is the same in all versions, and therefore hoisted.
bool is_shared(std::span<const Value> versions, std::string_view key) {
  if (versions.empty()) return false;
  const Value* first = member_of(versions.front(), key);
  return std::all_of(versions.begin(), versions.end(), [&](const Value& version) {
    const Value* own = member_of(version, key);
    return first == nullptr ? own == nullptr : own != nullptr && equal(*first, *own);
  });
}

// The members that all versions have in common, which Kubernetes reports at the top of the spec.
struct Shared {
  explicit Shared(std::span<const Value> versions)
      : schema(is_shared(versions, "schema")),
        subresources(is_shared(versions, "subresources")),
        columns(is_shared(versions, "additionalPrinterColumns")),
        selectable(is_shared(versions, "selectableFields")) {}
  bool schema, subresources, columns, selectable;
};

const Value* schema_of(const Value& version) { return version.get("schema", "openAPIV3Schema"); }

bool is_review_version(std::string_view version) { return version == "v1" || version == "v1beta1"; }

// The requirements for a definition. On update, those that the stored definition does not meet are waived.
struct Demands {
  SchemaRequirements schemas = {};
  bool schema_in_each_version = true;
  bool known_review_version = true;
  bool valid_bundle = false;                   // Only once it is established.
  std::set<std::string_view> unchanged = {};   // Versions with unchanged schemas.
  std::set<std::string_view> still_many = {};  // Versions that already exceeded the limit of selectable fields.
};

const Value* find_version(std::span<const Value> versions, std::string_view name) {
  const auto found =
      std::find_if(versions.begin(), versions.end(), [name](const Value& v) { return v.text_at("name") == name; });
  return found == versions.end() ? nullptr : &*found;
}

Demands demands_of_update(const Value& next, const Value& stored) {
  Demands demands;
  const auto versions = next.items_at("spec", "versions"), before = stored.items_at("spec", "versions");
  std::vector<Value> schemas;
  for (const Value& version : before) {
    if (const Value* schema = schema_of(version); schema != nullptr && schema->is_map())
      schemas.push_back(*schema);
    else
      demands.schema_in_each_version = false;
  }
  demands.schemas = demands_after(schemas);
  const auto reviewed = stored.items_at("spec", "conversion", "webhook", "conversionReviewVersions");
  demands.known_review_version = reviewed.empty() || std::any_of(reviewed.begin(), reviewed.end(), [](const Value& v) {
                                   return v.is_string() && is_review_version(v.as_string());
                                 });
  const std::string_view bundle = stored.text_at("spec", "conversion", "webhook", "clientConfig", "caBundle");
  demands.valid_bundle = has_condition(stored, "Established", "True") && (bundle.empty() || holds_certificate(bundle));
  for (const Value& version : versions) {
    const Value* old = find_version(before, version.text_at("name"));
    if (old == nullptr) continue;
    const Value *schema = schema_of(version), *old_schema = schema_of(*old);
    if (schema == nullptr ? old_schema == nullptr : old_schema != nullptr && equal(*schema, *old_schema))
      demands.unchanged.insert(version.text_at("name"));
    const Value *fields = version.find("selectableFields"), *old_fields = old->find("selectableFields");
    if (fields != nullptr && old_fields != nullptr && old_fields->count() > kMostSelectableFields &&
        equal(*fields, *old_fields))
      demands.still_many.insert(version.text_at("name"));
  }
  return demands;
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
      errors.invalid(here, Shown::verbatim(json_quote(path)), "should be a json path under either .spec or .status");
    }
  }
}

// The result of resolving a path like ".spec.color".
struct FieldTarget {
  const Value* schema = nullptr;  // Null if unknown.
  std::string path = {};          // As in error messages: spec.color, spec.map[key].
  std::string problem = {};       // Why the path cannot be resolved; empty if it can.
};

// Parses like ValidFieldPath, without array notation. Dots, brackets and the text between them are tokens.
FieldTarget find_field(const Value& root, std::string_view path) {
  const auto next_token = [&path] {
    size_t end = 0;
    if (path.starts_with('\'')) {
      end = 1;
      while (end < path.size() && (path[end] != '\'' || path[end - 1] == '\\')) ++end;
      end = std::min(end + 1, path.size());
    } else {
      end = std::min(path.find_first_of(".[]"), path.size());
      if (end == 0) end = 1;
    }
    const std::string_view token = path.substr(0, end);
    path.remove_prefix(end);
    return token;
  };
  constexpr std::string_view kNowhere = "does not refer to a valid field";
  FieldTarget target{.schema = &root};
  while (!path.empty()) {
    const std::string_view token = next_token();
    if (token == "[") return {.problem = "array notation is not allowed"};
    if (token != ".") return {.problem = "expected [ or . but got: " + std::string(token)};
    if (path.empty()) return {.problem = "unexpected end of JSON path"};
    const std::string_view name = next_token();
    if (target.schema == nullptr) return {.problem = std::string(kNowhere)};
    if (!target.schema->members_at("properties").empty()) {
      target.path += (target.path.empty() ? "" : ".") + std::string(name);
      target.schema = target.schema->get("properties", name);
      if (target.schema == nullptr) return {.problem = std::string(kNowhere)};
    } else if (const Value* additional = target.schema->find("additionalProperties"); additional != nullptr) {
      target.path += "[" + std::string(name) + "]";
      target.schema = additional->is_map() ? additional : nullptr;
    } else {
      return {.problem = std::string(kNowhere)};
    }
  }
  return target;
}

// `may_be_many`: the stored definition already exceeds the limit.
void validate_selectable(std::span<const Value> fields, const Value& schema, bool may_be_many, const Path& holder,
                         FieldErrors& errors) {
  const Path at = holder.child("selectableFields");
  if (const std::string why = nonstructural_keyword(schema); !why.empty())
    errors.invalid(holder.child("schema.openAPIV3Schema"), "", why);
  std::set<std::string> seen;
  for (size_t i = 0; i < fields.size(); ++i) {
    const Path index = at.index(i), here = index.child("jsonPath");
    const std::string_view path = fields[i].text_at("jsonPath");
    if (path.empty()) {
      errors.required(here);
      continue;
    }
    FieldTarget target = find_field(schema, path);
    if (!target.problem.empty()) {
      errors.invalid(here, path, "is an invalid path: " + target.problem);
      continue;
    }
    if (target.path == "metadata" || target.path.starts_with("metadata.") || target.path.starts_with("metadata["))
      errors.invalid(here, path, "must not point to fields in metadata");
    const std::string_view type = target.schema == nullptr ? std::string_view{} : target.schema->text_at("type");
    if (type != "string" && type != "boolean" && type != "integer") {
      errors.invalid(here, path,
                     "must point to a field of type string, boolean or integer. Enum string fields and strings with "
                     "formats are allowed.");
    }
    if (!seen.insert(std::move(target.path)).second) errors.duplicate(here, path);
  }
  if (seen.size() > kMostSelectableFields && !may_be_many)
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

void validate_client(const Value& client, const Path& at, FieldErrors& errors) {
  if ((client.find("url") != nullptr) == (client.find("service") != nullptr))
    return errors.required(at, "exactly one of url or service is required");
  if (client.find("url") != nullptr) {
    for (const UrlProblem& problem : webhook_url_problems(client.text_at("url"))) {
      if (problem.unparsable) {
        errors.required(at.child("url"), problem.why);
      } else {
        errors.invalid(at.child("url"), problem.part, problem.why);
      }
    }
    return;
  }
  const Path service = at.child("service");
  // Upstream passes the two in the wrong order, so the error names the field that is present instead of the missing
  // one.
  if (client.text_at("service", "namespace").empty()) errors.required(service.child("name"));
  if (client.text_at("service", "name").empty()) errors.required(service.child("namespace"));
  const int64_t port = client.int_at_or(443, "service", "port");
  if (port < 1 || port > 65535)
    errors.invalid(service.child("port"), port, "port is not valid: must be between 1 and 65535, inclusive");
  const std::string_view path = client.text_at("service", "path");
  errors.invalid_each(service.child("path"), path, webhook_path_problems(path, kinds::dns_subdomain_errors));
}

void validate_review_versions(const Value& webhook, bool must_be_known, const Path& at, FieldErrors& errors) {
  const auto versions = webhook.items_at("conversionReviewVersions");
  if (versions.empty()) return errors.required(at);
  bool known = false;
  std::set<std::string_view> seen;
  for (size_t i = 0; i < versions.size(); ++i) {
    if (!versions[i].is_string()) continue;
    const std::string_view version = versions[i].as_string();
    if (!seen.insert(version).second) {
      errors.invalid(at.index(i), version, "duplicate version");
      continue;
    }
    errors.invalid_each(at.index(i), version, kinds::dns1035_label_errors(version));
    known |= is_review_version(version);
  }
  if (must_be_known && !known)
    errors.invalid(at, *webhook.find("conversionReviewVersions"), "must include at least one of v1, v1beta1");
}

void validate_conversion(const Value* conversion, const Demands& demands, const Path& at, FieldErrors& errors) {
  if (conversion == nullptr) return;
  const std::string_view strategy = conversion->text_at("strategy");
  if (strategy.empty())
    errors.required(at.child("strategy"));
  else if (strategy != "None" && strategy != "Webhook")
    errors.not_supported(at.child("strategy"), strategy, {"None", "Webhook"});
  const Value none = Value::empty_map();
  const Value& webhook = conversion->find("webhook") == nullptr ? none : *conversion->find("webhook");
  const Value* client = webhook.find("clientConfig");
  // Errors use the field names of Kubernetes' internal type.
  const Path client_at = at.child("webhookClientConfig"), versions_at = at.child("conversionReviewVersions");
  if (strategy == "Webhook") {
    if (client == nullptr) {
      errors.required(client_at, "required when strategy is set to Webhook");
    } else {
      validate_client(*client, client_at, errors);
      const std::string_view bundle = client->text_at("caBundle");
      if (demands.valid_bundle && !bundle.empty() && !holds_certificate(bundle)) {
        errors.invalid(client_at.child("caBundle"), bundle,
                       "unable to load root certificates: unable to parse bytes as PEM block");
      }
    }
    return validate_review_versions(webhook, demands.known_review_version, versions_at, errors);
  }
  constexpr std::string_view kUnused = "should not be set when strategy is not set to Webhook";
  if (client != nullptr) errors.forbidden(client_at, kUnused);
  if (!webhook.items_at("conversionReviewVersions").empty()) errors.forbidden(versions_at, kUnused);
}

void validate_deprecation(const Value& version, const Path& at, FieldErrors& errors) {
  const Value* warning = version.find("deprecationWarning");
  if (warning == nullptr || !warning->is_string()) return;
  const std::string_view text = warning->as_string();
  const Path here = at.child("deprecationWarning");
  const Shown shown = Shown::verbatim(json_quote(text));
  if (!flag_at(version, "deprecated")) return errors.invalid(here, shown, "can only be set for deprecated versions");
  if (text.size() > 256) errors.invalid(here, shown, "must be <= 256 characters long");
  if (text.empty()) errors.invalid(here, shown, "must not be an empty string");
  bool valid = true;
  std::optional<size_t> unprintable;
  for (size_t i = 0; i < text.size();) {
    const Rune rune = decode_rune(text, i);
    valid &= rune.valid;
    if (!unprintable && !is_print(rune.value)) unprintable = i;
    i += rune.length;
  }
  constexpr std::string_view kPrintable = "must only contain printable UTF-8 characters";
  if (unprintable) {
    errors.invalid(
        here, shown,
        std::string(kPrintable) + "; non-printable character found at index " + std::to_string(*unprintable));
  }
  if (!valid) errors.invalid(here, shown, kPrintable);
}

// The versions as printed by kube-apiserver's internal structs, where shared members are hoisted.
Shown shown_versions(const Value& spec, const Shared& shared) {
  const Value* versions = spec.find("versions");
  if (versions == nullptr || versions->is_null()) return Value::null();
  Arena arena;
  std::string out = "[";
  for (const Value& version : versions->items()) {
    Value own = version;
    if (shared.schema) own = without_member(arena, own, "schema");
    if (shared.subresources) own = without_member(arena, own, "subresources");
    if (shared.columns) own = without_member(arena, own, "additionalPrinterColumns");
    if (shared.selectable) own = without_member(arena, own, "selectableFields");
    out += (out.size() == 1 ? "" : ",") + go_version(own);
  }
  return Shown::verbatim(out + "]");
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

// For the schema of one version, or the one shared by all.
SchemaRequirements schema_demands(const Demands& demands, std::string_view version) {
  SchemaRequirements result = demands.schemas;
  result.rule_costs = !demands.unchanged.contains(version);
  return result;
}

void validate_version(const Value& version, const Shared& shared, const Demands& demands, const Path& at,
                      FieldErrors& errors) {
  const std::string_view name = version.text_at("name");
  if (const auto why = kinds::dns1035_label_errors(name); !why.empty())
    errors.invalid(at.child("name"), name, join(why, ","));
  validate_deprecation(version, at, errors);
  const Value* schema = shared.schema ? nullptr : schema_of(version);
  if (schema != nullptr) {
    const Path schema_path = at.child("schema");
    validate_schema(*schema, status_enabled(version), schema_demands(demands, name),
                    schema_path.child("openAPIV3Schema"), errors);
  }
  if (!shared.subresources) validate_subresources(version.find("subresources"), at.child("subresources"), errors);
  if (!shared.columns) validate_columns(version, at, errors);
  const auto fields = version.items_at("selectableFields");
  if (shared.selectable || fields.empty()) return;
  if (schema == nullptr) {
    // Kubernetes does not count a schema shared by all versions as that of the version, and its message is inverted.
    errors.invalid(at.child("selectableFields"), "",
                   "may only be set when `version.schema.openAPIV3Schema` is not included");
  } else {
    validate_selectable(fields, *schema, demands.still_many.contains(name), at, errors);
  }
}

// Validates the list of versions as a whole.
void validate_version_list(const Value& spec, const Shared& shared, const Path& at, FieldErrors& errors) {
  const std::span<const Value> versions = spec.items_at("versions");
  size_t storage = 0;
  std::set<std::string_view> names;
  for (const Value& version : versions) {
    storage += flag_at(version, "storage");
    names.insert(version.text_at("name"));
  }
  if (names.size() != versions.size())
    errors.invalid(at.child("versions"), shown_versions(spec, shared), "must contain unique version names");
  if (storage != 1) {
    errors.invalid(at.child("versions"), shown_versions(spec, shared),
                   "must have exactly one version marked as storage version");
  }
  // In the internal type, the first version is also the definition's own.
  const std::string_view first = versions.empty() ? std::string_view{} : versions[0].text_at("name");
  if (first.empty()) return;
  if (const auto why = kinds::dns1035_label_errors(first); !why.empty())
    errors.invalid(at.child("version"), first, join(why, ","));
}

void validate_shared(std::span<const Value> versions, const Shared& shared, const Demands& demands, const Path& at,
                     FieldErrors& errors) {
  if (versions.empty()) return;
  const Value& first = versions[0];
  const Value* schema = schema_of(first);
  if (schema != nullptr && shared.schema) {
    const bool any_status = std::any_of(versions.begin(), versions.end(), status_enabled);
    const Path validation = at.child("validation");
    validate_schema(*schema, any_status, schema_demands(demands, first.text_at("name")),
                    validation.child("openAPIV3Schema"), errors);
  }
  if (shared.subresources) validate_subresources(first.find("subresources"), at.child("subresources"), errors);
  if (shared.columns) validate_columns(first, at, errors);
  const auto fields = first.items_at("selectableFields");
  if (!shared.selectable || fields.empty()) return;
  if (!shared.schema || schema == nullptr) {
    errors.invalid(at.child("selectableFields"), "", "may only be set when validations.schema is included");
  } else {
    validate_selectable(fields, *schema, demands.still_many.contains(first.text_at("name")), at, errors);
  }
}

void validate_schemas_are_there(std::span<const Value> versions, bool preserves, const Demands& demands, const Path& at,
                                FieldErrors& errors) {
  if (!demands.schema_in_each_version && preserves) return;
  for (size_t i = 0; i < versions.size(); ++i) {
    if (schema_of(versions[i]) != nullptr) continue;
    if (!demands.schema_in_each_version && !flag_at(versions[i], "served")) continue;
    const Path version = at.item("versions", i);
    errors.required(version.child("schema.openAPIV3Schema"),
                    demands.schema_in_each_version ? "" : "because otherwise all fields are pruned");
  }
}

// Schemas that use features of structural schemas must be structural, regardless of the stored definition.
bool needs_structure(const Value& part) {
  if (part.has("default") || part.has("x-kubernetes-preserve-unknown-fields") || part.has("x-kubernetes-list-type"))
    return true;
  if (flag_at(part, "x-kubernetes-embedded-resource") || flag_at(part, "x-kubernetes-int-or-string")) return true;
  return !part.items_at("x-kubernetes-list-map-keys").empty() || !part.items_at("x-kubernetes-validations").empty();
}

void validate_spec(const Value& spec, Demands demands, const Path& at, FieldErrors& errors) {
  validate_group(spec.text_at("group"), at.child("group"), errors);
  validate_scope(spec.text_at("scope"), at.child("scope"), errors);

  const auto versions = spec.items_at("versions");
  const Shared shared(versions);
  const bool preserves = flag_at(spec, "preserveUnknownFields");
  const auto in_some_schema = [versions](bool (*holds)(const Value& part)) {
    return std::any_of(versions.begin(), versions.end(), [holds](const Value& version) {
      const Value* schema = schema_of(version);
      return schema != nullptr && any_schema(*schema, holds);
    });
  };
  validate_schemas_are_there(versions, preserves, demands, at, errors);
  if (preserves && in_some_schema([](const Value& part) { return part.has("default"); }))
    errors.invalid(at.child("preserveUnknownFields"), true, "must be false in order to use defaults in the schema");
  if (!preserves || in_some_schema(needs_structure)) demands.schemas.structural = true;
  for (size_t i = 0; i < versions.size(); ++i)
    validate_version(versions[i], shared, demands, at.item("versions", i), errors);
  validate_version_list(spec, shared, at, errors);

  const Value empty = Value::empty_map();
  const Value* names = spec.find("names");
  const Path names_at = at.child("names");
  for (std::string_view key : {"plural", "singular", "kind", "listKind"}) {
    if (names == nullptr || names->text_at(key).empty()) errors.required(names_at.child(key));
  }
  validate_names(names == nullptr ? empty : *names, names_at, errors);
  validate_shared(versions, shared, demands, at, errors);

  const std::string_view strategy = spec.text_at("conversion", "strategy");
  if (preserves && spec.has("conversion") && strategy != "None") {
    const Path conversion = at.child("conversion");
    errors.invalid(conversion.child("strategy"), strategy, "must be None if spec.preserveUnknownFields is true");
  }
  validate_conversion(spec.find("conversion"), demands, at.child("conversion"), errors);
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

// Kubernetes' own groups are reserved: using one requires an approval annotation.
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

// Update validation runs twice, as upstream: once as for every kind, then again for definitions.
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
  const Value definition = with_parsed_raw_json(arena, as_sent);
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
  validate_spec(spec == nullptr ? empty : *spec,
                old == nullptr ? Demands() : demands_of_update(definition, with_parsed_raw_json(arena, *old)), spec_at,
                errors);
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
  const auto approval = [](const Value& of) {
    return approval_of(of.text_at("metadata", "annotations", kApprovedAnnotation));
  };
  if (old == nullptr || approval(definition) != approval(*old)) validate_approval(definition, errors);
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

void add_definition_warnings(const Value& definition, const Value* old, Warnings& warnings) {
  std::set<std::string> formats = unknown_formats(definition);
  if (old != nullptr) {
    for (const std::string& known : unknown_formats(*old)) formats.erase(known);
  }
  for (const std::string& format : formats) warnings.add("unrecognized format " + go_quote(format));
}

}  // namespace holdfast::crd
