#include "server/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::server {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Health health(bool store_well) {
  return Health({.store = [=]() -> std::optional<std::string> {
                   if (store_well) return std::nullopt;
                   return "error getting data from etcd: context deadline exceeded";
                 },
                 .started = {},
                 .shutdown = {}});
}

TEST(Health, IsOkInAWord) {
  EXPECT_EQ(health(true).answer("/healthz", "")->body, "ok");
  EXPECT_EQ(health(true).answer("/readyz", "")->status, 200);
}

TEST(Health, VerboseListsTheChecksInOrder) {
  const std::string live = health(true).answer("/livez", "verbose")->body;
  EXPECT_THAT(live, StartsWith("[+]ping ok\n[+]log ok\n[+]loopback-serving-certificate ok\n[+]etcd ok\n"
                               "[+]poststarthook/start-apiserver-admission-initializer ok\n"));
  EXPECT_THAT(live, EndsWith("[+]autoregister-completion ok\n[+]poststarthook/apiservice-openapi-controller ok\n"
                             "[+]poststarthook/apiservice-openapiv3-controller ok\nlivez check passed\n"));
  const std::string ready = health(true).answer("/readyz", "verbose=false")->body;
  EXPECT_THAT(ready, StartsWith("[+]ping ok\n[+]log ok\n[+]etcd ok\n[+]etcd-readiness ok\n[+]informer-sync ok\n"));
  EXPECT_THAT(ready, EndsWith("[+]shutdown ok\nreadyz check passed\n"));
}

TEST(Health, AFailureIsAlwaysVerbose) {
  const auto answer = health(false).answer("/readyz", "");
  EXPECT_EQ(answer->status, 500);
  EXPECT_THAT(answer->body, HasSubstr("[-]etcd failed: reason withheld\n"));
  EXPECT_THAT(answer->body, EndsWith("readyz check failed\n"));
}

TEST(Health, ChecksCanBeExcludedAndAskedForAlone) {
  const auto answer = health(false).answer("/healthz", "verbose&exclude=etcd&exclude=nosuch");
  EXPECT_EQ(answer->status, 200);
  EXPECT_THAT(answer->body, HasSubstr("[+]etcd excluded: ok\n"));
  EXPECT_THAT(answer->body, EndsWith("warn: some health checks cannot be excluded: no matches for \"nosuch\"\n"
                                     "healthz check passed\n"));
  EXPECT_EQ(health(true).answer("/readyz/etcd", "")->body, "ok");
  EXPECT_EQ(health(false).answer("/readyz/etcd", "")->body,
            "internal server error: error getting data from etcd: context deadline exceeded\n");
  EXPECT_FALSE(health(true).answer("/readyz/loopback-serving-certificate", ""));
  EXPECT_FALSE(health(true).answer("/healthz/", ""));
}

}  // namespace
}  // namespace holdfast::server
