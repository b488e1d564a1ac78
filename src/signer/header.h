// The header of a token as a signer returns it. Private to the module.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace holdfast::signer {

// The id of the key that it names. The error says what kube-apiserver's validateJWTHeader says: nothing but alg, kid
// and typ, an algorithm that it verifies, and a key id. Stricter than there: no line breaks in the base64, no member
// twice, no second JSON value, names in lower case, so that every reader of the token sees the same header.
Result<std::string> check_header(std::string_view header);

}  // namespace holdfast::signer
