#include "policy/policy.h"

#include <gtest/gtest.h>

#include "codec/codec.h"

namespace holdfast::policy {
namespace {

PolicyRef policy(const std::string& yaml) {
  auto arena = std::make_unique<Arena>();
  Result<codec::Document> document = codec::parse_yaml(yaml);
  EXPECT_TRUE(document) << document.error().message;
  const Value object = deep_copy(*arena, document->root());
  return std::make_shared<Policy>(std::move(arena), object);
}
BindingRef binding(const std::string& name, const std::string& of) {
  auto arena = std::make_unique<Arena>();
  Result<Value> object = codec::decode_json(
      *arena, arena->copy("{\"metadata\":{\"name\":\"" + name + "\"},\"spec\":{\"policyName\":\"" + of + "\"}}"));
  return std::make_shared<Binding>(std::move(arena), *object);
}

// --- Index ---

struct Rule {
  const char* name;
  const char* groups;
  const char* resources;
  const char* operations;
  const char* match_policy = "Equivalent";
};
PolicyRef ruled(const Rule& rule) {
  return policy(std::string("metadata: {name: ") + rule.name + "}\nspec:\n  matchConstraints:\n    matchPolicy: " +
                rule.match_policy + "\n    resourceRules:\n    - {apiGroups: [" + rule.groups +
                "], apiVersions: ['*'], resources: [" + rule.resources + "], operations: [" + rule.operations + "]}\n");
}

class Indexed : public ::testing::Test {
 protected:
  void SetUp() override {
    const Rule rules[] = {
        {"a-all", "'*'", "'*'", "'*'"},
        {"b-configmaps", "''", "configmaps", "CREATE, UPDATE"},
        {"c-scale", "apps", "'*/scale'", "UPDATE"},
        {"d-everywhere", "'*'", "configmaps, secrets", "DELETE"},
        {"e-events", "events.k8s.io", "events", "CREATE"},
        {"f-exact-events", "events.k8s.io", "events", "CREATE", "Exact"},
        {"g-unbound", "''", "configmaps", "CREATE"},
    };
    std::vector<PolicyRef> policies;
    std::vector<BindingRef> bindings;
    for (const Rule& rule : rules) {
      policies.push_back(ruled(rule));
      if (policies.back()->name != "g-unbound") bindings.push_back(binding("of-" + policies.back()->name, rule.name));
    }
    bindings.push_back(binding("another", "b-configmaps"));
    bindings.push_back(binding("dangling", "nothing"));
    const Index::Alias aliases[] = {{{"", "events"}, {"events.k8s.io", "events"}}};
    index = Index::build(policies, bindings, aliases);
  }
  std::string found(webhook::Operation operation, GroupResource resource) {
    std::string names;
    for (const Index::Bound* bound : index->find(operation, resource)) {
      names += (names.empty() ? "" : " ") + bound->policy->name.substr(0, 1);
    }
    EXPECT_EQ(index->has_any(operation, resource), !names.empty());
    return names;
  }
  std::shared_ptr<const Index> index;
};

TEST_F(Indexed, FindsByOperationGroupAndResource) {
  using enum webhook::Operation;
  EXPECT_EQ(found(Create, {"", "configmaps"}), "a b");
  EXPECT_EQ(found(Delete, {"", "configmaps"}), "a d");
  EXPECT_EQ(found(Update, {"apps", "deployments"}), "a c");
  EXPECT_EQ(found(Create, {"apps", "deployments"}), "a");
  EXPECT_EQ(found(Delete, {"example.com", "secrets"}), "a d");
}

TEST_F(Indexed, FindsAliasedResources) {
  EXPECT_EQ(found(webhook::Operation::Create, {"events.k8s.io", "events"}), "a e f");
  EXPECT_EQ(found(webhook::Operation::Create, {"", "events"}), "a e");
}

TEST_F(Indexed, BindingsAreSortedByName) {
  const std::vector<const Index::Bound*> bound = index->find(webhook::Operation::Create, {"", "configmaps"});
  ASSERT_EQ(bound.size(), 2u);
  ASSERT_EQ(bound[1]->bindings.size(), 2u);
  EXPECT_EQ(bound[1]->bindings[0]->name, "another");
}

TEST(Index, EmptyIndexFindsNothing) {
  const std::shared_ptr<const Index> index = Index::build({}, {}, {});
  EXPECT_FALSE(index->has_any(webhook::Operation::Create, {"", "pods"}));
}

// --- Verdicts ---

class Permissive final : public cel::Authorizer {
 public:
  Decision decide(const Check&) override { return {true, "", std::nullopt}; }
};

class Judging : public ::testing::Test {
 protected:
  Verdict judged(const std::string& spec) {
    made = policy("metadata: {name: p}\nspec:\n" + spec);
    Result<codec::Document> document =
        codec::parse_yaml("metadata: {name: x, labels: {tier: low}}\nspec: {replicas: 7}");
    object = deep_copy(arena, document->root());
    Subject subject;
    subject.inputs.object = cel::Val::data(object);
    subject.inputs.authorizer = &authorizer;
    subject.original_request = subject.inputs.request;
    return judge(arena, *made, subject);
  }
  static std::string texts(const Verdict& verdict) {
    std::string all;
    for (const Failure& failure : verdict.failures) {
      all += std::to_string(failure.validation) + " " + failure.message +
             (failure.reason.empty() ? "" : " (" + failure.reason + ")") + "\n";
    }
    return all;
  }

  Arena arena;
  PolicyRef made;
  Value object;
  Permissive authorizer;
};

TEST_F(Judging, ReportsFailedValidationsWithMessages) {
  EXPECT_EQ(texts(judged(R"yaml(
  validations:
  - {expression: object.spec.replicas < 10}
  - {expression: "  object.spec.replicas < 3 "}
  - {expression: object.spec.replicas < 4, message: " too many "}
  - {expression: object.spec.replicas < 5, message: unused, messageExpression: "'have ' + string(object.spec.replicas)"}
  - {expression: object.spec.replicas < 6, reason: Forbidden, message: used, messageExpression: "'two\nlines'"}
  - {expression: object.spec.replicas < 6, message: fallback, messageExpression: "string(object.missing)"}
)yaml")),
            "1 failed expression: object.spec.replicas < 3\n"
            "2 too many\n"
            "3 have 7\n"
            "4 used (Forbidden)\n"
            "5 fallback\n");
}

TEST_F(Judging, ReportsErrorsUnlessIgnored) {
  const std::string validations = R"yaml(
  validations:
  - {expression: object.spec.missing == 1}
  - {expression: object.spec.replicas == 1, message: one}
)yaml";
  EXPECT_EQ(texts(judged("  failurePolicy: Fail" + validations)),
            "0 expression 'object.spec.missing == 1' resulted in error: no such key: missing\n1 one\n");
  EXPECT_EQ(texts(judged("  failurePolicy: Ignore" + validations)), "1 one\n");
}

TEST_F(Judging, ChecksMatchConditionsFirst) {
  const std::string validations = "  validations: [{expression: 'false', message: refused}]\n";
  EXPECT_EQ(texts(judged("  matchConditions: [{name: a, expression: object.spec.replicas > 7}]\n" + validations)), "");
  EXPECT_EQ(texts(judged("  matchConditions: [{name: a, expression: object.spec.replicas == 7}]\n" + validations)),
            "0 refused\n");
  EXPECT_EQ(texts(judged("  matchConditions: [{name: a, expression: object.x == 7}]\n" + validations)),
            "0 expression 'object.x == 7' resulted in error: no such key: x\n");
}

TEST_F(Judging, MessagesCanUseVariables) {
  EXPECT_EQ(texts(judged(R"yaml(
  variables:
  - {name: limit, expression: "3"}
  - {name: over, expression: object.spec.replicas - variables.limit}
  validations:
  - {expression: variables.over <= 0, messageExpression: "string(variables.over) + ' too many'"}
)yaml")),
            "0 4 too many\n");
}

TEST_F(Judging, StopsWhenBudgetIsExceeded) {
  // Eleven evaluations of nearly a million each.
  std::string spec = "  validations:\n";
  for (int i = 0; i < 11; ++i) {
    spec += "  - {expression: 'lists.range(160000).all(i, i >= 0)'}\n";
  }
  EXPECT_EQ(texts(judged(spec)), "0 " + std::string(expressions::kOutOfBudget) + "\n");
}

TEST_F(Judging, ReturnsAuditAnnotations) {
  const Verdict verdict = judged(R"yaml(
  auditAnnotations:
  - {key: count, valueExpression: "' ' + string(object.spec.replicas) + ' '"}
  - {key: none, valueExpression: "null"}
  - {key: empty, valueExpression: "''"}
  - {key: wrong, valueExpression: "string(object.missing)"}
)yaml");
  ASSERT_EQ(verdict.annotations.size(), 1u);
  EXPECT_EQ(verdict.annotations[0], (std::pair<std::string, std::string>("count", "7")));
  ASSERT_EQ(verdict.annotation_problems.size(), 1u);
  EXPECT_EQ(verdict.annotation_problems[0],
            "expression 'string(object.missing)' resulted in error: no such key: missing");
}

TEST_F(Judging, AuthorizerIsAvailableOnlyToValidations) {
  const Verdict verdict = judged(R"yaml(
  variables:
  - {name: may, expression: "authorizer.path('/').check('get').allowed()"}
  validations:
  - {expression: "variables.may"}
  - {expression: "!variables.may", message: fallback, messageExpression: "string(variables.may)"}
  auditAnnotations:
  - {key: direct, valueExpression: "string(authorizer.path('/').check('get').allowed())"}
)yaml");
  EXPECT_EQ(texts(verdict), "1 fallback\n");
  ASSERT_EQ(verdict.annotation_problems.size(), 1u);
  EXPECT_EQ(verdict.annotation_problems[0],
            "expression 'string(authorizer.path('/').check('get').allowed())' resulted in error: "
            "no such attribute(s): authorizer");
}

// --- Type checking ---

constexpr std::string_view kDocument = R"json({"components": {"schemas": {
  "meta": {"type": "object", "properties": {"name": {"type": "string"}}},
  "spec": {"type": "object", "properties": {
    "replicas": {"type": "integer", "format": "int32"},
    "port": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
    "nested": {"$ref": "#/components/schemas/spec"}}},
  "thing": {"type": "object", "properties": {
      "metadata": {"allOf": [{"$ref": "#/components/schemas/meta"}], "description": "x"},
      "spec": {"$ref": "#/components/schemas/spec"}},
    "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Thing"}]}
}}})json";

class TypeChecking : public ::testing::Test {
 protected:
  std::string warned(const std::string& spec) {
    Arena arena;
    Result<Value> document = codec::decode_json(arena, arena.copy(kDocument));
    EXPECT_TRUE(document);
    const std::vector<CheckedKind> kinds = {
        {"example.com", "v1", "Thing", schema_of(arena, *document, "example.com", "v1", "Thing")}};
    EXPECT_NE(kinds[0].types, nullptr);
    Result<codec::Document> policy = codec::parse_yaml("spec:\n" + spec);
    std::string all;
    for (const TypeWarning& warning : type_warnings(policy->root(), kinds, nullptr)) {
      all += warning.field + ": " + warning.warning;
    }
    return all;
  }
};

TEST_F(TypeChecking, FindsUndefinedFields) {
  EXPECT_EQ(
      warned(R"yaml(
  validations:
  - {expression: object.spec.replicas < 3 && object.metadata.name != ''}
  - {expression: object.spec.replica < 3, messageExpression: "object.metadata.nam"}
)yaml"),
      "spec.validations[1].expression: example.com/v1, Kind=Thing: ERROR: <input>:1:12: undefined field 'replica'\n"
      " | object.spec.replica < 3\n"
      " | ...........^\n"
      "spec.validations[1].messageExpression: example.com/v1, Kind=Thing: ERROR: <input>:1:16: undefined field "
      "'nam'\n"
      " | object.metadata.nam\n"
      " | ...............^\n");
}

TEST_F(TypeChecking, InfersTypesOfVariables) {
  EXPECT_EQ(
      warned(R"yaml(
  variables: [{name: count, expression: object.spec.replicas}]
  validations: [{expression: variables.count == 'many'}]
)yaml"),
      "spec.validations[0].expression: example.com/v1, Kind=Thing: ERROR: <input>:1:17: found no matching overload "
      "for '_==_' applied to '(int, string)'\n"
      " | variables.count == 'many'\n"
      " | ................^\n");
}

TEST_F(TypeChecking, HandlesRecursiveTypes) {
  EXPECT_EQ(warned("  validations: [{expression: 'object.spec.nested == object.spec.nested'}]"), "");
}

TEST(TypeCheckedResources, ExcludeWildcards) {
  Result<codec::Document> policy = codec::parse_yaml(R"yaml(
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [b, a], apiVersions: [v1], resources: [things, "*", things/status]}
    - {apiGroups: ["*"], apiVersions: [v1], resources: [others]}
    - {apiGroups: [c], apiVersions: ["*"], resources: [others]}
)yaml");
  const std::vector<CheckedResource> found = resources_to_check(policy->root());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].group + "/" + found[0].version + "/" + found[0].resource, "a/v1/things");
  EXPECT_EQ(found[1].group, "b");
}

}  // namespace
}  // namespace holdfast::policy
