// Implementation of an event loop: epoll, an eventfd for posts, a heap of timers, and two lists that keep work off the
// stack: coroutines to resume, and connections whose output should leave when this round is over.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "net/net.h"

namespace holdfast::net::detail {

using TimePoint = std::chrono::steady_clock::time_point;

// Something with a file descriptor.
class EventSource {
 public:
  virtual ~EventSource() = default;
  virtual void on_events(uint32_t events) = 0;
};

// Something whose output is gathered during a round and sent once at its end.
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
  void stop();  // Any thread; run() returns after the round.
  void post(std::function<void()> work);

  void add(int fd, EventSource* source, uint32_t events);
  void change(int fd, EventSource* source, uint32_t events);
  // After this the source gets no more events, not even those of the current round.
  void remove(int fd, EventSource* source);

  // Resumes at the next step of this round, from the top of the loop's stack: never inside a parser or an encoder.
  void resume_soon(std::coroutine_handle<> handle) { ready_.push_back(handle); }
  void flush_soon(Flushable* what) {
    if (what->flush_scheduled) return;
    what->flush_scheduled = true;
    dirty_.push_back(what);
  }
  void forget(Flushable* what);
  // Destroyed at the end of the round, when no frame of it is on the stack.
  void bury(std::unique_ptr<EventSource> dead) { graveyard_.push_back(std::move(dead)); }

  uint64_t add_timer(TimePoint when, std::function<void()> work);
  void cancel_timer(uint64_t id) { timers_.erase(id); }

  TimePoint now() const { return now_; }  // Of this round.
  std::string_view http_date();           // "Sun, 06 Nov 1994 08:49:37 GMT", made once a second.

  std::atomic<std::thread::id> thread;
  std::atomic<int64_t> longest_stall_us{0};

  // Scratch of one round, shared by the connections of this loop so that idle ones hold no buffers.
  std::string received;  // As from the socket.
  std::string plain;     // Decrypted.
  std::string staged;    // Plain output on its way to one record.
  std::string sealed;    // As for the socket.

 private:
  int wait_millis() const;
  void run_timers();
  void run_posted();
  // Work of one kind has ended: how long it took counts if it is the longest so far.
  void measure_stall();

  int epoll_fd_;
  int wake_fd_;
  std::atomic<bool> stopping_{false};
  TimePoint now_;
  TimePoint measured_;  // The end of the work before.
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
  std::vector<Due> heap_;  // Cancelled ones stay until their time comes.
  std::unordered_map<uint64_t, std::function<void()>> timers_;
  uint64_t next_timer_ = 1;

  time_t date_second_ = 0;
  std::string date_;

  std::mutex mutex_;  // Guards posted_.
  std::vector<std::function<void()>> posted_;
  std::atomic<bool> asleep_{false};  // Set under the lock while nothing is posted: posting then wakes the loop.
  std::vector<std::function<void()>> running_;  // Owned by the loop.
};

}  // namespace holdfast::net::detail
