// memory_bench fill DIR POD [--mixed] [--kubernetes] [--pods=N] [--apps=N]   fills an embedded store with pods
// memory_bench run DIR [--plain-bodies] [--inline] [--feature-gates=...] [--churn=N] [--no-header] [--json]
//
// `run` starts a watch cache on the store as the server does and prints the time until it is ready, the resident memory
// of the process, and a breakdown. --kubernetes stores pods as kube-apiserver writes them, without our mark; --inline
// leaves ownership in the bodies, as in kube-apiserver's cache. That baseline exists only here, not in the server.
#include <malloc.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

#include "base/files.h"
#include "base/gates.h"
#include "base/process.h"
#include "base/thread_pool.h"
#include "cache/cache.h"
#include "resource/object_codec.h"
#include "store/store.h"
#include "types/types.h"
#include "workload.h"

namespace holdfast::bench {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }
double mb(uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

struct Arguments {
  std::string command, directory, pod, gates;
  bool mixed = false, kubernetes = false, plain_bodies = false, in_bodies = false, header = true, json = false;
  size_t pods = 100000, churn = 0;
  size_t apps = 0;  // 0 for 200, or 2,000 if mixed.
};

std::unique_ptr<store::Store> open(const std::string& directory) {
  auto store = store::open_rocks({.directory = directory});
  if (!store) {
    std::fprintf(stderr, "memory_bench: %s\n", store.error().message.c_str());
    std::exit(1);
  }
  return std::move(*store);
}

// The codec of the server, which stores pods in normal form.
std::shared_ptr<const cache::Codec> pod_codec() {
  return resource::make_builtin_codec(*types::find_resource("", "v1", "pods"), Gates{});
}

// Ownership stays in the body, as FieldsV1.
class InlineCodec final : public cache::Codec {
 public:
  explicit InlineCodec(std::shared_ptr<const cache::Codec> inner) : inner_(std::move(inner)) {}
  Result<cache::Decoded> decode(std::string_view key, std::string_view stored, Revision revision) const override {
    Result<cache::Decoded> decoded = inner_->decode(key, stored, revision);
    if (!decoded) return decoded;
    Result<std::string> plain = cache::kubernetes_value(stored);
    if (!plain) return plain.take_error();
    decoded->body = inner_->with_revision(*plain, revision);
    decoded->managed.clear();
    return decoded;
  }
  Result<std::string> encode(std::string_view body, std::span<const ownership::ManagedEntry>) const override {
    return std::string(body);
  }
  std::string with_revision(std::string_view body, Revision revision) const override {
    return inner_->with_revision(body, revision);
  }
  std::span<const std::string_view> field_names() const override { return inner_->field_names(); }
  std::span<const uint16_t> indexed_fields() const override { return inner_->indexed_fields(); }

 private:
  const std::shared_ptr<const cache::Codec> inner_;
};

int fill(const Arguments& arguments) {
  const Result<std::string> pod = read_file(arguments.pod);
  if (!pod) {
    std::fprintf(stderr, "memory_bench: %s\n", pod.error().message.c_str());
    return 1;
  }
  const auto plain = pod_codec();
  const auto embedded = cache::embedded_codec(plain, {});
  const size_t apps = arguments.apps != 0 ? arguments.apps : arguments.mixed ? 2000 : 200;
  Workload::Options options{.pods = arguments.pods, .apps = apps, .mixed = arguments.mixed};
  if (!arguments.kubernetes) {
    options.store_as = [&](std::string stored) {
      Result<cache::Decoded> decoded = plain->decode("", stored, Revision{1});
      return *embedded->encode(decoded->body, decoded->managed);
    };
  }
  Result<Workload> workload = Workload::make(*pod, options);
  if (!workload) {
    std::fprintf(stderr, "memory_bench: %s\n", workload.error().message.c_str());
    return 1;
  }
  const auto store = open(arguments.directory);
  uint64_t bytes = 0;
  for (size_t i = 0; i < workload->pods();) {
    std::vector<store::Transaction> batch;
    for (; batch.size() < 500 && i < workload->pods(); ++i) {
      std::string value = workload->stored(i);
      bytes += value.size();
      batch.push_back({store::create("/registry/pods/" + workload->key(i), store::make_blob(std::move(value)))});
    }
    std::atomic<int> done{0};
    store->write_all(std::move(batch), [&](std::vector<store::StoreResult<store::WriteResult>> results) {
      for (const auto& result : results) {
        if (!result || !std::holds_alternative<store::Committed>(*result)) {
          std::fprintf(stderr, "memory_bench: a write failed\n");
          std::exit(1);
        }
      }
      done = 1;
      done.notify_one();
    });
    done.wait(0);
  }
  std::printf("stored %zu pods of %.1f KB\n", workload->pods(),
              static_cast<double>(bytes) / static_cast<double>(workload->pods()) / 1e3);
  return 0;
}

// Rewrites randomly chosen pods; the old bodies stay in the event window for a while.
void churn(store::Store& store, cache::Cache& cache, size_t count) {
  const cache::Snapshot snapshot = *cache.snapshot();
  const std::vector<cache::EntryRef> entries = snapshot.list({}).entries;
  std::mt19937_64 random(1);
  std::atomic<uint64_t> open_writes{0};
  for (size_t i = 0; i < count; ++i) {
    const std::string key = "/registry/pods/" + std::string(entries[random() % entries.size()]->key());
    ++open_writes;
    store.get(key, [&, key](store::StoreResult<store::Got> got) {
      // Change one byte of a timestamp, which exists in every encoding.
      std::string value = *got->item->value;
      value[value.size() / 2] = static_cast<char>(value[value.size() / 2] ^ 1);
      store.write({store::update(key, got->item->modified, store::make_blob(std::move(value)))},
                  [&](store::StoreResult<store::WriteResult>) { --open_writes; });
    });
    while (open_writes > 64) std::this_thread::yield();
  }
  while (open_writes > 0) std::this_thread::yield();
}

int run(const Arguments& arguments) {
  Result<Gates> gates = Gates{}.parse(arguments.gates);
  if (!gates) {
    std::fprintf(stderr, "memory_bench: %s\n", gates.error().message.c_str());
    return 1;
  }
  const auto start = Clock::now();
  const auto store = open(arguments.directory);
  ownership::Pool pool(*gates);
  ThreadPool feed(1), background(2);
  cache::Options options{.prefix = "/registry/pods/", .resource = "pods"};
  options.compress_bodies = !arguments.plain_bodies;
  std::shared_ptr<const cache::Codec> codec = cache::embedded_codec(pod_codec(), {});
  if (arguments.in_bodies) codec = std::make_shared<InlineCodec>(codec);
  cache::Cache cache(*store, codec, pool, {&feed, &background}, options);
  cache.start();
  while (!cache.ready()) {
    if (const auto last_error = cache.last_error()) {
      std::fprintf(stderr, "memory_bench: %s\n", last_error->message.c_str());
      return 1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const double ready = since(start);
  const double cpu = cpu_seconds();
  const uint64_t at_ready = resident_bytes();
  if (arguments.churn > 0) churn(*store, cache, arguments.churn);
  // Wait for the background work after a list; one second is plenty.
  for (int i = 0; i < 15; ++i) {
    cache.tick();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  malloc_trim(0);
  const cache::Usage usage = cache.usage();
  const ownership::PoolUsage owned = pool.usage();
  if (arguments.json) {
    std::printf(R"({"objects":%llu,"ready_ms":%.0f,"cpu_ms":%.0f,"rss_mb":%.1f,"bodies_mb":%.1f,"ownership_mb":%.1f)"
                R"(,"ownership_raw_mb":%.1f})"
                "\n",
                static_cast<unsigned long long>(usage.entries), ready * 1e3, cpu * 1e3, mb(resident_bytes()),
                mb(usage.body_packed_bytes + usage.dictionary_bytes + usage.body_plain_bytes), mb(owned.total_bytes()),
                mb(owned.fields_v1_bytes));
  } else {
    if (arguments.header) {
      std::printf("%8s %8s %8s %8s | %8s %8s %8s %8s %8s %8s | %9s %9s\n", "ready s", "CPU s", "RSS then", "RSS MB",
                  "bodies", "plain", "entries", "index", "events", "owners", "raw body", "FieldsV1");
    }
    std::printf("%8.2f %8.2f %8.0f %8.0f | %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f | %9.0f %9.0f\n", ready, cpu,
                mb(at_ready), mb(resident_bytes()), mb(usage.body_packed_bytes + usage.dictionary_bytes),
                mb(usage.body_plain_bytes), mb(usage.entry_bytes + usage.label_bytes), mb(usage.index_bytes),
                mb(usage.event_bytes + usage.rendered_bytes), mb(owned.total_bytes()), mb(usage.body_raw_bytes),
                mb(owned.fields_v1_bytes));
  }
  std::fflush(stdout);
  std::atomic<bool> closed{false};
  spawn(cache.close(feed), [&](std::exception_ptr) { closed = true; });
  while (!closed) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return 0;
}

}  // namespace
}  // namespace holdfast::bench

int main(int argc, char** argv) {
  holdfast::bench::Arguments arguments;
  std::vector<std::string> plain;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const auto value = [&](std::string_view name, std::string& out) {
      if (!argument.starts_with(name)) return false;
      out = argument.substr(name.size());
      return true;
    };
    std::string number;
    if (argument == "--mixed") {
      arguments.mixed = true;
    } else if (argument == "--kubernetes") {
      arguments.kubernetes = true;
    } else if (argument == "--plain-bodies") {
      arguments.plain_bodies = true;
    } else if (argument == "--inline") {
      arguments.in_bodies = true;
    } else if (argument == "--json") {
      arguments.json = true;
    } else if (argument == "--no-header") {
      arguments.header = false;
    } else if (value("--feature-gates=", arguments.gates)) {
    } else if (value("--pods=", number)) {
      arguments.pods = std::stoul(number);
    } else if (value("--apps=", number)) {
      arguments.apps = std::stoul(number);
    } else if (value("--churn=", number)) {
      arguments.churn = std::stoul(number);
    } else {
      plain.emplace_back(argument);
    }
  }
  if (plain.size() == 3 && plain[0] == "fill") {
    arguments.directory = plain[1];
    arguments.pod = plain[2];
    return holdfast::bench::fill(arguments);
  }
  if (plain.size() == 2 && plain[0] == "run") {
    arguments.directory = plain[1];
    return holdfast::bench::run(arguments);
  }
  std::fprintf(
      stderr,
      "memory_bench fill DIR POD [--mixed] [--kubernetes] [--pods=N] [--apps=N]\nmemory_bench run DIR [--plain-bodies] "
      "[--feature-gates=...] [--churn=N]\n");
  return 2;
}
