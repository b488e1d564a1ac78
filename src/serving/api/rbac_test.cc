// RbacAuthorizer over the caches of a running API.
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <mutex>
#include <string>

#include "access/access.h"
#include "api/testing.h"
#include "base/metrics.h"

namespace holdfast::api {
namespace {

constexpr const char* kRoles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
constexpr const char* kBindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";

// Runs what is posted when the test says so.
class Held final : public Executor {
 public:
  void post(std::function<void()> work) override {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  // False if there is nothing.
  bool run_one() {
    std::function<void()> work;
    {
      const std::lock_guard lock(mutex_);
      if (work_.empty()) return false;
      work = std::move(work_.front());
      work_.pop_front();
    }
    work();
    return true;
  }

 private:
  std::mutex mutex_;
  std::deque<std::function<void()>> work_;
};

class RbacAuthorizerTest : public ::testing::Test {
 protected:
  RbacAuthorizerTest() {
    made(kBindings,
         R"({"metadata":{"name":"b"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r0"},)"
         R"("subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"ann"}]})");
  }
  ~RbacAuthorizerTest() override { block_on(server_.loop(), authorizer_.close(server_.loop())); }

  void made(const std::string& path, const std::string& object) {
    ASSERT_EQ(server_.call("POST", path, object).status, 201);
  }
  static std::string role(const std::string& name, const std::string& verb, size_t names) {
    std::string text =
        R"({"metadata":{"name":")" + name + R"("},"rules":[{"verbs":[")" + verb +
        R"("],"apiGroups":[""],"resources":["pods"]},{"verbs":["x"],"apiGroups":[""],"resources":["y"],)" +
        R"("resourceNames":["n")";
    for (size_t i = 0; i < names; ++i) text += ",\"name" + std::to_string(i) + "\"";
    return text + "]}]}";
  }
  void label(const std::string& name, const std::string& value) {
    ASSERT_EQ(server_
                  .call("PATCH", std::string(kRoles) + "/" + name, R"({"metadata":{"labels":{"a":")" + value + "\"}}}",
                        "application/merge-patch+json")
                  .status,
              200);
  }
  bool may(std::string_view verb) {
    static const auth::UserInfo ann{.name = "ann"};
    return authorizer_.authorize({&ann, verb, {.resource = "pods", .ns = "default"}}).allowed();
  }
  // Waits until the caches have been checked again and the work was posted, and runs it.
  void run_background() {
    while (!background_.run_one()) (void)may("get");
  }

  testing::InProcess server_;
  Held background_;
  Counter read_;
  access::RbacAuthorizer authorizer_{server_.api().registry(), server_.loop(), background_, read_};
};

TEST_F(RbacAuthorizerTest, ChangesTakeEffectAtOnceAndOnlyChangedObjectsAreRead) {
  for (int i = 0; i < 30; ++i) made(kRoles, role("r" + std::to_string(i), "get", 0));
  EXPECT_TRUE(may("get"));
  const uint64_t all = read_.value();
  EXPECT_GE(all, 31u);
  for (int i = 0; i < 20; ++i) {
    label("r7", std::to_string(i));
    made(kRoles, role("s" + std::to_string(i), i == 0 ? "list" : "get", 0));
    while (read_.value() < all + 2 * static_cast<uint64_t>(i) + 2) EXPECT_TRUE(may("get"));
  }
  EXPECT_EQ(read_.value(), all + 40);
  ASSERT_EQ(server_.call("PUT", std::string(kRoles) + "/r0", role("r0", "watch", 0)).status, 200);
  while (!may("watch")) {
  }
  EXPECT_FALSE(may("get"));
  ASSERT_EQ(server_.call("DELETE", std::string(kRoles) + "/r0").status, 200);
  while (may("watch")) {
  }
  EXPECT_FALSE(background_.run_one());
}

TEST_F(RbacAuthorizerTest, LargeChangesAreReadInTheBackground) {
  made(kRoles, role("r0", "get", 10));
  EXPECT_TRUE(may("get"));
  const uint64_t before = read_.value();
  ASSERT_EQ(server_.call("PUT", std::string(kRoles) + "/r0", role("r0", "watch", 20'000)).status, 200);
  // Nobody reads it while the background is busy: the former rules apply.
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(may("watch"));
  EXPECT_TRUE(may("get"));
  EXPECT_EQ(read_.value(), before);
  run_background();
  EXPECT_TRUE(may("watch"));
  EXPECT_FALSE(may("get"));
  EXPECT_EQ(read_.value(), before + 1);
  // Without any request, tick() notices.
  ASSERT_EQ(server_.call("PUT", std::string(kRoles) + "/r0", role("r0", "list", 20'000)).status, 200);
  do {
    authorizer_.tick();
  } while (!background_.run_one());
  EXPECT_TRUE(may("list"));
}

TEST_F(RbacAuthorizerTest, CatchingUpWaitsForLargeChangesToo) {
  access::RbacAuthorizer waiting{server_.api().registry(), server_.loop(), server_.loop(), read_};
  const auto may_watch = [&] {
    static const auth::UserInfo ann{.name = "ann"};
    return waiting.authorize({&ann, "watch", {.resource = "pods", .ns = "default"}}).allowed();
  };
  made(kRoles, role("r0", "get", 10));
  EXPECT_FALSE(may_watch());
  ASSERT_EQ(server_.call("PUT", std::string(kRoles) + "/r0", role("r0", "watch", 20'000)).status, 200);
  block_on(server_.loop(), waiting.catch_up(server_.loop()));
  EXPECT_TRUE(may_watch());
  block_on(server_.loop(), waiting.close(server_.loop()));
}

}  // namespace
}  // namespace holdfast::api
