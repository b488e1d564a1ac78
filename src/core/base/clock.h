// The clock, injectable for tests and simulations, and RFC 3339 parsing and formatting.
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

// The system clock.
Clock& system_clock();

// "2026-01-02T03:04:05Z", the format of metav1.Time: UTC, whole seconds.
std::string format_rfc3339(UnixTime time);
// "2026-01-02T03:04:05.000000Z", the format of metav1.MicroTime.
std::string format_rfc3339_micro(UnixTime time);
// The same into a buffer of at least kMaxRfc3339 bytes; returns the end.
inline constexpr size_t kMaxRfc3339 = 48;
char* write_rfc3339(UnixTime time, char* to);
char* write_rfc3339_micro(UnixTime time, char* to);
// Parses RFC 3339 like Go's time.Parse and converts to UTC; nullopt if invalid.
std::optional<UnixTime> parse_rfc3339(std::string_view text);

// Parses a duration like Go's time.ParseDuration ("1h0m0s", "1.5h"), with its error messages. In nanoseconds.
Result<int64_t> parse_go_duration(std::string_view text);
// As Go prints a Duration: "1h0m0s", "45s", "1.5ms", "0s".
std::string format_go_duration(std::chrono::nanoseconds duration);

}  // namespace holdfast
