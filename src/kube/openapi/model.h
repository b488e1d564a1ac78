// Private to the module: the operations of a set of resources, before they are rendered as v2 or v3.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "openapi/openapi.h"

namespace holdfast::openapi {

struct Parameter {
  std::string_view name, in, type;
  bool required = false;
  auto operator<=>(const Parameter&) const = default;
};

struct KindName {
  std::string group, version, kind;
  auto operator<=>(const KindName&) const = default;
};

// Names a schema, or is just text if `plain_string` is set.
struct SchemaRef {
  std::string name;
  bool plain_string = false;
};

struct Response {
  int code;
  SchemaRef schema;  // Empty name and not a plain string: no body described.
};

struct Operation {
  std::string method;  // get, put, post, delete, options, head, patch
  std::string id, tag, description;
  std::vector<Parameter> parameters;
  SchemaRef body;
  std::vector<std::string> body_media;
  bool body_required = false;
  bool unset_markers = false;  // An apply patch may contain {k8s_io__value: unset}.
  std::vector<std::string> produces;
  std::vector<std::string> consumes;  // v2 only.
  std::vector<Response> responses;
  std::string action;  // x-kubernetes-action, or empty.
  KindName kind;       // x-kubernetes-group-version-kind; empty kind if there is none.
};

struct PathItem {
  std::vector<Operation> operations;  // In the order of methods above.
};

using Paths = std::map<std::string, PathItem>;

// Everything served below /api/v1 or /apis/GROUP/VERSION.
void add_group_version_paths(const Source& source, std::string_view group, std::string_view version, Paths& paths);
void add_group_path(std::string_view group, Paths& paths);  // /apis/GROUP/
// "api", "apis", "version", ".well-known/openid-configuration", "openid/v1/jwks".
bool add_fixed_path(std::string_view name, Paths& paths);

// The names of schemas that the paths refer to.
std::set<std::string> referenced_schemas(const Paths& paths);

enum class Form : uint8_t { V2, V3 };

// The schemas in `names` and all that they refer to, sorted by name. `group` and `version` are those of the document
// (v3), whose option kinds are listed in addition to the core ones; empty for v2, which lists those of all groups.
Value schemas(Arena& arena, const Source& source, Form form, std::set<std::string> names, std::string_view group,
              std::string_view version);

// A v2 document with the paths of other servers and the definitions that these refer to. A definition whose name is
// already used for something else is renamed with a numbered suffix.
Value with_remotes(Arena& arena, const Value& document, std::span<const Remote> remotes);

// Gnostic's Protobuf form of a v2 document.
std::string v2_to_protobuf(const Value& document);

}  // namespace holdfast::openapi
