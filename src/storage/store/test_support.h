// Shared by the tests of store: waiting for callbacks, a manual clock, temporary directories, engines under test.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "store/store.h"

namespace holdfast::store::testing {

inline constexpr auto kPatience = std::chrono::seconds(30);

// Calls start(callback) and waits for the response.
template <class T, class Start>
StoreResult<T> await(Start start) {
  auto promise = std::make_shared<std::promise<StoreResult<T>>>();
  std::future<StoreResult<T>> answer = promise->get_future();
  start([promise](StoreResult<T> result) { promise->set_value(std::move(result)); });
  if (answer.wait_for(kPatience) != std::future_status::ready) {
    return StoreError{ErrorKind::Internal, "the test waited too long for an answer"};
  }
  return answer.get();
}

// A store with blocking calls, for readable tests.
class Waiting {
 public:
  explicit Waiting(Store& store) : store_(store) {}

  StoreResult<Got> get(std::string key) {
    return await<Got>([&](auto done) { store_.get(std::move(key), std::move(done)); });
  }
  StoreResult<Page> range(RangeRequest request) {
    return await<Page>([&](auto done) { store_.range(std::move(request), std::move(done)); });
  }
  StoreResult<WriteResult> write(Transaction transaction) {
    return await<WriteResult>([&](auto done) { store_.write(std::move(transaction), std::move(done)); });
  }
  StoreResult<Unit> compact(Revision revision) {
    return await<Unit>([&](auto done) { store_.compact(revision, std::move(done)); });
  }
  StoreResult<Revision> current_revision() {
    return await<Revision>([&](auto done) { store_.current_revision(std::move(done)); });
  }
  StoreResult<Status> status() {
    return await<Status>([&](auto done) { store_.status(std::move(done)); });
  }

  // A write that must succeed; returns its revision.
  Revision commit(Transaction transaction) {
    StoreResult<WriteResult> result = write(std::move(transaction));
    if (!result) {
      ADD_FAILURE() << result.error().message;
      return {};
    }
    if (!std::holds_alternative<Committed>(*result)) {
      ADD_FAILURE() << "conflict";
      return {};
    }
    return std::get<Committed>(*result).revision;
  }
  Revision create(std::string key, std::string value) {
    return commit({store::create(std::move(key), make_blob(std::move(value)))});
  }
  Revision update(std::string key, Revision expected, std::string value) {
    return commit({store::update(std::move(key), expected, make_blob(std::move(value)))});
  }
  Revision remove(std::string key, Revision expected) { return commit({store::remove(std::move(key), expected)}); }

 private:
  Store& store_;
};

inline StoreResult<WatchBatch> next(Watcher& watcher) {
  return await<WatchBatch>([&](auto done) { watcher.next(std::move(done)); });
}

// Collects `count` events, however they are batched.
inline std::vector<EventRef> take(Watcher& watcher, size_t count) {
  std::vector<EventRef> events;
  while (events.size() < count) {
    StoreResult<WatchBatch> batch = next(watcher);
    if (!batch) {
      ADD_FAILURE() << batch.error().message;
      break;
    }
    events.insert(events.end(), batch->events.begin(), batch->events.end());
  }
  return events;
}

// "+/a@5=x", "~/a@6=y<x", "-/a@7<y": type, key, revision relative to `base`, value, previous value.
inline std::string describe(const Event& event, Revision base = {}) {
  std::string out = event.type == Event::Type::Created ? "+" : event.type == Event::Type::Updated ? "~" : "-";
  out += event.key + "@" + std::to_string(event.revision.value - base.value);
  if (event.value) out += "=" + *event.value;
  if (event.previous) out += "<" + *event.previous;
  return out;
}

class TestClock final : public Clock {
 public:
  UnixTime now() const override { return {seconds_.load(), 0}; }
  std::chrono::steady_clock::time_point monotonic() const override {
    return std::chrono::steady_clock::time_point(std::chrono::seconds(seconds_.load()));
  }
  void pass(std::chrono::seconds time) { seconds_ += time.count(); }

 private:
  std::atomic<int64_t> seconds_{1'800'000'000};
};

// One engine in the contract suite.
class EngineUnderTest {
 public:
  virtual ~EngineUnderTest() = default;
  virtual Store& store() = 0;
  // Advances the time for TTLs by at least this much.
  virtual void pass(std::chrono::seconds time) = 0;
  // Closes the store; store() must not be used afterwards.
  virtual void close() = 0;
};

struct Engine {
  const char* name;
  std::unique_ptr<EngineUnderTest> (*start)();  // Returns null if the engine is not installed.
};

// Defined by the test program, next to the engines.
std::vector<Engine> engines();

}  // namespace holdfast::store::testing
