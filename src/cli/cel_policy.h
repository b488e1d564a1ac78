// An admission policy evaluated offline, for one object, as the server would evaluate it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/error.h"
#include "value/value.h"

namespace holdfast::cli {

// What a request would be about. Null where there is none.
struct PolicyCase {
  Value policy;      // ValidatingAdmissionPolicy or MutatingAdmissionPolicy.
  Value binding;     // Its validationActions count; without it, Deny.
  Value object;      // Null: a delete of `old`.
  Value old_object;  // Null: a create.
  Value params;
  Value definition;  // CustomResourceDefinition of the object's kind.
};

struct PolicyReport {
  // One line each: what was denied, warnings, audit annotations, notes. Of a MutatingAdmissionPolicy also the
  // difference that it makes to the object.
  std::string text;
  bool denied = false;
};

// The schema of the version that the object names; the storage version's where it names none. Null: none fits.
const Value* schema_for(const Value& definition, const Value& object);

// Objects of built-in kinds and of `definition` get their defaults first, as from the server; others are taken as they
// are. Rules of matchConstraints are looked at, selectors are not. Authorizer checks fail: there is no server to ask.
Result<PolicyReport> evaluate_policy(Arena& arena, const PolicyCase& given);

}  // namespace holdfast::cli
