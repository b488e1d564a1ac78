// Caches renderings of messages that repeat among the objects of a list. Pods of one application have the same
// containers, volumes and conditions: such a message is rendered once, and its JSON or CBOR is copied from then on.
//
// Messages are kept from their second occurrence on, within a fixed budget; when it is exhausted, the cache is cleared.
// Threading: one user at a time. A memo is for one format and shape: gates and dropped fields must stay the same.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace holdfast::codec {

class MessageMemo {
 public:
  // Shorter messages are rendered as fast as they are looked up.
  static constexpr size_t kLeastBytes = 32;

  // The slot where a message was looked up.
  struct Place {
    uint64_t hash = 0;
    bool keep = false;  // This is at least its second occurrence.
  };
  // The cached rendering of that message of that type (any pointer that identifies it). If empty, it is not cached and
  // `place` says whether to keep it. Valid until keep().
  std::string_view find(const void* type, std::string_view message, Place& place);
  void keep(const Place& place, const void* type, std::string_view message, std::string_view rendered);

 private:
  static constexpr size_t kItems = 1024, kSeen = 4096, kBudgetBytes = 512 << 10;
  struct Item {
    const void* type = nullptr;  // Null if free.
    uint64_t hash = 0;
    uint32_t at = 0, message_bytes = 0, rendered_bytes = 0;  // The message, followed by its rendering.
  };

  // Allocated on first use: most lists are short.
  std::vector<Item> items_;
  std::vector<uint32_t> seen_;  // Hashes of messages that occurred once.
  std::unique_ptr<char[]> bytes_;
  size_t used_bytes_ = 0;
};

}  // namespace holdfast::codec
