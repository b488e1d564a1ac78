#include "services/port_bitmap.h"

#include <algorithm>

namespace holdfast::services {
namespace {

// From portallocator.calculateRangeOffset.
size_t static_band(size_t count) { return count <= 16 ? 0 : std::clamp<size_t>(count / 32, 16, 128); }

}  // namespace

PortBitmap PortBitmap::from_bytes(int32_t first, int32_t last, std::string_view bytes) {
  PortBitmap bitmap(first, last);
  for (size_t i = 0; i < bitmap.taken_.size() && i / 8 < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - 1 - i / 8]);
    bitmap.taken_[i] = (byte >> (i % 8) & 1) != 0;
  }
  return bitmap;
}

std::string PortBitmap::bytes() const {
  std::string reversed;
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (!taken_[i]) continue;
    reversed.resize(i / 8 + 1);
    reversed[i / 8] = static_cast<char>(reversed[i / 8] | 1 << (i % 8));
  }
  return {reversed.rbegin(), reversed.rend()};
}

std::vector<int32_t> PortBitmap::ports() const {
  std::vector<int32_t> all;
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (taken_[i]) all.push_back(first_ + static_cast<int32_t>(i));
  }
  return all;
}

std::optional<int32_t> PortBitmap::choose_between(size_t from, size_t to, std::mt19937& random) const {
  if (from == to) return std::nullopt;
  const size_t start = random() % (to - from);
  for (size_t step = 0; step < to - from; ++step) {
    const size_t at = from + (start + step) % (to - from);
    if (!taken_[at]) return first_ + static_cast<int32_t>(at);
  }
  return std::nullopt;
}

std::optional<int32_t> PortBitmap::choose(std::mt19937& random) const {
  const size_t band = static_band(taken_.size());
  if (const std::optional<int32_t> upper = choose_between(band, taken_.size(), random)) return upper;
  return choose_between(0, band, random);
}

AllocatedPorts take_ports(PortBitmap& bitmap, std::span<const int32_t> wanted, std::mt19937& random) {
  PortBitmap next = bitmap;
  std::vector<int32_t> taken;
  for (size_t i = 0; i < wanted.size(); ++i) {
    int32_t port = wanted[i];
    if (port == 0) {
      const std::optional<int32_t> free = next.choose(random);
      if (!free) return PortRefusal{i, "range is full"};
      port = *free;
    } else if (!next.in_range(port)) {
      return PortRefusal{i, "provided port is not in the valid range. The range of valid ports is " +
                                std::to_string(next.first()) + "-" + std::to_string(next.last())};
    } else if (next.has(port)) {
      return PortRefusal{i, "provided port is already allocated"};
    }
    next.add(port);
    taken.push_back(port);
  }
  bitmap = std::move(next);
  return taken;
}

}  // namespace holdfast::services
