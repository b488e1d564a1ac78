#include <sys/utsname.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/strings.h"
#include "cli/commands.h"
#include "server/server.h"

namespace holdfast::cli {
namespace {

namespace fs = std::filesystem;

// The first executable of this name on the PATH; empty if there is none.
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

// Where fabric8's kube-api-test looks for the same programs: k8s/VERSION-OS-ARCHITECTURE, named as in Go.
fs::path kube_api_test_folder() {
  utsname host{};
  uname(&host);
  const std::string_view machine = host.machine;
  const std::string version(server::kubernetes_version().substr(1));  // Without the v.
  return fs::path("k8s") / (version + "-linux-" + (machine == "aarch64" ? "arm64" : "amd64"));
}

Result<Unit> put(const fs::path& target, const fs::path& at, AssetFiles files) {
  std::error_code failed;
  fs::remove(at, failed);
  if (files == AssetFiles::Copies) {
    fs::copy_file(target, at, failed);
  } else {
    fs::create_symlink(target, at, failed);
  }
  if (failed) return internal_error(at.string() + ": " + failed.message());
  return Unit{};
}

}  // namespace

Result<Unit> make_assets(const std::string& folder, AssetFiles files) {
  std::error_code failed;
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return internal_error("cannot find this program: " + failed.message());
  fs::create_directories(folder, failed);
  if (failed) return internal_error(folder + ": " + failed.message());
  for (const char* name : {"kube-apiserver", "etcd"}) {
    Result<Unit> made = put(self, fs::path(folder) / name, files);
    if (!made) return made;
  }
  // The etcd client library is loaded from the directory of the program.
  constexpr const char* kEtcdLibrary = "libholdfast_etcd.so";
  if (const fs::path library = self.parent_path() / kEtcdLibrary;
      files == AssetFiles::Copies && fs::exists(library, failed)) {
    Result<Unit> made = put(library, fs::path(folder) / kEtcdLibrary, files);
    if (!made) return made;
  }
  if (files == AssetFiles::Links) {
    const fs::path versioned = fs::path(folder) / kube_api_test_folder();
    fs::create_directories(versioned.parent_path(), failed);
    if (failed) return internal_error(versioned.parent_path().string() + ": " + failed.message());
    Result<Unit> made = put("..", versioned, files);
    if (!made) return made;
  }
  // Frameworks use kubectl to check that the server is ready. If there is none, this program accepts the same flags.
  const fs::path kubectl = on_path("kubectl");
  return put(kubectl.empty() ? self : kubectl, fs::path(folder) / "kubectl", files);
}

Command add_envtest_assets(CLI::App& app) {
  auto folder = std::make_shared<std::string>();
  CLI::App* c = app.add_subcommand(
      "envtest-assets",
      "Create a directory for KUBEBUILDER_ASSETS, so that any envtest or kube-api-test suite runs on Holdfast");
  c->add_option("DIR", *folder, "Directory to create; kube-apiserver and etcd in it are links to this program")
      ->required();
  auto copies = std::make_shared<bool>(false);
  c->add_flag("--copy", *copies, "Write regular files instead of links, for tools that skip links (setup-envtest)");
  c->footer(
      "\nPrints the variables to set: eval \"$(holdfast envtest-assets DIR)\"\n\n"
      "Like the real one, this kube-apiserver runs no controllers; a suite enables them with\n"
      "  testEnv.ControlPlane.GetAPIServer().Configure().Append(\"controllers\", \"*\")");
  return [folder, copies] {
    Result<Unit> made = make_assets(*folder, *copies ? AssetFiles::Copies : AssetFiles::Links);
    if (!made) return fail(made.error().message.c_str());
    std::error_code ignored;
    const std::string path = fs::absolute(*folder, ignored);
    printf("export KUBEBUILDER_ASSETS=%s\n", path.c_str());
    if (!*copies) printf("export KUBE_API_TEST_DIR=%s\n", path.c_str());
    return 0;
  };
}

}  // namespace holdfast::cli
