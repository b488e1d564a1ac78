#include "server/service_network.h"

#include <gtest/gtest.h>

namespace holdfast::server {
namespace {

using Texts = std::vector<std::string>;

TEST(ServiceNetworkTest, OneRangeOrOneOfEachFamily) {
  const Result<ServiceNetwork> v4 = parse_service_network("10.0.0.7/24");
  ASSERT_TRUE(v4);
  EXPECT_EQ(v4->cidrs, Texts{"10.0.0.0/24"});
  EXPECT_EQ(v4->kubernetes_ip, "10.0.0.1");
  const Result<ServiceNetwork> v6 = parse_service_network("2001:DB8:1::/112");
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->cidrs, Texts{"2001:db8:1::/112"});
  EXPECT_EQ(v6->kubernetes_ip, "2001:db8:1::1");
  EXPECT_EQ(v6->families, std::vector<std::string_view>{"IPv6"});
  const Result<ServiceNetwork> both = parse_service_network("2001:db8:1::/64,10.0.0.0/30");
  ASSERT_TRUE(both);
  EXPECT_EQ(both->cidrs, (Texts{"2001:db8:1::/64", "10.0.0.0/30"}));
  EXPECT_EQ(both->families, (std::vector<std::string_view>{"IPv6", "IPv4"}));
  const Result<ServiceNetwork> none = parse_service_network("");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->cidrs, Texts{"10.0.0.0/24"});
}

TEST(ServiceNetworkTest, InvalidRangesAreRefused) {
  for (const auto& [flag, problem] : std::initializer_list<std::pair<const char*, const char*>>{
           {"10.0.0.0", "\"10.0.0.0\" is not a range such as 10.0.0.0/24 or 2001:db8::/112"},
           {"10.0.0.0/24,", "\"\" is not a range such as 10.0.0.0/24 or 2001:db8::/112"},
           {"10.0.0.0/24,2001:db8::", "\"2001:db8::\" is not a range such as 10.0.0.0/24 or 2001:db8::/112"},
           {"::ffff:10.0.0.0/120", "\"::ffff:10.0.0.0/120\" is not a range such as 10.0.0.0/24 or 2001:db8::/112"},
           {"10.0.0.0/30", "the service cluster IP range must be at least 8 IP addresses"},
           {"2001:db8::/56", "the prefix of 2001:db8::/56 must not be shorter than /64"},
           {"10.0.0.0/24,10.1.0.0/24", "the two ranges must be of different IP families"},
           {"10.0.0.0/24,2001:db8::/112,10.1.0.0/24", "must not contain more than two entries"},
       }) {
    const Result<ServiceNetwork> parsed = parse_service_network(flag);
    ASSERT_FALSE(parsed) << flag;
    EXPECT_EQ(parsed.error().message, "--service-cluster-ip-range: " + std::string(problem));
  }
}

TEST(ServiceNetworkTest, AdvertisedAddressHasTheFamilyOfTheFirstRange) {
  const Result<ServiceNetwork> both = parse_service_network("2001:db8:1::/64,10.0.0.0/24");
  ASSERT_TRUE(both);
  EXPECT_TRUE(check_advertised_family(*both, "2001:db8::5").ok());
  EXPECT_FALSE(check_advertised_family(*both, "10.1.2.3").ok());
}

}  // namespace
}  // namespace holdfast::server
