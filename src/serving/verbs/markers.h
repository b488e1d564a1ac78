// Unset markers as the verbs see them: what is reported about them, and counted. Private to the module.
#pragma once

#include <string_view>

#include "write/write.h"

namespace holdfast::verbs {

// What an apply unset, for warnings once the object is written.
struct UnsetFields {
  ownership::FieldSet paths;
  ownership::FieldSet defaulted;  // Those that defaults set again.
};

// After an apply: counts it (unless it was a dry run), and adds a warning for each unset field that is in the written
// object nevertheless, because of a default, an alias or admission.
Task<Result<Unit>> report_unset(call::Call& call, const ownership::FieldManager& fields,
                                const request::WriteOptions& options, const UnsetFields& unset,
                                const write::Written& written);
// The same for an apply that has no object to compare with.
void count_unset(call::Call& call, const request::WriteOptions& options);

// After any other write: adds a warning for what looks like a marker and was stored as data. `bytes` is the body.
void warn_about_stored_markers(call::Call& call, std::string_view bytes, const Result<write::Written>& written);

}  // namespace holdfast::verbs
