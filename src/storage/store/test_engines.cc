#include "base/test_folder.h"
#include "store/memory_store.h"
#include "store/test_etcd.h"
#include "store/test_support.h"

namespace holdfast::store::testing {
namespace {

class MemoryEngine final : public EngineUnderTest {
 public:
  Store& store() override { return *store_; }
  void pass(std::chrono::seconds time) override {
    clock_.pass(time);
    store_->expire();
  }
  void close() override { store_.reset(); }

 private:
  TestClock clock_;
  std::unique_ptr<MemoryStore> store_ = std::make_unique<MemoryStore>(clock_);
};

class RocksEngine final : public EngineUnderTest {
 public:
  RocksEngine() {
    RocksOptions options;
    options.directory = folder_.path();
    options.clock = &clock_;
    options.housekeeping_interval = std::chrono::milliseconds(20);
    StoreResult<std::unique_ptr<Store>> store = open_rocks(options);
    if (!store) {
      ADD_FAILURE() << store.error().message;
      std::abort();
    }
    store_ = std::move(*store);
  }
  Store& store() override { return *store_; }
  void pass(std::chrono::seconds time) override { clock_.pass(time); }
  void close() override { store_.reset(); }

 private:
  TestFolder folder_;
  TestClock clock_;
  std::unique_ptr<Store> store_;
};

// One etcd for all tests: starting it takes longer than most of them.
class EtcdEngine final : public EngineUnderTest {
 public:
  explicit EtcdEngine(EtcdProcess& etcd) : store_(open_etcd_at({etcd.url()})) {}
  Store& store() override { return *store_; }
  void pass(std::chrono::seconds) override {}  // Real time passes while a test waits for the event.
  void close() override { store_.reset(); }

 private:
  std::unique_ptr<Store> store_;
};

std::unique_ptr<EngineUnderTest> start_etcd() {
  if (!EtcdProcess::installed()) return nullptr;
  static EtcdProcess etcd;
  return std::make_unique<EtcdEngine>(etcd);
}

template <class E>
std::unique_ptr<EngineUnderTest> start() {
  return std::make_unique<E>();
}

}  // namespace

std::vector<Engine> engines() {
  return {{"memory", start<MemoryEngine>}, {"rocks", start<RocksEngine>}, {"etcd", start_etcd}};
}

}  // namespace holdfast::store::testing
