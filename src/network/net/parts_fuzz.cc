// The smaller parsers of the network code: chunked bodies, percent-encoding, gzip, certificates. They must not crash
// and must keep their invariants.
#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>

#include "net/http1_body.h"
#include "net/net.h"
#include "net/tls.h"

using namespace holdfast;       // NOLINT
using namespace holdfast::net;  // NOLINT

namespace {

// The body must not depend on how the input is split.
std::string body_of(net::detail::BodyDecoder::Framing framing, std::string_view input, size_t piece_bytes, bool& bad) {
  using Step = net::detail::BodyDecoder::Step;
  net::detail::BodyDecoder decoder;
  decoder.start(framing, 100);
  std::string body, waiting;
  bad = false;
  while (true) {
    size_t consumed = 0;
    std::string_view payload;
    const Step step = decoder.step(waiting, consumed, payload);
    assert(consumed <= waiting.size());
    if (step == Step::Payload) body += payload;
    if (step == Step::Bad) bad = true;
    waiting.erase(0, consumed);
    if (step == Step::Bad || step == Step::End) return body;
    if (step == Step::NeedMore) {
      if (input.empty()) return body;
      waiting += input.substr(0, piece_bytes);
      input.remove_prefix(std::min(piece_bytes, input.size()));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 4) {
    case 0:
      for (const auto framing :
           {net::detail::BodyDecoder::Framing::Chunked, net::detail::BodyDecoder::Framing::Length}) {
        bool bad_whole = false, bad_cut = false;
        const std::string whole = body_of(framing, text, text.size() + 1, bad_whole);
        const std::string cut = body_of(framing, text, 1, bad_cut);
        assert(bad_whole == bad_cut && (bad_whole || whole == cut));
      }
      break;
    case 1:
      if (const auto decoded = percent_decode(text)) assert(decoded->size() <= text.size());
      break;
    case 2: {
      constexpr size_t kLimit = 1 << 20;
      if (const Result<std::string> plain = gunzip(text, kLimit)) assert(plain->size() <= kLimit);
      break;
    }
    default:
      (void)net::detail::certificates_from_pem(text, "the input");
      (void)CaPool::from_pem("-----BEGIN CERTIFICATE-----\n" + std::string(text) + "\n-----END CERTIFICATE-----\n",
                             "it");
  }
  return 0;
}
