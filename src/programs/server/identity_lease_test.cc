#include "server/identity_lease.h"

#include <gtest/gtest.h>

namespace holdfast::server {
namespace {

TEST(IdentityLeaseTest, NameMatchesKubernetes) { EXPECT_EQ(identity_of("vm"), "apiserver-wlv32tlttr4jl3gtroqexyxapa"); }

}  // namespace
}  // namespace holdfast::server
