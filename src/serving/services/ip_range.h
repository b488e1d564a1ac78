// One range of cluster IPs, such as 10.0.0.0/24. Pure data structure: it does not know which addresses are in use.
//
//   10.0.0.0   | 10.0.0.1 - 10.0.0.16 | 10.0.0.17 - 10.0.0.254 | 10.0.0.255
//   network    | static band          | preferred              | broadcast (only IPv4)
//
// The network and broadcast addresses are never allocated. The static band is meant for addresses requested by clients:
// other addresses are taken from it only if the rest of the range is in use (KEP 3070).
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "base/ip.h"

namespace holdfast::services {

class IpRange {
 public:
  // nullopt if nothing can be allocated from it: it is not a network, or an IPv6 prefix shorter than /64, which
  // Kubernetes does not support.
  static std::optional<IpRange> parse(std::string_view cidr);

  const IpNetwork& network() const { return network_; }
  std::string_view family() const { return network_.address.family(); }
  // Whether the address can be allocated.
  bool contains(const IpAddress& address) const;
  // The first address that can be allocated, by convention that of the Service kubernetes.
  IpAddress first() const { return at(0); }
  // How many addresses can be allocated.
  uint64_t count() const { return count_; }

  // The addresses in the order in which to try them: the preferred ones from a random one on, then those of the static
  // band. Ends after all addresses, so a search for a free one takes at most one step more than there are in use.
  class Search {
   public:
    std::optional<IpAddress> next();

   private:
    friend class IpRange;
    struct Part {
      uint64_t first = 0, count = 0, start = 0;
    };
    Search(const IpRange& range, std::mt19937_64& random);
    static Part part(uint64_t first, uint64_t count, std::mt19937_64& random);

    const IpRange& range_;
    Part parts_[2];
    size_t part_ = 0;
    uint64_t step_ = 0;
  };
  // The range must outlive the search.
  Search search(std::mt19937_64& random) const { return {*this, random}; }

 private:
  IpRange(IpNetwork network, uint64_t count, uint64_t band) : network_(network), count_(count), band_(band) {}
  IpAddress at(uint64_t index) const;

  IpNetwork network_;
  uint64_t count_;
  uint64_t band_;  // Size of the static band.
};

}  // namespace holdfast::services
