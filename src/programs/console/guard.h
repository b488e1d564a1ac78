// Decides whether a request comes from the console's own page in the browser of the user who started it.
//
// Any web site can make a browser send requests to 127.0.0.1, and any program of any user of this machine can connect
// to it. Therefore:
//
//   Host             must be this address and port: a name of an attacker that resolves to 127.0.0.1 (DNS rebinding) is
//                    refused before anything is served
//   prefix           a random first segment of every path. Cookies are shared by all ports of a host; the cookie's Path
//                    keeps it from other servers on this machine
//   Sec-Fetch-Site   must be same-origin for whatever has data or an effect; browsers set it and pages cannot. Requests
//                    without it do not pass
//   Sec-Fetch-Dest   must be that of fetch(): data is never loaded as a document, script or image
//   Origin           must be our own where it is present, and present for effects
//   cookie           set once for the token in the address that was printed at the start. The token travels in the
//                    fragment, which browsers do not send, and is valid once
//
// Used on one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/net.h"

namespace holdfast::console {

enum class Access : uint8_t {
  Page,     // The files of the page: neither data nor effects.
  Session,  // Exchanges the token for the cookie.
  Data,     // Reads.
  Effect,   // Everything else.
};

struct Refusal {
  int status;
  std::string why;
};

class Guard {
 public:
  // With fresh random secrets.
  explicit Guard(uint16_t port);

  // nullopt if the request may be served.
  std::optional<Refusal> check(const net::Request& request, Access access) const;

  // The Set-Cookie value for the token; nullopt if the token is wrong or was used before.
  std::optional<std::string> exchange(std::string_view token);

  const std::string& prefix() const { return prefix_; }    // "/0123456789abcdef/"
  const std::string& address() const { return address_; }  // "127.0.0.1:1234"
  std::string url() const;                                 // With the token.

 private:
  bool has_cookie(const net::Request& request) const;

  std::string address_, origin_, prefix_, cookie_name_, secret_;
  std::string token_;  // Empty once it was used.
};

}  // namespace holdfast::console
