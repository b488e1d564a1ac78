#include "resource/storage.h"

#include <gtest/gtest.h>

#include "cache/test_support.h"

namespace holdfast::resource {
namespace {

using cache::QueueExecutor;
using cache::Snapshot;

template <class T>
void start(Task<T> task, std::optional<T>& out) {
  spawn(cache::put_into(std::move(task), &out), [](std::exception_ptr failure) { EXPECT_FALSE(failure); });
}

// Admission must not accept an object for a namespace whose deletion has been acknowledged, even if the cache lags.
TEST(StorageTest, AcknowledgedWritesAreSeenBeforeTheCacheHasFollowed) {
  cache::TestClock clock;
  QueueExecutor feed, requests;
  store::MemoryStore store{clock};
  ownership::Pool pool{Gates{}};
  Storage storage(store, nullptr, std::make_shared<cache::TestCodec>(), pool, {&feed, &feed},
                  {.prefix = "/registry/pods/", .resource = "pods"}, clock);
  storage.cache().start();
  feed.run();

  std::optional<store::StoreResult<store::WriteResult>> written;
  start(storage.write({store::create(storage.key("a/x"), store::make_blob(cache::TestObject{}.stored()))}, requests),
        written);
  requests.run();
  ASSERT_TRUE(written && *written);
  EXPECT_FALSE(storage.cache().snapshot()->find("a/x"));

  std::optional<Result<Snapshot>> seen;
  start(storage.with_own_writes(requests), seen);
  requests.run();
  EXPECT_FALSE(seen);
  feed.run();
  requests.run();
  ASSERT_TRUE(seen && *seen);
  EXPECT_TRUE((*seen)->find("a/x"));

  bool closed = false;
  spawn(storage.cache().close(feed), [&](std::exception_ptr) { closed = true; });
  feed.run();
  EXPECT_TRUE(closed);
}

}  // namespace
}  // namespace holdfast::resource
