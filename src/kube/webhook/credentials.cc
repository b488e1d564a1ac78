#include "base/log.h"
#include "base/url.h"
#include "webhook/webhook.h"

namespace holdfast::webhook {
namespace {

// This server's own service, which Kubernetes never sends a kubeconfig's credentials to.
constexpr std::string_view kOwnService = "kubernetes.default.svc:443";
constexpr std::string_view kDefaultPort = ":443";
// Delay before files that could not be read are tried again.
constexpr std::chrono::seconds kReadAgain{10};

Result<Unit> check_user(const client::Config& user) {
  if (user.exec) return bad_request("exec plugins are not supported for webhooks");
  if (!user.username.empty() && (!user.token.empty() || !user.token_file.empty())) {
    return bad_request("username/password or bearer token may be set, but not both");
  }
  if (user.certificate_pem.empty() != user.key_pem.empty()) {
    return bad_request("client-certificate and client-key must be given together");
  }
  return Unit{};
}

}  // namespace

Result<std::shared_ptr<ClientCredentials>> ClientCredentials::load(const std::string& kubeconfig) {
  Result<client::Config::Users> users = client::Config::load_users(kubeconfig);
  if (!users) return users.take_error();
  for (const auto& [name, user] : users->by_name) {
    if (Result<Unit> usable = check_user(user); !usable) {
      return bad_request(kubeconfig + ": user \"" + name + "\": " + usable.error().message);
    }
  }
  return std::shared_ptr<ClientCredentials>(new ClientCredentials(std::move(*users)));
}

// Follows defaultAuthenticationInfoResolver.clientConfig in k8s.io/apiserver/pkg/util/webhook/authentication.go: by
// name, by "*." and the part after each dot, both again without the default port, then "*", then the current context.
std::string_view ClientCredentials::user_for(std::string_view host_port) const {
  if (host_port == kOwnService) return {};
  const auto find = [this](std::string_view name) {
    const auto found = users_.by_name.find(name);
    return found == users_.by_name.end() ? std::string_view() : std::string_view(found->first);
  };
  const auto find_host = [&](std::string_view host) {
    if (const std::string_view user = find(host); !user.empty()) return user;
    for (size_t dot = host.find('.'); dot != std::string_view::npos; dot = host.find('.', dot + 1)) {
      if (const std::string_view user = find("*" + std::string(host.substr(dot))); !user.empty()) return user;
    }
    return std::string_view();
  };
  if (const std::string_view user = find_host(host_port); !user.empty()) return user;
  if (host_port.ends_with(kDefaultPort)) {
    const std::string_view host = without_brackets(host_port.substr(0, host_port.size() - kDefaultPort.size()));
    if (const std::string_view user = find_host(host); !user.empty()) return user;
  }
  if (const std::string_view user = find("*"); !user.empty()) return user;
  return find(users_.current);
}

Result<ClientCredentials::Shown> ClientCredentials::for_server(std::string_view host_port) {
  const std::string_view name = user_for(host_port);
  if (name.empty()) return Shown{};
  const client::Config& user = users_.by_name.find(name)->second;
  const std::lock_guard lock(mutex_);
  auto known = read_.find(name);
  const auto now = std::chrono::steady_clock::now();
  if (known == read_.end() || (known->second.stale_at && now >= *known->second.stale_at)) {
    Result<client::Credentials> read = client::read_credentials(user);
    if (read) {
      known = read_.insert_or_assign(std::string(name), std::move(*read)).first;
    } else if (known == read_.end()) {
      return read.take_error();
    } else {
      // The previous credentials may still be valid: a file may just be in the middle of being replaced.
      log::warning("cannot reload webhook credentials", {{"user", name}, {"why", read.error().message}});
      known->second.stale_at = now + kReadAgain;
    }
  }
  Shown shown{.identity = known->second.identity, .headers = {}};
  client::add_credentials(known->second, user.impersonate, shown.headers);
  return shown;
}

void ClientCredentials::rejected_by(std::string_view host_port) {
  const std::lock_guard lock(mutex_);
  if (const auto known = read_.find(user_for(host_port)); known != read_.end()) read_.erase(known);
}

}  // namespace holdfast::webhook
