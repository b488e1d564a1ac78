#include "verbs/openapi_endpoint.h"
#include "verbs/each.h"

#include <algorithm>
#include <ctime>

#include "base/hash.h"
#include "codec/codec.h"
#include "types/descriptions.h"

namespace holdfast::verbs {
namespace {

constexpr std::string_view kV2Protobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
                           kV3Protobuf = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";

std::vector<openapi::Served> served_of(const resource::Registry::Snapshot& registry) {
  std::vector<openapi::Served> all;
  for (const resource::Served& entry : registry.all()) {
    if (!entry.established) continue;
    openapi::Served served{.resource = entry.resource, .custom = entry.custom};
    if (entry.custom) {
      served.schema = entry.version->published.get();
      served.selectable_fields = entry.version->selectable_fields;
    }
    all.push_back(served);
  }
  return all;
}

// The group in a custom resource's path, "apis/GROUP/VERSION"; empty for other paths.
std::string_view custom_group(std::string_view path) {
  if (!path.starts_with("apis/")) return {};
  const std::string_view group = path.substr(5, path.find('/', 5) - 5);
  return resource::Registry::Snapshot::is_builtin_group(group) ? std::string_view() : group;
}

// Fingerprint of the input of a custom group version's document; never 0.
uint64_t fingerprint_of(std::span<const openapi::Served> of_group) {
  uint64_t all = 1;
  const auto add = [&all](std::string_view text) { all = hash_bytes(text, all); };
  for (const openapi::Served& served : of_group) {
    const types::Resource& resource = *served.resource;
    for (const std::string_view text :
         {resource.version, resource.plural, resource.singular, resource.kind, resource.list_kind}) {
      add(text);
    }
    for (const std::string_view verb : resource.verbs) add(verb);
    for (const types::Subresource& sub : resource.subresources) add(sub.name);
    for (const std::string& field : served.selectable_fields) add(field);
    all = hash_combine(all, (resource.namespaced ? 2 : 1) + served.schema->fingerprint());
  }
  return all | 1;
}

std::vector<openapi::Served> of_group(std::span<const openapi::Served> all, std::string_view group) {
  std::vector<openapi::Served> found;
  for (const openapi::Served& served : all) {
    if (served.custom && served.resource->group == group) found.push_back(served);
  }
  return found;
}

// The v2 documents of other servers, decoded into `arena`.
std::vector<openapi::Remote> documents_of(Arena& arena, const aggregate::RemoteApis* remotes) {
  std::vector<openapi::Remote> all;
  if (remotes == nullptr) return all;
  for (const aggregate::RemoteApi& remote : *remotes) {
    if (remote.openapi_v2 == nullptr) continue;
    Result<Value> document = codec::decode_json(arena, arena.copy(*remote.openapi_v2));
    if (!document || !document->is_map()) continue;
    all.push_back({"/apis/" + remote.group + "/" + remote.version + "/", *document});
  }
  return all;
}

// Whether Accept allows one of these types; a missing header allows all.
bool accepts(const call::Call& call, std::initializer_list<std::string_view> types) {
  const std::string_view accept = call.request.headers.get("accept");
  if (accept.empty()) return true;
  for (const request::AcceptClause& clause : request::parse_accept(accept)) {
    const std::string type = std::string(clause.type) + "/" + std::string(clause.subtype);
    for (std::string_view candidate : types) {
      if (type == candidate || type == "*/*" || (type == "application/*" && candidate == "application/json"))
        return true;
    }
  }
  return false;
}

// Whether Accept prefers the Protobuf form of v2 or v3 over JSON.
bool prefers_protobuf(const call::Call& call, std::string_view version) {
  const std::string known = "com.github.proto-openapi.spec." + std::string(version);
  for (const request::AcceptClause& clause : request::parse_accept(call.request.headers.get("accept"))) {
    if (clause.subtype == known + ".v1.0+protobuf" || clause.subtype == known + "@v1.0+protobuf") return true;
    if (clause.subtype == "json" || clause.subtype == "*") return false;
  }
  return false;
}

std::string v3_path_of(const aggregate::RemoteApi& remote) { return "apis/" + remote.group + "/" + remote.version; }

std::string http_date(int64_t seconds) {
  const std::time_t time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[64];
  std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S UTC", &parts);
  return text;
}

void send_empty(call::Call& call, int code) { (void)call.response.send(code, net::Body(std::string())); }

// The document itself, which is not copied.
net::Body body_of(const OpenApiDocuments::DocumentRef& document) {
  return net::Body(net::Bytes(document->json, document));
}

// The gates as documents describe them: Kubernetes' rule for drop= is not listed, as there.
Gates described_gates(const call::Settings& settings) {
  return settings.accept_rule == request::AcceptRule::Kubernetes ? settings.gates.with(Gate::ManagedFieldsOptOut, false)
                                                                 : settings.gates;
}

// Making a document of many kinds takes a long time, and clients ask for several in a row: neither happens on the loop.
Task<void> serve_v3(call::Call& call, const Parts& parts, std::string_view path) {
  OpenApiDocuments& documents = parts.openapi;
  co_await leave_loop(call);
  const aggregate::RemoteApisRef remotes = parts.aggregation.remotes();
  if (path.empty()) {
    std::string index = documents.v3_index(*call.registry, described_gates(call.settings), remotes.get());
    co_return respond(call, 200, net::Body(std::move(index)), "text/plain; charset=utf-8");
  }
  const OpenApiDocuments::DocumentRef document =
      documents.v3(*call.registry, described_gates(call.settings), path, remotes.get());
  const bool protobuf = prefers_protobuf(call, "v3");
  const std::string* asked = call.query.find("hash");
  const std::string etag = document == nullptr ? std::string() : "\"" + document->hash + "\"";
  const bool moved = document != nullptr && asked != nullptr && *asked != document->hash;
  const bool unchanged = document != nullptr && call.request.headers.get("if-none-match") == etag;
  Result<std::string> packed = std::string();
  if (document != nullptr && protobuf && !moved && !unchanged) {
    Arena arena;
    Result<Value> tree = codec::decode_json(arena, document->json);
    if (tree) {
      packed = openapi::v3_to_protobuf(*tree);
    } else {
      packed = tree.take_error();
    }
  }
  co_await return_to_loop(call);

  if (document == nullptr) co_return send_empty(call, 404);
  if (!protobuf && !accepts(call, {"application/json"})) co_return send_empty(call, 406);
  if (moved) {
    call.response.set_header("location", "/openapi/v3/" + std::string(path) + "?hash=" + document->hash);
    co_return send_empty(call, 301);
  }
  if (asked != nullptr) {
    constexpr int64_t kYear = 365 * 24 * 3600;
    call.response.set_header("cache-control", "public, immutable");
    call.response.set_header("expires", http_date(call.clock.now().seconds + kYear));
  }
  call.response.set_header("etag", etag);
  call.response.set_header("vary", "Accept");
  if (unchanged) co_return send_empty(call, 304);
  if (!packed) co_return respond_error(call, packed.error());
  if (protobuf) co_return respond(call, 200, net::Body(std::move(*packed)), kV3Protobuf);
  respond(call, 200, body_of(document), "application/json");
}

Task<void> serve_v2(call::Call& call, const Parts& parts) {
  OpenApiDocuments& documents = parts.openapi;
  co_await leave_loop(call);
  const aggregate::RemoteApisRef remotes = parts.aggregation.remotes();
  const uint64_t version = hash_combine(parts.registry.version(), parts.aggregation.openapi_version());
  const OpenApiDocuments::DocumentRef document =
      documents.v2(*call.registry, version, described_gates(call.settings), remotes.get());
  const bool protobuf = prefers_protobuf(call, "v2");
  const std::string etag = "\"" + document->hash + "\"";
  const bool unchanged = call.request.headers.get("if-none-match") == etag;
  std::string packed;
  if (protobuf && !unchanged) {
    packed = documents.v2_protobuf(*call.registry, described_gates(call.settings), remotes.get());
  }
  co_await return_to_loop(call);

  if (!protobuf && !accepts(call, {"application/json"})) co_return send_empty(call, 406);
  call.response.set_header("etag", etag);
  call.response.set_header("vary", "Accept-Encoding, Accept");
  if (unchanged) co_return send_empty(call, 304);
  if (protobuf) co_return respond(call, 200, net::Body(std::move(packed)), kV2Protobuf);
  respond(call, 200, body_of(document), "application/json");
}

}  // namespace

void OpenApiDocuments::keep(std::string path, DocumentRef document, uint64_t version) {
  kept_[std::move(path)] = {std::move(document), version, ++uses_};
  if (kept_.size() <= kKeptDocuments) return;
  const auto oldest = std::min_element(kept_.begin(), kept_.end(),
                                       [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
  kept_.erase(oldest);
}

OpenApiDocuments::DocumentRef OpenApiDocuments::find(std::string_view path, uint64_t version) {
  const auto found = kept_.find(path);
  if (found == kept_.end() || found->second.version != version) return nullptr;
  found->second.used = ++uses_;
  return found->second.document;
}

OpenApiDocuments::DocumentRef OpenApiDocuments::make_v3(std::span<const openapi::Served> served, const Gates& gates,
                                                        std::string_view path, uint64_t version) {
  if (DocumentRef known = find(path, version)) return known;
  auto document = std::make_shared<Document>();
  document->json = openapi::v3_document({served, gates}, path);
  if (document->json.empty()) return nullptr;
  document->hash = openapi::document_hash(document->json);
  hashes_[std::string(path)] = {version, document->hash};
  keep(std::string(path), document, version);
  return document;
}

OpenApiDocuments::DocumentRef OpenApiDocuments::converted(const aggregate::RemoteApi& remote) {
  const std::string path = v3_path_of(remote);
  const uint64_t version = hash_bytes(*remote.openapi_v2) | 1;
  if (DocumentRef known = find(path, version)) return known;
  Arena arena;
  Result<Value> v2 = codec::decode_json(arena, *remote.openapi_v2);
  if (!v2 || !v2->is_map()) return nullptr;
  auto document = std::make_shared<Document>();
  document->json = codec::encode_json(openapi::v3_from_v2(arena, *v2));
  document->hash = openapi::document_hash(document->json);
  hashes_[path] = {version, document->hash};
  keep(path, document, version);
  return document;
}

OpenApiDocuments::DocumentRef OpenApiDocuments::v3(const resource::Registry::Snapshot& registry, const Gates& gates,
                                                   std::string_view path, const aggregate::RemoteApis* remotes) {
  for (const aggregate::RemoteApi& remote : remotes == nullptr ? aggregate::RemoteApis{} : *remotes) {
    if (!remote.has_only_v2() || path != v3_path_of(remote)) continue;
    const std::lock_guard lock(mutex_);
    return converted(remote);
  }
  std::vector<openapi::Served> served = served_of(registry);
  uint64_t version = 0;
  if (const std::string_view group = custom_group(path); !group.empty()) {
    served = of_group(served, group);
    if (served.empty()) return nullptr;
    version = fingerprint_of(served);
  }
  const std::lock_guard lock(mutex_);
  return make_v3(served, gates, path, version);
}

std::string OpenApiDocuments::v3_index(const resource::Registry::Snapshot& registry, const Gates& gates,
                                       const aggregate::RemoteApis* remotes) {
  const std::vector<openapi::Served> served = served_of(registry);
  std::map<std::string_view, std::vector<openapi::Served>> custom;  // By group.
  for (const openapi::Served& one : served) {
    if (one.custom) custom[one.resource->group].push_back(one);
  }
  std::map<std::string, std::string> urls;               // By path.
  const auto descriptions = types::Descriptions::get();  // Unpacked once for all documents.
  for (const std::string& path : openapi::v3_paths({served, gates})) {
    const auto group = custom.find(custom_group(path));
    const std::span<const openapi::Served> from = group == custom.end() ? served : group->second;
    const uint64_t version = group == custom.end() ? 0 : fingerprint_of(from);
    const std::lock_guard lock(mutex_);
    const auto known = hashes_.find(path);
    std::string hash;
    if (known != hashes_.end() && known->second.version == version) {
      hash = known->second.hash;
    } else if (const DocumentRef document = make_v3(from, gates, path, version)) {
      hash = document->hash;
    }
    urls.emplace(path, "/openapi/v3/" + path + "?hash=" + hash);
  }
  Arena arena;
  for (const aggregate::RemoteApi& remote : remotes == nullptr ? aggregate::RemoteApis{} : *remotes) {
    const std::string path = v3_path_of(remote);
    if (remote.has_only_v2()) {
      const std::lock_guard lock(mutex_);
      if (const DocumentRef document = converted(remote)) {
        urls.insert_or_assign(path, "/openapi/v3/" + path + "?hash=" + document->hash);
      }
      continue;
    }
    if (remote.openapi_v3 == nullptr) continue;
    Result<Value> index = codec::decode_json(arena, arena.copy(*remote.openapi_v3));
    if (!index) continue;
    const std::string_view url = index->text_at("paths", path, "serverRelativeURL");
    if (!url.empty()) urls.insert_or_assign(path, std::string(url));
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(hashes_, [&](const auto& known) { return !urls.contains(known.first); });
  return openapi::v3_index(urls);
}

OpenApiDocuments::DocumentRef OpenApiDocuments::v2(const resource::Registry::Snapshot& registry, uint64_t version,
                                                   const Gates& gates, const aggregate::RemoteApis* remotes) {
  constexpr std::string_view kPath = "v2";
  const std::lock_guard lock(mutex_);
  if (DocumentRef known = find(kPath, version)) return known;
  Arena arena;
  const std::vector<openapi::Served> served = served_of(registry);
  const std::vector<openapi::Remote> others = documents_of(arena, remotes);
  auto document = std::make_shared<Document>();
  document->json = openapi::v2_document({served, gates, others});
  document->hash = openapi::document_hash(document->json);
  keep(std::string(kPath), document, version);
  return document;
}

std::string OpenApiDocuments::v2_protobuf(const resource::Registry::Snapshot& registry, const Gates& gates,
                                          const aggregate::RemoteApis* remotes) {
  Arena arena;
  const std::vector<openapi::Served> served = served_of(registry);
  const std::vector<openapi::Remote> others = documents_of(arena, remotes);
  return openapi::v2_protobuf({served, gates, others});
}

Task<void> serve_openapi(call::Call& call, const Parts& parts) {
  std::string_view path = call.request.path;
  while (path.ends_with('/')) path.remove_suffix(1);
  if (call.request.method != "GET" && call.request.method != "HEAD") {
    co_return respond(call, 405, net::Body(std::string("Method Not Allowed\n")), "text/plain; charset=utf-8");
  }
  if (path == "/openapi/v2") co_return co_await serve_v2(call, parts);
  if (path == "/openapi/v3") co_return co_await serve_v3(call, parts, "");
  if (path.starts_with("/openapi/v3/")) co_return co_await serve_v3(call, parts, path.substr(12));
  respond_path_not_found(call, parts);
}

}  // namespace holdfast::verbs
