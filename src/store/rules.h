// What every engine checks and says in the same words. Private to store.
#pragma once

#include <optional>

#include "store/store.h"

namespace holdfast::store {

struct Limits {
  uint64_t max_transaction_bytes = 0;
  uint64_t max_operations = 0;
};

// What is wrong with a transaction whatever the store holds; nothing if it may be tried.
std::optional<StoreError> check_transaction(const Transaction& transaction, const Limits& limits);

inline bool changes(const Operation& operation) { return operation.kind != Operation::Kind::Check; }

// Whether an operation may continue with the key at this mod revision (0: absent).
inline bool fits(const Operation& operation, Revision current) {
  return operation.kind == Operation::Kind::Create ? current == Revision{} : operation.expected == current;
}

inline bool has_prefix(std::string_view key, std::string_view prefix) { return key.starts_with(prefix); }

StoreError compacted_error(Revision asked, Revision compacted);
StoreError future_error(Revision asked, Revision current);
StoreError closed_error();

// Whether this etcd's progress notifications never overtake events: 3.4.31 and later 3.4, 3.5.13 and later. What is not
// a version is not trusted.
bool etcd_progress_is_exact(const std::string& version);

}  // namespace holdfast::store
