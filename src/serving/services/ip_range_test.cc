#include "services/ip_range.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace holdfast::services {
namespace {

std::vector<std::string> all_of(const IpRange& range, size_t most) {
  std::mt19937_64 random(7);
  IpRange::Search search = range.search(random);
  std::vector<std::string> found;
  while (found.size() < most) {
    const std::optional<IpAddress> next = search.next();
    if (!next) break;
    found.push_back(next->text());
  }
  return found;
}

TEST(IpRangeTest, NetworkAndBroadcastAddressesAreNotAllocated) {
  struct Case {
    const char* cidr;
    uint64_t count;
    const char *first, *last;
  };
  for (const Case& each : {
           Case{"192.168.0.0/29", 6, "192.168.0.1", "192.168.0.6"},
           Case{"192.168.0.5/30", 2, "192.168.0.5", "192.168.0.6"},
           Case{"2001:db8::/125", 7, "2001:db8::1", "2001:db8::7"},
           Case{"2001:db8::/127", 1, "2001:db8::1", "2001:db8::1"},
           Case{"10.0.0.0/8", (1u << 24) - 2, "10.0.0.1", "10.255.255.254"},
           Case{"2001:db8:1:2::/64", UINT64_MAX, "2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff"},
       }) {
    const std::optional<IpRange> range = IpRange::parse(each.cidr);
    ASSERT_TRUE(range) << each.cidr;
    EXPECT_EQ(range->count(), each.count) << each.cidr;
    EXPECT_EQ(range->first().text(), each.first);
    EXPECT_TRUE(range->contains(*IpAddress::parse(each.first)));
    EXPECT_TRUE(range->contains(*IpAddress::parse(each.last)));
    EXPECT_FALSE(range->contains(range->network().first())) << each.cidr;
    EXPECT_EQ(range->contains(range->network().last()), range->network().address.v6) << each.cidr;
  }
  for (const char* cidr : {"10.0.0.0/31", "10.0.0.0/32", "2001:db8::/128", "2001:db8::/63", "10.0.0.0", "x/8", ""}) {
    EXPECT_FALSE(IpRange::parse(cidr)) << cidr;
  }
}

TEST(IpRangeTest, SearchVisitsEveryAddressOnce) {
  for (const char* cidr : {"10.0.0.0/29", "10.0.0.0/24", "10.0.0.0/20", "2001:db8::/125", "2001:db8::/118"}) {
    const std::optional<IpRange> range = IpRange::parse(cidr);
    ASSERT_TRUE(range);
    const std::vector<std::string> found = all_of(*range, range->count() + 1);
    EXPECT_EQ(found.size(), range->count()) << cidr;
    EXPECT_EQ(std::set<std::string>(found.begin(), found.end()).size(), range->count()) << cidr;
  }
}

TEST(IpRangeTest, StaticBandComesLast) {
  const std::optional<IpRange> range = IpRange::parse("10.0.0.0/24");
  ASSERT_TRUE(range);
  const std::vector<std::string> found = all_of(*range, range->count());
  const std::set<std::string> last(found.end() - 16, found.end());
  EXPECT_EQ(last.size(), 16u);
  for (int i = 1; i <= 16; ++i) EXPECT_TRUE(last.contains("10.0.0." + std::to_string(i))) << i;
}

TEST(IpRangeTest, LargeRangesAreSearchedWithoutVisitingThem) {
  const std::optional<IpRange> range = IpRange::parse("2001:db8::/64");
  ASSERT_TRUE(range);
  for (const std::string& ip : all_of(*range, 100)) EXPECT_TRUE(range->contains(*IpAddress::parse(ip))) << ip;
}

}  // namespace
}  // namespace holdfast::services
