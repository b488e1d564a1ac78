#include "render/json_indent.h"

#include <gtest/gtest.h>

namespace holdfast::render {
namespace {

TEST(JsonIndenterTest, MatchesGoForAnyChunking) {
  const std::string json = R"({"a":{},"b":[],"c":[1,-2.5e+3,true,null],"d":"{\"x\":[1,2]}\\","e":[{"f":{}},[]]})";
  const std::string want = R"({
  "a": {},
  "b": [],
  "c": [
    1,
    -2.5e+3,
    true,
    null
  ],
  "d": "{\"x\":[1,2]}\\",
  "e": [
    {
      "f": {}
    },
    []
  ]
})";
  std::string whole;
  JsonIndenter().add(json + "\n", whole);
  EXPECT_EQ(whole, want);

  std::string pieces;
  JsonIndenter indenter;
  for (const std::string_view piece : {R"({"a":{},"b":[)", R"(],"c":[1,)", R"(-2.5e+3,true,null],)",
                                       R"("d":"{\"x\":[1,2]}\\","e":[{"f":{)", "}},[]]}\n"}) {
    indenter.add(piece, pieces);
  }
  EXPECT_EQ(pieces, want);
}

}  // namespace
}  // namespace holdfast::render
