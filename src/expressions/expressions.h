// The expressions of admission: those of admission policies, and the match conditions of webhooks. Which variables they
// see, what they have to evaluate to, and what evaluating them may cost.
//
//   Compiler --add_variable(), compile()--> Expression --Activation::evaluate(expression, budget)--> Evaluated
//
// A Compiler belongs to one policy or webhook; it knows the policy's `variables` as far as they have been added. An
// Activation holds the values of one request for some expressions that are evaluated in a row: `variables` are computed
// when an expression first reads them, and every evaluation is charged to the caller's budget.
//
// Texts are Kubernetes' (k8s.io/apiserver/pkg/admission/plugin/cel). Lifetime: an Expression keeps alive what it
// needs; the results of an Activation live as long as its arena, its inputs and the expressions. Threading: Expressions
// are immutable; a Compiler or an Activation belongs to one thread.
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

// What an expression is for decides what it may evaluate to.
enum class Purpose : uint8_t {
  Condition,           // A bool: match conditions and validations.
  Message,             // A string. The authorizer is not available.
  Annotation,          // A string or null.
  ApplyConfiguration,  // An Object.
  JsonPatch,           // A list of JSONPatch.
  Variable,            // Anything.
};

struct Expression {
  std::string text;
  std::shared_ptr<const cel::Program> program;  // Null: it does not compile.
  std::string problem;                          // Why: "compilation failed: ERROR: <input>:1:1: ..."
  bool instantiation_failed = false;            // The problem is not one of syntax or types.
};

struct NamedExpression {
  std::string name;
  Expression expression;
};

// Which variables there are beside object, oldObject, request, namespaceObject and the authorizer.
struct Scope {
  bool variables = false;  // `variables`, even if there is none yet.
  bool params = false;
};

// The types of `object` (and oldObject) and of `params`, where they are known. Null: dyn.
struct KnownTypes {
  std::shared_ptr<const cel::SchemaTypes> object, params;
};

class Compiler {
 public:
  explicit Compiler(Scope scope) : scope_(scope) {}
  // For type checking, which Kubernetes does without authorizer.requestResource. Nothing of it is evaluated.
  Compiler(Scope scope, KnownTypes types) : scope_(scope), known_(std::move(types)) {}

  // Declares variables.NAME for whatever is compiled later, also if it does not compile. Needs Scope::variables.
  const Expression& add_variable(std::string_view name, std::string_view text);
  Expression compile(std::string_view text, Purpose purpose);

  // The variables so far, and with them what evaluation needs.
  std::vector<NamedExpression> take_variables() { return std::move(variables_); }

 private:
  std::shared_ptr<const cel::Environment> environment(bool authorizer, bool mutation);

  const Scope scope_;
  const std::optional<KnownTypes> known_;
  std::vector<NamedExpression> variables_;
  std::shared_ptr<const cel::Environment> environments_[4];  // For the variables so far.
};

// The values of one request. All of them outlive the Activation.
struct Inputs {
  cel::Val object, old_object, request, namespace_object, params;  // Null where there is none.
  cel::Authorizer* authorizer = nullptr;                           // Of the request's user.
  cel::Val::RequestResource resource = {};                         // What authorizer.requestResource is about.
};

// What came of one evaluation.
struct Evaluated {
  cel::Val value;       // An error: see `problem`.
  std::string problem;  // "expression 'x' resulted in error: ..."; empty: there is none.
};

inline constexpr std::string_view kOutOfBudget =
    "validation failed due to running out of cost budget, no further validation rules will be run";

class Activation final : private cel::LazyObject {
 public:
  // `variables` are those of the compiler; results are made in `arena`.
  Activation(Arena& arena, Scope scope, std::span<const NamedExpression> variables, const Inputs& inputs);
  Activation(const Activation&) = delete;
  Activation& operator=(const Activation&) = delete;

  // Nothing: the budget does not suffice (kOutOfBudget), and no further expression may be evaluated.
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
  std::vector<Computed> computed_;  // By variable.
  cel::Bindings bindings_;
  int64_t spent_on_variables_ = 0;  // Since the last evaluate().
};

// Whether match conditions let a request through.
struct Matched {
  bool matches = true;
  std::string problem;  // Not empty: they could not be evaluated, and failurePolicy is Fail.
};
// Any false: no. Otherwise any error: no, or a problem unless `ignores_failure`.
Matched match(std::span<const Expression> conditions, Activation& activation, bool ignores_failure);

}  // namespace holdfast::expressions
