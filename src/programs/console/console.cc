#include "console/console.h"

#include <array>

#include "client/pass_on.h"
#include "codec/json.h"
#include "console/forward.h"
#include "console/guard.h"
#include "console/page.h"

namespace holdfast::console {

namespace {

constexpr size_t kBodyBytes = 3 << 20;  // The API server's own limit.

// No code but our files, nothing from other servers, no forms, no frames; and no text ever becomes markup, because
// every function of the DOM that would parse some throws.
constexpr std::string_view kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

void add_common_headers(net::Response& response, std::string_view policy) {
  response.set_header("content-security-policy", policy);
  response.set_header("x-content-type-options", "nosniff");
  response.set_header("x-frame-options", "DENY");
  response.set_header("referrer-policy", "no-referrer");
  response.set_header("cross-origin-opener-policy", "same-origin");
  response.set_header("cross-origin-resource-policy", "same-origin");
  response.set_header("cross-origin-embedder-policy", "require-corp");
  response.set_header("permissions-policy", "camera=(), geolocation=(), microphone=(), usb=()");
  response.set_header("cache-control", "no-store");
}

void add_data_headers(net::Response& response) {
  add_common_headers(response, "default-src 'none'; frame-ancestors 'none'; sandbox");
}

void send_json(net::Response& response, int status, std::string body) {
  add_data_headers(response);
  response.set_header("content-type", "application/json");
  (void)response.send(status, net::Body(std::move(body)));
}

// In the form of the API server's own errors; `reason` tells the page that it was the console which refused.
void send_error(net::Response& response, int status, std::string_view message, std::string_view reason) {
  std::string body = R"({"kind":"Status","apiVersion":"v1","status":"Failure","message":)";
  codec::encode_json_string(message, body);
  body += ",\"reason\":";
  codec::encode_json_string(reason, body);
  body += ",\"code\":" + std::to_string(status) + "}";
  send_json(response, status, std::move(body));
}

void send_refusal(net::Response& response, const Refusal& refusal) {
  send_error(response, refusal.status, refusal.why, refusal.status == 401 ? "ConsoleSession" : "ConsoleRefused");
}

void send_page_file(const net::Request& request, net::Response& response, std::string_view name) {
  const PageFile* const file = find_page_file(name);
  if (file == nullptr) return send_error(response, 404, "the console has no such file", "NotFound");
  if (request.method != "GET") return send_error(response, 405, "this can only be read", "MethodNotAllowed");
  add_common_headers(response, kPagePolicy);
  response.set_header("content-type", file->type);
  if (request.headers.get("accept-encoding").find("gzip") != std::string_view::npos) {
    response.set_header("content-encoding", "gzip");
    return (void)response.send(200, net::Body(net::Bytes::lasting(file->gzip)));
  }
  Result<std::string> plain = net::gunzip(file->gzip, size_t{8} << 20);
  if (!plain) return send_error(response, 500, plain.error().message, "InternalError");
  (void)response.send(200, net::Body(std::move(*plain)));
}

}  // namespace

struct Console::State {
  State(net::Loops& the_loops, const client::Client& the_client, Options the_options)
      : loops(the_loops), client(the_client), options(std::move(the_options)) {}

  net::Loops& loops;
  const client::Client& client;
  const Options options;
  std::optional<Guard> guard;  // Since the port is known.
  std::unique_ptr<net::Server> server;

  Task<void> serve(net::Request& request, net::Response& response);
  Task<void> open_session(net::Request& request, net::Response& response);
  Task<void> run_tool(std::string_view name, net::Request& request, net::Response& response);
  Task<void> forward(std::string_view target, net::Request& request, net::Response& response) const;
  std::string about() const;
};

Task<void> Console::State::serve(net::Request& request, net::Response& response) {
  // What has the wrong host learns nothing, not even the prefix of the paths.
  if (std::optional<Refusal> refusal = guard->check(request, Access::Page); refusal) {
    co_return send_refusal(response, *refusal);
  }
  const std::string_view target = request.target;
  if (!target.starts_with(guard->prefix())) {
    co_return send_error(response, 404, "open the address that holdfast console printed", "NotFound");
  }
  const std::string_view rest = target.substr(guard->prefix().size());
  const std::string_view path = rest.substr(0, rest.find('?'));
  const bool api = path.starts_with("api/"), tool = path.starts_with("tools/");
  if (!api && !tool && path != "session" && path != "about") co_return send_page_file(request, response, path);

  const bool reads = request.method == "GET";
  const Access access = path == "session" ? Access::Session : reads ? Access::Data : Access::Effect;
  if (std::optional<Refusal> refusal = guard->check(request, access); refusal) {
    co_return send_refusal(response, *refusal);
  }
  if (request.headers.has("upgrade")) {
    co_return send_error(response, 400, "the console has no upgrades", "ConsoleRefused");
  }
  if (reads != (api ? reads : path == "about")) {
    co_return send_error(response, 405, "this method does not fit the path", "MethodNotAllowed");
  }
  if (path == "session") co_return co_await open_session(request, response);
  response.trust_connection();
  if (path == "about") co_return send_json(response, 200, about());
  if (tool) co_return co_await run_tool(path.substr(6), request, response);
  co_await forward(rest.substr(3), request, response);
}

Task<void> Console::State::open_session(net::Request& request, net::Response& response) {
  Result<std::string> token = co_await request.read_body(1024);
  if (!token) co_return send_error(response, 400, token.error().message, "BadRequest");
  const std::optional<std::string> cookie = guard->exchange(*token);
  if (!cookie) {
    co_return send_error(response, 401,
                         "this address was used before, or is of another start: start holdfast console again",
                         "ConsoleSession");
  }
  response.add_header("set-cookie", *cookie);
  send_json(response, 200, "{}");
}

Task<void> Console::State::run_tool(std::string_view name, net::Request& request, net::Response& response) {
  const auto tool = options.tools.find(name);
  if (tool == options.tools.end()) co_return send_error(response, 404, "the console has no such tool", "NotFound");
  Result<std::string> body = co_await request.read_body(4 * kBodyBytes);
  if (!body) co_return send_error(response, 413, body.error().message, "RequestEntityTooLarge");
  Result<std::string> result = tool->second(*body);
  if (!result) co_return send_error(response, 400, result.error().message, "BadRequest");
  send_json(response, 200, std::move(*result));
}

Task<void> Console::State::forward(std::string_view target, net::Request& request, net::Response& response) const {
  const std::string_view path = target.substr(0, target.find('?'));
  const std::optional<Rejected> rejected = check_call(request.method, path, request.headers.get("content-type"));
  if (rejected) co_return send_error(response, rejected->status, rejected->why, "ConsoleRefused");
  client::PassedOn call{.method = std::string(request.method),
                        .target = std::string(target),
                        .accept = std::string(request.headers.get("accept")),
                        .content_type = std::string(request.headers.get("content-type")),
                        .body = {}};
  if (request.method != "GET") {
    Result<std::string> body = co_await request.read_body(kBodyBytes);
    if (!body) co_return send_error(response, 413, body.error().message, "RequestEntityTooLarge");
    call.body = std::move(*body);
  }
  Result<net::ClientStream> opened = co_await client::pass_on(client, std::move(call));
  if (!opened && opened.error().code == 0) {
    co_return send_error(response, 502, opened.error().message, "ConsoleUnreachable");
  }
  if (!opened) co_return send_json(response, opened.error().code, status_of(opened.error(), opened.error().code));
  net::ClientStream stream = std::move(*opened);
  const net::ClientResponse& head = stream.head();
  add_data_headers(response);
  response.set_header("content-type", head.header("content-type"));
  if (!response.start(head.status)) co_return;
  response.on_interrupt([&stream](net::Interrupt) { stream.cancel(); });
  while (true) {
    net::CallResult<std::string> piece = co_await stream.read_some();
    if (!piece) co_return response.abort();  // The page must not take it for the whole.
    if (piece->empty()) break;
    Result<Unit> written = co_await response.write(net::Bytes(std::move(*piece)));
    if (!written) co_return;
  }
  response.end();
}

std::string Console::State::about() const {
  std::string body = "{\"server\":";
  codec::encode_json_string(options.server_url, body);
  body += ",\"namespace\":";
  codec::encode_json_string(options.space, body);
  body += ",\"version\":";
  codec::encode_json_string(options.version, body);
  return body + "}";
}

Console::Console(net::Loops& loops, const client::Client& client, Options options)
    : state_(std::make_shared<State>(loops, client, std::move(options))) {
  assert(loops.count() == 1);  // The streams of the client are used where the handlers run.
}

Console::~Console() { stop(); }

Result<Unit> Console::start() {
  State& state = *state_;
  net::ServerOptions options;
  options.listen = "127.0.0.1:" + std::to_string(state.options.port);
  options.max_connections = 256;
  // Handlers run only between start() and stop(), which the state outlives.
  state.server = std::make_unique<net::Server>(
      state.loops, std::move(options),
      [&state](net::Request& request, net::Response& response) { return state.serve(request, response); });
  Result<Unit> bound = state.server->bind();
  if (!bound) return bound;
  state.guard.emplace(state.server->port());
  return state.server->start();
}

void Console::stop() {
  if (state_->server == nullptr) return;
  state_->server->stop(net::Millis(0));
  state_->server.reset();
}

uint16_t Console::port() const { return state_->server->port(); }
std::string Console::url() const { return state_->guard->url(); }

}  // namespace holdfast::console
