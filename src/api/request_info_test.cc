#include "api/request_info.h"

#include <gtest/gtest.h>

#include <string>

namespace holdfast::api {
namespace {

struct Case {
  const char* name;
  const char* method;
  const char* path;
  const char* want;  // verb group version namespace resource name subresource, '-' when empty; "" for no resource.
  bool watch = false;
};

constexpr Case kCases[] = {
    {"a collection of the core group", "GET", "/api/v1/pods", "list - v1 - pods - -"},
    {"one object in a namespace", "GET", "/api/v1/namespaces/ns/pods/p", "get - v1 ns pods p -"},
    {"a namespace itself has itself as namespace", "GET", "/api/v1/namespaces/ns", "get - v1 ns namespaces ns -"},
    {"status of a namespace", "PUT", "/api/v1/namespaces/ns/status", "update - v1 ns namespaces ns status"},
    {"finalize of a namespace", "PUT", "/api/v1/namespaces/ns/finalize", "update - v1 ns namespaces ns finalize"},
    {"another word is a resource in it", "GET", "/api/v1/namespaces/ns/statuses", "list - v1 ns statuses - -"},
    {"a named group", "POST", "/apis/apps/v1/namespaces/ns/deployments", "create apps v1 ns deployments - -"},
    {"a subresource", "PATCH", "/apis/apps/v1/namespaces/ns/deployments/d/scale",
     "patch apps v1 ns deployments d scale"},
    {"deleting without a name is deleting the collection", "DELETE", "/api/v1/namespaces/ns/pods",
     "deletecollection - v1 ns pods - -"},
    {"watch=true", "GET", "/api/v1/pods", "watch - v1 - pods - -", true},
    {"watch=true on one object is a get", "GET", "/api/v1/nodes/n", "get - v1 - nodes n -", true},
    {"the old watch path", "GET", "/api/v1/watch/namespaces/ns/pods/p", "watch - v1 ns pods p -"},
    {"a group's discovery is no resource", "GET", "/apis/apps/v1", ""},
    {"neither is the core's", "GET", "/api/v1", ""},
    {"nor anything else", "GET", "/healthz/etcd/x", ""},
};

std::string or_dash(std::string_view text) { return text.empty() ? "-" : std::string(text); }

TEST(RequestInfoTest, PathsAreReadAsKubernetesReadsThem) {
  for (const Case& c : kCases) {
    const RequestInfo info = parse_request_info(c.method, c.path, c.watch);
    std::string got;
    if (info.is_resource) {
      got = std::string(to_string(info.verb)) + " " + or_dash(info.group) + " " + or_dash(info.version) + " " +
            or_dash(info.ns) + " " + or_dash(info.resource) + " " + or_dash(info.name) + " " +
            or_dash(info.subresource);
    }
    EXPECT_EQ(got, c.want) << c.name;
  }
}

}  // namespace
}  // namespace holdfast::api
