#include "server/pipeline.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/text.h"
#include "flow/flow.h"
#include "net/drained.h"
#include "render/render.h"
#include "server/impersonation.h"
#include "server/pages.h"
#include "server/version.h"

namespace holdfast::server {

namespace {

void send_text(net::Response& response, int status, std::string text) {
  response.set_header("content-type", "text/plain; charset=utf-8");
  response.set_header("x-content-type-options", "nosniff");
  (void)response.send(status, net::Body(std::move(text)));
}

bool is_read(std::string_view method) { return method == "GET" || method == "HEAD"; }

bool lasts_long(const request::Target& info) {
  constexpr std::string_view kSubresources[] = {"attach", "exec", "proxy", "log", "portforward"};
  return info.is_resource &&
         (info.verb == request::Verb::Watch || info.verb == request::Verb::Proxy ||
          std::find(std::begin(kSubresources), std::end(kSubresources), info.subresource) != std::end(kSubresources));
}

}  // namespace

struct Pipeline::Account {
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  std::string audit_id;
  auth::UserRef user;
  const request::RequestInfo info;
  const bool lasting;
  AuditTrail trail;
  std::shared_ptr<const flow::Schemas> schemas;  // Owns the seat's flow.
  flow::Dispatcher::Seat seat;
  bool dispatched = false;  // Authenticated, authorized and given to its handler.
  bool dropped = false;     // Because too many requests are under way.

  Account(const net::Request& request, const Auditor* auditor)
      : info(request.method, request.path, request.query), lasting(lasts_long(info.target())), trail(auditor) {}
};

int64_t Pipeline::in_flight() const { return metrics_.in_flight_total(); }

Pipeline::Pipeline(Parts parts) : parts_(std::move(parts)), metrics_(*parts_.metrics) {}

void Pipeline::set_authenticator(std::shared_ptr<const auth::Authenticator> authenticator) {
  authenticator_.store(std::move(authenticator));
}

Task<void> Pipeline::serve(net::Request& request, net::Response& response) {
  Account account(request, parts_.auditor);
  const std::string_view given_id = request.headers.get("audit-id");
  account.audit_id = given_id.empty() ? random_uuid() : std::string(given_id);
  response.add_header("audit-id", account.audit_id);
  response.add_header("cache-control", "no-cache, private");
  if (!parts_.strict_transport_security.empty()) {
    response.add_header("strict-transport-security", parts_.strict_transport_security);
  }
  try {
    if (parts_.front == nullptr || !parts_.front->apply(request, response)) {
      co_await serve_known(request, response, account);
    }
  } catch (const ArenaExhausted& exhausted) {
    answer_exhausted(account.info, request, response, exhausted);
  }
  // Written data is sent at the end of the loop's iteration, so the events are logged before the response is complete.
  account.trail.complete(response);
  record(request, response, account);
}

namespace {

// Of finished responses, what their clients have not read: clients that read nothing could otherwise make the server
// keep any number of them. A user with that much gets 429 until the clients read or the responses are cut off, and the
// responses to what was under way are cut off at twice as much. With little, a user is not affected by others.
constexpr size_t kUnreadOfUserBytes = size_t{256} << 20, kUnreadBytes = size_t{1} << 30, kFewUnreadBytes = 1 << 20;

class UnreadResponses {
 public:
  bool admits(const std::string& user) {
    if (all_.load(std::memory_order_relaxed) <= kFewUnreadBytes) return true;
    const std::lock_guard lock(mutex_);
    const auto found = by_user_.find(user);
    if (found == by_user_.end() || found->second <= kFewUnreadBytes) return true;
    return found->second <= kUnreadOfUserBytes && all_.load(std::memory_order_relaxed) <= kUnreadBytes;
  }
  // Whether there is room for a response; remove() it later in either case.
  bool add(const std::string& user, size_t bytes) {
    const std::lock_guard lock(mutex_);
    all_.fetch_add(bytes, std::memory_order_relaxed);
    const size_t of_user = by_user_[user] += bytes;
    return of_user == bytes || (of_user <= 2 * kUnreadOfUserBytes && all_ <= 2 * kUnreadBytes);
  }
  void remove(const std::string& user, size_t bytes) {
    const std::lock_guard lock(mutex_);
    all_.fetch_sub(bytes, std::memory_order_relaxed);
    const auto found = by_user_.find(user);
    found->second -= bytes;
    if (found->second == 0) by_user_.erase(found);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, size_t, KeyHash, std::equal_to<>> by_user_;  // Guarded by mutex_.
  std::atomic<size_t> all_{0};                                                 // Changed with mutex_ held.
};

UnreadResponses& unread_responses() {
  static UnreadResponses all;
  return all;
}

// Waits until the client has read most of the response, or the time of the request is over.
Task<void> wait_for_reader(net::Response& response, auth::UserRef user) {
  auto drained = net::drained(response);
  if (drained.await_ready()) co_return;
  response.on_interrupt({});  // It may refer to what ended with the request.
  const struct Unread {
    const std::string& user;
    size_t bytes;
    bool fits;
    Unread(const std::string& whose, size_t size)
        : user(whose), bytes(size), fits(unread_responses().add(user, bytes)) {}
    ~Unread() { unread_responses().remove(user, bytes); }
  } unread(user->name, response.body_bytes());
  if (!unread.fits) co_return response.abort();
  const auto begin = std::chrono::steady_clock::now();
  (void)co_await drained;
  response.waited += std::chrono::steady_clock::now() - begin;
}

}  // namespace

Task<void> Pipeline::serve_known(net::Request& request, net::Response& response, Account& account) {
  const request::Target& info = account.info.target();
  const bool lasting = account.lasting;
  if (!lasting) response.set_deadline(parts_.request_timeout);

  // As in kube-apiserver, unauthenticated clients must not keep a connection open.
  auto send_away = [&] {
    if (request.protocol == net::Protocol::Http2) response.close_connection_after();
  };
  auth::Attributes attributes = call::attributes_of(account.info, nullptr);
  if (request.peer->certificate) metrics_.certificate_shown(*request.peer->certificate);
  if (authenticator_.load()->needs_keys(request)) co_await fetch_keys(request, response);
  Result<auth::UserRef> user = authenticator_.load()->authenticate(request);
  metrics_.authenticated(user ? user->get() : nullptr, std::chrono::steady_clock::now() - account.begin);
  if (!user) {
    if (log::verbose(2)) {
      log::info("unauthorized", {{"remote", request.peer->address},
                                 {"uri", request.target},
                                 {"reason", user.error().message},
                                 {"auditID", account.audit_id}});
    }
    account.trail.refuse_unknown(request, account.audit_id, attributes);
    send_away();
    call::send_error(account.info, request, response, auth::unauthorized_error(), parts_.gates, parts_.accept_rule);
    co_return;
  }
  account.user = std::move(*user);
  if (account.user->name == auth::kAnonymous) {
    send_away();
  } else {
    response.trust_connection();
  }
  attributes.user = account.user.get();
  account.trail.receive(request, account.audit_id, attributes, account.user, lasting);
  auto refuse = [&](const Error& error) {
    response.add_header("x-content-type-options", "nosniff");
    account.trail.refuse(error);
    call::send_error(account.info, request, response, error, parts_.gates, parts_.accept_rule);
  };

  // Not earlier, so that unauthenticated clients do not learn what is wrong with their request.
  if (const std::string_view timeout = account.info.query().get("timeout"); !lasting && !timeout.empty()) {
    Result<int64_t> nanoseconds = parse_go_duration(timeout);
    if (!nanoseconds) {
      co_return refuse(bad_request("invalid timeout specified in the request URL - " + nanoseconds.error().message));
    }
    const auto asked = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds(*nanoseconds));
    if (*nanoseconds > 0 && asked < parts_.request_timeout) response.set_deadline(asked);
  }

  Result<std::optional<Impersonated>> impersonated = impersonate(request.headers, attributes, *parts_.authorizer);
  if (!impersonated) co_return refuse(impersonated.error());
  if (*impersonated) {
    account.trail.serve_as(**impersonated);
    account.user = (*impersonated)->user;
    attributes.user = account.user.get();
  }
  if (!lasting && !unread_responses().admits(account.user->name)) {
    account.dropped = true;
    response.set_header("retry-after", "1");
    co_return send_text(response, 429, "Too many responses are not read, please try again later.\n");
  }
  if (parts_.flow != nullptr && !co_await take_seat(request, response, attributes, account)) co_return;

  const auto authorizing = std::chrono::steady_clock::now();
  const auth::Decision decision = parts_.authorizer->authorize(attributes);
  metrics_.authorized(decision, std::chrono::steady_clock::now() - authorizing);
  account.trail.decide(decision);
  if (!decision.allowed()) co_return refuse(auth::forbidden_error(attributes, decision.reason));

  account.dispatched = true;
  Gauge& gauge = lasting ? metrics_.long_running(kind_of_request(request, account.info, serves(info)))
                         : metrics_.in_flight(is_read(request.method));
  gauge.add(1);
  struct Leave {
    Gauge& gauge;
    ~Leave() { gauge.add(-1); }
  } leave{gauge};
  co_await route(request, response, account);
  if (lasting) co_return;
  account.seat = {};  // The work is done.
  co_await wait_for_reader(response, account.user);
}

Task<void> Pipeline::fetch_keys(net::Request& request, net::Response& response) {
  const std::shared_ptr<const auth::Authenticator> authenticator = authenticator_.load();
  const auto cancellation = std::make_shared<net::Cancellation>();
  response.on_interrupt([cancellation](net::Interrupt why) {
    if (why == net::Interrupt::PeerGone) cancellation->cancel();
  });
  co_await authenticator->fetch_keys(request.loop(), cancellation);
  response.on_interrupt({});
}

Task<bool> Pipeline::take_seat(net::Request& request, net::Response& response, const auth::Attributes& attributes,
                               Account& account) {
  account.schemas = parts_.flow->schemas();
  if (account.schemas == nullptr) co_return true;
  std::optional<flow::Flow> flow = account.schemas->classify(attributes);
  if (!flow) co_return true;
  response.add_header("x-kubernetes-pf-flowschema-uid", flow->schema_uid);
  response.add_header("x-kubernetes-pf-prioritylevel-uid", flow->level->uid);
  if (account.lasting) co_return true;
  net::EventLoop& loop = request.loop();
  const int64_t seats = parts_.flow->seats_of(account.info, flow->level->name);
  const auto queued = std::chrono::steady_clock::now();
  flow::Dispatcher::Entry entry = co_await parts_.flow->dispatcher().enter(
      std::move(*flow), seats, loop,
      [&loop](std::chrono::milliseconds delay, std::function<void()> work) { loop.run_after(delay, std::move(work)); });
  response.waited += std::chrono::steady_clock::now() - queued;
  if (entry.refused.empty()) {
    account.seat = std::move(entry.seat);
    co_return true;
  }
  account.dropped = true;
  response.set_header("retry-after", "1");
  send_text(response, 429, "Too many requests, please try again later.\n");
  co_return false;
}

Task<void> Pipeline::route(net::Request& request, net::Response& response, Account& account) {
  const std::string_view path = request.path;
  auto below = [&](std::string_view top) {
    return path.starts_with(top) && (path.size() == top.size() || path[top.size()] == '/');
  };
  if (parts_.api && (below("/api") || below("/apis") || below("/openapi"))) {
    co_await parts_.api(account.info, request, response, account.user, account.trail.recording());
  } else if (below("/healthz") || below("/livez") || below("/readyz")) {
    co_await parts_.refresh_health(response.loop());
    if (std::optional<Health::Answer> answer = parts_.health->answer(path, account.info.query())) {
      send_text(response, answer->status, std::move(answer->body));
    } else {
      send_text(response, 404, "404 page not found\n");
    }
  } else if (path == "/version" || path == "/version/") {
    static constexpr std::string_view kProduced[] = {"application/json"};
    Result<Unit> ok = request::check_accept_route(request.headers.get("accept"), std::span(kProduced));
    if (!ok) {
      co_return call::send_error(account.info, request, response, ok.error(), parts_.gates, parts_.accept_rule);
    }
    response.add_header("content-type", "application/json");
    (void)response.send(200, net::Body(net::Bytes::lasting(version_json())));
  } else if (below("/version")) {
    call::send_error(account.info, request, response, render::route_not_found(), parts_.gates, parts_.accept_rule);
  } else if (path == "/metrics") {
    response.add_header("content-type", "text/plain; version=0.0.4; charset=utf-8");
    response.allow_gzip();
    if (parts_.refresh_metrics) parts_.refresh_metrics();
    (void)response.send(200, net::Body(parts_.metrics->render()));
  } else if (path == "/metrics/slis") {
    co_await parts_.refresh_health(response.loop());
    response.add_header("content-type", "text/plain; version=0.0.4; charset=utf-8");
    (void)response.send(200, net::Body(parts_.health->metrics()));
  } else if (path == "/statusz" || path == "/flagz") {
    send_page(account.info, request, response);
  } else if (path == "/debug/ownership" && parts_.ownership_page) {
    Result<std::string> page = parts_.ownership_page(account.info.query());
    if (page) {
      send_text(response, 200, std::move(*page));
    } else {
      call::send_error(account.info, request, response, page.error(), parts_.gates, parts_.accept_rule);
    }
  } else if (parts_.openid && (path == "/.well-known/openid-configuration" || path == "/openid/v1/jwks")) {
    send_openid(account.info, request, response);
  } else if (path == "/" || path == "/index.html") {
    send_index(response);
  } else {
    send_text(response, 404, "404 page not found\n");
  }
}

void Pipeline::send_page(const request::RequestInfo& info, const net::Request& request, net::Response& response) const {
  const bool flags = request.path == "/flagz";
  const std::string_view kind = flags ? "Flagz" : "Statusz";
  const Flagz flagz{parts_.flags};
  const Statusz statusz{parts_.started, system_clock().now()};
  Result<request::PageForm> form =
      request::negotiate_page(call::negotiation_input(request, info.query(), parts_.accept_rule), kind, parts_.gates);
  if (!form) return call::send_error(info, request, response, form.error(), parts_.gates, parts_.accept_rule);
  if (form->text) return send_text(response, 200, flags ? flagz.text() : statusz.text());
  if (form->version == "v1alpha1") {
    response.add_header("warning", "299 - \"This version of the " + std::string(request.path.substr(1)) +
                                       " endpoint is deprecated. Please use a newer version.\"");
  }
  Arena arena;
  const Value object = flags ? flagz.object(arena, form->version) : statusz.object(arena, form->version);
  Result<std::string> body = render::encode_response(object, nullptr, form->format, form->pretty);
  if (!body) return call::send_error(info, request, response, body.error(), parts_.gates, parts_.accept_rule);
  response.add_header("content-type", std::string(request::media_type(form->format)) + ";g=config.k8s.io;v=" +
                                          std::string(form->version) + ";as=" + std::string(kind));
  (void)response.send(200, net::Body(std::move(*body)));
}

void Pipeline::send_index(net::Response& response) const {
  std::vector<std::string> paths = parts_.health->paths();
  if (parts_.api_paths) {
    for (std::string& path : parts_.api_paths()) paths.push_back(std::move(path));
  }
  for (const char* path :
       {"/.well-known/openid-configuration", "/api", "/apis", "/apis/", "/flagz", "/metrics", "/metrics/slis",
        "/openapi/v2", "/openapi/v3", "/openapi/v3/", "/openid/v1/jwks", "/statusz", "/version"}) {
    paths.emplace_back(path);
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  std::string json = "{\n  \"paths\": [";
  const char* separator = "\n";
  for (const std::string& path : paths) {
    json += separator;
    json += "    " + json_quote(path);
    separator = ",\n";
  }
  json += "\n  ]\n}";
  response.add_header("content-type", "application/json");
  (void)response.send(200, net::Body(std::move(json)));
}

void Pipeline::send_openid(const request::RequestInfo& info, const net::Request& request,
                           net::Response& response) const {
  Result<OpenId> openid = parts_.openid();
  if (!openid) return call::send_error(info, request, response, openid.error(), parts_.gates, parts_.accept_rule);
  const bool keys = request.path == "/openid/v1/jwks";
  response.set_header("cache-control", "public, max-age=" + std::to_string(openid->max_age.count()));
  response.add_header("content-type", keys ? "application/jwk-set+json" : "application/json");
  (void)response.send(200, net::Body(keys ? std::move(openid->keys) : std::move(openid->configuration)));
}

void Pipeline::record(const net::Request& request, const net::Response& response, const Account& account) {
  const auto took = std::chrono::steady_clock::now() - account.begin;
  const bool served = serves(account.info.target());
  if ((account.dispatched && is_counted(request, account.info, served)) || account.dropped) {
    const RequestKind kind = kind_of_request(request, account.info, served);
    metrics_.count(kind, response.status(), took, response.waited, response.body_bytes());
    if (account.dropped || response.status() == 504) metrics_.terminated(kind, response.status());
  }
  if (log::verbose(4)) {
    log::info("request", {{"method", request.method},
                          {"uri", request.target},
                          {"code", response.status()},
                          {"us", std::chrono::duration_cast<std::chrono::microseconds>(took).count()},
                          {"bytes", response.body_bytes()},
                          {"user", account.user ? std::string_view(account.user->name) : std::string_view()},
                          {"agent", request.headers.get("user-agent")},
                          {"remote", request.peer->address},
                          {"auditID", account.audit_id}});
  }
}

void Pipeline::answer_exhausted(const request::RequestInfo& info, const net::Request& request, net::Response& response,
                                const ArenaExhausted& exhausted) const {
  if (response.started()) return response.abort();
  if (exhausted.why() == ArenaExhausted::Why::Own) {
    return call::send_error(info, request, response,
                            Error{Reason::RequestEntityTooLarge,
                                  "Request entity too large: handling it would exceed the memory limit of a request"},
                            parts_.gates, parts_.accept_rule);
  }
  response.set_header("retry-after", "1");
  send_text(response, 429, "Too many requests, please try again later.\n");
}

void Pipeline::respond_timed_out(const net::Request&, net::Response& response) {
  // Byte for byte like kube-apiserver, including the content type.
  response.add_header("content-type", "text/plain; charset=utf-8");
  (void)response.send(504,
                      net::Body(net::Bytes::lasting(
                          R"({"metadata":{},"status":"Failure","message":"Timeout: request did not complete within )"
                          R"(the allotted timeout","reason":"Timeout","details":{},"code":504})")));
}

}  // namespace holdfast::server
