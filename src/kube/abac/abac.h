// Attribute-based access control: the policies of --authorization-policy-file, one JSON object per line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "auth/auth.h"
#include "base/error.h"
#include "rbac/rbac.h"

namespace holdfast::abac {

// A Policy of abac.authorization.kubernetes.io/v1beta1. "*" matches everything.
struct Policy {
  std::string user, group;  // If both are set, both must match.
  bool read_only = false;
  std::string api_group, resource, ns, path;
};

// Also reads policies without a version, as they were before v1beta1. `source` is the path, for the error, which names
// the line.
Result<std::vector<Policy>> parse(std::string_view text, std::string_view source);

// Allow if any policy matches.
auth::Decision authorize(const std::vector<Policy>& policies, const auth::Attributes& attributes);
std::vector<rbac::Rule> rules_for(const std::vector<Policy>& policies, const auth::UserInfo& user, std::string_view ns);

}  // namespace holdfast::abac
