// Kubernetes' libraries for quantities, versions, named formats and the authorizer.
#include <algorithm>
#include <charconv>

#include "base/ascii.h"
#include "base/base64.h"
#include "base/strings.h"
#include "base/text.h"
#include "cel/functions.h"
#include "cel/times.h"
#include "codec/codec.h"

namespace holdfast::cel {

std::string uri_problem(std::string_view text);  // Empty if it is a valid request URI.
int compare_versions(const SemverOpaque& a, const SemverOpaque& b);

namespace {

using Args = std::span<const Val>;

// --- Quantities ---

QuantityOpaque* quantity_val(Context& c, const codec::Quantity& quantity) {
  auto* out = c.arena.make<QuantityOpaque>();
  out->kind = OpaqueKind::Quantity;
  out->text = c.arena.copy(quantity.text());
  return out;
}
Result<codec::Quantity> parse_quantity(std::string_view text) {
  // Unlike the JSON decoder, ParseQuantity rejects surrounding white space.
  if (text.empty() || text.front() == ' ' || text.back() == ' ' ||
      text.find_first_of("\t\n\r") != std::string_view::npos)
    return Error{Reason::BadRequest,
                 "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"};
  return codec::Quantity::parse(text);
}
codec::Quantity quantity_of(const Val& v) {
  Result<codec::Quantity> quantity = codec::Quantity::parse(Rep::as<QuantityOpaque>(v).text);
  return quantity ? *quantity : codec::Quantity();
}

Val quantity(Context& c, Args a) {
  const Result<codec::Quantity> parsed = parse_quantity(a[0].text());
  return parsed ? Rep::opaque(quantity_val(c, *parsed)) : error(c.arena, parsed.error().message);
}
Val is_quantity(Context&, Args a) { return Val::boolean(static_cast<bool>(parse_quantity(a[0].text()))); }
Val sign(Context&, Args a) { return Val::integer(quantity_of(a[0]).sign()); }
int quantity_order(Args a) {
  const auto order = quantity_of(a[0]) <=> quantity_of(a[1]);
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}
Val quantity_greater(Context&, Args a) { return Val::boolean(quantity_order(a) > 0); }
Val quantity_less(Context&, Args a) { return Val::boolean(quantity_order(a) < 0); }
Val quantity_compare(Context&, Args a) { return Val::integer(quantity_order(a)); }
Val quantity_float(Context&, Args a) { return Val::number(quantity_of(a[0]).approximate()); }
std::optional<int64_t> whole(const Val& v) {
  if (Rep::as<QuantityOpaque>(v).fractional) return std::nullopt;
  const codec::Quantity q = quantity_of(v);
  if (!q.is_multiple_of(0)) return std::nullopt;
  const int64_t value = q.value();
  // value() saturates at the limits of int64.
  if ((codec::Quantity::of(value) <=> q) != 0) return std::nullopt;
  return value;
}
Val quantity_int(Context&, Args a) {
  const auto value = whole(a[0]);
  return value ? Val::integer(*value) : Val::error("cannot convert value to integer");
}
Val quantity_is_integer(Context&, Args a) { return Val::boolean(whole(a[0]).has_value()); }
// The result of add() or sub().
Val computed(Context& c, Args from, const codec::Quantity& quantity) {
  QuantityOpaque* out = quantity_val(c, quantity);
  out->computed = true;
  out->fractional =
      std::any_of(from.begin(), from.end(), [](const Val& v) { return v.kind() == Kind::Opaque && !whole(v); });
  return Rep::opaque(out);
}
Val quantity_add(Context& c, Args a) { return computed(c, a, quantity_of(a[0]) + quantity_of(a[1])); }
Val quantity_sub(Context& c, Args a) { return computed(c, a, quantity_of(a[0]) - quantity_of(a[1])); }
codec::Quantity exponent_quantity(int64_t value) {
  return codec::Quantity::of(value, codec::Quantity::Format::DecimalExponent);
}
Val quantity_add_int(Context& c, Args a) {
  return computed(c, a, quantity_of(a[0]) + exponent_quantity(a[1].as_int()));
}
Val quantity_sub_int(Context& c, Args a) {
  // Upstream adds the negated number, and negating INT64_MIN gives INT64_MIN, as long as int64 suffices.
  if (a[1].as_int() == INT64_MIN && whole(a[0]).value_or(-1) >= 0) return quantity_add_int(c, a);
  return computed(c, a, quantity_of(a[0]) - exponent_quantity(a[1].as_int()));
}

// --- Versions ---

bool only(std::string_view text, bool letters) {
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_digit(c) || (letters && (is_letter(c) || c == '-')); });
}
bool leading_zero(std::string_view text) { return text.size() > 1 && text[0] == '0'; }

std::string parse_part(std::string_view text, std::string_view name, uint64_t& value) {
  if (!only(text, false)) return "Invalid character(s) found in " + std::string(name) + " number " + go_quote(text);
  if (leading_zero(text)) {
    std::string upper(name);
    upper[0] = static_cast<char>(upper[0] - 32);
    return upper + " number must not contain leading zeroes " + go_quote(text);
  }
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code == std::errc::result_out_of_range)
    return "strconv.ParseUint: parsing " + go_quote(text) + ": value out of range";
  if (code != std::errc() || end != text.data() + text.size())
    return "strconv.ParseUint: parsing " + go_quote(text) + ": invalid syntax";
  return {};
}

// Returns the problem, or empty.
std::string parse_semver(Arena& arena, std::string_view text, SemverOpaque& out) {
  out.kind = OpaqueKind::Semver;
  if (text.empty()) return "Version string empty";
  const std::vector<std::string_view> parts = split(text, '.', 3);
  if (parts.size() != 3) return "No Major.Minor.Patch elements found";
  if (std::string problem = parse_part(parts[0], "major", out.major); !problem.empty()) return problem;
  if (std::string problem = parse_part(parts[1], "minor", out.minor); !problem.empty()) return problem;
  std::string_view patch = parts[2];
  std::vector<std::string_view> pre, build;
  if (const size_t plus = patch.find('+'); plus != std::string_view::npos) {
    build = split(patch.substr(plus + 1), '.');
    patch = patch.substr(0, plus);
  }
  if (const size_t dash = patch.find('-'); dash != std::string_view::npos) {
    pre = split(patch.substr(dash + 1), '.');
    patch = patch.substr(0, dash);
  }
  if (std::string problem = parse_part(patch, "patch", out.patch); !problem.empty()) return problem;
  for (const std::string_view part : pre) {
    if (part.empty()) return "Prerelease is empty";
    if (only(part, false)) {
      if (leading_zero(part)) return "Numeric PreRelease version must not contain leading zeroes " + go_quote(part);
      uint64_t value;
      if (std::from_chars(part.data(), part.data() + part.size(), value).ec != std::errc())
        return "strconv.ParseUint: parsing " + go_quote(part) + ": value out of range";
    } else if (!only(part, true)) {
      return "Invalid character(s) found in prerelease " + go_quote(part);
    }
  }
  for (const std::string_view part : build) {
    if (part.empty()) return "Build meta data is empty";
    if (!only(part, true)) return "Invalid character(s) found in build meta data " + go_quote(part);
  }
  out.pre_release = arena.copy(std::span<const std::string_view>(pre));
  out.build = arena.copy(std::span<const std::string_view>(build));
  return {};
}

std::string normalized_semver(std::string_view text, std::string& problem) {
  if (text.starts_with('v')) text.remove_prefix(1);
  std::vector<std::string> parts;
  for (const std::string_view part : split(text, '.', 3)) {
    std::string p(part);
    if (p.size() > 1) {
      p.erase(0, std::min(p.find_first_not_of('0'), p.size()));
      if (p.empty() || !is_digit(p[0])) p = "0" + p;
    }
    parts.push_back(p);
  }
  if (parts.size() < 3) {
    if (parts.back().find_first_of("+-") != std::string::npos) {
      problem = "short version cannot contain PreRelease/Build meta data";
      return {};
    }
    while (parts.size() < 3) parts.push_back("0");
  }
  return parts[0] + "." + parts[1] + "." + parts[2];
}

std::string semver_problem(Arena& arena, Args a, SemverOpaque& out) {
  std::string_view text = a[0].text();
  if (a.size() == 2 && a[1].as_bool()) {
    std::string problem;
    const std::string normalized = normalized_semver(text, problem);
    if (!problem.empty()) return problem;
    text = arena.copy(normalized);
  }
  return parse_semver(arena, text, out);
}
Val semver(Context& c, Args a) {
  auto* out = c.arena.make<SemverOpaque>();
  const std::string problem = semver_problem(c.arena, a, *out);
  return problem.empty() ? Rep::opaque(out) : error(c.arena, problem);
}
Val is_semver(Context& c, Args a) {
  SemverOpaque out;
  return Val::boolean(semver_problem(c.arena, a, out).empty());
}
const SemverOpaque& version(const Val& v) { return Rep::as<SemverOpaque>(v); }
Val semver_major(Context&, Args a) { return Val::integer(static_cast<int64_t>(version(a[0]).major)); }
Val semver_minor(Context&, Args a) { return Val::integer(static_cast<int64_t>(version(a[0]).minor)); }
Val semver_patch(Context&, Args a) { return Val::integer(static_cast<int64_t>(version(a[0]).patch)); }
Val semver_greater(Context&, Args a) { return Val::boolean(compare_versions(version(a[0]), version(a[1])) > 0); }
Val semver_less(Context&, Args a) { return Val::boolean(compare_versions(version(a[0]), version(a[1])) < 0); }
Val semver_compare(Context&, Args a) { return Val::integer(compare_versions(version(a[0]), version(a[1]))); }

// --- Named formats ---

using Problems = std::vector<std::string>;

constexpr std::string_view kLabel = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
constexpr std::string_view kSubdomain = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
constexpr std::string_view kLabel1035 = "[a-z]([-a-z0-9]*[a-z0-9])?";
constexpr std::string_view kName = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

bool full_match(std::string_view text, std::string_view pattern) {
  // There are few patterns, all constant: the thread's cache holds them.
  const std::string anchored = "^(?:" + std::string(pattern) + ")$";
  return matches(text, *compiled_regex(anchored)) && text.find('\n') == std::string_view::npos;
}
std::string pattern_problem(std::string_view sentence, std::string_view pattern,
                            std::initializer_list<std::string_view> examples) {
  std::string out(sentence);
  out += " (e.g. ";
  bool first = true;
  for (const std::string_view example : examples) {
    out += (first ? "'" : " or '") + std::string(example) + "', ";
    first = false;
  }
  return out + "regex used for validation is '" + std::string(pattern) + "')";
}
// Label errors say bytes, other names say characters; both count bytes.
constexpr std::string_view kBytes = "bytes", kCharacters = "characters";
std::string too_long(int most, std::string_view unit) {
  return "must be no more than " + std::to_string(most) + " " + std::string(unit);
}

Problems label_problems(std::string_view text) {
  Problems out;
  if (text.size() > 63) out.push_back(too_long(63, kCharacters));
  if (!full_match(text, kLabel)) {
    if (full_match(text, kSubdomain)) {
      out.push_back("must not contain dots");
    } else {
      out.push_back(
          pattern_problem("a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
                          "must start and end "
                          "with an alphanumeric character",
                          kLabel, {"my-name", "123-abc"}));
    }
  }
  return out;
}
Problems subdomain_problems_in(std::string_view unit, std::string_view text) {
  Problems out;
  if (text.size() > 253) out.push_back(too_long(253, unit));
  if (!full_match(text, kSubdomain))
    out.push_back(pattern_problem(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
        "and end with an alphanumeric character",
        kSubdomain, {"example.com"}));
  return out;
}
Problems subdomain_problems(std::string_view text) { return subdomain_problems_in(kCharacters, text); }
Problems label1035_problems(std::string_view text) {
  Problems out;
  if (text.size() > 63) out.push_back(too_long(63, kCharacters));
  if (!full_match(text, kLabel1035))
    out.push_back(
        pattern_problem("a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
                        "alphabetic character, "
                        "and end with an alphanumeric character",
                        kLabel1035, {"my-name", "abc-123"}));
  return out;
}
Problems qualified_name_problems(std::string_view text) {
  Problems out;
  std::string_view name = text;
  const std::vector<std::string_view> parts = split(text, '/');
  constexpr std::string_view kSentence =
      "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
  if (parts.size() == 2) {
    if (parts[0].empty()) {
      out.push_back("prefix part must be non-empty");
    } else {
      for (const std::string& problem : subdomain_problems_in(kBytes, parts[0]))
        out.push_back("prefix part " + problem);
    }
    name = parts[1];
  } else if (parts.size() > 2) {
    out.push_back("a valid label key " + pattern_problem(kSentence, kName, {"MyName", "my.name", "123-abc"}) +
                  " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')");
    return out;
  }
  if (name.empty()) {
    out.push_back("name part must be non-empty");
  } else if (name.size() > 63) {
    out.push_back("name part " + too_long(63, kBytes));
  }
  if (!full_match(name, kName))
    out.push_back("name part " + pattern_problem(kSentence, kName, {"MyName", "my.name", "123-abc"}));
  return out;
}
Problems label_value_problems(std::string_view text) {
  Problems out;
  if (text.size() > 63) out.push_back(too_long(63, kBytes));
  const std::string pattern = "(" + std::string(kName) + ")?";
  if (!full_match(text, pattern))
    out.push_back(pattern_problem(
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
        "and end with an alphanumeric character",
        pattern, {"MyValue", "my_value", "12345"}));
  return out;
}
// A prefix may end in a dash. (Upstream removes the character before it, too.)
std::string without_dash(std::string_view text) {
  if (text.size() > 1 && text.ends_with('-')) return std::string(text.substr(0, text.size() - 2)) + "a";
  return std::string(text);
}

Problems one(bool good, std::string problem) { return good ? Problems{} : Problems{std::move(problem)}; }

bool is_date(std::string_view text) {
  int64_t seconds, zone;
  int32_t nanos;
  return text.size() == 10 && parse_rfc3339(std::string(text) + "T00:00:00Z", seconds, nanos, zone);
}
bool is_date_time(std::string_view text) {
  if (text.size() < 4) return false;
  size_t t = text.find_first_of("tT");
  if (t == std::string_view::npos || t + 1 >= text.size() || !is_date(text.substr(0, t))) return false;
  std::string time;
  time += to_lower(text.substr(t + 1));
  if (!full_match(time, "([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")) return false;
  const auto number = [&](size_t at) { return (time[at] - '0') * 10 + time[at + 1] - '0'; };
  return number(0) <= 23 && number(3) <= 59 && number(6) <= 59;
}

struct NamedFormat {
  std::string_view name, shown;
  int regex_size;
  Problems (*problems)(std::string_view);
};
const NamedFormat kFormats[] = {
    {"dns1123Label", "DNS1123Label", 30, label_problems},
    {"dns1123Subdomain", "DNS1123Subdomain", 60, subdomain_problems},
    {"dns1035Label", "DNS1035Label", 30, label1035_problems},
    {"qualifiedName", "QualifiedName", 60, qualified_name_problems},
    {"dns1123LabelPrefix", "DNS1123LabelPrefix", 30,
     [](std::string_view t) { return label_problems(without_dash(t)); }},
    {"dns1123SubdomainPrefix", "DNS1123SubdomainPrefix", 60,
     [](std::string_view t) { return subdomain_problems(without_dash(t)); }},
    {"dns1035LabelPrefix", "DNS1035LabelPrefix", 30,
     [](std::string_view t) { return label1035_problems(without_dash(t)); }},
    {"labelValue", "LabelValue", 40, label_value_problems},
    {"uri", "URI", 1103,
     [](std::string_view t) {
       std::string problem = uri_problem(t);
       return problem.empty() ? Problems{} : Problems{problem};
     }},
    {"uuid", "uuid", 70,
     [](std::string_view t) {
       return one(full_match(t, "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"),
                  "does not match the UUID format");
     }},
    {"byte", "byte", 84,
     [](std::string_view t) { return one(base64_decode(t).has_value() && !t.empty(), "invalid base64"); }},
    {"date", "date", 71, [](std::string_view t) { return one(is_date(t), "invalid date"); }},
    {"datetime", "datetime", 71, [](std::string_view t) { return one(is_date_time(t), "invalid datetime"); }},
};

Val format_val(Context& c, size_t index) {
  auto* out = c.arena.make<FormatOpaque>();
  out->kind = OpaqueKind::Format;
  out->name = kFormats[index].shown;
  out->index = static_cast<uint32_t>(index);
  return Rep::opaque(out);
}
template <size_t kIndex>
Val constant_format(Context& c, Args) {
  return format_val(c, kIndex);
}
Val format_named(Context& c, Args a) {
  for (size_t i = 0; i < std::size(kFormats); ++i) {
    if (kFormats[i].name == a[0].text()) return Val::optional_of(c.arena, format_val(c, i));
  }
  return Val::optional_none();
}
Val format_validate(Context& c, Args a) {
  const Problems problems = kFormats[Rep::as<FormatOpaque>(a[0]).index].problems(a[1].text());
  return problems.empty() ? Val::optional_none() : Val::optional_of(c.arena, string_list(c.arena, problems));
}

template <size_t... kIndexes>
void add_formats(LibraryBuilder& l, std::index_sequence<kIndexes...>) {
  (...,
   l.global(l.arena.copy("format." + std::string(kFormats[kIndexes].name)),
            l.arena.copy("format." + std::string(kFormats[kIndexes].name)), "-> format", constant_format<kIndexes>));
}

// --- Authorizer ---

const CheckOpaque& check_of(const Val& v) { return Rep::as<CheckOpaque>(v); }
CheckOpaque* next_check(Context& c, const Val& from, OpaqueKind kind) {
  auto* out = c.arena.make<CheckOpaque>(check_of(from));
  out->kind = kind;
  return out;
}
bool blank(std::string_view text) { return trim(text).empty(); }

Val authorizer_path(Context& c, Args a) {
  if (blank(a[1].text())) return Val::error("path must not be empty");
  CheckOpaque* out = next_check(c, a[0], OpaqueKind::PathCheck);
  out->check.path = a[1].text();
  return Rep::opaque(out);
}
Val authorizer_group(Context& c, Args a) {
  CheckOpaque* out = next_check(c, a[0], OpaqueKind::GroupCheck);
  out->check.about_resource = true;
  out->check.group = a[1].text();
  return Rep::opaque(out);
}
Val authorizer_service_account(Context& c, Args a) {
  if (!subdomain_problems(a[2].text()).empty()) return Val::error("Invalid service account name");
  if (!label_problems(a[1].text()).empty()) return Val::error("Invalid service account namespace");
  CheckOpaque* out = next_check(c, a[0], OpaqueKind::Authorizer);
  out->check.service_account_namespace = a[1].text();
  out->check.service_account_name = a[2].text();
  return Rep::opaque(out);
}
Val group_resource(Context& c, Args a) {
  if (blank(a[1].text())) return Val::error("resource must not be empty");
  CheckOpaque* out = next_check(c, a[0], OpaqueKind::ResourceCheck);
  out->check.resource = a[1].text();
  return Rep::opaque(out);
}
template <std::string_view Authorizer::Check::* kField>
Val resource_with(Context& c, Args a) {
  CheckOpaque* out = next_check(c, a[0], OpaqueKind::ResourceCheck);
  out->check.*kField = a[1].text();
  return Rep::opaque(out);
}
Val check(Context& c, Args a) {
  const CheckOpaque& asked = check_of(a[0]);
  Authorizer::Check what = asked.check;
  what.verb = a[1].text();
  const Authorizer::Decision decision = asked.authorizer->decide(what);
  auto* out = c.arena.make<DecisionOpaque>();
  out->kind = OpaqueKind::Decision;
  out->allowed = decision.allowed;
  out->reason = c.arena.copy(decision.reason);
  out->errored = decision.error.has_value();
  out->error = c.arena.copy(decision.error.value_or(""));
  return Rep::opaque(out);
}
const DecisionOpaque& decision(const Val& v) { return Rep::as<DecisionOpaque>(v); }
Val decision_errored(Context&, Args a) { return Val::boolean(decision(a[0]).errored); }
Val decision_error(Context&, Args a) { return Val::string(decision(a[0]).error); }
Val decision_allowed(Context&, Args a) { return Val::boolean(decision(a[0]).allowed); }
Val decision_reason(Context&, Args a) { return Val::string(decision(a[0]).reason); }

}  // namespace

int format_regex_size(const Val& format) { return kFormats[Rep::as<FormatOpaque>(format).index].regex_size; }

void add_kubernetes_functions(LibraryBuilder& l) {
  l.global("quantity", "string_to_quantity", "string -> quantity", quantity);
  l.global("isQuantity", "is_quantity_string", "string -> bool", is_quantity);
  l.global("sign", "quantity_sign", "quantity -> int", sign);
  l.member("isGreaterThan", "quantity_is_greater_than", "quantity, quantity -> bool", quantity_greater);
  l.member("isLessThan", "quantity_is_less_than", "quantity, quantity -> bool", quantity_less);
  l.member("compareTo", "quantity_compare_to", "quantity, quantity -> int", quantity_compare);
  l.member("asApproximateFloat", "quantity_get_float", "quantity -> double", quantity_float);
  l.member("asInteger", "quantity_get_int", "quantity -> int", quantity_int);
  l.member("isInteger", "quantity_is_integer", "quantity -> bool", quantity_is_integer);
  l.member("add", "quantity_add", "quantity, quantity -> quantity", quantity_add);
  l.member("add", "quantity_add_int", "quantity, int -> quantity", quantity_add_int);
  l.member("sub", "quantity_sub", "quantity, quantity -> quantity", quantity_sub);
  l.member("sub", "quantity_sub_int", "quantity, int -> quantity", quantity_sub_int);

  l.global("semver", "string_to_semver", "string -> semver", semver);
  l.global("semver", "string_bool_to_semver", "string, bool -> semver", semver);
  l.global("isSemver", "is_semver_string", "string -> bool", is_semver);
  l.global("isSemver", "is_semver_string_bool", "string, bool -> bool", is_semver);
  l.member("isGreaterThan", "semver_is_greater_than", "semver, semver -> bool", semver_greater);
  l.member("isLessThan", "semver_is_less_than", "semver, semver -> bool", semver_less);
  l.member("compareTo", "semver_compare_to", "semver, semver -> int", semver_compare);
  l.member("major", "semver_major", "semver -> int", semver_major);
  l.member("minor", "semver_minor", "semver -> int", semver_minor);
  l.member("patch", "semver_patch", "semver -> int", semver_patch);

  l.member("validate", "format-validate", "format, string -> optional<list<string>>", format_validate);
  l.global("format.named", "format-named", "string -> optional<format>", format_named);
  add_formats(l, std::make_index_sequence<std::size(kFormats)>());
}

void add_authorizer_functions(LibraryBuilder& l) {
  using Check = Authorizer::Check;
  l.member("path", "authorizer_path", "authorizer, string -> path_check", authorizer_path);
  l.member("group", "authorizer_group", "authorizer, string -> group_check", authorizer_group);
  l.member("serviceAccount", "authorizer_serviceaccount", "authorizer, string, string -> authorizer",
           authorizer_service_account);
  l.member("resource", "groupcheck_resource", "group_check, string -> resource_check", group_resource);
  l.member("subresource", "resourcecheck_subresource", "resource_check, string -> resource_check",
           resource_with<&Check::subresource>);
  l.member("namespace", "resourcecheck_namespace", "resource_check, string -> resource_check",
           resource_with<&Check::namespace_name>);
  l.member("name", "resourcecheck_name", "resource_check, string -> resource_check", resource_with<&Check::name>);
  l.member("fieldSelector", "authorizer_fieldselector", "resource_check, string -> resource_check",
           resource_with<&Check::field_selector>);
  l.member("labelSelector", "authorizer_labelselector", "resource_check, string -> resource_check",
           resource_with<&Check::label_selector>);
  l.member("check", "pathcheck_check", "path_check, string -> decision", check);
  l.member("check", "resourcecheck_check", "resource_check, string -> decision", check);
  l.member("errored", "decision_errored", "decision -> bool", decision_errored);
  l.member("error", "decision_error", "decision -> string", decision_error);
  l.member("allowed", "decision_allowed", "decision -> bool", decision_allowed);
  l.member("reason", "decision_reason", "decision -> string", decision_reason);
}

}  // namespace holdfast::cel
