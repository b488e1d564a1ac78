#include "abac/abac.h"

#include <gtest/gtest.h>

namespace holdfast::abac {
namespace {

constexpr std::string_view kFile = R"(# Comments and empty lines are skipped.

{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"ann","namespace":"dev","resource":"pods","apiGroup":"","readonly":true}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"group":"ops","namespace":"*","resource":"*","apiGroup":"*","nonResourcePath":"/metrics/*"}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"*","nonResourcePath":"/version"}}
{"user":"old","readonly":true}
)";

bool allows(const auth::UserInfo& user, std::string_view verb, const auth::ResourceAttributes& on) {
  const Result<std::vector<Policy>> policies = parse(kFile, "policies");
  EXPECT_TRUE(policies.ok());
  return authorize(*policies, auth::Attributes(&user, verb, on)).allowed();
}
bool allows_path(const auth::UserInfo& user, std::string_view path) {
  const Result<std::vector<Policy>> policies = parse(kFile, "policies");
  return authorize(*policies, auth::Attributes(&user, "get", path)).allowed();
}

const auth::UserInfo kAnn = {.name = "ann", .groups = {"system:authenticated"}};
const auth::UserInfo kOps = {.name = "olaf", .groups = {"ops", "system:authenticated"}};
const auth::UserInfo kOld = {.name = "old"}, kNobody = {.name = "system:anonymous"};

TEST(Abac, PoliciesMatchUserVerbAndResource) {
  EXPECT_TRUE(allows(kAnn, "list", {.resource = "pods", .ns = "dev"}));
  EXPECT_FALSE(allows(kAnn, "create", {.resource = "pods", .ns = "dev"}));
  EXPECT_FALSE(allows(kAnn, "list", {.resource = "pods", .ns = "prod"}));
  EXPECT_FALSE(allows(kAnn, "list", {.group = "apps", .resource = "pods", .ns = "dev"}));
  EXPECT_TRUE(allows(kOps, "delete", {.group = "apps", .resource = "deployments"}));
  EXPECT_TRUE(allows(kOld, "get", {.group = "apps", .resource = "deployments", .ns = "x"}));
  EXPECT_FALSE(allows(kOld, "update", {.group = "apps", .resource = "deployments", .ns = "x"}));
}

TEST(Abac, PathsAreMatchedApartFromResources) {
  EXPECT_TRUE(allows_path(kAnn, "/version"));
  EXPECT_FALSE(allows_path(kNobody, "/version"));  // "*" means users who are authenticated.
  EXPECT_TRUE(allows_path(kOps, "/metrics/slis"));
  EXPECT_FALSE(allows_path(kAnn, "/metrics/slis"));
  EXPECT_TRUE(allows_path(kOld, "/anything"));
}

TEST(Abac, DenialsAndRules) {
  const Result<std::vector<Policy>> policies = parse(kFile, "policies");
  EXPECT_EQ(authorize(*policies, auth::Attributes(&kNobody, "get", {.resource = "pods"})).reason, "No policy matched.");
  EXPECT_EQ(rules_for(*policies, kOps, "dev").size(), 2U);
  EXPECT_EQ(rules_for(*policies, kAnn, "prod").size(), 0U);
}

TEST(Abac, ErrorsNameTheLine) {
  EXPECT_EQ(parse("\n{\"user\":5}", "p.jsonl").error().message,
            "error reading policy file p.jsonl, line 2: user: not a string");
  EXPECT_EQ(parse("{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}", "p").error().message,
            "error reading policy file p, line 1: unknown kind Pod of v1; supported: Policy of "
            "abac.authorization.kubernetes.io/v1beta1");
  EXPECT_FALSE(parse("nonsense", "p").ok());
}

}  // namespace
}  // namespace holdfast::abac
