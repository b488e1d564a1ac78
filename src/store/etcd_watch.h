// A watcher on etcd: one stream, opened again from where it stood whenever it breaks. Private to the etcd module.
#pragma once

#include <memory>

#include "store/etcd_client.h"

namespace holdfast::store::etcd {

std::unique_ptr<Watcher> watch(std::shared_ptr<Client> client, WatchRequest request);

// etcd's spelling of a range.
std::string range_key(std::string_view prefix, std::string_view from = {});
std::string range_end(std::string_view prefix);

}  // namespace holdfast::store::etcd
