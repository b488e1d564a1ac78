#include "store/rules.h"

#include <algorithm>
#include <charconv>

namespace holdfast::store {

std::optional<StoreError> check_transaction(const Transaction& transaction, const Limits& limits) {
  if (transaction.empty()) return StoreError{ErrorKind::Invalid, "a transaction without operations"};
  if (transaction.size() > limits.max_operations) {
    return StoreError{ErrorKind::TooLarge, "a transaction of " + std::to_string(transaction.size()) +
                                               " operations, the limit is " + std::to_string(limits.max_operations)};
  }
  uint64_t bytes = 0;
  for (const Operation& operation : transaction) {
    if (operation.key.empty()) return StoreError{ErrorKind::Invalid, "an empty key"};
    if (operation.key.find('\0') != std::string::npos) {
      return StoreError{ErrorKind::Invalid, "key with a NUL byte: " + operation.key};
    }
    bool writes_value = operation.kind == Operation::Kind::Create || operation.kind == Operation::Kind::Update;
    if (writes_value != (operation.value != nullptr)) {
      return StoreError{ErrorKind::Invalid,
                        operation.key + ": create and update require a value, other operations must not have one"};
    }
    bool names_revision = operation.kind == Operation::Kind::Update || operation.kind == Operation::Kind::Delete;
    if (names_revision && operation.expected == Revision{}) {
      return StoreError{ErrorKind::Invalid, operation.key + ": update and delete require an expected revision"};
    }
    bytes += operation.key.size() + (operation.value ? operation.value->size() : 0);
  }
  if (bytes > limits.max_transaction_bytes) {
    // etcd's messages, which users can search for: those of the server, and of its client, which rejects more than
    // this.
    constexpr uint64_t kMaxSendBytes = 2 << 20;
    if (bytes <= kMaxSendBytes) return StoreError{ErrorKind::TooLarge, "etcdserver: request is too large"};
    return StoreError{ErrorKind::TooLarge,
                      "rpc error: code = ResourceExhausted desc = trying to send message larger than max (" +
                          std::to_string(bytes) + " vs. " + std::to_string(kMaxSendBytes) + ")"};
  }
  if (transaction.size() > 1) {
    std::vector<std::string_view> keys;
    keys.reserve(transaction.size());
    for (const Operation& operation : transaction) keys.push_back(operation.key);
    std::ranges::sort(keys);
    auto twice = std::ranges::adjacent_find(keys);
    if (twice != keys.end()) {
      return StoreError{ErrorKind::Invalid, std::string(*twice) + ": more than once in one transaction"};
    }
  }
  return std::nullopt;
}

StoreError compacted_error(Revision asked, Revision compacted) {
  return {ErrorKind::Compacted, "revision " + std::to_string(asked.value) + " has been compacted, history begins at " +
                                    std::to_string(compacted.value)};
}

StoreError future_error(Revision asked, Revision current) {
  return {ErrorKind::FutureRevision, "revision " + std::to_string(asked.value) + " is in the future, the store is at " +
                                         std::to_string(current.value)};
}

StoreError closed_error() { return {ErrorKind::Closed, "the store was closed"}; }

bool etcd_progress_is_exact(const std::string& version) {
  unsigned parts[3] = {};
  const char* at = version.data();
  const char* end = at + version.size();
  for (int i = 0; i < 3; ++i) {
    auto [next, failed] = std::from_chars(at, end, parts[i]);
    if (failed != std::errc() || (i < 2 && (next == end || *next != '.'))) return false;
    at = next + 1;
  }
  auto [major, minor, patch] = parts;
  if (major != 3) return major > 3;
  if (minor == 4) return patch >= 31;
  if (minor == 5) return patch >= 13;
  return minor > 5;
}

}  // namespace holdfast::store
