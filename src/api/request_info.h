// What a URL asks for: the grammar of rest.md 1.1.
#pragma once

#include <string_view>

#include "base/error.h"

namespace holdfast::api {

enum class Verb : uint8_t {
  Other,  // No verb of the API: OPTIONS and the like.
  Get,
  List,
  Watch,
  Create,
  Update,
  Patch,
  Delete,
  DeleteCollection,
};
std::string_view to_string(Verb verb);

// Texts are views into the path that was parsed.
struct RequestInfo {
  bool is_resource = false;
  Verb verb = Verb::Other;
  bool legacy_watch = false;  // /watch/ before the resource.
  bool legacy_proxy = false;  // /proxy/ before the resource: no route serves it any more.
  std::string_view group, version;
  std::string_view ns;  // Of namespaces/{x} itself too: authorization sees it.
  std::string_view resource, name, subresource;
  std::string_view rest;  // Behind the subresource: pods/x/proxy/some/path.
  bool has_rest = false;  // Something stands behind the subresource.
};

// `watch` is whether the query says watch=true: a GET of a collection is then a watch.
RequestInfo parse_request_info(std::string_view method, std::string_view path, bool watch);

}  // namespace holdfast::api
