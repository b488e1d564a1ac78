// One server's connection to a store that it shares with others: every call takes time, calls fail, the connection of
// watches breaks, and history is compacted. What and when follows from a seed.
//
// Everything stays within the contract of store.h, so that a server must cope with it: a write that fails with
// Unavailable was not made, one that fails with Timeout may have been, or is made later.
//
// Threading: used on one loop, whose time is simulated. Lifetime: destroy it after all its calls have been answered.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "net/net.h"
#include "simulation/random.h"
#include "store/memory_store.h"

namespace holdfast::simulation {

// Probabilities in percent.
struct Faults {
  int slow = 0;                // Of a call that takes up to `most_delay`; others take none.
  net::Millis most_delay{20};  // Each way.
  int unavailable = 0;         // Of any call.
  int lost_response = 0;       // Of a write whose response does not arrive, whether it was made or not.
  int broken_watch = 0;        // Of each batch of a watch: it is lost with the connection.
  int slow_watch = 0;          // Of each batch of a watch that takes up to `most_watch_delay`.
  net::Millis most_watch_delay{200};

  bool any_failures() const { return unavailable > 0 || lost_response > 0 || broken_watch > 0; }
};

// Breaks a promise of the store, so that a test of the checks can see that they notice.
enum class Bug : uint8_t { None, SkipsEvents, ForgetsWrites, ReadsOldValues };

class FaultyStore final : public store::Store {
 public:
  FaultyStore(store::MemoryStore& inner, net::EventLoop& loop, uint64_t seed)
      : inner_(inner), loop_(loop), random_(seed) {}

  void set_faults(const Faults& faults) { faults_ = faults; }
  void set_bug(Bug bug) { bug_ = bug; }
  uint64_t injected() const { return injected_; }  // Number of failures so far.

  void get(std::string key, store::Callback<store::Got> done) override;
  void range(store::RangeRequest request, store::Callback<store::Page> done) override;
  void current_revision(store::Callback<Revision> done) override;
  void write(store::Transaction transaction, store::Callback<store::WriteResult> done) override;
  void write_all(std::vector<store::Transaction> transactions,
                 std::function<void(std::vector<store::StoreResult<store::WriteResult>>)> done) override;
  std::unique_ptr<store::Watcher> watch(store::WatchRequest request) override;
  void compact(Revision revision, store::Callback<Unit> done) override { inner_.compact(revision, std::move(done)); }
  void status(store::Callback<store::Status> done) override { inner_.status(std::move(done)); }

 private:
  class Following;

  // Runs `work` now or after a while.
  void after_delay(std::function<void()> work);
  void after(net::Millis delay, std::function<void()> work);
  bool happens(int percent);
  // Calls `start` with a callback that passes the result on, both after a while; or fails.
  template <class T, class Start>
  void pass_on(store::Callback<T> done, Start start);

  store::MemoryStore& inner_;
  net::EventLoop& loop_;
  Random random_;
  Faults faults_;
  Bug bug_ = Bug::None;
  uint64_t injected_ = 0;
  std::map<std::string, store::Got, std::less<>> read_before_;  // For Bug::ReadsOldValues.
};

}  // namespace holdfast::simulation
