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

}  // namespace

std::shared_ptr<const Definition> Definition::make(const Value& as_stored) {
  Arena scratch;
  const Value written = with_read_raws(scratch, as_stored);
  std::shared_ptr<Definition> result(new Definition());
  Arena& arena = result->arena_;
  result->name_ = written.text_at("metadata", "name");
  result->uid_ = written.text_at("metadata", "uid");
  result->generation_ = written.int_at_or(0, "metadata", "generation");
  result->established_ = has_condition(written, "Established", "True");
  result->serves_ = result->established_ || has_condition(written, "NamesAccepted", "True");
  result->terminating_ =
      has_condition(written, "Terminating", "True") || !written.text_at("metadata", "deletionTimestamp").empty();

  // Views into what stays: names and columns. Schemas keep their own copy.
  const Value spec = deep_copy(arena, without_member(arena, *written.find("spec"), "versions"));
  const bool preserve = flag_at(spec, "preserveUnknownFields");
  if (spec.text_at("conversion", "strategy") == "Webhook") result->webhook_ = *spec.find("conversion");
  // Accepted names are served; before they are accepted, those asked for.
  const Value accepted =
      deep_copy(arena, written.get("status", "acceptedNames") == nullptr ? Value::empty_map()
                                                                         : *written.get("status", "acceptedNames"));
  const Value& names = accepted.text_at("plural").empty() ? *spec.find("names") : accepted;

  std::string_view storage_version;
  for (const Value& version : written.items_at("spec", "versions")) {
    if (flag_at(version, "storage")) storage_version = arena.copy(version.text_at("name"));
  }
  for (const Value& original : written.items_at("spec", "versions")) {
    const Value version = deep_copy(arena, without_member(arena, original, "schema"));
    Version made;
    made.served = flag_at(version, "served");
    made.storage = flag_at(version, "storage");
    made.has_status = version.get("subresources", "status") != nullptr;
    if (const Value* scale = version.get("subresources", "scale")) {
      ScalePaths paths;
      paths.spec_replicas_text = scale->text_at("specReplicasPath");
      paths.status_replicas_text = scale->text_at("statusReplicasPath");
      paths.label_selector_text = scale->text_at("labelSelectorPath");
      paths.spec_replicas = path_keys(paths.spec_replicas_text);
      paths.status_replicas = path_keys(paths.status_replicas_text);
      paths.label_selector = path_keys(paths.label_selector_text);
      made.scale = std::move(paths);
    }
    for (const Value& field : version.items_at("selectableFields")) {
      std::string_view path = field.text_at("jsonPath");
      if (path.starts_with(".")) path.remove_prefix(1);
      made.selectable_fields.emplace_back(path);
    }
    const Value* schema = original.get("schema", "openAPIV3Schema");
    made.schema = schema::Schema::build(schema == nullptr ? Value::null() : *schema, preserve);
    made.rules = std::make_shared<const LazyRules>(made.schema);

    auto* resource = arena.make<types::Resource>();
    resource->group = spec.text_at("group");
    resource->version = version.text_at("name");
    resource->plural = names.text_at("plural");
    resource->singular = names.text_at("singular");
    resource->list_kind = names.text_at("listKind");
    resource->kind = names.text_at("kind");
    resource->namespaced = spec.text_at("scope") == "Namespaced";
    resource->short_names = texts(arena, names.items_at("shortNames"));
    resource->categories = texts(arena, names.items_at("categories"));
    resource->verbs = result->terminating_ ? std::span<const std::string_view>(kTerminatingVerbs)
                                           : std::span<const std::string_view>(kVerbs);
    resource->columns = columns(arena, version);
    resource->type = types::TypeRef(*made.schema);
    resource->storage_group = resource->group;
    resource->storage_version = storage_version;
    resource->storage_prefix = arena.copy(std::string(resource->group) + "/" + std::string(resource->plural));
    resource->stored_as_json = true;
    auto* subresources = arena.allocate_array<types::Subresource>(2);
    size_t count = 0;
    if (made.has_status)
      new (&subresources[count++]) types::Subresource{"status", {}, {}, resource->kind, kSubresourceVerbs};
    if (made.scale)
      new (&subresources[count++]) types::Subresource{"scale", "autoscaling", "v1", "Scale", kSubresourceVerbs};
    resource->subresources = {subresources, count};
    made.resource = resource;
    result->versions_.push_back(std::move(made));
  }
  // A deprecated version names the best version to move to.
  const auto versions = written.items_at("spec", "versions");
  for (size_t i = 0; i < versions.size(); ++i) {
    if (!flag_at(versions[i], "deprecated")) continue;
    Version& made = result->versions_[i];
    made.deprecation_warning = versions[i].text_at("deprecationWarning");
    if (made.deprecation_warning.empty()) {
      const std::string kind = " " + std::string(made.resource->kind), group = std::string(made.resource->group) + "/";
      made.deprecation_warning = group + std::string(made.resource->version) + kind + " is deprecated";
      std::string_view better;
      for (const Value& other : versions) {
        const std::string_view name = other.text_at("name");
        if (flag_at(other, "deprecated") || !flag_at(other, "served")) continue;
        if (!discovery::version_precedes(name, made.resource->version)) continue;
        if (better.empty() || discovery::version_precedes(name, better)) better = name;
      }
      if (!better.empty()) made.deprecation_warning += "; use " + group + std::string(better) + kind;
    }
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

Value with_read_raws(Arena& arena, const Value& value) {
  switch (value.kind()) {
    case Value::Kind::Raw: {
      Result<Value> read = codec::decode_json(arena, value.raw_json());
      return read ? *read : Value::null();
    }
    case Value::Kind::List: {
      ListBuilder list(arena);
      bool changed = false;
      for (const Value& item : value.items()) {
        list.add(with_read_raws(arena, item));
        changed |= item.is_raw() || item.is_list() || item.is_map();
      }
      return changed ? list.build() : value;
    }
    case Value::Kind::Map: {
      MapBuilder map(arena);
      for (const Member& member : value.members()) map.add(member.key, with_read_raws(arena, member.value));
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
