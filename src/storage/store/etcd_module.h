// The interface between the program and the etcd module (libholdfast_etcd.so). Private to store.
#pragma once

#include <memory>

#include "store/etcd.h"
#include "store/store.h"

namespace holdfast::store::etcd {

// Both sides must be compiled from the same headers.
inline constexpr const char* kModuleVersion = "holdfast-etcd-2 " HOLDFAST_VERSION;

using ModuleVersionFunction = const char*();
using OpenFunction = void(const EtcdOptions* options, const EtcdNotices* notices,
                          StoreResult<std::unique_ptr<Store>>* result);

}  // namespace holdfast::store::etcd
