// Errors with Kubernetes' messages, which clients match on (k8s.io/apimachinery/pkg/api/errors). Every module that
// rejects something creates its error here; only render/ turns them into codes and Status bodies.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace holdfast {

// Formats a resource ("deployments.apps", "pods") or a kind (GroupKind) as in error messages.
struct GroupResource {
  std::string_view group, resource;
};
struct GroupKind {
  std::string_view group, kind;
};
std::string to_string(GroupResource resource);
std::string to_string(GroupKind kind);

Error not_found(GroupResource resource, std::string_view name);
Error already_exists(GroupResource resource, std::string_view name);
// Operation cannot be fulfilled on <resource> "<name>": <why>.
Error conflict(GroupResource resource, std::string_view name, std::string_view why);
// The same for an outdated resourceVersion.
Error modified_conflict(GroupResource resource, std::string_view name);
// <Kind> "<name>" is invalid: <causes>. Causes keep their order; the text omits repetitions.
Error invalid(GroupKind kind, std::string_view name, std::vector<Cause> causes);
// <resource> "<name>" is forbidden: <why>; without a name, Kubernetes' variant of that.
Error forbidden(GroupResource resource, std::string_view name, std::string_view why);
Error method_not_supported(GroupResource resource, std::string_view verb);
Error expired(std::string message);
Error internal(std::string_view why);  // Internal error occurred: <why>, with the cause.
// An untyped Go error: 500 and no reason.
Error untyped(std::string message);
Error too_large_resource_version(uint64_t asked, uint64_t current, int32_t retry_after_seconds);
// A stored value that cannot be decoded: the error of reading it (`why` is the reason), and the error of a list that
// contains such values, with a cause for each of them.
Error corrupt_object(std::string_view key, std::string_view why);
Cause corrupt_item(std::string_view key, std::string_view why);
Error unreadable_list(GroupResource resource, std::vector<Cause> items);

// Several errors as one text, like Go's aggregate error: "a", or "[a, b]".
std::string aggregate_text(std::span<const std::string> errors);
std::string aggregate_text(std::span<const Cause> causes);

// field.Error bodies (the message of a Cause, without the field).
Cause field_required(std::string field, std::string_view detail = {});
Cause field_invalid(std::string field, std::string_view shown_value, std::string_view detail);  // Value as shown.
Cause field_invalid_text(std::string field, std::string_view text, std::string_view detail);    // Quotes the value.
Cause field_forbidden(std::string field, std::string_view detail);
Cause field_not_supported(std::string field, std::string_view text, std::span<const std::string_view> supported);
Cause field_too_long(std::string field, int max_bytes);

}  // namespace holdfast
