// Arbitrary bytes as the response of a signer: no crash, and no header without a key id is accepted.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/base64.h"
#include "signer/header.h"
#include "signer/messages.h"

using namespace holdfast;          // NOLINT
using namespace holdfast::signer;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  net::ClientResponse response;
  response.status = 200;
  response.headers = {{"content-type", "application/grpc"}};
  response.trailers = {{"grpc-status", "0"}};
  response.body = bytes;
  (void)message_of(response);
  (void)decode_metadata(bytes);
  (void)decode_signed_parts(bytes);
  if (const Outcome<FetchedKeys> keys = decode_fetched_keys(bytes); keys && check_keys(*keys)) {
    (void)tokens::Verifier::from_keys({"https://issuer"}, keys->keys);
  }
  if (const Result<std::string> key_id = check_header(base64url_encode(bytes)); key_id && key_id->empty()) std::abort();
  return 0;
}
