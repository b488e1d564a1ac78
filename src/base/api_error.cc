#include "base/api_error.h"

#include <algorithm>
#include <cstdio>

namespace holdfast {
namespace {

std::string dotted(std::string_view first, std::string_view group) {
  std::string text(first);
  if (!group.empty()) {
    text += '.';
    text += group;
  }
  return text;
}

Error about(Reason reason, GroupResource resource, std::string_view name, std::string message) {
  Error error{reason, std::move(message)};
  error.details = ErrorDetails{std::string(name), std::string(resource.group), std::string(resource.resource), {}};
  return error;
}

std::string detail_suffix(std::string_view detail) { return detail.empty() ? "" : ": " + std::string(detail); }

// Reads one UTF-8 sequence at `at`; 0 length when the bytes are no valid one.
struct Rune {
  uint32_t value;
  size_t length;
};
Rune decode_rune(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return {first, 1};
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + length > text.size()) return {0, 0};
  uint32_t value = first & (0xff >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return {0, 0};
    value = value << 6 | (byte(at + i) & 0x3f);
  }
  static constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return {0, 0};
  return {value, length};
}

}  // namespace

std::string to_string(GroupResource resource) { return dotted(resource.resource, resource.group); }
std::string to_string(GroupKind kind) { return dotted(kind.kind, kind.group); }

Error not_found(GroupResource resource, std::string_view name) {
  return about(Reason::NotFound, resource, name, to_string(resource) + " " + go_quote(name) + " not found");
}

Error already_exists(GroupResource resource, std::string_view name) {
  return about(Reason::AlreadyExists, resource, name, to_string(resource) + " " + go_quote(name) + " already exists");
}

Error conflict(GroupResource resource, std::string_view name, std::string_view why) {
  return about(
      Reason::Conflict, resource, name,
      "Operation cannot be fulfilled on " + to_string(resource) + " " + go_quote(name) + ": " + std::string(why));
}

Error modified_conflict(GroupResource resource, std::string_view name) {
  return conflict(resource, name,
                  "the object has been modified; please apply your changes to the latest version and try again");
}

Error invalid(GroupKind kind, std::string_view name, std::vector<Cause> causes) {
  std::vector<std::string> texts;
  for (const Cause& cause : causes) {
    std::string text = cause.field + ": " + cause.message;
    if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(std::move(text));
  }
  std::string message = to_string(kind) + " " + go_quote(name) + " is invalid";
  if (texts.size() == 1) message += ": " + texts[0];
  if (texts.size() > 1) {
    message += ": [";
    for (size_t i = 0; i < texts.size(); ++i) message += (i == 0 ? "" : ", ") + texts[i];
    message += "]";
  }
  Error error = about(Reason::Invalid, {kind.group, kind.kind}, name, std::move(message));
  error.causes = std::move(causes);
  return error;
}

Error forbidden(GroupResource resource, std::string_view name, std::string_view why) {
  std::string message;
  if (resource.resource.empty()) {
    message = "forbidden: ";
  } else if (name.empty()) {
    message = to_string(resource) + " is forbidden: ";
  } else {
    message = to_string(resource) + " " + go_quote(name) + " is forbidden: ";
  }
  message += why;
  return about(Reason::Forbidden, resource, name, std::move(message));
}

Error method_not_supported(GroupResource resource, std::string_view verb) {
  return about(Reason::MethodNotAllowed, resource, {},
               std::string(verb) + " is not supported on resources of kind " + go_quote(to_string(resource)));
}

Error expired(std::string message) { return {Reason::Expired, std::move(message)}; }

Error internal(std::string_view why) {
  Error error{Reason::InternalError, "Internal error occurred: " + std::string(why)};
  error.causes.push_back({"", std::string(why), ""});
  return error;
}

Error untyped(std::string message) { return {Reason::Unknown, std::move(message)}; }

Error too_large_resource_version(uint64_t asked, uint64_t current, int32_t retry_after_seconds) {
  const std::string text =
      "Too large resource version: " + std::to_string(asked) + ", current: " + std::to_string(current);
  Error error{Reason::Timeout, "Timeout: " + text};
  error.retry_after_seconds = retry_after_seconds;
  error.causes.push_back({"ResourceVersionTooLarge", "Too large resource version", ""});
  return error;
}

Cause field_required(std::string field, std::string_view detail) {
  return {"FieldValueRequired", "Required value" + detail_suffix(detail), std::move(field)};
}
Cause field_invalid(std::string field, std::string_view shown_value, std::string_view detail) {
  return {"FieldValueInvalid", "Invalid value: " + std::string(shown_value) + detail_suffix(detail), std::move(field)};
}
Cause field_invalid_text(std::string field, std::string_view text, std::string_view detail) {
  return field_invalid(std::move(field), go_quote(text), detail);
}
Cause field_forbidden(std::string field, std::string_view detail) {
  return {"FieldValueForbidden", "Forbidden" + detail_suffix(detail), std::move(field)};
}
Cause field_not_supported(std::string field, std::string_view text, std::span<const std::string_view> supported) {
  std::string message = "Unsupported value: " + go_quote(text);
  for (size_t i = 0; i < supported.size(); ++i) {
    message += (i == 0 ? ": supported values: " : ", ") + go_quote(supported[i]);
  }
  return {"FieldValueNotSupported", std::move(message), std::move(field)};
}
Cause field_too_long(std::string field, int max_bytes) {
  return {"FieldValueTooLong", "Too long: may not be more than " + std::to_string(max_bytes) + " bytes",
          std::move(field)};
}
Cause field_duplicate(std::string field, std::string_view text) {
  return {"FieldValueDuplicate", "Duplicate value: " + go_quote(text), std::move(field)};
}
Cause field_not_found(std::string field, std::string_view text) {
  return {"FieldValueNotFound", "Not found: " + go_quote(text), std::move(field)};
}

std::string go_quote(std::string_view text) {
  std::string out = "\"";
  char escape[16];
  for (size_t i = 0; i < text.size();) {
    const Rune rune = decode_rune(text, i);
    if (rune.length == 0) {
      std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned char>(text[i]));
      out += escape;
      ++i;
      continue;
    }
    const std::string_view bytes = text.substr(i, rune.length);
    i += rune.length;
    switch (rune.value) {
      case '"':
        out += "\\\"";
        continue;
      case '\\':
        out += "\\\\";
        continue;
      case '\a':
        out += "\\a";
        continue;
      case '\b':
        out += "\\b";
        continue;
      case '\f':
        out += "\\f";
        continue;
      case '\n':
        out += "\\n";
        continue;
      case '\r':
        out += "\\r";
        continue;
      case '\t':
        out += "\\t";
        continue;
      case '\v':
        out += "\\v";
        continue;
      default:
        break;
    }
    // Go prints what unicode.IsPrint accepts. Controls, format characters and separators that people meet are these;
    // unassigned code points are printed where Go would escape them.
    const uint32_t r = rune.value;
    const bool unprintable = r < 0x20 || (r >= 0x7f && r <= 0xa0) || r == 0xad || (r >= 0x2000 && r <= 0x200f) ||
                             (r >= 0x2028 && r <= 0x202f) || (r >= 0x205f && r <= 0x206f) || r == 0x3000 ||
                             r == 0xfeff || r == 0xfffe || r == 0xffff || (r >= 0xe000 && r <= 0xf8ff) ||
                             (r >= 0xfff0 && r <= 0xfffb);
    if (!unprintable) {
      out += bytes;
    } else if (r < 0x80) {
      std::snprintf(escape, sizeof escape, "\\x%02x", r);
      out += escape;
    } else {
      std::snprintf(escape, sizeof escape, r > 0xffff ? "\\U%08x" : "\\u%04x", r);
      out += escape;
    }
  }
  out += '"';
  return out;
}

}  // namespace holdfast
