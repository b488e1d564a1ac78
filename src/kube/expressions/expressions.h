// CEL expressions of admission policies and webhook match conditions: which variables they can use, what they must
// evaluate to, and what evaluating them may cost.
//
//   Compiler --add_variable(), compile()--> Expression --Activation::evaluate(expression, budget)--> Evaluated
//
// A Compiler belongs to one policy or webhook; it knows the policy's `variables` that were added so far. An Activation
// holds the values of one request for a series of expressions: `variables` are computed when first read, and every
// evaluation is charged to the caller's budget.
//
// Error messages match Kubernetes (k8s.io/apiserver/pkg/admission/plugin/cel). Lifetime: an Expression keeps what it
// needs alive; the results of an Activation are valid as long as its arena, its inputs and the expressions. Threading:
// Expressions are immutable; a Compiler or an Activation belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "cel/cel.h"

namespace holdfast::expressions {

// The purpose of an expression determines its result type.
enum class Purpose : uint8_t {
  Condition,           // bool: match conditions and validations.
  Message,             // string; the authorizer is not available.
  Annotation,          // string or null.
  ApplyConfiguration,  // Object.
  JsonPatch,           // list(JSONPatch).
  Variable,            // Any type.
};

struct Expression {
  std::string text;
  std::shared_ptr<const cel::Program> program;  // Null if it does not compile.
  std::string problem;                          // Compile error: "compilation failed: ERROR: <input>:1:1: ..."
  bool instantiation_failed = false;            // The problem is not a syntax or type error.
};

struct NamedExpression {
  std::string name;
  Expression expression;
};

// Variables in addition to object, oldObject, request, namespaceObject and the authorizer.
struct Scope {
  bool variables = false;  // `variables`, even if none has been added yet.
  bool params = false;
};

// The types of `object` (and oldObject) and of `params`, if known. Null means dyn.
struct KnownTypes {
  std::shared_ptr<const cel::SchemaTypes> object, params;
};

class Compiler {
 public:
  explicit Compiler(Scope scope) : scope_(scope) {}
  // For type checking, which Kubernetes does without authorizer.requestResource. The result cannot be evaluated.
  Compiler(Scope scope, KnownTypes types) : scope_(scope), known_(std::move(types)) {}

  // Declares variables.NAME for later expressions, even if it does not compile. Requires Scope::variables.
  const Expression& add_variable(std::string_view name, std::string_view text);
  Expression compile(std::string_view text, Purpose purpose);

  // The variables added so far, needed for evaluation.
  std::vector<NamedExpression> take_variables() { return std::move(variables_); }

 private:
  std::shared_ptr<const cel::Environment> environment(bool authorizer, bool mutation);

  const Scope scope_;
  const std::optional<KnownTypes> known_;
  std::vector<NamedExpression> variables_;
  std::shared_ptr<const cel::Environment> environments_[4];  // For the current variables.
};

// The values of one request. They must outlive the Activation.
struct Inputs {
  cel::Val object, old_object, request, namespace_object, params;  // Null if absent.
  cel::Authorizer* authorizer = nullptr;                           // Checks the request's user.
  cel::Val::RequestResource resource = {};                         // The resource of authorizer.requestResource.
};

// The result of one evaluation.
struct Evaluated {
  cel::Val value;       // If it is an error, see `problem`.
  std::string problem;  // "expression 'x' resulted in error: ..."; empty on success.
};

inline constexpr std::string_view kOutOfBudget =
    "validation failed due to running out of cost budget, no further validation rules will be run";

class Activation final : private cel::LazyObject {
 public:
  // `variables` are those of the compiler; results are allocated in `arena`.
  Activation(Arena& arena, Scope scope, std::span<const NamedExpression> variables, const Inputs& inputs);
  Activation(const Activation&) = delete;
  Activation& operator=(const Activation&) = delete;

  // nullopt if the budget is exceeded (kOutOfBudget); no further expression may be evaluated then.
  std::optional<Evaluated> evaluate(const Expression& expression, int64_t& budget);

 private:
  std::string_view type_name() const override;
  const cel::Val* find(std::string_view field) override;

  struct Computed {
    bool begun = false, done = false;
    cel::Val value;
  };

  Arena& arena_;
  const std::span<const NamedExpression> variables_;
  std::vector<Computed> computed_;  // Indexed by variable.
  cel::Bindings bindings_;
  int64_t spent_on_variables_ = 0;  // Since the last evaluate().
};

// The result of match conditions.
struct Matched {
  bool matches = true;
  std::string problem;  // Not empty if evaluation failed and failurePolicy is Fail.
};
// No match if any condition is false. Otherwise, errors mean no match and, unless `ignores_failure`, a problem.
Matched match(std::span<const Expression> conditions, Activation& activation, bool ignores_failure);

}  // namespace holdfast::expressions
