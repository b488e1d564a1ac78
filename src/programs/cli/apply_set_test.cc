#include "cli/apply_set.h"

#include <gtest/gtest.h>

namespace holdfast::cli {
namespace {

// The hash of "name.namespace.kind.group", so that every tool computes the same id for a parent.
TEST(ApplySetId, IsDerivedFromTheParent) {
  EXPECT_EQ(apply_set_id("shop", "default", "Secret", ""), "applyset-deGdy9cO9XA_cS6jkZBQNNHCB9v4eVtcTMJd6JKtoOg-v1");
  EXPECT_EQ(apply_set_id("a", "b", "Widget", "example.com"), "applyset-Z4MwJsBLr7syAsVsClswlZZSt9m0OBe89dgoI47XcLc-v1");
}

}  // namespace
}  // namespace holdfast::cli
