// An admission policy evaluated offline, for one object, as the server would evaluate it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/error.h"
#include "value/value.h"

namespace holdfast::cli {

// The objects of the simulated request; null where absent.
struct PolicyCase {
  Value policy;      // ValidatingAdmissionPolicy or MutatingAdmissionPolicy.
  Value binding;     // Only its validationActions are used; Deny without a binding.
  Value object;      // Null for a DELETE of `old_object`.
  Value old_object;  // Null for a CREATE.
  Value params;
  Value definition;  // CustomResourceDefinition of the object's kind.
};

struct PolicyReport {
  // One line per denial, warning, audit annotation and note; for a MutatingAdmissionPolicy also a diff of the object.
  std::string text;
  bool denied = false;
};

// The schema of the object's version, or of the storage version if the object has no apiVersion. Null if none matches.
const Value* schema_for(const Value& definition, const Value& object);

// Objects of built-in kinds and of `definition` are defaulted first, as the server does; others are used unchanged. The
// rules of matchConstraints are checked, selectors are not. Authorizer checks fail, because there is no server.
Result<PolicyReport> evaluate_policy(Arena& arena, const PolicyCase& given);

}  // namespace holdfast::cli
