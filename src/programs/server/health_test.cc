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

std::optional<Health::Answer> answer(bool store_well, std::string_view path, std::string_view query) {
  return health(store_well).answer(path, request::RequestInfo("GET", path, query).query());
}

TEST(Health, HealthyResponseIsOk) {
  EXPECT_EQ(answer(true, "/healthz", "")->body, "ok");
  EXPECT_EQ(answer(true, "/readyz", "")->status, 200);
}

TEST(Health, VerboseListsChecksInOrder) {
  const std::string live = answer(true, "/livez", "verbose")->body;
  EXPECT_THAT(live, StartsWith("[+]ping ok\n[+]log ok\n[+]loopback-serving-certificate ok\n[+]etcd ok\n"
                               "[+]poststarthook/start-apiserver-admission-initializer ok\n"));
  EXPECT_THAT(live, EndsWith("[+]autoregister-completion ok\n[+]poststarthook/apiservice-openapi-controller ok\n"
                             "[+]poststarthook/apiservice-openapiv3-controller ok\nlivez check passed\n"));
  const std::string ready = answer(true, "/readyz", "verbose=false")->body;
  EXPECT_THAT(ready, StartsWith("[+]ping ok\n[+]log ok\n[+]etcd ok\n[+]etcd-readiness ok\n[+]informer-sync ok\n"));
  EXPECT_THAT(ready, EndsWith("[+]shutdown ok\nreadyz check passed\n"));
}

TEST(Health, FailureIsAlwaysVerbose) {
  const auto got = answer(false, "/readyz", "");
  EXPECT_EQ(got->status, 500);
  EXPECT_THAT(got->body, HasSubstr("[-]etcd failed: reason withheld\n"));
  EXPECT_THAT(got->body, EndsWith("readyz check failed\n"));
}

TEST(Health, OverrideEtcdsCanBeExcludedSeparatelyOrTogether) {
  const Health health({.store = {}, .started = {}, .shutdown = {}, .other_stores = {[] { return "gone"; }}});
  const auto body = [&health](std::string_view path, std::string_view query) {
    return health.answer(path, request::RequestInfo("GET", path, query).query())->body;
  };
  EXPECT_THAT(body("/healthz", ""), HasSubstr("[+]etcd ok\n[-]etcd-override-0 failed: reason withheld\n"));
  EXPECT_THAT(body("/readyz", ""), HasSubstr("[+]etcd ok\n[+]etcd-readiness ok\n[-]etcd-override-0 failed: reason "
                                             "withheld\n[-]etcd-override-readiness-0 failed: reason withheld\n"));
  EXPECT_THAT(body("/healthz", "verbose&exclude=etcd"),
              HasSubstr("[+]etcd excluded: ok\n[+]etcd-override-0 excluded: ok\n"));
  const std::string alone = body("/healthz", "verbose&exclude=etcd-override-0");
  EXPECT_THAT(alone, HasSubstr("[+]etcd ok\n[+]etcd-override-0 excluded: ok\n"));
  EXPECT_THAT(alone, EndsWith("healthz check passed\n"));
}

TEST(Health, ChecksCanBeExcludedOrQueriedSeparately) {
  const auto got = answer(false, "/healthz", "verbose&exclude=etcd&exclude=nosuch");
  EXPECT_EQ(got->status, 200);
  EXPECT_THAT(got->body, HasSubstr("[+]etcd excluded: ok\n"));
  EXPECT_THAT(got->body, EndsWith("warn: some health checks cannot be excluded: no matches for \"nosuch\"\n"
                                  "healthz check passed\n"));
  EXPECT_EQ(answer(true, "/readyz/etcd", "")->body, "ok");
  EXPECT_EQ(answer(false, "/readyz/etcd", "")->body,
            "internal server error: error getting data from etcd: context deadline exceeded\n");
  EXPECT_FALSE(answer(true, "/readyz/loopback-serving-certificate", ""));
  EXPECT_FALSE(answer(true, "/healthz/", ""));
}

}  // namespace
}  // namespace holdfast::server
