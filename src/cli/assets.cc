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

Result<Unit> link_to(const fs::path& target, const fs::path& at) {
  std::error_code failed;
  fs::remove(at, failed);
  fs::create_symlink(target, at, failed);
  if (failed) return internal_error(at.string() + ": " + failed.message());
  return Unit{};
}

}  // namespace

Result<Unit> make_assets(const std::string& folder) {
  std::error_code failed;
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return internal_error("cannot find this program: " + failed.message());
  fs::create_directories(folder, failed);
  if (failed) return internal_error(folder + ": " + failed.message());
  for (const char* name : {"kube-apiserver", "etcd"}) {
    Result<Unit> linked = link_to(self, fs::path(folder) / name);
    if (!linked) return linked;
  }
  const fs::path kubectl = on_path("kubectl");
  return kubectl.empty() ? Unit{} : link_to(kubectl, fs::path(folder) / "kubectl");
}

Command add_envtest_assets(CLI::App& app) {
  auto folder = std::make_shared<std::string>();
  CLI::App* c = app.add_subcommand(
      "envtest-assets", "Create a directory for KUBEBUILDER_ASSETS, so that any envtest suite runs on Holdfast.");
  c->add_option("DIR", *folder, "Directory to create; kube-apiserver and etcd in it are links to this program")
      ->required();
  c->footer(
      "\nLike the real one, this kube-apiserver runs no controllers; a suite enables them with\n"
      "  testEnv.ControlPlane.GetAPIServer().Configure().Append(\"controllers\", \"*\")");
  return [folder] {
    Result<Unit> made = make_assets(*folder);
    if (!made) return fail(made.error().message.c_str());
    std::error_code ignored;
    printf("export KUBEBUILDER_ASSETS=%s\n", fs::absolute(*folder, ignored).c_str());
    return 0;
  };
}

}  // namespace holdfast::cli
