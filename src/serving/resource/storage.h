// The storage of one resource: its keys in the store, and its watch cache. Shared by all served versions of a kind.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/api_error.h"
#include "base/task.h"
#include "cache/cache.h"
#include "resource/object_codec.h"
#include "store/store.h"

namespace holdfast::resource {

class Storage {
 public:
  // `at_rest` is the encoding of values in this store if it is not Kubernetes' (embedded store).
  Storage(store::Store& store, std::shared_ptr<const ObjectCodec> codec, std::shared_ptr<const cache::Codec> at_rest,
          ownership::Pool& pool, cache::Executors executors, cache::Options options, const Clock& clock)
      : store_(store),
        codec_(std::move(codec)),
        namespaced_(options.namespaced),
        prefix_(options.prefix),
        cache_(store, at_rest != nullptr ? std::move(at_rest) : codec_, pool, executors, std::move(options), clock) {}

  store::Store& store() { return store_; }
  cache::Cache& cache() { return cache_; }
  const ObjectCodec& codec() const { return *codec_; }
  // The stored value for a canonical body and its managedFields.
  Result<std::string> stored_value(std::string_view body, std::span<const ownership::ManagedEntry> managed) const {
    return cache_.codec().encode(body, managed);
  }
  // Same, if `body` was just encoded from `tree` with all defaults set.
  Result<std::string> stored_value(Arena& arena, const Value& tree, std::string_view body,
                                   std::span<const ownership::ManagedEntry> managed) const {
    return cache_.codec().encode_normal(body, managed, codec_->fields_of(arena, tree));
  }

  // The key relative to the prefix: "namespace/name" or "name".
  std::string short_key(std::string_view ns, std::string_view name) const {
    std::string key;
    if (namespaced_) key.append(ns).append(1, '/');
    return key.append(name);
  }
  std::string key(std::string_view short_key) const { return prefix_ + std::string(short_key); }
  // The scope of a list or watch in a namespace; everything if `ns` is empty.
  std::string scope(std::string_view ns) const {
    return namespaced_ && !ns.empty() ? std::string(ns) + "/" : std::string();
  }
  const std::string& prefix() const { return prefix_; }

  // Reads the stored bytes of an object, even if the cache cannot decode them; resumes on the executor.
  Task<store::StoreResult<store::Got>> read_stored(std::string key, Executor& executor) {
    co_return co_await from_callback<store::StoreResult<store::Got>>(
        executor, [this, &key](auto done) { store_.get(std::move(key), std::move(done)); });
  }
  // Writes to the store; resumes on the executor.
  Task<store::StoreResult<store::WriteResult>> write(store::Transaction transaction, Executor& executor) {
    store::StoreResult<store::WriteResult> result = co_await from_callback<store::StoreResult<store::WriteResult>>(
        executor, [this, &transaction](auto done) { store_.write(std::move(transaction), std::move(done)); });
    if (result) {
      if (const auto* committed = std::get_if<store::Committed>(&*result)) note_written(committed->revision.value);
    }
    co_return result;
  }
  // The cache's state, no older than the last write of this server that has been acknowledged: waits for the cache if
  // it has not followed yet. Writes of other servers may be missing.
  Task<Result<cache::Snapshot>> with_own_writes(Executor& executor) {
    const Revision written{written_.load(std::memory_order_acquire)};
    Result<cache::Snapshot> now = cache_.snapshot();
    if (!now || now->revision().value >= written.value) co_return now;
    co_return co_await cache_.at_least(written, executor);
  }

 private:
  void note_written(uint64_t revision) {
    uint64_t known = written_.load(std::memory_order_relaxed);
    while (known < revision && !written_.compare_exchange_weak(known, revision, std::memory_order_release)) {
    }
  }

  store::Store& store_;
  const std::shared_ptr<const ObjectCodec> codec_;
  const bool namespaced_;
  const std::string prefix_;
  cache::Cache cache_;
  std::atomic<uint64_t> written_{0};  // Revision of the last acknowledged write.
};

}  // namespace holdfast::resource
