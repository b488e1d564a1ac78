// For tests of the cache: a resource whose stored values are a few readable lines, a manual clock and executor, and a
// cache on an in-memory store.
//
//   uid u1
//   label app=web
//   node n1
//   owner alice {"f:spec":{}}
//   body anything
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "cache/cache.h"
#include "store/memory_store.h"

namespace holdfast::cache {

struct TestObject {
  std::string uid = "u";
  std::map<std::string, std::string> labels = {};
  std::string node = {};
  std::vector<std::pair<std::string, std::string>> owners = {};  // Manager, FieldsV1.
  std::string body = {};

  std::string stored() const {
    std::string out = "uid " + uid + "\n";
    for (const auto& [key, value] : labels) out += "label " + key + "=" + value + "\n";
    if (!node.empty()) out += "node " + node + "\n";
    for (const auto& [manager, fields] : owners) out += "owner " + manager + " " + fields + "\n";
    return out + "body " + body + "\n";
  }
};

class TestCodec : public Codec {
 public:
  Result<Decoded> decode(std::string_view key, std::string_view stored, Revision revision) const override {
    Decoded decoded;
    auto copy = std::make_shared<std::string>(stored);
    decoded.memory = copy;
    std::string_view rest = *copy;
    decoded.fields = {""};
    bool has_body = false;
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      const size_t space = line.find(' ');
      const std::string_view word = line.substr(0, space), tail = line.substr(std::min(line.size(), space + 1));
      if (word == "uid") decoded.uid = tail;
      if (word == "label") decoded.labels.emplace_back(tail.substr(0, tail.find('=')), tail.substr(tail.find('=') + 1));
      if (word == "node") decoded.fields[0] = tail;
      if (word == "owner") {
        const size_t end = tail.find(' ');
        decoded.managed.push_back({.manager = tail.substr(0, end),
                                   .operation = "Update",
                                   .api_version = "v1",
                                   .subresource = {},
                                   .time = {},
                                   .fields_type = ownership::kFieldsV1,
                                   .fields = tail.substr(end + 1)});
      }
      if (word == "body") {
        decoded.body = "rv=" + std::to_string(revision.value) + ";" + std::string(tail);
        has_body = true;
      }
    }
    if (!has_body) return internal_error("cannot read " + std::string(key));
    return decoded;
  }
  Result<std::string> encode(std::string_view body, std::span<const ownership::ManagedEntry>) const override {
    return std::string(body);
  }
  std::string with_revision(std::string_view body, Revision revision) const override {
    return "rv=" + std::to_string(revision.value) + std::string(body.substr(body.find(';')));
  }
  std::span<const std::string_view> field_names() const override { return kNames; }
  std::span<const uint16_t> indexed_fields() const override { return kIndexed; }

 private:
  static constexpr std::string_view kNames[] = {"spec.nodeName"};
  static constexpr uint16_t kIndexed[] = {0};
};

class TestClock : public Clock {
 public:
  UnixTime now() const override { return {1700000000, 0}; }
  std::chrono::steady_clock::time_point monotonic() const override { return now_; }
  void pass(std::chrono::milliseconds time) { now_ += time; }

 private:
  std::chrono::steady_clock::time_point now_{std::chrono::hours(1)};
};

class QueueExecutor : public Executor {
 public:
  void post(std::function<void()> work) override { queue_.push_back(std::move(work)); }
  void run() {
    while (!queue_.empty()) {
      auto work = std::move(queue_.front());
      queue_.pop_front();
      work();
    }
  }

 private:
  std::deque<std::function<void()>> queue_;
};

template <class T>
Task<void> put_into(Task<T> task, std::optional<T>* out) {
  out->emplace(co_await task);
}

inline Task<std::vector<Delivery>> next_of(Watcher* watcher, Executor* executor, size_t max = 256) {
  std::vector<Delivery> out;
  co_await watcher->next(*executor, out, max);
  co_return out;
}

// One cache of pods, everything on the test's own thread.
struct CacheFixture {
  TestClock clock;
  QueueExecutor executor;
  store::MemoryStore store{clock};
  ownership::Pool pool{Gates{}};
  Options options{.prefix = "/registry/pods/", .resource = "pods"};
  std::unique_ptr<Cache> cache;

  ~CacheFixture() {
    if (cache) close();
  }

  void start() {
    cache = std::make_unique<Cache>(store, std::make_shared<TestCodec>(), pool, Executors{&executor, &executor},
                                    options, clock);
    cache->start();
    executor.run();
  }
  void close() {
    bool done = false;
    spawn(cache->close(executor), [&](std::exception_ptr) { done = true; });
    executor.run();
    EXPECT_TRUE(done);
    cache.reset();
  }

  Revision put(const std::string& key, const TestObject& object) { return put_bytes(key, object.stored()); }
  Revision put_bytes(const std::string& key, std::string bytes) {
    const std::string full = options.prefix + key;
    Revision expected;
    store.get(full, [&](store::StoreResult<store::Got> got) {
      if (got->item) expected = got->item->modified;
    });
    return write(expected.value == 0 ? store::create(full, store::make_blob(std::move(bytes)))
                                     : store::update(full, expected, store::make_blob(std::move(bytes))));
  }
  Revision remove(const std::string& key) {
    const std::string full = options.prefix + key;
    Revision expected;
    store.get(full, [&](store::StoreResult<store::Got> got) { expected = got->item->modified; });
    return write(store::remove(full, expected));
  }
  Revision write(store::Operation operation) {
    Revision revision;
    store.write({std::move(operation)}, [&](store::StoreResult<store::WriteResult> result) {
      ASSERT_TRUE(result);
      revision = std::get<store::Committed>(*result).revision;
    });
    executor.run();
    return revision;
  }
  // Writes outside the prefix of the resource: the revision advances, nothing of the resource changes.
  Revision write_elsewhere() {
    static int i = 0;
    return write(store::create("/registry/other/" + std::to_string(++i), store::make_blob("x")));
  }

  void pass(std::chrono::milliseconds time) {
    clock.pass(time);
    cache->tick();
    executor.run();
  }

  // The result of a task that completes without time passing.
  template <class T>
  T get(Task<T> task) {
    std::optional<T> out;
    spawn(put_into(std::move(task), &out), [](std::exception_ptr failure) { EXPECT_FALSE(failure); });
    executor.run();
    EXPECT_TRUE(out);
    return std::move(*out);
  }

  std::vector<Delivery> next(Watcher& watcher, size_t max = 256) { return get(next_of(&watcher, &executor, max)); }

  Watcher watch(WatchRequest request) {
    Result<Watcher> watcher = get(cache->watch(std::move(request), executor));
    EXPECT_TRUE(watcher) << watcher.error().message;
    return std::move(*watcher);
  }
  // All queued events, one string each: "ADDED a/x rv=3;body".
  std::vector<std::string> events(Watcher& watcher) {
    std::vector<std::string> out;
    while (watcher.pending()) {
      std::vector<Delivery> batch = next(watcher);
      if (batch.empty()) {
        out.push_back("END");
        break;
      }
      for (const Delivery& delivery : batch) out.push_back(to_text(delivery));
    }
    return out;
  }
  static std::string to_text(const Delivery& delivery) {
    static constexpr const char* kTypes[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"};
    std::string text = kTypes[static_cast<int>(delivery.type)];
    if (delivery.type == EventType::Bookmark) {
      return text + " " + std::to_string(delivery.revision.value) + (delivery.initial_events_end ? " end" : "");
    }
    return text + " " + std::string(delivery.object()->key()) + " " + *delivery.object()->body();
  }
  static std::vector<std::string> keys(const Snapshot& snapshot, const ListRequest& request = {}) {
    std::vector<std::string> out;
    for (const EntryRef& entry : snapshot.list(request).entries) out.emplace_back(entry->key());
    return out;
  }
  static std::string owners(const Entry& entry) {
    std::string out;
    for (size_t i = 0; i < entry.ownership().count(); ++i) {
      out += std::string(entry.ownership().manager(i).manager) + *entry.ownership().fields_v1(i);
    }
    return out;
  }
};

}  // namespace holdfast::cache
