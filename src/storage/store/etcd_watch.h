// A watcher on etcd: one stream, reopened at its last position whenever it breaks. Private to the etcd module.
#pragma once

#include <memory>

#include "store/etcd_client.h"

namespace holdfast::store::etcd {

std::unique_ptr<Watcher> watch(std::shared_ptr<Client> client, WatchRequest request);

// The bounds of a range in etcd's notation.
std::string range_key(std::string_view prefix, std::string_view from = {});
std::string range_end(std::string_view prefix);

}  // namespace holdfast::store::etcd
