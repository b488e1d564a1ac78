// The method, path and query of a request, parsed once.
//
// The server creates one RequestInfo per request. Authentication, authorization, priority and fairness, audit, metrics
// and the verbs all use it: if two of them parsed a request independently, a client could make them see different
// requests. Only RequestInfo creates a Query.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "request/query.h"
#include "request/selectors.h"

namespace holdfast::request {

enum class Verb : uint8_t {
  Other,  // Not an API verb, for example OPTIONS.
  Get,
  List,
  Watch,
  Create,
  Update,
  Patch,
  Delete,
  DeleteCollection,
  Proxy,  // /proxy/ before the resource: authorized under this name, but no longer served.
};
std::string_view to_string(Verb verb);

// Parsed from the method and path of a request. All strings are views into the path.
struct Target {
  bool is_resource = false;
  Verb verb = Verb::Other;
  bool legacy_watch = false;  // /watch/ before the resource.
  std::string_view group, version;
  std::string_view ns;        // Also set for namespaces/{x} itself, for authorization.
  bool in_namespace = false;  // The path has namespaces/{ns} before the resource.
  std::string_view resource, name, subresource;
  std::string_view rest;  // The path after the subresource: pods/x/proxy/some/path.
  bool has_rest = false;
};

// The parsed query of a list, watch or deletecollection.
struct ListQuery {
  ListOptions options;
  std::vector<cache::LabelRequirement> labels;
  std::vector<FieldTerm> fields;  // Views into the query.
};

// Not movable: its members refer to each other and to the request's memory.
class RequestInfo {
 public:
  RequestInfo(std::string_view method, std::string_view path, std::string_view raw_query);
  RequestInfo(const RequestInfo&) = delete;
  RequestInfo& operator=(const RequestInfo&) = delete;

  const Target& target() const { return target_; }
  const Query& query() const { return query_; }
  std::string_view path() const { return path_; }
  // The verb for authorization and audit; for non-resource paths, the method in lower case.
  std::string_view verb() const { return verb_; }

  // The object name for authorization, audit and seats: the name in the path or, for a GET of a collection, the one
  // required by the field selector. As in Kubernetes (NewRequestInfo in endpoints/request/requestinfo.go), it is not
  // taken from the selector for deletecollection and /watch/ paths, nor if the list options cannot be decoded.
  std::string_view name() const { return target_.name.empty() ? std::string_view(selected_name_) : target_.name; }

  // 400 if the options cannot be decoded. Only for list, watch and deletecollection.
  const Result<ListQuery>& list() const { return list_; }

 private:
  const Query query_;
  const std::string_view path_;
  Target target_;
  const std::string verb_;
  Result<ListQuery> list_;
  std::string selected_name_;
};

}  // namespace holdfast::request
