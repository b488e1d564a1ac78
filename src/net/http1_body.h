// Where the body of an HTTP/1.1 message ends: by length, in chunks, or with the connection. Used in both directions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace holdfast::net::detail {

class BodyDecoder {
 public:
  enum class Framing : uint8_t { Length, Chunked, UntilClose };
  enum class Step : uint8_t { NeedMore, Payload, End, Bad };

  void start(Framing framing, uint64_t length = 0);

  // Looks at the beginning of `input` and says how much of it is dealt with; with Payload, `payload` is a part of the
  // body inside it. Call again until NeedMore or End.
  Step step(std::string_view input, size_t& consumed, std::string_view& payload);

  uint64_t left() const { return left_; }  // Of the length or the chunk.
  Framing framing() const { return framing_; }

 private:
  enum class Place : uint8_t { Data, ChunkSize, ChunkEnd, Trailer, Over };

  Framing framing_ = Framing::Length;
  Place place_ = Place::Data;
  uint64_t left_ = 0;
  size_t trailer_bytes_ = 0;
};

}  // namespace holdfast::net::detail
