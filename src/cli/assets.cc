#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/strings.h"
#include "cli/commands.h"

namespace holdfast::cli {
namespace {

namespace fs = std::filesystem;

// The first executable of this name on the PATH; empty when there is none.
fs::path on_path(std::string_view name) {
  const char* path = getenv("PATH");
  for (const std::string_view folder : split(path == nullptr ? "" : path, ':')) {
    if (folder.empty()) continue;
    const fs::path candidate = fs::path(folder) / name;
    std::error_code ignored;
    if (access(candidate.c_str(), X_OK) == 0 && fs::is_regular_file(candidate, ignored)) {
      return fs::absolute(candidate, ignored);
    }
  }
  return {};
}

int make_assets(const std::string& folder) {
  std::error_code failed;
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return fail(("cannot find this program: " + failed.message()).c_str());
  fs::create_directories(folder, failed);
  if (failed) return fail((folder + ": " + failed.message()).c_str());
  auto link = [&](const char* name, const fs::path& target) {
    const fs::path at = fs::path(folder) / name;
    fs::remove(at, failed);
    fs::create_symlink(target, at, failed);
    if (failed) fail((at.string() + ": " + failed.message()).c_str());
    return !failed;
  };
  if (!link("kube-apiserver", self) || !link("etcd", self)) return 1;
  const fs::path kubectl = on_path("kubectl");
  if (!kubectl.empty() && !link("kubectl", kubectl)) return 1;
  printf("export KUBEBUILDER_ASSETS=%s\n", fs::absolute(folder, failed).c_str());
  return 0;
}

}  // namespace

Command add_envtest_assets(CLI::App& app) {
  auto folder = std::make_shared<std::string>();
  CLI::App* c = app.add_subcommand(
      "envtest-assets", "Create a directory for KUBEBUILDER_ASSETS, so that any envtest suite runs on Holdfast.");
  c->add_option("DIR", *folder, "Directory to create; kube-apiserver and etcd in it are links to this program")
      ->required();
  c->footer(
      "\nLike the real one, this kube-apiserver runs no controllers; a suite enables them with\n"
      "  testEnv.ControlPlane.GetAPIServer().Configure().Append(\"controllers\", \"*\")");
  return [folder] { return make_assets(*folder); };
}

}  // namespace holdfast::cli
