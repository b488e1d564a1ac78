// Checks and error messages shared by all engines. Private to store.
#pragma once

#include <optional>

#include "store/store.h"

namespace holdfast::store {

struct Limits {
  uint64_t max_transaction_bytes = 0;
  uint64_t max_operations = 0;
};

// Why a transaction is invalid regardless of the stored state; nullopt if it may be attempted.
std::optional<StoreError> check_transaction(const Transaction& transaction, const Limits& limits);

inline bool changes(const Operation& operation) { return operation.kind != Operation::Kind::Check; }

// Whether the operation's condition holds for a key at this mod revision (0 if absent).
inline bool fits(const Operation& operation, Revision current) {
  return operation.kind == Operation::Kind::Create ? current == Revision{} : operation.expected == current;
}

inline bool has_prefix(std::string_view key, std::string_view prefix) { return key.starts_with(prefix); }

StoreError compacted_error(Revision asked, Revision compacted);
StoreError future_error(Revision asked, Revision current);
StoreError closed_error();

// Whether progress notifications of this etcd never overtake events: 3.4.31 and later 3.4, 3.5.13 and later. False if
// the text is not a version.
bool etcd_progress_is_exact(const std::string& version);

}  // namespace holdfast::store
