#include "base/api_error.h"

#include <unordered_set>

#include "base/error_budget.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/strings.h"
#include "base/text.h"

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

std::string text_of(const Cause& cause) {
  return cause.type == kTooManyCauses && cause.field.empty() ? cause.message : cause.field + ": " + cause.message;
}

std::string detail_suffix(std::string_view detail) { return detail.empty() ? "" : ": " + std::string(detail); }

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
  std::vector<std::string> texts;  // Without duplicates.
  std::unordered_set<std::string, KeyHash> seen;
  for (const Cause& cause : causes) {
    const auto [text, fresh] = seen.insert(text_of(cause));
    if (fresh) texts.push_back(*text);
  }
  std::string message = to_string(kind) + " " + go_quote(name) + " is invalid";
  if (!texts.empty()) message += ": " + aggregate_text(texts);
  Error error = about(Reason::Invalid, {kind.group, kind.kind}, name, std::move(message));
  error.causes = std::move(causes);
  return error;
}

Error forbidden(GroupResource resource, std::string_view name, std::string_view why) {
  std::string message;
  if (resource.resource.empty() && resource.group.empty()) {
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

namespace {

// storage.StorageError with ErrCodeCorruptObj.
std::string corrupt_text(std::string_view key, std::string_view why) {
  return "StorageError: corrupt object, Code: 7, Key: " + std::string(key) +
         ", ResourceVersion: 0, AdditionalErrorMsg: " + std::string(why);
}

}  // namespace

Error corrupt_object(std::string_view key, std::string_view why) { return internal(corrupt_text(key, why)); }

Cause corrupt_item(std::string_view key, std::string_view why) {
  return {"UnexpectedServerResponse", corrupt_text(key, why), std::string(key)};
}

Error unreadable_list(GroupResource resource, std::vector<Cause> items) {
  Error error = about(Reason::StoreReadError, resource, "list",
                      "failed to read one or more " + to_string(resource) + " from the storage");
  if (items.size() > limits::kReportedUnreadable) {
    items.resize(limits::kReportedUnreadable);
    items.push_back({std::string(kTooManyCauses), "too many errors, the list is truncated", ""});
  }
  error.causes = std::move(items);
  return error;
}

std::string aggregate_text(std::span<const std::string> errors) {
  return errors.size() == 1 ? errors.front() : "[" + join(errors, ", ") + "]";
}

std::string aggregate_text(std::span<const Cause> causes) {
  std::vector<std::string> texts;
  for (const Cause& cause : causes) texts.push_back(text_of(cause));
  return aggregate_text(texts);
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
  if (!supported.empty()) message += ": supported values: " + join(supported, ", ", go_quote);
  return {"FieldValueNotSupported", std::move(message), std::move(field)};
}
Cause field_too_long(std::string field, int max_bytes) {
  return {"FieldValueTooLong", "Too long: may not be more than " + std::to_string(max_bytes) + " bytes",
          std::move(field)};
}

}  // namespace holdfast
