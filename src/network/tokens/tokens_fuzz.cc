// Arbitrary text as a bearer token: never crashes, and is never accepted, because the fuzzer does not have the key.
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tokens/tokens.h"

using namespace holdfast;          // NOLINT
using namespace holdfast::tokens;  // NOLINT

namespace {

const Verifier& verifier() {
  static const Verifier* const one = [] {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    BIO* bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PUBKEY(bio, key);
    char* data = nullptr;
    const long length = BIO_get_mem_data(bio, &data);
    Result<Verifier> made = Verifier::from_pem({"https://issuer"}, {std::string(data, static_cast<size_t>(length))});
    if (!made) std::abort();
    BIO_free(bio);
    EVP_PKEY_free(key);
    return new Verifier(std::move(*made));
  }();
  return *one;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view token(reinterpret_cast<const char*>(data), size);
  (void)verifier().recognizes(token);
  (void)verifier().lacks_key_of(token);
  if (verifier().verify(token, {"https://issuer"}, {2000, 0})) std::abort();
  // The input as the payload behind a header that names our algorithm, so that the fuzzer gets past the header.
  const std::string framed = "eyJhbGciOiJFUzI1NiJ9." + std::string(token) + ".AAAA";
  if (verifier().verify(framed, {}, {2000, 0})) std::abort();
  return 0;
}
