#include "services/ip_range.h"

#include <algorithm>
#include <limits>

namespace holdfast::services {
namespace {

// Follows calculateRangeOffset of Kubernetes; `size` includes the network and broadcast addresses.
uint64_t static_band(uint64_t size) {
  constexpr uint64_t kLeast = 16, kMost = 256, kShare = 16;
  return size <= kLeast ? 0 : std::clamp(size / kShare, kLeast, kMost);
}

}  // namespace

std::optional<IpRange> IpRange::parse(std::string_view cidr) {
  std::optional<IpNetwork> network = IpNetwork::parse(cidr);
  if (!network) return std::nullopt;
  network->address = network->first();
  const int bits = network->host_bits();
  if (bits < 0 || bits > 64) return std::nullopt;
  const uint64_t last = bits == 64 ? std::numeric_limits<uint64_t>::max() : (uint64_t{1} << bits) - 1;
  // `last` is the number of addresses without that of the network.
  const uint64_t unusable = network->address.v6 ? 0 : 1;
  if (last <= unusable) return std::nullopt;
  const uint64_t count = last - unusable;
  const uint64_t size = bits == 64 ? last : last + 1;
  return IpRange(*network, count, std::min(static_band(size), count));
}

bool IpRange::contains(const IpAddress& address) const {
  if (!network_.contains(address) || address == network_.address) return false;
  return address.v6 || address != network_.last();
}

IpAddress IpRange::at(uint64_t index) const {
  IpAddress address = network_.address;
  const size_t length = address.v6 ? 16 : 4;
  // The bits of the host are zero in the network's address and there are enough of them: no carry goes beyond.
  uint64_t offset = index + 1;
  for (size_t i = length; offset != 0 && i-- > 0; offset >>= 8) {
    address.bytes[i] = static_cast<uint8_t>(address.bytes[i] | (offset & 0xff));
  }
  return address;
}

IpRange::Search::Part IpRange::Search::part(uint64_t first, uint64_t count, std::mt19937_64& random) {
  return {first, count, count == 0 ? 0 : random() % count};
}

IpRange::Search::Search(const IpRange& range, std::mt19937_64& random)
    : range_(range), parts_{part(range.band_, range.count_ - range.band_, random), part(0, range.band_, random)} {}

std::optional<IpAddress> IpRange::Search::next() {
  while (part_ < std::size(parts_) && step_ == parts_[part_].count) {
    ++part_;
    step_ = 0;
  }
  if (part_ == std::size(parts_)) return std::nullopt;
  const Part& part = parts_[part_];
  // start + step may exceed 64 bits.
  const uint64_t left = part.count - part.start;
  const uint64_t index = step_ < left ? part.start + step_ : step_ - left;
  ++step_;
  return range_.at(part.first + index);
}

}  // namespace holdfast::services
