#include "net/websocket_messages.h"

#include "net/websocket.h"

namespace holdfast::net {
namespace {

enum Opcode : uint8_t { kContinuation = 0, kText = 1, kBinary = 2, kClose = 8, kPing = 9, kPong = 10 };

// Bounds the replies for a client that does not read: RFC 6455 requires a reply only to the latest ping.
constexpr size_t kMaxReplyBytes = 4096;
constexpr uint16_t kProtocolError = 1002, kTooBig = 1009;

std::string control_frame(uint8_t opcode, std::string_view payload) {
  std::string frame{static_cast<char>(0x80 | opcode), static_cast<char>(payload.size())};
  return frame += payload;
}

}  // namespace

std::string websocket_accept_of(std::string_view key) { return detail::websocket_accept(key); }

std::string websocket_close(uint16_t status) {
  const char code[] = {static_cast<char>(status >> 8), static_cast<char>(status & 0xff)};
  return control_frame(kClose, {code, sizeof code});
}

void WebSocketMessages::end(uint16_t status) {
  ended_ = true;
  replies_ += websocket_close(status);
}

std::optional<WebSocketMessages::Frame> WebSocketMessages::next_frame() {
  const std::string_view rest = std::string_view(input_).substr(consumed_);
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(rest[at]); };
  if (rest.size() < 2) return std::nullopt;
  Frame frame{.opcode = static_cast<uint8_t>(byte(0) & 0xf), .last = (byte(0) & 0x80) != 0, .payload = {}};
  const bool masked = (byte(1) & 0x80) != 0, reserved = (byte(0) & 0x70) != 0, control = (frame.opcode & 8) != 0;
  uint64_t length = byte(1) & 0x7f;
  if (!masked || reserved || (control && (!frame.last || length > 125))) return end(kProtocolError), std::nullopt;
  const size_t length_bytes = length == 126 ? 2 : length == 127 ? 8 : 0;
  const size_t head = 2 + length_bytes + 4;
  if (rest.size() < head) return std::nullopt;
  if (length_bytes > 0) length = 0;
  for (size_t i = 0; i < length_bytes; ++i) length = length << 8 | byte(2 + i);
  const size_t before = message_ ? message_->payload.size() : 0;
  if (length > max_message_bytes_ || before + length > max_message_bytes_) return end(kTooBig), std::nullopt;
  if (rest.size() < head + length) return std::nullopt;
  frame.payload = rest.substr(head, length);
  for (size_t i = 0; i < length; ++i) frame.payload[i] = static_cast<char>(frame.payload[i] ^ rest[head - 4 + i % 4]);
  consumed_ += head + length;
  return frame;
}

std::optional<WebSocketMessages::Message> WebSocketMessages::next() {
  while (!ended_) {
    std::optional<Frame> frame = next_frame();
    if (!frame) break;
    switch (frame->opcode) {
      case kClose:
        ended_ = true;
        replies_ += control_frame(kClose, std::string_view(frame->payload).substr(0, 2));
        continue;
      case kPing:
        if (replies_.size() <= kMaxReplyBytes) replies_ += control_frame(kPong, frame->payload);
        continue;
      case kPong:
        continue;
      case kText:
      case kBinary:
        if (message_) {
          end(kProtocolError);
          continue;
        }
        message_ = Message{frame->opcode == kText, std::move(frame->payload)};
        break;
      case kContinuation:
        if (!message_) {
          end(kProtocolError);
          continue;
        }
        message_->payload += frame->payload;
        break;
      default:
        end(kProtocolError);
        continue;
    }
    if (frame->last) return std::exchange(message_, std::nullopt);
  }
  // What is left is an incomplete frame: moved to the front once per piece received, not once per frame.
  input_.erase(0, consumed_);
  consumed_ = 0;
  return std::nullopt;
}

}  // namespace holdfast::net
