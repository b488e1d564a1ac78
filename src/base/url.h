// URLs of webhooks: what Kubernetes takes, and why it refuses the others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

struct UrlProblem {
  bool unparsable = false;  // Nothing else can be said of it: Kubernetes calls it a required value then.
  std::string part;         // What is wrong: scheme, host, user, fragment or query.
  std::string why;          // In Kubernetes' words.
};

// Empty: a webhook may be called there. https alone, a host, no user, no query, no fragment.
std::vector<UrlProblem> webhook_url_problems(std::string_view url);

}  // namespace holdfast
