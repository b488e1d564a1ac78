#include "request/query.h"

#include <gtest/gtest.h>

#include "base/go_numbers.h"
#include "request/info.h"

namespace holdfast::request {
namespace {

Result<WriteOptions> write_options(std::string_view query, WriteKind kind) {
  return parse_write_options(RequestInfo("POST", "/", query).query(), kind);
}

TEST(QueryTest, OnlyZeroAndFalseAreFalse) {
  EXPECT_FALSE(query_bool("0"));
  EXPECT_FALSE(query_bool("FaLsE"));
  EXPECT_TRUE(query_bool(""));
  EXPECT_TRUE(query_bool("no"));
}

TEST(QueryTest, NumberErrorsMatchGo) {
  EXPECT_EQ(go_parse_int("abc").error().message, "strconv.ParseInt: parsing \"abc\": invalid syntax");
  EXPECT_EQ(go_parse_int("9223372036854775808").error().message,
            "strconv.ParseInt: parsing \"9223372036854775808\": value out of range");
  EXPECT_EQ(*go_parse_int("+5"), 5);
  EXPECT_FALSE(go_parse_int("+-5").ok());
  EXPECT_FALSE(go_parse_uint("-1").ok());
}

TEST(QueryTest, ConflictingListOptionsNameEachField) {
  ListOptions options;
  options.resource_version_match = "NotOlderThan";
  options.send_initial_events = true;
  EXPECT_EQ(validate(options).error().message,
            "ListOptions.meta.k8s.io \"\" is invalid: [resourceVersionMatch: Forbidden: resourceVersionMatch is "
            "forbidden unless resourceVersion is provided, sendInitialEvents: Forbidden: sendInitialEvents is "
            "forbidden for list]");
}

TEST(QueryTest, ApplyRequiresAManager) {
  EXPECT_EQ(write_options("", WriteKind::Apply).error().message,
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch");
}

TEST(QueryTest, DryRunAcceptsOnlyAll) {
  EXPECT_EQ(write_options("dryRun=Some", WriteKind::Create).error().message,
            "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: "
            "\"All\"");
  EXPECT_TRUE(write_options("dryRun=All", WriteKind::Create)->dry_run);
}

// Each cause shows the whole name.
TEST(QueryTest, ManagerWithManyUnprintableCharactersHasAShortError) {
  const std::vector<Cause> causes = check_declared_manager(std::string(100'000, '\1'), "f");
  EXPECT_LT(causes.size(), 10u);
  EXPECT_EQ(causes.front().message, "Too long: may not be more than 128 characters");
  EXPECT_EQ(causes.back().type, "TooMany");
}

TEST(QueryTest, ManagersMustBePrintableAndShort) {
  EXPECT_EQ(check_declared_manager("a\nb", "fieldManager").at(0).message,
            "Invalid value: \"a\\nb\": invalid character U+000A (at position 1)");
  EXPECT_EQ(check_declared_manager(std::string(129, 'x'), "f").at(0).message,
            "Too long: may not be more than 128 characters");
  std::string umlauts;
  for (int i = 0; i < 128; ++i) umlauts += "ü";
  EXPECT_TRUE(check_declared_manager(umlauts, "f").empty());
  EXPECT_EQ(check_declared_manager(umlauts + "ü", "f").size(), 1u);
  // For its query parameter, Kubernetes counts bytes.
  Result<WriteOptions> options = write_options("fieldManager=" + umlauts, WriteKind::Update);
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error().causes.at(0).message, "Too long: may not be more than 128 bytes");
}

}  // namespace
}  // namespace holdfast::request
