#include "auth/auth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/test_folder.h"

namespace holdfast::auth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Tokens, AreParsedLikeKubeApiserverDoes) {
  Result<TokenTable> table =
      TokenTable::from_csv("secret,alice,1,\"dev, ops\"\nt2,bob,2\n\nt3,carol,3,one\n", "tokens.csv");
  ASSERT_TRUE(table);
  EXPECT_THAT(table->find("secret")->groups, ElementsAre("dev", " ops", "system:authenticated"));
  EXPECT_EQ(table->find("t2")->name, "bob");
  EXPECT_THAT(table->find("t3")->groups, ElementsAre("one", "system:authenticated"));
  EXPECT_EQ(table->find("nope"), nullptr);
}

TEST(Tokens, ErrorsNameTheLine) {
  Result<TokenTable> table = TokenTable::from_csv("a,b,c\nx,y\n", "tokens.csv");
  ASSERT_FALSE(table);
  EXPECT_THAT(table.error().message, HasSubstr("tokens.csv line 2: at least 3 columns"));
}

net::Request request_with(const net::Peer& peer, std::string_view authorization) {
  net::Request request;
  request.peer = &peer;
  if (!authorization.empty()) request.headers.add({"authorization", authorization});
  return request;
}

TEST(Authenticator, BadCredentialsAreRejectedAndMissingOnesAreAnonymous) {
  auto table = TokenTable::from_csv("good,alice,1", "t");
  AuthenticatorOptions options;
  options.audiences = {"here"};
  options.tokens.push_back(static_tokens(*table, {"here"}));
  Authenticator authenticator(options);
  net::Peer peer;
  EXPECT_EQ((*authenticator.authenticate(request_with(peer, "Bearer good")))->name, "alice");
  EXPECT_EQ((*authenticator.authenticate(request_with(peer, "bearer good")))->name, "alice");
  EXPECT_EQ((*authenticator.authenticate(request_with(peer, "")))->name, "system:anonymous");
  EXPECT_EQ((*authenticator.authenticate(request_with(peer, "Basic xyz")))->name, "system:anonymous");
  EXPECT_EQ(authenticator.authenticate(request_with(peer, "Bearer bad")).error().reason, Reason::Unauthorized);
  options.anonymous = false;
  EXPECT_FALSE(Authenticator(options).authenticate(request_with(peer, "")));
}

TEST(Authenticator, AsksForTheKeysOfTokensOnly) {
  AuthenticatorOptions options;
  net::Peer peer;
  EXPECT_FALSE(Authenticator(options).needs_keys(request_with(peer, "Bearer new")));
  std::vector<std::string> asked;
  options.remote_keys.emplace().lacks_key_of = [&](std::string_view token) {
    asked.emplace_back(token);
    return token.starts_with("new");
  };
  const Authenticator authenticator(options);
  EXPECT_TRUE(authenticator.needs_keys(request_with(peer, "Bearer new")));
  EXPECT_FALSE(authenticator.needs_keys(request_with(peer, "Bearer known")));
  EXPECT_FALSE(authenticator.needs_keys(request_with(peer, "Basic new")));
  EXPECT_FALSE(authenticator.needs_keys(request_with(peer, "")));
  EXPECT_FALSE(authenticator.needs_keys("new" + std::string(limits::kTokenBytes, 'x'))) << "Too long to be looked at.";
  EXPECT_THAT(asked, ElementsAre("new", "known"));
}

struct ForbiddenCase {
  const char* name;
  Attributes attributes;
  const char* message;
  ErrorDetails details;
};

TEST(Forbidden, HasTheMessagesOfKubernetes) {
  const UserInfo user{.name = "system:anonymous", .uid = {}, .groups = {}, .extra = {}};
  const ForbiddenCase cases[] = {
      {"a path", {&user, "get", "/a<b"}, "forbidden: User \"system:anonymous\" cannot get path \"/a&lt;b\"", {}},
      {"a list in a namespace",
       {&user, "list", {.group = "apps", .version = "v1", .resource = "deployments", .ns = "default"}},
       "deployments.apps is forbidden: User \"system:anonymous\" cannot list resource \"deployments\" in API group "
       "\"apps\" in the namespace \"default\"",
       {"", "apps", "deployments", ""}},
      {"a subresource of one object",
       {&user, "get", {.version = "v1", .resource = "pods", .subresource = "log", .ns = "default", .name = "x"}},
       "pods \"x\" is forbidden: User \"system:anonymous\" cannot get resource \"pods/log\" in API group \"\" in the "
       "namespace \"default\"",
       {"x", "", "pods", ""}},
      {"cluster scope",
       {&user, "list", {.version = "v1", .resource = "nodes"}},
       "nodes is forbidden: User \"system:anonymous\" cannot list resource \"nodes\" in API group \"\" at the cluster "
       "scope",
       {"", "", "nodes", ""}},
  };
  for (const ForbiddenCase& c : cases) {
    const Error error = forbidden_error(c.attributes, "");
    EXPECT_EQ(error.message, c.message) << c.name;
    EXPECT_EQ(error.details, c.details) << c.name;
    EXPECT_EQ(error.reason, Reason::Forbidden) << c.name;
  }
}

TEST(Pki, IsCreatedOnceAndKept) {
  const TestFolder folder;
  const PkiOptions options{.directory = folder.file("pki"), .dns_names = {}, .addresses = {"10.0.0.1"}};
  Result<Pki> first = ensure_pki(options);
  ASSERT_TRUE(first) << first.error().message;
  Result<Pki> second = ensure_pki(options);
  ASSERT_TRUE(second);
  EXPECT_EQ(first->serving.certificate_pem, second->serving.certificate_pem);
  EXPECT_EQ(first->authority.key_pem, second->authority.key_pem);
  EXPECT_EQ(first->service_account_private_pem, second->service_account_private_pem);
  struct stat info{};
  ASSERT_EQ(stat((options.directory + "/ca.key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(Pki, PrivateKeysAreMarkedAsEllipticCurveKeys) {
  const TestFolder folder;
  Result<Pki> pki = ensure_pki({.directory = folder.path(), .dns_names = {}, .addresses = {}});
  ASSERT_TRUE(pki) << pki.error().message;
  for (const std::string& key : {pki->admin.key_pem, pki->serving.key_pem, pki->service_account_private_pem}) {
    EXPECT_TRUE(key.starts_with("-----BEGIN EC PRIVATE KEY-----\n")) << key.substr(0, key.find('\n'));
  }
}

TEST(Pki, ANewAddressReissuesOnlyTheServingCertificate) {
  const TestFolder folder;
  PkiOptions options{.directory = folder.path(), .dns_names = {}, .addresses = {}};
  Result<Pki> first = ensure_pki(options);
  options.addresses = {"10.1.2.3"};
  Result<Pki> second = ensure_pki(options);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->serving.certificate_pem, second->serving.certificate_pem);
  EXPECT_EQ(first->authority.certificate_pem, second->authority.certificate_pem);
  EXPECT_EQ(first->admin.certificate_pem, second->admin.certificate_pem);
}

TEST(Pki, ErrorsNameTheDamagedFile) {
  const TestFolder folder;
  ASSERT_TRUE(ensure_pki({.directory = folder.path(), .dns_names = {}, .addresses = {}}));
  ASSERT_TRUE(replace_file(folder.file("apiserver.crt"), "nonsense", Readers::Everybody));
  Result<Pki> again = ensure_pki({.directory = folder.path(), .dns_names = {}, .addresses = {}});
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("apiserver.crt holds no certificate"));
}

}  // namespace
}  // namespace holdfast::auth
