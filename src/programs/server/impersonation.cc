#include "server/impersonation.h"

#include <algorithm>
#include <unordered_map>

#include "base/ascii.h"
#include "base/hash.h"
#include "base/text.h"
#include "kinds/kinds.h"

namespace holdfast::server {
namespace {

using Extra = std::vector<std::pair<std::string, std::vector<std::string>>>;

constexpr std::string_view kExtraPrefix = "impersonate-extra-";
constexpr std::string_view kIdentityGroup = "authentication.k8s.io";
// From this many items on, a single check for all of them is tried first.
constexpr size_t kMany = 4;

// Formats like Go's %#v.
std::string go_list(const std::vector<std::string>& texts) {
  if (texts.empty()) return "[]string(nil)";
  std::string list = "[]string{";
  for (size_t i = 0; i < texts.size(); ++i) list += (i > 0 ? ", " : "") + go_quote(texts[i]);
  return list + "}";
}

Error without_user(const auth::UserInfo& wanted) {
  std::string extra = "map[string][]string(nil)";
  if (!wanted.extra.empty()) {
    Extra sorted = wanted.extra;
    std::sort(sorted.begin(), sorted.end());
    extra = "map[string][]string{";
    for (size_t i = 0; i < sorted.size(); ++i) {
      extra += (i > 0 ? ", " : "") + go_quote(sorted[i].first) + ":" + go_list(sorted[i].second);
    }
    extra += "}";
  }
  return bad_request("requested &user.DefaultInfo{Name:\"\", UID:" + go_quote(wanted.uid) +
                     ", Groups:" + go_list(wanted.groups) + ", Extra:" + extra + "} without impersonating a user name");
}

// The user requested by the headers, unmodified.
Result<std::optional<auth::UserInfo>> wanted_user(const net::Headers& headers) {
  auth::UserInfo wanted;
  wanted.name = headers.get("impersonate-user");
  wanted.uid = headers.get("impersonate-uid");
  bool more = !wanted.uid.empty();
  std::unordered_map<std::string, size_t, KeyHash> extra_keys;
  for (const net::Header& header : headers.items()) {
    if (header.name == "impersonate-group") {
      wanted.groups.emplace_back(header.value);
      more = true;
    } else if (header.name.starts_with(kExtraPrefix)) {
      more = true;
      const std::string_view raw = header.name.substr(kExtraPrefix.size());
      std::string key = net::percent_decode(raw).value_or(std::string(raw));
      const auto [known, fresh] = extra_keys.try_emplace(key, wanted.extra.size());
      if (fresh) wanted.extra.emplace_back(std::move(key), std::vector<std::string>());
      wanted.extra[known->second].second.emplace_back(header.value);
    }
  }
  if (!wanted.name.empty()) return std::optional(std::move(wanted));
  if (more) return without_user(wanted);
  return std::optional<auth::UserInfo>();
}

std::optional<std::string> node_name(std::string_view user) {
  constexpr std::string_view kPrefix = "system:node:";
  if (!user.starts_with(kPrefix)) return std::nullopt;
  std::string name(user.substr(kPrefix.size()));
  if (!kinds::dns_subdomain_errors(name).empty()) return std::nullopt;
  return name;
}

struct Account {
  std::string ns, name;
};
std::optional<Account> account_name(std::string_view user) {
  constexpr std::string_view kPrefix = "system:serviceaccount:";
  if (!user.starts_with(kPrefix)) return std::nullopt;
  const std::string_view rest = user.substr(kPrefix.size());
  const size_t colon = rest.find(':');
  if (colon == std::string_view::npos || rest.find(':', colon + 1) != std::string_view::npos) return std::nullopt;
  Account account{std::string(rest.substr(0, colon)), std::string(rest.substr(colon + 1))};
  if (!kinds::dns_label_errors(account.ns).empty() || !kinds::dns_subdomain_errors(account.name).empty()) {
    return std::nullopt;
  }
  return account;
}

bool only_name(const auth::UserInfo& user) { return user.uid.empty() && user.groups.empty() && user.extra.empty(); }

std::string_view extra_value(const auth::UserInfo& user, std::string_view key) {
  for (const auto& [name, values] : user.extra) {
    if (name == key && values.size() == 1) return values[0];
  }
  return {};
}

// One mode of impersonation. An empty name is the legacy verb, which is unconstrained.
class Mode {
 public:
  Mode(std::string_view name, const auth::Attributes& request, const auth::Authorizer& authorizer)
      : name_(name),
        verb_(name.empty() ? "impersonate" : "impersonate:" + std::string(name)),
        request_(request),
        authorizer_(authorizer) {}

  bool applies(const auth::UserInfo& wanted) const {
    const std::optional<std::string> node = node_name(wanted.name);
    const std::optional<Account> account = account_name(wanted.name);
    if (name_ == "associated-node") {
      return node && only_name(wanted) && account_name(request_.user->name) &&
             extra_value(*request_.user, "authentication.kubernetes.io/node-name") == *node;
    }
    if (name_ == "arbitrary-node") return node && only_name(wanted);
    if (name_ == "serviceaccount") return account && only_name(wanted);
    if (name_ == "user-info") return !node && !account;
    return true;
  }

  Result<Impersonated> check(const auth::UserInfo& wanted) const {
    if (constrained()) {
      auth::Attributes on = request_;
      const std::string verb = "impersonate-on:" + std::string(name_) + ":" + std::string(request_.verb);
      on.verb = verb;
      if (Result<Unit> ok = authorizer_.check(on); !ok) return ok.take_error();
    }
    auth::UserInfo actual = wanted;
    if (Result<Unit> ok = check_name(wanted, actual); !ok) return ok.take_error();
    if (!wanted.uid.empty()) {
      if (Result<Unit> ok = ask_about(kIdentityGroup, "uids", "", "", wanted.uid); !ok) return ok.take_error();
    }
    if (Result<Unit> ok = check_groups(wanted.groups); !ok) return ok.take_error();
    if (Result<Unit> ok = check_extra(wanted.extra); !ok) return ok.take_error();
    const std::string_view group =
        actual.name == auth::kAnonymous ? auth::kUnauthenticatedGroup : auth::kAuthenticatedGroup;
    if (!actual.in_group(group) && !actual.in_group(auth::kUnauthenticatedGroup)) actual.groups.emplace_back(group);
    return Impersonated{std::make_shared<const auth::UserInfo>(std::move(actual)), constrained() ? verb_ : ""};
  }

 private:
  bool constrained() const { return !name_.empty(); }

  auth::Attributes about(std::string_view group, std::string_view resource, std::string_view subresource,
                         std::string_view ns, std::string_view name) const {
    return {
        request_.user,
        verb_,
        {.group = group, .version = "v1", .resource = resource, .subresource = subresource, .ns = ns, .name = name}};
  }
  Result<Unit> ask_about(std::string_view group, std::string_view resource, std::string_view subresource,
                         std::string_view ns, std::string_view name) const {
    return authorizer_.check(about(group, resource, subresource, ns, name));
  }

  Result<Unit> check_name(const auth::UserInfo& wanted, auth::UserInfo& actual) const {
    const std::string_view group = constrained() ? kIdentityGroup : std::string_view();
    if (const std::optional<std::string> node = node_name(wanted.name); constrained() && node) {
      actual.groups = {"system:nodes"};
      // For the caller's own node, permission is for all names or none.
      return ask_about(group, "nodes", "", "", name_ == "associated-node" ? "*" : *node);
    }
    if (const std::optional<Account> account = account_name(wanted.name)) {
      if (wanted.groups.empty()) {
        actual.groups = {"system:serviceaccounts", "system:serviceaccounts:" + account->ns};
      }
      return ask_about(group, "serviceaccounts", "", account->ns, account->name);
    }
    return ask_about(group, "users", "", "", wanted.name);
  }

  Result<Unit> check_groups(const std::vector<std::string>& groups) const {
    const std::string_view group = constrained() ? kIdentityGroup : std::string_view();
    auto has = [&](std::string_view name) { return std::find(groups.begin(), groups.end(), name) != groups.end(); };
    if (constrained() && has("")) {
      return auth::forbidden_error(about(group, "groups", "", "", ""),
                                   "impersonating the empty string group is not allowed");
    }
    if (constrained() && has(auth::kMastersGroup)) {
      return auth::forbidden_error(about(group, "groups", "", "", auth::kMastersGroup),
                                   "impersonating the system:masters group is not allowed");
    }
    if (constrained() && groups.size() >= kMany && ask_about(group, "groups", "", "", "*")) return Unit{};
    for (const std::string& name : groups) {
      if (Result<Unit> ok = ask_about(group, "groups", "", "", name); !ok) return ok;
    }
    return Unit{};
  }

  static std::string problem_of(const Extra& extra) {
    for (const auto& [key, values] : extra) {
      if (key.empty()) return "impersonating the empty string key in extra is not allowed";
      if (std::any_of(key.begin(), key.end(), is_upper)) {
        return "impersonating a non-lowercase key in extra is not allowed: " + go_quote(key);
      }
      const size_t slash = key.find('/');
      std::string why;
      if (slash == std::string::npos || slash + 1 == key.size()) {
        why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
      } else if (const auto errors = kinds::dns_subdomain_errors(key.substr(0, slash)); !errors.empty()) {
        why = errors[0];
      }
      if (!why.empty()) {
        return "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: " + go_quote(key) +
               ": " + why;
      }
      if (std::find(values.begin(), values.end(), "") != values.end()) {
        return "impersonating the empty string value in extra is not allowed";
      }
    }
    return "";
  }

  Result<Unit> check_extra(const Extra& extra) const {
    if (extra.empty()) return Unit{};
    if (const std::string problem = constrained() ? problem_of(extra) : ""; !problem.empty()) {
      return auth::forbidden_error(about(kIdentityGroup, "userextras", "", "", ""), problem);
    }
    size_t count = 0;
    for (const auto& [key, values] : extra) count += values.size();
    if (constrained() && (extra.size() >= kMany || count >= kMany) &&
        ask_about(kIdentityGroup, "userextras", "*", "", "*")) {
      return Unit{};
    }
    for (const auto& [key, values] : extra) {
      for (const std::string& value : values) {
        if (Result<Unit> ok = ask_about(kIdentityGroup, "userextras", key, "", value); !ok) return ok;
      }
    }
    return Unit{};
  }

  const std::string_view name_;
  const std::string verb_;
  const auth::Attributes& request_;
  const auth::Authorizer& authorizer_;
};

}  // namespace

Result<std::optional<Impersonated>> impersonate(const net::Headers& headers, const auth::Attributes& attributes,
                                                const auth::Authorizer& authorizer) {
  Result<std::optional<auth::UserInfo>> wanted = wanted_user(headers);
  if (!wanted) return wanted.take_error();
  if (!*wanted) return std::optional<Impersonated>();
  std::optional<Error> failure;
  for (const std::string_view name : {"associated-node", "arbitrary-node", "serviceaccount", "user-info", ""}) {
    const Mode mode(name, attributes, authorizer);
    if (!mode.applies(**wanted)) continue;
    Result<Impersonated> allowed = mode.check(**wanted);
    if (allowed) return std::optional(std::move(*allowed));
    if (!failure) failure = allowed.take_error();
  }
  return std::move(*failure);
}

}  // namespace holdfast::server
