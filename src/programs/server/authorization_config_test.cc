#include "server/authorization_config.h"

#include <gmock/gmock.h>

#include "base/strings.h"

namespace holdfast::server {
namespace {

std::string read(std::string_view authorizers, std::string_view version = "v1") {
  const std::string text = "apiVersion: apiserver.config.k8s.io/" + std::string(version) +
                           "\nkind: AuthorizationConfiguration\n" + std::string(authorizers);
  Result<std::vector<std::string>> types = parse_authorization_config(text);
  return types ? join(*types, ",") : "refused: " + types.error().message;
}

TEST(AuthorizationConfig, ReturnsAuthorizersInOrder) {
  const char* const both = "authorizers: [{type: Node, name: node}, {type: RBAC, name: rbac}]";
  EXPECT_EQ(read(both), "Node,RBAC");
  EXPECT_EQ(read(both, "v1beta1"), "Node,RBAC");
  EXPECT_EQ(read(both, "v1alpha1"), "Node,RBAC");
  EXPECT_EQ(read("authorizers: [{type: AlwaysAllow, name: alwaysallow}]"), "AlwaysAllow");
  EXPECT_EQ(read("authorizers: [{type: Webhook, name: a, webhook: {}}, {type: Webhook, name: b, webhook: {}}]"),
            "Webhook,Webhook");
}

TEST(AuthorizationConfig, ErrorsMatchKubernetes) {
  struct Case {
    const char* authorizers;
    const char* why;
  } cases[] = {
      {"", "authorizers: Required value: at least one authorization mode must be defined"},
      {"authorizers: [{name: rbac}]", "authorizers[0].type: Required value"},
      {"authorizers: [{type: rbac, name: rbac}]",
       "authorizers[0].type: Unsupported value: \"rbac\": supported values: \"ABAC\", \"AlwaysAllow\", \"AlwaysDeny\", "
       "\"Node\", \"RBAC\", \"Webhook\""},
      {"authorizers: [{type: RBAC, name: rbac}, {type: RBAC, name: again}]",
       "authorizers[1].type: Duplicate value: \"RBAC\""},
      {"authorizers: [{type: RBAC}, {type: Node}]",
       "[authorizers[0].name: Required value, authorizers[1].name: Required value]"},
      {"authorizers: [{type: RBAC, name: rbac}, {type: Node, name: rbac}]",
       "authorizers[1].name: Duplicate value: \"rbac\""},
      {"authorizers: [{type: RBAC, name: rbac, webhook: {}}]",
       "authorizers[0].webhook: Invalid value: \"non-null\": may only be specified when type=Webhook"},
      {"authorizers: [{type: Webhook, name: hook}]",
       "authorizers[0].webhook: Required value: required when type=Webhook"},
      {"authorizers: [{type: RBAC, name: roles}]", "expected name rbac for authorizer RBAC instead of roles"},
      {"authorizers: [{type: RBAC, type: Node, name: rbac, x: 1}]\nz: 2",
       "failed to load AuthorizationConfiguration from file: strict decoding error: yaml: unmarshal errors:\n"
       "  line 3: key \"type\" already set in map, unknown field \"authorizers[0].x\", unknown field \"z\""},
      {"authorizers: [{type: 5}]",
       "failed to load AuthorizationConfiguration from file: json: cannot unmarshal number into Go struct field "
       "AuthorizerConfiguration.authorizers.type of type string"},
      {"authorizers: {}",
       "failed to load AuthorizationConfiguration from file: json: cannot unmarshal object into Go struct field "
       "AuthorizationConfiguration.authorizers of type []v1.AuthorizerConfiguration"},
      {"authorizers: [null]", "authorizers[0].type: Required value"},
  };
  for (const Case& c : cases) EXPECT_EQ(read(c.authorizers), "refused: " + std::string(c.why)) << c.authorizers;
  EXPECT_THAT(
      read("authorizers: [{type: Webhook, name: A_b, webhook: {}}]"),
      ::testing::HasSubstr("authorizers[0].name: Invalid value: \"A_b\": authorizer name is invalid: a lowercase"));
  EXPECT_EQ(read("authorizers: []", "v2"),
            "refused: failed to load AuthorizationConfiguration from file: no kind \"AuthorizationConfiguration\" is "
            "registered for version \"apiserver.config.k8s.io/v2\" in scheme \"pkg/runtime/scheme.go:111\"");
  EXPECT_EQ(parse_authorization_config("").error().message,
            "authorizers: Required value: at least one authorization mode must be defined");
  EXPECT_EQ(parse_authorization_config("apiVersion: v1").error().message,
            "failed to load AuthorizationConfiguration from file: Object 'Kind' is missing in 'apiVersion: v1'");
}

}  // namespace
}  // namespace holdfast::server
