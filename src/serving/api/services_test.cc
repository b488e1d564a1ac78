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

}  // namespace
}  // namespace holdfast::api::testing
