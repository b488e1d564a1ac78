#include "request/info.h"

#include <gtest/gtest.h>

#include <string>

namespace holdfast::request {
namespace {

struct Case {
  const char* name;
  const char* method;
  const char* path;
  const char* want;  // verb group version namespace resource name subresource, '-' if empty; "" if not a resource.
  const char* query = "";
};

constexpr Case kCases[] = {
    {"a collection of the core group", "GET", "/api/v1/pods", "list - v1 - pods - -"},
    {"one object in a namespace", "GET", "/api/v1/namespaces/ns/pods/p", "get - v1 ns pods p -"},
    {"a namespace is in its own namespace", "GET", "/api/v1/namespaces/ns", "get - v1 ns namespaces ns -"},
    {"namespaces in a namespace", "GET", "/api/v1/namespaces/ns/namespaces/other", "get - v1 ns namespaces other -"},
    {"status of a namespace", "PUT", "/api/v1/namespaces/ns/status", "update - v1 ns namespaces ns status"},
    {"finalize of a namespace", "PUT", "/api/v1/namespaces/ns/finalize", "update - v1 ns namespaces ns finalize"},
    {"any other path segment is a resource in the namespace", "GET", "/api/v1/namespaces/ns/statuses",
     "list - v1 ns statuses - -"},
    {"a named group", "POST", "/apis/apps/v1/namespaces/ns/deployments", "create apps v1 ns deployments - -"},
    {"a subresource", "PATCH", "/apis/apps/v1/namespaces/ns/deployments/d/scale",
     "patch apps v1 ns deployments d scale"},
    {"a delete without a name is a deletecollection", "DELETE", "/api/v1/namespaces/ns/pods",
     "deletecollection - v1 ns pods - -"},
    {"watch=true", "GET", "/api/v1/pods", "watch - v1 - pods - -", "watch=true"},
    {"watch=true on one object is a get", "GET", "/api/v1/nodes/n", "get - v1 - nodes n -", "watch=true"},
    {"the legacy watch path", "GET", "/api/v1/watch/namespaces/ns/pods/p", "watch - v1 ns pods p -"},
    {"the legacy watch path ignores the query", "GET", "/api/v1/watch/pods", "watch - v1 - pods - -", "watch=0"},
    {"the legacy proxy path has no subresources", "GET", "/api/v1/proxy/namespaces/ns/pods/p/log",
     "proxy - v1 ns pods p -"},
    {"the first watch parameter wins", "GET", "/api/v1/pods", "watch - v1 - pods - -", "watch=1&watch=0"},
    {"the first watch parameter wins even if it is false", "GET", "/api/v1/pods", "list - v1 - pods - -",
     "watch=0&watch=1"},
    {"an empty watch is true", "GET", "/api/v1/pods", "watch - v1 - pods - -", "watch=&watch=0"},
    {"a watch without a value is true", "GET", "/api/v1/pods", "watch - v1 - pods - -", "watch"},
    {"false in any case", "GET", "/api/v1/pods", "list - v1 - pods - -", "watch=FaLsE"},
    {"names of parameters are case-sensitive", "GET", "/api/v1/pods", "list - v1 - pods - -", "Watch=1&WATCH=1"},
    {"names of parameters may be encoded", "GET", "/api/v1/pods", "watch - v1 - pods - -", "w%61tch=1&watch=0"},
    {"a pair with a semicolon is dropped", "GET", "/api/v1/pods", "list - v1 - pods - -", "watch=1;&watch=0"},
    {"a pair that cannot be decoded is dropped", "GET", "/api/v1/pods", "list - v1 - pods - -", "watch=%zz"},
    {"watch is honored even if other options cannot be decoded", "GET", "/api/v1/pods", "watch - v1 - pods - -",
     "watch=1&limit=x&fieldSelector=metadata.name=a"},
    {"group discovery is not a resource", "GET", "/apis/apps/v1", ""},
    {"core group discovery is not a resource", "GET", "/api/v1", ""},
    {"other paths are not resources", "GET", "/healthz/etcd/x", ""},
};

std::string or_dash(std::string_view text) { return text.empty() ? "-" : std::string(text); }

TEST(RequestInfoTest, PathsAreParsedAsInKubernetes) {
  for (const Case& c : kCases) {
    const RequestInfo request(c.method, c.path, c.query);
    const Target& info = request.target();
    std::string got;
    if (info.is_resource) {
      got = std::string(to_string(info.verb)) + " " + or_dash(info.group) + " " + or_dash(info.version) + " " +
            or_dash(info.ns) + " " + or_dash(info.resource) + " " + or_dash(info.name) + " " +
            or_dash(info.subresource);
    }
    EXPECT_EQ(got, c.want) << c.name;
  }
}

struct NameCase {
  const char* name;
  const char* method;
  const char* path;
  const char* query;
  const char* want;
};

constexpr NameCase kNames[] = {
    {"a list by name", "GET", "/api/v1/pods", "fieldSelector=metadata.name%3Da", "a"},
    {"a watch by name", "GET", "/api/v1/pods", "watch=1&fieldSelector=metadata.name=a", "a"},
    {"two equal signs", "GET", "/api/v1/pods", "fieldSelector=metadata.name==a", "a"},
    {"among other terms", "GET", "/api/v1/pods", "fieldSelector=spec.nodeName=n,metadata.name=a", "a"},
    {"the first selector counts", "GET", "/api/v1/pods", "fieldSelector=metadata.name=a&fieldSelector=metadata.name=b",
     "a"},
    {"the first selector counts, also when it is empty", "GET", "/api/v1/pods",
     "fieldSelector=&fieldSelector=metadata.name=a", ""},
    {"an encoded parameter", "GET", "/api/v1/pods", "field%53elector=metadata.name=a&fieldSelector=", "a"},
    {"another case is another parameter", "GET", "/api/v1/pods", "FieldSelector=metadata.name=a", ""},
    {"a semicolon", "GET", "/api/v1/pods", "fieldSelector=metadata.name=a;&fieldSelector=", ""},
    {"the first of two names in order", "GET", "/api/v1/pods", "fieldSelector=metadata.name=b,metadata.name=a", "a"},
    {"any other name", "GET", "/api/v1/pods", "fieldSelector=metadata.name!=a", ""},
    {"an escaped value", "GET", "/api/v1/pods", "fieldSelector=metadata.name=a%5C,b", "a,b"},
    {"what cannot be a name", "GET", "/api/v1/pods", "fieldSelector=metadata.name=a/b", ""},
    {"a selector that cannot be read", "GET", "/api/v1/pods", "fieldSelector=metadata.name=a,b", ""},
    {"options that cannot be read", "GET", "/api/v1/pods", "fieldSelector=metadata.name=a&limit=x", ""},
    {"labels that cannot be read", "GET", "/api/v1/pods", "fieldSelector=metadata.name=a&labelSelector=(", ""},
    {"deletecollection has no name", "DELETE", "/api/v1/namespaces/ns/pods", "fieldSelector=metadata.name=a", ""},
    {"nor has a create", "POST", "/api/v1/namespaces/ns/pods", "fieldSelector=metadata.name=a", ""},
    {"nor has the old watch path", "GET", "/api/v1/watch/pods", "fieldSelector=metadata.name=a", ""},
    {"the path goes before", "GET", "/api/v1/nodes/n", "fieldSelector=metadata.name=a", "n"},
};

TEST(RequestInfoTest, NamesComeFromPathOrSelector) {
  for (const NameCase& c : kNames) EXPECT_EQ(RequestInfo(c.method, c.path, c.query).name(), c.want) << c.name;
}

TEST(RequestInfoTest, QueriesAreDecodedAsInGo) {
  const RequestInfo request("GET", "/", "a=1&b=x%20y+z&c&d=%zz&e=1;2&=v&a=2");
  const Query& query = request.query();
  EXPECT_EQ(query.get("a"), "1");
  EXPECT_EQ(query.all("a"), (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(query.get("b"), "x y z");
  EXPECT_TRUE(query.has("c"));
  EXPECT_FALSE(query.has("d"));
  EXPECT_FALSE(query.has("e"));
  EXPECT_EQ(query.get(""), "v");
}

}  // namespace
}  // namespace holdfast::request
