// The messages of ExternalJWTSigner (k8s.io/externaljwt/apis/v1/api.proto), in Protobuf. Private to the module.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "signer/rpc.h"
#include "tokens/tokens.h"

namespace holdfast::signer {

// Limit for key ids.
inline constexpr size_t kMaxKeyIdBytes = 1024;

struct SignedParts {
  std::string header, signature;  // As in a token: base64url.
};

struct FetchedKeys {
  std::vector<tokens::PublicKey> keys;
  std::optional<UnixTime> data_timestamp;
  int64_t refresh_hint_seconds = 0;
};

// `claims`: base64url, as in a token.
std::string encode_sign_request(std::string_view claims);

// Invalid bytes fail the call, as in grpc-go.
Outcome<SignedParts> decode_signed_parts(std::string_view message);
Outcome<FetchedKeys> decode_fetched_keys(std::string_view message);
// max_token_expiration_seconds
Outcome<int64_t> decode_metadata(std::string_view message);

// The checks of kube-apiserver, with its wording. The keys themselves have not been parsed yet.
Outcome<Unit> check_keys(const FetchedKeys& fetched);

}  // namespace holdfast::signer
