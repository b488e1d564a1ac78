#include "cli/cli.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

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

Result<std::vector<std::string>> expanded(std::vector<std::string> arguments,
                                          std::vector<const char*> environment = {}) {
  environment.push_back(nullptr);
  char** const original = std::exchange(environ, const_cast<char**>(environment.data()));
  Result<std::vector<std::string>> flags = expand_config(std::move(arguments));
  environ = original;
  return flags;
}

TEST(ConfigFile, FileThenEnvironmentPrecedeTheCommandLine) {
  const std::string path = file_with("# comment\nlisten = 127.0.0.1:0\n\nthreads: 3\n");
  const auto flags = expanded({"serve", "--config", path, "--threads=1"},
                              {"HOME=/root", "HOLDFAST_SERVE_DATA_DIR=/a=b", "HOLDFAST_SERVE_THREADS=2"});
  ASSERT_TRUE(flags) << flags.error().message;
  EXPECT_THAT(*flags, ElementsAre("serve", "--listen=127.0.0.1:0", "--threads=3", "--data-dir=/a=b", "--threads=2",
                                  "--threads=1"));
}

TEST(ConfigFile, TheEnvironmentCanNameTheFile) {
  const std::string variable = "HOLDFAST_SERVE_CONFIG=" + file_with("threads: 3\n");
  const auto flags = expanded({"serve"}, {variable.c_str()});
  ASSERT_TRUE(flags) << flags.error().message;
  EXPECT_THAT(*flags, ElementsAre("serve", "--threads=3"));
}

TEST(ConfigFile, UnknownFlagsNameTheNearest) {
  const std::string path = file_with("threads = 1\nlisen = x\n");
  EXPECT_EQ(expanded({"serve", "--config", path}).error().message,
            path + " line 2: unknown flag lisen; did you mean --listen?");
  EXPECT_EQ(expanded({"serve"}, {"HOLDFAST_SERVE_DATADIR=x"}).error().message,
            "environment variable HOLDFAST_SERVE_DATADIR: unknown flag --datadir; did you mean --data-dir?");
  EXPECT_EQ(expanded({"serve", "--etcd-server", "x"}).error().message,
            "unknown flag --etcd-server; did you mean --etcd-servers?");
  EXPECT_EQ(expanded({"serve", "--qqqqqqqqqqqq"}).error().message, "unknown flag --qqqqqqqqqqqq");
}

TEST(ConfigFile, ErrorsNameFileAndLine) {
  const std::string path = file_with("listen = x\nnonsense\n");
  const auto flags = expanded({"serve", "--config=" + path});
  ASSERT_FALSE(flags);
  EXPECT_THAT(flags.error().message, HasSubstr(path + " line 2"));
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
