// The HTTP/1.1 client. One coroutine owns a connection at a time and waits for it to change; everything else is plain.
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/thread_pool.h"
#include "net/http1_body.h"
#include "net/loop.h"
#include "net/stream.h"
#include "net/tls.h"

namespace holdfast::net {

namespace {

using detail::BodyDecoder;
using detail::ContextPtr;
using detail::TlsEngine;

// Received and not yet read by whoever called; more waits in the kernel.
constexpr size_t kBufferedBytes = 256 << 10;
constexpr std::string_view kDeadline = "context deadline exceeded";

Error call_error(std::string text) { return {Reason::ServiceUnavailable, std::move(text)}; }

struct Endpoint {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  std::string text;  // "10.0.0.1:443"
};

Endpoint endpoint_of(const sockaddr* address, socklen_t bytes) {
  Endpoint endpoint;
  std::memcpy(&endpoint.storage, address, bytes);
  endpoint.bytes = bytes;
  char host[INET6_ADDRSTRLEN];
  if (address->sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(endpoint.storage);
    inet_ntop(AF_INET, &v4.sin_addr, host, sizeof host);
    endpoint.text = std::string(host) + ":" + std::to_string(ntohs(v4.sin_port));
  } else {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(endpoint.storage);
    inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof host);
    endpoint.text = "[" + std::string(host) + "]:" + std::to_string(ntohs(v6.sin6_port));
  }
  return endpoint;
}

Result<std::vector<Endpoint>> lookup(const std::string& host, uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return call_error("dial tcp: lookup " + host + ": no such host");
  }
  std::vector<Endpoint> endpoints;
  for (addrinfo* a = found; a != nullptr; a = a->ai_next) endpoints.push_back(endpoint_of(a->ai_addr, a->ai_addrlen));
  freeaddrinfo(found);
  return endpoints;
}

// Names are looked up where waiting hurts nobody.
ThreadPool& lookup_threads() {
  static ThreadPool pool(1);
  return pool;
}

// What Go says about a certificate that does not verify.
std::string certificate_problem(long code, const std::string& name) {
  std::string why;
  switch (code) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      why = "certificate is not valid for " + name;
      break;
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      why = "certificate has expired or is not yet valid";
      break;
    default:
      why = "certificate signed by unknown authority";
  }
  return "tls: failed to verify certificate: x509: " + why;
}

// One connection. Its owner waits with `co_await wire.changed()` and looks again.
class Wire final : public detail::EventSource {
 public:
  Wire(EventLoop& event_loop, const Endpoint& to) : loop(event_loop) {
    fd_ = socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0) {
      fail("dial tcp " + to.text + ": socket: " + std::strerror(errno));
      return;
    }
    const int one = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    dialled_ = to.text;
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&to.storage), to.bytes) != 0 && errno != EINPROGRESS) {
      refused(errno);
      return;
    }
    loop.state().add(fd_, this, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
    watched_ = true;
  }

  ~Wire() override {
    loop.cancel(timer_);
    unwatch();
    if (fd_ >= 0) ::close(fd_);
  }

  void use_tls(const ContextPtr& context, const std::string& name, bool verify) {
    tls_.emplace(context, false);
    tls_->set_server_name(name, verify);
    tls_->write_to(&out_);
    server_name_ = name;
  }

  void fail(std::string why) {
    if (failure.empty()) failure = std::move(why);
    unwatch();
    wake();
  }

  // Fails with Go's text when the time is over; none for 0.
  void set_deadline(Millis timeout) {
    loop.cancel(timer_);
    timer_ = timeout.count() > 0 ? loop.run_after(timeout, [this] { fail(std::string(kDeadline)); }) : 0;
  }

  void send(std::string_view bytes) {
    if (!failure.empty()) return;
    if (tls_) {
      tls_->write(bytes);
    } else {
      out_.append(bytes);
    }
    flush();
  }

  // After something was taken out of `in`.
  void took() {
    if (paused_ && in.size() < kBufferedBytes) {
      paused_ = false;
      watch();
      if (tls_ && failure.empty()) decrypt();
    }
  }

  auto changed() {
    struct Awaiter {
      Wire& wire;
      bool await_ready() const noexcept { return !wire.failure.empty(); }
      void await_suspend(std::coroutine_handle<> h) {
        assert(!wire.waiter_);
        wire.waiter_ = h;
      }
      void await_resume() const noexcept {}
    };
    return Awaiter{*this};
  }

  void on_events(uint32_t events) override {
    if (!failure.empty()) return;
    if (!connected) {
      int error = 0;
      socklen_t bytes = sizeof error;
      getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &bytes);
      if (error != 0) return refused(error);
      if (!(events & EPOLLOUT)) return;
      connected = true;
      if (tls_) handshake();
      wake();
    }
    if (events & EPOLLOUT) flush();
    if ((events & EPOLLIN) && !paused_) return receive();
    if (events & (EPOLLHUP | EPOLLERR)) end_of_input();
  }

  EventLoop& loop;
  bool connected = false;
  bool secured = false;  // The handshake is done.
  bool ended = false;    // The peer has closed its side.
  bool is_tls() const { return tls_.has_value(); }
  std::string failure;
  std::string in;

 private:
  void wake() {
    if (waiter_) loop.state().resume_soon(std::exchange(waiter_, {}));
  }

  void refused(int error) {
    std::string why = std::strerror(error);
    if (!why.empty() && why[0] >= 'A' && why[0] <= 'Z') why[0] |= 0x20;
    fail("dial tcp " + dialled_ + ": connect: " + why);
  }

  void end_of_input() {
    ended = true;
    unwatch();
    if (tls_ && !secured) fail("EOF");
    wake();
  }

  void unwatch() {
    if (std::exchange(watched_, false)) loop.state().remove(fd_, this);
  }

  void watch() {
    if (!watched_) return;
    const bool pending = !connected || sent_ < out_.size();
    loop.state().change(fd_, this, (paused_ ? 0u : EPOLLIN) | (pending ? EPOLLOUT : 0u));
  }

  void flush() {
    while (connected && watched_ && sent_ < out_.size()) {
      const ssize_t n = ::send(fd_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno != EAGAIN) {
        // The answer may be there already (an early refusal); the reader finds out.
        out_.clear();
        sent_ = 0;
        break;
      }
      if (n <= 0) break;
      sent_ += n;
    }
    if (sent_ == out_.size()) {
      out_.clear();
      sent_ = 0;
    }
    watch();
  }

  void handshake() {
    switch (tls_->handshake()) {
      case TlsEngine::Status::Ok:
        secured = true;
        break;
      case TlsEngine::Status::WantInput:
        break;
      default:
        if (tls_->verify_result() != X509_V_OK) {
          fail(certificate_problem(tls_->verify_result(), server_name_));
        } else {
          fail("tls: handshake failure: " + tls_->failure());
        }
    }
    flush();
  }

  void receive() {
    std::string& buffer = loop.state().received;
    const ssize_t got = recv(fd_, buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return end_of_input();
    const std::string_view bytes(buffer.data(), static_cast<size_t>(got));
    if (!tls_) {
      in.append(bytes);
    } else {
      cipher_.append(bytes);
      decrypt();
    }
    if (in.size() >= kBufferedBytes && !paused_) {
      paused_ = true;
      watch();
    }
    wake();
  }

  void decrypt() {
    tls_->feed(cipher_);
    if (!secured) handshake();
    std::string& plain = loop.state().plain;
    while (secured && failure.empty() && in.size() < kBufferedBytes) {
      size_t got = 0;
      const TlsEngine::Status status = tls_->read(plain.data(), plain.size(), got);
      if (status == TlsEngine::Status::Ok) {
        in.append(plain.data(), got);
      } else if (status == TlsEngine::Status::WantInput) {
        break;
      } else if (status == TlsEngine::Status::Closed) {
        end_of_input();
        break;
      } else {
        fail("remote error: tls: " + tls_->failure());
        break;
      }
    }
    cipher_.erase(0, cipher_.size() - tls_->unread().size());
    tls_->feed({});
    if (!out_.empty()) flush();
    wake();
  }

  int fd_ = -1;
  bool watched_ = false;
  bool paused_ = false;
  std::optional<TlsEngine> tls_;
  std::string server_name_;
  std::string dialled_;
  std::string cipher_;
  std::string out_;
  size_t sent_ = 0;
  uint64_t timer_ = 0;
  std::coroutine_handle<> waiter_;
};

// Reads status line and headers out of `head`, which ends before the empty line.
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
    std::string name(field.substr(0, colon));
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    std::string_view value = field.substr(colon + 1);
    while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
    while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
    response.headers.emplace_back(std::move(name), value);
  }
  return true;
}

bool start_body(BodyDecoder& decoder, const std::string& method, const ClientResponse& response) {
  if (method == "HEAD" || response.status == 204 || response.status == 304) {
    decoder.start(BodyDecoder::Framing::Length, 0);
    return true;
  }
  if (detail::equals_ignoring_case(response.header("transfer-encoding"), "chunked")) {
    decoder.start(BodyDecoder::Framing::Chunked);
    return true;
  }
  const std::string_view length = response.header("content-length");
  if (length.empty()) {
    decoder.start(BodyDecoder::Framing::UntilClose);
    return true;
  }
  uint64_t bytes = 0;
  const auto [stop, error] = std::from_chars(length.data(), length.data() + length.size(), bytes);
  decoder.start(BodyDecoder::Framing::Length, bytes);
  return error == std::errc() && stop == length.data() + length.size();
}

std::string request_text(const ClientOptions& options, const ClientRequest& request) {
  std::string text = request.method + " " + request.target + " HTTP/1.1\r\n";
  auto given = [&](std::string_view name) {
    return std::any_of(request.headers.begin(), request.headers.end(),
                       [&](const auto& header) { return detail::equals_ignoring_case(header.first, name); });
  };
  if (!given("host")) {
    const bool v6 = options.host.find(':') != std::string::npos;
    text += "Host: " + (v6 ? "[" + options.host + "]" : options.host);
    if (options.port != (options.tls ? 443 : 80)) text += ":" + std::to_string(options.port);
    text += "\r\n";
  }
  for (const auto& [name, value] : request.headers) {
    text += name + ": ";
    for (const char c : value) text += c == '\r' || c == '\n' ? ' ' : c;
    text += "\r\n";
  }
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT" || request.method == "PATCH") {
    text += "Content-Length: " + std::to_string(request.body.size()) + "\r\n";
  }
  return text + "\r\n" + request.body;
}

}  // namespace

std::string_view ClientResponse::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (detail::equals_ignoring_case(key, name)) return value;
  }
  return {};
}

struct Client::State {
  State(EventLoop& event_loop, ClientOptions client_options) : loop(event_loop), options(std::move(client_options)) {
    if (options.server_name.empty()) options.server_name = options.host;
  }

  EventLoop& loop;
  ClientOptions options;
  std::optional<Result<ContextPtr>> context;  // Made by the first call.
  struct Idle {
    std::unique_ptr<Wire> wire;
    detail::TimePoint since;
  };
  std::vector<Idle> idle;
  bool closed = false;

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
  std::unique_ptr<Wire> wire;
  BodyDecoder decoder;
  ClientResponse head;
  bool over = false;

  // Whole body read: the connection can serve again.
  void finish() {
    over = true;
    const bool keep = decoder.framing() != BodyDecoder::Framing::UntilClose &&
                      !detail::equals_ignoring_case(head.header("connection"), "close");
    if (keep) client->give_back(std::move(wire));
    wire.reset();
  }
};

namespace {

using ClientState = Client::State;

Task<Result<std::unique_ptr<Wire>>> dial(std::shared_ptr<ClientState> client, Millis timeout) {
  const ClientOptions& options = client->options;
  if (options.tls && !client->context) client->context = detail::client_context(options);
  if (options.tls && !client->context->ok()) co_return client->context->error();
  Result<std::vector<Endpoint>> endpoints = lookup(options.host, options.port, AI_NUMERICHOST);
  if (!endpoints) {
    endpoints = co_await from_callback<Result<std::vector<Endpoint>>>(
        client->loop, [host = options.host, port = options.port](auto done) {
          lookup_threads().post([=]() mutable { done(lookup(host, port, 0)); });
        });
  }
  if (!endpoints) co_return endpoints.take_error();
  std::string why = "dial tcp: lookup " + options.host + ": no addresses";
  for (const Endpoint& endpoint : *endpoints) {
    auto wire = std::make_unique<Wire>(client->loop, endpoint);
    if (options.tls) wire->use_tls(**client->context, options.server_name, !options.insecure);
    wire->set_deadline(timeout.count() > 0 ? std::min(timeout, options.connect_timeout) : options.connect_timeout);
    while (wire->failure.empty() && !(wire->connected && (wire->secured || !options.tls))) co_await wire->changed();
    if (wire->failure.empty()) co_return wire;
    why = wire->failure;
    if (why == kDeadline && timeout.count() == 0) why = "dial tcp " + endpoint.text + ": i/o timeout";
  }
  co_return call_error(std::move(why));
}

// Sends the request and reads the head of the answer. `reused` tells whether the connection had served before.
Task<Result<std::unique_ptr<ClientStream::State>>> exchange(std::shared_ptr<ClientState> client,
                                                            const ClientRequest& request, std::unique_ptr<Wire> wire) {
  wire->set_deadline(request.timeout);
  wire->send(request_text(client->options, request));
  auto stream = std::make_unique<ClientStream::State>();
  while (true) {
    const size_t end = wire->in.find("\r\n\r\n");
    if (end == std::string::npos) {
      if (wire->in.size() > client->options.max_header_bytes)
        co_return call_error("net/http: response headers too large");
      if (!wire->failure.empty()) co_return call_error(wire->failure);
      if (wire->ended) co_return call_error("EOF");
      co_await wire->changed();
      continue;
    }
    if (!parse_head(std::string_view(wire->in).substr(0, end), stream->head)) {
      co_return call_error("net/http: malformed HTTP response");
    }
    wire->in.erase(0, end + 4);
    if (stream->head.status >= 200) break;  // Interim answers are passed over.
  }
  if (!start_body(stream->decoder, request.method, stream->head)) co_return call_error("net/http: bad Content-Length");
  stream->client = std::move(client);
  stream->wire = std::move(wire);
  co_return stream;
}

Task<Result<std::unique_ptr<ClientStream::State>>> open_stream(std::shared_ptr<ClientState> client,
                                                               const ClientRequest& request) {
  if (!client->loop.in_thread()) co_await resume_on(client->loop);
  if (std::unique_ptr<Wire> wire = client->take_idle()) {
    Result<std::unique_ptr<ClientStream::State>> opened = co_await exchange(client, request, std::move(wire));
    // The server may have closed an idle connection while the request was on its way: once more on a new one.
    if (opened || opened.error().message != "EOF") co_return opened;
  }
  Result<std::unique_ptr<Wire>> wire = co_await dial(client, request.timeout);
  if (!wire) co_return wire.take_error();
  co_return co_await exchange(client, request, std::move(*wire));
}

// The next piece of the body; empty at its end.
Task<Result<std::string>> read_piece(ClientStream::State& stream) {
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
    wire.took();
    if (!wire.in.empty()) continue;
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
Task<Result<std::string>> ClientStream::read_some() { return read_piece(*state_); }
void ClientStream::cancel() {
  if (state_->wire) state_->wire->fail("context canceled");
}

Client::Client(EventLoop& loop, ClientOptions options) : state_(std::make_shared<State>(loop, std::move(options))) {}

Client::~Client() {
  // Connections belong to the loop's thread; calls under way finish by themselves.
  state_->loop.post([state = state_] {
    state->closed = true;
    state->idle.clear();
  });
}

Task<Result<ClientStream>> Client::open(ClientRequest request) {
  Result<std::unique_ptr<ClientStream::State>> opened = co_await open_stream(state_, request);
  if (!opened) co_return opened.take_error();
  (*opened)->wire->set_deadline(Millis(0));
  co_return ClientStream(std::move(*opened));
}

Task<Result<ClientResponse>> Client::fetch(ClientRequest request, size_t body_limit_bytes) {
  Result<std::unique_ptr<ClientStream::State>> opened = co_await open_stream(state_, request);
  if (!opened) co_return opened.take_error();
  std::unique_ptr<ClientStream::State> stream = std::move(*opened);
  std::string body;
  while (true) {
    Result<std::string> piece = co_await read_piece(*stream);
    if (!piece) co_return piece.take_error();
    if (piece->empty()) break;
    if (body.size() + piece->size() > body_limit_bytes) {
      co_return Error{Reason::RequestEntityTooLarge,
                      "the answer is larger than " + std::to_string(body_limit_bytes) + " bytes"};
    }
    body += *piece;
  }
  ClientResponse response = std::move(stream->head);
  if (response.header("content-encoding") == "gzip") {
    Result<std::string> plain = gunzip(body, body_limit_bytes);
    if (!plain) co_return plain.take_error();
    body = std::move(*plain);
  }
  response.body = std::move(body);
  co_return response;
}

}  // namespace holdfast::net
