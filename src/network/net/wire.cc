#include "net/wire.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/x509_vfy.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/ascii.h"

namespace holdfast::net::detail {

namespace {

// Received but not yet read by the caller; more stays in the kernel.
constexpr size_t kBufferedBytes = 256 << 10;

Endpoint endpoint_of(const sockaddr* address, socklen_t bytes) {
  Endpoint endpoint;
  std::memcpy(&endpoint.storage, address, bytes);
  endpoint.bytes = bytes;
  endpoint.text = "tcp " + address_text(endpoint.storage);
  return endpoint;
}

// Go's message for a certificate that does not verify.
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

}  // namespace

std::string address_text(const sockaddr_storage& storage) {
  char text[INET6_ADDRSTRLEN];
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return std::string(text) + ':' + std::to_string(ntohs(v4.sin_port));
  }
  if (storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    return '[' + std::string(text) + "]:" + std::to_string(ntohs(v6.sin6_port));
  }
  return "@";
}

CallResult<std::vector<Endpoint>> lookup(const std::string& host, uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return call_error("dial tcp: lookup " + host + ": no such host", CallError::Progress::NotConnected);
  }
  std::vector<Endpoint> endpoints;
  for (addrinfo* a = found; a != nullptr; a = a->ai_next) endpoints.push_back(endpoint_of(a->ai_addr, a->ai_addrlen));
  freeaddrinfo(found);
  return endpoints;
}

CallResult<Endpoint> unix_endpoint(const std::string& path) {
  Endpoint endpoint;
  endpoint.text = "unix " + path;
  sockaddr_un address{};
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return call_error("dial " + endpoint.text + ": connect: invalid argument", CallError::Progress::NotConnected);
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const bool is_abstract = path.front() == '@';
  if (is_abstract) address.sun_path[0] = '\0';
  // The name of an abstract socket ends with the address, a path with a zero byte.
  endpoint.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + (is_abstract ? 0 : 1));
  std::memcpy(&endpoint.storage, &address, endpoint.bytes);
  return endpoint;
}

Wire::Wire(EventLoop& event_loop, const Endpoint& to) : loop(event_loop) {
  fd_ = socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) {
    fail("dial " + to.text + ": socket: " + std::strerror(errno));
    return;
  }
  const int one = 1;
  if (to.storage.ss_family != AF_UNIX) {
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    // A stream that is only read must end when the other machine has died, which it cannot say. As Go's clients do.
    const int idle_seconds = 30, interval_seconds = 15, probes = 9;
    setsockopt(fd_, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd_, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof idle_seconds);
    setsockopt(fd_, IPPROTO_TCP, TCP_KEEPINTVL, &interval_seconds, sizeof interval_seconds);
    setsockopt(fd_, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  }
  dialled_ = to.text;
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&to.storage), to.bytes) != 0 && errno != EINPROGRESS) {
    refused(errno);
    return;
  }
  loop.state().add(fd_, this, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
  watched_ = true;
}

Wire::~Wire() {
  loop.cancel(timer_);
  unwatch();
  if (fd_ >= 0) ::close(fd_);
}

void Wire::use_tls(const ContextPtr& context, const std::string& name, bool verify) {
  tls_.emplace(context, false);
  tls_->set_server_name(name, verify);
  tls_->write_to(&out_);
  server_name_ = name;
  if (connected) handshake();
}

void Wire::fail(std::string why) {
  if (failure.empty()) failure = std::move(why);
  unwatch();
  wake();
  wake_sender();
}

void Wire::cancel() {
  cancelled = failure.empty();
  fail(std::string(kCancelled));
}

void Wire::set_deadline(Millis timeout) {
  loop.cancel(timer_);
  timer_ = timeout.count() == 0 ? 0 : loop.run_after(timeout, [this] {
    timed_out = failure.empty();
    fail(std::string(kDeadline));
  });
}

void Wire::send(std::string_view bytes) {
  if (!failure.empty()) return;
  if (tls_) {
    tls_->write(bytes);
  } else {
    out_.append(bytes);
  }
  flush();
}

void Wire::took() {
  if (paused_ && in.size() < kBufferedBytes) {
    paused_ = false;
    watch();
    if (tls_ && failure.empty()) decrypt();
  }
}

void Wire::on_events(uint32_t events) {
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

void Wire::wake() {
  if (waiter_) loop.state().resume_soon(std::exchange(waiter_, {}));
}

void Wire::wake_sender() {
  if (sender_) loop.state().resume_soon(std::exchange(sender_, {}));
}

void Wire::refused(int error) {
  std::string why = std::strerror(error);
  if (!why.empty()) why[0] = to_lower(why[0]);
  fail("dial " + dialled_ + ": connect: " + why);
}

void Wire::end_of_input() {
  ended = true;
  unwatch();
  if (tls_ && !secured) fail("EOF");
  wake();
  wake_sender();
}

void Wire::unwatch() {
  if (std::exchange(watched_, false)) loop.state().remove(fd_, this);
}

void Wire::watch() {
  if (!watched_) return;
  const bool pending = !connected || sent_ < out_.size();
  loop.state().change(fd_, this, (paused_ ? 0u : EPOLLIN) | (pending ? EPOLLOUT : 0u));
}

void Wire::flush() {
  while (connected && watched_ && sent_ < out_.size()) {
    const ssize_t n = ::send(fd_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) {
      // The response may already have arrived (an early rejection); the reader will see it.
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
  if (!is_backlogged()) wake_sender();
  watch();
}

void Wire::handshake() {
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

void Wire::receive() {
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

void Wire::decrypt() {
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

}  // namespace holdfast::net::detail
