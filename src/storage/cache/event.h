// One change of the resource, shared by all watchers, and its cached renderings.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cache/bodies.h"
#include "cache/cache.h"

namespace holdfast::cache {

// Counters of events and watchers, which may outlive the cache.
struct SharedCounts {
  std::atomic<uint64_t> renders{0}, hits{0}, bytes{0}, slow_watchers{0};
};

class Event {
 public:
  Event(EventType type, Revision revision, EntryRef object, EntryRef previous,
        std::chrono::steady_clock::time_point arrived, std::shared_ptr<SharedCounts> counts)
      : type(type),
        revision(revision),
        object(std::move(object)),
        previous(std::move(previous)),
        arrived(arrived),
        former_bytes(this->previous ? this->previous->body_bytes() + this->previous->ownership().kept_bytes() : 0),
        counts_(std::move(counts)) {}
  ~Event() { forget_renderings(); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  const EventType type;  // Added, Modified, Deleted.
  const Revision revision;
  const EntryRef object;    // Null if deleted.
  const EntryRef previous;  // Null if added.
  const std::chrono::steady_clock::time_point arrived;
  const uint64_t former_bytes;  // Of `previous`, which only history keeps in memory.

  // The previous state with this change's revision: sent to watchers that no longer match the object. Built once.
  EntryRef gone(Bodies& bodies, const Codec& codec) const;

  Blob render(EventType as, std::string_view form, const std::function<std::string()>& make) const;
  void forget_renderings() const;
  void count_hits(uint64_t hits) const { counts_->hits.fetch_add(hits, std::memory_order_relaxed); }

 private:
  struct Rendering {
    EventType as;
    std::string form;
    Blob bytes;
  };
  const std::shared_ptr<SharedCounts> counts_;
  // Held while rendering: a second caller waits for the first instead of rendering again.
  mutable std::mutex mutex_;
  mutable EntryRef gone_;
  mutable std::vector<Rendering> renderings_;
};

// While it exists, its thread finds its own renderings of events without locks and without contended reference counts:
// many watchers of one loop are given the same event at once.
class SharedRenderings {
 public:
  SharedRenderings() : outer_(current) { current = this; }
  ~SharedRenderings();
  SharedRenderings(const SharedRenderings&) = delete;
  SharedRenderings& operator=(const SharedRenderings&) = delete;

  static thread_local constinit SharedRenderings* current;  // The innermost one of this thread, or null.

  // Null if not found.
  const Blob* find(const Event& event, EventType as, std::string_view form);
  const Blob& keep(std::shared_ptr<const Event> event, EventType as, std::string_view form, const Blob& bytes);

 private:
  struct Known {
    std::shared_ptr<const Event> event;
    EventType as = EventType::Bookmark;
    std::string form;
    Blob bytes;
    uint64_t hits = 0;
  };
  static constexpr size_t kForms = 4;  // Typical number of forms per event.

  SharedRenderings* const outer_;
  std::array<Known, kForms> known_;
  size_t next_ = 0;  // The next slot to replace.
};

}  // namespace holdfast::cache
