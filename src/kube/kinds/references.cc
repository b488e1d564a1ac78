#include "kinds/references.h"

#include <algorithm>

#include "base/strings.h"
#include "kinds/quantity.h"

namespace holdfast::kinds {
namespace {

constexpr std::string_view kEnvironmentFields[] = {
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs",     "status.podIP", "status.podIPs"};
constexpr std::string_view kVolumeFields[] = {"metadata.annotations", "metadata.labels", "metadata.name",
                                              "metadata.namespace", "metadata.uid"};
constexpr std::string_view kResources[] = {"limits.cpu",   "limits.ephemeral-storage",   "limits.memory",
                                           "requests.cpu", "requests.ephemeral-storage", "requests.memory"};
constexpr std::string_view kByteDivisors[] = {"1",   "1k",  "1M",  "1G",  "1T",  "1P", "1E",
                                              "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"};

// Splits metadata.labels['key']; false if there is no subscript.
bool split_subscript(std::string_view path, std::string_view& base, std::string_view& subscript) {
  if (!path.ends_with("']")) return false;
  const size_t open = path.find("['");
  if (open == std::string_view::npos || open == 0) return false;
  base = path.substr(0, open);
  subscript = path.substr(open + 2, path.size() - open - 4);
  return !subscript.empty();
}

void validate_divisor(std::string_view resource, const Value& reference, const Path& at, FieldErrors& errors) {
  const Value* divisor = reference.find("divisor");
  if (quantity_of(divisor).is_zero()) return;
  const std::string_view text = divisor->as_string();
  const auto bytes = [&](std::string_view what) {
    if (contains(kByteDivisors, text)) return;
    errors.invalid(at.child("divisor"), resource,
                   "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with "
                   "the " +
                       std::string(what) + " resource");
  };
  if (resource.ends_with(".cpu")) {
    if (text != "1m" && text != "1") {
      errors.invalid(at.child("divisor"), resource,
                     "only divisor's values 1m and 1 are supported with the cpu resource");
    }
  } else if (resource.ends_with(".memory")) {
    bytes("memory");
  } else if (resource.ends_with(".ephemeral-storage")) {
    bytes("local ephemeral storage");
  } else if (resource.find(".hugepages-") != std::string_view::npos) {
    bytes("hugepages");
  }
}

}  // namespace

void validate_field_ref(const Value& reference, FieldRefUse use, const Path& at, FieldErrors& errors) {
  const std::string_view path = reference.text_at("fieldPath");
  if (reference.text_at("apiVersion").empty()) return errors.required(at.child("apiVersion"));
  if (path.empty()) return errors.required(at.child("fieldPath"));
  const auto refuse = [&](std::string_view why) {
    errors.invalid(at.child("fieldPath"), path, "error converting fieldPath: " + std::string(why));
  };
  if (reference.text_at("apiVersion") != "v1") {
    return refuse("unsupported pod version: " + std::string(reference.text_at("apiVersion")));
  }
  std::string_view base, subscript;
  if (split_subscript(path, base, subscript)) {
    if (base != "metadata.annotations" && base != "metadata.labels") {
      return refuse("field label does not support subscript: " + std::string(path));
    }
    const std::string key = base == "metadata.annotations" ? to_lower(subscript) : std::string(subscript);
    return errors.invalid_each(at, key, qualified_name_errors(key));
  }
  constexpr std::string_view kAlso[] = {"metadata.annotations", "metadata.labels", "spec.restartPolicy",
                                        "spec.schedulerName",   "status.phase",    "spec.host"};
  if (!contains(kEnvironmentFields, path) && !contains(kAlso, path)) {
    return refuse("field label not supported: " + std::string(path));
  }
  const std::span<const std::string_view> allowed =
      use == FieldRefUse::Environment ? std::span<const std::string_view>(kEnvironmentFields) : kVolumeFields;
  const std::string_view internal = path == "spec.host" ? "spec.nodeName" : path;
  if (!contains(allowed, internal)) errors.not_supported(at.child("fieldPath"), internal, allowed);
}

void validate_resource_ref(const Value& reference, FieldRefUse use, const Path& at, FieldErrors& errors) {
  const std::string_view resource = reference.text_at("resource");
  if (use == FieldRefUse::Volume && reference.text_at("containerName").empty()) {
    errors.required(at.child("containerName"));
  } else if (resource.empty()) {
    errors.required(at.child("resource"));
  } else if (!contains(kResources, resource) && !resource.starts_with("requests.hugepages-") &&
             !resource.starts_with("limits.hugepages-")) {
    errors.not_supported(at.child("resource"), resource, kResources);
  }
  validate_divisor(resource, reference, at, errors);
}

void validate_driver_name(std::string_view name, const Path& at, FieldErrors& errors) {
  if (name.empty()) return errors.required(at);
  if (name.size() > 63) errors.too_long(at, 63);
  const std::string lower = to_lower(name);
  errors.invalid_each(at, name, dns_subdomain_errors(lower));
}

}  // namespace holdfast::kinds
