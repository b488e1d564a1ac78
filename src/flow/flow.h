// Priority and fairness: which requests belong together (FlowSchema), how much of the server each group may use at once
// (PriorityLevelConfiguration), and which request is next when that is used up.
//
//   Schemas        immutable, made of the two kinds' objects; finds the flow of a request.
//   Dispatcher     gives out seats. A level that has none left lets its flows wait in turn, one request of each; what
//                  waits too long, or behind too many of its own flow, is rejected.
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
  int64_t shares = 0;       // nominalConcurrencyShares.
  int64_t lendable = 0;     // lendablePercent.
  int64_t borrowing = -1;   // borrowingLimitPercent; -1: unlimited.
  bool queues = false;      // limitResponse Queue; otherwise what finds no seat is rejected.
  int64_t queue_count = 0;  // Queues of the level, queues that one flow may use, requests in each: together they bound
  int64_t hand_size = 0;    // how many may wait, of one flow and of all.
  int64_t queue_length = 0;

  static Level from(const Value& configuration);
};

// Where a request belongs. Lives as long as the Schemas it comes from.
struct Flow {
  std::string_view schema, schema_uid;
  const Level* level = nullptr;
  std::string distinguisher;  // Distinguishes flows of the schema: the user, the namespace, or empty.
};

class Schemas {
 public:
  // FlowSchemas whose level does not exist are skipped.
  static std::shared_ptr<const Schemas> build(const std::vector<Value>& flow_schemas,
                                              const std::vector<Value>& configurations);

  // The first schema that matches, by matchingPrecedence and name. Nothing: no schema does.
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
  // Seats of the whole server: --max-requests-inflight and --max-mutating-requests-inflight together.
  int64_t seats = 600;
  // A quarter of a request's time, as upstream: who waited longer has no time left to be served in.
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

  // Held while a request is served. A request that is more work than others takes several.
  class Seat {
   public:
    Seat() = default;
    Seat(Seat&& other) noexcept
        : from_(std::exchange(other.from_, nullptr)),
          level_(other.level_),
          width_(other.width_),
          running_(other.running_) {}
    Seat& operator=(Seat&& other) noexcept {
      std::swap(from_, other.from_);
      std::swap(level_, other.level_);
      std::swap(width_, other.width_);
      std::swap(running_, other.running_);
      return *this;
    }
    ~Seat();

   private:
    friend class Dispatcher;
    Dispatcher* from_ = nullptr;
    void* level_ = nullptr;
    int64_t width_ = 1;
    Gauge* running_ = nullptr;
  };

  // `after` calls something later, on the executor's thread: how the wait ends when no seat becomes free. Rejected: why
  // ("queue-full", "concurrency-limit", "time-out").
  using RunAfter = std::function<void(std::chrono::milliseconds, std::function<void()>)>;
  struct Entry {
    Seat seat;
    std::string refused;  // Not empty: no seat.
  };
  Task<Entry> enter(Flow flow, int64_t seats, Executor& executor, RunAfter after);
  // The most that one request may take of a level. 0: the level does not say.
  int64_t widest(std::string_view level) const;

 private:
  struct State;
  struct Waiter;
  struct LevelState;
  void leave(LevelState& level, int64_t seats);

  const std::unique_ptr<State> state_;
};

}  // namespace holdfast::flow
