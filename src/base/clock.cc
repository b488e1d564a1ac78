#include "base/clock.h"

#include <cstdio>
#include <ctime>

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
      if (text[at] < '0' || text[at] > '9') return false;
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
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, scale /= 10) {
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

}  // namespace holdfast
