#include "server/pipeline.h"

#include <sys/random.h>

#include <array>

#include "base/log.h"
#include "base/text.h"
#include "server/version.h"

namespace holdfast::server {

namespace {

constexpr double kDurationBounds[] = {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2,
                                      3,     4,     5,    6,   8,   10,  15,  20,  30,  45,   60};

// A version 4 UUID. Unique, not secret: a generator of this thread, seeded once by the system, is enough.
std::string new_audit_id() {
  thread_local std::array<uint64_t, 4> s = [] {
    std::array<uint64_t, 4> seed{};
    while (getrandom(seed.data(), sizeof seed, 0) != sizeof seed) {
    }
    return seed;
  }();
  auto rotate = [](uint64_t x, int by) { return (x << by) | (x >> (64 - by)); };
  auto next = [&] {  // xoshiro256**
    const uint64_t result = rotate(s[1] * 5, 7) * 9;
    const uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
  };
  const uint64_t high = (next() & ~0xf000ull) | 0x4000ull;
  const uint64_t low = (next() & ~(3ull << 62)) | (2ull << 62);
  constexpr char kHex[] = "0123456789abcdef";
  std::string id;
  id.reserve(36);
  for (int i = 0; i < 32; ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) id += '-';
    id += kHex[((i < 16 ? high : low) >> (60 - 4 * (i % 16))) & 15];
  }
  return id;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  return out;
}

void send_text(net::Response& response, int status, std::string text) {
  response.set_header("content-type", "text/plain; charset=utf-8");
  response.set_header("x-content-type-options", "nosniff");
  (void)response.send(status, net::Body(std::move(text)));
}

}  // namespace

Pipeline::Pipeline(MetricRegistry& metrics, Health health, std::unique_ptr<auth::Authorizer> authorizer)
    : registry_(metrics),
      health_(std::move(health)),
      authorizer_(std::move(authorizer)),
      requests_(metrics.counters(
          "apiserver_request_total",
          "Requests by verb, dry run value, group, version, resource, scope, component and code.",
          {"verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component", "code"})),
      durations_(metrics.histograms(
          "apiserver_request_duration_seconds",
          "Response latency in seconds by verb, dry run value, group, version, resource, "
          "subresource, scope and component.",
          kDurationBounds, {"verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"})) {}

void Pipeline::set_authenticator(std::shared_ptr<const auth::Authenticator> authenticator) {
  authenticator_.store(std::move(authenticator));
}

Task<void> Pipeline::serve(net::Request& request, net::Response& response) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string_view given_id = request.headers.get("audit-id");
  const std::string audit_id = given_id.empty() ? new_audit_id() : std::string(given_id);
  response.add_header("audit-id", audit_id);
  response.add_header("cache-control", "no-cache, private");

  auth::UserRef user;
  if (Result<auth::UserRef> known = authenticator_.load()->authenticate(request); known) {
    user = std::move(*known);
    // As kube-apiserver: whoever is not known must not keep a connection and its server busy.
    if (user->name == auth::kAnonymous && request.protocol == net::Protocol::Http2) response.close_connection_after();
    const std::string verb = lower(request.method);
    const auth::Attributes attributes{.user = user.get(),
                                      .verb = verb,
                                      .is_resource = false,
                                      .group = {},
                                      .version = {},
                                      .resource = {},
                                      .subresource = {},
                                      .ns = {},
                                      .name = {},
                                      .path = request.path};
    const auth::Decision decision = authorizer_->authorize(attributes);
    if (decision.allowed()) {
      co_await route(request, response);
    } else {
      response.add_header("x-content-type-options", "nosniff");
      send_error(request, response, auth::forbidden_error(attributes, decision.reason));
    }
  } else {
    if (log::verbose(2)) {
      log::info("unauthorized", {{"remote", request.peer->address},
                                 {"uri", request.target},
                                 {"reason", known.error().message},
                                 {"auditID", audit_id}});
    }
    if (request.protocol == net::Protocol::Http2) response.close_connection_after();
    send_error(request, response, auth::unauthorized_error());
  }

  const auto took = std::chrono::steady_clock::now() - begin;
  const std::string code = std::to_string(response.status());
  // Paths that do not exist are not named: a client could fill the memory with them.
  const bool known_path = response.status() < 400;
  const std::string_view subresource = known_path ? request.path : std::string_view();
  requests_.with({request.method, "", "", "", "", subresource, "", "apiserver", code}).add();
  durations_.with({request.method, "", "", "", "", subresource, "", "apiserver"})
      .observe(std::chrono::duration<double>(took).count());
  if (log::verbose(4)) {
    log::info("request", {{"method", request.method},
                          {"uri", request.target},
                          {"code", response.status()},
                          {"us", std::chrono::duration_cast<std::chrono::microseconds>(took).count()},
                          {"bytes", response.body_bytes()},
                          {"user", user ? std::string_view(user->name) : std::string_view()},
                          {"agent", request.headers.get("user-agent")},
                          {"remote", request.peer->address},
                          {"auditID", audit_id}});
  }
}

Task<void> Pipeline::route(net::Request& request, net::Response& response) {
  const std::string_view path = request.path;
  if (path.starts_with("/healthz") || path.starts_with("/livez") || path.starts_with("/readyz")) {
    if (std::optional<Health::Answer> answer = health_.answer(path, request.query)) {
      send_text(response, answer->status, std::move(answer->body));
      co_return;
    }
  }
  if (path == "/version" || path == "/version/") {
    response.add_header("content-type", "application/json");
    (void)response.send(200, net::Body(net::Bytes::lasting(version_json())));
    co_return;
  }
  if (path == "/metrics") {
    response.add_header("content-type", "text/plain; version=0.0.4; charset=utf-8");
    response.allow_gzip();
    (void)response.send(200, net::Body(registry_.render()));
    co_return;
  }
  send_text(response, 404, "404 page not found\n");
}

void Pipeline::send_error(net::Request&, net::Response& response, const Error& error) {
  const int code = error.reason == Reason::Unauthorized ? 401 : 403;
  response.add_header("content-type", "application/json");
  std::string body = R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":)" +
                     json_quote(error.message) + R"(,"reason":)" +
                     (code == 401 ? R"("Unauthorized")" : R"("Forbidden","details":{})") +
                     ",\"code\":" + std::to_string(code) + "}\n";
  (void)response.send(code, net::Body(std::move(body)));
}

}  // namespace holdfast::server
