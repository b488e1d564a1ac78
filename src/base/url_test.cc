#include "base/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast {
namespace {

std::string problems_of(std::string_view url) {
  std::string all;
  for (const UrlProblem& problem : webhook_url_problems(url)) {
    all += (all.empty() ? "" : " | ") + (problem.unparsable ? "unparsable" : problem.part + ": " + problem.why);
  }
  return all;
}

TEST(WebhookUrl, PlainOnesAreTaken) {
  for (const char* url : {"https://host", "https://host:443/path", "https://[::1]:9443/a/b", "https://10.0.0.1/"}) {
    EXPECT_EQ(problems_of(url), "") << url;
  }
}

TEST(WebhookUrl, WhatCouldSplitARequestOrNameAnotherHostIsRefused) {
  EXPECT_EQ(problems_of("https://host/\r\nX-Remote-User: admin"), "unparsable");
  EXPECT_EQ(problems_of("https://host:port/"), "unparsable");
  EXPECT_EQ(problems_of("https://good@evil/"), "good: user information is not permitted in the URL");
  EXPECT_EQ(problems_of("https://host/?a=b"), "a=b: query parameters are not permitted in the URL");
  EXPECT_EQ(problems_of("https://host/#f"), "f: fragments are not permitted in the URL");
  EXPECT_THAT(problems_of("http://host/"), testing::StartsWith("http: 'https' is the only allowed URL scheme"));
  EXPECT_THAT(problems_of("https:///path"), testing::StartsWith(": host must be specified"));
  EXPECT_THAT(problems_of("host/path"), testing::HasSubstr("only allowed URL scheme"));
}

}  // namespace
}  // namespace holdfast
