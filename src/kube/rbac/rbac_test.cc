#include "rbac/rbac.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/limits.h"
#include "codec/codec.h"

namespace holdfast::rbac {
namespace {

// What the rules say, without regard to which objects they are.
std::vector<std::vector<Rule>> contents(const std::vector<RulesRef>& roles) {
  std::vector<std::vector<Rule>> all;
  for (const RulesRef& role : roles) all.push_back(*role);
  return all;
}

struct Fixture : testing::Test {
  Arena arena;
  Index::Objects roles, cluster_roles, role_bindings, cluster_role_bindings;
  Value parse(const char* json) {
    const auto value = codec::decode_json(arena, json);
    EXPECT_TRUE(value) << json;
    return value ? *value : Value();
  }
  // Of text that need not outlive the value.
  Value parse_copy(const std::string& json) {
    const auto value = codec::decode_json(arena, arena.copy(json));
    EXPECT_TRUE(value) << json;
    return value ? *value : Value();
  }
  std::vector<Rule> rules(const char* json) {
    const Value value = parse(json);
    return rules_from(&value);
  }
  auth::Attributes get(const auth::UserInfo& user, std::string_view resource, std::string_view ns,
                       std::string_view name = "", std::string_view sub = "") {
    return {&user, "get", {.resource = resource, .subresource = sub, .ns = ns, .name = name}};
  }
};
using RbacTest = Fixture;

TEST_F(RbacTest, ABindingAllowsInItsNamespaceAndTheReasonNamesIt) {
  roles["dev/reader"] = parse(
      R"({"metadata":{"name":"reader","namespace":"dev"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods","pods/log"]}]})");
  role_bindings["dev/readers"] = parse(
      R"({"metadata":{"name":"readers","namespace":"dev"},"roleRef":{"kind":"Role","name":"reader"},"subjects":[{"kind":"Group","name":"devs"}]})");
  const auto index = Index::build(roles, cluster_roles, role_bindings, cluster_role_bindings);
  const auth::UserInfo ann{.name = "ann", .groups = {"devs"}}, bob{.name = "bob"};
  EXPECT_EQ(index->authorize(get(ann, "pods", "dev")).reason,
            R"(RBAC: allowed by RoleBinding "readers/dev" of Role "reader" to Group "devs")");
  EXPECT_TRUE(index->authorize(get(ann, "pods", "dev", "p", "log")).allowed());
  EXPECT_FALSE(index->authorize(get(ann, "pods", "dev", "p", "exec")).allowed());
  EXPECT_FALSE(index->authorize(get(ann, "pods", "prod")).allowed());
  EXPECT_FALSE(index->authorize(get(ann, "secrets", "dev")).allowed());
  EXPECT_FALSE(index->authorize(get(bob, "pods", "dev")).allowed());
}

TEST_F(RbacTest, ClusterBindingsApplyEverywhereAndResourceNamesRestrictThem) {
  cluster_roles["/one"] = parse(
      R"({"metadata":{"name":"one"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["mine"]},{"verbs":["get"],"nonResourceURLs":["/metrics","/healthz/*"]},{"verbs":["*"],"apiGroups":["*"],"resources":["*/scale"]}]})");
  cluster_role_bindings["/b"] = parse(
      R"({"metadata":{"name":"b"},"roleRef":{"kind":"ClusterRole","name":"one"},"subjects":[{"kind":"ServiceAccount","name":"sa","namespace":"ns"}]})");
  const auto index = Index::build(roles, cluster_roles, role_bindings, cluster_role_bindings);
  const auth::UserInfo account{.name = "system:serviceaccount:ns:sa"};
  EXPECT_TRUE(index->authorize(get(account, "secrets", "x", "mine")).allowed());
  EXPECT_FALSE(index->authorize(get(account, "secrets", "x", "other")).allowed());
  EXPECT_FALSE(index->authorize(get(account, "secrets", "x")).allowed());
  EXPECT_TRUE(index->authorize(get(account, "deployments", "x", "d", "scale")).allowed());
  auth::Attributes path(&account, "get", "/healthz/etcd");
  EXPECT_TRUE(index->authorize(path).allowed());
  path.path = "/metricsx";
  EXPECT_FALSE(index->authorize(path).allowed());
}

TEST_F(RbacTest, ABindingToAMissingRoleGrantsNothing) {
  cluster_role_bindings["/b"] = parse(
      R"({"metadata":{"name":"b"},"roleRef":{"kind":"ClusterRole","name":"gone"},"subjects":[{"kind":"User","name":"ann"}]})");
  const auto index = Index::build(roles, cluster_roles, role_bindings, cluster_role_bindings);
  const auth::UserInfo ann{.name = "ann"};
  const auth::Decision decision = index->authorize(get(ann, "pods", "dev"));
  EXPECT_FALSE(decision.allowed());
  EXPECT_EQ(decision.reason, R"(RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found)");
}

TEST_F(RbacTest, OnlySomeOfThousandsOfMissingRolesAreNamed) {
  for (int i = 0; i < 1000; ++i) {
    const std::string name = std::to_string(1000 + i);
    role_bindings["dev/b" + name] =
        parse_copy(R"({"metadata":{"name":"b)" + name + R"(","namespace":"dev"},"roleRef":{"kind":"Role","name":"r)" +
                   name + R"("},"subjects":[{"kind":"Group","name":"all"}]})");
  }
  const auto index = Index::build(roles, cluster_roles, role_bindings, cluster_role_bindings);
  const auth::UserInfo ann{.name = "ann", .groups = {"all"}};
  const std::string reason = index->authorize(get(ann, "pods", "dev")).reason;
  EXPECT_TRUE(reason.starts_with(R"(RBAC: [role.rbac.authorization.k8s.io "r1000" not found, )")) << reason;
  EXPECT_EQ(std::count(reason.begin(), reason.end(), ','), kMissingRoles - 1);
  std::string problem;
  EXPECT_TRUE(index->rules_for(ann, "dev", &problem).empty());
  EXPECT_EQ("RBAC: " + problem, reason);
}

TEST_F(RbacTest, LongNamesOfMissingRolesAreNotAllNamed) {
  for (int i = 0; i < 20; ++i) {
    const std::string name = std::to_string(10 + i) + std::string(20'000, 'x');
    cluster_role_bindings["/b" + name] =
        parse_copy(R"({"metadata":{"name":"b)" + name + R"("},"roleRef":{"kind":"ClusterRole","name":")" + name +
                   R"("},"subjects":[{"kind":"User","name":"ann"}]})");
  }
  const auto index = Index::build(roles, cluster_roles, role_bindings, cluster_role_bindings);
  EXPECT_LT(index->authorize(get({.name = "ann"}, "pods", "dev")).reason.size(), kMissingRoleBytes + 30'000);
}

TEST_F(RbacTest, AUserBoundToARoleAThousandTimesHoldsItsRulesOnce) {
  roles["dev/r"] = parse(
      R"({"metadata":{"name":"r","namespace":"dev"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})");
  for (int i = 0; i < 1000; ++i) {
    const std::string name = std::to_string(1000 + i);
    role_bindings["dev/b" + name] = parse_copy(R"({"metadata":{"name":"b)" + name +
                                               R"(","namespace":"dev"},"roleRef":{"kind":"Role","name":"r"},)"
                                               R"("subjects":[{"kind":"User","name":"ann"}]})");
  }
  const auto index = Index::build(roles, cluster_roles, role_bindings, cluster_role_bindings);
  const auth::UserInfo ann{.name = "ann"};
  EXPECT_EQ(index->rules_for(ann, "dev").size(), 1u);
  EXPECT_EQ(texts_in(index->rules_for(ann, "dev")), 3u);
  const auth::Decision decision = index->authorize(get(ann, "pods", "dev"));
  EXPECT_EQ(decision.reason, R"(RBAC: allowed by RoleBinding "b1000/dev" of Role "r" to User "ann")");
  EXPECT_FALSE(index->authorize(get(ann, "secrets", "dev")).allowed());
}

TEST_F(RbacTest, AnEditedIndexDecidesLikeANewOne) {
  // Random changes to few names, so that most of them replace, remove or miss something.
  uint32_t state = 1;
  const auto random = [&state](uint32_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
  };
  const auto name = [&](const char* prefix, uint32_t below) { return prefix + std::to_string(random(below)); };
  const auto subject = [&]() -> std::string {
    switch (random(3)) {
      case 0:
        return R"({"kind":"User","name":")" + name("u", 3) + "\"}";
      case 1:
        return R"({"kind":"Group","name":")" + name("g", 3) + "\"}";
      default:
        return R"({"kind":"ServiceAccount","namespace":")" + name("n", 2) + R"(","name":")" + name("s", 2) + "\"}";
    }
  };
  std::shared_ptr<const Index> edited;
  for (int round = 0; round < 400; ++round) {
    Index::Edit edit(edited);
    for (uint32_t changes = random(4); changes > 0; --changes) {
      const auto kind = static_cast<Kind>(random(4));
      const bool is_role = kind == Kind::Role || kind == Kind::ClusterRole;
      const bool is_namespaced = kind == Kind::Role || kind == Kind::RoleBinding;
      const std::string ns = is_namespaced ? name("n", 2) : "", object = name("o", 4), key = ns + "/" + object;
      Index::Objects& all = kind == Kind::Role          ? roles
                            : kind == Kind::ClusterRole ? cluster_roles
                            : kind == Kind::RoleBinding ? role_bindings
                                                        : cluster_role_bindings;
      if (random(4) == 0) {
        edit.erase(kind, key);
        all.erase(key);
        continue;
      }
      std::string text = R"({"metadata":{"name":")" + object + R"(","namespace":")" + ns + R"("},)";
      if (is_role) {
        text += R"("rules":[{"verbs":["get"],"apiGroups":[""],"resources":[")" + name("r", 3) + R"("]}]})";
      } else {
        const char* const role_kind = is_namespaced && random(2) == 0 ? "Role" : "ClusterRole";
        text +=
            R"("roleRef":{"kind":")" + std::string(role_kind) + R"(","name":")" + name("o", 4) + R"("},"subjects":[)";
        for (uint32_t subjects = random(5), i = 0; i < subjects; ++i) text += (i > 0 ? "," : "") + subject();
        text += "]}";
      }
      all[key] = parse_copy(text);
      edit.put(kind, key, all[key]);
    }
    edited = edit.build();
    const auto made = Index::build(roles, cluster_roles, role_bindings, cluster_role_bindings);
    const auto compare = [&](const auth::UserInfo& user, std::string_view ns) {
      for (const char* resource : {"r0", "r1", "r2"}) {
        const auth::Decision decision = edited->authorize(get(user, resource, ns));
        const auth::Decision expected = made->authorize(get(user, resource, ns));
        ASSERT_EQ(decision.allowed(), expected.allowed());
        ASSERT_EQ(decision.reason, expected.reason);
      }
      std::string problem, expected_problem;
      ASSERT_EQ(contents(edited->rules_for(user, ns, &problem)),
                contents(made->rules_for(user, ns, &expected_problem)));
      ASSERT_EQ(problem, expected_problem);
    };
    for (const char* ns : {"", "n0", "n1"}) {
      compare({.name = "u0", .groups = {"g0", "g1"}}, ns);
      compare({.name = "u1", .groups = {"g2"}}, ns);
      compare({.name = "system:serviceaccount:n0:s1"}, ns);
    }
  }
}

TEST_F(RbacTest, WhatChangesNoDecisionChangesNoIndex) {
  const Value role = parse(R"({"metadata":{"name":"r"},"rules":[{"verbs":["get"]}]})");
  const Value labelled = parse(R"({"metadata":{"name":"r","labels":{"a":"b"}},"rules":[{"verbs":["get"]}]})");
  Index::Edit first(nullptr);
  first.put(Kind::Role, "dev/r", role);
  const auto index = first.build();
  Index::Edit second(index);
  second.put(Kind::Role, "dev/r", labelled);
  second.erase(Kind::RoleBinding, "dev/none");
  EXPECT_EQ(second.build(), index);
  Index::Edit third(index);
  third.erase(Kind::Role, "dev/r");
  const auto without = third.build();
  EXPECT_NE(without, index);
  EXPECT_TRUE(index->rules_of("Role", "dev", "r"));
  EXPECT_FALSE(without->rules_of("Role", "dev", "r"));
}

TEST_F(RbacTest, MissingPermissionsAreListed) {
  const auto held = rules(R"([{"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]}])");
  const auto wanted = rules(R"([{"verbs":["get","delete","watch"],"apiGroups":[""],"resources":["pods"]}])");
  std::vector<Rule> missing;
  EXPECT_TRUE(covers(held, held));
  EXPECT_FALSE(covers(held, wanted, &missing));
  EXPECT_EQ(
      escalation_error({.name = "ann", .groups = {"devs"}}, "roles.rbac.authorization.k8s.io", "r", missing).message,
      "roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"ann\" (groups=[\"devs\"]) is attempting to grant "
      "RBAC permissions not currently held:\n"
      "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\" \"watch\"]}");
  const auto all =
      rules(R"([{"verbs":["*"],"apiGroups":["*"],"resources":["*"]},{"verbs":["*"],"nonResourceURLs":["*"]}])");
  EXPECT_TRUE(covers(all, wanted));
}

TEST_F(RbacTest, CoverageOfAMillionCombinationsIsComputedPerClass) {
  Rule large;
  for (int i = 0; i < 100; ++i) {
    large.verbs.push_back("v" + std::to_string(i));
    large.groups.push_back("g" + std::to_string(i));
    large.resources.push_back("r" + std::to_string(i));
  }
  EXPECT_TRUE(covers({large}, {large}));
  // The two halves together cover the whole; with one combination removed they do not.
  Rule first = large, second = large;
  first.verbs.resize(50);
  second.verbs.erase(second.verbs.begin(), second.verbs.begin() + 50);
  EXPECT_TRUE(covers({first, second}, {large}));
  second.resources.pop_back();
  std::vector<Rule> missing;
  EXPECT_FALSE(covers({first, second}, {large}, &missing));
  EXPECT_EQ(missing.size(), limits::kMissingRules);
  EXPECT_EQ(missing.front(), (Rule{{"v50"}, {"g0"}, {"r99"}, {}, {}}));
  missing.clear();
  EXPECT_FALSE(covers(std::vector<Rule>(), {large}, &missing));
  EXPECT_EQ(missing.size(), limits::kMissingRules);
}

TEST_F(RbacTest, RulesWithTooManyCombinationsCountAsNotHeld) {
  // Each value is covered by a different rule, so that every value is a class of its own.
  constexpr size_t kTexts = 33;
  static_assert(kTexts * kTexts * kTexts * kTexts > limits::kRuleCombinations);
  Rule wanted;
  std::vector<Rule> held;
  for (size_t i = 0; i < kTexts; ++i) {
    const std::string text = "t" + std::to_string(i);
    for (auto* column : {&wanted.verbs, &wanted.groups, &wanted.resources, &wanted.names}) column->push_back(text);
    held.push_back({{text}, {text}, {text}, {text}, {}});
  }
  std::vector<Rule> missing;
  EXPECT_FALSE(covers(held, {wanted}, &missing));
  EXPECT_EQ(missing.size(), 1u);
  held.push_back(wanted);  // Covers everything by itself.
  EXPECT_TRUE(covers(held, {wanted}));
}

TEST_F(RbacTest, ThousandsOfRulesAreFoundByWhatDistinguishesThem) {
  constexpr int kCount = 5000;
  for (int distinct = 0; distinct < 5; ++distinct) {
    SCOPED_TRACE(distinct);
    std::vector<Rule> rules;
    for (int i = 0; i < kCount; ++i) {
      rules.push_back({{"get"}, {""}, {"pods"}, {"n"}, {}});
      if (distinct == 4) rules.back() = {{"get"}, {}, {}, {}, {"/x"}};
      std::vector<std::string>* const columns[] = {&rules.back().verbs, &rules.back().groups, &rules.back().resources,
                                                   &rules.back().names, &rules.back().paths};
      *columns[distinct] = {"t" + std::to_string(i)};
    }
    static_assert(uint64_t{kCount} * kCount * 4 > kCoverageSteps);  // Too many for comparing each with each.
    EXPECT_TRUE(covers(rules, rules));
    std::vector<Rule> wanted = {rules[7]}, missing;
    rules.erase(rules.begin() + 7);
    EXPECT_FALSE(covers(rules, wanted, &missing));
    EXPECT_EQ(missing, wanted);
  }
}

TEST_F(RbacTest, WhatTakesTooManyComparisonsCountsAsNotHeld) {
  // Half of them have a verb in common, the other half a resource: neither distinguishes them.
  std::vector<Rule> rules;
  for (int i = 0; i < 4000; ++i) {
    const std::string text = "t" + std::to_string(i);
    rules.push_back({{"get"}, {""}, {text}, {}, {}});
    rules.push_back({{text}, {""}, {"pods"}, {}, {}});
  }
  const std::vector<Rule> wanted(4000, Rule{{"get"}, {""}, {"pods"}, {}, {}});
  std::vector<Rule> missing;
  EXPECT_FALSE(covers(rules, wanted, &missing));
  EXPECT_EQ(missing.front(), wanted.front());
  // Nor can any number of texts be compared with anything.
  const Rule one = {{"get"}, {""}, {"pods"}, {"n"}, {}};
  std::vector<Rule> held;
  for (int i = 0; i < 11; ++i) {
    held.push_back({{"get"}, {""}, {"secrets"}, std::vector<std::string>(kHeldTexts / 10, "n"), {}});
  }
  held.push_back(one);
  EXPECT_FALSE(covers(held, {one}));
  // Rules with other verbs are not compared.
  for (Rule& rule : held) rule.verbs = {rule.resources[0] == "pods" ? "get" : "list"};
  EXPECT_TRUE(covers(held, {one}));
  // Who may do everything needs no comparison.
  rules.push_back({{"*"}, {"*"}, {"*"}, {}, {}});
  EXPECT_TRUE(covers(rules, wanted));
  const std::vector<Rule> paths = {{{"get"}, {}, {}, {}, {"/a", "/b/c"}}};
  EXPECT_FALSE(covers(rules, paths));
  rules.push_back({{"*"}, {}, {}, {}, {"*"}});
  EXPECT_TRUE(covers(rules, paths));
}

TEST_F(RbacTest, WhatIsMissingIsToldInAMegabyte) {
  Rule wanted = {{std::string(100'000, 'v')}, {""}, {}, {}, {}};
  for (int i = 0; i < 1000; ++i) wanted.resources.push_back("r" + std::to_string(i));
  std::vector<Rule> missing;
  EXPECT_FALSE(covers(std::vector<Rule>(), {wanted}, &missing));
  EXPECT_LT(escalation_error({.name = "ann"}, "roles.rbac.authorization.k8s.io", "r", missing).message.size(),
            limits::kReportedBytes + 200'000);
  missing.clear();
  wanted = {{std::string(100'000, 'v')}, {}, {}, {}, wanted.resources};
  EXPECT_FALSE(covers(std::vector<Rule>(), {wanted}, &missing));
  EXPECT_LT(missing.size(), 20u);
}

TEST_F(RbacTest, PathsAreCoveredByEqualPathsAndByPatterns) {
  const auto held = rules(R"([{"verbs":["get"],"nonResourceURLs":["/a","/b/*"]}])");
  EXPECT_TRUE(covers(held, rules(R"([{"verbs":["get"],"nonResourceURLs":["/a","/b/c","/b/*"]}])")));
  EXPECT_FALSE(covers(held, rules(R"([{"verbs":["get"],"nonResourceURLs":["/a/b"]}])")));
  EXPECT_FALSE(covers(held, rules(R"([{"verbs":["get"],"nonResourceURLs":["*"]}])")));
}

TEST_F(RbacTest, ResourceNamesAreCoveredIndividuallyOrByAnUnrestrictedRule) {
  const auto named = rules(R"([{"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["a","b"]}])");
  const auto any = rules(R"([{"verbs":["get"],"apiGroups":[""],"resources":["secrets"]}])");
  const auto one = rules(R"([{"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["a"]}])");
  const auto other = rules(R"([{"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["b"]}])");
  EXPECT_TRUE(covers(any, named));
  EXPECT_FALSE(covers(named, any));
  EXPECT_FALSE(covers(one, named));
  EXPECT_TRUE(covers({one[0], other[0]}, named));
}

TEST_F(RbacTest, AggregationIsTheUnionOfTheSelectedRoles) {
  cluster_roles["/a"] = parse(
      R"({"metadata":{"name":"a","labels":{"to":"x"}},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})");
  cluster_roles["/b"] = parse(
      R"({"metadata":{"name":"b","labels":{"to":"x"}},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]},{"verbs":["list"],"apiGroups":[""],"resources":["pods"]}]})");
  cluster_roles["/c"] =
      parse(R"({"metadata":{"name":"c"},"rules":[{"verbs":["watch"],"apiGroups":[""],"resources":["pods"]}]})");
  const Value role =
      parse(R"({"metadata":{"name":"x"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"to":"x"}}]}})");
  EXPECT_EQ(
      codec::encode_json(aggregate(arena, role, cluster_roles)),
      R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods"]},{"verbs":["list"],"apiGroups":[""],"resources":["pods"]}])");
}

}  // namespace
}  // namespace holdfast::rbac
