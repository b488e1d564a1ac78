#include "store/etcd_module.h"

#include <dlfcn.h>

#include <cstring>
#include <filesystem>
#include <vector>

#ifdef HOLDFAST_STATIC
extern "C" holdfast::store::etcd::OpenFunction holdfast_open_etcd;
#endif

namespace holdfast::store {

#ifdef HOLDFAST_STATIC

StoreResult<std::unique_ptr<Store>> open_etcd(EtcdOptions options, const EtcdNotices& notices) {
  StoreResult<std::unique_ptr<Store>> result = StoreError{};
  holdfast_open_etcd(&options, &notices, &result);
  return result;
}

#else

namespace {

constexpr const char* kModuleFile = "libholdfast_etcd.so";

std::vector<std::string> module_candidates(const EtcdOptions& options) {
  if (!options.module_path.empty()) return {options.module_path};
  std::vector<std::string> candidates;
  std::error_code failed;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed).parent_path();
  if (!failed) {
    candidates.push_back((program / kModuleFile).string());
    candidates.push_back((program / HOLDFAST_MODULES / kModuleFile).string());  // Installed.
    candidates.push_back((program / "../lib" / kModuleFile).string());          // Build tree.
  }
  candidates.emplace_back(kModuleFile);
  return candidates;
}

}  // namespace

StoreResult<std::unique_ptr<Store>> open_etcd(EtcdOptions options, const EtcdNotices& notices) {
  void* module = nullptr;
  std::string tried;
  for (const std::string& path : module_candidates(options)) {
    // Never unloaded: its threads may briefly outlive the last store.
    module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module) break;
    tried += std::string(tried.empty() ? "" : "; ") + ::dlerror();
  }
  if (!module) return StoreError{ErrorKind::Invalid, "the etcd engine cannot be loaded: " + tried};
  auto* version = reinterpret_cast<etcd::ModuleVersionFunction*>(::dlsym(module, "holdfast_etcd_module_version"));
  auto* open = reinterpret_cast<etcd::OpenFunction*>(::dlsym(module, "holdfast_open_etcd"));
  if (!version || !open || std::strcmp(version(), etcd::kModuleVersion) != 0) {
    return StoreError{ErrorKind::Invalid, std::string("the etcd engine does not match the version of this program: ") +
                                              (version ? version() : "unknown") + " instead of " +
                                              etcd::kModuleVersion};
  }
  StoreResult<std::unique_ptr<Store>> result = StoreError{};
  open(&options, &notices, &result);
  return result;
}

#endif

StoreResult<std::unique_ptr<Store>> open_etcd(EtcdOptions options) { return open_etcd(std::move(options), {}); }

}  // namespace holdfast::store
