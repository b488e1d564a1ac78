#include "server/request_metrics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <mutex>
#include <vector>

#include "base/hash.h"
#include "base/limits.h"
#include "base/strings.h"

namespace holdfast::server {

namespace {

constexpr double kDurationBounds[] = {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2,
                                      3,     4,     5,    6,   8,   10,  15,  20,  30,  45,   60};
constexpr double kOwnDurationBounds[] = {0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3,
                                         4,    5,   6,   8,   10,  15,  20,  30,   45,  60};
constexpr double kSizeBounds[] = {1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
// From a millisecond, doubled 14 times.
constexpr double kAccessBounds[] = {0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128,
                                    0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384};
constexpr double kHour = 3600, kDay = 24 * kHour;
constexpr double kCertificateBounds[] = {0,        kHour / 2, kHour,    2 * kHour, 6 * kHour, 12 * kHour, kDay,
                                         2 * kDay, 4 * kDay,  7 * kDay, 30 * kDay, 90 * kDay, 180 * kDay, 360 * kDay};

constexpr std::string_view kComponent = "apiserver";
constexpr std::string_view kOther = "other";

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

// Like CleanScope of endpoints/metrics.
std::string_view scope_of(const request::RequestInfo& info) {
  const request::Target& target = info.target();
  if (!info.name().empty() || target.verb == request::Verb::Create) return target.is_resource ? "resource" : "";
  if (!target.ns.empty()) return "namespace";
  return target.is_resource ? "cluster" : "";
}

// Like cleanDryRun of endpoints/metrics.
std::string_view dry_run_of(const request::Query& query) {
  const std::vector<std::string> values = query.all("dryRun");
  if (values.empty()) return "";
  const bool valid = std::all_of(values.begin(), values.end(), [](const std::string& value) { return value == "All"; });
  return valid ? "All" : "invalid";
}

bool is_connection(std::string_view subresource) {
  constexpr std::string_view kSubresources[] = {"log", "exec", "portforward", "attach", "proxy"};
  return std::find(std::begin(kSubresources), std::end(kSubresources), subresource) != std::end(kSubresources);
}

// Like CanonicalVerb and CleanVerb of endpoints/metrics: the HTTP method, except that lists, watches, applies and
// connections are told apart.
std::string_view verb_of(const net::Request& request, const request::RequestInfo& info, std::string_view scope) {
  const request::Target& target = info.target();
  if (target.is_resource && is_connection(target.subresource)) return "CONNECT";
  const std::string_view method = request.method;
  if (method == "GET" || method == "HEAD") {
    if (target.verb == request::Verb::Watch) return "WATCH";
    return scope.empty() || scope == "resource" ? "GET" : "LIST";
  }
  if (method == "PATCH") {
    const std::string_view type = request.headers.get("content-type");
    const bool apply =
        type.starts_with("application/apply-patch+yaml") || type.starts_with("application/apply-patch+cbor");
    return apply ? "APPLY" : "PATCH";
  }
  for (const std::string_view known : {"POST", "PUT", "DELETE"}) {
    if (method == known) return known;
  }
  return kOther;
}

// Paths that are no resources but are counted, with the labels that they have in kube-apiserver.
struct CountedPath {
  std::string_view path, resource, subresource, component;
};
constexpr CountedPath kCountedPaths[] = {
    {"/healthz", "", "/healthz", ""},        {"/livez", "", "/livez", ""},
    {"/readyz", "", "/readyz", ""},          {"/openapi/v3", "", "openapi/v3", ""},
    {"/statusz", "statusz", "", kComponent}, {"/flagz", "flagz", "", kComponent},
};
constexpr std::string_view kOpenApiDocuments = "/openapi/v3/";
constexpr CountedPath kOpenApiDocument{"", "", "openapi/v3/", ""};
constexpr CountedPath kDiscovery[] = {{"/api", "", "api", kComponent}, {"/apis", "", "apis", kComponent}};

const CountedPath* counted_path(const net::Request& request) {
  const std::string_view path = request.path;
  if (path.starts_with(kOpenApiDocuments)) return &kOpenApiDocument;
  for (const CountedPath& known : kCountedPaths) {
    if (path == known.path) return &known;
  }
  for (const CountedPath& known : kDiscovery) {
    // Only aggregated discovery is.
    if (path == known.path && request.headers.get("accept").find("as=APIGroupDiscoveryList") != std::string_view::npos)
      return &known;
  }
  return nullptr;
}

// As in kube-apiserver, names are not shown; known internal identities are.
std::string_view shown_user(std::string_view name) {
  constexpr std::string_view kInternal[] = {"admin", "client", "kube_proxy", "kubelet",
                                            "system:serviceaccount:kube-system:default"};
  if (std::find(std::begin(kInternal), std::end(kInternal), name) != std::end(kInternal)) return name;
  return name.find('@') != std::string_view::npos ? "email_id" : kOther;
}

struct StatusText {
  explicit StatusText(int status) : end(std::to_chars(std::begin(text), std::end(text), status).ptr) {}
  operator std::string_view() const { return {text, static_cast<size_t>(end - text)}; }  // NOLINT: an argument.
  char text[8];
  char* end;
};

using Names = std::array<std::string_view, 8>;
Names names_of(const RequestKind& kind) {
  return {kind.verb,     kind.dry_run,     kind.group, kind.version,
          kind.resource, kind.subresource, kind.scope, kind.component};
}

}  // namespace

RequestKind kind_of_request(const net::Request& request, const request::RequestInfo& info, bool served) {
  const request::Target& target = info.target();
  RequestKind kind;
  kind.scope = scope_of(info);
  kind.verb = verb_of(request, info, kind.scope);
  kind.dry_run = dry_run_of(info.query());
  kind.component = kComponent;
  if (target.is_resource) {
    if (!served) return kind;
    kind.group = target.group;
    kind.version = target.version;
    kind.resource = target.resource;
    kind.subresource = target.subresource;
  } else if (const CountedPath* path = counted_path(request)) {
    kind.resource = path->resource;
    kind.subresource = path->subresource;
    kind.component = path->component;
  }
  return kind;
}

bool is_counted(const net::Request& request, const request::RequestInfo& info, bool served) {
  return info.target().is_resource ? served : counted_path(request) != nullptr;
}

struct RequestMetrics::Series {
  std::array<std::string, std::tuple_size_v<Names>> names;
  Histogram* durations;
  Histogram* own_durations;  // Null for dry runs.
  Histogram* sizes;          // Null for writes.
};

RequestMetrics::RequestMetrics(MetricRegistry& registry)
    : requests_(registry.counters(
          "apiserver_request_total",
          "Requests by verb, dry run value, group, version, resource, scope, component and code.",
          {"verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component", "code"})),
      durations_(registry.histograms(
          "apiserver_request_duration_seconds",
          "Response latency in seconds by verb, dry run value, group, version, resource, subresource, scope and "
          "component.",
          kDurationBounds, {"verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"})),
      own_durations_(registry.histograms(
          "apiserver_request_sli_duration_seconds",
          "Response latency in seconds without the time spent waiting for webhooks and for a seat, by verb, group, "
          "version, resource, subresource, scope and component.",
          kOwnDurationBounds, {"verb", "group", "version", "resource", "subresource", "scope", "component"})),
      sizes_(registry.histograms(
          "apiserver_response_sizes",
          "Response size in bytes by group, version, verb, resource, subresource, scope and component.", kSizeBounds,
          {"verb", "group", "version", "resource", "subresource", "scope", "component"})),
      terminations_(
          registry.counters("apiserver_request_terminations_total", "Requests that the server ended in self-defense.",
                            {"verb", "group", "version", "resource", "subresource", "scope", "component", "code"})),
      long_running_(registry.gauges("apiserver_longrunning_requests", "Requests under way that last by nature.",
                                    {"verb", "group", "version", "resource", "subresource", "scope", "component"})),
      in_flight_(
          registry.gauges("apiserver_current_inflight_requests", "Requests under way, by kind.", {"request_kind"})),
      reads_in_flight_(in_flight_.with({"readOnly"})),
      writes_in_flight_(in_flight_.with({"mutating"})),
      users_(registry.counters("authenticated_user_requests", "Authenticated requests by user name.", {"username"})),
      authentications_{registry.counters("authentication_attempts", "Attempts to authenticate, by result.", {"result"}),
                       registry.histograms("authentication_duration_seconds", "Duration of authentication by result.",
                                           kAccessBounds, {"result"})},
      authorizations_{
          registry.counters("authorization_attempts_total", "Attempts to authorize, by result.", {"result"}),
          registry.histograms("authorization_duration_seconds", "Duration of authorization by result.", kAccessBounds,
                              {"result"})},
      authenticated_(authentications_.of("success")),
      unauthenticated_(authentications_.of("failure")),
      allowed_(authorizations_.of("allowed")),
      denied_(authorizations_.of("denied")),
      undecided_(authorizations_.of("no-opinion")),
      certificate_life_(registry
                            .histograms("apiserver_client_certificate_expiration_seconds",
                                        "Remaining life of the certificates shown by clients, for each request.",
                                        kCertificateBounds)
                            .with({})) {}

RequestMetrics::~RequestMetrics() = default;

const RequestMetrics::Series& RequestMetrics::series_of(const RequestKind& kind) {
  const Names names = names_of(kind);
  uint64_t hash = 0;
  for (const std::string_view name : names) hash = hash_combine(hash, hash_key(name));
  const auto find = [&]() -> const Series* {
    for (auto [it, end] = series_.equal_range(hash); it != end; ++it) {
      if (std::equal(names.begin(), names.end(), it->second->names.begin())) return it->second.get();
    }
    return nullptr;
  };
  {
    std::shared_lock lock(mutex_);
    if (const Series* known = find()) return *known;
  }
  std::unique_lock lock(mutex_);
  if (const Series* known = find()) return *known;
  if (series_.size() >= limits::kMetricSeries && kind.verb != kOther) {
    lock.unlock();
    return series_of({kOther, kOther, kOther, kOther, kOther, kOther, kOther, kOther});
  }
  auto made = std::make_unique<Series>();
  std::copy(names.begin(), names.end(), made->names.begin());
  made->durations = &durations_.with(names);
  const auto without_dry_run = {kind.verb,        kind.group, kind.version,  kind.resource,
                                kind.subresource, kind.scope, kind.component};
  made->own_durations = kind.dry_run.empty() ? &own_durations_.with(without_dry_run) : nullptr;
  made->sizes = kind.verb == "GET" || kind.verb == "LIST" ? &sizes_.with(without_dry_run) : nullptr;
  return *series_.emplace(hash, std::move(made))->second;
}

void RequestMetrics::count(const RequestKind& kind, int status, std::chrono::nanoseconds took,
                           std::chrono::nanoseconds waited, uint64_t response_bytes) {
  const Series& series = series_of(kind);
  requests_
      .with({kind.verb, kind.dry_run, kind.group, kind.version, kind.resource, kind.subresource, kind.scope,
             kind.component, StatusText(status)})
      .add();
  series.durations->observe(seconds(took));
  if (series.own_durations != nullptr) series.own_durations->observe(seconds(took - waited));
  if (series.sizes != nullptr) series.sizes->observe(static_cast<double>(response_bytes));
}

void RequestMetrics::terminated(const RequestKind& kind, int status) {
  terminations_
      .with({kind.verb, kind.group, kind.version, kind.resource, kind.subresource, kind.scope, kind.component,
             StatusText(status)})
      .add();
}

Gauge& RequestMetrics::long_running(const RequestKind& kind) {
  return long_running_.with(
      {kind.verb, kind.group, kind.version, kind.resource, kind.subresource, kind.scope, kind.component});
}

void RequestMetrics::Attempts::add(std::chrono::nanoseconds took) {
  count.add();
  durations.observe(seconds(took));
}

RequestMetrics::Attempts RequestMetrics::AttemptFamilies::of(std::string_view result) const {
  return {counts.with({result}), durations.with({result})};
}

void RequestMetrics::authenticated(const auth::UserInfo* user, std::chrono::nanoseconds took) {
  if (user == nullptr) return unauthenticated_.add(took);
  users_.with({shown_user(user->name)}).add();
  authenticated_.add(took);
}

void RequestMetrics::authorized(const auth::Decision& decision, std::chrono::nanoseconds took) {
  switch (decision.verdict) {
    case auth::Decision::Verdict::Allow:
      return allowed_.add(took);
    case auth::Decision::Verdict::Deny:
      return denied_.add(took);
    case auth::Decision::Verdict::NoOpinion:
      return undecided_.add(took);
  }
}

void RequestMetrics::certificate_shown(const net::PeerCertificate& certificate) {
  const auto left = certificate.not_after() - std::chrono::system_clock::now();
  certificate_life_.observe(std::chrono::duration<double>(left).count());
}

}  // namespace holdfast::server
