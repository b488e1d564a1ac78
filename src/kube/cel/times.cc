#include "cel/times.h"

#include <charconv>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/ascii.h"
#include "base/files.h"
#include "base/text.h"
#include "cel/functions.h"

namespace holdfast::cel {

int64_t days_from_civil(int64_t year, int month, int day) {
  year -= month <= 2;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const auto of_era = static_cast<unsigned>(year - era * 400);
  const unsigned day_of_year =
      (153 * static_cast<unsigned>(month + (month > 2 ? -3 : 9)) + 2) / 5 + static_cast<unsigned>(day) - 1;
  const unsigned day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + day_of_year;
  return era * 146097 + static_cast<int64_t>(day_of_era) - 719468;
}

Civil civil_time(int64_t seconds) {
  int64_t days = seconds / 86400, rest = seconds % 86400;
  if (rest < 0) {
    rest += 86400;
    --days;
  }
  const int64_t shifted = days + 719468;
  const int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
  const auto of_era = static_cast<unsigned>(shifted - era * 146097);
  const unsigned year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const unsigned of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const unsigned m = (5 * of_year + 2) / 153;
  Civil c;
  c.day = static_cast<int>(of_year - (153 * m + 2) / 5 + 1);
  c.month = static_cast<int>(m < 10 ? m + 3 : m - 9);
  c.year = static_cast<int64_t>(year_of_era) + era * 400 + (c.month <= 2 ? 1 : 0);
  c.week_day = static_cast<int>(((days % 7) + 11) % 7);
  c.day_of_year = static_cast<int>(days - days_from_civil(c.year, 1, 1));
  c.hour = static_cast<int>(rest / 3600);
  c.minute = static_cast<int>(rest / 60 % 60);
  c.second = static_cast<int>(rest % 60);
  return c;
}

namespace {

bool digits(std::string_view& text, size_t count, int& value) {
  if (text.size() < count) return false;
  value = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!is_digit(text[i])) return false;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return true;
}
bool letter(std::string_view& text, char c) {
  if (text.empty() || text[0] != c) return false;
  text.remove_prefix(1);
  return true;
}

int days_in_month(int year, int month) {
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return month == 2 && leap ? 29 : kDays[month - 1];
}

}  // namespace

bool parse_rfc3339(std::string_view text, int64_t& seconds, int32_t& nanos, int64_t& zone) {
  int year, month, day, hour, minute, second;
  if (!digits(text, 4, year) || !letter(text, '-') || !digits(text, 2, month) || !letter(text, '-') ||
      !digits(text, 2, day) || !letter(text, 'T'))
    return false;
  // Go's layout also accepts a one-digit hour.
  if (text.size() > 1 && text[1] == ':') {
    if (!digits(text, 1, hour)) return false;
  } else if (!digits(text, 2, hour)) {
    return false;
  }
  if (!letter(text, ':') || !digits(text, 2, minute) || !letter(text, ':') || !digits(text, 2, second)) return false;
  if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month) || hour > 23 || minute > 59 || second > 59)
    return false;
  nanos = 0;
  if (!text.empty() && (text[0] == '.' || text[0] == ',') && text.size() > 1 && is_digit(text[1])) {
    text.remove_prefix(1);
    int32_t scale = 100'000'000;
    while (!text.empty() && is_digit(text[0])) {
      nanos += (text[0] - '0') * scale;
      scale /= 10;
      text.remove_prefix(1);
    }
  }
  zone = 0;
  if (text == "Z") {
    text = {};
  } else {
    if (text.size() != 6 || (text[0] != '+' && text[0] != '-')) return false;
    const bool west = text[0] == '-';
    text.remove_prefix(1);
    int h, m;
    if (!digits(text, 2, h) || !letter(text, ':') || !digits(text, 2, m) || h > 24 || m > 60) return false;
    zone = (h * 60 + m) * 60;
    if (west) zone = -zone;
  }
  seconds = days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - zone;
  return text.empty();
}

namespace {

// A file of the time zone database (RFC 8536).
class ZoneFile {
 public:
  static std::shared_ptr<const ZoneFile> load(const std::string& name) {
    for (const char* folder : {"/usr/share/zoneinfo/", "/usr/share/lib/zoneinfo/", "/usr/lib/locale/TZ/"}) {
      const Result<std::string> bytes = read_file(folder + name);
      if (!bytes) continue;
      auto zone = std::make_shared<ZoneFile>();
      if (zone->read(*bytes)) return zone;
    }
    return nullptr;
  }

  int64_t offset_at(int64_t t) const {
    if (transitions_.empty() || t < transitions_[0].at) {
      if (transitions_.empty() && !rule_.name.empty()) return rule_offset(t);
      return first_offset_;
    }
    if (t >= transitions_.back().at && !rule_.name.empty()) return rule_offset(t);
    size_t low = 0, high = transitions_.size();
    while (high - low > 1) {
      const size_t middle = (low + high) / 2;
      (transitions_[middle].at <= t ? low : high) = middle;
    }
    return transitions_[low].offset;
  }

 private:
  struct Transition {
    int64_t at, offset;
  };
  struct Change {  // The start or end of daylight saving time.
    char kind = 'M';
    int day = 0, week = 0, month = 0;
    int64_t time = 7200;
  };
  struct Rule {
    std::string name;  // Empty if there is none.
    int64_t standard = 0, summer = 0;
    bool has_summer = false;
    Change start, end;
  };

  static int64_t big_endian(std::string_view bytes, size_t at, int length) {
    uint64_t value = 0;
    for (int i = 0; i < length; ++i)
      value = value << 8 | static_cast<unsigned char>(bytes[at + static_cast<size_t>(i)]);
    if (length == 4) return static_cast<int32_t>(value);
    return static_cast<int64_t>(value);
  }

  bool read(const std::string& bytes) {
    if (bytes.size() < 44 || !bytes.starts_with("TZif")) return false;
    size_t at = 0;
    int width = 4;
    for (int version = 1; version <= 2; ++version) {
      if (at + 44 > bytes.size()) return false;
      int64_t counts[6];
      for (int i = 0; i < 6; ++i) counts[i] = big_endian(bytes, at + 20 + static_cast<size_t>(i) * 4, 4);
      const auto [utc, standard, leaps, times, types, letters] =
          std::tuple(counts[0], counts[1], counts[2], counts[3], counts[4], counts[5]);
      const size_t body = at + 44;
      const size_t length =
          static_cast<size_t>(times * width + times + types * 6 + letters + leaps * (width + 4) + standard + utc);
      if (body + length > bytes.size()) return false;
      if (version == 1 && bytes[4] >= '2') {
        at = body + length;
        width = 8;
        continue;
      }
      const size_t type_bytes = body + static_cast<size_t>(times * width);
      const size_t records = type_bytes + static_cast<size_t>(times);
      first_offset_ = types > 0 ? big_endian(bytes, records, 4) : 0;
      for (int64_t i = 0; i < types; ++i) {  // The first that is not daylight saving time.
        if (bytes[records + static_cast<size_t>(i) * 6 + 4] == 0) {
          first_offset_ = big_endian(bytes, records + static_cast<size_t>(i) * 6, 4);
          break;
        }
      }
      for (int64_t i = 0; i < times; ++i) {
        const auto type = static_cast<unsigned char>(bytes[type_bytes + static_cast<size_t>(i)]);
        transitions_.push_back({big_endian(bytes, body + static_cast<size_t>(i * width), width),
                                big_endian(bytes, records + type * size_t{6}, 4)});
      }
      if (width == 8) {
        std::string_view footer = std::string_view(bytes).substr(body + length);
        if (footer.size() > 2 && footer[0] == '\n') read_rule(footer.substr(1, footer.find('\n', 1) - 1));
      }
      return true;
    }
    return false;
  }

  static std::string name_part(std::string_view& text) {
    std::string name;
    if (!text.empty() && text[0] == '<') {
      const size_t end = text.find('>');
      name = text.substr(1, end - 1);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      return name;
    }
    while (!text.empty() && is_letter(text[0])) {
      name += text[0];
      text.remove_prefix(1);
    }
    return name;
  }
  static int64_t number_part(std::string_view& text) {
    int64_t value = 0;
    while (!text.empty() && is_digit(text[0])) {
      value = value * 10 + (text[0] - '0');
      text.remove_prefix(1);
    }
    return value;
  }
  static int64_t time_part(std::string_view& text) {
    const bool negative = !text.empty() && text[0] == '-';
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
    int64_t seconds = number_part(text) * 3600;
    if (letter(text, ':')) seconds += number_part(text) * 60;
    if (letter(text, ':')) seconds += number_part(text);
    return negative ? -seconds : seconds;
  }
  static Change change_part(std::string_view& text) {
    Change change;
    if (letter(text, 'M')) {
      change.month = static_cast<int>(number_part(text));
      letter(text, '.');
      change.week = static_cast<int>(number_part(text));
      letter(text, '.');
      change.day = static_cast<int>(number_part(text));
    } else {
      change.kind = letter(text, 'J') ? 'J' : 'D';
      change.day = static_cast<int>(number_part(text));
    }
    if (letter(text, '/')) change.time = time_part(text);
    return change;
  }
  void read_rule(std::string_view text) {
    rule_.name = name_part(text);
    rule_.standard = -time_part(text);
    if (text.empty()) return;
    name_part(text);
    rule_.has_summer = true;
    rule_.summer = rule_.standard + 3600;
    if (!text.empty() && text[0] != ',') rule_.summer = -time_part(text);
    if (letter(text, ',')) rule_.start = change_part(text);
    if (letter(text, ',')) rule_.end = change_part(text);
  }

  // Seconds since the start of the year, in local standard or daylight saving time.
  static int64_t change_second(const Change& change, int64_t year) {
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    int64_t day = change.day;
    if (change.kind == 'J') {
      day = change.day - 1 + (leap && change.day >= 60 ? 1 : 0);
    } else if (change.kind == 'M') {
      const int64_t first = days_from_civil(year, change.month, 1);
      const auto week_day = static_cast<int>(((first % 7) + 11) % 7);
      day = 1 + (change.day - week_day + 7) % 7;
      for (int week = 1; week < change.week && day + 7 <= days_in_month(static_cast<int>(year), change.month); ++week)
        day += 7;
      day = first + day - 1 - days_from_civil(year, 1, 1);
    }
    return day * 86400 + change.time;
  }
  int64_t rule_offset(int64_t t) const {
    if (!rule_.has_summer) return rule_.standard;
    const Civil local = civil_time(t + rule_.standard);
    const int64_t year_start = days_from_civil(local.year, 1, 1) * 86400;
    const int64_t start = year_start + change_second(rule_.start, local.year) - rule_.standard;
    const int64_t end = year_start + change_second(rule_.end, local.year) - rule_.summer;
    const bool summer = start < end ? t >= start && t < end : t >= start || t < end;
    return summer ? rule_.summer : rule_.standard;
  }

  std::vector<Transition> transitions_;
  int64_t first_offset_ = 0;
  Rule rule_;
};

std::shared_ptr<const ZoneFile> zone_file(const std::string& name) {
  // Files do not change while the process runs; a few hundred names exist.
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const ZoneFile>> known;
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(name); found != known.end()) return found->second;
  std::shared_ptr<const ZoneFile> zone = ZoneFile::load(name);
  if (zone != nullptr) known[name] = zone;
  return zone;
}

// strconv.Atoi with its error.
std::optional<int64_t> atoi(std::string_view text, std::string& problem) {
  std::string_view rest = text;
  if (rest.starts_with('+')) rest.remove_prefix(1);
  int64_t value = 0;
  const auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (code == std::errc::result_out_of_range) {
    problem = "strconv.Atoi: parsing " + go_quote(text) + ": value out of range";
    return std::nullopt;
  }
  if (code != std::errc() || end != rest.data() + rest.size() || (text.starts_with('+') && rest.starts_with('-'))) {
    problem = "strconv.Atoi: parsing " + go_quote(text) + ": invalid syntax";
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::optional<int64_t> zone_offset(std::string_view zone, int64_t t, std::string& problem) {
  const size_t colon = zone.find(':');
  if (colon != std::string_view::npos) {
    const std::optional<int64_t> hours = atoi(zone.substr(0, colon), problem);
    if (!hours) return std::nullopt;
    const std::optional<int64_t> minutes = atoi(zone.substr(colon + 1), problem);
    if (!minutes) return std::nullopt;
    const int64_t offset = zone[0] == '-' ? *hours * 60 - *minutes : *hours * 60 + *minutes;
    return offset * 60;
  }
  if (zone.empty() || zone == "UTC" || zone == "Local") return 0;
  if (zone.find("..") != std::string_view::npos || zone[0] == '/' || zone.find('\\') != std::string_view::npos) {
    problem = "time: invalid location name";
    return std::nullopt;
  }
  const std::shared_ptr<const ZoneFile> file = zone_file(std::string(zone));
  if (file == nullptr) {
    problem = "unknown time zone " + std::string(zone);
    return std::nullopt;
  }
  return file->offset_at(t);
}

// --- Functions ------------------------------------------------------------------------------------------------------

namespace {

using Args = std::span<const Val>;

template <class Part>
Val part_of(Context& c, Args a, Part part) {
  const Val& t = a[0];
  if (t.kind() == Kind::Duration) return no_such_overload();
  std::string problem;
  const std::optional<int64_t> offset =
      a.size() == 1 ? std::optional<int64_t>(0) : zone_offset(a[1].text(), Rep::seconds(t), problem);
  if (!offset) return error(c.arena, problem);
  return Val::integer(part(civil_time(Rep::seconds(t) + *offset)));
}

Val get_year(Context& c, Args a) {
  return part_of(c, a, [](const Civil& t) { return t.year; });
}
Val get_month(Context& c, Args a) {
  return part_of(c, a, [](const Civil& t) { return t.month - 1; });
}
Val get_day_of_year(Context& c, Args a) {
  return part_of(c, a, [](const Civil& t) { return t.day_of_year; });
}
Val get_day_of_month(Context& c, Args a) {
  return part_of(c, a, [](const Civil& t) { return t.day - 1; });
}
Val get_date(Context& c, Args a) {
  return part_of(c, a, [](const Civil& t) { return t.day; });
}
Val get_day_of_week(Context& c, Args a) {
  return part_of(c, a, [](const Civil& t) { return t.week_day; });
}
Val get_hours(Context& c, Args a) {
  return part_of(c, a, [](const Civil& t) { return t.hour; });
}
Val get_minutes(Context& c, Args a) {
  return part_of(c, a, [](const Civil& t) { return t.minute; });
}
Val get_seconds(Context& c, Args a) {
  return part_of(c, a, [](const Civil& t) { return t.second; });
}
Val get_milliseconds(Context& c, Args a) {
  return part_of(c, a, [&](const Civil&) { return Rep::nanos(a[0]) / 1'000'000; });
}
template <int64_t kUnit>
Val whole(Context&, Args a) {
  return Val::integer(a[0].as_int() / kUnit);
}

}  // namespace

void add_time_functions(LibraryBuilder& l) {
  struct Getter {
    std::string_view name, id;
    Implementation run;
  };
  for (const Getter& g :
       {Getter{"getFullYear", "timestamp_to_year", get_year}, Getter{"getMonth", "timestamp_to_month", get_month},
        Getter{"getDayOfYear", "timestamp_to_day_of_year", get_day_of_year},
        Getter{"getDayOfMonth", "timestamp_to_day_of_month", get_day_of_month},
        Getter{"getDate", "timestamp_to_day_of_month_1_based", get_date},
        Getter{"getDayOfWeek", "timestamp_to_day_of_week", get_day_of_week},
        Getter{"getHours", "timestamp_to_hours", get_hours}, Getter{"getMinutes", "timestamp_to_minutes", get_minutes},
        Getter{"getSeconds", "timestamp_to_seconds", get_seconds},
        Getter{"getMilliseconds", "timestamp_to_milliseconds", get_milliseconds}}) {
    l.member(g.name, g.id, "timestamp -> int", g.run);
    l.member(g.name, l.arena.copy(std::string(g.id) + "_with_tz"), "timestamp, string -> int", g.run);
  }
  l.member("getHours", "duration_to_hours", "duration -> int", whole<3'600'000'000'000>);
  l.member("getMinutes", "duration_to_minutes", "duration -> int", whole<60'000'000'000>);
  l.member("getSeconds", "duration_to_seconds", "duration -> int", whole<1'000'000'000>);
  l.member("getMilliseconds", "duration_to_milliseconds", "duration -> int", whole<1'000'000>);
}

}  // namespace holdfast::cel
