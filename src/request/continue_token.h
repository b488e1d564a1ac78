// The continue token of a paged list: where to continue, and at which revision. Its form is Kubernetes' own, so that a
// client may take one from either server to the other on the same store.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace holdfast::request {

struct ContinueToken {
  int64_t revision = 0;  // -1: the latest, after the first one expired.
  std::string start;     // The key below the list's prefix.
};

std::string encode_continue(const ContinueToken& token);
// 400 in Kubernetes' words.
Result<ContinueToken> decode_continue(std::string_view text);

}  // namespace holdfast::request
