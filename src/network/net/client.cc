// The HTTP client. Over HTTP/1.1, one coroutine at a time owns a connection and waits for its changes; over HTTP/2,
// calls share one (http2_calls).
#include <netdb.h>

#include <algorithm>
#include <charconv>

#include "base/strings.h"
#include "base/url.h"
#include "net/http1_body.h"
#include "net/http2_calls.h"
#include "net/resolver.h"
#include "net/stream.h"
#include "net/wire.h"

namespace holdfast::net {

namespace {

using detail::BodyDecoder;
using detail::call_error;
using Progress = CallError::Progress;
using detail::ContextPtr;
using detail::Endpoint;
using detail::Http2Call;
using detail::Http2ClientConnection;
using detail::kCancelled;
using detail::lookup;
using detail::Wire;

// The deadline of a whole call: waiting for another call's connection, connecting, and the response.
class Deadline {
 public:
  explicit Deadline(Millis timeout) {
    if (timeout.count() > 0) end_ = std::chrono::steady_clock::now() + timeout;
  }
  bool limited() const { return end_.has_value(); }
  bool passed() const { return end_ && std::chrono::steady_clock::now() >= *end_; }
  // For timers: 0 without a deadline, otherwise at least 1 ms so that the timer is set.
  Millis left() const {
    if (!end_) return Millis(0);
    return std::max(Millis(1), std::chrono::ceil<Millis>(*end_ - std::chrono::steady_clock::now()));
  }
  Millis limited_to(Millis timeout) const { return end_ ? std::min(left(), timeout) : timeout; }

 private:
  std::optional<detail::TimePoint> end_;
};

// Parses the status line and headers; `head` excludes the final empty line.
bool parse_head(std::string_view head, ClientResponse& response) {
  size_t line_end = std::min(head.find("\r\n"), head.size());
  const std::string_view line = head.substr(0, line_end);
  if (!line.starts_with("HTTP/1.") || line.size() < 12 || line[8] != ' ') return false;
  const auto [stop, error] = std::from_chars(line.data() + 9, line.data() + 12, response.status);
  if (error != std::errc() || stop != line.data() + 12 || response.status < 100) return false;
  response.headers.clear();
  while (line_end < head.size()) {
    const size_t from = line_end + 2;
    line_end = std::min(head.find("\r\n", from), head.size());
    const std::string_view field = head.substr(from, line_end - from);
    const size_t colon = field.find(':');
    if (colon == std::string_view::npos || !detail::is_token(field.substr(0, colon))) return false;
    std::string name = to_lower(field.substr(0, colon));
    response.headers.emplace_back(std::move(name), trim(field.substr(colon + 1), " \t"));
  }
  return true;
}

bool start_body(BodyDecoder& decoder, const std::string& method, const ClientResponse& response) {
  if (response.status == 101) {
    decoder.start(BodyDecoder::Framing::UntilClose);
    return true;
  }
  if (method == "HEAD" || response.status == 204 || response.status == 304) {
    decoder.start(BodyDecoder::Framing::Length, 0);
    return true;
  }
  if (equals_ignoring_case(response.header("transfer-encoding"), "chunked")) {
    decoder.start(BodyDecoder::Framing::Chunked);
    return true;
  }
  const std::string_view length = response.header("content-length");
  if (length.empty()) {
    decoder.start(BodyDecoder::Framing::UntilClose);
    return true;
  }
  const std::optional<uint64_t> bytes = parse_number<uint64_t>(length);
  decoder.start(BodyDecoder::Framing::Length, bytes.value_or(0));
  return bytes.has_value();
}

// Why the request cannot be sent (it could inject lines); empty if it can.
std::string request_problem(const ClientRequest& request) {
  if (!detail::is_token(request.method)) return "net/http: invalid method";
  if (request.target.empty() || !detail::is_clean_target(request.target)) return "net/url: invalid request target";
  for (const auto& [name, value] : request.headers) {
    if (!detail::is_token(name)) return "net/http: invalid header field name";
    if (!detail::is_header_value(value)) return "net/http: invalid header field value for \"" + name + "\"";
  }
  if (!detail::is_header_value(request.upgrade)) return "net/http: invalid header field value for \"Upgrade\"";
  return {};
}

std::string request_text(const ClientOptions& options, const ClientRequest& request) {
  std::string text = request.method + " " + request.target + " HTTP/1.1\r\n";
  auto given = [&](std::string_view name) {
    return std::any_of(request.headers.begin(), request.headers.end(),
                       [&](const auto& header) { return equals_ignoring_case(header.first, name); });
  };
  if (!given("host")) text += "Host: " + detail::authority_of(options) + "\r\n";
  for (const auto& [name, value] : request.headers) text += name + ": " + value + "\r\n";
  if (!request.upgrade.empty()) text += "Connection: Upgrade\r\nUpgrade: " + request.upgrade + "\r\n";
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT" || request.method == "PATCH") {
    text += "Content-Length: " + std::to_string(request.body.size()) + "\r\n";
  }
  return text + "\r\n" + request.body;
}

}  // namespace

void Cancellation::cancel() {
  cancelled_ = true;
  for (const std::function<void()>& stop : stops_) stop();
}

CancellationScope::CancellationScope(std::shared_ptr<Cancellation> cancellation, std::function<void()> stop)
    : cancellation_(std::move(cancellation)) {
  if (cancellation_ == nullptr) return;
  mine_ = cancellation_->stops_.insert(cancellation_->stops_.end(), std::move(stop));
  if (cancellation_->cancelled()) (*mine_)();
}
CancellationScope::~CancellationScope() {
  if (cancellation_ != nullptr) cancellation_->stops_.erase(mine_);
}

std::string_view ClientResponse::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (equals_ignoring_case(key, name)) return value;
  }
  return {};
}

struct Client::State {
  State(EventLoop& event_loop, ClientOptions client_options) : loop(event_loop), options(std::move(client_options)) {
    if (options.server_name.empty()) options.server_name = options.host;
  }

  EventLoop& loop;
  ClientOptions options;
  std::optional<Result<ContextPtr>> context;  // Created by the first call.
  struct Idle {
    std::unique_ptr<Wire> wire;
    detail::TimePoint since;
  };
  std::vector<Idle> idle;
  std::vector<std::shared_ptr<Http2ClientConnection>> shared;  // HTTP/2 connections.
  bool dialling = false;    // Other calls wait to see whether they can share the connection.
  bool http1_only = false;  // The server chose HTTP/1.1: calls need not wait for each other.
  struct Waiting {
    std::coroutine_handle<> handle;
    uint64_t timer = 0;
  };
  std::vector<Waiting*> waiting;  // Calls waiting for that connection.
  bool closed = false;

  std::shared_ptr<Http2ClientConnection> take_shared() {
    std::erase_if(shared, [](const auto& connection) { return connection->over(); });
    for (const auto& connection : shared) {
      if (connection->usable()) return connection;
    }
    return nullptr;
  }

  // Resumes when the connection attempt has ended, the deadline has passed, or the call is cancelled.
  auto dialled(const Deadline& deadline, std::shared_ptr<Cancellation> cancellation) {
    struct Awaiter : Waiting {
      State& state;
      const Deadline& deadline;
      std::shared_ptr<Cancellation> cancellation;
      std::optional<CancellationScope> scope = {};
      bool await_ready() const noexcept { return !state.dialling; }
      void await_suspend(std::coroutine_handle<> h) {
        handle = h;
        state.waiting.push_back(this);
        if (deadline.limited()) timer = state.loop.run_after(deadline.left(), [this] { state.resume(*this); });
        scope.emplace(std::move(cancellation), [this] { state.resume(*this); });
      }
      void await_resume() { scope.reset(); }
    };
    return Awaiter{{}, *this, deadline, std::move(cancellation)};
  }

  void resume(Waiting& waiter) {
    if (std::erase(waiting, &waiter) == 0) return;
    loop.cancel(waiter.timer);
    loop.state().resume_soon(waiter.handle);
  }

  void end_dialling() {
    dialling = false;
    for (const Waiting* waiter : std::exchange(waiting, {})) {
      loop.cancel(waiter->timer);
      loop.state().resume_soon(waiter->handle);
    }
  }

  std::unique_ptr<Wire> take_idle() {
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(idle, [&](const Idle& i) {
      return i.wire->ended || !i.wire->failure.empty() || !i.wire->in.empty() || now - i.since > options.idle_timeout;
    });
    if (idle.empty()) return nullptr;
    std::unique_ptr<Wire> wire = std::move(idle.back().wire);
    idle.pop_back();
    return wire;
  }

  void give_back(std::unique_ptr<Wire> wire) {
    if (closed || wire->ended || !wire->failure.empty() || idle.size() >= options.max_idle_connections) return;
    wire->set_deadline(Millis(0));
    idle.push_back({std::move(wire), std::chrono::steady_clock::now()});
  }
};

struct ClientStream::State {
  std::shared_ptr<Client::State> client;
  std::unique_ptr<Http2Call> call;  // HTTP/2 only; the other fields are for HTTP/1.1.
  std::unique_ptr<Wire> wire;
  BodyDecoder decoder;
  ClientResponse head;
  bool over = false;

  // Called when the body was read to the end: the connection may be reused.
  void finish() {
    over = true;
    const bool keep = decoder.framing() != BodyDecoder::Framing::UntilClose &&
                      !equals_ignoring_case(head.header("connection"), "close");
    if (keep) client->give_back(std::move(wire));
    // The other direction of a tunnel may still be using it.
    if (head.status != 101) wire.reset();
  }

  void cancel() {
    if (call) call->cancel(std::string(kCancelled));
    if (wire) wire->cancel();
  }
};

namespace {

using ClientState = Client::State;

// Asks the connected proxy for a tunnel.
Task<CallResult<Unit>> open_tunnel(Wire& wire, const ClientOptions& options) {
  const std::string target = host_port(options.host, options.port);
  std::string request = "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n";
  if (!options.proxy_authorization.empty()) request += "Proxy-Authorization: " + options.proxy_authorization + "\r\n";
  wire.send(request + "\r\n");
  size_t end = 0;
  while ((end = wire.in.find("\r\n\r\n")) == std::string::npos) {
    if (!wire.failure.empty()) co_return call_error("proxyconnect tcp: " + wire.failure);
    if (wire.ended) co_return call_error("proxyconnect tcp: EOF");
    if (wire.in.size() > options.max_header_bytes) co_return call_error("proxyconnect tcp: response too large");
    co_await wire.changed();
  }
  ClientResponse answer;
  if (!parse_head(std::string_view(wire.in).substr(0, end), answer)) {
    co_return call_error("proxyconnect tcp: malformed HTTP response");
  }
  if (answer.status != 200)
    co_return call_error("proxyconnect tcp: the proxy responded with " + std::to_string(answer.status));
  wire.in.erase(0, end + 4);
  co_return Unit{};
}

Task<CallResult<std::unique_ptr<Wire>>> dial(std::shared_ptr<ClientState> client, const ClientRequest& request,
                                             const Deadline& deadline) {
  const ClientOptions& options = client->options;
  if (options.tls && !client->context) client->context = detail::client_context(options);
  if (options.tls && !client->context->ok()) co_return CallError(client->context->error());
  const bool proxied = !options.proxy_host.empty();
  const std::string host = proxied ? options.proxy_host : options.host;
  const uint16_t port = proxied ? options.proxy_port : options.port;
  CallResult<std::vector<Endpoint>> endpoints = std::vector<Endpoint>();
  if (!options.unix_socket.empty()) {
    CallResult<Endpoint> endpoint = detail::unix_endpoint(options.unix_socket);
    if (!endpoint) co_return endpoint.take_error();
    endpoints->push_back(std::move(*endpoint));
  } else {
    endpoints = lookup(host, port, AI_NUMERICHOST);
  }
  if (!endpoints) {
    endpoints = co_await detail::Resolver::shared().find(
        client->loop, host, port, deadline.limited_to(options.connect_timeout), request.cancellation);
    if (!endpoints && deadline.passed()) co_return call_error(std::string(detail::kDeadline));
  }
  if (!endpoints) co_return endpoints.take_error();
  CallError failure = call_error("dial tcp: lookup " + host + ": no addresses", Progress::NotConnected);
  for (const Endpoint& endpoint : *endpoints) {
    auto wire = std::make_unique<Wire>(client->loop, endpoint);
    const CancellationScope scope(request.cancellation, [&wire = *wire] { wire.cancel(); });
    if (options.tls && !proxied) wire->use_tls(**client->context, options.server_name, !options.insecure);
    wire->set_deadline(deadline.limited_to(options.connect_timeout));
    while (wire->failure.empty() && !wire->connected) co_await wire->changed();
    if (proxied && wire->failure.empty()) {
      CallResult<Unit> tunnel = co_await open_tunnel(*wire, options);
      if (!tunnel) co_return tunnel.take_error();
      if (options.tls) wire->use_tls(**client->context, options.server_name, !options.insecure);
    }
    while (wire->failure.empty() && options.tls && !wire->secured) co_await wire->changed();
    if (wire->failure.empty()) co_return wire;
    if (wire->cancelled) co_return call_error(wire->failure);
    if (wire->timed_out) {
      failure = deadline.limited() ? call_error(wire->failure)
                                   : call_error("dial " + endpoint.text + ": i/o timeout", Progress::NotConnected);
    } else {
      failure = call_error(wire->failure, wire->connected ? Progress::Unknown : Progress::NotConnected);
    }
  }
  co_return failure;
}

// Sends the request and reads the response's head.
Task<CallResult<std::unique_ptr<ClientStream::State>>> exchange(std::shared_ptr<ClientState> client,
                                                                const ClientRequest& request, const Deadline& deadline,
                                                                std::unique_ptr<Wire> wire) {
  const CancellationScope scope(request.cancellation, [&wire = *wire] { wire.cancel(); });
  wire->set_deadline(deadline.left());
  wire->send(request_text(client->options, request));
  auto stream = std::make_unique<ClientStream::State>();
  while (true) {
    const size_t end = wire->in.find("\r\n\r\n");
    if (end == std::string::npos) {
      if (wire->in.size() > client->options.max_header_bytes)
        co_return call_error("net/http: response headers too large");
      if (!wire->failure.empty()) co_return call_error(wire->failure);
      if (wire->ended) co_return call_error("EOF", Progress::Unanswered);
      co_await wire->changed();
      continue;
    }
    if (!parse_head(std::string_view(wire->in).substr(0, end), stream->head)) {
      co_return call_error("net/http: malformed HTTP response");
    }
    wire->in.erase(0, end + 4);
    if (stream->head.status >= 200) break;  // Skip interim responses.
    if (stream->head.status == 101 && !request.upgrade.empty()) break;
  }
  if (!start_body(stream->decoder, request.method, stream->head)) co_return call_error("net/http: bad Content-Length");
  stream->client = std::move(client);
  stream->wire = std::move(wire);
  co_return stream;
}

Task<CallResult<std::unique_ptr<ClientStream::State>>> exchange(std::shared_ptr<ClientState> client,
                                                                const ClientRequest& request, const Deadline& deadline,
                                                                std::shared_ptr<Http2ClientConnection> connection) {
  auto stream = std::make_unique<ClientStream::State>();
  stream->client = std::move(client);
  stream->call = connection->start(request);
  Http2Call& call = *stream->call;
  call.set_deadline(deadline.left());
  const CancellationScope scope(request.cancellation, [&call] { call.cancel(std::string(kCancelled)); });
  while (!call.head_done && call.failure.empty() && !call.ended) co_await call.changed();
  if (!call.head_done) {
    co_return call_error(call.failure.empty() ? "unexpected EOF" : call.failure,
                         call.refused ? Progress::NotProcessed : Progress::Unknown);
  }
  stream->head = std::move(call.head);
  co_return stream;
}

// Either an HTTP/2 connection with room for another call, or an HTTP/1.1 connection if the server supports nothing
// else.
struct Connected {
  std::shared_ptr<Http2ClientConnection> shared;
  std::unique_ptr<Wire> wire;
};
Task<CallResult<Connected>> connect(std::shared_ptr<ClientState> client, const ClientRequest& request,
                                    const Deadline& deadline) {
  const ClientOptions& options = client->options;
  const bool may_share = options.tls ? options.http2 : options.http2_prior_knowledge;
  while (may_share && !client->http1_only) {
    if (std::shared_ptr<Http2ClientConnection> shared = client->take_shared())
      co_return Connected{std::move(shared), nullptr};
    if (!client->dialling) break;
    co_await client->dialled(deadline, request.cancellation);
    if (request.cancellation != nullptr && request.cancellation->cancelled()) {
      co_return call_error(std::string(kCancelled));
    }
    if (deadline.passed()) co_return call_error(std::string(detail::kDeadline));
  }
  client->dialling = may_share;
  CallResult<std::unique_ptr<Wire>> wire = co_await dial(client, request, deadline);
  if (!wire) {
    client->end_dialling();
    co_return wire.take_error();
  }
  if (!(options.tls ? (*wire)->speaks_http2() : may_share)) {
    client->http1_only = true;
    client->end_dialling();
    co_return Connected{nullptr, std::move(*wire)};
  }
  (*wire)->set_deadline(Millis(0));
  auto shared = std::make_shared<Http2ClientConnection>(std::move(*wire), client->options);
  spawn(Http2ClientConnection::run(shared), [client](std::exception_ptr failure) {
    if (failure) report_failed_task("HTTP/2 client", failure);
  });
  client->shared.push_back(shared);
  client->end_dialling();
  co_return Connected{std::move(shared), nullptr};
}

Task<CallResult<std::unique_ptr<ClientStream::State>>> open_stream(std::shared_ptr<ClientState> client,
                                                                   const ClientRequest& request) {
  if (!client->loop.in_thread()) co_await resume_on(client->loop);
  if (std::string why = request_problem(request); !why.empty()) co_return call_error(std::move(why));
  const Deadline deadline(request.timeout);
  if (std::unique_ptr<Wire> wire = client->take_idle()) {
    CallResult<std::unique_ptr<ClientStream::State>> opened =
        co_await exchange(client, request, deadline, std::move(wire));
    // The server may have closed the idle connection while the request was being sent: retry on a new one.
    if (opened || opened.error().progress != Progress::Unanswered) co_return opened;
  }
  // After GOAWAY, the server rejects requests it has not processed; those are retried on a new connection.
  constexpr int kTries = 3;
  for (int tried = 1;; ++tried) {
    CallResult<Connected> connected = co_await connect(client, request, deadline);
    if (!connected) co_return connected.take_error();
    if (connected->wire) co_return co_await exchange(client, request, deadline, std::move(connected->wire));
    CallResult<std::unique_ptr<ClientStream::State>> opened =
        co_await exchange(client, request, deadline, connected->shared);
    if (opened || tried == kTries || opened.error().progress != Progress::NotProcessed) co_return opened;
  }
}

// The next piece of the body; empty at its end.
Task<CallResult<std::string>> read_piece(ClientStream::State& stream) {
  if (stream.call) {
    Http2Call& call = *stream.call;
    while (call.body.empty() && !call.ended && call.failure.empty()) co_await call.changed();
    if (!call.body.empty()) co_return call.take_body();
    if (!call.failure.empty()) co_return call_error(call.failure);
    stream.over = true;
    co_return std::string();
  }
  while (!stream.over) {
    Wire& wire = *stream.wire;
    size_t consumed = 0;
    std::string_view payload;
    const BodyDecoder::Step step = stream.decoder.step(wire.in, consumed, payload);
    if (step == BodyDecoder::Step::Bad) co_return call_error("net/http: invalid chunk in response");
    if (step == BodyDecoder::Step::Payload) {
      std::string piece(payload);
      wire.in.erase(0, consumed);
      wire.took();
      co_return piece;
    }
    wire.in.erase(0, consumed);
    if (step == BodyDecoder::Step::End) {
      stream.finish();
      break;
    }
    // What is left is an incomplete line: decode again only after more has arrived.
    const size_t left = wire.in.size();
    wire.took();
    if (wire.in.size() > left) continue;
    if (!wire.failure.empty()) co_return call_error(wire.failure);
    if (wire.ended) {
      if (stream.decoder.framing() != BodyDecoder::Framing::UntilClose) co_return call_error("unexpected EOF");
      stream.finish();
      break;
    }
    co_await wire.changed();
  }
  co_return std::string();
}

}  // namespace

ClientStream::ClientStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
ClientStream::ClientStream(ClientStream&&) noexcept = default;
ClientStream& ClientStream::operator=(ClientStream&&) noexcept = default;
ClientStream::~ClientStream() = default;

const ClientResponse& ClientStream::head() const { return state_->head; }
Task<CallResult<std::string>> ClientStream::read_some() { return read_piece(*state_); }
Task<CallResult<Unit>> ClientStream::write(std::string_view bytes) {
  if (state_->wire == nullptr) co_return call_error("EOF");
  Wire& wire = *state_->wire;
  wire.send(bytes);
  co_await wire.drained();
  if (!wire.failure.empty()) co_return call_error(wire.failure);
  co_return Unit{};
}
void ClientStream::cancel() { state_->cancel(); }

Client::Client(EventLoop& loop, ClientOptions options) : state_(std::make_shared<State>(loop, std::move(options))) {}

Client::~Client() {
  // Connections belong to the loop's thread; calls in flight keep the state alive until they finish.
  state_->loop.post([state = state_] {
    state->closed = true;
    state->idle.clear();
    for (const auto& connection : state->shared) connection->close_when_idle();
  });
}

Task<CallResult<ClientStream>> Client::open(ClientRequest request) {
  CallResult<std::unique_ptr<ClientStream::State>> opened = co_await open_stream(state_, request);
  if (!opened) co_return opened.take_error();
  if ((*opened)->call) {
    (*opened)->call->set_deadline(Millis(0));
  } else {
    (*opened)->wire->set_deadline(Millis(0));
  }
  co_return ClientStream(std::move(*opened));
}

Task<CallResult<ClientResponse>> Client::fetch(ClientRequest request, size_t body_limit_bytes) {
  CallResult<std::unique_ptr<ClientStream::State>> opened = co_await open_stream(state_, request);
  if (!opened) co_return opened.take_error();
  std::unique_ptr<ClientStream::State> stream = std::move(*opened);
  const CancellationScope scope(request.cancellation, [&stream = *stream] { stream.cancel(); });
  std::string body;
  while (true) {
    CallResult<std::string> piece = co_await read_piece(*stream);
    if (!piece) co_return piece.take_error();
    if (piece->empty()) break;
    if (body.size() + piece->size() > body_limit_bytes) {
      co_return CallError({Reason::RequestEntityTooLarge,
                           "the response is larger than " + std::to_string(body_limit_bytes) + " bytes"});
    }
    body += *piece;
  }
  ClientResponse response = std::move(stream->head);
  if (response.header("content-encoding") == "gzip") {
    Result<std::string> plain = gunzip(body, body_limit_bytes);
    if (!plain) co_return CallError(plain.take_error());
    body = std::move(*plain);
  }
  response.body = std::move(body);
  if (stream->call) response.trailers = std::move(stream->call->trailers);
  co_return response;
}

}  // namespace holdfast::net
