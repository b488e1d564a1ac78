#include "base/clock.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "base/ascii.h"
#include "base/text.h"

namespace holdfast {
namespace {

class SystemClock final : public Clock {
 public:
  UnixTime now() const override {
    timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return {ts.tv_sec, static_cast<int32_t>(ts.tv_nsec)};
  }
  std::chrono::steady_clock::time_point monotonic() const override { return std::chrono::steady_clock::now(); }
};

struct CivilDate {
  int64_t year;
  int month, day;
};

CivilDate civil_from_days(int64_t days) {
  const std::chrono::year_month_day ymd{std::chrono::sys_days{std::chrono::days{days}}};
  return {int{ymd.year()}, static_cast<int>(unsigned{ymd.month()}), static_cast<int>(unsigned{ymd.day()})};
}

char* two_digits(int64_t number, char* to) {
  *to++ = static_cast<char>('0' + number / 10);
  *to++ = static_cast<char>('0' + number % 10);
  return to;
}

char* write_with(UnixTime time, int fraction_digits, char* to) {
  int64_t days = time.seconds / 86400, rest = time.seconds % 86400;
  if (rest < 0) {
    rest += 86400;
    --days;
  }
  const CivilDate date = civil_from_days(days);
  if (date.year >= 0 && date.year <= 9999) {
    to = two_digits(date.year / 100, to);
    to = two_digits(date.year % 100, to);
  } else {
    to += std::snprintf(to, 24, "%04lld", static_cast<long long>(date.year));
  }
  *to++ = '-';
  to = two_digits(date.month, to);
  *to++ = '-';
  to = two_digits(date.day, to);
  *to++ = 'T';
  to = two_digits(rest / 3600, to);
  *to++ = ':';
  to = two_digits(rest / 60 % 60, to);
  *to++ = ':';
  to = two_digits(rest % 60, to);
  if (fraction_digits == 6) {
    const int64_t micros = time.nanos / 1000;
    *to++ = '.';
    to = two_digits(micros / 10000, to);
    to = two_digits(micros / 100 % 100, to);
    to = two_digits(micros % 100, to);
  }
  *to++ = 'Z';
  return to;
}

}  // namespace

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

char* write_rfc3339(UnixTime time, char* to) { return write_with(time, 0, to); }
char* write_rfc3339_micro(UnixTime time, char* to) { return write_with(time, 6, to); }

std::string format_rfc3339(UnixTime time) {
  char text[kMaxRfc3339];
  return std::string(text, write_rfc3339(time, text));
}

std::string format_rfc3339_micro(UnixTime time) {
  char text[kMaxRfc3339];
  return std::string(text, write_rfc3339_micro(time, text));
}

std::optional<UnixTime> parse_rfc3339(std::string_view text) {
  size_t at = 0;
  auto digits = [&](int count, int& out) {
    if (at + count > text.size()) return false;
    out = 0;
    for (int i = 0; i < count; ++i, ++at) {
      if (!is_digit(text[at])) return false;
      out = out * 10 + (text[at] - '0');
    }
    return true;
  };
  auto literal = [&](char c) {
    if (at >= text.size() || text[at] != c) return false;
    ++at;
    return true;
  };
  int year, month, day, hour, minute, second;
  if (!digits(4, year) || !literal('-') || !digits(2, month) || !literal('-') || !digits(2, day)) return {};
  if (!literal('T') || !digits(2, hour) || !literal(':') || !digits(2, minute) || !literal(':') || !digits(2, second))
    return {};
  const std::chrono::year_month_day ymd{std::chrono::year{year}, std::chrono::month(month), std::chrono::day(day)};
  if (!ymd.ok() || hour > 23 || minute > 59 || second > 59) return {};
  UnixTime time;
  if (at < text.size() && (text[at] == '.' || text[at] == ',')) {
    ++at;
    int64_t scale = 100'000'000;
    const size_t start = at;
    for (; at < text.size() && is_digit(text[at]); ++at, scale /= 10) {
      time.nanos += static_cast<int32_t>((text[at] - '0') * scale);
    }
    if (at == start) return {};
  }
  int64_t offset_seconds = 0;
  if (!literal('Z')) {
    if (at >= text.size() || (text[at] != '+' && text[at] != '-')) return {};
    const int sign = text[at++] == '-' ? -1 : 1;
    int zone_hour, zone_minute;
    if (!digits(2, zone_hour) || !literal(':') || !digits(2, zone_minute)) return {};
    if (zone_hour > 24 || zone_minute > 60) return {};
    offset_seconds = sign * (zone_hour * 3600 + zone_minute * 60);
  }
  if (at != text.size()) return {};
  const int64_t days = std::chrono::sys_days{ymd}.time_since_epoch().count();
  time.seconds = days * 86400 + hour * 3600 + minute * 60 + second - offset_seconds;
  return time;
}

namespace {

struct TimeUnit {
  std::string_view name;
  uint64_t nanoseconds;
};
constexpr TimeUnit kUnits[] = {
    {"ns", 1},           {"us", 1000},      {"\xc2\xb5s", 1000},  // Micro sign.
    {"\xce\xbcs", 1000},                                          // Greek mu.
    {"ms", 1000000},     {"s", 1000000000}, {"m", 60000000000},  {"h", 3600000000000},
};

}  // namespace

Result<int64_t> parse_go_duration(std::string_view text) {
  const std::string quoted = go_quote(text);
  const Error invalid = bad_request("time: invalid duration " + quoted);
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (text == "0") return 0;
  if (text.empty()) return invalid;
  constexpr uint64_t kLimit = uint64_t{1} << 63;
  uint64_t total = 0;
  while (!text.empty()) {
    size_t at = 0;
    uint64_t whole = 0;
    while (at < text.size() && is_digit(text[at])) {
      if (whole > kLimit / 10) return invalid;
      whole = whole * 10 + static_cast<uint64_t>(text[at++] - '0');
      if (whole > kLimit) return invalid;
    }
    bool any = at > 0;
    uint64_t part = 0;
    double scale = 1;
    if (at < text.size() && text[at] == '.') {
      ++at;
      bool full = false;  // Further digits are ignored.
      for (; at < text.size() && is_digit(text[at]); ++at) {
        any = true;
        if (full) continue;
        if (part > (kLimit - 1) / 10) {
          full = true;
          continue;
        }
        const uint64_t next = part * 10 + static_cast<uint64_t>(text[at] - '0');
        if (next > kLimit) {
          full = true;
          continue;
        }
        part = next;
        scale *= 10;
      }
    }
    if (!any) return invalid;
    text.remove_prefix(at);
    size_t length = 0;
    while (length < text.size() && text[length] != '.' && !is_digit(text[length])) ++length;
    const std::string_view name = text.substr(0, length);
    text.remove_prefix(length);
    const auto* const unit =
        std::find_if(std::begin(kUnits), std::end(kUnits), [&](const TimeUnit& u) { return u.name == name; });
    if (name.empty()) return bad_request("time: missing unit in duration " + quoted);
    if (unit == std::end(kUnits)) return bad_request("time: unknown unit " + go_quote(name) + " in duration " + quoted);
    if (whole > kLimit / unit->nanoseconds) return invalid;
    whole *= unit->nanoseconds;
    if (part > 0) {
      whole += static_cast<uint64_t>(static_cast<double>(part) * (static_cast<double>(unit->nanoseconds) / scale));
      if (whole > kLimit) return invalid;
    }
    total += whole;
    if (total > kLimit) return invalid;
  }
  if (negative) return static_cast<int64_t>(0 - total);
  if (total > kLimit - 1) return invalid;
  return static_cast<int64_t>(total);
}

std::string format_go_duration(std::chrono::nanoseconds duration) {
  const int64_t nanoseconds = duration.count();
  if (nanoseconds == 0) return "0s";
  uint64_t rest = nanoseconds < 0 ? 0 - static_cast<uint64_t>(nanoseconds) : static_cast<uint64_t>(nanoseconds);
  std::string out = nanoseconds < 0 ? "-" : "";
  // One unit, without trailing zeros in the fraction.
  const auto fraction = [&out](uint64_t amount, uint64_t unit, std::string_view name) {
    out += std::to_string(amount / unit);
    if (uint64_t below = amount % unit; below != 0) {
      std::string digits = std::to_string(below + unit).substr(1);
      digits.erase(digits.find_last_not_of('0') + 1);
      out += '.' + digits;
    }
    out += name;
  };
  if (rest < 1000) {
    fraction(rest, 1, "ns");
  } else if (rest < 1000000) {
    fraction(rest, 1000, "\xc2\xb5s");
  } else if (rest < 1000000000) {
    fraction(rest, 1000000, "ms");
  } else {
    const uint64_t hours = rest / 3600000000000;
    const uint64_t minutes = rest / 60000000000 % 60;
    if (hours != 0) out += std::to_string(hours) + 'h';
    if (hours != 0 || minutes != 0) out += std::to_string(minutes) + 'm';
    fraction(rest % 60000000000, 1000000000, "s");
  }
  return out;
}

}  // namespace holdfast
