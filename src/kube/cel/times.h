// Calendar and time zones. Private to the module.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::cel {

inline constexpr int64_t kMinUnixTime = -62135596800;  // 0001-01-01T00:00:00Z
inline constexpr int64_t kMaxUnixTime = 253402300799;  // 9999-12-31T23:59:59Z

// Like Go's time.Parse with RFC 3339.
bool parse_rfc3339(std::string_view text, int64_t& seconds, int32_t& nanos, int64_t& zone);

struct Civil {
  int64_t year;
  int month, day;   // 1-based.
  int week_day;     // Sunday is 0.
  int day_of_year;  // 0-based.
  int hour, minute, second;
};
Civil civil_time(int64_t local_seconds);
int64_t days_from_civil(int64_t year, int month, int day);

// Seconds east of UTC at a point in time. nullopt, with Go's error in `problem`, if there is no such zone.
std::optional<int64_t> zone_offset(std::string_view zone, int64_t unix_seconds, std::string& problem);

}  // namespace holdfast::cel
