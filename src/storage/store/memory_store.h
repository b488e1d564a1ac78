// The store contract in memory, for tests of the modules above: no disk, no threads, every callback on the thread that
// triggered it. Also the model that the contract suite compares the real engines with.
#pragma once

#include <memory>

#include "store/store.h"

namespace holdfast::store {

class MemoryStore : public Store {
 public:
  explicit MemoryStore(const Clock& clock = system_clock());
  ~MemoryStore() override;

  void get(std::string key, Callback<Got> done) override;
  void range(RangeRequest request, Callback<Page> done) override;
  void current_revision(Callback<Revision> done) override;
  void write(Transaction transaction, Callback<WriteResult> done) override;
  void write_all(std::vector<Transaction> transactions,
                 std::function<void(std::vector<StoreResult<WriteResult>>)> done) override;
  std::unique_ptr<Watcher> watch(WatchRequest request) override;
  void compact(Revision revision, Callback<Unit> done) override;
  void status(Callback<Status> done) override;

  // --- For tests ---
  // Deletes every key whose TTL has passed; nothing else does.
  void expire();
  // While set, every read, write and status fails with it. Watchers continue.
  void set_failure(std::optional<StoreError> failure);
  // From now on behaves like an old etcd: progress is neither exact nor reported.
  void disable_progress();
  // Ends every open watcher with this error, as when a connection is lost permanently.
  void break_watchers(StoreError error);

 private:
  struct State;
  class Following;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::store
