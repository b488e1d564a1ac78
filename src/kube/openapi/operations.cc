#include <algorithm>
#include <cctype>

#include "base/api_version.h"
#include "base/ascii.h"
#include "openapi/model.h"

namespace holdfast::openapi {
namespace {

constexpr std::string_view kMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.";
constexpr Parameter kPretty{"pretty", "query", "string"};
constexpr Parameter kName{"name", "path", "string", true};
constexpr Parameter kNamespace{"namespace", "path", "string", true};

std::vector<Parameter> list_parameters() {
  return {{"allowWatchBookmarks", "query", "boolean"},
          {"continue", "query", "string"},
          {"fieldSelector", "query", "string"},
          {"labelSelector", "query", "string"},
          {"limit", "query", "integer"},
          {"resourceVersion", "query", "string"},
          {"resourceVersionMatch", "query", "string"},
          {"sendInitialEvents", "query", "boolean"},
          {"shardSelector", "query", "string"},
          {"timeoutSeconds", "query", "integer"},
          {"watch", "query", "boolean"}};
}

std::vector<Parameter> write_parameters() {
  return {{"dryRun", "query", "string"}, {"fieldManager", "query", "string"}, {"fieldValidation", "query", "string"}};
}

std::vector<Parameter> delete_parameters() {
  return {{"dryRun", "query", "string"},
          {"gracePeriodSeconds", "query", "integer"},
          {"ignoreStoreReadErrorWithClusterBreakingPotential", "query", "boolean"},
          {"orphanDependents", "query", "boolean"},
          {"propagationPolicy", "query", "string"}};
}

std::string capitalized(std::string_view text) {
  std::string result(text);
  if (!result.empty()) result[0] = to_upper(result[0]);
  return result;
}

// "rbac.authorization.k8s.io" -> "RbacAuthorization".
std::string group_words(std::string_view group) {
  if (group.empty()) return "Core";
  constexpr std::string_view kSuffix = ".k8s.io";
  if (group.ends_with(kSuffix)) group.remove_suffix(kSuffix.size());
  std::string words;
  bool start = true;
  for (char c : group) {
    if (c == '.' || c == '-') {
      start = true;
      continue;
    }
    words += start ? to_upper(c) : c;
    start = false;
  }
  return words;
}

std::string group_tag(std::string_view group) {
  std::string tag = group_words(group);
  tag[0] = to_lower(tag[0]);
  return tag;
}

// Media types of bodies that contain objects.
std::vector<std::string> object_media(const Source& source, bool custom, bool streams) {
  const bool cbor = source.gates.on(Gate::CBORServingAndStorage);
  std::vector<std::string> media = {"application/json", "application/yaml"};
  if (!custom) {
    media.emplace_back("application/vnd.kubernetes.protobuf");
    if (cbor) media.emplace_back("application/cbor");
    if (streams) {
      media.emplace_back("application/json;stream=watch");
      media.emplace_back("application/vnd.kubernetes.protobuf;stream=watch");
      if (cbor) media.emplace_back("application/cbor-seq");
    }
  }
  return media;
}

struct Builder {
  const Source& source;
  const types::Resource& resource;
  bool custom;
  std::string root;  // "/apis/apps/v1"
  Paths& paths;

  std::string id(std::string_view verb, std::string_view tail) const {
    return std::string(verb) + group_words(resource.group) + capitalized(resource.version) + std::string(tail);
  }
  std::string scope() const { return resource.namespaced ? "Namespaced" : ""; }
  std::string collection_path() const {
    return root + (resource.namespaced ? "/namespaces/{namespace}/" : "/") + std::string(resource.plural);
  }
  std::string item_path() const { return collection_path() + "/{name}"; }
  SchemaRef own_schema() const {
    if (custom) return {custom_schema_name(resource.group, resource.version, resource.kind)};
    return {resource.type == nullptr ? "" : std::string(resource.type->openapi_name)};
  }
  SchemaRef list_schema() const {
    if (custom) return {custom_schema_name(resource.group, resource.version, list_kind_of(resource))};
    return {resource.list_type == nullptr ? "" : std::string(resource.list_type->openapi_name)};
  }
  KindName own_kind() const {
    return {std::string(resource.group), std::string(resource.version), std::string(resource.kind)};
  }
  bool has_verb(std::string_view verb) const {
    return std::find(resource.verbs.begin(), resource.verbs.end(), verb) != resource.verbs.end();
  }

  // Built-in kinds are accepted in every format the server supports.
  std::vector<std::string> body_media() const {
    if (custom) return {"application/json", "application/yaml"};
    return {"*/*"};
  }

  Operation start(std::string method, std::string operation_id, std::string action, KindName kind,
                  std::string description) const {
    Operation op;
    op.method = std::move(method);
    op.id = std::move(operation_id);
    op.tag = group_tag(resource.group) + "_" + std::string(resource.version);
    op.action = std::move(action);
    op.kind = std::move(kind);
    op.description = std::move(description);
    op.parameters = {kPretty};
    op.consumes = body_media();
    op.produces = object_media(source, custom, false);
    return op;
  }
  void add(const std::string& path, Operation op, bool named) const {
    if (resource.namespaced && path.find("{namespace}") != std::string::npos) op.parameters.push_back(kNamespace);
    if (named) op.parameters.push_back(kName);
    std::sort(op.parameters.begin(), op.parameters.end());
    paths[path].operations.push_back(std::move(op));
  }
  static void append(std::vector<Parameter>& to, const std::vector<Parameter>& from) {
    to.insert(to.end(), from.begin(), from.end());
  }
  // How to leave managedFields out. Listed only where objects are read, and not for streams: with all variants for
  // every media type, documents were twice as large.
  void add_opt_out(Operation& op) const {
    if (!source.gates.on(Gate::ManagedFieldsOptOut)) return;
    op.parameters.push_back({"showManagedFields", "query", "boolean"});
    std::vector<std::string> media = object_media(source, custom, false);
    // Kubernetes does not list this for custom resources, though it serves it.
    if (custom && source.gates.on(Gate::CBORServingAndStorage)) media.emplace_back("application/cbor");
    for (const std::string& type : media) op.produces.push_back(type + ";drop=metadata.managedFields");
  }

  std::vector<std::string> patch_media() const {
    std::vector<std::string> media = {"application/json-patch+json", "application/merge-patch+json"};
    if (!custom) media.emplace_back("application/strategic-merge-patch+json");
    media.emplace_back("application/apply-patch+yaml");
    if (!custom && source.gates.on(Gate::CBORServingAndStorage)) media.emplace_back("application/apply-patch+cbor");
    return media;
  }

  void get(const std::string& path, const std::string& tail, const SchemaRef& schema, const KindName& kind,
           const std::string& what) const {
    Operation op = start("get", id("read", tail), "get", kind, "Reads " + what + ".");
    op.responses = {{200, schema}, {401, {}}};
    if (custom) op.parameters.push_back({"resourceVersion", "query", "string"});
    add_opt_out(op);
    add(path, std::move(op), true);
  }
  void put(const std::string& path, const std::string& tail, const SchemaRef& schema, const KindName& kind,
           const std::string& what) const {
    Operation op = start("put", id("replace", tail), "put", kind, "Replaces " + what + ".");
    append(op.parameters, write_parameters());
    op.body = schema;
    op.body_media = body_media();
    op.body_required = true;
    op.responses = {{200, schema}, {201, schema}, {401, {}}};
    add(path, std::move(op), true);
  }
  void patch(const std::string& path, const std::string& tail, const SchemaRef& schema, const KindName& kind,
             const std::string& what) const {
    Operation op = start("patch", id("patch", tail), "patch", kind, "Changes parts of " + what + ".");
    append(op.parameters, write_parameters());
    op.parameters.push_back({"force", "query", "boolean"});
    op.body = {std::string(kMeta) + "Patch"};
    op.body_media = op.consumes = patch_media();
    op.unset_markers = source.gates.on(Gate::ServerSideApplyUnsettingFields);
    op.body_required = true;
    op.responses = {{200, schema}};
    if (!custom) op.responses.push_back({201, schema});
    op.responses.push_back({401, {}});
    add(path, std::move(op), true);
  }
  void create(const std::string& path, const std::string& tail, const SchemaRef& schema, const KindName& kind,
              const std::string& what, bool named) const {
    Operation op = start("post", id("create", tail), "post", kind, "Creates " + what + ".");
    append(op.parameters, write_parameters());
    op.body = schema;
    op.body_media = body_media();
    op.body_required = true;
    op.responses = {{200, schema}, {201, schema}, {202, schema}, {401, {}}};
    add(path, std::move(op), named);
  }

  void collection() const {
    const std::string kind(resource.kind), what = "objects of kind " + kind;
    if (has_verb("list")) {
      Operation op = start("get", id("list", scope() + kind), "list", own_kind(), "Lists or watches " + what + ".");
      append(op.parameters, list_parameters());
      op.produces = object_media(source, custom, true);
      add_opt_out(op);
      op.responses = {{200, list_schema()}, {401, {}}};
      if (resource.namespaced) {
        Operation all = op;
        all.id = id("list", kind + "ForAllNamespaces");
        add(root + "/" + std::string(resource.plural), std::move(all), false);
      }
      add(collection_path(), std::move(op), false);
    }
    if (has_verb("create"))
      create(collection_path(), scope() + kind, own_schema(), own_kind(), "an object of kind " + kind, false);
    if (has_verb("deletecollection")) {
      Operation op = start("delete", id("delete", "Collection" + scope() + kind), "deletecollection", own_kind(),
                           "Deletes a set of " + what + ".");
      std::vector<Parameter> list = list_parameters();
      if (!custom) {
        append(op.parameters, delete_parameters());
        std::erase_if(list, [](const Parameter& p) { return p.name == "watch" || p.name == "allowWatchBookmarks"; });
        op.body = {std::string(kMeta) + "DeleteOptions"};
        op.body_media = body_media();
      }
      append(op.parameters, list);
      op.responses = {{200, {std::string(kMeta) + "Status"}}, {401, {}}};
      add(collection_path(), std::move(op), false);
    }
  }

  void item() const {
    const std::string kind(resource.kind), what = "the object of kind " + kind, tail = scope() + kind;
    if (has_verb("get")) get(item_path(), tail, own_schema(), own_kind(), what);
    if (has_verb("update")) put(item_path(), tail, own_schema(), own_kind(), what);
    if (has_verb("delete")) {
      Operation op = start("delete", id("delete", tail), "delete", own_kind(), "Deletes " + what + ".");
      append(op.parameters, delete_parameters());
      op.body = {std::string(kMeta) + "DeleteOptions"};
      op.body_media = body_media();
      // For some kinds, delete returns the deleted object instead of a Status, as in Kubernetes.
      const SchemaRef answer = delete_returns_object() ? own_schema() : SchemaRef{std::string(kMeta) + "Status"};
      op.responses = {{200, answer}, {202, answer}, {401, {}}};
      add(item_path(), std::move(op), true);
    }
    if (has_verb("patch")) patch(item_path(), tail, own_schema(), own_kind(), what);
  }

  bool delete_returns_object() const {
    if (custom) return false;
    static constexpr std::string_view kCore[] = {
        "persistentvolumeclaims", "persistentvolumes", "pods",    "podtemplates",
        "resourcequotas",         "serviceaccounts",   "services"};
    static constexpr std::string_view kStorage[] = {"csidrivers", "csinodes", "storageclasses", "volumeattachments",
                                                    "volumeattributesclasses"};
    if (resource.group.empty())
      return std::find(std::begin(kCore), std::end(kCore), resource.plural) != std::end(kCore);
    if (resource.group == "storage.k8s.io")
      return std::find(std::begin(kStorage), std::end(kStorage), resource.plural) != std::end(kStorage);
    return resource.group == "resource.k8s.io";
  }

  void watches() const {
    if (custom || !has_verb("watch")) return;
    auto watch = [&](const std::string& path, const std::string& tail, const std::string& action, bool named) {
      Operation op = start("get", id("watch", tail), action, own_kind(),
                           "Watches as a list with watch=true does; kept for old clients.");
      append(op.parameters, list_parameters());
      op.produces = object_media(source, custom, true);
      op.responses = {{200, {std::string(kMeta) + "WatchEvent"}}, {401, {}}};
      add(path, std::move(op), named);
    };
    const std::string kind(resource.kind), plural(resource.plural);
    if (resource.namespaced) {
      watch(root + "/watch/" + plural, kind + "ListForAllNamespaces", "watchlist", false);
      watch(root + "/watch/namespaces/{namespace}/" + plural, "Namespaced" + kind + "List", "watchlist", false);
      watch(root + "/watch/namespaces/{namespace}/" + plural + "/{name}", "Namespaced" + kind, "watch", true);
    } else {
      watch(root + "/watch/" + plural, kind + "List", "watchlist", false);
      watch(root + "/watch/" + plural + "/{name}", kind, "watch", true);
    }
  }

  // Streams to a node: described as text, with the options of their kind as parameters.
  void connect(const types::Subresource& sub) const {
    const std::string tail = scope() + std::string(resource.kind) + capitalized(sub.name);
    const KindName kind{"", "v1", std::string(sub.kind)};
    std::vector<Parameter> options;
    if (sub.name == "attach" || sub.name == "exec") {
      if (sub.name == "exec") options.push_back({"command", "query", "string"});
      append(options, {{"container", "query", "string"},
                       {"stderr", "query", "boolean"},
                       {"stdin", "query", "boolean"},
                       {"stdout", "query", "boolean"},
                       {"tty", "query", "boolean"}});
    } else if (sub.name == "portforward") {
      options.push_back({"ports", "query", "integer"});
    } else {
      options.push_back({"path", "query", "string"});
    }
    std::vector<std::string> methods = {"get", "post"};
    if (sub.name == "proxy") methods = {"get", "put", "post", "delete", "options", "head", "patch"};
    for (const bool with_path : {false, true}) {
      if (with_path && sub.name != "proxy") break;
      for (const std::string& method : methods) {
        Operation op = start(
            method, id("connect", capitalized(method) + tail + (with_path ? "WithPath" : "")), "connect", kind,
            "Connects " + method + " requests to " + std::string(sub.name) + " of " + std::string(resource.kind) + ".");
        // In these names, the version precedes the method.
        op.id = "connect" + group_words(resource.group) + capitalized(resource.version) + capitalized(method) + tail +
                (with_path ? "WithPath" : "");
        op.parameters = options;
        if (with_path) op.parameters.push_back({"path", "path", "string", true});
        op.produces = {"*/*"};
        op.responses = {{200, {.plain_string = true}}, {401, {}}};
        add(item_path() + "/" + std::string(sub.name) + (with_path ? "/{path}" : ""), std::move(op), true);
      }
    }
  }

  void log(const types::Subresource& sub) const {
    Operation op = start("get", id("read", scope() + std::string(resource.kind) + "Log"), "get", own_kind(),
                         "Reads the log of a container.");
    append(op.parameters, {{"container", "query", "string"},
                           {"follow", "query", "boolean"},
                           {"insecureSkipTLSVerifyBackend", "query", "boolean"},
                           {"limitBytes", "query", "integer"},
                           {"previous", "query", "boolean"},
                           {"sinceSeconds", "query", "integer"},
                           {"stream", "query", "string"},
                           {"tailLines", "query", "integer"},
                           {"timestamps", "query", "boolean"}});
    op.produces = {"text/plain", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"};
    if (source.gates.on(Gate::CBORServingAndStorage)) op.produces.emplace_back("application/cbor");
    op.responses = {{200, {.plain_string = true}}, {401, {}}};
    add(item_path() + "/" + std::string(sub.name), std::move(op), true);
  }

  void subresource(const types::Subresource& sub) const {
    if (sub.name == "attach" || sub.name == "exec" || sub.name == "portforward" || sub.name == "proxy")
      return connect(sub);
    if (sub.name == "log") return log(sub);
    const bool foreign = !sub.version.empty();
    SchemaRef schema = own_schema();
    // A custom resource's scale has the kind of the resource.
    KindName kind = own_kind();
    if (foreign || sub.kind != resource.kind) {
      const std::string_view version = foreign ? sub.version : resource.version,
                             group = foreign ? sub.group : resource.group;
      if (!custom) kind = {std::string(group), std::string(version), std::string(sub.kind)};
      for (const types::Type* type : types::builtin_types()) {
        const size_t dot = type->name.rfind('.');
        if (dot == std::string_view::npos || type->name.substr(dot + 1) != sub.kind || type->openapi_name.empty())
          continue;
        const std::string_view package = type->name.substr(0, dot);  // "autoscaling/v1"
        const std::string_view first = group.empty() ? "core" : group.substr(0, group.find('.'));
        if (package == std::string(first) + "/" + std::string(version)) schema = {std::string(type->openapi_name)};
      }
    }
    const std::string tail = scope() + std::string(resource.kind) +
                             capitalized(sub.name == "ephemeralcontainers" ? "ephemeralcontainers" : sub.name);
    const std::string what = std::string(sub.name) + " of the object of kind " + std::string(resource.kind),
                      path = item_path() + "/" + std::string(sub.name);
    for (std::string_view verb : sub.verbs) {
      if (verb == "get") get(path, tail, schema, kind, what);
      if (verb == "update") put(path, tail, schema, kind, what);
      if (verb == "patch") patch(path, tail, schema, kind, what);
      if (verb == "create") create(path, tail, schema, kind, what, true);
    }
  }
};

int method_rank(std::string_view method) {
  static constexpr std::string_view kOrder[] = {"get", "put", "post", "delete", "options", "head", "patch"};
  return static_cast<int>(std::find(std::begin(kOrder), std::end(kOrder), method) - std::begin(kOrder));
}

Operation document_operation(std::string id, std::string tag, std::string description, std::string schema,
                             std::vector<std::string> media) {
  Operation op;
  op.method = "get";
  op.id = std::move(id);
  op.tag = std::move(tag);
  op.description = std::move(description);
  op.produces = op.consumes = std::move(media);
  op.responses = {{200, {std::move(schema)}}, {401, {}}};
  return op;
}

const std::vector<std::string> kDiscoveryMedia = {"application/json", "application/yaml",
                                                  "application/vnd.kubernetes.protobuf"};

}  // namespace

void add_group_version_paths(const Source& source, std::string_view group, std::string_view version, Paths& paths) {
  const std::string root = api_path(group, version);
  bool builtin = false;
  for (const Served& served : source.resources) {
    if (served.resource->group != group || served.resource->version != version) continue;
    builtin |= !served.custom;
    const Builder builder{source, *served.resource, served.custom, root, paths};
    builder.collection();
    builder.item();
    builder.watches();
    for (const types::Subresource& sub : served.resource->subresources) builder.subresource(sub);
  }
  if (builtin) {
    std::vector<std::string> media = kDiscoveryMedia;
    if (source.gates.on(Gate::CBORServingAndStorage)) media.emplace_back("application/cbor");
    paths[root + "/"].operations.push_back(
        document_operation("get" + group_words(group) + capitalized(version) + "APIResources",
                           group_tag(group) + "_" + std::string(version), "Lists the resources of this version.",
                           std::string(kMeta) + "APIResourceList", media));
  }
  for (auto& [path, item] : paths) {
    std::stable_sort(item.operations.begin(), item.operations.end(), [](const Operation& a, const Operation& b) {
      return method_rank(a.method) < method_rank(b.method);
    });
  }
}

void add_group_path(std::string_view group, Paths& paths) {
  paths["/apis/" + std::string(group) + "/"].operations.push_back(
      document_operation("get" + group_words(group) + "APIGroup", group_tag(group), "Describes the group.",
                         std::string(kMeta) + "APIGroup", kDiscoveryMedia));
}

bool add_fixed_path(std::string_view name, Paths& paths) {
  if (name == "api") {
    paths["/api/"].operations.push_back(document_operation("getCoreAPIVersions", "core",
                                                           "Lists the versions of the core group.",
                                                           std::string(kMeta) + "APIVersions", kDiscoveryMedia));
  } else if (name == "apis") {
    paths["/apis/"].operations.push_back(document_operation("getAPIVersions", "apis",
                                                            "Lists the groups and their versions.",
                                                            std::string(kMeta) + "APIGroupList", kDiscoveryMedia));
  } else if (name == "version") {
    paths["/version/"].operations.push_back(
        document_operation("getCodeVersion", "version", "Tells the version of this server.",
                           "io.k8s.apimachinery.pkg.version.Info", {"application/json"}));
  } else if (name == ".well-known/openid-configuration" || name == "openid/v1/jwks") {
    const bool keys = name == "openid/v1/jwks";
    Operation op =
        document_operation(keys ? "getServiceAccountIssuerOpenIDKeyset" : "getServiceAccountIssuerOpenIDConfiguration",
                           keys ? "openid" : "WellKnown",
                           keys ? "Public keys that verify service account tokens."
                                : "Where to find what verifies service account tokens.",
                           "", {keys ? "application/jwk-set+json" : "application/json"});
    op.consumes.clear();
    op.responses = {{200, {.plain_string = true}}, {401, {}}};
    paths["/" + std::string(name) + "/"].operations.push_back(std::move(op));
  } else {
    return false;
  }
  return true;
}

std::set<std::string> referenced_schemas(const Paths& paths) {
  std::set<std::string> names;
  for (const auto& [path, item] : paths) {
    for (const Operation& op : item.operations) {
      if (!op.body.name.empty()) names.insert(op.body.name);
      for (const Response& response : op.responses) {
        if (!response.schema.name.empty()) names.insert(response.schema.name);
      }
    }
  }
  return names;
}

}  // namespace holdfast::openapi
