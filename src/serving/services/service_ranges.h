// The ranges from which cluster IPs are allocated: those of all ServiceCIDRs that are ready.
//
// A ServiceCIDR without a Ready condition counts as ready, so that ranges work without the controller that sets it. One
// that is being deleted does not. While the default one, named kubernetes, does not exist, the ranges of the flag
// --service-cluster-ip-range, with which it will be created again, take its place.
// Threading: any thread.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cache/cache.h"
#include "resource/resource.h"
#include "services/ip_range.h"

namespace holdfast::services {

// Name of the ServiceCIDR with the ranges of the flag.
inline constexpr std::string_view kDefaultServiceCidr = "kubernetes";

class ServiceRanges {
 public:
  // `configured`: one range, or one of each family; the first one is the default family. The registry must outlive this
  // object.
  ServiceRanges(std::span<const std::string> configured, const resource::Registry& registry);

  // Those of the default ServiceCIDR first, otherwise in the order of the names of their ServiceCIDRs.
  using List = std::vector<IpRange>;
  Result<std::shared_ptr<const List>> current();

 private:
  Result<List> read(const cache::Snapshot& objects) const;

  const resource::Registry::SnapshotRef registry_;
  resource::Storage* const storage_;  // Null if ServiceCIDRs are not served.
  List configured_;

  std::mutex mutex_;  // Guards the members below.
  std::optional<cache::Snapshot> seen_;
  std::shared_ptr<const List> known_;  // The ranges of `seen_`.
};

}  // namespace holdfast::services
