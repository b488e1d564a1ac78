// Acknowledged writes per second, watch latency and restart time of the embedded store on a given disk.
//
//   store_bench DIR [--seconds=N] [--objects=N] [--only=write,watch,restart]
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/process.h"
#include "store/store.h"

namespace {

using namespace holdfast;
using namespace holdfast::store;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

struct Options {
  std::string directory;
  double seconds = 3;
  uint64_t objects = 100'000;
  std::string only = "sync,write,watch,restart";
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Like an object: half of it is repetitive, half random.
std::string make_value(size_t bytes, std::mt19937_64& random) {
  std::string value(bytes, 'x');
  for (size_t i = 0; i + 8 <= bytes / 2; i += 8) {
    uint64_t word = random();
    std::memcpy(value.data() + i, &word, sizeof word);
  }
  return value;
}

std::unique_ptr<Store> open(const std::string& directory) {
  RocksOptions options;
  options.directory = directory;
  StoreResult<std::unique_ptr<Store>> store = open_rocks(options);
  if (!store) {
    std::fprintf(stderr, "%s\n", store.error().message.c_str());
    std::exit(1);
  }
  return std::move(*store);
}

double percentile(std::vector<double>& sorted, double p) {
  return sorted.empty() ? 0 : sorted[static_cast<size_t>(p * static_cast<double>(sorted.size() - 1))];
}

// Baseline of the disk itself: appends of 1 KB, each synced.
void bench_sync(const Options& options) {
  std::string path = options.directory + "/sync";
  int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  std::string bytes(1024, 'x');
  uint64_t count = 0;
  auto start = Clock::now();
  for (; seconds_since(start) < 1; ++count) {
    if (::write(file, bytes.data(), bytes.size()) < 0 || ::fdatasync(file) != 0) break;
  }
  std::printf("disk: %.0f appends of 1 KB with fdatasync a second\n",
              static_cast<double>(count) / seconds_since(start));
  ::close(file);
  fs::remove(path);
}

// Keeps `writers` requests in flight; each is followed by the next when it completes. Creates, then updates.
void bench_write(const Options& options, size_t bytes, size_t writers) {
  std::string directory = options.directory + "/write";
  fs::remove_all(directory);
  auto store = open(directory);
  std::mt19937_64 random(1);
  std::vector<Blob> values;
  for (int i = 0; i < 64; ++i) values.push_back(make_blob(make_value(bytes, random)));

  std::mutex mutex;
  std::condition_variable changed;
  size_t running = writers;
  std::vector<std::vector<double>> latencies(writers);
  auto start = Clock::now();
  struct Writer {
    Revision at;
    uint64_t count = 0;
    Clock::time_point begun;
  };
  std::vector<Writer> state(writers);
  std::function<void(size_t)> go = [&](size_t w) {
    Writer& writer = state[w];
    writer.begun = Clock::now();
    std::string key = "/registry/bench/" + std::to_string(w) + "/" + std::to_string(writer.count / 10);
    Blob value = values[(w + writer.count) % values.size()];
    Transaction transaction = {writer.count % 10 == 0 ? create(key, value) : update(key, writer.at, value)};
    store->write(std::move(transaction), [&, w](StoreResult<WriteResult> result) {
      Writer& me = state[w];
      if (!result || !std::holds_alternative<Committed>(*result)) {
        std::fprintf(stderr, "a write failed: %s\n", result ? "conflict" : result.error().message.c_str());
        std::exit(1);
      }
      me.at = std::get<Committed>(*result).revision;
      ++me.count;
      latencies[w].push_back(std::chrono::duration<double, std::milli>(Clock::now() - me.begun).count());
      if (seconds_since(start) < options.seconds) return go(w);
      std::lock_guard lock(mutex);
      if (--running == 0) changed.notify_all();
    });
  };
  for (size_t w = 0; w < writers; ++w) go(w);
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return running == 0; });
  }
  double elapsed = seconds_since(start);
  std::vector<double> all;
  for (auto& list : latencies) all.insert(all.end(), list.begin(), list.end());
  std::ranges::sort(all);
  std::printf(
      "write: %5zu bytes, %3zu writers: %7.0f acknowledged/s, latency p50 %.2f ms, p99 %.2f ms, max %.1f ms, RSS %.0f "
      "MB\n",
      bytes, writers, static_cast<double>(all.size()) / elapsed, percentile(all, 0.5), percentile(all, 0.99),
      all.empty() ? 0.0 : all.back(), static_cast<double>(resident_bytes()) / (1 << 20));
  std::fflush(stdout);
  store.reset();
  fs::remove_all(directory);
}

// From submitting a write to the watcher's callback, with one writer.
void bench_watch(const Options& options) {
  std::string directory = options.directory + "/watch";
  fs::remove_all(directory);
  auto store = open(directory);
  std::mt19937_64 random(1);
  Blob value = make_blob(make_value(1024, random));
  auto watcher = store->watch({"/registry/", {1}});
  std::vector<double> to_watcher, to_writer;
  for (int i = 0; i < 3000; ++i) {
    std::mutex mutex;
    std::condition_variable changed;
    int answers = 0;
    auto start = Clock::now();
    auto note = [&](std::vector<double>& into) {
      std::lock_guard lock(mutex);
      into.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
      if (++answers == 2) changed.notify_all();
    };
    watcher->next([&](auto) { note(to_watcher); });
    store->write({create("/registry/bench/" + std::to_string(i), value)}, [&](auto) { note(to_writer); });
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return answers == 2; });
  }
  std::ranges::sort(to_watcher);
  std::ranges::sort(to_writer);
  std::printf("watch: event after p50 %.0f us, p99 %.0f us; the write's own answer p50 %.0f us, p99 %.0f us\n",
              percentile(to_watcher, 0.5), percentile(to_watcher, 0.99), percentile(to_writer, 0.5),
              percentile(to_writer, 0.99));
  watcher.reset();
  store.reset();
  fs::remove_all(directory);
}

void bench_restart(const Options& options) {
  std::string directory = options.directory + "/restart";
  fs::remove_all(directory);
  {
    auto start = Clock::now();
    auto store = open(directory);
    std::printf("open: an empty store in %.1f ms\n", seconds_since(start) * 1000);
    std::mt19937_64 random(1);
    start = Clock::now();
    for (uint64_t first = 0; first < options.objects; first += 1000) {
      std::vector<Transaction> batch;
      for (uint64_t i = first; i < std::min(first + 1000, options.objects); ++i) {
        batch.push_back({create("/registry/pods/ns" + std::to_string(i % 100) + "/pod-" + std::to_string(i),
                                make_blob(make_value(10240, random)))});
      }
      std::mutex mutex;
      std::condition_variable changed;
      bool done = false;
      store->write_all(std::move(batch), [&](auto) {
        std::lock_guard lock(mutex);
        done = true;
        changed.notify_all();
      });
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return done; });
    }
    std::printf("fill: %llu objects of 10 KB in %.1f s, RSS %.0f MB\n",
                static_cast<unsigned long long>(options.objects), seconds_since(start),
                static_cast<double>(resident_bytes()) / (1 << 20));
  }
  auto start = Clock::now();
  auto store = open(directory);
  double opened = seconds_since(start);
  uint64_t count = 0, bytes = 0;
  std::string from;
  for (bool more = true; more;) {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    store->range({.prefix = "/registry/", .from = from, .limit = 500}, [&](StoreResult<Page> page) {
      std::lock_guard lock(mutex);
      more = page && page->more;
      if (page) {
        for (const KeyValue& item : page->items) bytes += item.value->size();
        count += page->items.size();
        if (more) from = page->items.back().key + '\0';
      }
      done = true;
      changed.notify_all();
    });
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return done; });
  }
  std::printf("restart: opened in %.0f ms, %llu objects (%.0f MB) read in %.2f s, RSS %.0f MB\n", opened * 1000,
              static_cast<unsigned long long>(count), static_cast<double>(bytes) / 1e6, seconds_since(start),
              static_cast<double>(resident_bytes()) / (1 << 20));
  store.reset();
  fs::remove_all(directory);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string_view arg = argv[i];
    auto value = [&](std::string_view name) -> const char* {
      return arg.starts_with(name) ? argv[i] + name.size() : nullptr;
    };
    if (const char* v = value("--seconds=")) {
      options.seconds = std::strtod(v, nullptr);
    } else if (const char* v = value("--objects=")) {
      options.objects = std::strtoull(v, nullptr, 10);
    } else if (const char* v = value("--only=")) {
      options.only = v;
    } else if (!arg.starts_with("--") && options.directory.empty()) {
      options.directory = arg;
    } else {
      std::fprintf(stderr, "usage: store_bench DIR [--seconds=N] [--objects=N] [--only=sync,write,watch,restart]\n");
      return 2;
    }
  }
  if (options.directory.empty()) options.directory = (fs::temp_directory_path() / "holdfast-store-bench").string();
  fs::create_directories(options.directory);
  auto wanted = [&](std::string_view name) { return options.only.find(name) != std::string::npos; };
  if (wanted("sync")) bench_sync(options);
  if (wanted("write")) {
    for (size_t bytes : {1024, 10240}) {
      for (size_t writers : {1, 32, 256}) bench_write(options, bytes, writers);
    }
  }
  if (wanted("watch")) bench_watch(options);
  if (wanted("restart")) bench_restart(options);
}
