#include "cli/cli.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "cli/commands.h"
#include "cli/kube_flags.h"

namespace holdfast::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string file_with(const std::string& text) {
  static const TestFolder folder;
  static int number = 0;
  return folder.write(std::to_string(++number), text);
}

TEST(Run, UnknownOrMissingCommandsFail) {
  EXPECT_EQ(run({"holdfast", "frobnicate"}), 1);
  EXPECT_EQ(run({"holdfast"}), 1);
  EXPECT_EQ(run({"holdfast", "--version"}), 0);
}

TEST(ConfigFile, FlagsFromFilePrecedeTheCommandLine) {
  const std::string path = file_with("# comment\nlisten = 127.0.0.1:0\n\nthreads: 3\n");
  Result<std::vector<std::string>> expanded = expand_config({"serve", "--config", path, "--threads=1"});
  ASSERT_TRUE(expanded) << expanded.error().message;
  EXPECT_THAT(*expanded, ElementsAre("serve", "--listen=127.0.0.1:0", "--threads=3", "--threads=1"));
}

TEST(ConfigFile, ErrorsNameFileAndLine) {
  const std::string path = file_with("listen = x\nnonsense\n");
  Result<std::vector<std::string>> expanded = expand_config({"serve", "--config=" + path});
  ASSERT_FALSE(expanded);
  EXPECT_THAT(expanded.error().message, HasSubstr(path + " line 2"));
}

TEST(KubeFlags, AreTranslatedToServeFlags) {
  const auto has = [](std::string_view name) {
    return name == "secure-port" || name == "allow-privileged" || name == "watch-cache";
  };
  Result<std::vector<std::string>> translated =
      translate_kube_flags({"--secure_port", "6443", "--allow-privileged", "--watch-cache=false"}, has);
  ASSERT_TRUE(translated) << translated.error().message;
  EXPECT_THAT(*translated, ElementsAre("--secure-port=6443", "--allow-privileged=true", "--watch-cache=false"));
  EXPECT_FALSE(translate_kube_flags({"--no-such-flag=1"}, has));
}

TEST(KubeFlags, AllRefusedFlagsAreNamedAtOnce) {
  const auto has = [](std::string_view name) { return name == "secure-port"; };
  const auto translated = translate_kube_flags(
      {"--no-such-flag", "x", "--secure-port", "6443", "--audit-log-compress", "--audit-webhook-config-file=hook"},
      has);
  ASSERT_FALSE(translated);
  EXPECT_EQ(translated.error().message,
            "unknown flag: --no-such-flag\n"
            "--audit-log-compress=true is not supported by Holdfast; only false is\n"
            "--audit-webhook-config-file=hook is not supported by Holdfast");
}

TEST(KubeFlags, FlagsOfInternalsAreAccepted) {
  const auto has = [](std::string_view) { return false; };
  const auto translated = translate_kube_flags({"--enable-priority-and-fairness=false", "--peer-ca-file", "ca.crt",
                                                "--etcd-count-metric-poll-period=0s", "--enable-priority-and-fairness"},
                                               has);
  ASSERT_TRUE(translated) << translated.error().message;
  EXPECT_TRUE(translated->empty());
  EXPECT_FALSE(translate_kube_flags({"--audit-log-compress"}, has)) << "it would have an effect";
}

}  // namespace
}  // namespace holdfast::cli
