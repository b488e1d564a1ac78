// Bitmap of allocated node ports in a range. Pure data structure.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace holdfast::services {

class PortBitmap {
 public:
  PortBitmap(int32_t first, int32_t last) : first_(first), taken_(static_cast<size_t>(last - first + 1)) {}

  // The bitmap as stored by kube-apiserver: one big-endian number without leading zeros, bit 0 for the first port.
  //
  //   30000-30009, allocated 30000 and 30009:  02 01
  static PortBitmap from_bytes(int32_t first, int32_t last, std::string_view bytes);
  std::string bytes() const;

  int32_t first() const { return first_; }
  int32_t last() const { return first_ + static_cast<int32_t>(taken_.size()) - 1; }
  bool in_range(int32_t port) const { return port >= first_ && port <= last(); }
  // Ports outside the range are never allocated; adding and removing them has no effect.
  bool has(int32_t port) const { return in_range(port) && taken_[static_cast<size_t>(port - first_)]; }
  void add(int32_t port) { set(port, true); }
  void remove(int32_t port) { set(port, false); }
  std::vector<int32_t> ports() const;

  // A random free port, from the lower band of the range only if the rest is full: that band is reserved for ports
  // requested by number (KEP 3668). nullopt if all are allocated.
  std::optional<int32_t> choose(std::mt19937& random) const;

  bool operator==(const PortBitmap&) const = default;

 private:
  void set(int32_t port, bool taken) {
    if (in_range(port)) taken_[static_cast<size_t>(port - first_)] = taken;
  }
  std::optional<int32_t> choose_between(size_t from, size_t to, std::mt19937& random) const;

  int32_t first_;
  std::vector<bool> taken_;
};

// The requested port that cannot be allocated, and the reason in Kubernetes' wording.
struct PortRefusal {
  size_t claim = 0;
  std::string why;
};
using AllocatedPorts = std::variant<std::vector<int32_t>, PortRefusal>;

// Allocates a port for each of `wanted` (0 for any), in this order; all or none.
AllocatedPorts take_ports(PortBitmap& bitmap, std::span<const int32_t> wanted, std::mt19937& random);

}  // namespace holdfast::services
