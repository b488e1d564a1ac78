#include <openssl/sha.h>

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "codec/codec.h"
#include "openapi/model.h"

namespace holdfast::openapi {
namespace {

constexpr std::string_view kFixedPaths[] = {".well-known/openid-configuration", "api", "apis", "openid/v1/jwks",
                                            "version"};

std::string_view code_text(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    default:
      return "Unauthorized";
  }
}

std::string_view parameter_text(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kTexts[] = {
      {"allowWatchBookmarks", "Whether a watch may send bookmarks."},
      {"continue", "Where the previous page of the list ended."},
      {"dryRun", "\"All\" runs every step but stores nothing."},
      {"fieldManager", "Who makes this change; owns the fields it sets."},
      {"fieldSelector", "Only objects whose fields match."},
      {"fieldValidation", "What to do with unknown and repeated fields: Ignore, Warn or Strict."},
      {"force", "Take fields over from other managers when applying."},
      {"gracePeriodSeconds", "Seconds the object is given to end by itself."},
      {"labelSelector", "Only objects whose labels match."},
      {"limit", "The most items in one page."},
      {"name", "Name of the object."},
      {"namespace", "Namespace of the object."},
      {"orphanDependents", "Deprecated: use propagationPolicy."},
      {"pretty", "Indent the answer."},
      {"propagationPolicy", "What happens to dependents: Orphan, Background or Foreground."},
      {"resourceVersion", "The revision that the answer must reflect."},
      {"resourceVersionMatch", "How resourceVersion is meant: Exact or NotOlderThan."},
      {"sendInitialEvents", "Begin a watch with what exists."},
      {"showManagedFields", "\"false\" leaves metadata.managedFields out of the answer."},
      {"timeoutSeconds", "How long a watch may last."},
      {"watch", "Stream changes instead of a list."},
  };
  for (const auto& [known, text] : kTexts) {
    if (known == name) return text;
  }
  return {};
}

Value strings(Arena& arena, const std::vector<std::string>& values) {
  ListBuilder list(arena);
  for (const std::string& value : values) list.add(Value::string(arena, value));
  return list.build();
}

Value gvk(Arena& arena, const KindName& kind, bool sorted) {
  MapBuilder map(arena);
  map.add("group", Value::string(arena, kind.group));
  if (sorted) map.add("kind", Value::string(arena, kind.kind));
  map.add("version", Value::string(arena, kind.version));
  if (!sorted) map.add("kind", Value::string(arena, kind.kind));
  return map.build();
}

// Parameters that all operations of a path have in common; listed once, next to the operations.
std::vector<Parameter> shared_parameters(const PathItem& item) {
  std::vector<Parameter> shared = item.operations.front().parameters;
  for (const Operation& op : item.operations) {
    std::erase_if(shared, [&op](const Parameter& p) {
      return std::find(op.parameters.begin(), op.parameters.end(), p) == op.parameters.end();
    });
  }
  return shared;
}

std::vector<Parameter> own_parameters(const Operation& op, const std::vector<Parameter>& shared) {
  std::vector<Parameter> own = op.parameters;
  std::erase_if(own,
                [&shared](const Parameter& p) { return std::find(shared.begin(), shared.end(), p) != shared.end(); });
  return own;
}

// --- v3 ---

Value v3_schema(Arena& arena, const SchemaRef& ref) {
  MapBuilder schema(arena), holder(arena);
  if (ref.plain_string)
    schema.add("type", Value::string("string"));
  else
    schema.add("$ref", Value::string(arena, "#/components/schemas/" + ref.name));
  holder.add("schema", schema.build());
  return holder.build();
}

Value v3_content(Arena& arena, const SchemaRef& ref, std::vector<std::string> media) {
  std::sort(media.begin(), media.end());
  MapBuilder content(arena);
  for (const std::string& type : media) content.add_copy(type, v3_schema(arena, ref));
  return content.build();
}

// The content of a request. Clients check for the extension before they send a marker, since a server without support
// would treat a marker as data.
Value v3_request_content(Arena& arena, const Operation& op) {
  const Value content = v3_content(arena, op.body, op.body_media);
  if (!op.unset_markers) return content;
  Value out = content;
  for (const Member& media : content.members()) {
    if (!media.key.starts_with("application/apply-patch+")) continue;
    const Value marker = with_member(arena, Value::empty_map(), "k8s_io__value", Value::string("unset"));
    out = with_member(arena, out, media.key, with_member(arena, media.value, "x-kubernetes-unset-marker", marker));
  }
  return out;
}

Value v3_parameters(Arena& arena, const std::vector<Parameter>& parameters) {
  ListBuilder list(arena);
  for (const Parameter& parameter : parameters) {
    MapBuilder item(arena), schema(arena);
    item.add("name", Value::string(parameter.name));
    item.add("in", Value::string(parameter.in));
    if (const std::string_view text = parameter_text(parameter.name); !text.empty())
      item.add("description", Value::string(text));
    if (parameter.required) item.add("required", Value::boolean(true));
    schema.add("type", Value::string(parameter.type));
    schema.add("uniqueItems", Value::boolean(true));
    item.add("schema", schema.build());
    list.add(item.build());
  }
  return list.build();
}

Value v3_operation(Arena& arena, const Operation& op, const std::vector<Parameter>& shared) {
  MapBuilder map(arena);
  ListBuilder tags(arena);
  tags.add(Value::string(arena, op.tag));
  map.add("tags", tags.build());
  map.add("description", Value::string(arena, op.description));
  map.add("operationId", Value::string(arena, op.id));
  if (const auto own = own_parameters(op, shared); !own.empty()) map.add("parameters", v3_parameters(arena, own));
  if (!op.body.name.empty()) {
    MapBuilder body(arena);
    body.add("content", v3_request_content(arena, op));
    if (op.body_required) body.add("required", Value::boolean(true));
    map.add("requestBody", body.build());
  }
  MapBuilder responses(arena);
  for (const Response& response : op.responses) {
    MapBuilder item(arena);
    item.add("description", Value::string(code_text(response.code)));
    if (!response.schema.name.empty() || response.schema.plain_string)
      item.add("content", v3_content(arena, response.schema, op.produces));
    responses.add_copy(std::to_string(response.code), item.build());
  }
  map.add("responses", responses.build());
  if (!op.action.empty()) map.add("x-kubernetes-action", Value::string(arena, op.action));
  if (!op.kind.kind.empty()) map.add("x-kubernetes-group-version-kind", gvk(arena, op.kind, false));
  return map.build();
}

Value bearer(Arena& arena) {
  MapBuilder scheme(arena), all(arena);
  scheme.add("type", Value::string("apiKey"));
  scheme.add("description", Value::string("Bearer token"));
  scheme.add("name", Value::string("authorization"));
  scheme.add("in", Value::string("header"));
  all.add("BearerToken", scheme.build());
  return all.build();
}

Value info(Arena& arena, std::string_view title, std::string_view version) {
  MapBuilder map(arena);
  map.add("title", Value::string(title));
  map.add("version", Value::string(version));
  return map.build();
}

// --- v2 ---

// Parameters that recur throughout the document are defined once; their names end in a hash of their content.
struct SharedParameters {
  std::map<std::string, Value> by_name;

  std::string add(const std::string& name, const Value& parameter) {
    constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint64_t hash = hash_bytes(codec::encode_json(parameter));
    std::string key = name + "-";
    for (int i = 0; i < 8; ++i, hash >>= 6) key += kAlphabet[hash & 63];
    by_name.insert_or_assign(key, parameter);
    return "#/parameters/" + key;
  }
};

Value reference(Arena& arena, const std::string& target) {
  MapBuilder map(arena);
  map.add("$ref", Value::string(arena, target));
  return map.build();
}

Value v2_parameter(Arena& arena, const Parameter& parameter, SharedParameters& shared) {
  MapBuilder item(arena);
  item.add("uniqueItems", Value::boolean(true));
  item.add("type", Value::string(parameter.type));
  if (const std::string_view text = parameter_text(parameter.name); !text.empty())
    item.add("description", Value::string(text));
  item.add("name", Value::string(parameter.name));
  item.add("in", Value::string(parameter.in));
  if (parameter.required) item.add("required", Value::boolean(true));
  const Value value = item.build();
  // Older kubectl versions look for the first two in the operation itself; `name` differs by path.
  if (parameter.name == "dryRun" || parameter.name == "fieldValidation" || parameter.name == "name") return value;
  return reference(arena, shared.add(std::string(parameter.name), value));
}

Value v2_operation(Arena& arena, const Operation& op, const std::vector<Parameter>& path_parameters,
                   SharedParameters& shared) {
  constexpr std::string_view kMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.";
  MapBuilder map(arena);
  map.add("description", Value::string(arena, op.description));
  if (!op.consumes.empty()) map.add("consumes", strings(arena, op.consumes));
  map.add("produces", strings(arena, op.produces));
  map.add("schemes", strings(arena, {"https"}));
  map.add("tags", strings(arena, {op.tag}));
  map.add("operationId", Value::string(arena, op.id));
  ListBuilder parameters(arena);
  if (!op.body.name.empty()) {
    MapBuilder body(arena);
    body.add("name", Value::string("body"));
    body.add("in", Value::string("body"));
    if (op.body_required) body.add("required", Value::boolean(true));
    body.add("schema", reference(arena, "#/definitions/" + op.body.name));
    const Value value = body.build();
    const bool common =
        op.body.name == std::string(kMeta) + "DeleteOptions" || op.body.name == std::string(kMeta) + "Patch";
    parameters.add(common ? reference(arena, shared.add("body", value)) : value);
  }
  for (const Parameter& parameter : own_parameters(op, path_parameters))
    parameters.add(v2_parameter(arena, parameter, shared));
  if (parameters.count() > 0) map.add("parameters", parameters.build());
  MapBuilder responses(arena);
  for (const Response& response : op.responses) {
    MapBuilder item(arena);
    item.add("description", Value::string(code_text(response.code)));
    if (response.schema.plain_string) {
      MapBuilder schema(arena);
      schema.add("type", Value::string("string"));
      item.add("schema", schema.build());
    } else if (!response.schema.name.empty()) {
      item.add("schema", reference(arena, "#/definitions/" + response.schema.name));
    }
    responses.add_copy(std::to_string(response.code), item.build());
  }
  map.add("responses", responses.build());
  if (!op.action.empty()) map.add("x-kubernetes-action", Value::string(arena, op.action));
  if (!op.kind.kind.empty()) map.add("x-kubernetes-group-version-kind", gvk(arena, op.kind, true));
  return map.build();
}

Value v2_tree(Arena& arena, const Source& source) {
  Paths paths;
  for (std::string_view name : kFixedPaths) add_fixed_path(name, paths);
  std::set<std::pair<std::string_view, std::string_view>> seen;
  std::set<std::string_view> groups;
  for (const Served& served : source.resources) {
    const types::Resource& resource = *served.resource;
    if (!resource.group.empty() && !served.custom && groups.insert(resource.group).second)
      add_group_path(resource.group, paths);
    if (seen.insert({resource.group, resource.version}).second)
      add_group_version_paths(source, resource.group, resource.version, paths);
  }
  SharedParameters shared;
  MapBuilder all(arena);
  for (const auto& [path, item] : paths) {
    const auto common = shared_parameters(item);
    MapBuilder map(arena);
    for (const Operation& op : item.operations) map.add_copy(op.method, v2_operation(arena, op, common, shared));
    if (!common.empty()) {
      ListBuilder list(arena);
      for (const Parameter& parameter : common) list.add(v2_parameter(arena, parameter, shared));
      map.add("parameters", list.build());
    }
    all.add_copy(path, map.build());
  }
  MapBuilder parameters(arena);
  for (const auto& [name, parameter] : shared.by_name) parameters.add_copy(name, parameter);
  ListBuilder security(arena);
  MapBuilder token(arena);
  token.add("BearerToken", Value::empty_list());
  security.add(token.build());
  MapBuilder document(arena);
  document.add("swagger", Value::string("2.0"));
  document.add("info", info(arena, "Kubernetes", "1.36"));
  document.add("paths", all.build());
  document.add("definitions", schemas(arena, source, Form::V2, referenced_schemas(paths), "", ""));
  document.add("parameters", parameters.build());
  document.add("securityDefinitions", bearer(arena));
  document.add("security", security.build());
  return with_remotes(arena, document.build(), source.remotes);
}

// "apis/apps/v1" -> {"apps", "v1"}; "api/v1" -> {"", "v1"}.
bool split_group_version(std::string_view path, std::string_view& group, std::string_view& version) {
  if (path.starts_with("api/")) {
    group = {};
    version = path.substr(4);
    return !version.empty();
  }
  if (!path.starts_with("apis/")) return false;
  path.remove_prefix(5);
  const size_t slash = path.find('/');
  if (slash == std::string_view::npos) return false;
  group = path.substr(0, slash);
  version = path.substr(slash + 1);
  return true;
}

}  // namespace

std::vector<std::string> v3_paths(const Source& source) {
  std::set<std::string> paths(std::begin(kFixedPaths), std::end(kFixedPaths));
  for (const Served& served : source.resources) {
    const std::string group(served.resource->group), version(served.resource->version);
    if (group.empty()) {
      paths.insert("api/" + version);
      continue;
    }
    if (!served.custom) paths.insert("apis/" + group);
    paths.insert("apis/" + group + "/" + version);
  }
  return {paths.begin(), paths.end()};
}

std::string v3_document(const Source& source, std::string_view path) {
  Paths paths;
  std::string_view group, version;
  bool custom = false;
  if (!add_fixed_path(path, paths)) {
    if (split_group_version(path, group, version)) {
      add_group_version_paths(source, group, version, paths);
      for (const Served& served : source.resources) custom |= served.custom && served.resource->group == group;
    } else if (path.starts_with("apis/")) {
      const std::string_view name = path.substr(5);
      for (const Served& served : source.resources) {
        if (!served.custom && served.resource->group == name && !name.empty()) {
          add_group_path(name, paths);
          break;
        }
      }
    }
  }
  if (paths.empty()) return "";

  Arena arena;
  MapBuilder all(arena);
  for (const auto& [name, item] : paths) {
    const auto common = shared_parameters(item);
    MapBuilder map(arena);
    for (const Operation& op : item.operations) map.add_copy(op.method, v3_operation(arena, op, common));
    if (!common.empty()) map.add("parameters", v3_parameters(arena, common));
    all.add_copy(name, map.build());
  }
  MapBuilder components(arena), document(arena);
  const Value all_schemas = schemas(arena, source, Form::V3, referenced_schemas(paths), group, version);
  if (all_schemas.count() > 0) components.add("schemas", all_schemas);
  if (!custom) components.add("securitySchemes", bearer(arena));
  document.add("openapi", Value::string("3.0.0"));
  document.add("info", custom ? info(arena, "Kubernetes CRD Swagger", "v0.1.0") : info(arena, "Kubernetes", "1.36"));
  document.add("paths", all.build());
  document.add("components", components.build());
  return codec::encode_json(document.build());
}

std::string v3_index(const std::map<std::string, std::string>& urls) {
  Arena arena;
  MapBuilder all(arena), index(arena);
  for (const auto& [path, url] : urls) {
    MapBuilder entry(arena);
    entry.add("serverRelativeURL", Value::string(arena, url));
    all.add(path, entry.build());
  }
  index.add("paths", all.build());
  return codec::encode_json(index.build());
}

std::string v2_document(const Source& source) {
  Arena arena;
  return codec::encode_json(v2_tree(arena, source));
}

std::string v2_protobuf(const Source& source) {
  Arena arena;
  return v2_to_protobuf(v2_tree(arena, source));
}

std::string document_hash(std::string_view bytes) {
  std::array<unsigned char, SHA512_DIGEST_LENGTH> digest;
  SHA512(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string text;
  for (unsigned char byte : digest) {
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

}  // namespace holdfast::openapi
