// The client at the other end of a WebSocket that this server ends. Private to the module.
//
// One coroutine receives while another sends; they share this. On the request's loop.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/task.h"
#include "call/call.h"
#include "net/net.h"
#include "net/websocket_messages.h"

namespace holdfast::nodes {

class WebSocketClient {
 public:
  explicit WebSocketClient(call::Call& call) : call_(call) {}

  // Accepts the WebSocket with this subprotocol; empty for none. False if the request was refused or the client is
  // gone.
  bool accept(std::string_view protocol);
  // The next message; nullopt once there will be none.
  Task<std::optional<net::WebSocketMessages::Message>> next();
  // Waits while too much is unsent. False if the client is gone.
  Task<bool> send(std::string_view payload);
  // Closes the WebSocket; next() then returns nullopt.
  void finish();

 private:
  // The longest message that a client may send. Real ones are of 32 KiB.
  static constexpr size_t kMaxMessageBytes = 1 << 20;

  void send_replies();

  call::Call& call_;
  net::WebSocketMessages messages_{kMaxMessageBytes};
  bool finished_ = false;
};

}  // namespace holdfast::nodes
