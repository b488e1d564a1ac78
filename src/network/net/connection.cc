#include "net/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace holdfast::net::detail {

namespace {

constexpr size_t kRecordBytes = 16 << 10;        // The largest TLS record.
constexpr size_t kRoundBytes = 256 << 10;        // Encrypted before each send().
constexpr size_t kFlushBudgetBytes = 512 << 10;  // Sent for one connection before others get a turn.
constexpr uint32_t kLingerBytes = 32 << 20;      // More than any body that is accepted.
constexpr Millis kLingerTime{1000};
constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

}  // namespace

std::vector<Connection*> LoopConnections::all_connections() const {
  std::vector<Connection*> all;
  all.reserve(connections.size());
  for (const auto& [connection, owned] : connections) all.push_back(connection);
  return all;
}

void LoopConnections::tick() {
  const TimePoint now = loop.state().now();
  // tick() may close connections, which removes them from the map at the end of the round or when their handlers end.
  for (Connection* connection : all_connections()) {
    if (connections.contains(connection)) connection->tick(now);
  }
  tick_timer = connections.empty() ? 0 : loop.run_after(shared.options.housekeeping_interval, [this] { tick(); });
}

bool UnauthenticatedConnections::enter(const std::string& host, const ServerOptions& options) {
  const std::lock_guard lock(mutex_);
  if (count_ >= options.max_unauthenticated_connections) return false;
  const auto found = by_host_.find(host);
  if ((found == by_host_.end() ? 0 : found->second) >= options.max_unauthenticated_connections_per_address)
    return false;
  ++by_host_[host];
  ++count_;
  return true;
}

void UnauthenticatedConnections::leave(const std::string& host) {
  const std::lock_guard lock(mutex_);
  const auto found = by_host_.find(host);
  assert(found != by_host_.end() && count_ > 0);
  --count_;
  if (--found->second == 0) by_host_.erase(found);
}

Connection::Connection(LoopConnections& owner, int fd, std::string address, std::string counted_host,
                       const ContextPtr& context)
    : home(owner),
      shared(owner.shared),
      fd_(fd),
      counted_host_(std::move(counted_host)),
      state_(context ? State::Handshaking : State::Sniffing),
      state_since_(owner.loop.state().now()),
      out_progress_(state_since_) {
  peer.connection_id = shared.next_connection++;
  peer.address = std::move(address);
  peer.tls = context != nullptr;
  if (context) {
    tls_.emplace(context, true);
    tls_->write_to(&out_);
  }
  home.loop.state().add(fd_, this, EPOLLIN | EPOLLRDHUP);
}

Connection::~Connection() {
  assert(state_ == State::Closed);
  home.loop.state().forget(this);
}

void Connection::update_events() {
  if (state_ == State::Closed) return;
  home.loop.state().change(fd_, this, (reading_ ? EPOLLIN : 0u) | (waiting_output_ ? EPOLLOUT : 0u) | EPOLLRDHUP);
}

void Connection::set_reading(bool on) {
  if (reading_ == on) return;
  reading_ = on;
  update_events();
}

void Connection::want_output(bool on) {
  if (waiting_output_ == on) return;
  waiting_output_ = on;
  update_events();
}

void Connection::on_events(uint32_t events) {
  if (events & EPOLLOUT) flush_soon();
  if (events & EPOLLIN) {
    std::string& buffer = home.loop.state().received;
    const ssize_t got = recv(fd_, buffer.data(), buffer.size(), 0);
    if (got > 0) {
      shared.counters.received.fetch_add(got, std::memory_order_relaxed);
      return receive({buffer.data(), static_cast<size_t>(got)});
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    return close();
  }
  if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) close();
}

void Connection::receive(std::string_view bytes) {
  if (state_ == State::Lingering) {
    lingered_bytes_ += bytes.size();
    if (lingered_bytes_ > kLingerBytes) close();
    return;
  }
  if (!tls_) return receive_plain(bytes);
  tls_used_ = true;
  tls_->feed(bytes);
  if (state_ == State::Handshaking) {
    const TlsEngine::Status status = tls_->handshake();
    if (status == TlsEngine::Status::Failed || status == TlsEngine::Status::Closed) {
      shared.counters.handshake_failures.fetch_add(1, std::memory_order_relaxed);
      if (tls_->failure() == "http request") {
        out_ = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
      }
      send_pending();  // Sends the alert if the socket has room.
      return close();
    }
    if (!out_.empty()) flush_soon();
    if (status == TlsEngine::Status::WantInput) return;
    if (auto certificate = tls_->peer_certificate()) peer.certificate.emplace(std::move(certificate));
    open_session(tls_->alpn_is_h2());
  }
  std::string& plain = home.loop.state().plain;
  while (state_ == State::Open) {
    size_t got = 0;
    switch (tls_->read(plain.data(), plain.size(), got)) {
      case TlsEngine::Status::Ok:
        session_->receive({plain.data(), got});
        // Usually one request is all that arrived, and asking OpenSSL again would cost as much as reading it.
        if (tls_->exhausted()) return;
        break;
      case TlsEngine::Status::WantInput:
        return;
      case TlsEngine::Status::Closed:
        return close();
      case TlsEngine::Status::Failed:
        shared.counters.protocol_errors.fetch_add(1, std::memory_order_relaxed);
        send_pending();
        return close();
    }
  }
}

void Connection::receive_plain(std::string_view bytes) {
  if (state_ == State::Sniffing) {
    sniffed_.append(bytes);
    const size_t common = std::min(sniffed_.size(), kPreface.size());
    const bool http2 = sniffed_.compare(0, common, kPreface, 0, common) == 0;
    if (http2 && common < kPreface.size()) return;
    open_session(http2);
    const std::string all = std::move(sniffed_);
    return session_->receive(all);
  }
  if (state_ == State::Open) session_->receive(bytes);
}

void Connection::open_session(bool http2) {
  state_ = State::Open;
  state_since_ = now();
  session_ = http2 ? make_http2_session(*this) : make_http1_session(*this);
  if (shared.draining) session_->drain();
  flush_soon();
}

size_t Connection::room() const {
  const size_t used = out_.size() - out_sent_ + home.loop.state().staged.size();
  return used >= kRoundBytes ? 0 : kRoundBytes - used;
}

void Connection::put(std::string_view bytes) {
  if (!tls_) {
    out_.append(bytes);
    return;
  }
  // Whole records are encrypted straight from `bytes`; the remainder is staged until a record is full or the round
  // ends.
  std::string& staged = home.loop.state().staged;
  if (staged.size() + bytes.size() < kRecordBytes) {
    staged.append(bytes);
    return;
  }
  if (!staged.empty()) {
    const size_t fill = kRecordBytes - staged.size();
    staged.append(bytes.substr(0, fill));
    bytes.remove_prefix(fill);
    seal();
  }
  if (bytes.size() >= kRecordBytes) {
    const size_t whole = bytes.size() / kRecordBytes * kRecordBytes;
    tls_->write(bytes.substr(0, whole));
    bytes.remove_prefix(whole);
  }
  staged.append(bytes);
}

void Connection::seal() {
  std::string& staged = home.loop.state().staged;
  if (tls_ && !staged.empty()) tls_->write(staged);
  staged.clear();
}

bool Connection::send_pending() {
  tls_used_ = true;
  while (out_sent_ < out_.size()) {
    const ssize_t sent = send(fd_, out_.data() + out_sent_, out_.size() - out_sent_, MSG_NOSIGNAL);
    if (sent <= 0) {
      if (errno == EINTR) continue;
      // A broken connection is also reported as an event; keep the output until then.
      return false;
    }
    out_progress_ = now();
    shared.counters.sent.fetch_add(sent, std::memory_order_relaxed);
    out_sent_ += sent;
  }
  out_.clear();
  out_sent_ = 0;
  return true;
}

void Connection::flush() {
  if (state_ == State::Closed || state_ == State::Lingering) return;
  if (!send_pending()) return want_output(true);
  // Borrow the loop's buffer: a connection without pending output holds none.
  std::string& scratch = home.loop.state().sealed;
  out_.swap(scratch);
  out_.clear();
  size_t sent = 0;
  bool all_sent = true;
  if (session_) {
    while (true) {
      session_->produce();
      seal();
      if (out_.empty()) break;
      sent += out_.size();
      all_sent = send_pending();
      if (!all_sent) break;
      if (sent >= kFlushBudgetBytes) {
        flush_soon();
        break;
      }
    }
    session_->produced();
  }
  if (all_sent) {
    if (out_.capacity() > scratch.capacity() && out_.capacity() <= 2 * kRoundBytes) out_.swap(scratch);
    out_ = std::string();
  }
  want_output(!all_sent);
  if (all_sent && session_ && session_->finished()) finish();
}

void Connection::finish() {
  if (tls_) {
    tls_->close_notify();
    send_pending();
  }
  if (!session_->input_pending()) return close();
  // Closing with unread input would make the kernel reset the connection, and the peer could lose the response.
  shutdown(fd_, SHUT_WR);
  state_ = State::Lingering;
  state_since_ = now();
  set_reading(true);
}

void Connection::trust() {
  if (!counted_host_.empty()) shared.strangers.leave(std::exchange(counted_host_, {}));
}

void Connection::close() {
  if (state_ == State::Closed) return;
  trust();  // Stop counting it as unauthenticated.
  state_ = State::Closed;
  home.loop.state().remove(fd_, this);
  ::close(fd_);
  shared.counters.open.fetch_sub(1, std::memory_order_relaxed);
  if (session_) session_->lost();
  destroy_if_idle();
}

void Connection::destroy_if_idle() {
  if (state_ != State::Closed || (session_ && !session_->quiet())) return;
  auto node = home.connections.extract(this);
  if (node.empty()) return;
  home.loop.state().destroy_later(std::move(node.mapped()));
  if (home.connections.empty() && home.on_empty) home.on_empty();
}

void Connection::handler_ended() { destroy_if_idle(); }

void Connection::protocol_error() { shared.counters.protocol_errors.fetch_add(1, std::memory_order_relaxed); }

void Connection::drain() {
  if (state_ == State::Open) {
    session_->drain();
    flush_soon();
  } else {
    close();
  }
}

void Connection::tick(TimePoint at) {
  const ServerOptions& options = shared.options;
  if (tls_ && !std::exchange(tls_used_, false)) tls_->release_buffers();
  switch (state_) {
    case State::Closed:
      return;
    case State::Handshaking:
    case State::Sniffing:
      if (at - state_since_ <= options.handshake_timeout) return;
      protocol_error();
      return close();
    case State::Lingering:
      if (at - state_since_ > kLingerTime) close();
      return;
    case State::Open:
      if (out_sent_ < out_.size() && at - out_progress_ > options.stalled_write_timeout) {
        protocol_error();
        return close();
      }
      session_->tick(at);
  }
}

}  // namespace holdfast::net::detail
