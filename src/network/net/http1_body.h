// Finds the end of an HTTP/1.1 message body: by length, by chunks, or by the end of the connection. Used in both
// directions.
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

  // Decodes the beginning of `input`. Sets `consumed`; for Payload, `payload` is a view of body bytes in `input`. Call
  // again until NeedMore or End.
  Step step(std::string_view input, size_t& consumed, std::string_view& payload);

  uint64_t left() const { return left_; }  // Bytes left of the body or the chunk.
  Framing framing() const { return framing_; }

 private:
  enum class Place : uint8_t { Data, ChunkSize, ChunkEnd, Trailer, Over };

  Framing framing_ = Framing::Length;
  Place place_ = Place::Data;
  uint64_t left_ = 0;
  size_t trailer_bytes_ = 0;
};

}  // namespace holdfast::net::detail
