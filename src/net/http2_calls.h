// The calls of one HTTP/2 connection to a server, by nghttp2. Private to the module.
#pragma once

#include <nghttp2/nghttp2.h>

#include <memory>
#include <string>
#include <unordered_map>

#include "net/wire.h"

namespace holdfast::net::detail {

class Http2Calls;

// One request and its response as it arrives.
struct Http2Call {
  std::shared_ptr<Http2Calls> connection;
  int32_t id = 0;
  std::string request_body;
  size_t request_sent = 0;
  ClientResponse head;
  size_t header_bytes = 0;
  bool head_done = false;
  std::string body;  // Arrived and not taken yet.
  bool ended = false;
  std::string failure;
  bool refused = false;  // The server has not examined the request: it can be sent again, whatever its method.
  uint64_t timer = 0;
  std::coroutine_handle<> waiter;

  ~Http2Call();
  // Returns when there is something new to look at.
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
  std::string take_body();  // What has arrived; the server may then send as much again.

 private:
  friend class Http2Calls;
  void refuse();
  void wake();
};

class Http2Calls : public std::enable_shared_from_this<Http2Calls> {
 public:
  Http2Calls(std::unique_ptr<Wire> wire, const ClientOptions& options);
  ~Http2Calls();
  Http2Calls(const Http2Calls&) = delete;
  Http2Calls& operator=(const Http2Calls&) = delete;

  // Moves bytes until the connection is over. Started once, by the code that opened the connection.
  static Task<void> run(std::shared_ptr<Http2Calls> self);

  // Another call may be started: the connection lives, and the server's limit is not reached.
  bool usable() const;
  bool over() const { return over_; }
  std::unique_ptr<Http2Call> start(const ClientRequest& request);
  void close(std::string why);  // Ends all calls with that error.
  void close_when_idle();       // Nobody will start another one.

 private:
  friend struct Http2Call;
  static Http2Calls& self(void* user) { return *static_cast<Http2Calls*>(user); }
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
  void look_alive();

  EventLoop& loop_;
  std::unique_ptr<Wire> wire_;
  const ClientOptions& options_;  // Of the client, which outlives its connections.
  std::string authority_;
  nghttp2_session* session_ = nullptr;
  std::unordered_map<int32_t, Http2Call*> calls_;  // Those whose answer is not complete.
  bool going_away_ = false;                        // The server takes no new calls.
  bool over_ = false;
  bool send_scheduled_ = false;
  bool heard_ = false;   // Something came since look_alive() looked.
  bool pinged_ = false;  // And before that, nothing came for so long that we asked.
  uint64_t alive_timer_ = 0;
};

// "example.com:6443", "[::1]:6443"; without the port that the scheme implies.
std::string authority_of(const ClientOptions& options);

}  // namespace holdfast::net::detail
