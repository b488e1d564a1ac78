#include "base/fair_pool.h"

#include <algorithm>

#include "base/task_group.h"

namespace holdfast {

FairPool::FairPool(size_t threads) : thread_count_(std::max<size_t>(2, threads)) {
  for (size_t i = 0; i < thread_count_; ++i) threads_.emplace_back([this] { run(); });
}

FairPool::~FairPool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void FairPool::post(std::string_view user, Size size, Work work) {
  const std::lock_guard lock(mutex_);
  auto found = by_name_.find(user);
  if (found == by_name_.end()) {
    users_.push_back({.name = std::string(user)});
    found = by_name_.emplace(users_.back().name, std::prev(users_.end())).first;
  }
  User& whose = *found->second;
  (size == Size::Small ? whose.small : whose.large).push_back(std::move(work));
  // With the lock held: the work may allow the owner to destroy the pool.
  wake_.notify_one();
}

bool FairPool::pick(Picked& picked) {
  const bool large_may_run = running_large_ < thread_count_ / 2;
  for (auto user = users_.begin(); user != users_.end(); ++user) {
    if (user->running >= thread_count_ - 1) continue;
    const bool small = !user->small.empty();
    if (!small && (user->large.empty() || !large_may_run)) continue;
    std::deque<Work>& queue = small ? user->small : user->large;
    picked = {user, small ? Size::Small : Size::Large, std::move(queue.front())};
    queue.pop_front();
    ++user->running;
    if (!small) ++running_large_;
    users_.splice(users_.end(), users_, user);  // The others come first now.
    return true;
  }
  return false;
}

void FairPool::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    Picked picked;
    wake_.wait(lock, [&] { return pick(picked) || (ending_ && users_.empty()); });
    if (!picked.work) return;
    lock.unlock();
    run_guarded("background thread", picked.work);
    picked.work = nullptr;
    lock.lock();
    if (picked.size == Size::Large) --running_large_;
    --picked.user->running;
    if (picked.user->idle()) {
      by_name_.erase(picked.user->name);
      users_.erase(picked.user);
    }
    // What may start now: work that was held back, or the end.
    wake_.notify_all();
  }
}

}  // namespace holdfast
