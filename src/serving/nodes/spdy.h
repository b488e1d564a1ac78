// The client's side of a SPDY/3.1 connection, as far as kubelets use it: a few streams, opened by the client, without
// flow control. Plain data in and out. Private to the module.
//
//   control frame   80 03 | type (2) | flags (1) | length (3) | payload
//   data frame      stream id (4)    | flags (1) | length (3) | payload
//
// Header blocks that are received carry nothing that matters here and are skipped, without being decompressed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace holdfast::nodes {

class SpdyClient {
 public:
  struct Stream {
    uint32_t id = 0;
    auto operator<=>(const Stream&) const = default;
  };

  // Opens a stream with one header; what is to be sent is appended to `out`.
  Stream open(std::string_view header, std::string_view value, std::string& out);
  // Bytes for a stream, and whether they are the last.
  static void write(Stream stream, std::string_view bytes, bool last, std::string& out);

  struct Event {
    enum class Kind : uint8_t {
      Reply,  // The peer has accepted the stream. Go's servers drop what arrives on a stream before.
      Data,   // Of a frame, what has arrived; a long frame is many events.
      End,    // The peer will send no more on this stream.
      Reset,  // The peer ended the stream in both directions.
      Close,  // The peer accepts no more streams.
    };
    Kind kind = Kind::Reply;
    Stream stream;
    std::string bytes;
  };
  void receive(std::string_view bytes);
  // The next event; nullopt if more has to arrive first. An error if the peer does not speak SPDY. Appends to `out`
  // what is to be sent in reply.
  Result<std::optional<Event>> next(std::string& out);

 private:
  static constexpr size_t kMaxControlBytes = 64 << 10;

  std::string_view rest() const { return std::string_view(input_).substr(consumed_); }
  Result<std::optional<Event>> control_frame(std::string& out);

  uint32_t next_id_ = 1;  // A client's streams have odd numbers.
  bool wrote_headers_ = false;
  std::string input_;
  size_t consumed_ = 0;
  // The data frame that is being received.
  Stream data_stream_;
  size_t data_left_ = 0;
  bool data_ends_stream_ = false;
};

}  // namespace holdfast::nodes
