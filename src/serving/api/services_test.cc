// Service IP and node port allocation when several servers share a store: the ledgers and their repair.

#include <gtest/gtest.h>

#include "api/testing.h"

namespace holdfast::api::testing {
namespace {

const std::string kServices = "/api/v1/namespaces/default/services";
const std::string kAddresses = "/apis/networking.k8s.io/v1/ipaddresses";
const std::string kAddressKeys = "/registry/ipaddresses/";

class ServicesTest : public ::testing::Test {
 protected:
  Answer create(const std::string& name, const std::string& spec) {
    return server.call("POST", kServices, R"({"metadata":{"name":")" + name + R"("},"spec":{)" + spec + "}}");
  }
  void repair() { ASSERT_TRUE(block_on(server.loop(), server.api().repair_services(server.loop())).ok()); }
  // Simulates what another server or a crash leaves behind.
  void remove_key(const std::string& key) {
    server.with_store([&](store::MemoryStore& store) {
      store.get(key, [&](store::StoreResult<store::Got> got) {
        store.write({store::remove(key, got->item->modified)}, [](store::StoreResult<store::WriteResult> removed) {
          ASSERT_TRUE(std::holds_alternative<store::Committed>(*removed));
        });
      });
    });
  }
  // Creates an IPAddress for this Service, as the allocator does.
  void allocate(const std::string& ip, const std::string& service) {
    const Answer made = server.call(
        "POST", kAddresses,
        R"({"metadata":{"name":")" + ip +
            R"(","labels":{"ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io","ipaddress.kubernetes.io/ip-family":"IPv4"}},)"
            R"("spec":{"parentRef":{"resource":"services","namespace":"default","name":")" +
            service + R"("}}})");
    ASSERT_EQ(made.status, 201) << made.body;
  }
  // The Service that owns an address according to its IPAddress; empty if there is none.
  std::string owner(const std::string& ip) {
    const Answer found = server.call("GET", kAddresses + "/" + ip);
    return std::string(found.json.text_at("spec", "parentRef", "name"));
  }

  InProcess server;
};

TEST_F(ServicesTest, IpIsAllocatedBeforeItsServiceIsStoredAndFreedAfterDeletion) {
  ASSERT_EQ(create("a", R"("clusterIP":"10.0.0.77","ports":[{"port":80}])").status, 201);
  EXPECT_EQ(owner("10.0.0.77"), "a");
  // Allocated by another server whose Service is not stored yet.
  allocate("10.0.0.78", "b");
  const Answer refused = create("c", R"("clusterIP":"10.0.0.78","ports":[{"port":80}])");
  EXPECT_EQ(refused.status, 422);
  EXPECT_EQ(
      refused.message(),
      "Service \"c\" is invalid: spec.clusterIPs: Invalid value: [\"10.0.0.78\"]: failed to allocate IP 10.0.0.78: "
      "provided IP is already allocated");
  // A Service rejected for another reason releases its allocations.
  EXPECT_EQ(create("a", R"("clusterIP":"10.0.0.79","ports":[{"port":80}])").status, 409);
  EXPECT_EQ(owner("10.0.0.79"), "");
  ASSERT_EQ(server.call("DELETE", kServices + "/a").status, 200);
  EXPECT_EQ(owner("10.0.0.77"), "");
}

TEST_F(ServicesTest, RepairCreatesMissingAllocations) {
  ASSERT_EQ(create("a", R"("type":"NodePort","clusterIP":"10.0.0.77","ports":[{"port":80,"nodePort":30007}])").status,
            201);
  remove_key(kAddressKeys + "10.0.0.77");
  remove_key("/registry/ranges/servicenodeports");
  repair();
  EXPECT_EQ(owner("10.0.0.77"), "a");
  EXPECT_EQ(create("b", R"("type":"NodePort","ports":[{"port":80,"nodePort":30007}])").status, 422);

  remove_key(kAddressKeys + "10.0.0.77");
  allocate("10.0.0.77", "gone");
  repair();
  EXPECT_EQ(owner("10.0.0.77"), "a");
}

TEST_F(ServicesTest, RepairFreesIpsWithoutServiceAfterOneMinute) {
  allocate("10.0.0.77", "never");
  const Answer by_hand = server.call(
      "POST", kAddresses,
      R"({"metadata":{"name":"10.0.0.78"},"spec":{"parentRef":{"resource":"services","namespace":"default","name":"x"}}})");
  ASSERT_EQ(by_hand.status, 201) << by_hand.body;
  repair();
  EXPECT_EQ(owner("10.0.0.77"), "never");
  server.clock.pass(std::chrono::seconds(61));
  repair();
  EXPECT_EQ(owner("10.0.0.77"), "");
  EXPECT_EQ(owner("10.0.0.78"), "x");
}

TEST_F(ServicesTest, RepairFreesUnusedPortsAfterSeveralRuns) {
  ASSERT_EQ(create("a", R"("type":"NodePort","ports":[{"port":80,"nodePort":30007}])").status, 201);
  // Simulates a server that stops before releasing the port.
  remove_key("/registry/services/specs/default/a");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(create("b", R"("type":"NodePort","ports":[{"port":80,"nodePort":30007}])").status, 422);
    repair();
  }
  EXPECT_EQ(create("b", R"("type":"NodePort","ports":[{"port":80,"nodePort":30007}])").status, 201);
}

TEST_F(ServicesTest, OmittedNodePortIsGivenBackOnceNoneAreAllocated) {
  const Answer made =
      create("a", R"("type":"LoadBalancer","ports":[)"
                  R"({"name":"x","port":80,"nodePort":30007},{"name":"y","port":81,"nodePort":30008}])");
  ASSERT_EQ(made.status, 201) << made.body;
  const std::string path = kServices + "/a", merge = "application/merge-patch+json";
  // While node ports are allocated, an omitted one stays.
  const std::string one = R"("ports":[{"name":"x","port":80},{"name":"y","port":81,"nodePort":30008}])";
  const Answer kept = server.call("PATCH", path, "{\"spec\":{" + one + "}}", merge);
  ASSERT_EQ(kept.status, 200) << kept.body;
  EXPECT_EQ(kept.json.items_at("spec", "ports")[0].int_at_or(0, "nodePort"), 30007);
  // Switching allocation off releases nothing by itself.
  const Answer off = server.call("PATCH", path, R"({"spec":{"allocateLoadBalancerNodePorts":false}})", merge);
  ASSERT_EQ(off.status, 200) << off.body;
  EXPECT_EQ(off.json.items_at("spec", "ports")[0].int_at_or(0, "nodePort"), 30007);
  const Answer given = server.call("PATCH", path, "{\"spec\":{" + one + "}}", merge);
  ASSERT_EQ(given.status, 200) << given.body;
  EXPECT_FALSE(given.json.items_at("spec", "ports")[0].has("nodePort"));
  EXPECT_EQ(given.json.items_at("spec", "ports")[1].int_at_or(0, "nodePort"), 30008);
  EXPECT_EQ(create("b", R"("type":"NodePort","ports":[{"port":80,"nodePort":30007}])").status, 201);
  EXPECT_EQ(create("c", R"("type":"NodePort","ports":[{"port":80,"nodePort":30008}])").status, 422);
}

TEST_F(ServicesTest, NothingIsAllocatedWhileTheStoreIsDown) {
  ASSERT_EQ(create("a", R"("type":"NodePort","ports":[{"port":80}])").status, 201);
  server.with_store([](store::MemoryStore& store) {
    store.set_failure(store::StoreError{store::ErrorKind::Unavailable, "no connection"});
  });
  const Answer refused =
      create("b", R"("type":"NodePort","clusterIP":"10.0.0.77","ports":[{"port":80,"nodePort":30007}])");
  EXPECT_GE(refused.status, 500);
  EXPECT_EQ(refused.message(), "the IPAddress 10.0.0.77 cannot be written: no connection");
  server.with_store([](store::MemoryStore& store) { store.set_failure(std::nullopt); });
  EXPECT_EQ(create("b", R"("type":"NodePort","clusterIP":"10.0.0.77","ports":[{"port":80,"nodePort":30007}])").status,
            201);
}

Options with_ranges(std::vector<std::string> ranges) {
  Options options;
  options.settings.service_ip_families.clear();
  for (const std::string& range : ranges) {
    options.settings.service_ip_families.push_back(range.find(':') == std::string::npos ? "IPv4" : "IPv6");
  }
  options.service_cluster_ip_ranges = std::move(ranges);
  return options;
}

// Each runs on one server with a ledger and on one without.
class FamiliesTest : public ::testing::TestWithParam<bool> {
 protected:
  Options options(std::vector<std::string> ranges) const {
    Options chosen = with_ranges(std::move(ranges));
    chosen.settings.embedded_store = GetParam();
    return chosen;
  }
  static Answer create(InProcess& server, const std::string& name, const std::string& spec) {
    return server.call("POST", kServices,
                       R"({"metadata":{"name":")" + name + R"("},"spec":{"ports":[{"port":80}])" + spec + "}}");
  }
  static std::string text(const Answer& answer, std::string_view key) {
    const Value* found = answer.json.get("spec", key);
    return found == nullptr ? "" : codec::encode_json(*found);
  }
  static size_t addresses(InProcess& server) { return server.call("GET", kAddresses).json.items_at("items").size(); }
  // Until the allocator has seen the changed ServiceCIDRs.
  static void settle(InProcess& server) {
    cache::Cache& ranges = *server.api().cache_of("networking.k8s.io", "servicecidrs");
    ASSERT_TRUE(block_on(server.loop(), ranges.consistent(server.loop())).ok());
  }
};
INSTANTIATE_TEST_SUITE_P(Stores, FamiliesTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Embedded" : "Shared"; });

TEST_P(FamiliesTest, Ipv6IsTheDefaultFamilyOfAnIpv6Range) {
  InProcess server(options({"2001:db8:1::/64"}));
  const Answer made = create(server, "a", "");
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(text(made, "ipFamilies"), R"(["IPv6"])");
  EXPECT_EQ(made.json.text_at("spec", "clusterIP").substr(0, 11), "2001:db8:1:");
}

TEST_P(FamiliesTest, SecondFamilyIsAddedAndReleased) {
  InProcess server(options({"10.0.0.0/24", "2001:db8:1::/112"}));
  const Answer made = create(server, "a", R"(,"clusterIP":"10.0.0.9")");
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(text(made, "clusterIPs"), R"(["10.0.0.9"])");
  const std::string path = kServices + "/a";
  const Answer both =
      server.call("PATCH", path, R"({"spec":{"ipFamilyPolicy":"RequireDualStack"}})", "application/merge-patch+json");
  ASSERT_EQ(both.status, 200) << both.body;
  EXPECT_EQ(text(both, "ipFamilies"), R"(["IPv4","IPv6"])");
  EXPECT_EQ(text(both, "clusterIPs").substr(0, 25), R"(["10.0.0.9","2001:db8:1::)");
  EXPECT_EQ(addresses(server), 2u);
  const Answer one =
      server.call("PATCH", path, R"({"spec":{"ipFamilyPolicy":"SingleStack"}})", "application/merge-patch+json");
  ASSERT_EQ(one.status, 200) << one.body;
  EXPECT_EQ(text(one, "clusterIPs"), R"(["10.0.0.9"])");
  EXPECT_EQ(addresses(server), 1u);
  ASSERT_EQ(server.call("DELETE", path).status, 200);
  EXPECT_EQ(addresses(server), 0u);
}

TEST_P(FamiliesTest, AddressesAreCanonicalWhereTheyAreCompared) {
  InProcess server(options({"2001:db8:1::/112"}));
  const Answer made = create(server, "a", R"(,"clusterIP":"2001:DB8:1::0:8")");
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(text(made, "clusterIP"), R"("2001:DB8:1::0:8")");
  EXPECT_EQ(server.call("GET", kAddresses + "/2001:db8:1::8").status, 200);
  const Answer taken = create(server, "b", R"(,"clusterIP":"2001:db8:1::8")");
  EXPECT_EQ(taken.status, 422) << taken.body;
  ASSERT_EQ(server.call("DELETE", kServices + "/a").status, 200);
  EXPECT_EQ(addresses(server), 0u);
  EXPECT_EQ(create(server, "b", R"(,"clusterIP":"2001:db8:1::8")").status, 201);
}

TEST_P(FamiliesTest, AddressesOutsideOfTheRangesAreRefused) {
  InProcess server(options({"10.0.0.0/24", "2001:db8:1::/112"}));
  for (const std::string ip : {"10.0.1.1", "10.0.0.0", "10.0.0.255", "2001:db8:1::", "2001:db8:2::1"}) {
    const Answer refused = create(server, "a", R"(,"clusterIP":")" + ip + "\"");
    EXPECT_EQ(refused.status, 422) << refused.body;
    EXPECT_EQ(refused.message(), "Service \"a\" is invalid: spec.clusterIPs: Invalid value: [\"" + ip +
                                     "\"]: failed to allocate IP " + ip +
                                     ": the provided network does not match the current range");
  }
  EXPECT_EQ(addresses(server), 0u);
  // Neither address is kept if one of them cannot be allocated.
  const Answer second = create(
      server, "a", R"(,"clusterIP":"10.0.0.9","clusterIPs":["10.0.0.9","fd00::1"],"ipFamilyPolicy":"PreferDualStack")");
  EXPECT_EQ(second.status, 422) << second.body;
  EXPECT_EQ(addresses(server), 0u);
  EXPECT_EQ(create(server, "a", R"(,"clusterIP":"10.0.0.9")").status, 201);
}

TEST_P(FamiliesTest, DryRunShowsTheNetworkAddress) {
  InProcess server(options({"10.0.0.0/24", "2001:db8:1::/112"}));
  const std::string body =
      R"({"metadata":{"name":"a"},"spec":{"ports":[{"port":80}],"ipFamilyPolicy":"PreferDualStack"}})";
  const Answer made = server.call("POST", kServices + "?dryRun=All", body);
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(text(made, "clusterIPs"), R"(["10.0.0.0","2001:db8:1::"])");
  EXPECT_EQ(addresses(server), 0u);
}

TEST_P(FamiliesTest, FurtherServiceCidrsAreUsedWhenTheFirstIsFull) {
  InProcess server(options({"10.0.0.0/29"}));
  for (int i = 0; i < 6; ++i) ASSERT_EQ(create(server, "s" + std::to_string(i), "").status, 201);
  const Answer full = create(server, "full", "");
  EXPECT_EQ(full.status, 500);
  EXPECT_EQ(full.message(),
            "Internal error occurred: failed to allocate a serviceIP for Service \"full\": range is full");
  const std::string cidrs = "/apis/networking.k8s.io/v1/servicecidrs";
  const auto add = [&](const std::string& name, const std::string& range) {
    EXPECT_EQ(
        server.call("POST", cidrs, R"({"metadata":{"name":")" + name + R"("},"spec":{"cidrs":[")" + range + "\"]}}")
            .status,
        201);
  };
  add("more", "10.9.0.0/24");
  settle(server);
  const Answer made = create(server, "more", "");
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.json.text_at("spec", "clusterIP").substr(0, 7), "10.9.0.");
  // One that is not ready is not used.
  const Answer held = server.call(
      "PATCH", cidrs + "/more/status",
      R"({"status":{"conditions":[{"type":"Ready","status":"False","reason":"Terminating","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}})",
      "application/merge-patch+json");
  ASSERT_EQ(held.status, 200) << held.body;
  settle(server);
  EXPECT_EQ(create(server, "none", "").status, 500);
  EXPECT_EQ(create(server, "none", R"(,"clusterIP":"10.9.0.200")").status, 422);
}

}  // namespace
}  // namespace holdfast::api::testing
