#include "net/resolver.h"

#include <gtest/gtest.h>
#include <netdb.h>

#include <condition_variable>
#include <map>
#include <mutex>

namespace holdfast::net::detail {
namespace {

using namespace std::chrono_literals;
using Found = CallResult<std::vector<Endpoint>>;

// A name service whose "slow" names are found only once the test releases them.
class ResolverTest : public ::testing::Test {
 protected:
  ~ResolverTest() override { release(); }

  Resolver::Lookup service() {
    return [names = names_](const std::string& host) -> Found {
      std::unique_lock lock(names->mutex);
      ++names->asked;
      names->changed.notify_all();
      if (host.starts_with("slow")) names->changed.wait(lock, [&] { return names->released; });
      return lookup("127.0.0.1", 0, AI_NUMERICHOST);
    };
  }
  void release() {
    const std::lock_guard lock(names_->mutex);
    names_->released = true;
    names_->changed.notify_all();
  }
  void wait_until_asked(int times) {
    std::unique_lock lock(names_->mutex);
    names_->changed.wait(lock, [&] { return names_->asked >= times; });
  }
  int asked() {
    const std::lock_guard lock(names_->mutex);
    return names_->asked;
  }

  Found find(Resolver& resolver, std::string host, Millis timeout,
             std::shared_ptr<Cancellation> cancellation = nullptr) {
    return block_on(loop(), resolver.find(loop(), std::move(host), 443, timeout, std::move(cancellation)));
  }
  // Leaves a thread of the resolver busy with the name, and nobody waiting for it.
  void occupy(Resolver& resolver, const std::string& host) {
    const int before = asked();
    const auto cancellation = std::make_shared<Cancellation>();
    constexpr auto ask = [](Resolver& from, EventLoop& on, std::string name,
                            std::shared_ptr<Cancellation> until) -> Task<void> {
      (void)co_await from.find(on, std::move(name), 443, 1h, std::move(until));
    };
    constexpr auto give_up = [](std::function<void()> once, std::shared_ptr<Cancellation> now) -> Task<void> {
      once();
      now->cancel();
      co_return;
    };
    std::vector<Task<void>> tasks;
    tasks.push_back(ask(resolver, loop(), host, cancellation));
    tasks.push_back(give_up([&] { wait_until_asked(before + 1); }, cancellation));
    block_on(loop(), when_all(loop(), std::move(tasks)));
  }
  EventLoop& loop() { return loops_.at(0); }

 private:
  struct Names {
    std::mutex mutex;
    std::condition_variable changed;
    int asked = 0;
    bool released = false;
  };
  // Threads of a Resolver may outlive the test.
  const std::shared_ptr<Names> names_ = std::make_shared<Names>();
  Loops loops_{1};
};

TEST_F(ResolverTest, FindsAddressesWithTheCallersPort) {
  Resolver resolver(service());
  const Found found = find(resolver, "a", 1h);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().text, "tcp 127.0.0.1:443");
}

TEST_F(ResolverTest, ASlowNameDelaysNobodyElseAndItsCallersOnlyUntilTheirDeadline) {
  Resolver resolver(service());
  const Found slow = find(resolver, "slow", 10ms);
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().message, "dial tcp: lookup slow: i/o timeout");
  EXPECT_EQ(slow.error().progress, CallError::Progress::NotConnected);
  EXPECT_TRUE(find(resolver, "a", 1h));  // While the thread of the slow name is still busy.
}

TEST_F(ResolverTest, CallersOfOneNameShareALookup) {
  Resolver resolver(service());
  occupy(resolver, "slow");
  constexpr auto ask = [](Resolver& from, EventLoop& loop, int& found) -> Task<void> {
    if (co_await from.find(loop, "slow", 443, 1h, nullptr)) ++found;
  };
  constexpr auto let_go = [](std::function<void()> how) -> Task<void> {
    how();
    co_return;
  };
  int found = 0;
  std::vector<Task<void>> tasks;
  for (int i = 0; i < 3; ++i) tasks.push_back(ask(resolver, loop(), found));
  tasks.push_back(let_go([this] { release(); }));
  block_on(loop(), when_all(loop(), std::move(tasks)));
  EXPECT_EQ(found, 3);
  EXPECT_EQ(asked(), 1);
}

TEST_F(ResolverTest, ThreadsAreLimited) {
  Resolver resolver(service(), 1);
  occupy(resolver, "slow");
  EXPECT_FALSE(find(resolver, "a", 1ms));
  release();
  EXPECT_TRUE(find(resolver, "a", 1h));
}

TEST_F(ResolverTest, NamesThatWaitAreLimited) {
  constexpr auto ask = [](Resolver& from, EventLoop& loop, std::string host,
                          std::map<std::string, int>& failures) -> Task<void> {
    const Found found = co_await from.find(loop, host, 443, 1s, nullptr);
    if (!found) ++failures[found.error().message.substr(found.error().message.rfind(':') + 2)];
  };
  Resolver resolver(service(), limits::kNameLookups);
  std::map<std::string, int> failures;
  std::vector<Task<void>> tasks;
  for (size_t i = 0; i < limits::kNameLookups; ++i) occupy(resolver, "slow" + std::to_string(i));
  for (size_t i = 0; i < limits::kWaitingNames + 5; ++i) {
    tasks.push_back(ask(resolver, loop(), std::to_string(i), failures));
  }
  block_on(loop(), when_all(loop(), std::move(tasks)));
  EXPECT_EQ(failures, (std::map<std::string, int>{{"i/o timeout", limits::kWaitingNames}, {"too many lookups", 5}}));
}

TEST_F(ResolverTest, CancellationEndsTheWait) {
  Resolver resolver(service());
  const auto cancellation = std::make_shared<Cancellation>();
  constexpr auto cancel = [](std::shared_ptr<Cancellation> now) -> Task<void> {
    now->cancel();
    co_return;
  };
  constexpr auto ask = [](Resolver& from, EventLoop& loop, std::shared_ptr<Cancellation> until,
                          std::string& why) -> Task<void> {
    const Found found = co_await from.find(loop, "slow", 443, 1h, std::move(until));
    if (!found) why = found.error().message;
  };
  std::string why, late;
  std::vector<Task<void>> tasks;
  tasks.push_back(ask(resolver, loop(), cancellation, why));
  tasks.push_back(cancel(cancellation));
  tasks.push_back(ask(resolver, loop(), cancellation, late));
  block_on(loop(), when_all(loop(), std::move(tasks)));
  EXPECT_EQ(why, kCancelled);
  EXPECT_EQ(late, kCancelled);
}

}  // namespace
}  // namespace holdfast::net::detail
