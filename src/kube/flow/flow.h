// API priority and fairness: which requests form a flow (FlowSchema), how much of the server each priority level may
// use concurrently (PriorityLevelConfiguration), and which request runs next when a level is full.
//
//   Schemas        immutable, built from the objects of the two kinds; finds the flow of a request.
//   Dispatcher     hands out seats. When a level has none left, its flows are served round-robin, one request each; a
//                  request that waits too long, or that finds its flow's queue full, is rejected.
//
// Threading: Schemas is immutable. A Dispatcher may be used from any thread; it locks for a few instructions.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "auth/auth.h"
#include "base/metrics.h"
#include "base/task.h"
#include "value/value.h"

namespace holdfast::flow {

// One PriorityLevelConfiguration.
struct Level {
  std::string name, uid;
  bool exempt = false;
  int64_t shares = 0;      // nominalConcurrencyShares.
  int64_t lendable = 0;    // lendablePercent.
  int64_t borrowing = -1;  // borrowingLimitPercent; -1 means unlimited.
  bool queues = false;     // limitResponse Queue; otherwise a request that finds no seat is rejected.
  // Queues of the level, queues one flow may use, requests per queue: together they limit how many requests may wait,
  // per flow and in total.
  int64_t queue_count = 0;
  int64_t hand_size = 0;
  int64_t queue_length = 0;

  static Level from(const Value& configuration);
};

// The flow of a request. Must not outlive the Schemas it comes from.
struct Flow {
  std::string_view schema, schema_uid;
  const Level* level = nullptr;
  std::string distinguisher;  // Separates flows of one schema: the user, the namespace, or empty.
};

class Schemas {
 public:
  // FlowSchemas whose level does not exist are skipped.
  static std::shared_ptr<const Schemas> build(const std::vector<Value>& flow_schemas,
                                              const std::vector<Value>& configurations);

  // The first matching schema, by matchingPrecedence, then name; nullopt if none matches.
  std::optional<Flow> classify(const auth::Attributes& attributes) const;
  const std::vector<std::unique_ptr<Level>>& levels() const { return levels_; }

 private:
  struct Rule;
  struct Schema;

 public:
  Schemas();
  ~Schemas();

 private:
  std::vector<std::unique_ptr<Level>> levels_;
  std::vector<std::unique_ptr<Schema>> schemas_;
};

struct DispatcherOptions {
  // Seats of the whole server: --max-requests-inflight plus --max-mutating-requests-inflight.
  int64_t seats = 600;
  // A quarter of the request timeout, as in kube-apiserver: after a longer wait too little time is left to serve it.
  std::chrono::milliseconds longest_wait{15'000};
};

class Dispatcher {
 public:
  Dispatcher(DispatcherOptions options, MetricRegistry& metrics);
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;
  ~Dispatcher();

  // Sets how many seats each level has.
  void configure(const Schemas& schemas);

  // Held while a request is served. Expensive requests take several seats.
  class Seat {
   public:
    Seat() = default;
    Seat(Seat&& other) noexcept
        : from_(std::exchange(other.from_, nullptr)),
          level_(other.level_),
          width_(other.width_),
          since_(other.since_),
          meters_(other.meters_) {}
    Seat& operator=(Seat&& other) noexcept {
      std::swap(from_, other.from_);
      std::swap(level_, other.level_);
      std::swap(width_, other.width_);
      std::swap(since_, other.since_);
      std::swap(meters_, other.meters_);
      return *this;
    }
    ~Seat();

   private:
    friend class Dispatcher;
    Dispatcher* from_ = nullptr;
    void* level_ = nullptr;
    int64_t width_ = 1;
    std::chrono::steady_clock::time_point since_;
    const void* meters_ = nullptr;
  };

  // `after` runs a function later, on the executor's thread; it ends the wait when no seat becomes free.
  using RunAfter = std::function<void(std::chrono::milliseconds, std::function<void()>)>;
  struct Entry {
    Seat seat;
    std::string refused;  // Why there is no seat: "queue-full", "concurrency-limit" or "time-out". Empty if seated.
  };
  Task<Entry> enter(Flow flow, int64_t seats, Executor& executor, RunAfter after);
  // The maximum number of seats that one request may take in a level; 0 if the level does not limit it.
  int64_t max_seats_per_request(std::string_view level) const;

 private:
  struct State;
  struct Waiter;
  struct LevelState;
  void leave(LevelState& level, int64_t seats);

  const std::unique_ptr<State> state_;
};

}  // namespace holdfast::flow
