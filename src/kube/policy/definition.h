// Admission policies and their bindings, read once from their objects and immutable afterwards. A policy's expressions
// are compiled when the first request matches it.
//
// Threading: may be shared freely; the first call of programs() compiles, on the caller's thread.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "expressions/expressions.h"
#include "policy/mutation.h"
#include "value/value.h"
#include "webhook/webhook.h"

namespace holdfast::policy {

// The requests that a policy or binding applies to (MatchResources). Selectors are metav1.LabelSelectors that point
// into the source object; null or empty selects everything.
struct Match {
  std::vector<webhook::Rule> rules, excluded;  // A binding without rules matches whatever its policy matches.
  Value namespace_selector, object_selector;
  bool equivalent = false;  // Also match other versions of the resource; the object is converted.
};

// The kind of a policy's params.
struct ParamKind {
  std::string api_version, kind;

  std::string_view group() const;
  std::string_view version() const;
};

class Binding {
 public:
  struct ParamRef {
    std::string name, ns;
    Value selector;               // Null if there is none.
    bool denies_missing = false;  // parameterNotFoundAction is Deny.
  };

  // `object` must be allocated in `arena`.
  Binding(std::unique_ptr<const Arena> arena, const Value& object);

  std::string name, policy;
  std::optional<Match> match;
  std::optional<ParamRef> param;
  std::vector<std::string> actions;  // validationActions of a ValidatingAdmissionPolicyBinding, in order.

 private:
  std::unique_ptr<const Arena> arena_;
};

class Policy {
 public:
  struct Validation {
    expressions::Expression condition;
    std::optional<expressions::Expression> message_expression;
    std::string message, reason;
  };
  struct AuditAnnotation {
    std::string key;
    expressions::Expression value;
  };
  struct Programs {
    std::vector<expressions::NamedExpression> variables;
    std::vector<expressions::Expression> conditions;
    std::vector<Validation> validations;
    std::vector<AuditAnnotation> annotations;
    std::vector<Mutation> mutations;
  };

  // A ValidatingAdmissionPolicy or MutatingAdmissionPolicy allocated in `arena`.
  Policy(std::unique_ptr<const Arena> arena, const Value& object);

  std::string name, uid;
  int64_t generation = 0;
  std::optional<Match> match;
  std::optional<ParamKind> param_kind;
  bool ignores_failure = false;
  bool reinvokes = false;  // MutatingAdmissionPolicy: reinvocationPolicy is IfNeeded.

  expressions::Scope scope() const { return {.variables = true, .params = param_kind.has_value()}; }
  const Programs& programs() const;

 private:
  void compile() const;

  std::unique_ptr<const Arena> arena_;
  Value spec_;
  mutable std::once_flag compiled_;
  mutable Programs programs_;
};

using PolicyRef = std::shared_ptr<const Policy>;
using BindingRef = std::shared_ptr<const Binding>;

}  // namespace holdfast::policy
