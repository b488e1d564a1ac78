#include "server/service_stack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace holdfast::server {
namespace {

using ::testing::ElementsAre;

TEST(ServiceStack, StopsInReverse) {
  ServiceStack services;
  std::vector<std::string> stopped;
  for (const char* name : {"store", "api", "controllers"}) {
    services.push(name, [&] { stopped.emplace_back(services.current()); });
  }
  EXPECT_EQ(services.current(), "");
  services.stop();
  EXPECT_THAT(stopped, ElementsAre("controllers", "api", "store"));
  EXPECT_EQ(services.current(), "");
  services.stop();
  EXPECT_EQ(stopped.size(), 3u);
}

TEST(ServiceStack, AnExceptionDoesNotKeepTheOthersRunning) {
  ServiceStack services;
  const uint64_t failures = failed_tasks();
  bool stopped = false;
  services.push("store", [&] { stopped = true; });
  services.push("api", [] { throw std::runtime_error("on purpose"); });
  services.stop();
  EXPECT_TRUE(stopped);
  EXPECT_EQ(failed_tasks(), failures + 1);
}

}  // namespace
}  // namespace holdfast::server
