// Threads for the long parts of requests, shared so that nobody's work keeps others waiting.
//
//   users     queue 1: A A A A A      The threads serve the users in turn, one piece of work each, small work of a user
//                   2: B              before its large work. One user never has all threads, nor does large work:
//                   3: C C            a small piece of work of somebody else starts at once.
//
// Threading: any thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "base/task.h"

namespace holdfast {

class FairPool final : public Executor {
 public:
  enum class Size : uint8_t { Small, Large };

  // At least two threads.
  explicit FairPool(size_t threads);
  ~FairPool() override;  // Runs everything that was posted, then joins the threads.
  FairPool(const FairPool&) = delete;
  FairPool& operator=(const FairPool&) = delete;

  // Work of nobody in particular.
  void post(std::function<void()> work) override { post({}, Size::Small, std::move(work)); }
  // Where the work of one request runs: on behalf of this user. `user` must outlive it.
  class Lane final : public Executor {
   public:
    Lane(FairPool& pool, std::string_view user, Size size) : pool_(pool), user_(user), size_(size) {}
    void post(std::function<void()> work) override { pool_.post(user_, size_, std::move(work)); }

   private:
    FairPool& pool_;
    const std::string_view user_;
    const Size size_;
  };

 private:
  using Work = std::function<void()>;
  struct User {
    std::string name;
    std::deque<Work> small, large;
    size_t running = 0;
    bool idle() const { return running == 0 && small.empty() && large.empty(); }
  };
  struct Picked {
    std::list<User>::iterator user;
    Size size;
    Work work;
  };

  void post(std::string_view user, Size size, Work work);
  // The work whose turn it is; false if none may start now. Called with the lock held.
  bool pick(Picked& picked);
  void run();

  const size_t thread_count_;
  std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_.
  std::list<User> users_;  // Those with work, in the order in which their turns come.
  std::unordered_map<std::string, std::list<User>::iterator, KeyHash, std::equal_to<>> by_name_;
  size_t running_large_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace holdfast
