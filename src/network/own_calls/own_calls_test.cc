#include "own_calls/requests.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/task_group.h"

namespace holdfast::own_calls {
namespace {

using namespace std::chrono_literals;

const types::Resource& resource(std::string_view group, std::string_view plural) {
  return *types::find_resource(group, "v1", plural);
}

struct Seen {
  std::string method, path, query, body;
};

class OwnCallsTest : public ::testing::Test {
 protected:
  // Sends the request to `handler`.
  Result<Answer> send(const Handler& handler, Request request, net::Millis timeout = 1h) {
    return block_on(loop(), own_calls::send(OwnCalls(handler, loop()), std::move(request), timeout));
  }
  // The requests that reach the API, in order.
  Handler recorder() {
    return [this](net::Request& request, net::Response& response, const auth::UserRef&) {
      return record(request, response);
    };
  }

  net::EventLoop& loop() { return loops_.at(0); }
  net::Loops& loops() { return loops_; }

  std::vector<Seen> seen;

 private:
  Task<void> record(net::Request& request, net::Response& response) {
    Result<std::string> body = co_await request.read_body(1 << 20);
    seen.push_back({std::string(request.method), std::string(request.path), std::string(request.query),
                    body ? *body : std::string()});
    (void)response.send(200, net::Body("{}"));
  }

  net::Loops loops_{1};
};

TEST_F(OwnCallsTest, PathsNameWhatTheTargetIs) {
  EXPECT_EQ(*path_of(collection(resource("", "nodes"), "ignored")), "/api/v1/nodes");
  EXPECT_EQ(*path_of(collection(resource("apps", "deployments"))), "/apis/apps/v1/deployments");
  EXPECT_EQ(*path_of(object(resource("apps", "deployments"), "a", "b").sub("status")),
            "/apis/apps/v1/namespaces/a/deployments/b/status");
}

TEST_F(OwnCallsTest, ANameNeverBecomesAnotherPathOrAQuery) {
  for (const char* name : {"?watch=1&timeoutSeconds=2000000000", "a b", "a#b", "a&limit=1", "system:x", "\r\nX: y",
                           "caf\xc3\xa9", ";", "\\"}) {
    ASSERT_TRUE(send(recorder(), Request::get(object(resource("", "serviceaccounts"), "ns", name)))) << name;
    EXPECT_EQ(seen.back().path, "/api/v1/namespaces/ns/serviceaccounts/" + std::string(name));
    EXPECT_EQ(seen.back().query, "") << name;
  }
}

TEST_F(OwnCallsTest, NamesThatCannotStandInAPathAreRefusedWithoutACall) {
  const types::Resource& secrets = resource("", "secrets");
  for (const char* name : {"", ".", "..", "a/b", "../configmaps/x", "a%2fb"}) {
    for (Request request : {Request::get(object(secrets, "ns", name)), Request::remove(object(secrets, "ns", name)),
                            Request::update(object(secrets, "ns", name), Value::empty_map(), "m")}) {
      const Result<Answer> answer = send(recorder(), std::move(request));
      ASSERT_FALSE(answer) << name;
      EXPECT_EQ(answer.error().reason, Reason::BadRequest);
    }
  }
  EXPECT_FALSE(send(recorder(), Request::list(collection(secrets, ".."))));
  EXPECT_FALSE(send(recorder(), Request::remove_all(object(secrets, "ns", "a"))));
  EXPECT_FALSE(send(recorder(), Request::openapi("a/b", "v1")));
  EXPECT_TRUE(seen.empty());
}

TEST_F(OwnCallsTest, BodiesAndQueriesAreEncoded) {
  const types::Resource& maps = resource("", "configmaps");
  ASSERT_TRUE(send(recorder(),
                   Request::remove(object(maps, "ns", "a"), {.uid = "\"}", .revision = "7", .propagation = "Orphan"})));
  EXPECT_EQ(seen.back().method, "DELETE");
  EXPECT_EQ(seen.back().body, R"({"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Orphan",)"
                              R"("preconditions":{"uid":"\"}","resourceVersion":"7"}})");
  ASSERT_TRUE(send(recorder(), Request::apply(object(maps, "ns", "a"), Value::empty_map(), "a&b=c")));
  EXPECT_EQ(seen.back().query, "fieldManager=a%26b%3Dc&force=true");
}

// A watch, a handler that waits for something that never comes.
TEST_F(OwnCallsTest, AHandlerThatDoesNotEndIsCancelledAtTheDeadline) {
  constexpr auto watch = [](net::Request&, net::Response& response, const auth::UserRef&) -> Task<void> {
    if (!response.start(200)) co_return;
    while (co_await response.write(net::Bytes(std::string("event\n"))) && co_await response.sleep_for(1ms)) {
    }
  };
  constexpr auto wait = [](net::Request&, net::Response& response, const auth::UserRef&) -> Task<void> {
    (void)co_await response.sleep_for(1h);
  };
  const Request request = Request::get(object(resource("", "pods"), "ns", "a"));
  for (const Handler& handler : {Handler(watch), Handler(wait)}) {
    const Result<Answer> answer = send(handler, request, 20ms);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().reason, Reason::Timeout);
  }
}

TEST_F(OwnCallsTest, CallsUnderWayEndWhenTheServerStops) {
  const auto wait = [this](net::Request&, net::Response& response, const auth::UserRef&) -> Task<void> {
    cancel_calls(loops());
    EXPECT_FALSE(co_await response.sleep_for(1h));
  };
  const Request request = Request::get(object(resource("", "pods"), "ns", "a"));
  EXPECT_EQ(send(wait, request).error().reason, Reason::ServiceUnavailable);
  EXPECT_TRUE(send(recorder(), request));
}

}  // namespace
}  // namespace holdfast::own_calls
