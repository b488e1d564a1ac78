// The header of a token as a signer returns it. Private to the module.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace holdfast::signer {

// The key id in the header. Checks, with the errors of kube-apiserver's validateJWTHeader: only alg, kid and typ, a
// supported algorithm, and a key id. Stricter than kube-apiserver, so that every reader of the token sees the same
// header: no line breaks in the base64, no repeated members, one JSON value, names in lower case.
Result<std::string> check_header(std::string_view header);

}  // namespace holdfast::signer
