// The storage of one resource: its keys in the store, and its watch cache. All served versions of a kind
// share one.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/api_error.h"
#include "base/task.h"
#include "cache/cache.h"
#include "resource/object_codec.h"
#include "store/store.h"

namespace holdfast::resource {

class Storage {
 public:
  // `at_rest`: the encoding of values in this store, if that is not Kubernetes' (the embedded one).
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
  // The value to store for a canonical body and its managedFields.
  Result<std::string> stored_value(std::string_view body, std::span<const ownership::ManagedEntry> managed) const {
    return cache_.codec().encode(body, managed);
  }
  // The same where `body` was just made from `tree`, with all defaults set.
  Result<std::string> stored_value(Arena& arena, const Value& tree, std::string_view body,
                                   std::span<const ownership::ManagedEntry> managed) const {
    return cache_.codec().encode_normal(body, managed, codec_->fields_of(arena, tree));
  }

  // "namespace/name" or "name": the key below the prefix.
  std::string short_key(std::string_view ns, std::string_view name) const {
    std::string key;
    if (namespaced_) key.append(ns).append(1, '/');
    return key.append(name);
  }
  std::string key(std::string_view short_key) const { return prefix_ + std::string(short_key); }
  // What a list or watch of a namespace looks at; everything when it is empty.
  std::string scope(std::string_view ns) const {
    return namespaced_ && !ns.empty() ? std::string(ns) + "/" : std::string();
  }
  const std::string& prefix() const { return prefix_; }

  // The stored bytes of an object, which the cache may not be able to read; resumes on the executor.
  Task<store::StoreResult<store::Got>> read_stored(std::string key, Executor& executor) {
    co_return co_await from_callback<store::StoreResult<store::Got>>(
        executor, [this, &key](auto done) { store_.get(std::move(key), std::move(done)); });
  }
  // Writes to the store; resumes on the executor.
  Task<store::StoreResult<store::WriteResult>> write(store::Transaction transaction, Executor& executor) {
    co_return co_await from_callback<store::StoreResult<store::WriteResult>>(
        executor, [this, &transaction](auto done) { store_.write(std::move(transaction), std::move(done)); });
  }

 private:
  store::Store& store_;
  const std::shared_ptr<const ObjectCodec> codec_;
  const bool namespaced_;
  const std::string prefix_;
  cache::Cache cache_;
};

}  // namespace holdfast::resource
