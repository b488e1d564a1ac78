#include "console/forward.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/strings.h"
#include "codec/json.h"
#include "net/net.h"

namespace holdfast::console {

namespace {

// The segments of the path, decoded; nullopt if one of them does not stand for itself: empty, with an encoded slash, or
// "." and "..", which a server may resolve.
std::optional<std::vector<std::string>> segments_of(std::string_view path) {
  if (!path.starts_with('/')) return std::nullopt;
  std::vector<std::string> segments;
  for (const std::string_view part : split(path.substr(1), '/')) {
    std::optional<std::string> segment = net::percent_decode(part);
    if (!segment || segment->empty() || *segment == "." || *segment == ".." ||
        segment->find_first_of(std::string_view("/\\?#\0", 5)) != std::string::npos) {
      return std::nullopt;
    }
    segments.push_back(std::move(*segment));
  }
  return segments;
}

struct ApiPath {
  size_t begin;  // Where the resource begins: after the version.
  bool known;
};

// [api, v1] or [apis, GROUP, VERSION].
ApiPath api_path_of(std::span<const std::string> segments) {
  if (segments.size() >= 2 && segments[0] == "api") return {2, true};
  if (segments.size() >= 3 && segments[0] == "apis") return {3, true};
  return {0, false};
}

// Discovery and documents, which concern no object.
bool is_document(std::span<const std::string> segments) {
  if (segments.size() == 1) return segments[0] == "version" || segments[0] == "api" || segments[0] == "apis";
  if (segments[0] == "openapi") return segments[1] == "v3";
  if (segments[0] == "apis") return segments.size() <= 3;
  return segments[0] == "api" && segments.size() == 2;
}

// The parts of an object's path after the version: RESOURCE[/NAME], or the same in a namespace.
std::span<const std::string> without_namespace(std::span<const std::string> parts) {
  return parts.size() > 2 && parts[0] == "namespaces" ? parts.subspan(2) : parts;
}

bool is_self_review(std::span<const std::string> segments) {
  constexpr std::string_view kReviews[] = {"selfsubjectreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"};
  return segments.size() == 4 && segments[0] == "apis" &&
         (segments[1] == "authentication.k8s.io" || segments[1] == "authorization.k8s.io") &&
         std::find(std::begin(kReviews), std::end(kReviews), segments[3]) != std::end(kReviews);
}

}  // namespace

std::optional<Rejected> check_call(std::string_view method, std::string_view path, std::string_view content_type) {
  const std::optional<std::vector<std::string>> segments = segments_of(path);
  if (!segments) return Rejected{400, "the path is not one of an API server"};
  const ApiPath api = api_path_of(*segments);
  const std::span<const std::string> object =
      api.known ? without_namespace(std::span(*segments).subspan(api.begin)) : std::span<const std::string>();
  // Objects have no more than a resource and a name here. Subresources do: among them are those that run commands, open
  // tunnels, and reach other servers, some of them by GET.
  const bool names_object = api.known && (object.size() == 1 || object.size() == 2);
  if (method == "GET") {
    if (names_object || is_document(*segments)) return std::nullopt;
    return Rejected{403, "the console does not read this path"};
  }
  if (method == "PATCH") {
    if (!names_object || object.size() != 2) return Rejected{403, "the console does not write to this path"};
    if (content_type != "application/apply-patch+yaml") return Rejected{415, "the console only applies"};
    return std::nullopt;
  }
  if (method == "POST" && is_self_review(*segments)) {
    if (content_type != "application/json") return Rejected{415, "a review must be JSON"};
    return std::nullopt;
  }
  return Rejected{405, "the console reads and applies only"};
}

std::string status_of(const Error& error, int code) {
  const auto add = [](std::string& out, std::string_view name, std::string_view value) {
    if (value.empty()) return;
    out += out.ends_with('{') ? "\"" : ",\"";
    out += std::string(name) + "\":";
    codec::encode_json_string(value, out);
  };
  std::string out = R"({"kind":"Status","apiVersion":"v1","status":"Failure")";
  add(out, "message", error.message);
  out += ",\"details\":{\"causes\":[";
  for (const Cause& cause : error.causes) {
    out += out.ends_with('[') ? "{" : ",{";
    add(out, "reason", cause.type);
    add(out, "message", cause.message);
    add(out, "field", cause.field);
    out += '}';
  }
  out += "]},\"metadata\":{";
  add(out, "continue", error.continue_token);
  return out + "},\"code\":" + std::to_string(code) + "}";
}

}  // namespace holdfast::console
