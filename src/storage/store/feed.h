// The watchers of an embedded store, and the recent changes delivered to them. Private to store.
//
//             compacted          floor                    current
//   ....compacted |  on disk only  |  on disk and in memory  |
//                                   ^ recent_ holds whole transactions in revision order
//
// A commit appends here and calls back waiting watchers on the committing thread: no polling, no copies. A watcher that
// is behind the floor is served by the reader (a function that reads history from disk) until it has caught up.
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
    std::vector<EventRef> events;  // Of whole transactions, only the requested range.
    Revision reached;
  };
  // Starts a read: calls back later, on a thread that may block, with changes after a revision; makes progress by at
  // least one transaction.
  using Reader = std::function<void(std::string prefix, Revision after, Callback<History> done)>;

  Feed(Revision current, Revision compacted, uint64_t recent_bytes, Reader reader);

  Revision current() const;
  Revision compacted() const;

  // The newest change of a key if it is still in memory.
  EventRef recent(std::string_view key) const;

  // Transactions in revision order, continuing at current().
  void publish(std::vector<std::vector<EventRef>> transactions);
  // The store was reopened after a failure and is now at `current`; changes made in the meantime are on disk.
  void restart(Revision current);
  void set_compacted(Revision compacted);
  // From now on, all watchers get Closed.
  void close();

  std::unique_ptr<Watcher> watch(WatchRequest request);

 private:
  struct Watching;
  class Handle;
  struct Answers;

  void advance(const std::shared_ptr<Watching>& watching, Answers& answers);
  void rest(const std::shared_ptr<Watching>& watching);
  void unpark(const std::shared_ptr<Watching>& watching);
  void read_history(const std::shared_ptr<Watching>& watching);
  void evict();

  // Constant after construction.
  const uint64_t recent_limit_bytes_;
  const Reader reader_;

  mutable std::mutex mutex_;  // Guards the members below.
  Revision current_;
  Revision compacted_;
  Revision floor_;
  std::deque<std::vector<EventRef>> recent_;
  uint64_t recent_bytes_ = 0;
  std::unordered_map<std::string_view, EventRef, KeyHash> newest_;  // By key: its newest event in recent_.
  std::unordered_set<std::shared_ptr<Watching>> watchers_;
  // Waiting watchers that are up to date, by prefix: a change only looks up the watchers it concerns, however many
  // others there are. Prefixes that do not end with a slash are rare and stored under "".
  std::unordered_multimap<std::string_view, std::shared_ptr<Watching>> parked_;
  bool closed_ = false;
};

}  // namespace holdfast::store
