#include "codec/go_time.h"

#include <chrono>

#include "base/ascii.h"
#include "base/strings.h"

namespace holdfast::codec {
namespace {

bool digit_at(std::string_view text, size_t at) { return at < text.size() && is_digit(text[at]); }

// The time package's own quoting: bytes that are not printable ASCII become \xNN.
std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte >= 0x80 || byte < ' ') {
      out += "\\x" + to_hex({&c, 1});
    } else {
      out += c;
    }
  }
  return out + '"';
}

class Parser {
 public:
  Parser(std::string_view text, TimeLayout layout) : text_(text), rest_(text), layout_(layout) {}

  std::optional<UnixTime> parse(std::string& error) {
    UnixTime time;
    if (!read(time)) {
      error = error_;
      return std::nullopt;
    }
    return time;
  }

 private:
  bool read(UnixTime& time) {
    int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
    if (!number(4, true, "2006", year) || !literal('-')) return false;
    if (!number(2, true, "01", month)) return false;
    if (month < 1 || month > 12) return out_of_range("month");
    if (!literal('-') || !number(2, true, "02", day) || !literal('T')) return false;
    if (!number(2, false, "15", hour)) return false;
    if (hour > 23) return out_of_range("hour");
    if (!literal(':') || !number(2, true, "04", minute)) return false;
    if (minute > 59) return out_of_range("minute");
    if (!literal(':') || !number(2, true, "05", second)) return false;
    if (second > 59) return out_of_range("second");
    if (!fraction(time.nanos)) return false;
    int64_t offset = 0;
    if (!zone(offset)) return false;
    if (!rest_.empty()) return failed(": extra text: " + quote(rest_));
    const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month(static_cast<unsigned>(month)),
                                           std::chrono::day(static_cast<unsigned>(day))};
    if (!date.ok()) return out_of_range("day");
    const int64_t days = std::chrono::sys_days{date}.time_since_epoch().count();
    time.seconds = days * 86400 + hour * 3600 + minute * 60 + second - offset;
    return true;
  }

  // A number with that many digits; if not `fixed`, a single digit is accepted too.
  bool number(int digits, bool fixed, std::string_view element, int& out) {
    int count = 0;
    out = 0;
    while (count < digits && digit_at(rest_, static_cast<size_t>(count))) {
      out = out * 10 + (rest_[static_cast<size_t>(count)] - '0');
      ++count;
    }
    if (count == 0 || (fixed && count < digits)) return cannot_parse(rest_, element);
    rest_.remove_prefix(static_cast<size_t>(count));
    return true;
  }

  bool literal(char c) {
    if (rest_.empty() || rest_[0] != c) return cannot_parse(rest_, std::string_view(&c, 1));
    rest_.remove_prefix(1);
    return true;
  }

  bool fraction(int32_t& nanos) {
    const bool there = !rest_.empty() && (rest_[0] == '.' || rest_[0] == ',') && digit_at(rest_, 1);
    size_t digits = 0;
    if (there) {
      while (digit_at(rest_, 1 + digits)) ++digits;
    }
    if (layout_ == TimeLayout::Micro) {
      // Exactly as many as in the layout; further digits belong to the zone.
      if (digits < 6) return cannot_parse(rest_, ".000000");
      digits = 6;
    }
    if (digits == 0) return true;
    int64_t value = 0;
    for (size_t i = 0; i < 9; ++i) value = value * 10 + (i < digits ? rest_[1 + i] - '0' : 0);
    nanos = static_cast<int32_t>(value);
    rest_.remove_prefix(1 + digits);
    return true;
  }

  bool zone(int64_t& offset) {
    constexpr std::string_view kElement = "Z07:00";
    if (!rest_.empty() && rest_[0] == 'Z') {
      rest_.remove_prefix(1);
      return true;
    }
    const std::string_view hold = rest_;
    if (rest_.size() < 6 || rest_[3] != ':') return cannot_parse(hold, kElement);
    const char sign = rest_[0];
    if (!digit_at(rest_, 1) || !digit_at(rest_, 2) || !digit_at(rest_, 4) || !digit_at(rest_, 5)) {
      return cannot_parse(hold, kElement);
    }
    const int hours = (rest_[1] - '0') * 10 + (rest_[2] - '0');
    const int minutes = (rest_[4] - '0') * 10 + (rest_[5] - '0');
    rest_.remove_prefix(6);
    if (hours > 24) return out_of_range("time zone offset hour");
    if (minutes > 60) return out_of_range("time zone offset minute");
    if (sign != '+' && sign != '-') return cannot_parse(hold, kElement);
    offset = (sign == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
    return true;
  }

  bool cannot_parse(std::string_view value, std::string_view element) {
    const std::string_view layout =
        layout_ == TimeLayout::Micro ? "2006-01-02T15:04:05.000000Z07:00" : "2006-01-02T15:04:05Z07:00";
    error_ = "parsing time " + quote(text_) + " as " + quote(layout) + ": cannot parse " + quote(value) + " as " +
             quote(element);
    return false;
  }
  bool failed(const std::string& message) {
    error_ = "parsing time " + quote(text_) + message;
    return false;
  }
  bool out_of_range(std::string_view what) { return failed(": " + std::string(what) + " out of range"); }

  std::string_view text_;
  std::string_view rest_;
  TimeLayout layout_;
  std::string error_;
};

}  // namespace

std::optional<UnixTime> parse_go_time(std::string_view text, TimeLayout layout, std::string& error) {
  return Parser(text, layout).parse(error);
}

}  // namespace holdfast::codec
