// The discovery documents: the groups, versions and resources that the server has, in unaggregated and aggregated form.
//
// Each function builds the document as a tree in the order in which Go prints it; encoding and content negotiation are
// up to the caller. `resources` lists every served resource: the built-in ones in the catalog's order, then custom ones
// in any order. A resource is custom if its group is not built in; its group and versions come after the built-in
// groups, sorted.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "base/gates.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::discovery {

using Resources = std::span<const types::Resource* const>;

// /api: APIVersions. `server_address` is the "host:port" that clients use.
Value core_versions(Arena& arena, std::string_view server_address);
// /apis: APIGroupList.
Value group_list(Arena& arena, Resources resources);
// /apis/GROUP: APIGroup; null if nothing is served there.
Value group(Arena& arena, Resources resources, std::string_view name);
// /api/v1, /apis/GROUP/VERSION: APIResourceList; null if nothing is served there.
Value resource_list(Arena& arena, Resources resources, std::string_view group, std::string_view version);

// APIGroupDiscoveryList of apidiscovery.k8s.io/v2, for the core group (/api) or for all others (/apis).
enum class Part : uint8_t { Core, Groups };
Value aggregated(Arena& arena, Resources resources, Part part);
// The ETag of an aggregated document, with quotes: a hash of its compact JSON without kind and apiVersion.
std::string aggregated_etag(const Value& document);

// base64 of the first 8 bytes of SHA-256("group/version/kind") of the stored kind; empty if nothing is stored.
std::string storage_version_hash(const types::Resource& resource);

// Whether version `a` comes before `b`: v2 > v1 > v2beta1 > v1beta2 > v1alpha1, then others by name.
bool version_precedes(std::string_view a, std::string_view b);

// False for a resource of Holdfast that Kubernetes does not have, while its gate is off.
bool exists(const types::Resource& resource, const Gates& gates);

// Whether the version has the form v1: neither alpha nor beta.
bool is_stable(std::string_view version);

// The built-in resources served according to --runtime-config: those of stable versions unless an entry disables them,
// those of other versions if an entry enables them.
class RuntimeConfig {
 public:
  // Entries are KEY=true|false. In increasing order of precedence, KEY is api/all, api/ga, api/beta, api/alpha,
  // GROUP/VERSION or GROUP/VERSION/RESOURCE; the last entry for a key wins. It is an error to enable a version that
  // does not exist, or to disable a resource that the server itself calls.
  static Result<RuntimeConfig> parse(std::span<const std::string> entries);

  bool serves(const types::Resource& resource) const;
  bool serves(std::string_view group, std::string_view version) const;  // At least one of its resources.

 private:
  std::vector<const types::Resource*> changed_;  // Stable and disabled, or not stable and enabled.
};

}  // namespace holdfast::discovery
