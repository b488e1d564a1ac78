// What a request asks for: its method, path and query, read once.
//
// The server makes one RequestInfo for each request. Authentication, authorization, priority and fairness, audit,
// metrics and the verbs all look at that one: if two of them read a request by themselves, a client could show each of
// them a different request. Only RequestInfo makes a Query.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "request/query.h"
#include "request/selectors.h"

namespace holdfast::request {

enum class Verb : uint8_t {
  Other,  // Not a verb of the API: OPTIONS and the like.
  Get,
  List,
  Watch,
  Create,
  Update,
  Patch,
  Delete,
  DeleteCollection,
  Proxy,  // /proxy/ before the resource: authorized under this name, no longer served.
};
std::string_view to_string(Verb verb);

// What the method and the path of a request say. Texts are views into the path.
struct Target {
  bool is_resource = false;
  Verb verb = Verb::Other;
  bool legacy_watch = false;  // /watch/ before the resource.
  std::string_view group, version;
  std::string_view ns;  // For namespaces/{x} itself too: authorization sees it.
  std::string_view resource, name, subresource;
  std::string_view rest;  // What follows the subresource: pods/x/proxy/some/path.
  bool has_rest = false;
};

// The query of a list, a watch or a deletecollection.
struct ListQuery {
  ListOptions options;
  std::vector<cache::LabelRequirement> labels;
  std::vector<FieldTerm> fields;  // Views into the query.
};

// Pinned: its parts refer to each other and to the request's memory.
class RequestInfo {
 public:
  RequestInfo(std::string_view method, std::string_view path, std::string_view raw_query);
  RequestInfo(const RequestInfo&) = delete;
  RequestInfo& operator=(const RequestInfo&) = delete;

  const Target& target() const { return target_; }
  const Query& query() const { return query_; }
  std::string_view path() const { return path_; }
  // The verb as authorization and audit see it; of a path that is not a resource the method in lower case.
  std::string_view verb() const { return verb_; }

  // The object that the request is about, as authorization, audit and seats see it: the name in the path or, for a GET
  // of a collection, the one that the field selector demands. As in Kubernetes (NewRequestInfo in
  // endpoints/request/requestinfo.go), deletecollection and /watch/ paths take no name from a selector, and neither
  // does a request whose list options cannot be decoded.
  std::string_view name() const { return target_.name.empty() ? std::string_view(selected_name_) : target_.name; }

  // 400 for what cannot be decoded. Only for list, watch and deletecollection.
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
