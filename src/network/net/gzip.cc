// gzip using ISA-L, which is fast at low levels: clients request compressed lists by default.
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cstring>

#include "net/net.h"

namespace holdfast::net {

namespace {
constexpr size_t kOutputStepBytes = 32 << 10;
}

struct GzipWriter::State {
  isal_zstream stream;
  std::unique_ptr<uint8_t[]> level_buffer = std::make_unique<uint8_t[]>(ISAL_DEF_LVL1_DEFAULT);

  State() {
    isal_deflate_init(&stream);
    stream.level = 1;
    stream.level_buf = level_buffer.get();
    stream.level_buf_size = ISAL_DEF_LVL1_DEFAULT;
    stream.gzip_flag = IGZIP_GZIP;
    stream.flush = NO_FLUSH;
    stream.end_of_stream = 0;
  }

  // Compresses the input at next_in and appends to `out`.
  void run(std::string& out) {
    do {
      const size_t had = out.size();
      out.resize(had + std::max<size_t>(kOutputStepBytes, stream.avail_in / 4));
      stream.next_out = reinterpret_cast<uint8_t*>(out.data()) + had;
      stream.avail_out = static_cast<uint32_t>(out.size() - had);
      const int status = isal_deflate(&stream);
      assert(status == COMP_OK);
      (void)status;
      out.resize(out.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  }

  void add(std::string_view bytes, std::string& out) {
    while (!bytes.empty()) {
      // avail_in has 32 bits.
      const std::string_view piece = bytes.substr(0, 1 << 30);
      stream.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(piece.data()));
      stream.avail_in = static_cast<uint32_t>(piece.size());
      run(out);
      bytes.remove_prefix(piece.size());
    }
  }

  void finish(std::string& out) {
    stream.end_of_stream = 1;
    stream.next_in = nullptr;
    stream.avail_in = 0;
    run(out);
  }
};

GzipWriter::GzipWriter() : state_(std::make_unique<State>()) {}
GzipWriter::~GzipWriter() = default;
GzipWriter::GzipWriter(GzipWriter&&) noexcept = default;

std::string GzipWriter::add(std::string_view bytes) {
  std::string out;
  state_->add(bytes, out);
  return out;
}

std::string GzipWriter::finish() {
  std::string out;
  state_->finish(out);
  return out;
}

std::string gzip(std::span<const Bytes> parts) {
  auto state = std::make_unique<GzipWriter>();
  std::string out;
  for (const Bytes& part : parts) out += state->add(part.view);
  out += state->finish();
  return out;
}

Result<std::string> gunzip(std::string_view bytes, size_t limit_bytes) {
  auto state = std::make_unique<inflate_state>();
  isal_inflate_init(state.get());
  state->crc_flag = ISAL_GZIP;
  state->next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(bytes.data()));
  state->avail_in = static_cast<uint32_t>(std::min<size_t>(bytes.size(), UINT32_MAX));
  std::string out;
  while (state->block_state != ISAL_BLOCK_FINISH) {
    const size_t had = out.size();
    if (had > limit_bytes)
      return Error{Reason::RequestEntityTooLarge,
                   "the decompressed body is larger than " + std::to_string(limit_bytes) + " bytes"};
    out.resize(had + kOutputStepBytes);
    state->next_out = reinterpret_cast<uint8_t*>(out.data()) + had;
    state->avail_out = kOutputStepBytes;
    if (isal_inflate(state.get()) != ISAL_DECOMP_OK) return bad_request("the body is not valid gzip");
    out.resize(out.size() - state->avail_out);
    if (state->avail_in == 0 && state->avail_out > 0 && state->block_state != ISAL_BLOCK_FINISH) {
      return bad_request("the gzip body ends too early");
    }
  }
  if (out.size() > limit_bytes)
    return Error{Reason::RequestEntityTooLarge,
                 "the decompressed body is larger than " + std::to_string(limit_bytes) + " bytes"};
  return out;
}

}  // namespace holdfast::net
