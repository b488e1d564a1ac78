#include "simulation/faulty_store.h"

#include <utility>

namespace holdfast::simulation {

using store::ErrorKind;
using store::StoreError;
using store::StoreResult;

namespace {

StoreError unavailable() { return {ErrorKind::Unavailable, "the simulated store cannot be reached"}; }
StoreError closed() { return {ErrorKind::Closed, "the watcher was closed"}; }

}  // namespace

bool FaultyStore::happens(int percent) { return percent > 0 && random_.percent(percent); }

void FaultyStore::after(net::Millis delay, std::function<void()> work) {
  if (delay.count() == 0) return work();
  loop_.run_after(delay, std::move(work));
}

void FaultyStore::after_delay(std::function<void()> work) {
  const bool slow = happens(faults_.slow);
  after(net::Millis(slow ? random_.below(static_cast<uint64_t>(faults_.most_delay.count()) + 1) : 0), std::move(work));
}

template <class T, class Start>
void FaultyStore::pass_on(store::Callback<T> done, Start start) {
  if (happens(faults_.unavailable)) {
    ++injected_;
    after_delay([done = std::move(done)] { done(unavailable()); });
    return;
  }
  after_delay([this, done = std::move(done), start = std::move(start)] {
    start([this, done](StoreResult<T> result) { after_delay([done, result = std::move(result)] { done(result); }); });
  });
}

void FaultyStore::get(std::string key, store::Callback<store::Got> done) {
  if (bug_ == Bug::ReadsOldValues) {
    const auto known = read_before_.find(key);
    if (known != read_before_.end() && random_.percent(30)) return done(known->second);
    return inner_.get(key, [this, key, done = std::move(done)](StoreResult<store::Got> result) {
      if (result) read_before_.insert_or_assign(key, *result);
      done(std::move(result));
    });
  }
  pass_on<store::Got>(std::move(done), [this, key = std::move(key)](store::Callback<store::Got> got) {
    inner_.get(key, std::move(got));
  });
}

void FaultyStore::range(store::RangeRequest request, store::Callback<store::Page> done) {
  pass_on<store::Page>(std::move(done), [this, request = std::move(request)](store::Callback<store::Page> read) {
    inner_.range(request, std::move(read));
  });
}

void FaultyStore::current_revision(store::Callback<Revision> done) {
  pass_on<Revision>(std::move(done),
                    [this](store::Callback<Revision> read) { inner_.current_revision(std::move(read)); });
}

void FaultyStore::write(store::Transaction transaction, store::Callback<store::WriteResult> done) {
  if (bug_ == Bug::ForgetsWrites && random_.percent(10)) {
    inner_.current_revision([done = std::move(done)](StoreResult<Revision> now) {
      done(store::WriteResult(store::Committed{{now->value + 1}}));
    });
    return;
  }
  if (happens(faults_.lost_response)) {
    ++injected_;
    // Made before the response is given up, afterwards, or never.
    const uint64_t fate = random_.below(3);
    const net::Millis given_up(1 + random_.below(300));
    const net::Millis made(fate == 0 ? random_.below(static_cast<uint64_t>(given_up.count()))
                                     : static_cast<uint64_t>(given_up.count()) + random_.below(200));
    if (fate < 2) {
      after(made, [this, transaction = std::move(transaction)]() mutable {
        inner_.write(std::move(transaction), [](const StoreResult<store::WriteResult>&) {});
      });
    }
    after(given_up,
          [done = std::move(done)] { done(StoreError{ErrorKind::Timeout, "no response from the simulated store"}); });
    return;
  }
  pass_on<store::WriteResult>(
      std::move(done), [this, transaction = std::move(transaction)](store::Callback<store::WriteResult> written) {
        inner_.write(transaction, std::move(written));
      });
}

void FaultyStore::write_all(std::vector<store::Transaction> transactions,
                            std::function<void(std::vector<StoreResult<store::WriteResult>>)> done) {
  inner_.write_all(std::move(transactions), std::move(done));
}

// --- Watches ---

// Delivers the batches of an inner watcher late, in pieces, until the connection breaks.
class FaultyStore::Following final : public store::Watcher {
 public:
  Following(FaultyStore& store, store::WatchRequest request) : state_(std::make_shared<State>(store)) {
    state_->inner = store.inner_.watch(std::move(request));
  }
  ~Following() override {
    // Callbacks of delayed work find nothing to do.
    const std::shared_ptr<State> state = std::move(state_);
    state->ended = closed();
    store::Callback<store::WatchBatch> waiting = std::exchange(state->waiting, nullptr);
    state->inner.reset();
    if (waiting) waiting(closed());
  }

  void next(store::Callback<store::WatchBatch> done) override {
    const std::shared_ptr<State> state = state_;  // This watcher may be destroyed by the callback.
    assert(!state->waiting);
    state->waiting = std::move(done);
    if (state->ended) return answer(state, *state->ended);
    if (!state->rest.events.empty()) {
      state->store.after_delay([state] { deliver(state, std::exchange(state->rest, {})); });
      return;
    }
    const auto read = [state] {
      if (state->ended) return;
      state->inner->next([state](StoreResult<store::WatchBatch> batch) {
        if (state->ended) return;
        Faults& faults = state->store.faults_;
        const bool slow = state->store.happens(faults.slow_watch);
        const net::Millis delay(
            slow ? state->store.random_.below(static_cast<uint64_t>(faults.most_watch_delay.count())) : 0);
        state->store.after(delay, [state, batch = std::move(batch)] {
          if (state->ended) return;
          if (!batch) return fail(state, batch.error());
          deliver(state, *batch);
        });
      });
    };
    state->store.after_delay(read);
  }

  void request_progress() override {
    state_->store.after_delay([state = state_] {
      if (!state->ended) state->inner->request_progress();
    });
  }

 private:
  struct State {
    explicit State(FaultyStore& of) : store(of) {}
    FaultyStore& store;
    std::unique_ptr<store::Watcher> inner;
    store::Callback<store::WatchBatch> waiting;
    store::WatchBatch rest;  // Received but not delivered yet.
    std::optional<StoreError> ended;
  };

  static void answer(const std::shared_ptr<State>& state, StoreResult<store::WatchBatch> result) {
    std::exchange(state->waiting, nullptr)(std::move(result));
  }
  static void fail(const std::shared_ptr<State>& state, StoreError error) {
    state->ended = error;
    answer(state, std::move(error));
  }
  static void deliver(const std::shared_ptr<State>& state, store::WatchBatch batch) {
    if (state->ended) return;
    FaultyStore& store = state->store;
    if (store.happens(store.faults_.broken_watch)) {
      ++store.injected_;
      return fail(state, unavailable());
    }
    if (store.bug_ == Bug::SkipsEvents && !batch.events.empty() && store.random_.percent(10)) batch.events.pop_back();
    // Whole transactions, each of which has one revision.
    if (batch.events.size() > 1 && store.random_.percent(30)) {
      size_t count = 1 + store.random_.below(batch.events.size() - 1);
      while (count < batch.events.size() && batch.events[count]->revision == batch.events[count - 1]->revision) ++count;
      if (count < batch.events.size()) {
        const auto cut = batch.events.begin() + static_cast<std::ptrdiff_t>(count);
        state->rest.revision = batch.revision;
        state->rest.events.assign(cut, batch.events.end());
        batch.events.erase(cut, batch.events.end());
        batch.revision = batch.events.back()->revision;
      }
    }
    answer(state, std::move(batch));
  }

  std::shared_ptr<State> state_;
};

std::unique_ptr<store::Watcher> FaultyStore::watch(store::WatchRequest request) {
  return std::make_unique<Following>(*this, std::move(request));
}

}  // namespace holdfast::simulation
