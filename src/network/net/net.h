// HTTP/1.1 and HTTP/2 over TLS: a server whose handlers are coroutines, a client, and the event loops both run on.
//
// There are a few loops with one thread each, and a connection stays on one of them. Everything a handler awaits here
// resumes on that thread, so a handler and its connection never race and nothing here locks.
//
//   Task<void> hello(net::Request& request, net::Response& response) {
//     Result<std::string> body = co_await request.read_body(1 << 20);
//     if (!body) co_return (void)response.send(400, net::Body(body.error().message));
//     response.add_header("content-type", "text/plain");
//     response.send(200, net::Body("hello\n"));
//   }
//
// Cancellation: when the peer disconnects (connection lost, stream reset) every await of the handler returns an error
// and on_interrupt() is called at once. A handler always runs to its end; its Request and Response live until then.
// A handler that throws fails only its own request: 500, or a reset if the response had started.
#pragma once

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/task.h"
#include "base/task_group.h"

namespace holdfast::net {

namespace detail {
class Stream;
class Connection;
struct LoopState;
struct CertificateData;
}  // namespace detail

using Millis = std::chrono::milliseconds;

// ---------------------------------------------------------------------------------------------------- Event loops

// One thread that waits for sockets, timers and posted work. post() may be called from any thread, the rest from the
// loop's own.
class EventLoop final : public TimedExecutor {
 public:
  EventLoop();
  ~EventLoop() override;

  void post(std::function<void()> work) override;
  bool in_thread() const override;
  TimerId run_after(Millis delay, std::function<void()> work) override;
  void cancel(TimerId id) override;

  // co_await loop.sleep_for(10ms). Tasks of a TaskGroup use its sleep(), which close() ends.
  auto sleep_for(Millis delay) {
    struct Awaiter {
      EventLoop& loop;
      Millis delay;
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<> h) {
        loop.run_after(delay, [h] { h.resume(); });
      }
      void await_resume() const noexcept {}
    };
    return Awaiter{*this, delay};
  }

  // The longest time since the last call that one event, timer or posted work blocked this loop. Thread-safe.
  std::chrono::microseconds take_longest_stall();

  detail::LoopState& state() { return *state_; }  // For net's own files.

 private:
  std::unique_ptr<detail::LoopState> state_;
};

// The loops of a process and their threads. The destructor stops the threads; destroy the servers and clients that use
// them first.
class Loops {
 public:
  explicit Loops(uint32_t count);
  ~Loops();
  Loops(const Loops&) = delete;
  Loops& operator=(const Loops&) = delete;

  size_t count() const { return loops_.size(); }
  EventLoop& at(size_t index) { return *loops_[index]; }

 private:
  struct Threads;
  std::vector<std::unique_ptr<EventLoop>> loops_;
  std::unique_ptr<Threads> threads_;
};

// ---------------------------------------------------------------------------------------------------- Certificates

// The peer's certificate from the TLS handshake. Not verified yet: CaPool does that, so that an invalid certificate
// gets a 401, as with kube-apiserver, instead of a failed handshake.
class PeerCertificate {
 public:
  explicit PeerCertificate(std::unique_ptr<detail::CertificateData> data);
  ~PeerCertificate();

  std::string_view common_name() const;
  const std::vector<std::string>& organizations() const;
  std::string_view uid() const;  // Kubernetes' subject attribute 1.3.6.1.4.1.57683.2, empty if absent.
  std::string_view der() const;  // The leaf.
  std::string_view sha256_hex() const;
  std::chrono::system_clock::time_point not_after() const;  // The first moment at which it is no longer valid.
  const detail::CertificateData& data() const { return *data_; }

 private:
  std::unique_ptr<detail::CertificateData> data_;
};

// Certificate authorities for client certificates. To reload, create a new one.
class CaPool {
 public:
  // Requires at least one certificate. Errors name the source.
  static Result<CaPool> from_pem(std::string_view pem, std::string_view source);

  // Verifies chain, dates and client-auth usage. Cached per certificate, so only a connection's first request pays.
  // Called on the thread of the certificate's connection.
  Result<Unit> verify_client(const PeerCertificate& certificate) const;
  std::string_view pem() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

struct Identity {
  std::string certificate_pem;  // Leaf first, then its chain.
  std::string key_pem;
};

struct NamedIdentity {
  Identity identity;
  // Host names; "*.example.com" covers all names one label below. If empty, those in the certificate.
  std::vector<std::string> names;
};

struct TlsOptions {
  enum class Version : uint8_t { Tls12, Tls13 };
  Version min_version = Version::Tls12;
  // IANA names (TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256) of the suites allowed for TLS 1.2, by preference. If empty, all
  // with forward secrecy and authenticated encryption. Those of TLS 1.3 are not configurable: none is weak.
  std::vector<std::string> cipher_suites;
};
// The names that TlsOptions::cipher_suites accepts.
std::vector<std::string_view> known_cipher_suites();

// ---------------------------------------------------------------------------------------------------- Bytes

// Immutable bytes and their owner.
struct Bytes {
  std::string_view view;
  std::shared_ptr<const void> owner;

  Bytes() = default;
  Bytes(std::string text);  // NOLINT: a string is bytes.
  Bytes(std::string_view bytes, std::shared_ptr<const void> keeper) : view(bytes), owner(std::move(keeper)) {}
  // Text with static lifetime.
  static Bytes lasting(std::string_view text) { return {text, nullptr}; }
};

// The parts of a message body, sent in order without being concatenated.
class Body {
 public:
  Body() = default;
  explicit Body(std::string text) { add(Bytes(std::move(text))); }
  explicit Body(Bytes bytes) { add(std::move(bytes)); }
  void add(Bytes part) {
    if (part.view.empty()) return;
    bytes_ += part.view.size();
    parts_.push_back(std::move(part));
  }
  size_t bytes() const { return bytes_; }
  std::vector<Bytes>& parts() { return parts_; }
  const std::vector<Bytes>& parts() const { return parts_; }

 private:
  std::vector<Bytes> parts_;
  size_t bytes_ = 0;
};

// ---------------------------------------------------------------------------------------------------- Requests

struct Header {
  std::string_view name;  // Lower case.
  std::string_view value;
};

// Headers in the order received; repeated names are kept separate.
class Headers {
 public:
  std::string_view get(std::string_view name) const;  // The first value, empty if absent. Any case.
  bool has(std::string_view name) const;
  std::vector<std::string_view> all(std::string_view name) const;
  std::span<const Header> items() const { return items_; }
  void add(Header header) { items_.push_back(header); }
  void clear() { items_.clear(); }

 private:
  std::vector<Header> items_;
};

enum class Protocol : uint8_t { Http10, Http11, Http2 };

// Properties of a connection.
struct Peer {
  uint64_t connection_id = 0;
  std::string address;  // "127.0.0.1:41234", "[::1]:41234", or "@" for a unix socket.
  bool tls = false;
  std::optional<PeerCertificate> certificate;
  // State that handlers keep with the connection; used only by them, on its thread.
  mutable std::shared_ptr<const void> memo;
};

// Strings are views into the request's memory, valid while its handler runs.
struct Request {
  std::string_view method;     // As sent: GET, POST, ...
  std::string_view target;     // As sent: /api/v1/pods?limit=1
  std::string_view path;       // Percent-decoded; never empty.
  std::string_view query;      // Raw, without the question mark.
  std::string_view authority;  // Host header or :authority.
  Protocol protocol = Protocol::Http11;
  Headers headers;
  const Peer* peer = nullptr;

  // co_await request.read_body(limit) -> Result<std::string>: the whole body. RequestEntityTooLarge above the limit.
  auto read_body(size_t limit_bytes);
  // co_await request.read_some() -> Result<std::string>: what has arrived, at least a byte; empty at the end.
  auto read_some();
  // Ignores the rest of the body: a pending read_some() returns the end.
  void stop_reading();

  EventLoop& loop() const;

  detail::Stream* stream = nullptr;  // For net's own files.
};

// ---------------------------------------------------------------------------------------------------- Responses

enum class Interrupt : uint8_t {
  PeerGone,  // The client no longer reads the response.
  Draining,  // The server is shutting down: long-running streams should end soon.
};

class Response {
 public:
  // Adds a header to the response; name in lower case, both are copied. The server adds date, content-length and
  // the connection's own.
  void add_header(std::string_view name, std::string_view value);
  // Replaces all headers of this name.
  void set_header(std::string_view name, std::string_view value);
  std::string_view header(std::string_view name) const;

  // Allows compression as in kube-apiserver: if the client's Accept-Encoding has the token gzip and the body is larger
  // than 128 KiB. Call it before send() or start(). The head of a streamed response is then delayed until that much has
  // been written. Not for watches.
  void allow_gzip();

  // The whole response. Never waits: the bytes are buffered until the peer has received them.
  Result<Unit> send(int status, Body body = {});

  // A streamed response: start, write..., end. The head is sent at once. 101 begins a WebSocket or, over HTTP/1.1 with
  // the header `upgrade`, a tunnel: from then on both bodies are raw bytes, and there is no deadline.
  Result<Unit> start(int status);
  // co_await response.write(chunk) -> Result<Unit>: queues the chunk, waits while too much is queued for this peer.
  auto write(Bytes chunk);
  void end();
  // Aborts the response: the peer sees a reset or a truncated body, never a complete one.
  void abort();

  // If no response has started by then, ServerOptions::on_deadline sends one; an unfinished response is aborted. Either
  // way the handler is cancelled: its awaits return errors and its output is dropped. Deadlines above five seconds are
  // checked by housekeeping.
  void set_deadline(Millis from_now);

  // Over HTTP/2: GOAWAY before this response, close after the last one. Over HTTP/1.1: Connection: close.
  void close_connection_after();

  bool started() const;         // start() or send() was called.
  int status() const;           // As given to send() or start(); 0 before.
  uint64_t body_bytes() const;  // Written so far, before compression.
  bool closed() const;          // The peer has disconnected.
  bool draining() const;        // The server is shutting down.
  // Called on the loop's thread, once per reason; immediately if it has already happened. Not called after the handler
  // has ended.
  void on_interrupt(std::function<void(Interrupt)> callback);

  // co_await response.sleep_for(10ms) -> Result<Unit>: returns early with an error when the peer disconnects.
  auto sleep_for(Millis delay);

  // Marks the connection as used by an authenticated client: it no longer counts against
  // ServerOptions::max_unauthenticated_connections.
  void trust_connection();

  EventLoop& loop() const;

  // Time that the handler spent waiting for other servers or in a queue: what says nothing about the speed of this
  // server. Kept by handlers.
  std::chrono::nanoseconds waited{0};

  detail::Stream* stream = nullptr;  // For net's own files.
};

using Handler = std::function<Task<void>(Request&, Response&)>;

// ---------------------------------------------------------------------------------------------------- Server

struct ServerOptions {
  // "127.0.0.1:6443", "[::]:0" (0 picks a port) or "unix:/run/holdfast.sock".
  std::string listen = "127.0.0.1:0";
  // TLS when given; cleartext (HTTP/1.1, or HTTP/2 with prior knowledge) otherwise.
  std::optional<Identity> identity;
  // Used instead of `identity` for their host names.
  std::vector<NamedIdentity> named_identities;
  // Names sent to clients so that they can choose a certificate; verification is done by CaPool.
  std::string client_ca_pem;
  TlsOptions tls;

  // The values of Go's server and kube-apiserver, which clients rely on.
  uint32_t max_header_bytes = limits::kHeaderBytes;
  uint32_t max_concurrent_streams = limits::kStreams;
  uint32_t stream_window_bytes = 256 << 10;
  uint32_t max_frame_bytes = 256 << 10;
  Millis idle_timeout{limits::kIdleSeconds * 1000};
  Millis header_timeout{limits::kHeaderSeconds * 1000};
  Millis handshake_timeout{limits::kHandshakeSeconds * 1000};

  // A peer that reads nothing of its queued output for this long is disconnected.
  Millis stalled_write_timeout{limits::kStalledSeconds * 1000};
  // Reading a body fails if nothing arrives for this long: a slow sender must not hold a handler forever.
  Millis stalled_read_timeout{limits::kStalledSeconds * 1000};
  // Bytes queued per stream before write() waits: enough to keep a connection busy, small enough for 10,000 watchers.
  uint32_t write_queue_bytes = 128 << 10;
  // Streams a client may reset beyond those completed before its connection is closed; refilled by a tenth of it per
  // second. Protects against rapid resets.
  uint32_t reset_burst = limits::kStreamResets;
  uint32_t max_connections = 20'000;
  // Connections that have not carried an authenticated request yet (Response::trust_connection): in total, and from one
  // address. New ones beyond that are closed at once. Unix sockets do not count.
  uint32_t max_unauthenticated_connections = 5'000;
  uint32_t max_unauthenticated_connections_per_address = 1'000;
  Millis housekeeping_interval{1000};  // How often the timeouts above are checked.

  // Called when a handler throws, on its loop's thread.
  std::function<void(const Request&, std::string_view what)> on_exception;
  // Responds for a handler that took longer than Response::set_deadline allowed.
  std::function<void(const Request&, Response&)> on_deadline;
};

struct ServerStats {
  uint64_t connections_accepted = 0;
  uint64_t connections_open = 0;
  uint64_t connections_refused = 0;  // Above max_connections or max_unauthenticated_connections.
  uint64_t handshake_failures = 0;
  uint64_t requests = 0;
  uint64_t requests_active = 0;
  uint64_t handler_exceptions = 0;
  uint64_t protocol_errors = 0;  // Malformed requests, floods, stalled peers.
  uint64_t bytes_received = 0;   // On the wire, as for bytes_sent.
  uint64_t bytes_sent = 0;
};

class Server {
 public:
  // `loops` must outlive the server.
  Server(Loops& loops, ServerOptions options, Handler handler);
  ~Server();  // stop(0) if that was not called.
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Binds the address, so that port() is known; connections are not accepted yet. Errors name the address, or the
  // certificate that cannot be used.
  Result<Unit> bind();
  // Starts to serve; binds first if necessary.
  Result<Unit> start();
  uint16_t port() const;  // 0 for unix sockets.

  // Applies to new connections only. `named` replaces ServerOptions::named_identities.
  Result<Unit> reload(const Identity& identity, std::span<const NamedIdentity> named, std::string_view client_ca_pem);

  // Blocks: closes the listener, notifies handlers (Interrupt::Draining) and peers (GOAWAY), waits up to `grace` for
  // the handlers, then closes connections and waits for the handlers to end. Must not be called on a loop's thread.
  void stop(Millis grace);

  ServerStats stats() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// ---------------------------------------------------------------------------------------------------- Client

struct ClientOptions {
  std::string host;  // Name or address.
  uint16_t port = 443;
  // A Unix socket to connect to instead; host and port only name the server in requests then. "@name" is an abstract
  // one.
  std::string unix_socket;
  bool tls = true;
  std::string server_name;  // Checked in the certificate and sent as SNI; `host` when empty.
  std::string ca_pem;       // The system's roots when empty.
  bool insecure = false;    // Do not verify the server.
  std::optional<Identity> identity;
  // Offers HTTP/2 in the TLS handshake: one connection then carries up to as many calls as the server allows.
  bool http2 = false;
  // Without TLS: the server is known to speak HTTP/2.
  bool http2_prior_knowledge = false;
  // HTTP proxy to tunnel through (CONNECT) to host and port; none if empty.
  std::string proxy_host;
  uint16_t proxy_port = 0;
  std::string proxy_authorization;  // "Basic ..."; none when empty.
  Millis connect_timeout{30'000};
  Millis idle_timeout{60'000};  // Idle connections are closed after this.
  uint32_t max_idle_connections = 8;
  uint32_t max_header_bytes = limits::kHeaderBytes;
};

// Cancels calls in flight and later ones. Used on the loop's thread.
class Cancellation {
 public:
  void cancel();
  bool cancelled() const { return cancelled_; }

 private:
  friend class CancellationScope;
  bool cancelled_ = false;
  std::list<std::function<void()>> stops_;  // Each interrupts what a call is waiting for.
};

// While it lives, cancelling calls `stop`; at once if that has happened already. A null cancellation never does. On the
// loop's thread.
class CancellationScope {
 public:
  CancellationScope(std::shared_ptr<Cancellation> cancellation, std::function<void()> stop);
  ~CancellationScope();
  CancellationScope(const CancellationScope&) = delete;
  CancellationScope& operator=(const CancellationScope&) = delete;

 private:
  std::shared_ptr<Cancellation> cancellation_;
  std::list<std::function<void()>>::iterator mine_;
};

struct ClientRequest {
  std::string method = "GET";
  std::string target = "/";
  std::vector<std::pair<std::string, std::string>> headers;  // host and content-length are added.
  std::string body;
  Millis timeout{0};  // For fetch(), the whole call; for open(), until the head has arrived. 0 means no timeout.
  // The protocol to upgrade to (its headers are added), over HTTP/1.1. With a 101 response the stream is a tunnel.
  std::string upgrade;
  // Ends fetch(), or open() until the head has arrived, with an error.
  std::shared_ptr<Cancellation> cancellation = nullptr;
};

struct ClientResponse {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;   // Names in lower case.
  std::string body;                                           // Of fetch(); decompressed if it was gzip.
  std::vector<std::pair<std::string, std::string>> trailers;  // Of fetch() over HTTP/2.
  std::string_view header(std::string_view name) const;
};

// Why a call got no response. The messages are those of Go ("dial tcp 10.0.0.1:443: connect: connection refused"),
// which users know.
struct CallError : Error {
  enum class Progress : uint8_t {
    NotConnected,  // No connection was made: the request has not reached any server.
    NotProcessed,  // The server rejected the request without examining it.
    Unanswered,    // The connection ended before there was a response.
    Unknown,
  };
  explicit CallError(Error error, Progress how_far = Progress::Unknown) : Error(std::move(error)), progress(how_far) {}

  Progress progress;
};
template <class T>
using CallResult = Result<T, CallError>;

// A response that is still being received (a watch, a proxied request). Destroying it before the body was read to the
// end closes its connection, or resets its stream of an HTTP/2 connection.
class ClientStream {
 public:
  struct State;
  explicit ClientStream(std::unique_ptr<State> state);
  ClientStream(ClientStream&&) noexcept;
  ClientStream& operator=(ClientStream&&) noexcept;
  ~ClientStream();

  const ClientResponse& head() const;
  // What has arrived, at least a byte; empty at the end.
  Task<CallResult<std::string>> read_some();
  // Tunnels only: takes the bytes, and waits while too many are unsent. Another coroutine may be reading meanwhile.
  Task<CallResult<Unit>> write(std::string_view bytes);
  // Makes pending reads and writes return an error. Called on the loop's thread.
  void cancel();

 private:
  std::unique_ptr<State> state_;
};

// A client of one server: HTTP/1.1 or, if requested, HTTP/2; connections kept alive and reused. Belongs to one loop,
// which must outlive it and its calls; calls in progress when it is destroyed still finish. A ClientStream is
// used on the loop's thread.
class Client {
 public:
  Client(EventLoop& loop, ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // When called from another thread, they switch to the loop, and the caller resumes there.
  Task<CallResult<ClientResponse>> fetch(ClientRequest request, size_t body_limit_bytes);
  Task<CallResult<ClientStream>> open(ClientRequest request);

  struct State;

 private:
  std::shared_ptr<State> state_;
};

// Calls a handler without a connection: for the server's own requests to its API. The whole response is kept in memory,
// so not for watches. Rethrows what the handler throws. Resumes on the loop, like Client's calls.
Task<Result<ClientResponse>> call_handler(EventLoop& loop, Handler handler, ClientRequest request);

// ---------------------------------------------------------------------------------------------------- Helpers

// Whether an HTTP/1.1 request asks for an upgrade to WebSocket. A handler that accepts it starts its response with 101
// and writes one websocket_message() at a time.
bool is_websocket_request(const Request& request);
std::string websocket_message(std::string_view payload, bool text);

// Decodes %XX; nullopt if a % is not followed by two hex digits. `plus_is_space` for queries.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space = false);

// Writes one gzip member at level 1, the fastest.
class GzipWriter {
 public:
  GzipWriter();
  ~GzipWriter();
  GzipWriter(GzipWriter&&) noexcept;

  std::string add(std::string_view bytes);  // May return nothing yet.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};
std::string gzip(std::span<const Bytes> parts);
Result<std::string> gunzip(std::string_view bytes, size_t limit_bytes);

// ---------------------------------------------------------------------------------------------------- Awaiters

namespace detail {

bool body_ready(Stream& stream, size_t limit_bytes);
void body_wait(Stream& stream, std::coroutine_handle<> reader);
Result<std::string> body_take(Stream& stream);
bool chunk_ready(Stream& stream);
Result<std::string> chunk_take(Stream& stream);
void enqueue(Stream& stream, Bytes chunk);
bool write_ready(Stream& stream);
void write_wait(Stream& stream, std::coroutine_handle<> writer);
Result<Unit> stream_state(Stream& stream);
void sleep_wait(Stream& stream, Millis delay, std::coroutine_handle<> sleeper);

struct BodyAwaiter {
  Stream& stream;
  size_t limit_bytes;
  bool await_ready() { return body_ready(stream, limit_bytes); }
  void await_suspend(std::coroutine_handle<> h) { body_wait(stream, h); }
  Result<std::string> await_resume() { return body_take(stream); }
};

struct ChunkAwaiter {
  Stream& stream;
  bool await_ready() { return chunk_ready(stream); }
  void await_suspend(std::coroutine_handle<> h) { body_wait(stream, h); }
  Result<std::string> await_resume() { return chunk_take(stream); }
};

struct [[nodiscard]] WriteAwaiter {
  Stream& stream;
  bool await_ready() { return write_ready(stream); }
  void await_suspend(std::coroutine_handle<> h) { write_wait(stream, h); }
  Result<Unit> await_resume() { return stream_state(stream); }
};

struct [[nodiscard]] SleepAwaiter {
  Stream& stream;
  Millis delay;
  bool await_ready() { return !stream_state(stream).ok(); }
  void await_suspend(std::coroutine_handle<> h) { sleep_wait(stream, delay, h); }
  Result<Unit> await_resume() { return stream_state(stream); }
};

}  // namespace detail

inline auto Request::read_body(size_t limit_bytes) { return detail::BodyAwaiter{*stream, limit_bytes}; }
inline auto Request::read_some() { return detail::ChunkAwaiter{*stream}; }
inline auto Response::write(Bytes chunk) {
  detail::enqueue(*stream, std::move(chunk));
  return detail::WriteAwaiter{*stream};
}
inline auto Response::sleep_for(Millis delay) { return detail::SleepAwaiter{*stream, delay}; }

}  // namespace holdfast::net
