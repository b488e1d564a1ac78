// The field managers of a resource's endpoints, created on first use.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/gates.h"
#include "kinds/kinds.h"
#include "ownership/ownership.h"
#include "resource/object_rules.h"
#include "types/types.h"

namespace holdfast::resource {

// One served version of a kind, and the merge types of its objects, built on first use.
struct KindVersion {
  const types::Resource* resource = nullptr;
  ownership::MergeTypes* merge_types = nullptr;  // Null for those of the catalog.
};

class Managers {
 public:
  // `versions` are all served versions of the kind, `resource` the one handled here; `rules` convert between them.
  Managers(const types::Resource& resource, std::vector<KindVersion> versions, std::shared_ptr<const ObjectRules> rules,
           const Gates& gates, bool custom);
  ~Managers();

  const ownership::FieldManager& at(kinds::Endpoint endpoint);
  // For an update or an apply: converts like the manager itself, and adds to `missing` whatever a webhook has to
  // convert first. Empty without a conversion webhook.
  ownership::Convert converter(MissingConversions& missing) const;
  // For the Scale subresource: objects are autoscaling/v1 Scales.
  const ownership::FieldManager& scale();
  // For serviceaccounts/token: objects are authentication.k8s.io/v1 TokenRequests.
  const ownership::FieldManager& token_request();

 private:
  static constexpr size_t kEndpoints = 6;
  std::unique_ptr<ownership::FieldManager> make(kinds::Endpoint endpoint) const;
  Result<Value> convert(Arena& arena, const Value& object, std::string_view from, std::string_view to,
                        MissingConversions* missing) const;
  // For a subresource whose objects are of another kind, in one version.
  std::unique_ptr<ownership::FieldManager> make_foreign(std::string_view api_version, std::string_view kind,
                                                        std::string_view subresource, const types::Type& type) const;

  const types::Resource& resource_;
  const std::vector<KindVersion> versions_;
  const std::shared_ptr<const ObjectRules> rules_;
  const Gates gates_;
  const bool custom_;
  std::array<std::once_flag, kEndpoints + 2> once_;
  std::array<std::unique_ptr<ownership::FieldManager>, kEndpoints + 2> managers_;
};

// --- managedFields of an object ---

// The entries for the store and responses, in FieldsV1.
std::vector<ownership::ManagedEntry> stored_entries(Arena& arena, const ownership::Managed& managed, bool custom);

}  // namespace holdfast::resource
