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

// Names a schema; or, when `plain_string`, is just text.
struct SchemaRef {
  std::string name;
  bool plain_string = false;
};

struct Response {
  int code;
  SchemaRef schema;  // Empty name and no plain string: no body described.
};

struct Operation {
  std::string method;  // get, put, post, delete, options, head, patch
  std::string id, tag, description;
  std::vector<Parameter> parameters;
  SchemaRef body;
  std::vector<std::string> body_media;
  bool body_required = false;
  bool unset_markers = false;  // An apply patch may hold {k8s_io__value: unset}.
  std::vector<std::string> produces;
  std::vector<std::string> consumes;  // v2.
  std::vector<Response> responses;
  std::string action;  // x-kubernetes-action; empty: none.
  KindName kind;       // x-kubernetes-group-version-kind; empty kind: none.
};

struct PathItem {
  std::vector<Operation> operations;  // In the order of methods above.
};

using Paths = std::map<std::string, PathItem>;

// What is served below /api/v1 or /apis/GROUP/VERSION.
void add_group_version_paths(const Source& source, std::string_view group, std::string_view version, Paths& paths);
void add_group_path(std::string_view group, Paths& paths);  // /apis/GROUP/
// "api", "apis", "version", ".well-known/openid-configuration", "openid/v1/jwks".
bool add_fixed_path(std::string_view name, Paths& paths);

// The names of schemas that the paths mention.
std::set<std::string> mentioned_schemas(const Paths& paths);

enum class Form : uint8_t { V2, V3 };

// Every schema in `names` and all that they refer to, sorted by name. `group` and `version` are of the document (v3),
// whose kinds of options are listed beside the core ones; empty for v2, which lists them for all.
Value schemas(Arena& arena, const Source& source, Form form, std::set<std::string> names, std::string_view group,
              std::string_view version);

// A v2 document with the paths of other servers, and the definitions that these refer to. A name that means something
// else here gets a number.
Value with_remotes(Arena& arena, const Value& document, std::span<const Remote> remotes);

// Gnostic's Protobuf form of a v2 document.
std::string v2_to_protobuf(const Value& document);

}  // namespace holdfast::openapi
