#include "server/own_endpoints.h"

#include <gtest/gtest.h>

#include "codec/codec.h"

namespace holdfast::server {
namespace {

class OwnEndpointsTest : public testing::Test {
 protected:
  Value json(const std::string& text) {
    Result<Value> value = codec::decode_json(arena, arena.copy(text));
    EXPECT_TRUE(value.ok());
    return value ? *value : Value();
  }
  // An Endpoints object as written by a server.
  Value live(const std::string& addresses, const std::string& port = "6443") {
    return json(R"({"kind":"Endpoints","apiVersion":"v1","metadata":{"name":"kubernetes","namespace":"default",)"
                R"("resourceVersion":"7","labels":{"endpointslice.kubernetes.io/skip-mirror":"true"}},)"
                R"("subsets":[{"addresses":[)" +
                addresses + R"(],"ports":[{"name":"https","port":)" + port + R"(,"protocol":"TCP"}]}]})");
  }
  // "10.0.0.1 10.0.0.2 :6443"; "stays".
  static std::string shown(const std::optional<Value>& next) {
    if (!next) return "stays";
    std::string text;
    for (const Value& subset : next->items_at("subsets")) {
      for (const Value& address : subset.items_at("addresses")) text += std::string(address.text_at("ip")) + " ";
      for (const Value& port : subset.items_at("ports")) text += ":" + std::to_string(port.int_at_or(0, "port"));
    }
    return text.empty() ? "none" : text;
  }

  Arena arena;
};

TEST_F(OwnEndpointsTest, AddressesComeFromTheLeases) {
  EXPECT_EQ(shown(endpoints_with(arena, Value(), {"10.0.0.2", "10.0.0.1"}, 6443, true)), "10.0.0.1 10.0.0.2 :6443");
  const Value two = live(R"({"ip":"10.0.0.1"},{"ip":"10.0.0.2"})");
  EXPECT_EQ(shown(endpoints_with(arena, two, {"10.0.0.2", "10.0.0.1"}, 6443, true)), "stays");
  EXPECT_EQ(shown(endpoints_with(arena, two, {"10.0.0.2"}, 6443, false)), "10.0.0.2 :6443");
  EXPECT_EQ(shown(endpoints_with(arena, two, {}, 6443, true)), "none");
  EXPECT_EQ(endpoints_with(arena, two, {"10.0.0.3"}, 6443, false)->text_at("metadata", "resourceVersion"), "7");
}

TEST_F(OwnEndpointsTest, PortsChangeWhenAServerStartsOrStops) {
  const Value one = live(R"({"ip":"10.0.0.1"})", "443");
  EXPECT_EQ(shown(endpoints_with(arena, one, {"10.0.0.1"}, 6443, false)), "stays");
  EXPECT_EQ(shown(endpoints_with(arena, one, {"10.0.0.1", "10.0.0.2"}, 6443, false)), "10.0.0.1 10.0.0.2 :443");
  EXPECT_EQ(shown(endpoints_with(arena, one, {"10.0.0.1"}, 6443, true)), "10.0.0.1 :6443");
}

TEST_F(OwnEndpointsTest, UnexpectedSubsetsAreReplaced) {
  const Value none = json(R"({"metadata":{"name":"kubernetes","labels":{"a":"b"}},"subsets":[]})");
  const std::optional<Value> next = endpoints_with(arena, none, {"10.0.0.1"}, 6443, false);
  EXPECT_EQ(shown(next), "10.0.0.1 :6443");
  EXPECT_EQ(next->text_at("metadata", "labels", "a"), "b");
  EXPECT_EQ(next->text_at("metadata", "labels", "endpointslice.kubernetes.io/skip-mirror"), "true");
}

TEST_F(OwnEndpointsTest, MasterCountAddsOwnAddressAndRemovesExcess) {
  const OwnAddress own{"10.0.0.2", 6443};
  EXPECT_EQ(shown(endpoints_adding(arena, Value(), own, 2, true)), "10.0.0.2 :6443");
  EXPECT_EQ(shown(endpoints_adding(arena, live(R"({"ip":"10.0.0.1"})"), own, 2, false)), "10.0.0.1 10.0.0.2 :6443");
  EXPECT_EQ(shown(endpoints_adding(arena, live(R"({"ip":"10.0.0.1"},{"ip":"10.0.0.2"})"), own, 2, false)), "stays");
  EXPECT_EQ(shown(endpoints_adding(arena, live(R"({"ip":"10.0.0.1"},{"ip":"10.0.0.3"})"), own, 2, false)),
            "10.0.0.1 10.0.0.2 :6443");
  EXPECT_EQ(shown(endpoints_adding(arena, live(R"({"ip":"10.0.0.0"},{"ip":"10.0.0.1"})"), own, 2, false)),
            "10.0.0.1 10.0.0.2 :6443");
  EXPECT_EQ(shown(endpoints_adding(arena, live(R"({"ip":"10.0.0.1"})"), own, 1, false)), "10.0.0.2 :6443");
}

TEST_F(OwnEndpointsTest, MasterCountRemovesOwnAddressOnStop) {
  EXPECT_EQ(shown(endpoints_removing(arena, live(R"({"ip":"10.0.0.1"},{"ip":"10.0.0.2"})"), "10.0.0.1")),
            "10.0.0.2 :6443");
  EXPECT_EQ(shown(endpoints_removing(arena, live(R"({"ip":"10.0.0.1"})"), "10.0.0.1")), "none");
  EXPECT_EQ(shown(endpoints_removing(arena, live(R"({"ip":"10.0.0.1"})"), "10.0.0.9")), "stays");
}

TEST_F(OwnEndpointsTest, SliceMatchesEndpoints) {
  EXPECT_EQ(codec::encode_json(slice_of(arena, live(R"({"ip":"10.0.0.1"},{"ip":"fd00::1"})"))),
            R"({"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"name":"kubernetes",)"
            R"("namespace":"default","labels":{"kubernetes.io/service-name":"kubernetes"}},"addressType":"IPv4",)"
            R"("endpoints":[{"addresses":["10.0.0.1"],"conditions":{"ready":true}}],)"
            R"("ports":[{"name":"https","port":6443,"protocol":"TCP"}]})");
  EXPECT_EQ(slice_of(arena, live(R"({"ip":"fd00::1"})")).text_at("addressType"), "IPv6");
  EXPECT_TRUE(slice_of(arena, json(R"({"metadata":{}})")).items_at("endpoints").empty());
}

}  // namespace
}  // namespace holdfast::server
