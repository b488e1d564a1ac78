#include "api/openapi_endpoint.h"

#include <algorithm>
#include <ctime>

#include "api/state.h"
#include "openapi/openapi.h"

namespace holdfast::api {
namespace {

constexpr std::string_view kV2Protobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

std::vector<openapi::Served> served_of(const Registry::Snapshot& registry) {
  std::vector<openapi::Served> all;
  for (const Served& entry : registry.all()) {
    if (!entry.established) continue;
    all.push_back({entry.resource, entry.custom, entry.custom ? entry.version->schema.get() : nullptr});
  }
  return all;
}

bool is_custom_path(std::string_view path) {
  if (!path.starts_with("apis/")) return false;
  const std::string_view group = path.substr(5, path.find('/', 5) - 5);
  return !Registry::Snapshot::is_builtin_group(group);
}

// Whether a clause of Accept takes one of these types; nothing asked takes anything.
bool accepts(const Call& call, std::initializer_list<std::string_view> types) {
  const std::string_view accept = call.request.headers.get("accept");
  if (accept.empty()) return true;
  for (const AcceptClause& clause : parse_accept(accept)) {
    const std::string type = std::string(clause.type) + "/" + std::string(clause.subtype);
    for (std::string_view candidate : types) {
      if (type == candidate || type == "*/*" || (type == "application/*" && candidate == "application/json"))
        return true;
    }
  }
  return false;
}

bool prefers_v2_protobuf(const Call& call) {
  const std::string_view accept = call.request.headers.get("accept");
  for (const AcceptClause& clause : parse_accept(accept)) {
    const std::string_view subtype = clause.subtype;
    if (subtype == "com.github.proto-openapi.spec.v2@v1.0+protobuf" ||
        subtype == "com.github.proto-openapi.spec.v2.v1.0+protobuf")
      return true;
    if (subtype == "json" || subtype == "*") return false;
  }
  return false;
}

std::string http_date(int64_t seconds) {
  const std::time_t time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[64];
  std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S UTC", &parts);
  return text;
}

void send_empty(Call& call, int code) { (void)call.response.send(code, net::Body(std::string())); }

void serve_v3(Call& call, std::string_view path) {
  OpenApiDocuments& documents = *call.api.openapi;
  const uint64_t version = call.api.registry.version();
  if (path.empty()) {
    return respond(call, 200, net::Body(documents.v3_index(*call.registry, version, call.api.options.gates)),
                   "text/plain; charset=utf-8");
  }
  if (!accepts(call, {"application/json"})) return send_empty(call, 406);
  const OpenApiDocuments::DocumentRef document = documents.v3(*call.registry, version, call.api.options.gates, path);
  if (document == nullptr) return send_empty(call, 404);
  const std::string etag = "\"" + document->hash + "\"";
  if (const std::string* asked = call.query.find("hash"); asked != nullptr) {
    if (*asked != document->hash) {
      call.response.set_header("location", "/openapi/v3/" + std::string(path) + "?hash=" + document->hash);
      return send_empty(call, 301);
    }
    constexpr int64_t kYear = 365 * 24 * 3600;
    call.response.set_header("cache-control", "public, immutable");
    call.response.set_header("expires", http_date(call.api.deps.clock->now().seconds + kYear));
  }
  call.response.set_header("etag", etag);
  call.response.set_header("vary", "Accept");
  if (call.request.headers.get("if-none-match") == etag) return send_empty(call, 304);
  respond(call, 200, net::Body(document->json), "application/json");
}

void serve_v2(Call& call) {
  OpenApiDocuments& documents = *call.api.openapi;
  const OpenApiDocuments::DocumentRef document =
      documents.v2(*call.registry, call.api.registry.version(), call.api.options.gates);
  const bool protobuf = prefers_v2_protobuf(call);
  if (!protobuf && !accepts(call, {"application/json"})) return send_empty(call, 406);
  const std::string etag = "\"" + document->hash + "\"";
  call.response.set_header("etag", etag);
  call.response.set_header("vary", "Accept-Encoding, Accept");
  if (call.request.headers.get("if-none-match") == etag) return send_empty(call, 304);
  if (protobuf) {
    return respond(call, 200, net::Body(documents.v2_protobuf(*call.registry, call.api.options.gates)), kV2Protobuf);
  }
  respond(call, 200, net::Body(document->json), "application/json");
}

}  // namespace

void OpenApiDocuments::keep(std::string path, DocumentRef document, uint64_t version) {
  if (version == 0) builtin_hashes_[path] = document->hash;
  kept_[std::move(path)] = {std::move(document), version, ++uses_};
  if (kept_.size() <= kKeptDocuments) return;
  const auto oldest = std::min_element(kept_.begin(), kept_.end(),
                                       [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
  kept_.erase(oldest);
}

OpenApiDocuments::DocumentRef OpenApiDocuments::v3(const Registry::Snapshot& registry, uint64_t version,
                                                   const Gates& gates, std::string_view path) {
  const uint64_t wanted = is_custom_path(path) ? version : 0;
  const std::lock_guard lock(mutex_);
  if (const auto found = kept_.find(path); found != kept_.end() && found->second.version == wanted) {
    found->second.used = ++uses_;
    return found->second.document;
  }
  const std::vector<openapi::Served> served = served_of(registry);
  auto document = std::make_shared<Document>();
  document->json = openapi::v3_document({served, gates}, path);
  if (document->json.empty()) return nullptr;
  document->hash = openapi::document_hash(document->json);
  keep(std::string(path), document, wanted);
  return document;
}

std::string OpenApiDocuments::v3_index(const Registry::Snapshot& registry, uint64_t version, const Gates& gates) {
  const std::vector<openapi::Served> served = served_of(registry);
  const std::vector<std::string> paths = openapi::v3_paths({served, gates});
  std::vector<std::string> hashes;
  for (const std::string& path : paths) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = builtin_hashes_.find(path); known != builtin_hashes_.end() && !is_custom_path(path)) {
        hashes.push_back(known->second);
        continue;
      }
    }
    const DocumentRef document = v3(registry, version, gates, path);
    hashes.push_back(document == nullptr ? "" : document->hash);
  }
  return openapi::v3_index(paths, hashes);
}

OpenApiDocuments::DocumentRef OpenApiDocuments::v2(const Registry::Snapshot& registry, uint64_t version,
                                                   const Gates& gates) {
  constexpr std::string_view kPath = "v2";
  const std::lock_guard lock(mutex_);
  if (const auto found = kept_.find(kPath); found != kept_.end() && found->second.version == version) {
    found->second.used = ++uses_;
    return found->second.document;
  }
  const std::vector<openapi::Served> served = served_of(registry);
  auto document = std::make_shared<Document>();
  document->json = openapi::v2_document({served, gates});
  document->hash = openapi::document_hash(document->json);
  keep(std::string(kPath), document, version);
  return document;
}

std::string OpenApiDocuments::v2_protobuf(const Registry::Snapshot& registry, const Gates& gates) {
  const std::vector<openapi::Served> served = served_of(registry);
  return openapi::v2_protobuf({served, gates});
}

Task<void> serve_openapi(Call& call) {
  std::string_view path = call.request.path;
  while (path.ends_with('/')) path.remove_suffix(1);
  if (call.request.method != "GET" && call.request.method != "HEAD") {
    co_return respond(call, 405, net::Body(std::string("Method Not Allowed\n")), "text/plain; charset=utf-8");
  }
  if (path == "/openapi/v2") co_return serve_v2(call);
  if (path == "/openapi/v3") co_return serve_v3(call, "");
  if (path.starts_with("/openapi/v3/")) co_return serve_v3(call, path.substr(12));
  respond(call, 404, net::Body(std::string("404 page not found\n")), "text/plain; charset=utf-8");
}

}  // namespace holdfast::api
