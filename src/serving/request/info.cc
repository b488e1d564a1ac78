#include "request/info.h"

#include <vector>

#include "base/strings.h"
#include "kinds/kinds.h"

namespace holdfast::request {
namespace {

std::vector<std::string_view> split_path(std::string_view path) {
  while (!path.empty() && path.front() == '/') path.remove_prefix(1);
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  std::vector<std::string_view> parts;
  parts.reserve(8);
  while (!path.empty()) {
    const size_t slash = path.find('/');
    parts.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  return parts;
}

Verb verb_of(std::string_view method) {
  if (method == "GET" || method == "HEAD") return Verb::Get;
  if (method == "POST") return Verb::Create;
  if (method == "PUT") return Verb::Update;
  if (method == "PATCH") return Verb::Patch;
  if (method == "DELETE") return Verb::Delete;
  return Verb::Other;
}

}  // namespace

std::string_view to_string(Verb verb) {
  switch (verb) {
    case Verb::Get:
      return "get";
    case Verb::List:
      return "list";
    case Verb::Watch:
      return "watch";
    case Verb::Create:
      return "create";
    case Verb::Update:
      return "update";
    case Verb::Patch:
      return "patch";
    case Verb::Delete:
      return "delete";
    case Verb::DeleteCollection:
      return "deletecollection";
    case Verb::Proxy:
      return "proxy";
    case Verb::Other:
      break;
  }
  return "";
}

namespace {

Target parse_target(std::string_view method, std::string_view path, const Query& query) {
  Target info;
  info.verb = verb_of(method);
  const std::vector<std::string_view> parts = split_path(path);
  size_t at = 0;
  if (parts.size() < 3) return info;
  if (parts[0] == "apis") {
    if (parts.size() < 4) return info;
    info.group = parts[1];
    at = 2;
  } else if (parts[0] == "api") {
    at = 1;
  } else {
    return info;
  }
  info.is_resource = true;
  info.version = parts[at++];

  if (parts[at] == "watch" || parts[at] == "proxy") {
    if (parts.size() - at < 2) {
      info.is_resource = false;
      return info;
    }
    info.legacy_watch = parts[at] == "watch";
    info.verb = info.legacy_watch ? Verb::Watch : Verb::Proxy;
    ++at;
  }

  if (parts[at] == "namespaces" && parts.size() - at > 1) {
    info.ns = parts[at + 1];
    // namespaces/{x}/status and /finalize belong to the namespace; anything else is a resource inside it.
    info.in_namespace = parts.size() - at > 2 && parts[at + 2] != "status" && parts[at + 2] != "finalize";
    if (info.in_namespace) at += 2;
  }

  info.resource = parts[at];
  if (parts.size() - at > 1) info.name = parts[at + 1];
  if (parts.size() - at > 2 && info.verb != Verb::Proxy) info.subresource = parts[at + 2];
  if (parts.size() - at > 3) {
    info.has_rest = true;
    const char* begin = parts[at + 3].data();
    info.rest = {begin, static_cast<size_t>(path.data() + path.size() - begin)};
  }

  if (info.name.empty()) {
    if (info.verb == Verb::Get) {
      const std::string* watch = query.find("watch");
      info.verb = watch != nullptr && query_bool(*watch) ? Verb::Watch : Verb::List;
    }
    if (info.verb == Verb::Delete) info.verb = Verb::DeleteCollection;
  }
  return info;
}

Result<ListQuery> parse_list_query(const Query& query) {
  ListQuery list;
  if (query.empty()) return list;
  Result<ListOptions> options = parse_list_options(query);
  if (!options) return options.take_error();
  list.options = std::move(*options);
  Result<std::vector<cache::LabelRequirement>> labels = parse_label_selector(query.get("labelSelector"));
  if (!labels) return labels.take_error();
  list.labels = std::move(*labels);
  Result<std::vector<FieldTerm>> fields = parse_field_terms(query.get("fieldSelector"));
  if (!fields) return fields.take_error();
  list.fields = std::move(*fields);
  return list;
}

bool reads_list_options(Verb verb) {
  return verb == Verb::List || verb == Verb::Watch || verb == Verb::DeleteCollection;
}

// The name required by the first term for metadata.name, if it is a valid object name.
std::string demanded_name(const std::vector<FieldTerm>& terms) {
  for (const FieldTerm& term : terms) {
    if (!term.equal || term.field != "metadata.name") continue;
    return kinds::path_segment_errors(term.value).empty() ? term.value : std::string();
  }
  return "";
}

}  // namespace

RequestInfo::RequestInfo(std::string_view method, std::string_view path, std::string_view raw_query)
    : query_(raw_query),
      path_(path),
      target_(parse_target(method, path, query_)),
      verb_(target_.is_resource ? std::string(to_string(target_.verb)) : to_lower(method)),
      list_(reads_list_options(target_.verb) ? parse_list_query(query_) : ListQuery{}) {
  const bool collection = target_.is_resource && target_.name.empty() && !target_.legacy_watch;
  if (collection && (target_.verb == Verb::List || target_.verb == Verb::Watch) && list_) {
    selected_name_ = demanded_name(list_->fields);
  }
}

}  // namespace holdfast::request
