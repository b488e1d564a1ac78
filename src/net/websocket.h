// The server's side of a WebSocket (RFC 6455) whose client is only told things: the answer to its handshake, and what
// it may send meanwhile. Once a handler has started its response with 101, the session answers pings, and the
// client's close frame becomes the handler's Interrupt::PeerGone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::net::detail {

// Sec-WebSocket-Accept for a client's Sec-WebSocket-Key.
std::string websocket_accept(std::string_view key);

// Sent before the server closes: 1000, normal closure.
inline constexpr std::string_view kWebSocketGoodbye = "\x88\x02\x03\xe8";

// Reads a client's frames. Its messages are passed over.
class WebSocketInput {
 public:
  // Takes all of `bytes` and appends the frames that answer them. False: the client has closed, or breaks the protocol.
  bool receive(std::string_view bytes, std::string& answers);

 private:
  std::string frame_;         // The head of a frame, and all of one that is answered.
  uint64_t passed_over_ = 0;  // Bytes of a message that are still to come.
};

}  // namespace holdfast::net::detail
