#include "signer/header.h"

#include <optional>
#include <vector>

#include "base/arena.h"
#include "base/base64.h"
#include "base/text.h"
#include "codec/codec.h"
#include "signer/messages.h"
#include "value/value.h"

namespace holdfast::signer {
namespace {

Error refused(std::string why) { return bad_request(std::move(why)); }

}  // namespace

Result<std::string> check_header(std::string_view header) {
  size_t wrong = header.find_first_of("\r\n");
  std::optional<std::string> json;
  if (wrong == std::string_view::npos) json = base64url_decode(header, &wrong);
  if (!json) return refused("while unwrapping header: illegal base64 data at input byte " + std::to_string(wrong));

  const auto unreadable = [](const std::string& why) { return refused("while parsing header JSON: " + why); };
  Arena arena;
  std::vector<std::string> repeated;
  Result<Value> decoded = codec::decode_json(arena, *json, {.duplicates = &repeated});
  if (!decoded) return unreadable(decoded.error().message);
  if (!decoded->is_map()) return unreadable("the header is not an object");
  if (!repeated.empty()) return unreadable(repeated.front());
  for (const Member& member : decoded->members()) {
    if (member.key != "alg" && member.key != "kid" && member.key != "typ") {
      return unreadable("json: unknown field " + go_quote(member.key));
    }
    if (!member.value.is_string()) return unreadable(std::string(member.key) + " is not a string");
  }

  const std::string_view algorithm = decoded->text_at("alg"), key_id = decoded->text_at("kid");
  if (decoded->text_at("typ") != "JWT") return refused("bad type");
  if (key_id.empty()) return refused("key id missing");
  if (key_id.size() > kMaxKeyIdBytes) return refused("key id longer than 1 kb");
  if (algorithm != "RS256" && algorithm != "ES256" && algorithm != "ES384" && algorithm != "ES512") {
    return refused("bad signing algorithm " + go_quote(algorithm));
  }
  return std::string(key_id);
}

}  // namespace holdfast::signer
