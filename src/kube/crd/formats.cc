// String formats for schemas (dashes in format names are ignored), and patterns.
#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/ascii.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/strings.h"
#include "codec/codec.h"
#include "crd/rules.h"

namespace holdfast::crd {
namespace {

// Compiled patterns, shared by all schemas. Bounded: evicted patterns are compiled again.
class Patterns {
 public:
  std::shared_ptr<const RE2> get(std::string_view pattern) {
    const std::lock_guard lock(mutex_);
    std::string key(pattern);
    if (auto found = compiled_.find(key); found != compiled_.end()) return found->second;
    if (compiled_.size() >= kMostPatterns) compiled_.clear();
    RE2::Options options;
    options.set_log_errors(false);
    return compiled_
        .emplace(std::move(key), std::make_shared<const RE2>(re2::StringPiece(pattern.data(), pattern.size()), options))
        .first->second;
  }

 private:
  static constexpr size_t kMostPatterns = 4096;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const RE2>, KeyHash> compiled_;
};

Patterns& patterns() {
  static Patterns all;
  return all;
}

bool full_match(std::string_view text, const char* pattern) {
  const auto compiled = patterns().get(pattern);
  return RE2::FullMatch(re2::StringPiece(text.data(), text.size()), *compiled);
}

bool is_ipv4(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, '.');
  return parts.size() == 4 && std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
           return parse_number<uint8_t>(part) && (part.size() == 1 || part[0] != '0');
         });
}

bool is_ipv6(std::string_view text) {
  if (text.find(':') == std::string_view::npos) return false;
  int groups = 0;
  bool compressed = false;
  if (text.starts_with("::")) {
    compressed = true;
    text.remove_prefix(2);
    if (text.empty()) return true;
  }
  while (!text.empty()) {
    const size_t colon = text.find(':');
    const std::string_view part = text.substr(0, colon);
    if (part.find('.') != std::string_view::npos) {
      if (colon != std::string_view::npos || !is_ipv4(part)) return false;
      groups += 2;
      break;
    }
    if (part.empty() || part.size() > 4 || !std::all_of(part.begin(), part.end(), is_hex)) return false;
    ++groups;
    if (colon == std::string_view::npos) break;
    text.remove_prefix(colon + 1);
    if (text.empty()) return false;
    if (text.front() == ':') {
      if (compressed) return false;
      compressed = true;
      text.remove_prefix(1);
    }
  }
  return compressed ? groups < 8 : groups == 8;
}

bool is_cidr(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view address = text.substr(0, slash), bits = text.substr(slash + 1);
  if (bits.empty() || bits.size() > 3 || (bits.size() > 1 && bits[0] == '0') ||
      !std::all_of(bits.begin(), bits.end(), is_digit)) {
    return false;
  }
  const int length = std::stoi(std::string(bits));
  return (is_ipv4(address) && length <= 32) || (is_ipv6(address) && length <= 128);
}

bool is_hostname(std::string_view text) {
  if (text.size() > 255 || text.empty()) return false;
  return full_match(
      text,
      R"(([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63}))");
}

bool is_isbn10(std::string_view text) {
  if (text.size() != 10) return false;
  int sum = 0;
  for (int i = 0; i < 10; ++i) {
    const char c = text[i];
    if (i == 9 && c == 'X')
      sum += 10 * 10;
    else if (!is_digit(c))
      return false;
    else
      sum += (i + 1) * (c - '0');
  }
  return sum % 11 == 0;
}

bool is_isbn13(std::string_view text) {
  if (text.size() != 13) return false;
  int sum = 0;
  for (int i = 0; i < 13; ++i) {
    if (!is_digit(text[i])) return false;
    sum += (i % 2 == 0 ? 1 : 3) * (text[i] - '0');
  }
  return sum % 10 == 0;
}

std::string without(std::string_view text, std::string_view characters) {
  std::string result;
  for (char c : text) {
    if (characters.find(c) == std::string_view::npos) result += c;
  }
  return result;
}

bool is_credit_card(std::string_view text) {
  const std::string digits = without(text, " -");
  if (digits.size() < 13 || digits.size() > 19 || !std::all_of(digits.begin(), digits.end(), is_digit)) return false;
  int sum = 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    int digit = digits[digits.size() - 1 - i] - '0';
    if (i % 2 == 1) digit *= 2;
    if (digit > 9) digit -= 9;
    sum += digit;
  }
  return sum % 10 == 0;
}

bool is_uri(std::string_view text) {
  // An absolute URI or a path, as accepted by Go's url.ParseRequestURI.
  if (text.empty()) return false;
  for (unsigned char c : text) {
    if (c <= 0x20 || c == 0x7f) return false;
  }
  return text.front() == '/' || full_match(text, R"([a-zA-Z][a-zA-Z0-9+.-]*:.*)");
}

bool is_duration(std::string_view text) {
  if (parse_go_duration(text)) return true;
  return full_match(
      text,
      R"(\s*(\d+\s*(nanoseconds?|nanos?|ns|microseconds?|micros?|us|µs|milliseconds?|millis?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w)\s*)+)");
}

bool is_date(std::string_view text) {
  return text.size() == 10 && parse_rfc3339(std::string(text) + "T00:00:00Z").has_value();
}

bool is_date_time(std::string_view text) {
  if (text.size() < 20) return false;
  return parse_rfc3339(to_upper(text)).has_value();
}

constexpr const char* kUuid = "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}";

struct Format {
  std::string_view name;
  bool (*check)(std::string_view text);
};

const Format kFormats[] = {
    {"bsonobjectid", [](std::string_view t) { return full_match(t, "[0-9a-fA-F]{24}"); }},
    {"uri", is_uri},
    {"email", [](std::string_view t) { return full_match(t, R"([^@\s<>]+@[^@\s<>]+)"); }},
    {"hostname", is_hostname},
    {"ipv4", is_ipv4},
    {"ipv6", is_ipv6},
    {"cidr", is_cidr},
    {"mac",
     [](std::string_view t) {
       return full_match(
           t, "(?i)([0-9a-f]{2}[:-]){5}([0-9a-f]{2})|([0-9a-f]{4}\\.){2}[0-9a-f]{4}|([0-9a-f]{2}[:-]){7}[0-9a-f]{2}");
     }},
    {"uuid", [](std::string_view t) { return full_match(t, kUuid); }},
    {"uuid3",
     [](std::string_view t) {
       return full_match(t, "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}");
     }},
    {"uuid4",
     [](std::string_view t) {
       return full_match(t, "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}");
     }},
    {"uuid5",
     [](std::string_view t) {
       return full_match(t, "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}");
     }},
    {"isbn",
     [](std::string_view t) {
       const std::string s = without(t, " -");
       return is_isbn10(s) || is_isbn13(s);
     }},
    {"isbn10", [](std::string_view t) { return is_isbn10(without(t, " -")); }},
    {"isbn13", [](std::string_view t) { return is_isbn13(without(t, " -")); }},
    {"creditcard", is_credit_card},
    {"ssn", [](std::string_view t) { return full_match(t, R"(\d{3}[- ]?\d{2}[- ]?\d{4})"); }},
    {"hexcolor", [](std::string_view t) { return full_match(t, "#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"); }},
    {"rgbcolor",
     [](std::string_view t) {
       return full_match(
           t,
           R"(rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\))");
     }},
    {"byte", [](std::string_view t) { return base64_decode(t).has_value(); }},
    {"password", [](std::string_view) { return true; }},
    {"date", is_date},
    {"duration", is_duration},
    {"datetime", is_date_time},
    {"k8sshortname", [](std::string_view t) { return kinds::dns_label_errors(t).empty(); }},
    {"k8slongname", [](std::string_view t) { return kinds::dns_subdomain_errors(t).empty(); }},
};

const Format* find_format(std::string_view name) {
  const std::string plain = without(name, "-");
  for (const Format& format : kFormats) {
    if (format.name == plain) return &format;
  }
  return nullptr;
}

}  // namespace

bool has_format(std::string_view format, std::string_view text) {
  const Format* known = find_format(format);
  return known == nullptr || known->check(text);
}

bool is_known_format(std::string_view type, std::string_view format) {
  if (type.empty() || type == "string") return find_format(format) != nullptr;
  if (type == "integer") return format == "int32" || format == "int64";
  return type == "number" && (format == "float" || format == "double");
}

bool pattern_matches(std::string_view pattern, std::string_view text) {
  const auto compiled = patterns().get(pattern);
  return compiled->ok() && RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *compiled);
}

}  // namespace holdfast::crd
