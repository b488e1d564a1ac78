#include "net/websocket.h"

#include <openssl/evp.h>

#include <algorithm>

#include "base/base64.h"
#include "base/strings.h"
#include "net/net.h"

namespace holdfast::net::detail {
namespace {

// Bounds the replies queued for a client that does not read: RFC 6455 requires a reply only to the latest ping.
constexpr size_t kMaxReplyBytes = 4096;

enum Opcode : uint8_t { kClose = 8, kPing = 9 };

uint8_t byte_at(std::string_view frame, size_t at) { return static_cast<uint8_t>(frame[at]); }

bool is_control(std::string_view frame) { return (byte_at(frame, 0) & 8) != 0; }

// Bytes needed before the frame can be processed.
size_t needed_bytes(std::string_view frame) {
  if (frame.size() < 2) return 2;
  const size_t length = byte_at(frame, 1) & 0x7f;
  const size_t head = 2 + (length == 126 ? 2 : length == 127 ? 8 : 0) + 4;
  return is_control(frame) ? head + length : head;
}

// Client frames are masked; control frames are short and not fragmented.
bool follows_protocol(std::string_view frame) {
  const bool masked = (byte_at(frame, 1) & 0x80) != 0, whole = (byte_at(frame, 0) & 0x80) != 0;
  return masked && (!is_control(frame) || (whole && (byte_at(frame, 1) & 0x7f) < 126));
}

uint64_t message_bytes(std::string_view frame) {
  const size_t length = byte_at(frame, 1) & 0x7f;
  if (length < 126) return length;
  uint64_t bytes = 0;
  for (size_t i = 0; i < (length == 126 ? 2u : 8u); ++i) bytes = bytes << 8 | byte_at(frame, 2 + i);
  return bytes;
}

// Echoes a close frame, or answers a ping with a pong, with the same payload.
void answer(std::string_view frame, std::string& answers) {
  if (answers.size() > kMaxReplyBytes) return;
  const uint8_t opcode = byte_at(frame, 0) & 0xf;
  answers += static_cast<char>(0x80 | (opcode == kPing ? 10 : opcode));
  const std::string_view mask = frame.substr(2, 4), payload = frame.substr(6);
  answers += static_cast<char>(payload.size());
  for (size_t i = 0; i < payload.size(); ++i) answers += static_cast<char>(payload[i] ^ mask[i % 4]);
}

}  // namespace

std::string websocket_accept(std::string_view key) {
  const std::string text = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  EVP_Digest(text.data(), text.size(), digest, &bytes, EVP_sha1(), nullptr);
  return base64_encode({reinterpret_cast<const char*>(digest), bytes});
}

bool WebSocketInput::receive(std::string_view bytes, std::string& answers) {
  while (true) {
    const size_t passed = std::min<uint64_t>(bytes_to_skip_, bytes.size());
    bytes.remove_prefix(passed);
    bytes_to_skip_ -= passed;
    if (bytes.empty()) return true;
    const size_t take = std::min(needed_bytes(frame_) - frame_.size(), bytes.size());
    frame_ += bytes.substr(0, take);
    bytes.remove_prefix(take);
    if (frame_.size() >= 2 && !follows_protocol(frame_)) return false;
    if (frame_.size() < needed_bytes(frame_)) continue;
    if (!is_control(frame_)) {
      bytes_to_skip_ = message_bytes(frame_);
    } else {
      const uint8_t opcode = byte_at(frame_, 0) & 0xf;
      if (opcode == kClose || opcode == kPing) answer(frame_, answers);
      if (opcode == kClose) return false;
    }
    frame_.clear();
  }
}

}  // namespace holdfast::net::detail

namespace holdfast::net {

bool is_websocket_request(const Request& request) {
  return request.protocol == Protocol::Http11 && equals_ignoring_case(request.headers.get("upgrade"), "websocket") &&
         to_lower(request.headers.get("connection")).find("upgrade") != std::string::npos;
}

std::string websocket_message(std::string_view payload, bool text) {
  std::string frame(1, static_cast<char>(0x80 | (text ? 1 : 2)));
  const auto add = [&frame](uint64_t number, int width) {
    for (int shift = (width - 1) * 8; shift >= 0; shift -= 8) frame += static_cast<char>(number >> shift & 0xff);
  };
  const size_t bytes = payload.size();
  frame.reserve(bytes + 10);
  if (bytes < 126) {
    add(bytes, 1);
  } else if (bytes < 65536) {
    add(126, 1);
    add(bytes, 2);
  } else {
    add(127, 1);
    add(bytes, 8);
  }
  frame += payload;
  return frame;
}

}  // namespace holdfast::net
