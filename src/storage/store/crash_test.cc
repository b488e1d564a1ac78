// Kills a writing process at random moments, and checks the state of its store.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <sstream>
#include <thread>

#include "base/test_folder.h"
#include "store/test_support.h"

namespace holdfast::store::testing {
namespace {

class Victim {
 public:
  Victim(const std::string& directory, uint64_t seed) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    std::string number = std::to_string(seed);
    process_ = ::fork();
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(ends[1], 1);
      ::execl(HOLDFAST_CRASH_CHILD, HOLDFAST_CRASH_CHILD, directory.c_str(), number.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    lines_ = ::fdopen(ends[0], "r");
  }
  ~Victim() {
    kill();
    std::fclose(lines_);
  }
  pid_t id() const { return process_; }
  void kill() {
    if (process_ == 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, &status_, 0);
    process_ = 0;
  }
  bool was_killed() const { return WIFSIGNALED(status_); }
  // The next line; empty if there is none.
  std::string line() {
    char text[512];
    if (!std::fgets(text, sizeof text, lines_)) return "";
    std::string out(text);
    return out.ends_with('\n') ? out.substr(0, out.size() - 1) : "";
  }

 private:
  pid_t process_ = 0;
  int status_ = 0;
  std::FILE* lines_ = nullptr;
};

TEST(RocksCrash, a_killed_process_loses_no_acknowledged_write) {
  const char* asked = std::getenv("HOLDFAST_CRASH_ROUNDS");
  int rounds = asked ? std::atoi(asked) : 5;
  TestFolder folder;
  std::random_device device;
  uint64_t seed = device();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  size_t acknowledged = 0;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    std::map<std::string, uint64_t> acked;
    {
      Victim victim(folder.path(), random());
      ASSERT_EQ(victim.line(), "ready");
      // The pipe is read while the process runs, so that it never blocks on a full pipe.
      auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 150'000);
      auto note = [&](const std::string& line) {
        std::istringstream words(line);
        std::string key;
        uint64_t revision = 0;
        words >> key >> revision;
        acked[key] = revision;
        ++acknowledged;
      };
      while (std::chrono::steady_clock::now() < until) {
        std::string line = victim.line();
        if (line.empty()) break;
        note(line);
      }
      victim.kill();
      ASSERT_TRUE(victim.was_killed()) << "the process exited by itself";
      for (std::string line; !(line = victim.line()).empty();) note(line);
    }
    RocksOptions options;
    options.directory = folder.path();
    StoreResult<std::unique_ptr<Store>> store = open_rocks(options);
    ASSERT_TRUE(store) << store.error().message;
    std::map<std::string, uint64_t> found;
    StoreResult<Page> page = Waiting(**store).range({.prefix = "/load/"});
    ASSERT_TRUE(page) << page.error().message;
    for (const KeyValue& item : page->items) {
      EXPECT_EQ(item.value->substr(0, item.value->find(' ')), item.key) << "partial write";
      found[item.key] = item.modified.value;
    }
    // Each writer has one write in flight: one of its keys may have advanced to a newer state or to a delete.
    std::map<std::string, int> gone_on;
    for (const auto& [key, revision] : acked) {
      uint64_t now = found.contains(key) ? found[key] : 0;
      if (now == revision) continue;
      EXPECT_TRUE(now == 0 || now > revision) << key << " went back";
      EXPECT_EQ(++gone_on[key.substr(0, key.rfind('/'))], 1)
          << key << " was acknowledged at " << revision << ", found at " << now;
    }
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(acknowledged, 20u * static_cast<size_t>(rounds));
}

TEST(RocksCrash, a_second_process_is_rejected_with_the_pid_of_the_owner) {
  TestFolder folder;
  Victim owner(folder.path(), 1);
  ASSERT_EQ(owner.line(), "ready");
  RocksOptions options;
  options.directory = folder.path();
  StoreResult<std::unique_ptr<Store>> store = open_rocks(options);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, ErrorKind::Unavailable);
  EXPECT_THAT(store.error().message, ::testing::HasSubstr("in use by process " + std::to_string(owner.id())));
}

}  // namespace
}  // namespace holdfast::store::testing
