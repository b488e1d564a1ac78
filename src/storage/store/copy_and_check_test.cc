// Copying a store to another place, and finding damage in it.
#include <gmock/gmock.h>

#include <fstream>
#include <thread>

#include "base/files.h"
#include "base/test_folder.h"
#include "store/test_etcd.h"
#include "store/test_support.h"

namespace holdfast::store::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RocksOptions at(const std::string& directory) {
  RocksOptions options;
  options.directory = directory;
  return options;
}

std::map<std::string, std::string> contents(Store& store) {
  std::map<std::string, std::string> out;
  StoreResult<Page> page = Waiting(store).range({.prefix = "/"});
  if (!page) {
    ADD_FAILURE() << page.error().message;
    return out;
  }
  for (const KeyValue& item : page->items) out[item.key] = *item.value + (item.expires ? " expires" : "");
  return out;
}

class Tools : public ::testing::Test {
 protected:
  std::string path(const char* name) const { return folder_.path() + "/" + name; }

  // Fills a store with some history and leaves it open.
  std::unique_ptr<Store> fill(const std::string& directory) {
    std::unique_ptr<Store> store = std::move(*open_rocks(at(directory)));
    Waiting waiting(*store);
    Revision a = waiting.create("/registry/a", "a1");
    waiting.update("/registry/a", a, "a2");
    Revision b = waiting.create("/registry/b", "b1");
    waiting.remove("/registry/b", b);
    waiting.commit({create("/registry/event", make_blob("e"), std::chrono::hours(1))});
    for (int i = 0; i < 300; ++i) waiting.create("/registry/k" + std::to_string(1000 + i), std::string(5000, 'x'));
    return store;
  }

  TestFolder folder_;
};

TEST_F(Tools, a_running_store_is_backed_up_and_restored_with_its_revisions) {
  auto store = fill(path("store"));
  auto want = contents(*store);
  Revision current = *Waiting(*store).current_revision();
  Revision a = Waiting(*store).get("/registry/a")->item->modified;
  StoreResult<Moved> moved = copy_store(at(path("store")), BackupFile{path("backup")});
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_EQ(moved->items, 302u);
  EXPECT_EQ(moved->revision, current);

  moved = copy_store(BackupFile{path("backup")}, at(path("restored")));
  ASSERT_TRUE(moved) << moved.error().message;
  StoreResult<std::unique_ptr<Store>> restored = open_rocks(at(path("restored")));
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(contents(**restored), want);
  Waiting waiting(**restored);
  EXPECT_EQ(*waiting.current_revision(), current);
  EXPECT_EQ(waiting.get("/registry/a")->item->modified, a);
  EXPECT_EQ(waiting.update("/registry/a", a, "a3").value, current.value + 1);
  EXPECT_EQ(waiting.range({.prefix = "/", .at = {current.value - 1}}).error().kind, ErrorKind::Compacted);
}

TEST_F(Tools, a_backup_of_a_store_under_load_is_a_consistent_snapshot) {
  RocksOptions options = at(path("store"));
  options.memtable_bytes = 128 << 10;
  options.history_age = std::chrono::milliseconds(200);
  options.housekeeping_interval = std::chrono::milliseconds(10);
  auto store = std::move(*open_rocks(options));
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> acknowledged = 0;
  // Two keys always change together and have the same value.
  std::thread writer([&] {
    Waiting waiting(*store);
    std::string text(2000, 'x');
    Revision r = waiting.commit({create("/a", make_blob("0" + text)), create("/b", make_blob("0" + text))});
    for (int i = 1; !stop; ++i) {
      Blob value = make_blob(std::to_string(i) + text);
      r = waiting.commit({update("/a", r, value), update("/b", r, value)});
      acknowledged = r.value;
    }
  });
  for (int i = 0; i < 8; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    uint64_t before = acknowledged;
    std::string backup = path("backup") + std::to_string(i);
    StoreResult<Moved> moved = copy_store(at(path("store")), BackupFile{backup});
    ASSERT_TRUE(moved) << moved.error().message;
    EXPECT_EQ(moved->items, before == 0 ? moved->items : 2u);
    EXPECT_GE(moved->revision.value, before) << "contains everything acknowledged before";
    std::string a, b;
    CheckOptions look;
    look.verify = [&](std::string_view key, std::string_view value) -> std::optional<std::string> {
      (key == "/a" ? a : b) = value;
      return std::nullopt;
    };
    ASSERT_TRUE(check_store(BackupFile{backup}, look));
    EXPECT_EQ(a, b);
  }
  stop = true;
  writer.join();
}

TEST_F(Tools, nonempty_targets_are_rejected) {
  fill(path("store"));
  fill(path("other"));
  std::ofstream(path("file")) << "x";
  for (const Location& target : {Location(at(path("other"))), Location(BackupFile{path("file")})}) {
    StoreResult<Moved> moved = copy_store(at(path("store")), target);
    ASSERT_FALSE(moved);
    EXPECT_EQ(moved.error().kind, ErrorKind::Invalid) << moved.error().message;
  }
  EXPECT_EQ(copy_store(at(path("nothing")), at(path("new"))).error().kind, ErrorKind::Invalid);
  EXPECT_FALSE(fs::exists(path("new")));
}

TEST_F(Tools, a_damaged_or_truncated_backup_is_not_restored) {
  fill(path("store"));
  ASSERT_TRUE(copy_store(at(path("store")), BackupFile{path("backup")}));
  const std::string whole = *read_file(path("backup"));
  for (size_t at_byte = 0; at_byte < whole.size(); at_byte += whole.size() / 37 + 1) {
    std::string flipped = whole;
    flipped[at_byte] ^= 4;
    std::ofstream(path("bad"), std::ios::binary | std::ios::trunc) << flipped;
    StoreResult<Moved> moved = copy_store(BackupFile{path("bad")}, at(path("restored")));
    ASSERT_FALSE(moved) << "byte " << at_byte;
    EXPECT_EQ(moved.error().kind, ErrorKind::Corrupt);
    EXPECT_THAT(moved.error().message, HasSubstr(path("bad")));
    std::ofstream(path("bad"), std::ios::binary | std::ios::trunc) << whole.substr(0, at_byte);
    ASSERT_FALSE(copy_store(BackupFile{path("bad")}, at(path("restored")))) << "cut at " << at_byte;
    EXPECT_FALSE(fs::exists(path("restored")));
  }
}

TEST_F(Tools, an_intact_store_has_no_problems_and_rejected_values_are_reported) {
  auto store = fill(path("store"));
  StoreResult<CheckReport> report = check_store(at(path("store")));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->problems, IsEmpty());
  EXPECT_EQ(report->checked.items, 302u);
  EXPECT_EQ(report->versions, 305u) << "including retained history";
  CheckOptions options;
  options.verify = [](std::string_view, std::string_view value) -> std::optional<std::string> {
    return value == "a2" ? std::optional<std::string>("I do not like it") : std::nullopt;
  };
  report = check_store(at(path("store")), options);
  ASSERT_EQ(report->problems.size(), 1u);
  EXPECT_EQ(report->problems[0].where, "/registry/a");
  EXPECT_EQ(report->problems[0].what, "I do not like it");
}

TEST_F(Tools, damage_is_found_and_reported_with_its_place) {
  fill(path("store"));
  {
    auto again = open_rocks(at(path("store")));
  }  // Now the log is in a table.
  int flipped = 0;
  for (const auto& entry : fs::directory_iterator(path("store"))) {
    if (entry.path().extension() != ".sst") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    auto middle = static_cast<std::streamoff>(entry.file_size() / 2);
    file.seekg(middle);
    auto changed = static_cast<char>(file.get() ^ 4);  // Flipped: a fixed byte may happen to be the one that is there.
    file.seekp(middle);
    file.put(changed);
    ++flipped;
  }
  ASSERT_GT(flipped, 0);
  StoreResult<CheckReport> report = check_store(at(path("store")));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->problems.empty());
}

TEST_F(Tools, a_store_is_copied_to_etcd_and_back) {
  ASSERT_TRUE(EtcdProcess::installed()) << "etcd is not installed; run ./dev setup";
  EtcdProcess etcd;
  {
    open_etcd_at({etcd.url()});
  }
  auto store = fill(path("store"));
  auto want = contents(*store);
  EtcdOptions there = etcd_options({etcd.url()});
  uint64_t told = 0;
  CopyOptions options;
  options.progress = [&](const Moved& moved) { told = moved.items; };
  StoreResult<Moved> moved = copy_store(at(path("store")), there, options);
  ASSERT_TRUE(moved) << moved.error().message;
  auto remote = open_etcd_at({etcd.url()});
  EXPECT_EQ(contents(*remote), want);

  StoreResult<Moved> again = copy_store(at(path("store")), there);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("is not empty: it holds /registry/a"));

  StoreResult<CheckReport> report = check_store(there);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->checked.items, 302u);

  moved = copy_store(there, at(path("home")));
  ASSERT_TRUE(moved) << moved.error().message;
  auto home = std::move(*open_rocks(at(path("home"))));
  EXPECT_EQ(contents(*home), want);
  EXPECT_EQ(*Waiting(*home).current_revision(), *Waiting(*remote).current_revision());
  EXPECT_EQ(Waiting(*home).get("/registry/a")->item->modified, Waiting(*remote).get("/registry/a")->item->modified);
}

}  // namespace
}  // namespace holdfast::store::testing
