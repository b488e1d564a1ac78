#include "cel/cel.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "codec/codec.h"

namespace holdfast::cel {
namespace {

// One row of table/*.txt:
//
//   expression
//     with {"x": 1}          variables, all dyn; every line is optional
//     mutation               the environment of mutating policies
//     value {"int": 2}       or `error TEXT`, or `compile TEXT` with \n for line breaks
//     type int
//     cost 3
//     estimate 3 3
struct Row {
  std::string expression, with = "{}", value, error, compile, type, cost, estimate;
  bool mutation = false;
  int line = 0;
};

std::string unescaped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == 'n' || text[i + 1] == '\\')) {
      out += text[++i] == 'n' ? '\n' : '\\';
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<Row> read_rows(const std::filesystem::path& file) {
  std::vector<Row> rows;
  std::ifstream in(file);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    if (!line.starts_with("  ")) {
      rows.emplace_back();
      rows.back().expression = unescaped(line);
      rows.back().line = number;
      continue;
    }
    const size_t space = line.find(' ', 2);
    const std::string key = line.substr(2, space - 2), rest = space == std::string::npos ? "" : line.substr(space + 1);
    Row& row = rows.back();
    if (key == "with")
      row.with = rest;
    else if (key == "mutation")
      row.mutation = true;
    else if (key == "value")
      row.value = rest;
    else if (key == "error")
      row.error = unescaped(rest);
    else if (key == "compile")
      row.compile = unescaped(rest);
    else if (key == "type")
      row.type = rest;
    else if (key == "cost")
      row.cost = rest;
    else if (key == "estimate")
      row.estimate = rest;
    else
      ADD_FAILURE() << file << ":" << number << ": " << line;
  }
  return rows;
}

void check_row(const Row& row) {
  Arena arena;
  const Result<Value> variables = codec::decode_json(arena, row.with);
  ASSERT_TRUE(variables);
  Environment::Options options;
  options.mutation = row.mutation;
  for (const Member& variable : variables->members())
    options.variables.push_back({std::string(variable.key), dyn_type()});
  const auto environment = Environment::make(std::move(options));
  const Environment::Compiled compiled = environment->compile(row.expression);
  if (!row.compile.empty() || compiled.program == nullptr) {
    EXPECT_EQ(compiled.error.text, row.compile);
    return;
  }
  Bindings bindings(*environment);
  for (size_t i = 0; i < variables->members().size(); ++i) bindings.set(i, Val::data(variables->members()[i].value));
  const Outcome outcome = compiled.program->evaluate(bindings, arena);
  const CostEstimate estimate = compiled.program->estimate();
  EXPECT_EQ(std::to_string(outcome.cost), row.cost);
  EXPECT_EQ(std::to_string(estimate.min) + " " + std::to_string(estimate.max), row.estimate);
  EXPECT_EQ(go_type_text(compiled.program->result_type()), row.type);
  if (!row.error.empty()) {
    ASSERT_TRUE(outcome.value.is_error()) << outcome.value.shown();
    EXPECT_EQ(outcome.value.text(), row.error);
  } else {
    const Result<Value> wanted = codec::decode_json(arena, row.value);
    ASSERT_TRUE(wanted) << row.value;
    const std::string shown = outcome.value.shown();
    const Result<Value> got = codec::decode_json(arena, shown);
    ASSERT_TRUE(got) << shown;
    EXPECT_TRUE(equal(*wanted, *got)) << shown << "\nwanted " << row.value;
  }
}

TEST(Cel, TableRowsHold) {
  size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator(HOLDFAST_SOURCE_DIR "/src/kube/cel/table")) {
    for (const Row& row : read_rows(file.path())) {
      SCOPED_TRACE(file.path().filename().string() + ":" + std::to_string(row.line) + ": " + row.expression);
      check_row(row);
      ++count;
    }
  }
  EXPECT_GE(count, 600u);
}

Outcome evaluate(std::string_view expression, Arena& arena, uint64_t limit = kPerCallLimit) {
  const auto environment = Environment::make({});
  const Environment::Compiled compiled = environment->compile(expression);
  EXPECT_NE(compiled.program, nullptr) << compiled.error.text;
  return compiled.program->evaluate(Bindings(*environment), arena, limit);
}

TEST(Cel, EvaluationStopsAtTheCostLimit) {
  Arena arena;
  const Outcome outcome = evaluate("lists.range(1000).all(i, lists.range(1000).all(j, i * j >= 0))", arena, 5000);
  ASSERT_TRUE(outcome.value.is_error());
  EXPECT_EQ(outcome.value.text(), kCostLimitExceeded);
  EXPECT_LT(outcome.cost, 10'000u);
}

// Of an expression about two texts of the user, which are long.
Val about_texts(std::string_view expression, const std::string& a, const std::string& b, Arena& arena) {
  const auto environment = Environment::make({.variables = {{"a", string_type()}, {"b", string_type()}}});
  const Environment::Compiled compiled = environment->compile(expression);
  EXPECT_NE(compiled.program, nullptr) << compiled.error.text;
  Bindings bindings(*environment);
  bindings.set(0, Val::string(a));
  bindings.set(1, Val::string(b));
  return compiled.program->evaluate(bindings, arena, kPerCallLimit).value;
}

TEST(Cel, ResultsAreLimitedWhateverTheyCost) {
  const std::string long_text(100'000, 'a');
  for (const char* expression : {"a.replace('a', b) == ''", "a.replace('', b) == ''",
                                 "'%.999999999f'.format([1.5]) == ''", "'%.999999999e'.format([1.5]) == ''"}) {
    Arena arena;
    const Val value = about_texts(expression, long_text, long_text, arena);
    ASSERT_TRUE(value.is_error()) << expression;
    EXPECT_EQ(value.text(), kCostLimitExceeded) << expression;
    EXPECT_LT(arena.reserved_bytes(), size_t{1} << 20) << expression;
  }
  Arena arena;
  EXPECT_TRUE(about_texts("a.replace('a', 'bb').size() == 200000", long_text, "", arena).is_true());
}

TEST(Cel, FunctionsThatCostLittleReadNoMoreThanTheirShare) {
  const std::string long_text(1'000'000, 'a');
  for (const char* expression :
       {"lists.range(10000).all(i, a.charAt(999999 - i) == 'a')", "lists.range(10000).all(i, size(a) > i)"}) {
    Arena arena;
    const Val value = about_texts(expression, long_text, "", arena);
    ASSERT_TRUE(value.is_error()) << expression;
    EXPECT_EQ(value.text(), kCostLimitExceeded) << expression;
  }
  // Ten times are for free.
  Arena arena;
  EXPECT_TRUE(about_texts("lists.range(10).all(i, a.charAt(999999 - i) == 'a')", long_text, "", arena).is_true());
}

TEST(Cel, PartsOfTextsAreFoundInLinearTime) {
  // Comparing the part at each place would take minutes.
  const std::string text(400'000, 'a'), part = std::string(200'000, 'a') + "b";
  Arena arena;
  for (const char* expression :
       {"a.indexOf(b) == -1", "a.lastIndexOf(b) == -1", "a.split(b).size() == 1", "a.replace(b, 'x') == a",
        "(a + b + a).indexOf(b) == 400000", "(a + b + a).lastIndexOf(b) == 400000",
        "(b + a).lastIndexOf('b') == 200000", "'äöüäöü'.indexOf('öü') == 1", "'äöüäöü'.lastIndexOf('öü') == 4",
        "'äöüäöü'.lastIndexOf('öü', 3) == 1", "'abcabc'.indexOf('abc', 1) == 3", "'abab'.lastIndexOf('abc') == -1",
        "'aabaab'.lastIndexOf('aab', 2) == 0"}) {
    EXPECT_TRUE(about_texts(expression, text, part, arena).is_true()) << expression;
  }
}

TEST(Cel, QueriesHaveAnyNumberOfParameters) {
  std::string url = "http://x/?";
  for (int i = 0; i < 50'000; ++i) url += "k" + std::to_string(i % 40'000) + "=" + std::to_string(i) + "&";
  Arena arena;
  EXPECT_TRUE(about_texts("url(a).getQuery().size() == 40000", url, "", arena).is_true());
  EXPECT_TRUE(about_texts("url(a).getQuery()['k1'] == ['1', '40001']", url, "", arena).is_true());
}

TEST(Cel, RepeatedConcatenationSharesMemory) {
  std::string expression = "[1, 2]";
  for (int i = 0; i < 40; ++i) expression = "optional.of(" + expression + ").optMap(x, x + x).value()";
  Arena arena;
  const auto environment = Environment::make({});
  // optMap copies its target, so this many levels are rejected; the following shares the halves.
  EXPECT_EQ(environment->compile(expression).program, nullptr);
  std::string chain = "size(a40)";
  for (int i = 40; i > 0; --i) {
    const std::string from = "a" + std::to_string(i - 1);
    chain = "[" + from + " + " + from + "].all(a" + std::to_string(i) + ", " + chain + (i == 40 ? " > 0" : "") + ")";
  }
  const Outcome outcome = evaluate("[[1, 2]].all(a0, " + chain + ")", arena);
  EXPECT_TRUE(outcome.value.is_true());
  EXPECT_LT(arena.reserved_bytes(), size_t{4} << 20);
}

TEST(Cel, DeepNestingIsRejected) {
  const auto environment = Environment::make({});
  const std::string deep = std::string(300, '(') + "1" + std::string(300, ')');
  EXPECT_EQ(environment->compile(deep).error.text, "ERROR: <input>:-1:0: expression recursion limit exceeded: 250");
  std::string sum = "1";
  for (int i = 0; i < 1000; ++i) sum += " + 1";
  EXPECT_EQ(environment->compile(sum).error.text, "ERROR: <input>:-1:0: expression recursion limit exceeded: 250");
}

TEST(Cel, NamesAreEscapedAndUnescaped) {
  for (const auto& [property, name] : {std::pair<std::string, std::string>{"plain", "plain"},
                                       {"a-b", "a__dash__b"},
                                       {"a.b/c", "a__dot__b__slash__c"},
                                       {"a__b", "a__underscores__b"},
                                       {"namespace", "__namespace__"},
                                       {"in", "__in__"}}) {
    EXPECT_EQ(escape_name(property), name);
    EXPECT_EQ(unescape_name(name), property);
  }
  EXPECT_EQ(escape_name("1a"), std::nullopt);
  EXPECT_EQ(escape_name("a b"), std::nullopt);
  EXPECT_EQ(unescape_name("a__nothing__"), std::nullopt);
}

class Yes final : public Authorizer {
 public:
  Decision decide(const Check& check) override {
    asked = std::string(check.verb) + " " + std::string(check.group) + "/" + std::string(check.resource) + " in " +
            std::string(check.namespace_name) + " as " + std::string(check.service_account_name);
    return {check.verb == "get", "because", std::nullopt};
  }
  std::string asked;
};

TEST(Cel, AuthorizerReceivesAttributesOfExpression) {
  Environment::Options options;
  options.variables = {{"authorizer", authorizer_type()}, {"authorizer.requestResource", resource_check_type()}};
  const auto environment = Environment::make(std::move(options));
  Yes yes;
  Arena arena;
  Bindings bindings(*environment);
  bindings.set(0, Val::authorizer(arena, yes));
  bindings.set(1, Val::resource_check(arena, yes, {"apps", "deployments", "", "web", "a"}));
  const auto run = [&](std::string_view expression) {
    const auto compiled = environment->compile(expression);
    EXPECT_NE(compiled.program, nullptr) << compiled.error.text;
    return compiled.program->evaluate(bindings, arena);
  };
  Outcome outcome =
      run("authorizer.serviceAccount('ns', 'sa').group('g').resource('r').namespace('n').check('get').allowed()");
  EXPECT_TRUE(outcome.value.is_true());
  EXPECT_EQ(yes.asked, "get g/r in n as sa");
  EXPECT_EQ(outcome.cost, 350'006u);
  outcome = run("authorizer.requestResource.check('delete').reason()");
  EXPECT_EQ(outcome.value.text(), "because");
  EXPECT_EQ(yes.asked, "delete apps/deployments in web as ");
}

TEST(DeviceSelectors, CanUseDeviceAndBind) {
  const auto type = [](std::string_view expression) {
    const auto compiled = device_selectors().compile(expression);
    return compiled.program == nullptr ? compiled.error.text : go_type_text(compiled.program->result_type());
  };
  EXPECT_EQ(type("device.allowMultipleAllocations"), "bool");
  EXPECT_EQ(type("device.attributes['d'].x"), "google.protobuf.Any");
  EXPECT_EQ(type("device.capacity['d'].memory.isGreaterThan(quantity('1Gi'))"), "bool");
  EXPECT_EQ(type("cel.bind(v, device.driver, v.size())"), "int");
  EXPECT_NE(type("device.attributes['d'].x.all(y, true)")
                .find("expression of type 'any' cannot be range of a comprehension (must be list, map, or dynamic)"),
            std::string::npos);
  EXPECT_NE(type("cel.bind(1, 2, 3)").find("cel.bind() variable names must be simple identifiers"), std::string::npos);
  // Other environments have no cel.bind().
  EXPECT_EQ(Environment::make({})->compile("cel.bind(v, 1, v)").program, nullptr);
}

// --- Rules of schemas ---

std::vector<std::string> failures(std::string_view schema, std::string_view object, std::string_view old = {}) {
  Arena arena;
  const auto rules = SchemaRules::compile(*codec::decode_json(arena, schema));
  const Value self = *codec::decode_json(arena, object);
  const Value before = old.empty() ? Value::null() : *codec::decode_json(arena, old);
  int64_t budget = kRuntimeBudget;
  std::vector<std::string> texts;
  for (const auto& failure : rules->validate(arena, self, old.empty() ? nullptr : &before, budget, true))
    texts.push_back((failure.ratcheted ? "warning: " : "") + failure.text());
  return texts;
}
using Texts = std::vector<std::string>;

TEST(SchemaRules, FailureNamesItsPath) {
  const std::string_view schema = R"({"type":"object","properties":{"spec":{"type":"object","properties":{
      "list":{"type":"array","items":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 1"}]}},
      "a-b":{"type":"string"}},
      "x-kubernetes-validations":[{"rule":"self.a__dash__b != 'x'","message":"no x","fieldPath":".a-b",
                                   "reason":"FieldValueForbidden"}]}}})";
  EXPECT_EQ(failures(schema, R"({"spec":{"list":[1,2],"a-b":"x"}})"),
            (Texts{"spec.a-b: Forbidden: no x", "spec.list[0]: Invalid value: 1: failed rule: self > 1"}));
}

TEST(SchemaRules, TypesAreNamedRelativeToRule) {
  const std::string_view schema = R"({"type":"object","properties":{"a-b":{"type":"array","items":{"type":"object",
      "properties":{"c":{"type":"object","properties":{"d":{"type":"string"}}}}},
      "x-kubernetes-validations":[{"rule":"self[0].c + self[0]"}]},"m":{"type":"object","additionalProperties":{
      "type":"object","properties":{"e":{"type":"string"}},"x-kubernetes-validations":[{"rule":"!self"}]}}}})";
  Arena arena;
  const auto rules = SchemaRules::compile(*codec::decode_json(arena, schema));
  ASSERT_EQ(rules->rules().size(), 2u);
  EXPECT_NE(rules->rules()[0].problem.find("'(selfType.@idx.c, selfType.@idx)'"), std::string::npos)
      << rules->rules()[0].problem;
  EXPECT_NE(rules->rules()[1].problem.find("'(selfType)'"), std::string::npos) << rules->rules()[1].problem;
}

TEST(SchemaRules, TransitionRulesRunOnlyWithOldValue) {
  const std::string_view schema = R"({"type":"object","properties":{"m":{"type":"array","x-kubernetes-list-type":"map",
      "x-kubernetes-list-map-keys":["k"],"items":{"type":"object","properties":{"k":{"type":"string"},
      "v":{"type":"integer"}},"x-kubernetes-validations":[{"rule":"self.v >= oldSelf.v","message":"must not shrink"}]}}}})";
  EXPECT_EQ(failures(schema, R"({"m":[{"k":"a","v":1}]})"), Texts{});
  EXPECT_EQ(failures(schema, R"({"m":[{"k":"b","v":1},{"k":"a","v":1}]})", R"({"m":[{"k":"a","v":2}]})"),
            Texts{"m[1]: Invalid value: must not shrink"});
}

TEST(SchemaRules, UnchangedValueIsAWarning) {
  const std::string_view schema = R"({"type":"object","properties":{"n":{"type":"integer",
      "x-kubernetes-validations":[{"rule":"self > 5"}]},"o":{"type":"integer"}}})";
  EXPECT_EQ(failures(schema, R"({"n":1,"o":2})", R"({"n":1,"o":1})"),
            Texts{"warning: n: Invalid value: 1: failed rule: self > 5"});
  EXPECT_EQ(failures(schema, R"({"n":1})", R"({"n":2})"), Texts{"n: Invalid value: 1: failed rule: self > 5"});
}

}  // namespace
}  // namespace holdfast::cel
