#include "kinds/texts.h"

#include <algorithm>

#include "base/api_error.h"
#include "base/ascii.h"
#include "base/strings.h"
#include "base/text.h"

namespace holdfast::kinds {
namespace {

template <class Inner>
bool all(std::string_view text, Inner inner) {
  return std::all_of(text.begin(), text.end(), inner);
}

// ([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]
bool is_label_name(std::string_view text) {
  return !text.empty() && is_alnum(text.front()) && is_alnum(text.back()) &&
         all(text, [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; });
}

constexpr std::string_view kLabelPattern = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
constexpr std::string_view kSubdomainPattern = R"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)";
constexpr std::string_view kNamePattern = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
constexpr std::string_view kNameSentence =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

std::string without_trailing_dash(std::string_view name) {
  std::string text(name);
  if (text.size() > 1 && text.back() == '-') {
    text.resize(text.size() - 2);
    text += 'a';
  }
  return text;
}

void add_parent_directory_errors(std::string_view text, Messages& messages) {
  if (text == ".") {
    messages.push_back("must not be '.'");
  } else if (text == "..") {
    messages.push_back("must not be '..'");
  } else if (text.starts_with("..")) {
    messages.push_back("must not start with '..'");
  }
}

}  // namespace

std::string max_length_message(int64_t characters, std::string_view unit) {
  return "must be no more than " + std::to_string(characters) + " " + std::string(unit);
}
std::string range_message(int64_t lowest, int64_t highest) {
  return "must be between " + std::to_string(lowest) + " and " + std::to_string(highest) + ", inclusive";
}
std::string pattern_message(std::string_view sentence, std::string_view pattern,
                            std::initializer_list<std::string_view> examples) {
  std::string text(sentence);
  text += " (";
  if (examples.size() > 0) text += "e.g. ";
  bool first = true;
  for (const std::string_view example : examples) {
    if (!first) text += " or ";
    first = false;
    text += '\'';
    text += example;
    text += "', ";
  }
  text += "regex used for validation is '";
  text += pattern;
  text += "')";
  return text;
}

bool is_dns_label(std::string_view text) {
  return !text.empty() && is_lower_alnum(text.front()) && is_lower_alnum(text.back()) &&
         all(text, [](char c) { return is_lower_alnum(c) || c == '-'; });
}

bool is_dns_subdomain(std::string_view text) {
  while (true) {
    const size_t dot = text.find('.');
    if (!is_dns_label(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

Messages dns_label_errors(std::string_view text) {
  Messages messages;
  if (text.size() > 63) messages.push_back(max_length_message(63));
  if (!is_dns_label(text)) {
    messages.push_back(is_dns_subdomain(text)
                           ? "must not contain dots"
                           : pattern_message("a lowercase RFC 1123 label must consist of lower case alphanumeric "
                                             "characters or '-', and must start and end with an alphanumeric character",
                                             kLabelPattern, {"my-name", "123-abc"}));
  }
  return messages;
}

namespace {

Messages subdomain_errors(std::string_view text, std::string_view unit) {
  Messages messages;
  if (text.size() > 253) messages.push_back(max_length_message(253, unit));
  if (!is_dns_subdomain(text)) {
    messages.push_back(pattern_message(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
        "and end with an alphanumeric character",
        kSubdomainPattern, {"example.com"}));
  }
  return messages;
}

}  // namespace

Messages dns_subdomain_errors(std::string_view text) { return subdomain_errors(text, "characters"); }

Messages wildcard_subdomain_errors(std::string_view text) {
  Messages messages;
  if (text.size() > 253) messages.push_back(max_length_message(253));
  if (!text.starts_with("*.") || !is_dns_subdomain(text.substr(2))) {
    messages.push_back(pattern_message(
        "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
        "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
        R"(\*\.)" + std::string(kSubdomainPattern), {"*.example.com"}));
  }
  return messages;
}

Messages dns1035_label_errors(std::string_view text) {
  Messages messages;
  if (text.size() > 63) messages.push_back(max_length_message(63));
  if (!is_dns_label(text) || !is_lower(text.front())) {
    messages.push_back(
        pattern_message("a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
                        "start with an alphabetic character, and end with an alphanumeric character",
                        "[a-z]([-a-z0-9]*[a-z0-9])?", {"my-name", "abc-123"}));
  }
  return messages;
}

Messages qualified_name_errors(std::string_view text) {
  Messages messages;
  std::string_view name = text;
  const size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    if (text.find('/', slash + 1) != std::string_view::npos) {
      messages.push_back("a valid label key " +
                         pattern_message(kNameSentence, kNamePattern, {"MyName", "my.name", "123-abc"}) +
                         " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')");
      return messages;
    }
    const std::string_view prefix = text.substr(0, slash);
    name = text.substr(slash + 1);
    if (prefix.empty()) {
      messages.push_back("prefix part must be non-empty");
    } else {
      for (const std::string& message : subdomain_errors(prefix, "bytes")) messages.push_back("prefix part " + message);
    }
  }
  if (name.empty()) {
    messages.push_back("name part must be non-empty");
  } else if (name.size() > 63) {
    messages.push_back("name part " + max_length_message(63, "bytes"));
  }
  if (!is_label_name(name)) {
    messages.push_back("name part " + pattern_message(kNameSentence, kNamePattern, {"MyName", "my.name", "123-abc"}));
  }
  return messages;
}

Messages label_value_errors(std::string_view text) {
  Messages messages;
  if (text.size() > 63) messages.push_back(max_length_message(63, "bytes"));
  if (!text.empty() && !is_label_name(text)) {
    messages.push_back(
        pattern_message("a valid label must be an empty string or consist of alphanumeric characters, "
                        "'-', '_' or '.', and must start and end with an alphanumeric character",
                        "(" + std::string(kNamePattern) + ")?", {"MyValue", "my_value", "12345"}));
  }
  return messages;
}

Messages path_segment_errors(std::string_view name) {
  if (name == "." || name == "..") return {"may not be '" + std::string(name) + "'"};
  return name_is_path_segment(name, true);
}

Result<Unit> check_path_name(std::string_view name) {
  const Messages problems = path_segment_errors(name);
  if (problems.empty()) return Unit{};
  return bad_request("Name parameter invalid: " + go_quote(name) + ": " + join(problems, ";"));
}

Messages name_is_path_segment(std::string_view name, bool prefix) {
  if (!prefix) return path_segment_errors(name);
  Messages messages;
  for (const char* part : {"/", "%"}) {
    if (name.find(part) != std::string_view::npos) messages.push_back("may not contain '" + std::string(part) + "'");
  }
  return messages;
}

Messages name_is_dns_subdomain(std::string_view name, bool prefix) {
  return prefix ? dns_subdomain_errors(without_trailing_dash(name)) : dns_subdomain_errors(name);
}

Messages name_is_dns_label(std::string_view name, bool prefix) {
  return prefix ? dns_label_errors(without_trailing_dash(name)) : dns_label_errors(name);
}

Messages config_key_errors(std::string_view text) {
  Messages messages;
  if (text.size() > 253) messages.push_back(max_length_message(253));
  if (text.empty() || !all(text, [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; })) {
    messages.push_back(pattern_message("a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
                                       "[-._a-zA-Z0-9]+", {"key.name", "KEY_NAME", "key-name"}));
  }
  add_parent_directory_errors(text, messages);
  return messages;
}

Messages port_name_errors(std::string_view text) {
  Messages messages;
  if (text.size() > 15) messages.push_back(max_length_message(15));
  if (text.empty() || !all(text, [](char c) { return is_lower_alnum(c) || c == '-'; })) {
    messages.push_back("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  }
  if (std::none_of(text.begin(), text.end(), is_lower)) messages.push_back("must contain at least one letter (a-z)");
  if (text.find("--") != std::string_view::npos) messages.push_back("must not contain consecutive hyphens");
  if (!text.empty() && (text.front() == '-' || text.back() == '-')) {
    messages.push_back("must not begin or end with a hyphen");
  }
  return messages;
}

Messages port_number_errors(int64_t port) {
  if (port >= 1 && port <= 65535) return {};
  return {range_message(1, 65535)};
}

Messages env_name_errors(std::string_view text) {
  if (text.empty()) return {"environment variable name must be non-empty"};
  if (all(text, [](char c) { return c >= 0x20 && c < 0x7f && c != '='; })) return {};
  return {"a valid environment variable name must consist only of printable ASCII characters other than '='"};
}

Messages percent_errors(std::string_view text) {
  if (text.size() > 1 && text.back() == '%' && all(text.substr(0, text.size() - 1), is_digit)) return {};
  return {pattern_message("a valid percent string must be a numeric string followed by an ending '%'", "[0-9]+%",
                          {"1%", "93%"})};
}

Messages header_name_errors(std::string_view text) {
  if (!text.empty() && all(text, [](char c) { return is_alnum(c) || c == '-'; })) return {};
  return {pattern_message("a valid HTTP header must consist of alphanumeric characters or '-'", "[-A-Za-z0-9]+",
                          {"X-Header-Name"})};
}

Messages id_range_errors(int64_t id) {
  if (id >= 0 && id <= INT32_MAX) return {};
  return {range_message(0, INT32_MAX)};
}

Messages c_identifier_errors(std::string_view text) {
  if (!text.empty() && !is_digit(text.front()) && all(text, [](char c) { return is_alnum(c) || c == '_'; })) return {};
  return {pattern_message(
      "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
      "characters or '_'",
      "[A-Za-z_][A-Za-z0-9_]*", {"my_name", "MY_NAME", "MyName"})};
}

bool is_native_resource(std::string_view name) {
  return name.find('/') == std::string_view::npos || name.find("kubernetes.io/") != std::string_view::npos;
}

bool is_extended_resource(std::string_view name) {
  return !is_native_resource(name) && !name.starts_with("requests.") &&
         qualified_name_errors("requests." + std::string(name)).empty();
}

void validate_domain_prefixed_path(std::string_view text, const Path& at, FieldErrors& errors) {
  if (text.empty()) return errors.required(at);
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == text.size()) {
    return errors.invalid(at, text, "must be a domain-prefixed path (such as \"acme.io/foo\")");
  }
  const std::string_view host = text.substr(0, slash), path = text.substr(slash + 1);
  errors.invalid_each(at, host, dns_subdomain_errors(host));
  constexpr std::string_view kMarks = "/-._~%!$&'()*+,;=:";
  if (!all(path, [&](char c) { return is_alnum(c) || kMarks.find(c) != std::string_view::npos; })) {
    errors.invalid(at, path, pattern_message("Invalid path", R"([A-Za-z0-9/\-._~%!$&'()*+,;=:]+)", {}));
  }
}

}  // namespace holdfast::kinds
