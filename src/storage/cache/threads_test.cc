// Writers, watchers and readers on several threads, for ThreadSanitizer. Also checks the guarantee of watchers: every
// change once, in order, none skipped, so that the events they saw add up to the state.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "base/thread_pool.h"
#include "cache/test_support.h"

namespace holdfast::cache {
namespace {

using namespace std::chrono_literals;

struct World {
  store::MemoryStore store;
  ownership::Pool pool{Gates{}};
  ThreadPool threads{3};
  Options options{.prefix = "/registry/pods/",
                  .resource = "pods",
                  .events_per_snapshot = 32,
                  .plain_body_bytes = 4000,
                  .rendered_bytes = 2000,
                  .list_page = 50};
  std::unique_ptr<Cache> cache;
  std::atomic<bool> stop{false};
  std::atomic<int> running{0};

  World() {
    cache = std::make_unique<Cache>(store, std::make_shared<TestCodec>(), pool, Executors{&threads, &threads}, options);
  }
  void spawn_counted(Task<void> task) {
    ++running;
    spawn(std::move(task), [this](std::exception_ptr failure) {
      if (failure) std::terminate();
      --running;
    });
  }
  void wait_for_tasks() const {
    while (running > 0) std::this_thread::sleep_for(1ms);
  }
};

std::string body_of(int i) { return std::string(200, 'b') + " the same in all of them " + std::to_string(i); }

// The state reconstructed from the events of one watcher, by key.
using Seen = std::map<std::string, uint64_t>;

Task<void> follow(World* world, WatchRequest request, Seen* seen, Revision until) {
  co_await resume_on(world->threads);
  Result<Watcher> opened = co_await world->cache->watch(request, world->threads);
  if (!opened) std::terminate();
  Watcher watcher = std::move(*opened);
  uint64_t last = 0;
  bool live = request.start != WatchRequest::Start::Initial;
  std::vector<Delivery> batch;
  while (last < until.value) {
    co_await watcher.next(world->threads, batch, 16);
    if (batch.empty()) std::terminate();
    for (const Delivery& delivery : batch) {
      if (delivery.initial_events_end) {
        live = true;
        last = delivery.revision.value;
        continue;
      }
      if (live) {
        if (delivery.revision.value <= last) std::terminate();  // Ordered, unique.
        last = delivery.revision.value;
      }
      const std::string key(delivery.object()->key());
      const Blob bytes = delivery.render("form", [](const Delivery& d) { return *d.object()->body(); });
      if (bytes->rfind("rv=" + std::to_string(delivery.revision.value) + ";", 0) != 0) std::terminate();
      // The ownership matches the body.
      if (*delivery.object()->ownership().fields_v1(0) != "{\"f:" + std::string(delivery.object()->uid()) + "\":{}}")
        std::terminate();
      if (delivery.type == EventType::Deleted) {
        if (seen->erase(key) != 1) std::terminate();
      } else {
        if ((delivery.type == EventType::Added) == seen->contains(key)) std::terminate();
        (*seen)[key] = delivery.revision.value;
      }
    }
  }
}

Task<void> read(World* world, uint32_t seed) {
  co_await resume_on(world->threads);
  std::mt19937 random(seed);
  while (!world->stop) {
    Result<Snapshot> snapshot = co_await world->cache->consistent(world->threads);
    if (!snapshot) std::terminate();
    Result<Snapshot> exact = co_await world->cache->exactly(snapshot->revision(), world->threads);
    if (!exact || exact->count() != snapshot->count()) std::terminate();
    for (const EntryRef& entry : snapshot->list({.scope = "a/", .limit = 5}).entries) {
      if (entry->revision() > snapshot->revision()) std::terminate();
      entry->body(random() % 2 == 0 ? Entry::Use::Hot : Entry::Use::Once);
    }
    (void)world->cache->usage();
  }
}

TEST(CacheThreadsTest, EventsAddUpToTheStateUnderConcurrentLoad) {
  World world;
  const auto write = [&world](store::Operation operation) {
    Revision at;
    world.store.write({std::move(operation)}, [&](store::StoreResult<store::WriteResult> result) {
      if (auto* committed = std::get_if<store::Committed>(&*result)) at = committed->revision;
    });
    return at;
  };
  const auto stored = [](int i) {
    TestObject object{.uid = "u" + std::to_string(i), .labels = {{"app", std::to_string(i % 3)}}, .body = body_of(i)};
    object.owners = {{"m", "{\"f:u" + std::to_string(i) + "\":{}}"}};
    return store::make_blob(object.stored());
  };
  for (int i = 0; i < 200; ++i) write(store::create("/registry/pods/a/start" + std::to_string(i), stored(i)));
  world.cache->start();
  while (!world.cache->ready()) std::this_thread::sleep_for(1ms);

  constexpr int kWrites = 600;
  // Each write is one revision, so the last is known before it happens.
  const Revision end{world.cache->revision().value + 2 * kWrites + 1};
  std::vector<Seen> seen(6);
  for (size_t i = 0; i < seen.size(); ++i) {
    world.spawn_counted(
        follow(&world, {.start = WatchRequest::Start::Initial, .bookmarks = true, .initial_events_bookmark = true},
               &seen[i], end));
  }
  for (uint32_t i = 0; i < 3; ++i) world.spawn_counted(read(&world, i));
  std::thread ticking([&world] {
    while (!world.stop) {
      world.cache->tick();
      std::this_thread::sleep_for(1ms);
    }
  });
  std::vector<std::thread> writers;
  for (int w = 0; w < 2; ++w) {
    writers.emplace_back([&, w] {
      std::mt19937 random(static_cast<uint32_t>(w));
      std::map<std::string, Revision> mine;
      for (int i = 0; i < kWrites; ++i) {
        const std::string key = "/registry/pods/w" + std::to_string(w) + "/" + std::to_string(random() % 40);
        if (mine.contains(key) && random() % 3 == 0) {
          write(store::remove(key, mine[key]));
          mine.erase(key);
        } else if (mine.contains(key)) {
          mine[key] = write(store::update(key, mine[key], stored(i)));
        } else {
          mine[key] = write(store::create(key, stored(i)));
        }
        // Lose the connection occasionally.
        if (w == 0 && i % 200 == 100) world.store.break_watchers({store::ErrorKind::Unavailable, "lost"});
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  ASSERT_EQ(write(store::create("/registry/pods/z/end", stored(0))), end);
  while (world.running > 3) std::this_thread::sleep_for(1ms);
  world.stop = true;
  world.wait_for_tasks();
  ticking.join();

  Seen want;
  const Result<Snapshot> last = world.cache->snapshot();
  ASSERT_TRUE(last);
  for (const EntryRef& entry : last->list({}).entries) want[std::string(entry->key())] = entry->revision().value;
  for (const Seen& one : seen) EXPECT_EQ(one, want);
  EXPECT_GT(world.cache->counters().render_hits, 0u);

  std::atomic<bool> closed{false};
  spawn(world.cache->close(world.threads), [&](std::exception_ptr) { closed = true; });
  while (!closed) std::this_thread::sleep_for(1ms);
}

}  // namespace
}  // namespace holdfast::cache
