#include "kinds/cron.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/ascii.h"
#include "base/clock.h"
#include "base/strings.h"
#include "base/text.h"
#include "codec/text.h"

namespace holdfast::kinds {
namespace {

struct Field {
  uint64_t min, max;
  std::span<const std::string_view> names = {};
  uint64_t first_name = 0;
};
constexpr std::string_view kMonths[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                        "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::string_view kDays[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
constexpr Field kFields[] = {{0, 59}, {0, 23}, {1, 31}, {1, 12, kMonths, 1}, {0, 6, kDays, 0}};

// Empty if it could be parsed.
std::string read_number(std::string_view text, const Field& field, uint64_t& number) {
  const std::string lower = to_lower(text);
  for (size_t i = 0; i < field.names.size(); ++i) {
    if (lower == field.names[i]) {
      number = field.first_name + i;
      return {};
    }
  }
  number = 0;
  const bool negative = text.starts_with('-');
  const std::string_view digits = negative || text.starts_with('+') ? text.substr(1) : text;
  bool good = !digits.empty();
  for (const char c : digits) {
    good = good && is_digit(c);
    if (good && number < 1000000) number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  const std::string shown(text);
  if (!good) {
    return "failed to parse int from " + shown + ": strconv.Atoi: parsing " + go_quote(text) + ": invalid syntax";
  }
  if (negative) return "negative number (-" + std::to_string(number) + ") not allowed: " + shown;
  return {};
}

std::string range_error(std::string_view expression, const Field& field) {
  const std::vector<std::string_view> range_and_step = split(expression, '/');
  const std::vector<std::string_view> ends = split(range_and_step[0], '-');
  uint64_t start = field.min, end = field.max, step = 1;
  const std::string shown(expression);
  if (ends[0] != "*" && ends[0] != "?") {
    if (std::string error = read_number(ends[0], field, start); !error.empty()) return error;
    if (ends.size() > 2) return "too many hyphens: " + shown;
    end = start;
    if (ends.size() == 2) {
      if (std::string error = read_number(ends[1], field, end); !error.empty()) return error;
    }
  }
  if (range_and_step.size() > 2) return "too many slashes: " + shown;
  if (range_and_step.size() == 2) {
    if (std::string error = read_number(range_and_step[1], {}, step); !error.empty()) return error;
    if (ends.size() == 1) end = field.max;
  }
  const auto text = [](uint64_t number) { return std::to_string(number); };
  if (start < field.min) {
    return "beginning of range (" + text(start) + ") below minimum (" + text(field.min) + "): " + shown;
  }
  if (end > field.max) return "end of range (" + text(end) + ") above maximum (" + text(field.max) + "): " + shown;
  if (start > end) {
    return "beginning of range (" + text(start) + ") beyond end of range (" + text(end) + "): " + shown;
  }
  if (step == 0) return "step of range should be a positive number: " + shown;
  return {};
}

std::string descriptor_error(std::string_view text) {
  for (const std::string_view known :
       {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}) {
    if (text == known) return {};
  }
  constexpr std::string_view kEvery = "@every ";
  if (!text.starts_with(kEvery)) return "unrecognized descriptor: " + std::string(text);
  const std::string_view duration = text.substr(kEvery.size());
  if (parse_go_duration(duration)) return {};
  return "failed to parse duration " + std::string(text) + ": time: invalid duration " + go_quote(duration);
}

}  // namespace

std::string cron_error(std::string_view schedule) {
  if (schedule.empty()) return "empty spec string";
  if (schedule.starts_with("TZ=") || schedule.starts_with("CRON_TZ=")) {
    const size_t space = schedule.find(' ');
    if (space == std::string_view::npos) {
      return "invalid schedule format: runtime error: slice bounds out of range [:-1]";
    }
    schedule.remove_prefix(space);
    while (!schedule.empty() && is_space(schedule.front())) schedule.remove_prefix(1);
  }
  if (schedule.starts_with('@')) return descriptor_error(schedule);
  std::vector<std::string_view> fields;
  for (size_t i = 0; i < schedule.size();) {
    while (i < schedule.size() && is_space(schedule[i])) ++i;
    const size_t start = i;
    while (i < schedule.size() && !is_space(schedule[i])) ++i;
    if (i > start) fields.push_back(schedule.substr(start, i - start));
  }
  if (fields.size() != std::size(kFields)) {
    return "expected exactly 5 fields, found " + std::to_string(fields.size()) + ": [" + join(fields, " ") + "]";
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    for (const std::string_view expression : split(fields[i], ',')) {
      if (expression.empty()) continue;
      if (std::string error = range_error(expression, kFields[i]); !error.empty()) return error;
    }
  }
  return {};
}

}  // namespace holdfast::kinds
