// The client side of one HTTP/2 connection, using nghttp2. Private to the module.
#pragma once

#include <nghttp2/nghttp2.h>

#include <memory>
#include <string>
#include <unordered_map>

#include "net/wire.h"

namespace holdfast::net::detail {

class Http2ClientConnection;

// A request and its response while it is being received.
struct Http2Call {
  std::shared_ptr<Http2ClientConnection> connection;
  int32_t id = 0;
  std::string request_body;
  size_t request_sent = 0;
  ClientResponse head;
  size_t header_bytes = 0;
  bool head_done = false;
  std::string body;  // Received but not yet taken.
  std::vector<std::pair<std::string, std::string>> trailers;
  bool ended = false;
  std::string failure;
  bool refused = false;  // The server did not process the request: it is safe to retry with any method.
  uint64_t timer = 0;
  std::coroutine_handle<> waiter;

  ~Http2Call();
  // Resumes when the state of the call has changed.
  auto changed() {
    struct Awaiter {
      Http2Call& call;
      bool await_ready() const noexcept { return !call.failure.empty() || call.ended; }
      void await_suspend(std::coroutine_handle<> h) { call.waiter = h; }
      void await_resume() const noexcept {}
    };
    return Awaiter{*this};
  }
  void set_deadline(Millis timeout);
  void cancel(std::string why);
  std::string take_body();  // Takes the bytes received so far and returns their flow-control credit to the server.

 private:
  friend class Http2ClientConnection;
  void refuse();
  void wake();
};

class Http2ClientConnection : public std::enable_shared_from_this<Http2ClientConnection> {
 public:
  Http2ClientConnection(std::unique_ptr<Wire> wire, const ClientOptions& options);
  ~Http2ClientConnection();
  Http2ClientConnection(const Http2ClientConnection&) = delete;
  Http2ClientConnection& operator=(const Http2ClientConnection&) = delete;

  // Transfers data until the connection ends. Started once, by the code that opened the connection.
  static Task<void> run(std::shared_ptr<Http2ClientConnection> self);

  // Whether another call can be started: the connection is up and the server's stream limit is not reached.
  bool usable() const;
  bool over() const { return over_; }
  std::unique_ptr<Http2Call> start(const ClientRequest& request);
  void close(std::string why);  // Ends all calls with that error.
  void close_when_idle();       // No more calls will be started.

 private:
  friend struct Http2Call;
  static Http2ClientConnection& self(void* user) { return *static_cast<Http2ClientConnection*>(user); }
  Http2Call* find(int32_t id) const {
    const auto found = calls_.find(id);
    return found == calls_.end() ? nullptr : found->second;
  }
  static const nghttp2_session_callbacks* callbacks();
  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_bytes,
                       const uint8_t* value, size_t value_bytes, uint8_t flags, void* user);
  static int on_frame_recv(nghttp2_session*, const nghttp2_frame* frame, void* user);
  static int on_data(nghttp2_session*, uint8_t flags, int32_t id, const uint8_t* data, size_t bytes, void* user);
  static int on_stream_close(nghttp2_session*, int32_t id, uint32_t code, void* user);
  static ssize_t read_body(nghttp2_session*, int32_t id, uint8_t* buffer, size_t bytes, uint32_t* flags,
                           nghttp2_data_source* source, void* user);

  void send_soon();
  void send();
  void check_liveness();

  EventLoop& loop_;
  std::unique_ptr<Wire> wire_;
  const ClientOptions& options_;  // Owned by the client, which outlives its connections.
  std::string authority_;
  nghttp2_session* session_ = nullptr;
  std::unordered_map<int32_t, Http2Call*> calls_;  // Calls whose response is incomplete.
  bool going_away_ = false;                        // The server accepts no new calls.
  bool over_ = false;
  bool send_scheduled_ = false;
  bool received_since_check_ = false;  // Data was received since check_liveness() last ran.
  bool pinged_ = false;                // A ping was sent after a silent interval.
  uint64_t alive_timer_ = 0;
};

// "example.com:6443", "[::1]:6443"; omits the scheme's default port.
std::string authority_of(const ClientOptions& options);

}  // namespace holdfast::net::detail
