// The implementation of an event loop: epoll, an eventfd for posted work, a timer heap, and two queues of deferred
// work: coroutines to resume, and connections whose output is flushed at the end of the round.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "net/net.h"
#include "net/simulated_time.h"

namespace holdfast::net::detail {

using TimePoint = std::chrono::steady_clock::time_point;

// The owner of a file descriptor registered with the loop.
class EventSource {
 public:
  virtual ~EventSource() = default;
  virtual void on_events(uint32_t events) = 0;
};

// A writer whose output is collected during a round and sent once at its end.
class Flushable {
 public:
  virtual ~Flushable() = default;
  virtual void flush() = 0;
  bool flush_scheduled = false;
};

struct LoopState {
  LoopState();
  ~LoopState();

  void run();
  void stop();  // Thread-safe; run() returns after the current round.
  void post(std::function<void()> work);

  void add(int fd, EventSource* source, uint32_t events);
  void change(int fd, EventSource* source, uint32_t events);
  // The source receives no further events, not even pending ones of the current round.
  void remove(int fd, EventSource* source);

  // Resumes later in this round from the loop itself, never from inside a parser or encoder.
  void resume_soon(std::coroutine_handle<> handle) { ready_.push_back(handle); }
  void flush_soon(Flushable* what) {
    if (what->flush_scheduled) return;
    what->flush_scheduled = true;
    dirty_.push_back(what);
  }
  void forget(Flushable* what);
  // Deferred destruction: at the end of the round none of its functions is on the stack.
  void destroy_later(std::unique_ptr<EventSource> dead) { graveyard_.push_back(std::move(dead)); }

  uint64_t add_timer(TimePoint when, std::function<void()> work);
  void cancel_timer(uint64_t id) { timers_.erase(id); }

  TimePoint now() const { return now_; }  // The time at which this round began.
  // The system's time, or that of a simulation.
  TimePoint current_time() const {
    return simulated_ == nullptr ? std::chrono::steady_clock::now() : simulated_->monotonic();
  }
  void simulate(SimulatedTime& time);
  std::string_view http_date();  // "Sun, 06 Nov 1994 08:49:37 GMT", formatted once per second.

  std::atomic<std::thread::id> thread;
  std::atomic<int64_t> longest_stall_us{0};

  // Scratch buffers for one round, shared by the loop's connections so that idle ones hold none.
  std::string received;  // Read from the socket.
  std::string plain;     // Decrypted.
  std::string staged;    // Plaintext collected for the next TLS record.
  std::string sealed;    // Output for the socket.

 private:
  int wait_millis() const;
  void run_timers();
  void run_posted();
  // Runs posted work, resumes coroutines, flushes output, and destroys what was buried.
  void run_round();
  bool has_work();
  // Called after each unit of work; records the longest one.
  void measure_stall();

  int epoll_fd_;
  int wake_fd_;
  std::atomic<bool> stopping_{false};
  SimulatedTime* simulated_ = nullptr;  // Null for the system's time.
  TimePoint now_;
  TimePoint measured_;  // When the previous unit of work ended.
  std::vector<std::coroutine_handle<>> ready_, resuming_;
  std::vector<Flushable*> dirty_, flushing_;
  std::vector<std::unique_ptr<EventSource>> graveyard_;
  std::array<epoll_event, 128> events_;
  int event_count_ = 0;

  struct Due {
    TimePoint when;
    uint64_t id;
    bool operator>(const Due& other) const { return when > other.when; }
  };
  std::vector<Due> heap_;  // Cancelled timers stay until they are due.
  std::unordered_map<uint64_t, std::function<void()>> timers_;
  uint64_t next_timer_ = 1;

  time_t date_second_ = 0;
  std::string date_;

  std::mutex mutex_;  // Guards posted_.
  std::vector<std::function<void()>> posted_;
  std::atomic<bool> asleep_{false};             // Set under the lock when posted_ is empty; post() then wakes the loop.
  std::vector<std::function<void()>> running_;  // Used only by the loop's thread.
};

}  // namespace holdfast::net::detail
