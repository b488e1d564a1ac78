#include "nodes/spdy.h"

#include <utility>

namespace holdfast::nodes {
namespace {

enum Type : uint16_t { kSynStream = 1, kSynReply = 2, kRstStream = 3, kPing = 6, kGoAway = 7, kHeaders = 8 };
constexpr uint8_t kFin = 1;
constexpr size_t kHeadBytes = 8;

void put(std::string& out, uint64_t number, int bytes) {
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) out += static_cast<char>(number >> shift & 0xff);
}

uint32_t number_at(std::string_view bytes, size_t at, size_t count) {
  uint32_t number = 0;
  for (size_t i = 0; i < count; ++i) number = number << 8 | static_cast<uint8_t>(bytes[at + i]);
  return number;
}

void put_control_head(std::string& out, Type type, uint8_t flags, size_t length) {
  put(out, 0x8003, 2);
  put(out, type, 2);
  put(out, flags, 1);
  put(out, length, 3);
}

}  // namespace

SpdyClient::Stream SpdyClient::open(std::string_view header, std::string_view value, std::string& out) {
  std::string block;
  put(block, 1, 4);
  for (const std::string_view text : {header, value}) {
    put(block, text.size(), 4);
    block += text;
  }
  // All header blocks of a connection are one zlib stream (RFC 1950). Blocks of a few bytes are not worth compressing:
  // each is a stored block (RFC 1951), which needs no dictionary. The empty one after it is what makes Go's decoder
  // return the bytes before it, instead of waiting for more.
  std::string stream;
  if (!std::exchange(wrote_headers_, true)) stream += "\x78\x01";
  stream += '\0';
  for (const uint64_t length : {block.size(), ~block.size()}) {
    stream += static_cast<char>(length & 0xff);
    stream += static_cast<char>(length >> 8 & 0xff);
  }
  stream += block;
  stream += std::string_view("\0\0\0\xff\xff", 5);

  const Stream opened{next_id_};
  next_id_ += 2;
  put_control_head(out, kSynStream, 0, 10 + stream.size());
  put(out, opened.id, 4);
  put(out, 0, 4);  // No associated stream.
  put(out, 0, 2);  // Highest priority, no credential slot.
  out += stream;
  return opened;
}

void SpdyClient::write(Stream stream, std::string_view bytes, bool last, std::string& out) {
  put(out, stream.id, 4);
  put(out, last ? kFin : 0, 1);
  put(out, bytes.size(), 3);
  out += bytes;
}

void SpdyClient::receive(std::string_view bytes) {
  input_.erase(0, std::exchange(consumed_, 0));
  input_ += bytes;
}

Result<std::optional<SpdyClient::Event>> SpdyClient::next(std::string& out) {
  using MaybeEvent = std::optional<Event>;
  while (true) {
    if (data_left_ > 0) {
      const std::string_view piece = rest().substr(0, data_left_);
      if (piece.empty()) return MaybeEvent();
      Event event{.kind = Event::Kind::Data, .stream = data_stream_, .bytes = std::string(piece)};
      consumed_ += piece.size();
      data_left_ -= piece.size();
      return MaybeEvent(std::move(event));
    }
    if (std::exchange(data_ends_stream_, false)) {
      return MaybeEvent(Event{.kind = Event::Kind::End, .stream = data_stream_, .bytes = {}});
    }
    if (rest().size() < kHeadBytes) return MaybeEvent();
    const bool control = (rest()[0] & 0x80) != 0;
    if (!control) {
      data_stream_ = {number_at(rest(), 0, 4)};
      data_ends_stream_ = (rest()[4] & kFin) != 0;
      data_left_ = number_at(rest(), 5, 3);
      consumed_ += kHeadBytes;
      continue;
    }
    if (number_at(rest(), 0, 2) != 0x8003) return internal_error("not a SPDY/3 frame");
    const size_t length = number_at(rest(), 5, 3);
    if (length > kMaxControlBytes) return internal_error("SPDY control frame too large");
    if (rest().size() < kHeadBytes + length) return MaybeEvent();
    Result<MaybeEvent> event = control_frame(out);
    consumed_ += kHeadBytes + length;
    if (!event || *event) return event;
  }
}

// A whole control frame is at the beginning of rest().
Result<std::optional<SpdyClient::Event>> SpdyClient::control_frame(std::string& out) {
  using MaybeEvent = std::optional<Event>;
  const uint32_t type = number_at(rest(), 2, 2), length = number_at(rest(), 5, 3);
  const bool last = (rest()[4] & kFin) != 0;
  const std::string_view payload = rest().substr(kHeadBytes, length);
  if (type == kGoAway) return MaybeEvent(Event{.kind = Event::Kind::Close, .stream = {}, .bytes = {}});
  if (type != kRstStream && type != kPing && type != kSynReply && type != kHeaders) return MaybeEvent();
  if (length < 4) return internal_error("truncated SPDY frame");
  const uint32_t number = number_at(payload, 0, 4);
  if (type == kRstStream) return MaybeEvent(Event{.kind = Event::Kind::Reset, .stream = {number}, .bytes = {}});
  if (type == kPing) {
    // Odd ones would be replies to ours. Echoed at once: there is one at a time.
    if (number % 2 == 0 && out.size() < kMaxControlBytes) {
      put_control_head(out, kPing, 0, 4);
      put(out, number, 4);
    }
    return MaybeEvent();
  }
  if (last) return MaybeEvent(Event{.kind = Event::Kind::End, .stream = {number}, .bytes = {}});
  if (type == kSynReply) return MaybeEvent(Event{.kind = Event::Kind::Reply, .stream = {number}, .bytes = {}});
  return MaybeEvent();
}

}  // namespace holdfast::nodes
