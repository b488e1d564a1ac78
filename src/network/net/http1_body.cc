#include "net/http1_body.h"

#include <algorithm>

#include "base/strings.h"

namespace holdfast::net::detail {

namespace {
// Chunk extensions and trailers are skipped; legitimate ones are short.
constexpr size_t kLineBytes = 4096;
constexpr size_t kTrailerBytes = 64 << 10;
}  // namespace

void BodyDecoder::start(Framing framing, uint64_t length) {
  framing_ = framing;
  left_ = length;
  trailer_bytes_ = 0;
  place_ = framing == Framing::Chunked ? Place::ChunkSize : Place::Data;
}

BodyDecoder::Step BodyDecoder::step(std::string_view input, size_t& consumed, std::string_view& payload) {
  consumed = 0;
  while (true) {
    const std::string_view rest = input.substr(consumed);
    if (place_ == Place::Over) return Step::End;
    if (place_ == Place::Data) {
      if (framing_ != Framing::UntilClose && left_ == 0) {
        place_ = framing_ == Framing::Length ? Place::Over : Place::ChunkEnd;
        continue;
      }
      if (rest.empty()) return Step::NeedMore;
      const size_t take = framing_ == Framing::UntilClose ? rest.size() : std::min<uint64_t>(rest.size(), left_);
      payload = rest.substr(0, take);
      if (framing_ != Framing::UntilClose) left_ -= take;
      consumed += take;
      return Step::Payload;
    }
    const size_t end = rest.find("\r\n");
    if (end == std::string_view::npos) return rest.size() > kLineBytes ? Step::Bad : Step::NeedMore;
    const std::string_view line = rest.substr(0, end);
    consumed += end + 2;
    if (place_ == Place::ChunkEnd) {
      if (!line.empty()) return Step::Bad;
      place_ = Place::ChunkSize;
    } else if (place_ == Place::ChunkSize) {
      const std::string_view digits = line.substr(0, line.find_first_of("; \t"));
      const std::optional<uint64_t> size = parse_number<uint64_t>(digits, 16);
      if (!size || digits.size() > 15) return Step::Bad;
      left_ = *size;
      place_ = left_ == 0 ? Place::Trailer : Place::Data;
    } else {
      trailer_bytes_ += line.size();
      if (trailer_bytes_ > kTrailerBytes) return Step::Bad;
      if (line.empty()) place_ = Place::Over;
    }
  }
}

}  // namespace holdfast::net::detail
