// The watchers of an embedded store, and the recent changes they are fed from. Private to store.
//
//             compacted          floor                    current
//   ....forgotten |  on disk only  |  on disk and in memory  |
//                                   ^ recent_ holds whole transactions in revision order
//
// A commit appends here and resumes waiting readers on the committing thread: no polling, no copies. A watcher that
// is behind the floor is handed to the reader (a function that reads history from disk) until it has caught up.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/hash.h"
#include "store/store.h"

namespace holdfast::store {

class Feed : public std::enable_shared_from_this<Feed> {
 public:
  struct History {
    std::vector<EventRef> events;  // Of whole transactions, only the range asked for.
    Revision reached;
  };
  // Posts a read: calls back later, on a thread that may wait, with changes after a revision; at least one
  // transaction's worth of progress.
  using Reader = std::function<void(std::string prefix, Revision after, Callback<History> done)>;

  Feed(Revision current, Revision compacted, uint64_t recent_bytes, Reader reader);

  Revision current() const;
  Revision compacted() const;

  // The newest change of a key if it is still in memory.
  EventRef recent(std::string_view key) const;

  // Transactions in revision order, on from current().
  void publish(std::vector<std::vector<EventRef>> transactions);
  // The store was opened again after a failure and is at `current` now; what happened meanwhile is on disk.
  void restart(Revision current);
  void set_compacted(Revision compacted);
  // Answers all watchers with Closed, from now on.
  void close();

  std::unique_ptr<Watcher> watch(WatchRequest request);

 private:
  struct Watching;
  class Handle;
  struct Answers;

  void advance(const std::shared_ptr<Watching>& watching, Answers& answers);
  void rest(const std::shared_ptr<Watching>& watching);
  void rouse(const std::shared_ptr<Watching>& watching);
  void read_history(const std::shared_ptr<Watching>& watching);
  void evict();

  // Constant after construction.
  const uint64_t recent_limit_bytes_;
  const Reader reader_;

  mutable std::mutex mutex_;  // Guards all below.
  Revision current_;
  Revision compacted_;
  Revision floor_;
  std::deque<std::vector<EventRef>> recent_;
  uint64_t recent_bytes_ = 0;
  std::unordered_map<std::string_view, EventRef, KeyHash> newest_;  // By key, the newest event in recent_.
  std::unordered_set<std::shared_ptr<Watching>> watchers_;
  // Those that wait and have seen everything, by prefix: a change looks up those that it concerns, however many others
  // there are. Prefixes that do not end at a slash are few and stand under "".
  std::unordered_multimap<std::string_view, std::shared_ptr<Watching>> resting_;
  bool closed_ = false;
};

}  // namespace holdfast::store
