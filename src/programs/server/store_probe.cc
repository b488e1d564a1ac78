#include "server/store_probe.h"

#include <atomic>
#include <map>
#include <memory>

#include "base/log.h"
#include "store/embedded.h"

namespace holdfast::server {
namespace {

constexpr std::chrono::milliseconds kPatience(2000);
constexpr std::chrono::milliseconds kFresh(500);
constexpr std::chrono::milliseconds kWatchInterval(1000);
constexpr std::chrono::minutes kNoticeInterval(1);

using Wrong = std::optional<std::string>;
using std::chrono::steady_clock;

// The value that `start(answer)` passes to answer(), or `late` after two seconds, whichever comes first.
template <class Start>
Task<Wrong> within_patience(net::EventLoop& loop, Wrong late, Start start) {
  Timer timer(loop);
  co_return co_await from_callback<Wrong>(loop, [&timer, &late, &start](std::function<void(Wrong)> done) {
    auto answer = [done = std::move(done), over = std::make_shared<std::atomic<bool>>(false)](Wrong said) {
      if (!over->exchange(true)) done(std::move(said));
    };
    timer.start(kPatience, [answer, late] { answer(late); });
    start(answer);
  });
}

int64_t seconds_since(steady_clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::seconds>(steady_clock::now() - begin).count();
}

}  // namespace

Task<Wrong> StoreProbe::read(net::EventLoop& loop) {
  return within_patience(loop, "error getting data from etcd: context deadline exceeded", [this](auto answer) {
    store_.get(key_, [answer](store::StoreResult<store::Got> got) {
      answer(got ? Wrong() : Wrong("error getting data from etcd: " + got.error().message));
    });
  });
}

Task<void> StoreProbe::refresh(net::EventLoop& loop) {
  {
    std::lock_guard lock(mutex_);
    const auto now = steady_clock::now();
    if (asking_ || (asked_ && now - *asked_ < kFresh)) co_return;
    asking_ = true;
    asked_ = now;
  }
  Wrong wrong = co_await read(loop);
  std::lock_guard lock(mutex_);
  wrong_ = std::move(wrong);
  asking_ = false;
}

std::optional<std::string> StoreProbe::wrong() const {
  std::lock_guard lock(mutex_);
  return wrong_;
}

std::optional<std::string> StoreProbe::writes_rejected() const {
  if (directory_.empty()) return std::nullopt;
  return store::disk_full(directory_);
}

store::EtcdNotices log_etcd_notices() {
  // What every request that fails would report.
  class Seldom {
   public:
    bool due(const std::string& what) {
      const std::lock_guard lock(mutex_);
      const auto now = steady_clock::now();
      const auto [last, first] = at_.try_emplace(what, now);
      if (!first && now - last->second < kNoticeInterval) return false;
      last->second = now;
      return true;
    }

   private:
    std::mutex mutex_;
    std::map<std::string, steady_clock::time_point> at_;  // By endpoint: a few.
  };
  return {.failover =
              [seldom = std::make_shared<Seldom>()](const std::string& endpoint, const std::string& next,
                                                    const std::string& why) {
                if (!seldom->due(endpoint)) return;
                log::warning("an etcd member does not respond, or has no leader: requests go to the next one",
                             {{"endpoint", endpoint}, {"next", next}, {"error", why}});
              },
          .no_space =
              [seldom = std::make_shared<Seldom>()](const std::string& endpoint, const std::string& why) {
                if (!seldom->due(endpoint)) return;
                log::error("etcd rejects writes, because it has reached its space quota",
                           {{"endpoint", endpoint},
                            {"error", why},
                            {"todo", "defragment etcd or raise --quota-backend-bytes, then etcdctl alarm disarm"}});
              }};
}

StoreWatch::StoreWatch(net::EventLoop& loop, std::vector<StoreProbe*> probes)
    : loop_(loop), tasks_(loop, "store watch") {
  for (StoreProbe* probe : probes) watched_.push_back({probe, std::nullopt, std::nullopt});
}

void StoreWatch::start() {
  tasks_.post([this] { return watch(); });
}

Task<void> StoreWatch::watch() {
  while (!tasks_.closing()) {
    for (Watched& watched : watched_) {
      co_await watched.probe->refresh(loop_);
      note(watched);
    }
    co_await tasks_.sleep(kWatchInterval);
  }
}

void StoreWatch::note(Watched& watched) {
  const bool embedded = watched.probe->embedded();
  const Wrong wrong = watched.probe->wrong();
  if (wrong && !watched.failing_since) {
    watched.failing_since = steady_clock::now();
    log::error("the store does not respond: requests fail, and /readyz reports it",
               {{"error", *wrong},
                {"todo", embedded ? "check the disk and its file system; the store is opened again by itself"
                                  : "check that most members of etcd run and reach each other: etcdctl endpoint status "
                                    "--cluster"}});
  } else if (!wrong && watched.failing_since) {
    log::info("the store responds again", {{"seconds", seconds_since(*watched.failing_since)}});
    watched.failing_since.reset();
  }
  const Wrong rejected = watched.probe->writes_rejected();
  if (rejected && !watched.rejecting_since) {
    watched.rejecting_since = steady_clock::now();
    log::error("the store takes no writes but deletions",
               {{"error", *rejected}, {"todo", "free space on this file system; writes continue by themselves"}});
  } else if (!rejected && watched.rejecting_since) {
    log::info("the store takes writes again", {{"seconds", seconds_since(*watched.rejecting_since)}});
    watched.rejecting_since.reset();
  }
}

}  // namespace holdfast::server
