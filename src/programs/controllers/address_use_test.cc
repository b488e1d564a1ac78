#include "controllers/address_use.h"

#include <gtest/gtest.h>

namespace holdfast::controllers {
namespace {

Networks networks(std::initializer_list<const char*> texts) {
  Networks all;
  for (const char* text : texts) all.push_back(*IpNetwork::parse(text));
  return all;
}

TEST(AddressUseTest, RangesWithinOthersAreCovered) {
  EXPECT_TRUE(covered(networks({"10.0.0.0/24"}), networks({"10.0.0.0/16"})));
  EXPECT_TRUE(covered(networks({"10.0.0.0/24", "fd00::/112"}), networks({"fd00::/64", "10.0.0.0/24"})));
  EXPECT_FALSE(covered(networks({"10.0.0.0/24", "fd00::/112"}), networks({"10.0.0.0/16"})));
  EXPECT_FALSE(covered(networks({"10.0.0.0/16"}), networks({"10.0.0.0/24"})));
  EXPECT_FALSE(covered(networks({"10.0.0.0/24"}), {}));
}

TEST(AddressUseTest, AddressesInNoRemainingRangeAreOrphaned) {
  const auto is_orphaned = [](std::initializer_list<const char*> leaving, std::initializer_list<const char*> remaining,
                              const char* address) {
    return orphaned(networks(leaving), networks(remaining), *IpAddress::parse(address));
  };
  EXPECT_TRUE(is_orphaned({"10.0.0.0/16"}, {"10.0.0.0/24"}, "10.0.1.1"));
  EXPECT_FALSE(is_orphaned({"10.0.0.0/16"}, {"10.0.0.0/24"}, "10.0.0.1"));
  // The smaller range does not give out its broadcast address, the larger one does.
  EXPECT_TRUE(is_orphaned({"10.0.0.0/16"}, {"10.0.0.0/24"}, "10.0.0.255"));
  EXPECT_FALSE(is_orphaned({"10.0.0.0/24"}, {}, "10.0.0.255"));
  EXPECT_TRUE(is_orphaned({"fd00::/112"}, {"10.0.0.0/24"}, "fd00::ffff"));
  EXPECT_FALSE(is_orphaned({"fd00::/112"}, {}, "fd00::"));
  EXPECT_FALSE(is_orphaned({"fd00::/112"}, {}, "10.0.0.1"));
}

}  // namespace
}  // namespace holdfast::controllers
