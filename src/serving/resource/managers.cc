#include "resource/managers.h"

#include <algorithm>

#include "base/api_error.h"
#include "resource/object_codec.h"

namespace holdfast::resource {
namespace {

std::string_view subresource_of(kinds::Endpoint endpoint) {
  switch (endpoint) {
    case kinds::Endpoint::Main:
      return "";
    case kinds::Endpoint::Status:
      return "status";
    case kinds::Endpoint::Finalize:
      return "finalize";
    case kinds::Endpoint::Approval:
      return "approval";
    case kinds::Endpoint::EphemeralContainers:
      return "ephemeralcontainers";
    case kinds::Endpoint::Resize:
      return "resize";
  }
  return "";
}

// The main endpoint does not own status if there is a status endpoint, which in turn owns neither spec nor metadata.
kinds::ResetFields custom_reset_fields(const types::Resource& resource, kinds::Endpoint endpoint) {
  static constexpr std::string_view kStatus[] = {"status"}, kOthers[] = {"metadata", "spec"};
  if (endpoint == kinds::Endpoint::Status) return {.reset = kOthers};
  const bool has_status = std::any_of(resource.subresources.begin(), resource.subresources.end(),
                                      [](const types::Subresource& sub) { return sub.name == "status"; });
  if (!has_status) return {};
  return {.reset = kStatus};
}

}  // namespace

Managers::Managers(const types::Resource& resource, std::vector<KindVersion> versions,
                   std::shared_ptr<const ObjectRules> rules, const Gates& gates, bool custom)
    : resource_(resource), versions_(std::move(versions)), rules_(std::move(rules)), gates_(gates), custom_(custom) {}

Managers::~Managers() = default;

const ownership::FieldManager& Managers::at(kinds::Endpoint endpoint) {
  const size_t i = static_cast<size_t>(endpoint);
  std::call_once(once_[i], [&] { managers_[i] = make(endpoint); });
  return *managers_[i];
}

const ownership::FieldManager& Managers::scale() {
  std::call_once(once_[kEndpoints], [&] {
    managers_[kEndpoints] = make_foreign("autoscaling/v1", "Scale", "scale", *types::find_type("autoscaling/v1.Scale"));
  });
  return *managers_[kEndpoints];
}

const ownership::FieldManager& Managers::token_request() {
  std::call_once(once_[kEndpoints + 1], [&] {
    managers_[kEndpoints + 1] = make_foreign("authentication.k8s.io/v1", "TokenRequest", "token",
                                             *types::find_type("authentication/v1.TokenRequest"));
  });
  return *managers_[kEndpoints + 1];
}

Result<Value> Managers::convert(Arena& arena, const Value& object, std::string_view from, std::string_view to,
                                MissingConversions* missing) const {
  const types::Resource* source = nullptr;
  const types::Resource* target = nullptr;
  for (const KindVersion& version : versions_) {
    const std::string name = api_version_of(*version.resource);
    if (name == from) source = version.resource;
    if (name == to) target = version.resource;
  }
  if (source == nullptr || target == nullptr) {
    return untyped("no conversion from " + std::string(from) + " to " + std::string(to));
  }
  // Unlike stored objects, these are not pruned: a field unknown to the other version is an error.
  if (custom_ && !rules_->converts_by_webhook()) {
    return with_member(arena, object, "apiVersion", Value::string(arena, to));
  }
  return rules_->convert(arena, *source, *target, object, missing);
}

ownership::Convert Managers::converter(MissingConversions& missing) const {
  if (!rules_->converts_by_webhook()) return {};
  return [this, &missing](Arena& arena, const Value& object, std::string_view from, std::string_view to) {
    return convert(arena, object, from, to, &missing);
  };
}

std::unique_ptr<ownership::FieldManager> Managers::make(kinds::Endpoint endpoint) const {
  ownership::FieldManagerOptions options;
  options.api_version = api_version_of(resource_);
  options.kind = resource_.kind;
  options.subresource = subresource_of(endpoint);
  for (const KindVersion& version : versions_) {
    kinds::ResetFields reset =
        custom_ ? custom_reset_fields(*version.resource, endpoint) : kinds::reset_fields(*version.resource, endpoint);
    // As in Kubernetes, the main endpoint of a custom kind resets status only in the request's version.
    const bool other = version.resource->version != resource_.version;
    if (custom_ && other && endpoint != kinds::Endpoint::Status) reset = {};
    options.versions.push_back(
        {api_version_of(*version.resource),
         &(version.merge_types != nullptr ? *version.merge_types : ownership::builtin_merge_types())
              .of(*version.resource->type),
         ownership::ResetFilter(reset.reset, reset.keep_only)});
  }
  options.convert = [this](Arena& arena, const Value& object, std::string_view from, std::string_view to) {
    return convert(arena, object, from, to, nullptr);
  };
  if (!custom_) {
    const types::Type* type = resource_.type;
    options.zero_object = [type](Arena& arena) { return kinds::zero_value(arena, *type); };
  } else {
    options.declared_defaults = [rules = rules_](Arena& arena, const Value& object) {
      return rules->with_defaults(arena, object);
    };
  }
  options.fields_v2 = gates_.on(Gate::FieldsV2);
  options.unset_markers = gates_.on(Gate::ServerSideApplyUnsettingFields);
  options.retain_all_managers = gates_.on(Gate::RetainAllManagers);
  return std::make_unique<ownership::FieldManager>(std::move(options));
}

std::unique_ptr<ownership::FieldManager> Managers::make_foreign(std::string_view api_version, std::string_view kind,
                                                                std::string_view subresource,
                                                                const types::Type& type) const {
  ownership::FieldManagerOptions options;
  options.api_version = api_version;
  options.kind = kind;
  options.subresource = subresource;
  options.versions.push_back({std::string(api_version), &ownership::builtin_merge_types().of(type), {}});
  options.zero_object = [&type](Arena& arena) { return kinds::zero_value(arena, type); };
  options.fields_v2 = gates_.on(Gate::FieldsV2);
  options.unset_markers = gates_.on(Gate::ServerSideApplyUnsettingFields);
  options.retain_all_managers = gates_.on(Gate::RetainAllManagers);
  return std::make_unique<ownership::FieldManager>(std::move(options));
}

std::vector<ownership::ManagedEntry> stored_entries(Arena& arena, const ownership::Managed& managed, bool custom) {
  const ownership::MemberOrder order = custom ? ownership::MemberOrder::Bytewise : ownership::MemberOrder::Canonical;
  std::vector<ownership::ManagedEntry> entries;
  entries.reserve(managed.size());
  for (const ownership::ManagerEntry& entry : managed) {
    ownership::ManagedEntry out;
    out.manager = entry.manager;
    out.operation = ownership::name_of(entry.operation);
    out.api_version = entry.api_version;
    out.subresource = entry.subresource;
    if (entry.time) out.time = UnixTime{*entry.time, 0};
    out.fields_type = ownership::kFieldsV1;
    out.fields = arena.copy(ownership::to_fields_v1(entry.fields, order));
    out.set = entry.fields;
    entries.push_back(out);
  }
  return entries;
}

}  // namespace holdfast::resource
