#include "server/file_watch.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace holdfast::server {
namespace {

class FileWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/file_watch_test.XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const char* name) const { return folder_ + "/" + name; }
  void write(const char* name, const std::string& text) const { std::ofstream(path(name)) << text; }

  std::string folder_;
};

TEST_F(FileWatchTest, FilesThatStayAsTheyAreHaveNotChanged) {
  write("a", "1");
  FileWatch watch({path("a"), path("missing")});
  EXPECT_FALSE(watch.changed());
  EXPECT_FALSE(watch.changed());
}

TEST_F(FileWatchTest, AWriteIsNoticedOnce) {
  write("a", "1");
  FileWatch watch({path("a")});
  write("a", "22");
  EXPECT_TRUE(watch.changed());
  EXPECT_FALSE(watch.changed());
}

TEST_F(FileWatchTest, AFileRenamedIntoPlaceIsNoticed) {
  write("a", "1");
  FileWatch watch({path("a")});
  write("b", "2");
  std::filesystem::rename(path("b"), path("a"));
  EXPECT_TRUE(watch.changed());
}

TEST_F(FileWatchTest, ASwitchedSymbolicLinkIsNoticed) {
  write("a", "1");
  write("b", "2");
  std::filesystem::create_symlink(path("a"), path("link"));
  FileWatch watch({path("link")});
  std::filesystem::create_symlink(path("b"), path("new"));
  std::filesystem::rename(path("new"), path("link"));
  EXPECT_TRUE(watch.changed());
}

TEST_F(FileWatchTest, AppearingAndDisappearingAreChanges) {
  FileWatch watch({path("a")});
  write("a", "1");
  EXPECT_TRUE(watch.changed());
  std::filesystem::remove(path("a"));
  EXPECT_TRUE(watch.changed());
}

}  // namespace
}  // namespace holdfast::server
