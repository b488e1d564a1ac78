#include "request/continue_token.h"

#include <optional>
#include <vector>

#include "base/arena.h"
#include "base/base64.h"
#include "base/text.h"
#include "codec/codec.h"

namespace holdfast::request {
namespace {

Error invalid_token(std::string_view why) {
  return bad_request("invalid continue token: continue key is not valid" + std::string(why));
}

// Whether Go's path.Clean would leave an absolute path unchanged.
bool is_clean(std::string_view path) {
  if (path.size() > 1 && path.back() == '/') return false;
  while (!path.empty()) {
    path.remove_prefix(1);
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part == "." || part == "..") return false;
    if (part.empty() && slash != std::string_view::npos) return false;
    path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash);
  }
  return true;
}

}  // namespace

std::string encode_continue(const ContinueToken& token) {
  return base64url_encode("{\"v\":\"meta.k8s.io/v1\",\"rv\":" + std::to_string(token.revision) +
                          ",\"start\":" + json_quote(token.start) + "}");
}

Result<ContinueToken> decode_continue(std::string_view text) {
  size_t wrong = 0;
  const std::optional<std::string> json = base64url_decode(text, &wrong);
  if (!json) return invalid_token(": illegal base64 data at input byte " + std::to_string(wrong));
  Arena arena;
  Result<Value> value = codec::decode_json(arena, *json);
  if (!value) return invalid_token(": " + value.error().message);
  if (!value->is_map()) return invalid_token(": json: cannot unmarshal into Go value of type storage.continueToken");
  const std::string_view version = value->text_at("v");
  if (version != "meta.k8s.io/v1") {
    return invalid_token(": server does not recognize this encoded version " + std::string(version));
  }
  ContinueToken token{value->int_at_or(0, "rv"), std::string(value->text_at("start"))};
  if (token.revision == 0) return invalid_token(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
  if (token.start.empty()) return invalid_token(": encoded start key empty (version meta.k8s.io/v1)");
  const std::string absolute = token.start.front() == '/' ? token.start : "/" + token.start;
  if (!is_clean(absolute)) return invalid_token(": " + token.start);
  token.start = absolute.substr(1);
  return token;
}

}  // namespace holdfast::request
