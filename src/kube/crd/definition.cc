#include <algorithm>

#include "codec/codec.h"
#include "crd/crd.h"
#include "crd/rules.h"
#include "discovery/discovery.h"
#include "table/table.h"

namespace holdfast::crd {
namespace {

std::vector<std::string> path_keys(std::string_view path) {
  if (path.starts_with(".")) path.remove_prefix(1);
  std::vector<std::string> keys;
  while (!path.empty()) {
    const size_t dot = path.find('.');
    keys.emplace_back(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
  }
  return keys;
}

std::span<const std::string_view> texts(Arena& arena, std::span<const Value> items) {
  auto* result = arena.allocate_array<std::string_view>(items.size());
  size_t count = 0;
  for (const Value& item : items) {
    if (item.is_string()) new (&result[count++]) std::string_view(item.as_string());
  }
  return {result, count};
}

constexpr std::string_view kVerbs[] = {"delete", "deletecollection", "get",    "list",
                                       "patch",  "create",           "update", "watch"};
constexpr std::string_view kTerminatingVerbs[] = {"delete", "deletecollection", "get", "list", "watch"};
constexpr std::string_view kSubresourceVerbs[] = {"get", "patch", "update"};

std::span<const types::Column> columns(Arena& arena, const Value& version) {
  const auto written = version.items_at("additionalPrinterColumns");
  if (written.empty()) return table::default_custom_columns();
  auto* result = arena.allocate_array<types::Column>(written.size() + 1);
  new (&result[0]) types::Column(table::default_custom_columns()[0]);
  for (size_t i = 0; i < written.size(); ++i) {
    const Value& column = written[i];
    const std::string_view description = column.text_at("description");
    const std::string_view path = column.text_at("jsonPath");
    std::string_view shown = description;
    if (shown.empty())
      shown = arena.copy("Custom resource definition column (in JSONPath format): " + std::string(path));
    new (&result[i + 1]) types::Column{column.text_at("name"),
                                       column.text_at("type"),
                                       column.text_at("format"),
                                       shown,
                                       static_cast<int32_t>(column.int_at_or(0, "priority")),
                                       path};
  }
  return {result, written.size() + 1};
}

std::optional<ScalePaths> scale_paths(const Value& version) {
  const Value* scale = version.get("subresources", "scale");
  if (scale == nullptr) return std::nullopt;
  ScalePaths paths;
  paths.spec_replicas_text = scale->text_at("specReplicasPath");
  paths.status_replicas_text = scale->text_at("statusReplicasPath");
  paths.label_selector_text = scale->text_at("labelSelectorPath");
  paths.spec_replicas = path_keys(paths.spec_replicas_text);
  paths.status_replicas = path_keys(paths.status_replicas_text);
  paths.label_selector = path_keys(paths.label_selector_text);
  return paths;
}

std::vector<std::string> selectable_fields(const Value& version) {
  std::vector<std::string> fields;
  for (const Value& field : version.items_at("selectableFields")) {
    std::string_view path = field.text_at("jsonPath");
    if (path.starts_with(".")) path.remove_prefix(1);
    fields.emplace_back(path);
  }
  return fields;
}

// Data shared by the versions of one definition. Views into the definition's own arena.
struct Common {
  std::string_view group, storage_version;
  Value names;  // As served.
  bool namespaced = false, terminating = false, preserves_unknown = false;
  bool may_be_unstructured = false;  // Stored by an older version of Kubernetes.
};

std::span<const types::Subresource> subresources(Arena& arena, const Version& version, std::string_view kind) {
  auto* made = arena.allocate_array<types::Subresource>(2);
  size_t count = 0;
  if (version.has_status) new (&made[count++]) types::Subresource{"status", {}, {}, kind, kSubresourceVerbs};
  if (version.scale) new (&made[count++]) types::Subresource{"scale", "autoscaling", "v1", "Scale", kSubresourceVerbs};
  return {made, count};
}

const types::Resource* make_resource(Arena& arena, const Common& common, const Value& written, const Version& version) {
  auto* resource = arena.make<types::Resource>();
  resource->group = common.group;
  resource->version = written.text_at("name");
  resource->plural = common.names.text_at("plural");
  resource->singular = common.names.text_at("singular");
  resource->list_kind = common.names.text_at("listKind");
  resource->kind = common.names.text_at("kind");
  resource->namespaced = common.namespaced;
  resource->short_names = texts(arena, common.names.items_at("shortNames"));
  resource->categories = texts(arena, common.names.items_at("categories"));
  resource->verbs = common.terminating ? std::span<const std::string_view>(kTerminatingVerbs)
                                       : std::span<const std::string_view>(kVerbs);
  resource->columns = columns(arena, written);
  resource->type = types::TypeRef(*version.schema);
  resource->storage_group = resource->group;
  resource->storage_version = common.storage_version;
  resource->storage_prefix = arena.copy(std::string(resource->group) + "/" + std::string(resource->plural));
  resource->stored_as_json = true;
  resource->subresources = subresources(arena, version, resource->kind);
  return resource;
}

Version make_version(Arena& arena, const Common& common, const Value& original) {
  // Names and columns are views into this copy; the schema keeps its own.
  const Value written = deep_copy(arena, without_member(arena, original, "schema"));
  Version made;
  made.served = flag_at(written, "served");
  made.storage = flag_at(written, "storage");
  made.has_status = written.get("subresources", "status") != nullptr;
  made.scale = scale_paths(written);
  made.selectable_fields = selectable_fields(written);
  const Value* schema = original.get("schema", "openAPIV3Schema");
  made.schema = schema::Schema::build(schema == nullptr ? Value::null() : *schema, common.preserves_unknown);
  made.published = made.schema;
  if (schema != nullptr && common.may_be_unstructured) {
    FieldErrors found;
    validate_structural(*schema, Path("schema"), found);
    if (!found.empty()) made.published = schema::Schema::build(Value::null(), common.preserves_unknown);
  }
  made.rules = std::make_shared<const LazyRules>(made.schema);
  made.resource = make_resource(arena, common, written, made);
  return made;
}

// The warning for a deprecated version: the definition's own text, or a recommendation of the best version to use.
std::string deprecation_warning(const Value& version, std::span<const Value> versions,
                                const types::Resource& resource) {
  if (!flag_at(version, "deprecated")) return {};
  if (const std::string_view own = version.text_at("deprecationWarning"); !own.empty()) return std::string(own);
  const std::string kind = " " + std::string(resource.kind), group = std::string(resource.group) + "/";
  std::string_view better;
  for (const Value& other : versions) {
    const std::string_view name = other.text_at("name");
    if (flag_at(other, "deprecated") || !flag_at(other, "served")) continue;
    if (!discovery::version_precedes(name, resource.version)) continue;
    if (better.empty() || discovery::version_precedes(name, better)) better = name;
  }
  std::string warning = group + std::string(resource.version) + kind + " is deprecated";
  if (!better.empty()) warning += "; use " + group + std::string(better) + kind;
  return warning;
}

}  // namespace

std::shared_ptr<const Definition> Definition::make(const Value& as_stored) {
  Arena scratch;
  const Value written = with_parsed_raw_json(scratch, as_stored);
  std::shared_ptr<Definition> result(new Definition());
  Arena& arena = result->arena_;
  result->name_ = written.text_at("metadata", "name");
  result->uid_ = written.text_at("metadata", "uid");
  result->spec_hash_ = hash(*written.find("spec"));
  result->established_ = has_condition(written, "Established", "True");
  result->serves_ = result->established_ || has_condition(written, "NamesAccepted", "True");
  result->terminating_ =
      has_condition(written, "Terminating", "True") || !written.text_at("metadata", "deletionTimestamp").empty();

  const Value spec = deep_copy(arena, without_member(arena, *written.find("spec"), "versions"));
  if (spec.text_at("conversion", "strategy") == "Webhook") result->webhook_ = *spec.find("conversion");
  const auto versions = written.items_at("spec", "versions");
  Common common{.group = spec.text_at("group"),
                .names = *spec.find("names"),
                .namespaced = spec.text_at("scope") == "Namespaced",
                .terminating = result->terminating_,
                .preserves_unknown = flag_at(spec, "preserveUnknownFields"),
                .may_be_unstructured = has_condition(written, "NonStructuralSchema", "True")};
  // Serve the accepted names; before they are accepted, the requested ones.
  if (!written.text_at("status", "acceptedNames", "plural").empty()) {
    common.names = deep_copy(arena, *written.get("status", "acceptedNames"));
  }
  for (const Value& version : versions) {
    if (flag_at(version, "storage")) common.storage_version = arena.copy(version.text_at("name"));
  }
  for (const Value& version : versions) {
    Version made = make_version(arena, common, version);
    made.deprecation_warning = deprecation_warning(version, versions, *made.resource);
    result->versions_.push_back(std::move(made));
  }
  return result;
}

const Version* Definition::find(std::string_view version) const {
  for (const Version& candidate : versions_) {
    if (candidate.resource->version == version) return &candidate;
  }
  return nullptr;
}

const Version& Definition::storage_version() const {
  for (const Version& candidate : versions_) {
    if (candidate.storage) return candidate;
  }
  assert(!versions_.empty());
  return versions_.front();
}

size_t Definition::bytes() const {
  size_t total = sizeof *this + arena_.reserved_bytes();
  for (const Version& version : versions_) total += sizeof version + version.schema->bytes();
  return total;
}

Value with_parsed_raw_json(Arena& arena, const Value& value) {
  switch (value.kind()) {
    case Value::Kind::Raw: {
      Result<Value> read = codec::decode_json(arena, value.raw_json());
      return read ? *read : Value::null();
    }
    case Value::Kind::List: {
      ListBuilder list(arena);
      bool changed = false;
      for (const Value& item : value.items()) {
        list.add(with_parsed_raw_json(arena, item));
        changed |= item.is_raw() || item.is_list() || item.is_map();
      }
      return changed ? list.build() : value;
    }
    case Value::Kind::Map: {
      MapBuilder map(arena);
      for (const Member& member : value.members()) map.add(member.key, with_parsed_raw_json(arena, member.value));
      return map.build();
    }
    default:
      return value;
  }
}

bool flag_at(const Value& map, std::string_view key) {
  const Value* value = map.find(key);
  return value != nullptr && value->is_bool() && value->as_bool();
}

}  // namespace holdfast::crd
