// Go's time.Parse for the two layouts of the API, with its errors.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace holdfast::codec {

enum class TimeLayout : uint8_t {
  Seconds,  // metav1.Time: RFC 3339, optionally with a fraction.
  Micro,    // metav1.MicroTime: exactly six fractional digits.
};
// Empty, with Go's message in `error`, if it is not such a time. (Like Go, accepts one-digit hours.)
std::optional<UnixTime> parse_go_time(std::string_view text, TimeLayout layout, std::string& error);

}  // namespace holdfast::codec
