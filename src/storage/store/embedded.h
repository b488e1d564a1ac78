// Operating embedded stores: their disk, and backups that contain more than the store.
#pragma once

#include <optional>
#include <string>

#include "store/store.h"

namespace holdfast::store {

// Why an embedded store in this directory takes no writes but deletions: too little space is left on its disk. nullopt
// if there is enough, or if that is not known.
std::optional<std::string> disk_full(const std::string& directory);

// A backup with bytes attached that mean nothing to the store, such as the keys of its server.
StoreResult<Moved> back_up(const RocksOptions& from, const BackupFile& to, std::string attachment,
                           const CopyOptions& options = {});
// What was attached to a backup when it was made; empty if nothing was.
StoreResult<std::string> read_attachment(const BackupFile& backup);

}  // namespace holdfast::store
