// What the operator of a server on etcd has to know while it runs, beyond the errors of single requests (store.h).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "store/store.h"

namespace holdfast::store {

// Called on any thread, as often as it happens; must not block. Endpoints are URLs, reasons are texts for logs.
struct EtcdNotices {
  // Requests move from an endpoint that does not respond, or has no leader, to the next one.
  std::function<void(const std::string& endpoint, const std::string& next, const std::string& why)> failover = {};
  // etcd rejected a write because it has reached its space quota.
  std::function<void(const std::string& endpoint, const std::string& why)> no_space = {};
};

StoreResult<std::unique_ptr<Store>> open_etcd(EtcdOptions options, const EtcdNotices& notices);

}  // namespace holdfast::store
