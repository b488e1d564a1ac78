// Remembers what repeats among the objects of a list. Pods of one application have the same containers, volumes and
// conditions: such a message is rendered once, and its JSON or CBOR is copied from then on.
//
// Only what comes a second time is kept, and all of it within a fixed budget: when that is used up, it starts over.
// Threading: one user at a time. For one format and shape of one list: gates and dropped fields must stay the
// same.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace holdfast::codec {

class MessageMemo {
 public:
  // Shorter messages are written as fast as they are found.
  static constexpr size_t kLeastBytes = 32;

  // Where a message was looked for.
  struct Place {
    uint64_t hash = 0;
    bool keep = false;  // It comes at least the second time.
  };
  // The rendering of that message of that type (any pointer that names it); empty: not known, and `place` says whether
  // to keep it. Valid until keep().
  std::string_view find(const void* type, std::string_view message, Place& place);
  void keep(const Place& place, const void* type, std::string_view message, std::string_view rendered);

 private:
  static constexpr size_t kItems = 1024, kSeen = 4096, kBudgetBytes = 512 << 10;
  struct Item {
    const void* type = nullptr;  // Null: free.
    uint64_t hash = 0;
    uint32_t at = 0, message_bytes = 0, rendered_bytes = 0;  // The message, and its rendering behind it.
  };

  // Made when first used: most lists are short.
  std::vector<Item> items_;
  std::vector<uint32_t> seen_;  // Hashes of what came once.
  std::unique_ptr<char[]> bytes_;
  size_t used_bytes_ = 0;
};

}  // namespace holdfast::codec
