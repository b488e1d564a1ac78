#include "codec/message_memo.h"

#include <cstring>

#include "base/hash.h"

namespace holdfast::codec {

std::string_view MessageMemo::find(const void* type, std::string_view message, Place& place) {
  if (items_.empty()) {
    items_.resize(kItems);
    seen_.resize(kSeen);
    bytes_ = std::make_unique_for_overwrite<char[]>(kBudgetBytes);
  }
  place.hash = hash_bytes(message, reinterpret_cast<uintptr_t>(type));
  const Item& item = items_[place.hash % kItems];
  if (item.hash == place.hash && item.type == type && item.message_bytes == message.size() &&
      std::memcmp(bytes_.get() + item.at, message.data(), message.size()) == 0) {
    return {bytes_.get() + item.at + item.message_bytes, item.rendered_bytes};
  }
  uint32_t& seen = seen_[place.hash % kSeen];
  const auto mark = static_cast<uint32_t>(place.hash >> 32);
  place.keep = seen == mark;
  seen = mark;
  return {};
}

void MessageMemo::keep(const Place& place, const void* type, std::string_view message, std::string_view rendered) {
  const size_t bytes = message.size() + rendered.size();
  if (bytes > kBudgetBytes / 8) return;
  if (used_bytes_ + bytes > kBudgetBytes) {
    items_.assign(kItems, {});
    used_bytes_ = 0;
  }
  char* const to = bytes_.get() + used_bytes_;
  std::memcpy(to, message.data(), message.size());
  std::memcpy(to + message.size(), rendered.data(), rendered.size());
  items_[place.hash % kItems] = {type, place.hash, static_cast<uint32_t>(used_bytes_),
                                 static_cast<uint32_t>(message.size()), static_cast<uint32_t>(rendered.size())};
  used_bytes_ += bytes;
}

}  // namespace holdfast::codec
