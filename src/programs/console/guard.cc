#include "console/guard.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "base/strings.h"

namespace holdfast::console {

namespace {

std::string random_hex(size_t bytes) {
  std::string random(bytes, '\0');
  // Without randomness there is no secret: OpenSSL fails only if the kernel has none.
  const int good = RAND_bytes(reinterpret_cast<unsigned char*>(random.data()), static_cast<int>(bytes));
  assert(good == 1);
  std::string text;
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (const char byte : random) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

// In a time that depends only on the lengths.
bool same_secret(std::string_view one, std::string_view other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

Refusal forbidden(std::string why) { return {403, std::move(why)}; }

}  // namespace

Guard::Guard(uint16_t port)
    : address_("127.0.0.1:" + std::to_string(port)),
      origin_("http://" + address_),
      prefix_("/" + random_hex(8) + "/"),
      cookie_name_("holdfast-console-" + std::to_string(port)),
      secret_(random_hex(32)),
      token_(random_hex(16)) {}

std::string Guard::url() const { return origin_ + prefix_ + "#token=" + token_; }

std::optional<Refusal> Guard::check(const net::Request& request, Access access) const {
  if (request.authority != address_ || request.headers.all("host").size() > 1) {
    return Refusal{421, "this server answers only requests for " + address_};
  }
  const std::string_view site = request.headers.get("sec-fetch-site");
  const std::string_view origin = request.headers.get("origin");
  if (request.headers.all("sec-fetch-site").size() > 1 || request.headers.all("origin").size() > 1) {
    return Refusal{400, "repeated header"};
  }
  if (access == Access::Page) {
    // A link on another site may open the page, which then has no more than any other window of it. It cannot be
    // framed, and its files cannot be embedded.
    const bool opened =
        request.headers.get("sec-fetch-mode") == "navigate" && request.headers.get("sec-fetch-dest") == "document";
    if (!site.empty() && site != "same-origin" && site != "none" && !opened)
      return forbidden("request of another site");
    if (!origin.empty() && origin != origin_) return forbidden("request of another origin");
    return std::nullopt;
  }
  if (site != "same-origin") {
    return forbidden(site.empty() ? "no Sec-Fetch-Site header: the console needs a browser that sends Fetch Metadata"
                                  : "request of another site");
  }
  if (request.headers.get("sec-fetch-dest") != "empty") return forbidden("only scripts of the page may fetch this");
  if (origin.empty() ? access != Access::Data : origin != origin_) return forbidden("request of another origin");
  if (access != Access::Session && !has_cookie(request)) {
    return Refusal{401, "no session: open the address that holdfast console printed, or start it again"};
  }
  return std::nullopt;
}

std::optional<std::string> Guard::exchange(std::string_view token) {
  if (token_.empty() || !same_secret(token, token_)) return std::nullopt;
  token_.clear();
  return cookie_name_ + "=" + secret_ + "; Path=" + prefix_ + "; HttpOnly; SameSite=Strict";
}

bool Guard::has_cookie(const net::Request& request) const {
  for (const std::string_view line : request.headers.all("cookie")) {
    for (std::string_view part : split(line, ';')) {
      while (part.starts_with(' ')) part.remove_prefix(1);
      const size_t equals = part.find('=');
      if (equals != std::string_view::npos && part.substr(0, equals) == cookie_name_ &&
          same_secret(part.substr(equals + 1), secret_)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace holdfast::console
