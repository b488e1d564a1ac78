#include "server/store_probe.h"

#include <atomic>

#include "base/task_group.h"

namespace holdfast::server {
namespace {

constexpr std::chrono::milliseconds kPatience(2000);
constexpr std::chrono::milliseconds kFresh(500);

using Wrong = std::optional<std::string>;

}  // namespace

Task<void> StoreProbe::refresh(net::EventLoop& loop) {
  {
    std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (asking_ || (asked_ && now - *asked_ < kFresh)) co_return;
    asking_ = true;
    asked_ = now;
  }
  Timer timer(loop);
  Wrong wrong = co_await from_callback<Wrong>(loop, [this, &timer](std::function<void(Wrong)> done) {
    // Response or timeout, whichever comes first.
    auto answer = [done = std::move(done), over = std::make_shared<std::atomic<bool>>(false)](Wrong said) {
      if (!over->exchange(true)) done(std::move(said));
    };
    timer.start(kPatience, [answer] { answer("error getting data from etcd: context deadline exceeded"); });
    store_.get(key_, [answer](store::StoreResult<store::Got> got) {
      answer(got ? Wrong() : Wrong("error getting data from etcd: " + got.error().message));
    });
  });
  std::lock_guard lock(mutex_);
  wrong_ = std::move(wrong);
  asking_ = false;
}

std::optional<std::string> StoreProbe::wrong() const {
  std::lock_guard lock(mutex_);
  return wrong_;
}

}  // namespace holdfast::server
