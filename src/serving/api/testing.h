// An Api without sockets, disks or real time: over the memory store, on one loop, with a clock controlled by the test.
//
//   InProcess server;
//   Answer made = server.call("POST", "/api/v1/namespaces/default/configmaps", R"({"metadata":{"name":"a"}})");
//   EXPECT_EQ(made.status, 201);
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/api.h"
#include "base/task_group.h"
#include "codec/codec.h"
#include "ownership/ownership.h"
#include "store/memory_store.h"

namespace holdfast::api::testing {

class ManualClock final : public Clock {
 public:
  UnixTime now() const override { return {kStart + passed_.load() / 1000, 0}; }
  std::chrono::steady_clock::time_point monotonic() const override {
    return std::chrono::steady_clock::time_point(std::chrono::hours(1) + std::chrono::milliseconds(passed_.load()));
  }
  void pass(std::chrono::milliseconds time) { passed_.fetch_add(time.count()); }

 private:
  static constexpr int64_t kStart = 1'800'000'000;  // 2027-01-15T08:00:00Z
  std::atomic<int64_t> passed_{0};
};

// A response, with its body parsed if it is JSON.
struct Answer {
  int status = 0;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  std::unique_ptr<Arena> arena = std::make_unique<Arena>();
  Value json;

  std::string_view text(std::string_view parent, std::string_view member) const { return json.text_at(parent, member); }
  std::string_view reason() const { return json.text_at("reason"); }
  std::string_view message() const { return json.text_at("message"); }
};

class InProcess {
 public:
  enum class Begin : uint8_t { Ready, NotStarted };
  // Requests are never authorized here. This is what verbs and admission ask when a permission matters to them.
  enum class Authorization : uint8_t { AllowAll, Rbac };
  explicit InProcess(Options options = {}, Begin begin = Begin::Ready,
                     Authorization authorization = Authorization::AllowAll) {
    Dependencies needed;
    needed.store = &store;
    needed.loops = &loops_;
    needed.background = &loops_.at(0);
    needed.pool = &pool_;
    if (authorization == Authorization::AllowAll) options.authorization.modes = {access::Mode::AlwaysAllow};
    needed.metrics = &metrics_;
    needed.clock = &clock;
    options.admission_plugins.disabled = {"ServiceAccount"};  // Nothing creates service accounts here.
    api_ = std::make_unique<Api>(needed, std::move(options));
    if (begin == Begin::NotStarted) return;
    api_->start();
    while (!api_->ready()) std::this_thread::yield();
    EXPECT_EQ(call("POST", "/api/v1/namespaces", R"({"metadata":{"name":"default"}})").status, 201);
  }
  ~InProcess() { block_on(loops_.at(0), api_->close(loops_.at(0))); }

  Answer call(std::string method, std::string target, std::string body = {},
              std::string content_type = "application/json") {
    net::ClientRequest request;
    request.method = std::move(method);
    request.target = std::move(target);
    request.headers = {{"accept", "application/json"}, {"user-agent", "test/1"}};
    if (!body.empty()) request.headers.emplace_back("content-type", std::move(content_type));
    request.body = std::move(body);
    Result<net::ClientResponse> response = send(std::move(request));
    Answer answer;
    EXPECT_TRUE(response.ok());
    if (!response) return answer;
    answer.status = response->status;
    answer.body = std::move(response->body);
    answer.headers = std::move(response->headers);
    if (Result<Value> json = codec::decode_json(*answer.arena, answer.body)) answer.json = *json;
    return answer;
  }

  // Whom all later requests come from.
  void become(std::string name, std::vector<std::string> groups = {}) {
    user_ = std::make_shared<const auth::UserInfo>(
        auth::UserInfo{.name = std::move(name), .uid = {}, .groups = std::move(groups), .extra = {}});
  }

  // Any request, for example with other headers; the response as it was received.
  Result<net::ClientResponse> send(net::ClientRequest request) {
    return block_on(
        loops_.at(0),
        net::call_handler(
            loops_.at(0), [this](net::Request& asked, net::Response& answer) { return serve(asked, answer); },
            std::move(request)));
  }

  // Asks again and again until the answer is as `wanted` says: for what happens in the background. Gives up after a
  // time that is too long on any machine.
  template <class Wanted>
  Answer get_until(const std::string& target, Wanted wanted) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (true) {
      Answer answer = call("GET", target);
      if (wanted(answer)) return answer;
      if (std::chrono::steady_clock::now() > end) {
        ADD_FAILURE() << target << " is still: " << answer.status << " " << answer.body;
        return answer;
      }
      std::this_thread::yield();
    }
  }

  // Runs `work` with the store on the loop; the store may not be used from any other thread.
  template <class Work>
  void with_store(Work work) {
    constexpr auto run = [](Work inner, store::MemoryStore& on) -> Task<void> {
      inner(on);
      co_return;
    };
    block_on(loops_.at(0), run(std::move(work), store));
  }

  Api& api() { return *api_; }
  net::EventLoop& loop() { return loops_.at(0); }

  ManualClock clock;
  store::MemoryStore store{clock};

 private:
  Task<void> serve(net::Request& request, net::Response& response) {
    const request::RequestInfo info(request.method, request.path, request.query);
    co_await api_->handle(info, request, response, user_);
  }

  MetricRegistry metrics_;
  ownership::Pool pool_{Gates{}};
  auth::UserRef user_ =
      std::make_shared<const auth::UserInfo>(auth::UserInfo{.name = "alice", .uid = {}, .groups = {}, .extra = {}});
  net::Loops loops_{1};
  std::unique_ptr<Api> api_;
};

}  // namespace holdfast::api::testing
