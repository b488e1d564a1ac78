#include "base/ip.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

TEST(IpTest, AddressesAreWrittenInCanonicalForm) {
  for (const auto& [text, canonical] : std::initializer_list<std::pair<const char*, const char*>>{
           {"10.0.0.1", "10.0.0.1"},
           {"010.0.0.1", "10.0.0.1"},
           {"::", "::"},
           {"::1", "::1"},
           {"1::", "1::"},
           {"2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
           {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
           {"1:0:0:2:0:0:0:3", "1:0:0:2::3"},
           {"1:2:3:4:5:6:0:0", "1:2:3:4:5:6::"},
           {"0:0:3:4:5:6:7:8", "::3:4:5:6:7:8"},
           {"::1.2.3.4", "::102:304"},
           {"::ffff:1.2.3.4", "1.2.3.4"},
       }) {
    const std::optional<IpAddress> parsed = IpAddress::parse(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(parsed->text(), canonical);
  }
  for (const char* text : {"", "1.2.3", "1.2.3.4.5", "1.2.3.256", "a", ":::", "1:2:3:4:5:6:7:8:9", "::1%lo"}) {
    EXPECT_FALSE(IpAddress::parse(text)) << text;
  }
}

TEST(IpTest, NetworksHaveFirstAndLastAddresses) {
  const auto v4 = IpNetwork::parse("10.1.2.130/26"), v6 = IpNetwork::parse("2001:db8::5/61");
  ASSERT_TRUE(v4 && v6);
  EXPECT_EQ(v4->first().text(), "10.1.2.128");
  EXPECT_EQ(v4->last().text(), "10.1.2.191");
  EXPECT_EQ(v4->host_bits(), 6);
  EXPECT_EQ(v6->first().text(), "2001:db8::");
  EXPECT_EQ(v6->last().text(), "2001:db8:0:7:ffff:ffff:ffff:ffff");
  EXPECT_EQ(v6->host_bits(), 67);
  EXPECT_FALSE(IpNetwork::parse("10.0.0.0/33"));
  EXPECT_FALSE(IpNetwork::parse("10.0.0.0"));
}

TEST(IpTest, NetworksContainAddressesAndNetworksOfTheirFamily) {
  const auto network = IpNetwork::parse("10.0.0.0/16");
  ASSERT_TRUE(network);
  EXPECT_TRUE(network->contains(*IpAddress::parse("10.0.255.255")));
  EXPECT_FALSE(network->contains(*IpAddress::parse("10.1.0.0")));
  EXPECT_FALSE(network->contains(*IpAddress::parse("2001:db8::1")));
  EXPECT_TRUE(network->contains(*IpNetwork::parse("10.0.3.0/24")));
  EXPECT_TRUE(network->contains(*network));
  EXPECT_FALSE(network->contains(*IpNetwork::parse("10.0.0.0/8")));
}

}  // namespace
}  // namespace holdfast
