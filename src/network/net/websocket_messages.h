// The server side of a WebSocket (RFC 6455) over a tunnel, with messages in both directions. Messages to the client are
// written with websocket_message().
//
//   WebSocketMessages messages(limit);
//   messages.receive(bytes);                     // What the client sent.
//   while (auto message = messages.next()) ...   // Whole messages, in order.
//   response.write(messages.take_replies());     // Pongs, and the client's close frame echoed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::net {

// Sec-WebSocket-Accept for a client's Sec-WebSocket-Key.
std::string websocket_accept_of(std::string_view key);

// A close frame with this status; 1000 is a normal closure.
std::string websocket_close(uint16_t status);

class WebSocketMessages {
 public:
  // A client whose messages are larger violates the protocol.
  explicit WebSocketMessages(size_t max_message_bytes) : max_message_bytes_(max_message_bytes) {}

  struct Message {
    bool text = false;
    std::string payload;
  };

  void receive(std::string_view bytes) { input_ += bytes; }
  // The next message; nullopt if it has not arrived completely, or after the end.
  std::optional<Message> next();
  // The client has closed the WebSocket or violated the protocol.
  bool ended() const { return ended_; }
  std::string take_replies() { return std::exchange(replies_, {}); }

 private:
  // One frame at the beginning of `rest`, unmasked; nullopt if it is incomplete. Sets ended_ if it is not allowed.
  struct Frame {
    uint8_t opcode = 0;
    bool last = false;
    std::string payload;
  };
  std::optional<Frame> next_frame();
  void end(uint16_t status);

  const size_t max_message_bytes_;
  std::string input_;
  size_t consumed_ = 0;             // Of input_.
  std::optional<Message> message_;  // The fragments so far.
  std::string replies_;
  bool ended_ = false;
};

}  // namespace holdfast::net
