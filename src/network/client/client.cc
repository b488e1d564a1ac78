// Client and discovery.
#include "client/api.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/api_version.h"
#include "base/clock.h"
#include "base/strings.h"
#include "client/core.h"
#include "client/files.h"

namespace holdfast::client {

struct Client::Owned {
  std::unique_ptr<net::Loops> loops;
};

Resource builtin(std::string_view api_version, std::string_view kind) {
  const auto [group, version] = split_api_version(api_version);
  const types::Resource* found = types::find_kind(group, version, kind);
  assert(found != nullptr);
  return Resource{std::string(group), std::string(version), std::string(found->plural), std::string(kind),
                  found->namespaced};
}

Client::Client(std::unique_ptr<Owned> owned, std::shared_ptr<Core> core)
    : owned_(std::move(owned)), core_(std::move(core)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&& other) noexcept {
  if (this != &other) {
    if (core_) core_->close();
    core_ = std::move(other.core_);
    owned_ = std::move(other.owned_);
  }
  return *this;
}
Client::~Client() {
  if (core_) core_->close();
}

Result<Client> Client::connect(Options options) {
  Result<Config> config = Config::load();
  if (!config) return config.take_error();
  return connect(*config, std::move(options));
}

Result<Client> Client::connect(const Config& config, Options options) {
  auto owned = std::make_unique<Owned>();
  owned->loops = std::make_unique<net::Loops>(1);
  Result<Client> client = connect(owned->loops->at(0), config, std::move(options));
  if (client) client->owned_ = std::move(owned);
  return client;
}

Result<Client> Client::connect(net::EventLoop& loop, const Config& config, Options options) {
  Result<ServerUrl> url = parse_server(config.server);
  if (!url) return url.take_error();
  if (Result<Unit> valid = check_fields(options.drop_fields); !valid) return valid.take_error();
  auto core = std::make_shared<Core>(loop, config, std::move(options));
  core->url = std::move(*url);
  return Client(nullptr, std::move(core));
}

std::string Client::resolve(std::string_view space) const {
  return space == "." ? core_->config.default_namespace : std::string(space);
}

Api<> Client::api(Resource resource, std::string_view space) const {
  return Api<>(core_, std::move(resource), resolve(space));
}

const std::string& Client::default_namespace() const { return core_->config.default_namespace; }
net::EventLoop& Client::loop() const { return core_->loop; }

// ---------------------------------------------------------------------------------------------------- Discovery

namespace {

constexpr std::string_view kAggregated =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

// Parses an aggregated response of /api or /apis.
void read_groups(const Value& root, Core::Discovered& into) {
  for (const Value& group : root.items_at("items")) {
    for (const Value& version : group.items_at("versions")) {
      for (const Value& resource : version.items_at("resources")) {
        ServedResource& served = into.resources.emplace_back();
        served.resource = {std::string(group.text_at("metadata", "name")), std::string(version.text_at("version")),
                           std::string(resource.text_at("resource")),
                           std::string(resource.text_at("responseKind", "kind")),
                           resource.text_at("scope") == "Namespaced"};
        served.singular = resource.text_at("singularResource");
        served.short_names = texts_of(resource.items_at("shortNames"));
        served.categories = texts_of(resource.items_at("categories"));
        served.verbs = texts_of(resource.items_at("verbs"));
        for (const Value& below : resource.items_at("subresources")) {
          served.subresources.emplace_back(below.text_at("subresource"));
        }
      }
    }
  }
}

// One cache file per server, with the discovery responses as received.
std::string cache_path(const Core& core) {
  if (core.options.cache_folder.empty()) return {};
  std::string name = core.url.at.host + "_" + std::to_string(core.url.at.port);
  for (char& c : name) c = c == '/' || c == ':' ? '_' : c;
  return core.options.cache_folder + "/" + name + ".json";
}

struct Saved {
  int64_t at = 0;
  std::string api, apis, api_etag, apis_etag;
};

std::optional<Saved> load_saved(const std::string& path) {
  if (path.empty()) return std::nullopt;
  Result<std::string> text = read_file(path);
  if (!text) return std::nullopt;
  Result<codec::Document> document = codec::parse_json(std::move(*text));
  if (!document) return std::nullopt;  // A truncated file counts as absent.
  const Value& root = document->root();
  return Saved{root.int_at_or(0, "at"), std::string(root.text_at("api")), std::string(root.text_at("apis")),
               std::string(root.text_at("apiETag")), std::string(root.text_at("apisETag"))};
}

// Atomic: concurrent readers never see a partial file.
void save(const std::string& path, const Saved& saved) {
  if (path.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  Arena arena;
  MapBuilder root(arena);
  root.add("at", Value::integer(saved.at));
  root.add("api", Value::string(saved.api));
  root.add("apis", Value::string(saved.apis));
  root.add("apiETag", Value::string(saved.api_etag));
  root.add("apisETag", Value::string(saved.apis_etag));
  const std::string draft = path + "." + std::to_string(reinterpret_cast<uintptr_t>(&root)) + ".tmp";
  {
    std::ofstream file(draft, std::ios::binary);
    file << codec::encode_json(root.build());
    if (!file) return;
  }
  std::filesystem::rename(draft, path, error);
}

// Converts an APIResourceList to the aggregated form.
Value aggregated_resources(Arena& arena, const Value& list) {
  ListBuilder resources(arena);
  for (const Value& resource : list.items_at("resources")) {
    const std::string_view name = resource.text_at("name");
    if (name.find('/') != std::string_view::npos) continue;
    MapBuilder made(arena);
    made.add("resource", Value::string(name));
    MapBuilder kind(arena);
    kind.add("kind", Value::string(resource.text_at("kind")));
    made.add("responseKind", kind.build());
    const Value* namespaced = resource.find("namespaced");
    const bool in_namespaces = namespaced != nullptr && namespaced->is_bool() && namespaced->as_bool();
    made.add("scope", Value::string(in_namespaces ? "Namespaced" : "Cluster"));
    made.add("singularResource", Value::string(resource.text_at("singularName")));
    for (const std::string_view key : {"shortNames", "categories", "verbs"}) {
      if (const Value* value = resource.find(key)) made.add(key, *value);
    }
    ListBuilder below(arena);
    for (const Value& other : list.items_at("resources")) {
      const std::string_view path = other.text_at("name");
      if (path.size() <= name.size() || !path.starts_with(name) || path[name.size()] != '/') continue;
      MapBuilder subresource(arena);
      subresource.add("subresource", Value::string(path.substr(name.size() + 1)));
      below.add(subresource.build());
    }
    made.add("subresources", below.build());
    resources.add(made.build());
  }
  return resources.build();
}

// Fetches the versions of one group one by one.
Task<Result<Value>> fetch_group(std::shared_ptr<Core> core, Arena& arena, std::string group, std::string path,
                                std::vector<std::string> versions) {
  ListBuilder made(arena);
  for (const std::string& version : versions) {
    PreparedRequest sent;
    sent.target = path + "/" + version;
    sent.accept = "application/json";
    Result<Answer> answer = co_await Core::send(core, std::move(sent));
    // The group of an aggregated API server that is unavailable must not hide the others.
    if (!answer && !group.empty() && (answer.error().code == 503 || answer.error().code == 404)) continue;
    if (!answer) co_return answer.take_error();
    Result<Value> list = codec::decode_json(arena, arena.copy(answer->response.body));
    if (!list) co_return list.take_error();
    MapBuilder one(arena);
    one.add_copy("version", Value::string(arena, version));
    one.add("resources", aggregated_resources(arena, *list));
    made.add(one.build());
  }
  MapBuilder metadata(arena);
  metadata.add("name", Value::string(arena, group));
  MapBuilder item(arena);
  item.add("metadata", metadata.build());
  item.add("versions", made.build());
  co_return item.build();
}

// For servers older than 1.26 or without aggregated discovery: builds the aggregated form from the individual lists.
Task<Result<Unit>> fetch_unaggregated(std::shared_ptr<Core> core, std::string target, std::string& text,
                                      std::string& etag) {
  Result<codec::Document> said = codec::parse_json(text);
  if (!said) co_return said.take_error();
  const Value& root = said->root();
  if (root.text_at("kind") == "APIGroupDiscoveryList") co_return Unit{};
  Arena arena;
  ListBuilder items(arena);
  const auto add_group = [&](std::string group, std::vector<std::string> versions) -> Task<Result<Unit>> {
    const std::string path = group.empty() ? target : target + "/" + group;
    Result<Value> item = co_await fetch_group(core, arena, std::move(group), path, std::move(versions));
    if (!item) co_return item.take_error();
    items.add(*item);
    co_return Unit{};
  };
  if (root.text_at("kind") == "APIVersions") {
    Result<Unit> added = co_await add_group("", texts_of(root.items_at("versions")));
    if (!added) co_return added;
  } else if (root.text_at("kind") == "APIGroupList") {
    for (const Value& group : root.items_at("groups")) {
      std::vector<std::string> versions;
      for (const Value& version : group.items_at("versions")) versions.emplace_back(version.text_at("version"));
      Result<Unit> added = co_await add_group(std::string(group.text_at("name")), std::move(versions));
      if (!added) co_return added;
    }
  } else {
    co_return bad_request("the response for " + target + " is not a discovery document");
  }
  MapBuilder whole(arena);
  whole.add("kind", Value::string("APIGroupDiscoveryList"));
  whole.add("items", items.build());
  text = codec::encode_json(whole.build());
  etag.clear();  // The etag of the version list does not change with the resource lists.
  co_return Unit{};
}

Task<Result<Unit>> fetch_part(std::shared_ptr<Core> core, std::string target, std::string& text, std::string& etag) {
  PreparedRequest sent;
  sent.target = target;
  sent.accept = kAggregated;
  sent.if_none_match = text.empty() ? "" : etag;
  Result<Answer> answer = co_await Core::send(core, std::move(sent));
  if (!answer) co_return answer.take_error();
  if (answer->response.status == 304) co_return Unit{};
  etag = answer->response.header("etag");
  text = std::move(answer->response.body);
  co_return co_await fetch_unaggregated(std::move(core), std::move(target), text, etag);
}

Result<Core::Discovered> parse_discovery(const Saved& saved) {
  Core::Discovered found;
  for (const std::string* text : {&saved.api, &saved.apis}) {
    Result<codec::Document> document = codec::parse_json(*text);
    if (!document) return document.take_error();
    read_groups(document->root(), found);
  }
  return found;
}

Task<Result<std::vector<ServedResource>>> discover_all(std::shared_ptr<Core> core, std::chrono::seconds max_age) {
  const Core::Use use(core);
  if (!core->loop.in_thread()) co_await resume_on(core->loop);
  const auto now = std::chrono::system_clock::now();
  if (core->discovered && now - core->discovered->at < max_age) co_return core->discovered->resources;
  const std::string path = cache_path(*core);
  Saved saved = load_saved(path).value_or(Saved{});
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  if (saved.at == 0 || seconds - saved.at >= max_age.count()) {
    Result<Unit> core_part = co_await fetch_part(core, "/api", saved.api, saved.api_etag);
    if (!core_part) co_return core_part.take_error();
    Result<Unit> groups = co_await fetch_part(core, "/apis", saved.apis, saved.apis_etag);
    if (!groups) co_return groups.take_error();
    saved.at = seconds;
    save(path, saved);
  }
  Result<Core::Discovered> found = parse_discovery(saved);
  if (!found) co_return found.take_error();
  found->at = now;
  core->discovered = std::move(*found);
  co_return core->discovered->resources;
}

Task<Result<std::vector<Resource>>> discover_resources(std::shared_ptr<Core> core, std::chrono::seconds max_age) {
  Result<std::vector<ServedResource>> all = co_await discover_all(std::move(core), max_age);
  if (!all) co_return all.take_error();
  std::vector<Resource> resources;
  resources.reserve(all->size());
  for (ServedResource& served : *all) resources.push_back(std::move(served.resource));
  co_return resources;
}

// Selects a resource by a name typed by the user, or by a manifest's apiVersion and kind.
using Matches = std::function<bool(const ServedResource&)>;

Matches match_name(std::string_view wanted) {
  const std::string text = to_lower(wanted);
  const size_t dot = text.find('.');
  return [name = text.substr(0, dot), rest = dot == std::string::npos ? "" : text.substr(dot + 1),
          qualified = dot != std::string::npos](const ServedResource& served) {
    const Resource& resource = served.resource;
    if (qualified && rest != resource.group && rest != resource.version + "." + resource.group) return false;
    return name == resource.plural || name == served.singular || name == to_lower(resource.kind) ||
           std::find(served.short_names.begin(), served.short_names.end(), name) != served.short_names.end();
  };
}

Task<Result<Resource>> find_resource(std::shared_ptr<Core> core, Matches matches, Error otherwise) {
  const Core::Use use(core);
  // A kind that was just created is not in the cached discovery, so try again without the cache.
  for (const std::chrono::seconds max_age : {std::chrono::seconds(std::chrono::minutes(10)), std::chrono::seconds(0)}) {
    Result<std::vector<ServedResource>> all = co_await discover_all(core, max_age);
    if (!all) co_return all.take_error();
    for (ServedResource& served : *all) {
      if (matches(served)) co_return std::move(served.resource);
    }
  }
  co_return otherwise;
}

Task<Result<std::string>> text_of(std::shared_ptr<Core> core, std::string path, std::string accept) {
  PreparedRequest sent;
  sent.target = std::move(path);
  sent.accept = std::move(accept);
  Result<Answer> answer = co_await Core::send(core, std::move(sent));
  if (!answer) co_return answer.take_error();
  co_return std::move(answer->response.body);
}

}  // namespace

// A server that supports markers says so in its OpenAPI documents, next to the media types for apply. A group may be
// served by another server, behind an aggregator: its own document counts.
Task<Result<bool>> fetch_marker_support(std::shared_ptr<Core> core, Resource resource) {
  const Core::Use use(core);
  if (!core->loop.in_thread()) co_await resume_on(core->loop);
  // Built-in groups have one server, and this document is smaller than most of theirs.
  const bool built_in = types::find_kind(resource.group, resource.version, resource.kind) != nullptr;
  const std::string path =
      "/openapi/v3" + (built_in ? "/apis/coordination.k8s.io/v1" : api_path(resource.group, resource.version));
  if (const auto known = core->knows_markers.find(path); known != core->knows_markers.end()) co_return known->second;
  Result<std::string> document = co_await text_of(core, path, "application/json");
  if (!document && document.error().code != 404) co_return document.take_error();
  const bool found = document && document->find("x-kubernetes-unset-marker") != std::string::npos;
  core->knows_markers.emplace(path, found);
  co_return found;
}

Call<Result<std::vector<Resource>>> Client::discover(std::chrono::seconds max_age) const {
  return {core_->loop, discover_resources(core_, max_age)};
}
Call<Result<std::vector<ServedResource>>> Client::served(std::chrono::seconds max_age) const {
  return {core_->loop, discover_all(core_, max_age)};
}
Call<Result<Resource>> Client::find(std::string name) const {
  Error otherwise{Reason::NotFound, "the server doesn't have a resource type \"" + name + "\"", {}, 0, {}, 404};
  return {core_->loop, find_resource(core_, match_name(name), std::move(otherwise))};
}
Call<Result<Resource>> Client::find_kind(std::string api_version, std::string kind) const {
  Error otherwise{
      Reason::NotFound, "no matches for kind \"" + kind + "\" in version \"" + api_version + "\"", {}, 0, {}, 404};
  Matches matches = [api_version = std::move(api_version), kind = std::move(kind)](const ServedResource& served) {
    return served.resource.kind == kind && served.resource.api_version() == api_version;
  };
  return {core_->loop, find_resource(core_, std::move(matches), std::move(otherwise))};
}
Call<Result<std::string>> Client::get_text(std::string path, std::string accept) const {
  return {core_->loop, text_of(core_, std::move(path), std::move(accept))};
}
Call<Result<bool>> Client::supports_unset(Resource resource) const {
  return {core_->loop, fetch_marker_support(core_, std::move(resource))};
}

}  // namespace holdfast::client
