// The continue token of a paged list: where to continue, and at which revision. The format is Kubernetes' own, so a
// token from one server works on the other if they share a store.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace holdfast::request {

struct ContinueToken {
  int64_t revision = 0;  // -1 for the latest revision, after the original one expired.
  std::string start;     // Key relative to the list's prefix.
};

std::string encode_continue(const ContinueToken& token);
// 400 with Kubernetes' message.
Result<ContinueToken> decode_continue(std::string_view text);

}  // namespace holdfast::request
