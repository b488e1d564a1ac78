// The server side of a WebSocket (RFC 6455) used only to send to the client: the handshake response and the handling of
// incoming frames. Once a handler has started its response with 101, the session answers pings, and the client's close
// frame becomes the handler's Interrupt::PeerGone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::net::detail {

// Sec-WebSocket-Accept for a client's Sec-WebSocket-Key.
std::string websocket_accept(std::string_view key);

// Close frame with status 1000 (normal closure), sent before the server closes.
inline constexpr std::string_view kWebSocketCloseFrame = "\x88\x02\x03\xe8";

// Parses the client's frames. Data messages are discarded.
class WebSocketInput {
 public:
  // Consumes all of `bytes` and appends the reply frames. False: the client closed or violated the protocol.
  bool receive(std::string_view bytes, std::string& answers);

 private:
  std::string frame_;           // The current frame: only the header for data frames, all of it for control frames.
  uint64_t bytes_to_skip_ = 0;  // Bytes of a data message still to be skipped.
};

}  // namespace holdfast::net::detail
