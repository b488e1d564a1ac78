// Time as the server sees it, so that tests and simulations can own it, and RFC 3339 texts.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace holdfast {

struct UnixTime {
  int64_t seconds = 0;
  int32_t nanos = 0;
  auto operator<=>(const UnixTime&) const = default;
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual UnixTime now() const = 0;                                     // Wall time.
  virtual std::chrono::steady_clock::time_point monotonic() const = 0;  // For timeouts and ages.
};

// The machine's own clock.
Clock& system_clock();

// "2026-01-02T03:04:05Z", metav1.Time's form: UTC, whole seconds.
std::string format_rfc3339(UnixTime time);
// "2026-01-02T03:04:05.000000Z", metav1.MicroTime's form.
std::string format_rfc3339_micro(UnixTime time);
// The same into a buffer of at least kMaxRfc3339 bytes; returns the end.
inline constexpr size_t kMaxRfc3339 = 48;
char* write_rfc3339(UnixTime time, char* to);
char* write_rfc3339_micro(UnixTime time, char* to);
// Any RFC 3339 text as Go's time.Parse takes it, zone applied; nothing if it is not one.
std::optional<UnixTime> parse_rfc3339(std::string_view text);

// Nanoseconds of a text as Go's time.ParseDuration takes it ("1h0m0s", "1.5h"), with its error texts.
Result<int64_t> parse_go_duration(std::string_view text);

}  // namespace holdfast
