// Go's formatting of values and type names.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/clock.h"
#include "base/text.h"
#include "cel/values.h"
#include "codec/codec.h"

namespace holdfast::cel {

std::string_view opaque_type_name(OpaqueKind kind) {
  constexpr std::string_view kNames[] = {"kubernetes.Quantity",
                                         "net.IP",
                                         "net.CIDR",
                                         "kubernetes.URL",
                                         "kubernetes.Semver",
                                         "kubernetes.NamedFormat",
                                         "kubernetes.authorization.Authorizer",
                                         "kubernetes.authorization.PathCheck",
                                         "kubernetes.authorization.GroupCheck",
                                         "kubernetes.authorization.ResourceCheck",
                                         "kubernetes.authorization.Decision"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view Val::type_name() const {
  switch (kind_) {
    case Kind::Error:
      return "error";
    case Kind::Null:
      return "null_type";
    case Kind::Bool:
      return "bool";
    case Kind::Int:
      return "int";
    case Kind::Uint:
      return "uint";
    case Kind::Double:
      return "double";
    case Kind::String:
      return "string";
    case Kind::Bytes:
      return "bytes";
    case Kind::Timestamp:
      return "google.protobuf.Timestamp";
    case Kind::Duration:
      return "google.protobuf.Duration";
    case Kind::Type:
      return "type";
    case Kind::List:
      return "list";
    case Kind::Map:
      return "map";
    case Kind::Optional:
      return "optional_type";
    case Kind::Object:
      return object_->type_name;
    case Kind::JsonPatch:
      return "JSONPatch";
    case Kind::Opaque:
      return opaque_type_name(opaque_->kind);
    case Kind::Lazy:
      return lazy_->type_name();
    case Kind::Preserved:
      return "unknown";
  }
  return {};
}

std::string_view go_type_name(const Val& v) {
  switch (v.kind()) {
    case Kind::Error:
      return "*types.Err";
    case Kind::Null:
      return "types.Null";
    case Kind::Bool:
      return "types.Bool";
    case Kind::Int:
      return "types.Int";
    case Kind::Uint:
      return "types.Uint";
    case Kind::Double:
      return "types.Double";
    case Kind::String:
      return "types.String";
    case Kind::Bytes:
      return "types.Bytes";
    case Kind::Timestamp:
      return "types.Timestamp";
    case Kind::Duration:
      return "types.Duration";
    case Kind::Type:
      return "*types.Type";
    case Kind::List:
      return Rep::form(v) == Rep::Form::Concat ? "*types.concatList" : "*types.baseList";
    case Kind::Map:
      return "*types.baseMap";
    case Kind::Optional:
      return "*types.Optional";
    case Kind::Object:
      return "*dynamic.ObjectVal";
    case Kind::JsonPatch:
      return "*mutation.JSONPatchVal";
    case Kind::Lazy:
      return "*lazy.MapValue";
    case Kind::Preserved:
      return "*common.unknownPreserved";
    case Kind::Opaque:
      break;
  }
  switch (Rep::opaque(v).kind) {
    case OpaqueKind::Quantity:
      return Rep::as<QuantityOpaque>(v).computed ? "*cel.Quantity" : "cel.Quantity";
    case OpaqueKind::Ip:
      return "cel.IP";
    case OpaqueKind::Cidr:
      return "cel.CIDR";
    case OpaqueKind::Url:
      return "cel.URL";
    case OpaqueKind::Semver:
      return "cel.Semver";
    case OpaqueKind::Format:
      return "cel.Format";
    case OpaqueKind::Authorizer:
      return "library.authorizerVal";
    case OpaqueKind::PathCheck:
      return "library.pathCheckVal";
    case OpaqueKind::GroupCheck:
      return "library.groupCheckVal";
    case OpaqueKind::ResourceCheck:
      return "library.resourceCheckVal";
    case OpaqueKind::Decision:
      return "library.decisionVal";
  }
  return {};
}

std::string double_plain_text(double d) {
  if (std::isnan(d)) return "NaN";
  if (std::isinf(d)) return d > 0 ? "+Inf" : "-Inf";
  char buffer[400];
  const auto [end, problem] = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::fixed);
  return {buffer, end};
}

std::string duration_seconds_text(int64_t nanoseconds) {
  const int64_t whole = nanoseconds / 1'000'000'000, rest = nanoseconds % 1'000'000'000;
  return double_plain_text(static_cast<double>(whole) + static_cast<double>(rest) / 1e9) + "s";
}

namespace {

// Howard Hinnant's civil calendar, proleptic Gregorian.
void civil_from_days(int64_t days, int64_t& year, unsigned& month, unsigned& day) {
  days += 719468;
  const int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const auto of_era = static_cast<unsigned>(days - era * 146097);
  const unsigned year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  year = static_cast<int64_t>(year_of_era) + era * 400;
  const unsigned day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const unsigned m = (5 * day_of_year + 2) / 153;
  day = day_of_year - (153 * m + 2) / 5 + 1;
  month = m < 10 ? m + 3 : m - 9;
  if (month <= 2) ++year;
}

}  // namespace

std::string timestamp_text(int64_t seconds, int32_t nanos, int64_t zone) {
  const int64_t local = seconds + zone;
  int64_t days = local / 86400, rest = local % 86400;
  if (rest < 0) {
    rest += 86400;
    --days;
  }
  int64_t year;
  unsigned month, day;
  civil_from_days(days, year, month, day);
  char buffer[64];
  snprintf(buffer, sizeof buffer, "%04lld-%02u-%02uT%02d:%02d:%02d", static_cast<long long>(year), month, day,
           static_cast<int>(rest / 3600), static_cast<int>(rest / 60 % 60), static_cast<int>(rest % 60));
  std::string out = buffer;
  if (nanos != 0) {
    snprintf(buffer, sizeof buffer, ".%09d", nanos);
    std::string fraction = buffer;
    while (fraction.back() == '0') fraction.pop_back();
    out += fraction;
  }
  if (zone == 0) return out + "Z";
  const int64_t minutes = std::abs(zone) / 60;
  snprintf(buffer, sizeof buffer, "%c%02d:%02d", zone < 0 ? '-' : '+', static_cast<int>(minutes / 60),
           static_cast<int>(minutes % 60));
  return out + buffer;
}

std::string ip_text(const IpOpaque& ip) {
  if (!ip.v6) {
    std::string out;
    for (int i = 0; i < 4; ++i) out += (i > 0 ? "." : "") + std::to_string(ip.bytes[i]);
    return out;
  }
  // RFC 5952: the longest run of zeros, of at least two groups, becomes "::".
  uint16_t groups[8];
  for (int i = 0; i < 8; ++i) groups[i] = static_cast<uint16_t>(ip.bytes[2 * i] << 8 | ip.bytes[2 * i + 1]);
  int best = -1, best_length = 1;
  for (int i = 0; i < 8;) {
    int end = i;
    while (end < 8 && groups[end] == 0) ++end;
    if (end - i > best_length) {
      best = i;
      best_length = end - i;
    }
    i = end > i ? end : i + 1;
  }
  std::string out;
  for (int i = 0; i < 8; ++i) {
    if (i == best) {
      out += "::";
      i += best_length - 1;
      continue;
    }
    if (!out.empty() && out.back() != ':') out += ':';
    char buffer[8];
    snprintf(buffer, sizeof buffer, "%x", groups[i]);
    out += buffer;
  }
  return out;
}

std::string semver_text(const SemverOpaque& version) {
  std::string out =
      std::to_string(version.major) + "." + std::to_string(version.minor) + "." + std::to_string(version.patch);
  for (size_t i = 0; i < version.pre_release.size(); ++i)
    out += (i == 0 ? "-" : ".") + std::string(version.pre_release[i]);
  for (size_t i = 0; i < version.build.size(); ++i) out += (i == 0 ? "+" : ".") + std::string(version.build[i]);
  return out;
}

std::string opaque_text(const Opaque& opaque) {
  switch (opaque.kind) {
    case OpaqueKind::Quantity:
      return std::string(static_cast<const QuantityOpaque&>(opaque).text);
    case OpaqueKind::Ip:
      return ip_text(static_cast<const IpOpaque&>(opaque));
    case OpaqueKind::Cidr: {
      const auto& cidr = static_cast<const IpOpaque&>(opaque);
      return ip_text(cidr) + "/" + std::to_string(cidr.prefix);
    }
    case OpaqueKind::Url:
      return std::string(static_cast<const UrlOpaque&>(opaque).text);
    case OpaqueKind::Semver:
      return semver_text(static_cast<const SemverOpaque&>(opaque));
    default:
      return "";
  }
}

std::string go_text(const Val& v) {
  Arena arena;
  switch (v.kind()) {
    case Kind::Error:
    case Kind::String:
    case Kind::Type:
      return std::string(v.text());
    case Kind::Null:
      return "0";
    case Kind::Bool:
      return v.as_bool() ? "true" : "false";
    case Kind::Int:
      return std::to_string(v.as_int());
    case Kind::Uint:
      return std::to_string(v.as_uint());
    case Kind::Double:
      return codec::go_float_text(v.as_double());
    case Kind::Bytes: {
      std::string out = "[";
      for (const char c : v.text()) out += (out.size() > 1 ? " " : "") + std::to_string(static_cast<unsigned char>(c));
      return out + "]";
    }
    case Kind::Timestamp: {
      std::string text = timestamp_text(Rep::seconds(v), Rep::nanos(v), Rep::zone(v));
      return text;
    }
    case Kind::Duration:
      return format_go_duration(std::chrono::nanoseconds(v.as_int()));
    case Kind::List: {
      std::string out = "[";
      const uint64_t count = std::min<uint64_t>(list_size(v), 100'000);
      for (uint64_t i = 0; i < count; ++i) out += (i > 0 ? ", " : "") + go_text(list_at(arena, v, i));
      return out + "]";
    }
    case Kind::Map: {
      std::string out = "{";
      v.for_each_entry(arena, [&](const Val& key, const Val& value) {
        out += (out.size() > 1 ? ", " : "") + go_text(key) + ": " + go_text(value);
      });
      return out + "}";
    }
    case Kind::Optional:
      return v.has_value() ? "optional(" + go_text(Rep::inner(v)) + ")" : "optional.none()";
    case Kind::Opaque:
      return opaque_text(Rep::opaque(v));
    default:
      return std::string(v.type_name());
  }
}

}  // namespace holdfast::cel
