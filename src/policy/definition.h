// Admission policies and their bindings, read once from the objects and immutable from then on. The expressions of a
// policy are compiled when a request first meets it.
//
// Threading: share freely; the first call of programs() compiles, on whatever thread that is.
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

// Which requests a policy or a binding is about (MatchResources). Selectors are metav1.LabelSelectors in the memory of
// the object that it was read from; null or empty: everything.
struct Match {
  std::vector<webhook::Rule> rules, excluded;  // A binding without rules matches whatever its policy matches.
  Value namespace_selector, object_selector;
  bool equivalent = false;  // Also other versions of the resource; the object is converted.
};

// Of which kind the params of a policy are.
struct ParamKind {
  std::string api_version, kind;

  std::string_view group() const;
  std::string_view version() const;
};

class Binding {
 public:
  struct ParamRef {
    std::string name, ns;
    Value selector;               // Null: there is none.
    bool denies_missing = false;  // parameterNotFoundAction Deny.
  };

  // `object` is in `arena`.
  Binding(std::unique_ptr<const Arena> arena, const Value& object);

  std::string name, policy;
  std::optional<Match> match;
  std::optional<ParamRef> param;
  std::vector<std::string> actions;  // Of a ValidatingAdmissionPolicyBinding, in its order.

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

  // A ValidatingAdmissionPolicy or a MutatingAdmissionPolicy in `arena`.
  Policy(std::unique_ptr<const Arena> arena, const Value& object);

  std::string name, uid;
  int64_t generation = 0;
  std::optional<Match> match;
  std::optional<ParamKind> param_kind;
  bool ignores_failure = false;
  bool reinvokes = false;  // Of a MutatingAdmissionPolicy: reinvocationPolicy IfNeeded.

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
