// One outgoing connection, with optional TLS: callers see plaintext in both directions. Private to the module.
#pragma once

#include <sys/socket.h>

#include <cassert>
#include <coroutine>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/loop.h"
#include "net/net.h"
#include "net/tls.h"

namespace holdfast::net::detail {

inline constexpr std::string_view kDeadline = "context deadline exceeded";
inline constexpr std::string_view kCancelled = "context canceled";

inline CallError call_error(std::string text, CallError::Progress progress = CallError::Progress::Unknown) {
  return CallError({Reason::ServiceUnavailable, std::move(text)}, progress);
}

// "10.0.0.1:443", "[::1]:443"; "@" for a Unix socket.
std::string address_text(const sockaddr_storage& storage);

struct Endpoint {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  std::string text;  // As Go writes it after "dial": "tcp 10.0.0.1:443", "unix /run/signer.sock"
};

// Blocks unless the host is an address; AI_NUMERICHOST in `flags` rejects names.
CallResult<std::vector<Endpoint>> lookup(const std::string& host, uint16_t port, int flags);
// A Unix socket; "@name" is an abstract one.
CallResult<Endpoint> unix_endpoint(const std::string& path);

// The owner awaits changed() and then examines the public fields.
class Wire final : public EventSource {
 public:
  Wire(EventLoop& event_loop, const Endpoint& to);
  ~Wire() override;

  // Called before the connection is established, or later (after a proxy's CONNECT), which starts the handshake at
  // once.
  void use_tls(const ContextPtr& context, const std::string& name, bool verify);
  void fail(std::string why);
  void cancel();
  // On timeout, fails with Go's message. 0 disables the deadline.
  void set_deadline(Millis timeout);
  void send(std::string_view bytes);
  // Call after removing bytes from `in`.
  void took();

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

  // Whether too much output is unsent; writers then await drained().
  bool is_backlogged() const { return out_.size() - sent_ > kBehindBytes; }
  auto drained() {
    struct Awaiter {
      Wire& wire;
      bool await_ready() const noexcept { return !wire.failure.empty() || wire.ended || !wire.is_backlogged(); }
      void await_suspend(std::coroutine_handle<> h) {
        assert(!wire.sender_);
        wire.sender_ = h;
      }
      void await_resume() const noexcept {}
    };
    return Awaiter{*this};
  }

  void on_events(uint32_t events) override;
  bool is_tls() const { return tls_.has_value(); }
  bool speaks_http2() const { return tls_ && tls_->alpn_is_h2(); }

  EventLoop& loop;
  bool connected = false;
  bool secured = false;  // The handshake is complete.
  bool ended = false;    // The peer has closed its side.
  std::string failure;
  bool cancelled = false, timed_out = false;  // Why it failed.
  std::string in;

 private:
  static constexpr size_t kBehindBytes = 128 << 10;
  void wake();
  void wake_sender();
  void refused(int error);
  void end_of_input();
  void unwatch();
  void watch();
  void flush();
  void handshake();
  void receive();
  void decrypt();

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
  std::coroutine_handle<> sender_;  // Waits for room in out_.
};

}  // namespace holdfast::net::detail
