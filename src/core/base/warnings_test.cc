#include "base/warnings.h"

#include <gmock/gmock.h>

namespace holdfast {
namespace {

using testing::ElementsAre;

TEST(WarningsTest, AreSentOnceEachInOrder) {
  Warnings warnings;
  for (const char* text : {"b", "a \"quoted\" \\", "b", "", "c"}) warnings.add(text);
  EXPECT_THAT(warnings.headers(), ElementsAre("299 - \"b\"", R"(299 - "a \"quoted\" \\")", "299 - \"c\""));
}

TEST(WarningsTest, ThoseThatAHeaderCannotContainAreDropped) {
  Warnings warnings;
  for (const char* text : {"a\nb", "\x7f", "\xff", "\u0085", "ä"}) warnings.add(text);
  EXPECT_THAT(warnings.headers(), ElementsAre("299 - \"ä\""));
}

TEST(WarningsTest, AreTruncatedOnceTheyExceedTheLimitTogether) {
  Warnings warnings;
  const std::string text(4000, 'x');
  warnings.add(text + "1");
  EXPECT_THAT(warnings.headers(), ElementsAre("299 - \"" + text + "1\""));
  warnings.add("a" + text);
  EXPECT_THAT(warnings.headers(),
              ElementsAre("299 - \"" + std::string(256, 'x') + "\"", "299 - \"a" + std::string(255, 'x') + "\""));
}

TEST(WarningsTest, LongOnesDifferByTheirEnds) {
  Warnings warnings;
  const std::string text(10000, 'x');
  for (const char* end : {"1", "2", "1"}) warnings.add(text + end);
  EXPECT_EQ(warnings.headers().size(), 2u);
}

TEST(WarningsTest, NoMoreAreKeptThanAreShown) {
  Warnings warnings;
  size_t added = 0;
  while (!warnings.full()) warnings.add("number " + std::to_string(added++));
  EXPECT_LT(added, 1000u);
  const size_t kept = warnings.texts().size(), shown = warnings.headers().size();
  EXPECT_LE(kept, shown + 1);
  for (size_t i = 0; i < 1000; ++i) warnings.add(std::to_string(i) + "\n" + std::string(5000, 'x'));
  EXPECT_EQ(warnings.texts().size(), kept);
  EXPECT_EQ(warnings.headers().size(), shown);
}

TEST(WarningsTest, NoneAreKeptThatCannotBeShown) {
  Warnings warnings;
  for (size_t i = 0; i < 1000; ++i) warnings.add(std::to_string(i) + "\n");
  EXPECT_TRUE(warnings.empty());
}

}  // namespace
}  // namespace holdfast
