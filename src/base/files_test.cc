#include "base/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace holdfast {
namespace {

namespace fs = std::filesystem;

struct Folder {
  Folder() {
    char name[] = "/tmp/holdfast-files-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

mode_t mode_of(const fs::path& path) {
  struct stat found{};
  EXPECT_EQ(::lstat(path.c_str(), &found), 0);
  return found.st_mode & 07777;
}

std::string content_of(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Files, APrivateFolderIsItsOwnersAloneWhateverTheUmask) {
  const Folder folder;
  for (const mode_t mask : {0000, 0022, 0277}) {
    const mode_t before = ::umask(mask & 0077);  // Folders above it need their usual modes.
    const fs::path made = folder.path / std::to_string(mask) / "data";
    EXPECT_TRUE(make_private_directory(made));
    ::umask(before);
    EXPECT_EQ(mode_of(made), 0700u);
  }
}

TEST(Files, AFolderThatOthersMayReadIsClosedToThem) {
  const Folder folder;
  fs::permissions(folder.path, fs::perms(0755));
  EXPECT_TRUE(make_private_directory(folder.path.string() + "/"));
  EXPECT_EQ(mode_of(folder.path), 0700u);
}

TEST(Files, AFolderThatOthersMayWriteIsRefused) {
  const Folder folder;
  for (const int mode : {0777, 0770, 01777}) {
    ASSERT_EQ(::chmod(folder.path.c_str(), static_cast<mode_t>(mode)), 0);
    const Result<Unit> made = make_private_directory(folder.path);
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error().message, ::testing::HasSubstr("can be written by others"));
  }
}

TEST(Files, AFolderOfAnotherUserIsRefused) {
  // Root gives one away; anybody else takes one of root's.
  const Folder folder;
  const bool root = ::geteuid() == 0;
  if (root) ASSERT_EQ(::chown(folder.path.c_str(), 12345, 12345), 0);
  const Result<Unit> made = make_private_directory(root ? folder.path : "/usr");
  ASSERT_FALSE(made);
  const char* owner = root ? "belongs to another user (uid 12345)" : "belongs to another user (uid 0)";
  EXPECT_THAT(made.error().message, ::testing::HasSubstr(owner));
}

TEST(Files, ReplacingSetsTheModeWhateverTheUmask) {
  const Folder folder;
  for (const mode_t mask : {0000, 0077}) {
    const mode_t before = ::umask(mask);
    EXPECT_TRUE(replace_file(folder.path / "key", "secret", Readers::Owner));
    EXPECT_TRUE(replace_file(folder.path / "crt", "public", Readers::Everybody));
    ::umask(before);
    EXPECT_EQ(mode_of(folder.path / "key"), 0600u);
    EXPECT_EQ(mode_of(folder.path / "crt"), 0644u);
  }
}

TEST(Files, ReplacingDoesNotWriteThroughALink) {
  const Folder folder;
  const fs::path victim = folder.path / "victim";
  std::ofstream(victim) << "untouched";
  fs::create_symlink(victim, folder.path / "key.new");
  EXPECT_TRUE(replace_file(folder.path / "key", "secret", Readers::Owner));
  EXPECT_EQ(content_of(victim), "untouched");
  EXPECT_EQ(content_of(folder.path / "key"), "secret");
  EXPECT_FALSE(fs::is_symlink(folder.path / "key"));
}

}  // namespace
}  // namespace holdfast
