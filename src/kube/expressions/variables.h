// The index of each variable in the environments. It is the same in all environments of a scope, so that one set of
// bindings serves expressions with and without the authorizer. Private to the module.
#pragma once

#include <string_view>

#include "expressions/expressions.h"

namespace holdfast::expressions {

inline constexpr std::string_view kVariablesType = "kubernetes.variables";

struct Positions {
  size_t object = 0, old_object = 1, namespace_object = 2, request = 3;
  size_t variables = 0, params = 0;  // 0 if not in scope.
  size_t authorizer = 0, request_resource = 0;
  size_t count = 0;
};

inline Positions positions_of(Scope scope) {
  Positions at;
  size_t next = 4;
  if (scope.variables) at.variables = next++;
  if (scope.params) at.params = next++;
  at.authorizer = next++;
  at.request_resource = next++;
  at.count = next;
  return at;
}

}  // namespace holdfast::expressions
