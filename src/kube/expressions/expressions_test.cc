#include "expressions/expressions.h"

#include <gtest/gtest.h>

namespace holdfast::expressions {
namespace {

// --- Compilation ---

struct CompileCase {
  const char* what;
  const char* text;
  Purpose purpose;
  const char* problem;  // Prefix of the error; empty if it compiles.
};

TEST(Expressions, ErrorsMatchKubernetes) {
  const CompileCase cases[] = {
      {"a condition is a bool", "object.spec.replicas < 3", Purpose::Condition, ""},
      {"dyn is not a bool", "object.spec.paused", Purpose::Condition, "must evaluate to bool but got dyn"},
      {"a list is not a bool", "[1]", Purpose::Condition, "must evaluate to bool but got list(int)"},
      {"a message is a string", "1", Purpose::Message, "must evaluate to string but got int"},
      {"a message has no authorizer", "string(authorizer.path('/').check('get').allowed())", Purpose::Message,
       "compilation failed: ERROR: <input>:1:8: undeclared reference to 'authorizer' (in container '')"},
      {"a condition has the authorizer", "authorizer.requestResource.check('get').allowed()", Purpose::Condition, ""},
      {"an annotation may be null", "null", Purpose::Annotation, ""},
      {"an annotation is a string or null", "1", Purpose::Annotation,
       "must evaluate to one of [string null_type] but got int"},
      {"an apply configuration is an Object", "Object{spec: Object.spec{replicas: 1}}", Purpose::ApplyConfiguration,
       ""},
      {"nothing else is an apply configuration", "{'a': 1}", Purpose::ApplyConfiguration,
       "must evaluate to Object but got map(string, int)"},
      {"a JSON patch is a list", "[JSONPatch{op: 'remove', path: '/a'}]", Purpose::JsonPatch, ""},
      {"a single operation is not a JSON patch", "JSONPatch{op: 'remove', path: '/a'}", Purpose::JsonPatch,
       "must evaluate to list(JSONPatch) but got JSONPatch"},
      {"other expressions have no Object", "Object{} == Object{}", Purpose::Condition,
       "compilation failed: ERROR: <input>:1:7: undeclared reference to 'Object' (in container '')"},
      {"the request has no uid", "request.uid == ''", Purpose::Condition,
       "compilation failed: ERROR: <input>:1:8: undefined field 'uid'"},
      {"the namespace has no owner references", "namespaceObject.metadata.ownerReferences == null", Purpose::Condition,
       "compilation failed: ERROR: <input>:1:25: undefined field 'ownerReferences'"},
      {"params must be in scope", "params.x == 1", Purpose::Condition,
       "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')"},
      {"variables must be in scope", "variables.x == 1", Purpose::Condition,
       "compilation failed: ERROR: <input>:1:1: undeclared reference to 'variables' (in container '')"},
  };
  for (const CompileCase& c : cases) {
    SCOPED_TRACE(c.what);
    Compiler compiler({});
    const Expression expression = compiler.compile(c.text, c.purpose);
    EXPECT_EQ(expression.program == nullptr, *c.problem != '\0');
    EXPECT_TRUE(expression.problem.starts_with(c.problem)) << expression.problem;
    if (*c.problem == '\0') EXPECT_EQ(expression.problem, "");
  }
}

TEST(Expressions, OnlySomeOfThousandsOfVariablesAreCompiled) {
  Compiler compiler({.variables = true, .params = true});
  for (int i = 0; i < 20'000; ++i) {
    const std::string problem =
        compiler.add_variable("v" + std::to_string(i), i == 0 ? "1" : "variables.v0 + 1").problem;
    EXPECT_EQ(problem.find("only 256 variables are possible") != std::string::npos, i >= 256) << i << problem;
  }
  EXPECT_EQ(compiler.compile("variables.v1 == variables.v19999", Purpose::Condition).problem, "");
}

TEST(Expressions, CanUseEarlierVariablesWithTheirTypes) {
  Compiler compiler({.variables = true, .params = true});
  EXPECT_EQ(compiler.add_variable("names", "object.items.map(i, string(i.name))").problem, "");
  EXPECT_EQ(compiler.add_variable("count", "variables.names.size() + params.more").problem, "");
  EXPECT_NE(compiler.add_variable("broken", "variables.later").problem.find("undefined field 'later'"),
            std::string::npos);
  EXPECT_EQ(compiler.add_variable("later", "1").problem, "");
  EXPECT_EQ(compiler.compile("variables.names == 1", Purpose::Condition).problem.substr(0, 80),
            "compilation failed: ERROR: <input>:1:17: found no matching overload for '_==_' a");
  // A variable that does not compile is dyn.
  EXPECT_EQ(compiler.compile("variables.broken == 1", Purpose::Condition).problem, "");
  EXPECT_EQ(compiler.compile("Object{metadata: Object.metadata{name: variables.names[0]}}", Purpose::ApplyConfiguration)
                .problem,
            "");
}

// --- Evaluation ---

class Evaluating : public ::testing::Test {
 protected:
  Evaluated run(std::string_view text, int64_t* budget = nullptr) {
    Compiler compiler(scope);
    for (const auto& [name, expression] : given) compiler.add_variable(name, expression);
    expression = compiler.compile(text, Purpose::Variable);
    variables = compiler.take_variables();
    Activation activation(arena, scope, variables, inputs);
    int64_t plenty = cel::kRuntimeBudget;
    std::optional<Evaluated> result = activation.evaluate(expression, budget != nullptr ? *budget : plenty);
    return result ? *result : Evaluated{cel::Val::null(), std::string(kOutOfBudget)};
  }

  Arena arena;
  Scope scope{.variables = true, .params = false};
  std::vector<std::pair<std::string, std::string>> given;
  Inputs inputs;
  Expression expression;
  std::vector<NamedExpression> variables;
};

TEST_F(Evaluating, ErrorNamesExpression) {
  EXPECT_EQ(run("object.spec.x").problem, "expression 'object.spec.x' resulted in error: no such key: spec");
}

TEST_F(Evaluating, VariableIsComputedOnceAndOnlyIfRead) {
  given = {{"unused", "1 / 0"}, {"answer", "40 + 2"}};
  int64_t once = cel::kRuntimeBudget, twice = cel::kRuntimeBudget;
  EXPECT_EQ(run("variables.answer", &once).value.as_int(), 42);
  EXPECT_EQ(run("variables.answer + variables.answer", &twice).value.as_int(), 84);
  // Reading it again costs the selection and the addition, but not the variable.
  EXPECT_LT(once - twice, (cel::kRuntimeBudget - once) * 2);
}

TEST_F(Evaluating, VariablesAreChargedToBudget) {
  given = {{"large", "lists.range(100).map(i, i)"}};
  int64_t budget = 50;
  EXPECT_EQ(run("variables.large.size() == 100", &budget).problem, kOutOfBudget);
  EXPECT_LT(budget, 0);
}

TEST_F(Evaluating, ErrorNamesVariable) {
  given = {{"wrong", "1 / int('0')"}};
  EXPECT_EQ(run("variables.wrong == 1").problem,
            "expression 'variables.wrong == 1' resulted in error: composited variable \"wrong\" fails to evaluate: "
            "division by zero");
}

TEST_F(Evaluating, LastVariableWithSameNameWins) {
  given = {{"x", "1"}, {"y", "variables.x"}, {"x", "2"}};
  EXPECT_EQ(run("variables.y").value.as_int(), 2);
  given = {{"x", "1"}, {"x", "variables.x + 1"}};
  EXPECT_NE(run("variables.x").problem.find("depends on itself"), std::string::npos);
}

// --- Match conditions ---

struct MatchCase {
  const char* what;
  std::vector<std::string> conditions;
  bool ignores_failure;
  bool matches;
  const char* problem;
};

TEST(MatchConditions, FalseOverridesErrorsElseFailurePolicyApplies) {
  const MatchCase cases[] = {
      {"no conditions", {}, false, true, ""},
      {"all are true", {"true", "1 < 2"}, false, true, ""},
      {"one is false", {"true", "1 > 2"}, false, false, ""},
      {"false wins over an error", {"object.a == 1", "false"}, false, false, ""},
      {"an error fails",
       {"true", "object.a == 1"},
       false,
       false,
       "expression 'object.a == 1' resulted in error: no such key: a"},
      {"an error is ignored", {"true", "object.a == 1"}, true, false, ""},
      {"errors are listed",
       {"object.a == 1", "object.b == 1"},
       false,
       false,
       "[expression 'object.a == 1' resulted in error: no such key: a, expression 'object.b == 1' resulted in error: "
       "no "
       "such key: b]"},
  };
  for (const MatchCase& c : cases) {
    SCOPED_TRACE(c.what);
    Arena arena;
    Compiler compiler({});
    std::vector<Expression> conditions;
    for (const std::string& text : c.conditions) conditions.push_back(compiler.compile(text, Purpose::Condition));
    const Value object = Value::empty_map();
    Inputs inputs;
    inputs.object = cel::Val::data(object);
    Activation activation(arena, {}, {}, inputs);
    const Matched matched = match(conditions, activation, c.ignores_failure);
    EXPECT_EQ(matched.matches, c.matches);
    EXPECT_EQ(matched.problem, c.problem);
  }
}

class SlowAuthorizer final : public cel::Authorizer {
 public:
  Decision decide(const Check&) override { return {true, "", std::nullopt}; }
};

TEST(MatchConditions, ShareOneBudget) {
  Arena arena;
  Compiler compiler({});
  const std::string check = "authorizer.path('/').check('get').allowed()";
  SlowAuthorizer authorizer;
  Inputs inputs;
  inputs.authorizer = &authorizer;
  // Each check costs 350,000 of 2,500,000.
  std::vector<Expression> conditions(7, compiler.compile(check, Purpose::Condition));
  Activation enough(arena, {}, {}, inputs);
  EXPECT_TRUE(match(conditions, enough, false).matches);
  conditions.push_back(conditions[0]);
  Activation too_much(arena, {}, {}, inputs);
  EXPECT_EQ(match(conditions, too_much, false).problem, kOutOfBudget);
}

}  // namespace
}  // namespace holdfast::expressions
