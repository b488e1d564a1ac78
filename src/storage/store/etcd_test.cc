// What only happens with an etcd over a network: leader changes, restarts, TLS, compaction by others.
#include <gmock/gmock.h>

#include <cstdlib>
#include <set>
#include <thread>

#include "base/test_folder.h"
#include "store/rules.h"
#include "store/test_etcd.h"
#include "store/test_support.h"

namespace holdfast::store::testing {
namespace {

using ::testing::HasSubstr;

TEST(EtcdVersions, progress_is_exact_only_in_fixed_versions) {
  struct Case {
    const char* version;
    bool exact;
  } cases[] = {{"3.4.23", false}, {"3.4.30", false}, {"3.4.31", true}, {"3.5.0", false},     {"3.5.12", false},
               {"3.5.13", true},  {"3.6.0", true},   {"4.0.0", true},  {"3.6.0-rc.1", true}, {"3.3.99", false},
               {"", false},       {"three", false},  {"3.5", false},   {"3.5.x", false}};
  for (const Case& c : cases) EXPECT_EQ(etcd_progress_is_exact(c.version), c.exact) << c.version;
}

TEST(EtcdModule, errors_name_a_missing_module) {
  EtcdOptions options = etcd_options({"http://127.0.0.1:1"});
  options.module_path = "/nonexistent/libholdfast_etcd.so";
  StoreResult<std::unique_ptr<Store>> store = open_etcd(options);
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().message, HasSubstr("/nonexistent/libholdfast_etcd.so"));
}

TEST(EtcdModule, errors_name_invalid_or_unreachable_endpoints) {
  StoreResult<std::unique_ptr<Store>> store = open_etcd(etcd_options({"127.0.0.1:2379"}));
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, ErrorKind::Invalid);
  EXPECT_THAT(store.error().message, HasSubstr("127.0.0.1:2379: must begin with http://"));
  store = open_etcd(etcd_options({"http://127.0.0.1:1"}));
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, ErrorKind::Unavailable);
  EXPECT_THAT(store.error().message, HasSubstr("http://127.0.0.1:1"));
  EXPECT_FALSE(open_etcd(etcd_options({})));
}

class EtcdTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(EtcdProcess::installed()) << "etcd is not installed; run ./dev setup"; }
};

TEST_F(EtcdTest, a_dead_endpoint_is_skipped) {
  EtcdProcess etcd;
  auto store = open_etcd_at({"http://127.0.0.1:" + std::to_string(free_port()), etcd.url()});
  Waiting waiting(*store);
  Revision r = waiting.create("/a", "1");
  EXPECT_EQ(waiting.get("/a")->item->modified, r);
}

TEST_F(EtcdTest, a_watcher_continues_at_its_position_when_etcd_restarts) {
  EtcdProcess etcd;
  auto store = open_etcd_at({etcd.url()});
  Waiting waiting(*store);
  auto watcher = store->watch({"/", *waiting.current_revision()});
  Revision r = waiting.create("/a", "1");
  EXPECT_EQ(describe(*take(*watcher, 1).at(0)), "+/a@2=1");
  for (int i = 2; i < 5; ++i) {
    etcd.kill();
    etcd.start();
    // The outcome of a write on the breaking connection is unknown: only a read tells whether it happened.
    for (std::string value = std::to_string(i); true;) {
      StoreResult<WriteResult> result = waiting.write({update("/a", r, make_blob(value))});
      StoreResult<Got> got = waiting.get("/a");
      if (!got || *got->item->value != value) continue;
      if (result && std::holds_alternative<Committed>(*result)) {
        EXPECT_EQ(std::get<Committed>(*result).revision, got->item->modified);
      }
      r = got->item->modified;
      break;
    }
    EXPECT_EQ(describe(*take(*watcher, 1).at(0)),
              "~/a@" + std::to_string(r.value) + "=" + std::to_string(i) + "<" + std::to_string(i - 1));
  }
}

TEST_F(EtcdTest, a_watcher_receives_unsolicited_progress) {
  EtcdProcess etcd({.more_flags = {"--experimental-watch-progress-notify-interval=100ms"}});
  auto store = open_etcd_at({etcd.url()});
  Waiting waiting(*store);
  auto watcher = store->watch({"/mine/", *waiting.current_revision()});
  for (int i = 0; i < 3; ++i) {
    const Revision elsewhere = waiting.create("/others/" + std::to_string(i), "1");
    Revision reached;
    while (reached < elsewhere) {
      StoreResult<WatchBatch> batch = next(*watcher);
      ASSERT_TRUE(batch) << batch.error().message;
      EXPECT_TRUE(batch->events.empty());
      reached = batch->revision;
    }
    EXPECT_EQ(reached, elsewhere);
  }
}

TEST_F(EtcdTest, nothing_is_lost_when_the_leader_of_a_cluster_is_killed) {
  std::string cluster;
  std::vector<EtcdProcess::Member> members;
  for (const char* name : {"one", "two", "three"}) {
    EtcdProcess::Member member{.name = name, .client_port = free_port(), .peer_port = free_port()};
    cluster += std::string(cluster.empty() ? "" : ",") + name + "=http://127.0.0.1:" + std::to_string(member.peer_port);
    members.push_back(member);
  }
  std::vector<std::unique_ptr<EtcdProcess>> processes;
  std::vector<std::string> urls;
  for (EtcdProcess::Member& member : members) {
    member.cluster = cluster;
    processes.push_back(std::make_unique<EtcdProcess>(member));
    urls.push_back(processes.back()->url());
  }
  auto store = open_etcd_at(urls);
  Waiting waiting(*store);
  StoreResult<Revision> base = waiting.current_revision();
  while (!base) base = waiting.current_revision();
  auto watcher = store->watch({"/load/", *base});

  std::atomic<bool> stop = false;
  std::mutex mutex;
  std::map<uint64_t, std::string> acknowledged;
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w) {
    writers.emplace_back([&, w] {
      Waiting mine(*store);
      for (int i = 0; !stop; ++i) {
        std::string key = "/load/" + std::to_string(w) + "/" + std::to_string(i);
        StoreResult<WriteResult> result = mine.write({create(key, make_blob(key))});
        if (!result) continue;
        ASSERT_TRUE(std::holds_alternative<Committed>(*result));
        std::lock_guard lock(mutex);
        acknowledged[std::get<Committed>(*result).revision.value] = key;
      }
    });
  }
  auto count = [&] {
    std::lock_guard lock(mutex);
    return acknowledged.size();
  };
  auto wait_for = [&](size_t more) {
    size_t before = count();
    for (int i = 0; i < 3000 && count() < before + more; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_GE(count(), before + more) << "writes must continue";
  };
  wait_for(50);
  // One after the other: one of the three is the leader, and two of three are always alive.
  for (auto& process : processes) {
    process->kill();
    wait_for(50);
    process->start();
    wait_for(50);
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();

  std::map<std::string, uint64_t> stored;
  StoreResult<Page> page = waiting.range({.prefix = "/load/"});
  ASSERT_TRUE(page) << page.error().message;
  for (const KeyValue& item : page->items) stored[item.key] = item.modified.value;
  for (const auto& [revision, key] : acknowledged) {
    ASSERT_TRUE(stored.contains(key)) << key << " was acknowledged but is missing";
    EXPECT_EQ(stored[key], revision);
  }
  Revision last;
  std::vector<EventRef> events = take(*watcher, stored.size());
  ASSERT_EQ(events.size(), stored.size());
  for (const EventRef& event : events) {
    EXPECT_GT(event->revision, last) << "in order, without duplicates";
    last = event->revision;
    EXPECT_EQ(stored[event->key], event->revision.value);
  }
}

TEST_F(EtcdTest, keys_with_the_same_ttl_share_a_lease_and_expire_together) {
  EtcdProcess etcd;
  auto store = open_etcd_at({etcd.url()});
  Waiting waiting(*store);
  auto watcher = store->watch({"/", *waiting.current_revision()});
  for (int i = 0; i < 20; ++i) {
    waiting.commit({create("/e" + std::to_string(i), make_blob("x"), std::chrono::seconds(1))});
  }
  std::set<uint64_t> deletes;
  int deleted = 0;
  for (const EventRef& event : take(*watcher, 40)) {
    if (event->type != Event::Type::Deleted) continue;
    ++deleted;
    deletes.insert(event->revision.value);
  }
  EXPECT_EQ(deleted, 20);
  EXPECT_LE(deletes.size(), 3u) << "a lease expires in one transaction";
}

TEST_F(EtcdTest, compaction_is_shared_with_other_servers_on_the_same_etcd) {
  EtcdProcess etcd;
  auto first = open_etcd_at({etcd.url()});
  EtcdOptions options = etcd_options({etcd.url()});
  options.compaction_interval = std::chrono::milliseconds(100);
  auto second = open_etcd(options);
  auto third = open_etcd(options);
  ASSERT_TRUE(second && third);
  Waiting waiting(*first);
  Revision old = waiting.create("/a", "0");
  Revision r = old;
  StoreResult<Page> page = waiting.range({.prefix = "/", .at = old});
  for (int i = 1; i < 1000 && page; ++i) {
    r = waiting.update("/a", r, std::to_string(i));
    page = waiting.range({.prefix = "/", .at = old});
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ASSERT_FALSE(page) << "nobody compacted";
  EXPECT_EQ(page.error().kind, ErrorKind::Compacted);
  StoreResult<Got> key = waiting.get("compact_rev_key");
  ASSERT_TRUE(key->item);
  EXPECT_GE(std::stoull(*key->item->value), old.value) << "kube-apiserver reads this number";
  EXPECT_GT(waiting.status()->compacted, old);
  EXPECT_TRUE(waiting.range({.prefix = "/", .at = r}));
}

TEST_F(EtcdTest, status_reports_whether_progress_is_exact) {
  EtcdProcess etcd;
  auto store = open_etcd_at({etcd.url()});
  StoreResult<Status> status = Waiting(*store).status();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->progress_is_exact, etcd_progress_is_exact(status->version)) << status->version;
}

TEST_F(EtcdTest, certificates_of_both_sides_are_verified) {
  TestFolder folder;
  auto run = [&](const std::string& command) {
    return std::system(("cd " + folder.path() + " && " + command + " >/dev/null 2>&1").c_str());
  };
  ASSERT_EQ(run("openssl version"), 0) << "openssl is not installed; run ./dev setup";
  const char* script =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out ca.crt -days 2 "
      "-subj /CN=ca && "
      "echo 'subjectAltName=IP:127.0.0.1,DNS:localhost' > san && "
      "for who in server client; do "
      "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout $who.key -out $who.csr -subj "
      "/CN=$who && "
      "openssl x509 -req -in $who.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out $who.crt -days 2 -extfile san; "
      "done";
  ASSERT_EQ(run(script), 0);
  auto path = [&](const char* name) { return folder.path() + "/" + name; };
  EtcdProcess::Member member;
  member.scheme = "https";
  member.more_flags = {"--cert-file=" + path("server.crt"), "--key-file=" + path("server.key"),
                       "--trusted-ca-file=" + path("ca.crt"), "--client-cert-auth"};
  EtcdProcess etcd(member);

  EtcdOptions options = etcd_options({etcd.url()});
  options.ca_file = path("ca.crt");
  options.cert_file = path("client.crt");
  options.key_file = path("client.key");
  StoreResult<std::unique_ptr<Store>> store = open_etcd(options);
  for (int i = 0; i < 100 && !store; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    store = open_etcd(options);
  }
  ASSERT_TRUE(store) << store.error().message;
  Waiting waiting(**store);
  EXPECT_EQ(waiting.get("/a")->revision, *waiting.current_revision());
  waiting.create("/a", "1");

  EtcdOptions nobody = options;
  nobody.cert_file = nobody.key_file = "";
  nobody.request_timeout = std::chrono::seconds(2);
  StoreResult<std::unique_ptr<Store>> refused = open_etcd(nobody);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Unavailable) << refused.error().message;

  EtcdOptions missing = options;
  missing.ca_file = path("no-such.crt");
  EXPECT_THAT(open_etcd(missing).error().message, HasSubstr("no-such.crt"));
}

}  // namespace
}  // namespace holdfast::store::testing
