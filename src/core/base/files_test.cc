#include "base/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/test_folder.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

mode_t mode_of(const fs::path& path) {
  struct stat found{};
  EXPECT_EQ(::lstat(path.c_str(), &found), 0);
  return found.st_mode & 07777;
}

TEST(Files, APrivateDirectoryIsAccessibleOnlyToItsOwnerWhateverTheUmask) {
  const TestFolder folder;
  for (const mode_t mask : {0000, 0022, 0277}) {
    const mode_t before = ::umask(mask & 0077);  // Parent directories need their usual modes.
    const std::string made = folder.file(std::to_string(mask)) + "/data";
    EXPECT_TRUE(make_private_directory(made));
    ::umask(before);
    EXPECT_EQ(mode_of(made), 0700u);
  }
}

TEST(Files, ADirectoryReadableByOthersIsMadePrivate) {
  const TestFolder folder;
  fs::permissions(folder.path(), fs::perms(0755));
  EXPECT_TRUE(make_private_directory(folder.path() + "/"));
  EXPECT_EQ(mode_of(folder.path()), 0700u);
}

TEST(Files, ADirectoryWritableByOthersIsRejected) {
  const TestFolder folder;
  for (const int mode : {0777, 0770, 01777}) {
    ASSERT_EQ(::chmod(folder.path().c_str(), static_cast<mode_t>(mode)), 0);
    const Result<Unit> made = make_private_directory(folder.path());
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error().message, ::testing::HasSubstr("can be written by others"));
  }
}

TEST(Files, ADirectoryOfAnotherUserIsRejected) {
  // As root: a directory given to another user; otherwise: one that belongs to root.
  const TestFolder folder;
  const bool root = ::geteuid() == 0;
  if (root) ASSERT_EQ(::chown(folder.path().c_str(), 12345, 12345), 0);
  const Result<Unit> made = make_private_directory(root ? folder.path() : "/usr");
  ASSERT_FALSE(made);
  const char* owner = root ? "belongs to another user (uid 12345)" : "belongs to another user (uid 0)";
  EXPECT_THAT(made.error().message, ::testing::HasSubstr(owner));
}

TEST(Files, ReplacingSetsTheModeWhateverTheUmask) {
  const TestFolder folder;
  for (const mode_t mask : {0000, 0077}) {
    const mode_t before = ::umask(mask);
    EXPECT_TRUE(replace_file(folder.file("key"), "secret", Readers::Owner));
    EXPECT_TRUE(replace_file(folder.file("crt"), "public", Readers::Everybody));
    ::umask(before);
    EXPECT_EQ(mode_of(folder.file("key")), 0600u);
    EXPECT_EQ(mode_of(folder.file("crt")), 0644u);
  }
}

TEST(Files, ReplacingDoesNotFollowSymbolicLinks) {
  const TestFolder folder;
  const fs::path victim = folder.file("victim");
  std::ofstream(victim) << "untouched";
  fs::create_symlink(victim, folder.file("key.new"));
  EXPECT_TRUE(replace_file(folder.file("key"), "secret", Readers::Owner));
  EXPECT_EQ(*read_file(victim), "untouched");
  EXPECT_EQ(*read_file(folder.file("key")), "secret");
  EXPECT_FALSE(fs::is_symlink(folder.file("key")));
}

}  // namespace
}  // namespace holdfast
