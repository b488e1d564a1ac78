#include "services/port_ledger.h"

#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "base/task_group.h"
#include "store/memory_store.h"

namespace holdfast::services {
namespace {

constexpr const char* kKey = "/registry/ranges/servicenodeports";

// Runs posted work immediately.
class Here final : public Executor {
 public:
  void post(std::function<void()> work) override { work(); }
};

// Delays reads and writes until the test runs them, so that others can come in between.
class SlowStore final : public store::MemoryStore {
 public:
  void get(std::string key, store::Callback<store::Got> done) override {
    later_.push_back([this, key = std::move(key), done = std::move(done)] { MemoryStore::get(key, done); });
  }
  void write(store::Transaction transaction, store::Callback<store::WriteResult> done) override {
    ++writes;
    later_.push_back([this, transaction = std::move(transaction), done = std::move(done)] {
      MemoryStore::write(transaction, done);
    });
  }
  void run() {
    while (!later_.empty()) {
      const std::function<void()> next = std::move(later_.front());
      later_.pop_front();
      next();
    }
  }

  int writes = 0;

 private:
  std::deque<std::function<void()>> later_;
};

class PortLedgerTest : public testing::Test {
 protected:
  using Claimed = Result<std::optional<AllocatedPorts>>;

  template <class T>
  static Task<void> forward(Task<T> task, std::shared_ptr<std::optional<T>> into) {
    into->emplace(co_await task);
  }
  // Starts a task; its result is set once the store has run.
  template <class T>
  std::shared_ptr<std::optional<T>> begin(Task<T> task) {
    auto result = std::make_shared<std::optional<T>>();
    spawn(forward(std::move(task), result), [](const std::exception_ptr&) {});
    return result;
  }
  template <class T>
  T finish(Task<T> task) {
    std::shared_ptr<std::optional<T>> result = begin(std::move(task));
    store.run();
    EXPECT_TRUE(result->has_value());
    return std::move(**result);
  }

  void make(const PortBitmap& taken) {
    const Result<bool> made = finish(ledger.replace({}, taken, here));
    ASSERT_TRUE(made.ok());
    ASSERT_TRUE(*made);
  }
  static std::string text(const Claimed& claimed) {
    if (!claimed) return claimed.error().message;
    if (!*claimed) return "no ledger";
    if (const auto* refused = std::get_if<PortRefusal>(&**claimed)) {
      return std::to_string(refused->claim) + ": " + refused->why;
    }
    std::string all;
    for (const int32_t port : std::get<0>(**claimed)) all += (all.empty() ? "" : " ") + std::to_string(port);
    return all;
  }
  std::string claim(PortLedger& from, std::vector<int32_t> wanted) {
    return text(finish(from.claim(std::move(wanted), here)));
  }
  std::vector<int32_t> stored() {
    const Result<PortLedger::Stored> read = finish(ledger.read(here));
    return read && read->taken ? read->taken->ports() : std::vector<int32_t>{-1};
  }

  Here here;
  SlowStore store;
  PortLedger ledger{store, kKey, 30000, 30009};
  PortLedger other{store, kKey, 30000, 30009};  // Another server's ledger.
};

TEST_F(PortLedgerTest, FormatMatchesKubeApiserver) {
  PortBitmap taken(30000, 30009);
  taken.add(30000);
  taken.add(30009);
  make(taken);
  std::string bytes;
  store.get(kKey, [&](store::StoreResult<store::Got> got) { bytes = *got->item->value; });
  store.run();
  const std::string metadata("\x0a\x10\x0a\0\x12\0\x1a\0\x22\0\x2a\0\x32\0\x38\0\x42\0", 18);
  const std::string message = metadata + "\x12\x0b" + "30000-30009" + "\x1a\x02" + "\x02\x01";
  EXPECT_EQ(bytes, std::string("k8s\0", 4) + "\x0a\x15\x0a\x02v1\x12\x0f" + "RangeAllocation" + "\x12" +
                       static_cast<char>(message.size()) + message + std::string("\x1a\0\x22\0", 4));
  EXPECT_EQ(stored(), (std::vector<int32_t>{30000, 30009}));
}

TEST_F(PortLedgerTest, ClaimReturnsNothingWithoutALedger) {
  EXPECT_EQ(claim(ledger, {0}), "no ledger");
  EXPECT_TRUE(finish(ledger.release({30001}, here)).ok());
  EXPECT_EQ(stored(), std::vector<int32_t>{-1});
}

TEST_F(PortLedgerTest, ConcurrentClaimsNeverGetTheSamePort) {
  make(PortBitmap(30000, 30009));
  std::vector<std::shared_ptr<std::optional<Claimed>>> claims;
  for (int i = 0; i < 6; ++i) {
    claims.push_back(begin(ledger.claim({0}, here)));
    claims.push_back(begin(other.claim({0}, here)));
  }
  store.run();
  std::multiset<std::string> answers;
  for (const auto& claimed : claims) answers.insert(text(**claimed));
  EXPECT_EQ(answers.count("0: range is full"), 2u);
  for (int port = 30000; port <= 30009; ++port) EXPECT_EQ(answers.count(std::to_string(port)), 1u) << port;
}

TEST_F(PortLedgerTest, LaterOfTwoConcurrentClaimsIsRejected) {
  make(PortBitmap(30000, 30009));
  const auto first = begin(ledger.claim({30004}, here)), second = begin(other.claim({30005, 30004}, here));
  store.run();
  EXPECT_EQ(text(**first), "30004");
  EXPECT_EQ(text(**second), "1: provided port is already allocated");
  // All or none.
  EXPECT_EQ(stored(), std::vector<int32_t>{30004});
}

TEST_F(PortLedgerTest, PortReleasedByAnotherServerCanBeClaimedImmediately) {
  make(PortBitmap(30000, 30009));
  EXPECT_EQ(claim(ledger, {30005}), "30005");
  EXPECT_TRUE(finish(other.release({30005}, here)).ok());
  // `ledger` still remembers the state in which the port was allocated.
  EXPECT_EQ(claim(ledger, {30005}), "30005");
  EXPECT_EQ(claim(other, {30005}), "0: provided port is already allocated");
}

TEST_F(PortLedgerTest, QueuedChangesAreWrittenTogether) {
  make(PortBitmap(30000, 30009));
  store.writes = 0;
  std::vector<std::shared_ptr<std::optional<Claimed>>> claims(8);
  for (auto& claimed : claims) claimed = begin(ledger.claim({0}, here));
  store.run();
  for (const auto& claimed : claims) EXPECT_TRUE((*claimed)->ok());
  EXPECT_EQ(stored().size(), 8u);
  EXPECT_EQ(store.writes, 2);
}

TEST_F(PortLedgerTest, LookAllocatesNothing) {
  make(PortBitmap(30000, 30009));
  EXPECT_EQ(text(finish(ledger.look({30003}, here))), "30003");
  EXPECT_TRUE(stored().empty());
  EXPECT_EQ(claim(other, {30003}), "30003");
  EXPECT_EQ(text(finish(ledger.look({30003}, here))), "0: provided port is already allocated");
}

TEST_F(PortLedgerTest, ClaimRejectsPortsOutsideTheRange) {
  make(PortBitmap(30000, 30009));
  EXPECT_EQ(claim(ledger, {30010}),
            "0: provided port is not in the valid range. The range of valid ports is 30000-30009");
  PortLedger wider(store, kKey, 30000, 30019);
  EXPECT_EQ(claim(wider, {0}), "failed to allocate a nodePort: the provided range does not match the current range");
}

TEST_F(PortLedgerTest, StoreFailureIsReportedAndAllocatesNothing) {
  make(PortBitmap(30000, 30009));
  store.set_failure(store::StoreError{store::ErrorKind::Unavailable, "no connection"});
  const Claimed failed = finish(ledger.claim({30001}, here));
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().reason, Reason::ServerTimeout);
  EXPECT_EQ(failed.error().message,
            "the ledger of node ports (" + std::string(kKey) + ") cannot be changed: no connection");
  EXPECT_FALSE(finish(ledger.release({30001}, here)).ok());
  store.set_failure(std::nullopt);
  EXPECT_EQ(claim(ledger, {30001}), "30001");
}

TEST_F(PortLedgerTest, RepairDoesNotOverwriteConcurrentClaims) {
  make(PortBitmap(30000, 30009));
  Result<PortLedger::Stored> read = finish(ledger.read(here));
  EXPECT_EQ(claim(other, {30007}), "30007");
  const Result<bool> replaced = finish(ledger.replace(*read, PortBitmap(30000, 30009), here));
  ASSERT_TRUE(replaced.ok());
  EXPECT_FALSE(*replaced);
  EXPECT_EQ(stored(), std::vector<int32_t>{30007});
}

PortBitmap bitmap(std::vector<int32_t> ports, int32_t last = 30009) {
  PortBitmap taken(30000, last);
  for (const int32_t port : ports) taken.add(port);
  return taken;
}

TEST(LeakedPorts, LeakedPortIsFreedAfterThreeSightings) {
  LeakedPorts leaked;
  for (int sighting = 1; sighting <= 3; ++sighting) {
    LeakedPorts::Rebuilt rebuilt = leaked.rebuild(bitmap({30001, 30002}), bitmap({30001}));
    EXPECT_EQ(rebuilt.next, sighting < 3 ? bitmap({30001, 30002}) : bitmap({30001}));
    EXPECT_EQ(rebuilt.freed, sighting < 3 ? std::vector<int32_t>{} : std::vector<int32_t>{30002});
    // A rebuild that is not stored does not count as a sighting.
    (void)leaked.rebuild(bitmap({30001, 30002}), bitmap({30001}));
    leaked.note(std::move(rebuilt));
  }
}

TEST(LeakedPorts, PortUsedAgainIsNotLeaked) {
  LeakedPorts leaked;
  for (const bool used : {false, false, true, false, false}) {
    LeakedPorts::Rebuilt rebuilt =
        leaked.rebuild(bitmap({30002}), bitmap(used ? std::vector{30002} : std::vector<int32_t>{}));
    EXPECT_EQ(rebuilt.next, bitmap({30002}));
    leaked.note(std::move(rebuilt));
  }
}

TEST(LeakedPorts, UsedPortsMissingInTheLedgerAreAdded) {
  const LeakedPorts leaked;
  const LeakedPorts::Rebuilt rebuilt = leaked.rebuild(bitmap({30001}), bitmap({30001, 30003}));
  EXPECT_EQ(rebuilt.next, bitmap({30001, 30003}));
  EXPECT_EQ(rebuilt.missing, std::vector<int32_t>{30003});
  EXPECT_EQ(leaked.rebuild(std::nullopt, bitmap({30003})).next, bitmap({30003}));
}

TEST(LeakedPorts, LedgerWithAnotherRangeIsRebuiltWithThisServersRange) {
  const LeakedPorts leaked;
  EXPECT_EQ(leaked.rebuild(bitmap({30001, 30019}, 30019), bitmap({30005})).next, bitmap({30001, 30005}));
}

TEST(PortBitmap, LowerBandOfALargeRangeIsUsedLast) {
  std::mt19937 random{1};
  PortBitmap taken(30000, 30099);  // With a band of 16.
  for (int i = 0; i < 84; ++i) {
    const std::optional<int32_t> port = taken.choose(random);
    ASSERT_TRUE(port.has_value());
    EXPECT_GE(*port, 30016);
    taken.add(*port);
  }
  EXPECT_LT(taken.choose(random).value_or(40000), 30016);
}

TEST(PortBitmap, BytesRoundTrip) {
  const PortBitmap taken = bitmap({30000, 30007, 30008});
  EXPECT_EQ(taken.bytes(), "\x01\x81");
  EXPECT_EQ(PortBitmap::from_bytes(30000, 30009, taken.bytes()), taken);
  EXPECT_EQ(bitmap({}).bytes(), "");
  EXPECT_EQ(PortBitmap::from_bytes(30000, 30009, std::string("\0\0\x01\x81", 4)), taken);
}

}  // namespace
}  // namespace holdfast::services
