// The discovery documents: which groups, versions and resources the server has, in the plain and the aggregated form.
//
// Each function builds the document as a tree in the order Go prints it; encoding and negotiation are the caller's.
// `resources` lists every served resource: the built-in ones in the catalog's order, then custom ones in any order.
// A custom resource is one whose group is not built in; its group and versions come after the built-in groups, sorted.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::discovery {

using Resources = std::span<const types::Resource* const>;

// /api: APIVersions. `server_address` is "host:port" as clients reach it.
Value core_versions(Arena& arena, std::string_view server_address);
// /apis: APIGroupList.
Value group_list(Arena& arena, Resources resources);
// /apis/GROUP: APIGroup; null when nothing is served there.
Value group(Arena& arena, Resources resources, std::string_view name);
// /api/v1, /apis/GROUP/VERSION: APIResourceList; null when nothing is served there.
Value resource_list(Arena& arena, Resources resources, std::string_view group, std::string_view version);

// APIGroupDiscoveryList of apidiscovery.k8s.io/v2: of the core group (/api) or of all others (/apis).
enum class Part : uint8_t { Core, Groups };
Value aggregated(Arena& arena, Resources resources, Part part);
// The ETag of an aggregated document, with quotes: over its compact JSON without kind and apiVersion.
std::string aggregated_etag(const Value& document);

// base64 of the first 8 bytes of SHA-256("group/version/kind") of what is stored; empty when nothing is.
std::string storage_version_hash(const types::Resource& resource);

// Whether version `a` comes before `b`: v2 > v1 > v2beta1 > v1beta2 > v1alpha1, others after these by name.
bool version_precedes(std::string_view a, std::string_view b);

// Whether the version is of the form v1: neither alpha nor beta.
bool is_stable(std::string_view version);

// Which of the built-in resources are served, as --runtime-config chooses: those of stable versions always, those of
// other versions where an entry enables them.
class RuntimeConfig {
 public:
  // Entries are KEY=true|false. From the weakest to the strongest, KEY is api/all, api/beta, api/alpha, GROUP/VERSION
  // or GROUP/VERSION/RESOURCE; of entries with the same key the last one counts. An entry that disables a stable
  // version, or enables one that there is not, is an error.
  static Result<RuntimeConfig> parse(std::span<const std::string> entries);

  bool serves(const types::Resource& resource) const;
  bool serves(std::string_view group, std::string_view version) const;  // At least one resource of it.

 private:
  std::vector<const types::Resource*> enabled_;  // Of versions that are not stable.
};

}  // namespace holdfast::discovery
