// Checks shared by kinds that run pods from a template. Private to the module.
#pragma once

#include "kinds/pod.h"

namespace holdfast::kinds {

// "25%" or 5: not negative; a percentage consists of digits.
void validate_int_or_percent(const Value& value, const Path& at, FieldErrors& errors);
void validate_at_most_100_percent(const Value& value, const Path& at, FieldErrors& errors);
// The number, or the number before the '%'; 0 for anything else.
int64_t int_or_percent(const Value& value);

// Selector and template of a spec: the selector must exist, be nonempty and match the template; the template must
// restart always. `kind` names the workload in messages: "deployment", or "ReplicaSet" for activeDeadlineSeconds.
void validate_selector(const Value& spec, std::string_view kind, const Path& at, FieldErrors& errors, bool& valid);
void validate_replica_template(Context& context, const Value& spec, std::string_view kind, const Path& at,
                               FieldErrors& errors);
// A template of long-running pods: valid, and always restarting.
void validate_lasting_template(Context& context, const Value& pod_template, std::string_view kind, const Path& at,
                               FieldErrors& errors);
// The parts of the two functions above.
void validate_selected(const Value& spec, const Path& at, FieldErrors& errors);
void validate_long_running(const Value& pod_template, std::string_view kind, const Path& at, FieldErrors& errors);
void validate_selector_unchanged(const Value& next, const Value& old, FieldErrors& errors);

// Counters of a status: not negative, none above `replicas`.
void validate_counters(const Value& status, std::initializer_list<std::string_view> counters, const Path& at,
                       FieldErrors& errors);
void validate_at_most(const Value& status, std::string_view counter, std::string_view limit, std::string_view text,
                      const Path& at, FieldErrors& errors);
void validate_collisions(const Value& next, const Value& old, FieldErrors& errors);

}  // namespace holdfast::kinds
