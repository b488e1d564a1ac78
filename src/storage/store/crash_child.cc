// The process that the crash test kills: opens the store in argv[1], writes with several writers until it is killed,
// and prints "<key> <revision>" (0 if deleted) for each write after it was acknowledged.
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <string>

#include "store/store.h"

using namespace holdfast;
using namespace holdfast::store;

namespace {

struct Writer {
  std::mt19937_64 random;
  std::map<std::string, Revision> keys;
};

void go(Store& store, Writer& writer, int number) {
  std::string key = "/load/" + std::to_string(number) + "/" + std::to_string(writer.random() % 20);
  Revision at = writer.keys[key];
  bool removing = at != Revision{} && writer.random() % 5 == 0;
  Blob value =
      make_blob(key + " " + std::string(writer.random() % 4000, static_cast<char>('a' + writer.random() % 26)));
  Transaction transaction = {at == Revision{} ? create(key, value)
                             : removing       ? remove(key, at)
                                              : update(key, at, value)};
  store.write(std::move(transaction), [&store, &writer, number, key, removing](StoreResult<WriteResult> result) {
    if (!result || !std::holds_alternative<Committed>(*result)) {
      std::fprintf(stderr, "%s: %s\n", key.c_str(), result ? "conflict" : result.error().message.c_str());
      ::_exit(3);
    }
    Revision revision = removing ? Revision{} : std::get<Committed>(*result).revision;
    writer.keys[key] = revision;
    // One write(2) per line, so that a killed process leaves only whole lines.
    std::string line = key + " " + std::to_string(revision.value) + "\n";
    if (::write(1, line.data(), line.size()) < 0) ::_exit(4);
    go(store, writer, number);
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  RocksOptions options;
  options.directory = argv[1];
  options.memtable_bytes = 256 << 10;
  options.history_age = std::chrono::milliseconds(100);
  options.housekeeping_interval = std::chrono::milliseconds(10);
  StoreResult<std::unique_ptr<Store>> store = open_rocks(options);
  if (!store) {
    std::fprintf(stderr, "%s\n", store.error().message.c_str());
    return 1;
  }
  std::vector<Writer> writers(16);
  for (size_t i = 0; i < writers.size(); ++i) {
    writers[i].random.seed(std::strtoull(argv[2], nullptr, 10) * 100 + i);
    std::condition_variable changed;
    std::mutex mutex;
    bool done = false;
    (*store)->range({.prefix = "/load/" + std::to_string(i) + "/"}, [&](StoreResult<Page> page) {
      std::lock_guard lock(mutex);
      if (page) {
        for (const KeyValue& item : page->items) writers[i].keys[item.key] = item.modified;
      }
      done = true;
      changed.notify_all();
    });
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return done; });
  }
  if (::write(1, "ready\n", 6) < 0) return 4;
  for (size_t i = 0; i < writers.size(); ++i) go(**store, writers[i], static_cast<int>(i));
  while (true) ::pause();
}
