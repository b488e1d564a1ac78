// Authentication and authorization, and the certificates and keys for them.
//
// A request is authenticated once (authenticate), then authorized (Authorizer). An invalid credential is Unauthorized,
// never anonymous; a request without credentials is system:anonymous, if that is allowed.
//
// Threading: everything here is immutable after construction and may be used from any thread, except that
//   authenticate() is called on the thread of the request's connection. To reload, create a new Authenticator.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/task.h"
#include "net/net.h"

namespace holdfast::auth {

// ---------------------------------------------------------------------------------------------------- Users

struct UserInfo {
  std::string name;
  std::string uid;
  std::vector<std::string> groups;
  std::vector<std::pair<std::string, std::vector<std::string>>> extra;

  bool in_group(std::string_view group) const;
};
using UserRef = std::shared_ptr<const UserInfo>;

inline constexpr std::string_view kAnonymous = "system:anonymous";
inline constexpr std::string_view kUnauthenticatedGroup = "system:unauthenticated";
inline constexpr std::string_view kAuthenticatedGroup = "system:authenticated";
inline constexpr std::string_view kMastersGroup = "system:masters";
inline constexpr std::string_view kNodesGroup = "system:nodes";

// The name of the node whose kubelet this is: a user system:node:NAME of the group system:nodes. Empty if the user has
// no name after the prefix, nullopt if it is no node.
std::optional<std::string_view> node_of(const UserInfo& user);

// ---------------------------------------------------------------------------------------------------- Authentication

// Lines of token,user,uid[,"group1,group2"]: kube-apiserver's --token-auth-file.
class TokenTable {
 public:
  // The error names `source` and the line.
  static Result<TokenTable> from_csv(std::string_view csv, std::string_view source);
  UserRef find(std::string_view token) const;  // Null if unknown.

 private:
  std::unordered_map<std::string, UserRef, KeyHash> users_;
};

// The user of a bearer token, and those of the requested audiences it is valid for.
struct TokenUser {
  UserRef user;  // Null if the token is unknown.
  std::vector<std::string> audiences;
};

// Checks one kind of bearer token: static, service account, ... A null user means that the token is not of this kind.
// The token must be valid for one of `audiences`.
using TokenCheck = std::function<Result<TokenUser>(std::string_view token, const std::vector<std::string>& audiences)>;

// Tokens in the table have no audiences: they are valid for those of this server.
TokenCheck static_tokens(TokenTable table, std::vector<std::string> meant_for);

// Keys for verifying tokens that another program holds.
struct RemoteKeys {
  // Whether the token names a key that is not known yet.
  std::function<bool(std::string_view token)> lacks_key_of;
  // Fetches the keys, on the thread of `loop`; ends early when cancelled.
  std::function<Task<void>(net::EventLoop& loop, std::shared_ptr<net::Cancellation> cancellation)> fetch;
};

struct AuthenticatorOptions {
  std::optional<net::CaPool> client_ca;  // If not set, client certificates are ignored.
  std::vector<TokenCheck> tokens;        // Tried in order.
  std::optional<RemoteKeys> remote_keys;
  std::vector<std::string> audiences;  // Accepted audiences: those of this server.
  bool anonymous = true;

  // Signs the certificates of front proxies, which identify users in headers.
  std::optional<net::CaPool> request_header_ca;
  std::vector<std::string> request_header_allowed_names;  // Empty allows any name signed by that CA.
  std::vector<std::string> username_headers = {"X-Remote-User"};
  std::vector<std::string> uid_headers = {};  // Empty: UIDs are not taken from headers unless configured.
  std::vector<std::string> group_headers = {"X-Remote-Group"};
  std::vector<std::string> extra_header_prefixes = {"X-Remote-Extra-"};
};

// Browsers cannot set Authorization for a WebSocket: a subprotocol with this prefix carries the bearer token, in
// base64url.
inline constexpr std::string_view kWebSocketToken = "base64url.bearer.authorization.k8s.io.";

class Authenticator {
 public:
  explicit Authenticator(AuthenticatorOptions options);

  // Whether fetch_keys() must be awaited before authenticate() or authenticate_token(). Rare.
  bool needs_keys(const net::Request& request) const;
  bool needs_keys(std::string_view token) const;
  Task<void> fetch_keys(net::EventLoop& loop, std::shared_ptr<net::Cancellation> cancellation) const;

  // Unauthorized, with the reason for the log; clients only see "Unauthorized".
  Result<UserRef> authenticate(const net::Request& request) const;
  // For TokenReviews: error messages are those of kube-apiserver. Empty `audiences` means those of this server.
  Result<TokenUser> authenticate_token(std::string_view token, const std::vector<std::string>& audiences) const;

 private:
  Result<UserRef> by_request_header(const net::Request& request) const;
  Result<UserRef> by_certificate(const net::Request& request) const;
  Result<UserRef> by_token(const net::Request& request) const;

  const AuthenticatorOptions options_;
  const UserRef anonymous_;
  const uint64_t id_;  // Identifies users that this Authenticator has cached with a connection.
};

// ---------------------------------------------------------------------------------------------------- Authorization

// Objects of a resource: the named one, or all if there is no name.
struct ResourceAttributes {
  std::string_view group = {};
  std::string_view version = "*";
  std::string_view resource = {};
  std::string_view subresource = {};
  std::string_view ns = {};  // Empty for all namespaces, and for cluster-scoped resources.
  std::string_view name = {};
  // The spec.nodeName that the field selector of a list, watch or deletecollection requires; empty if it requires none.
  std::string_view selected_node = {};
};

// Who wants to do what: the request itself, or another permission that the request requires. call::attributes_of()
// returns those of the request. The views must not outlive the request.
struct Attributes : ResourceAttributes {
  Attributes(const UserInfo* who, std::string_view wanted, const ResourceAttributes& on)
      : ResourceAttributes(on), user(who), verb(wanted), is_resource(true) {}
  // For paths that are not resources.
  Attributes(const UserInfo* who, std::string_view method, std::string_view on)
      : ResourceAttributes{.version = {}}, user(who), verb(method), path(on) {}

  const UserInfo* user;   // Null before authentication.
  std::string_view verb;  // get, list, watch, create, ...; the lower-case method for paths.
  bool is_resource = false;
  std::string_view path = {};
};

struct Decision {
  enum class Verdict : uint8_t { Allow, Deny, NoOpinion };
  Verdict verdict = Verdict::NoOpinion;
  std::string reason;  // "RBAC: allowed by ...", or the reason for the denial; may be empty.

  bool allowed() const { return verdict == Verdict::Allow; }
};

class Authorizer {
 public:
  virtual ~Authorizer() = default;
  virtual Decision authorize(const Attributes& attributes) const = 0;

  bool allows(const Attributes& attributes) const { return authorize(attributes).allowed(); }
  // forbidden_error() if not allowed.
  Result<Unit> check(const Attributes& attributes) const;
};

// The 403 for a request that was not allowed, with Kubernetes' message.
Error forbidden_error(const Attributes& attributes, std::string_view reason);
Error unauthorized_error();

// ---------------------------------------------------------------------------------------------------- Certificates

using Days = std::chrono::duration<int64_t, std::ratio<86400>>;

struct CertificateRequest {
  std::string common_name;
  std::vector<std::string> organizations;
  std::vector<std::string> dns_names;
  std::vector<std::string> addresses;  // IP addresses as text.
  enum class Use : uint8_t { Server, Client, Authority } use = Use::Client;
  Days valid{365};
};

// A new P-256 key and a certificate for it, signed by `authority`; self-signed if that is null.
Result<net::Identity> make_certificate(const CertificateRequest& request, const net::Identity* authority);
// A new P-256 key: {public key, private key} in PEM.
Result<std::pair<std::string, std::string>> make_key_pair();

// The credentials of a server, in files with kubeadm's names, so that other components can use them.
struct Pki {
  net::Identity authority;                  // ca.crt, ca.key: signs the others and clients; empty if nothing needs it.
  net::Identity serving;                    // apiserver.crt, apiserver.key; empty without PkiOptions::serving.
  net::Identity admin;                      // admin.crt, admin.key: CN=kubernetes-admin, O=system:masters;
                                            // empty without PkiOptions::clients.
  net::Identity proxy_authority;            // front-proxy-ca.crt, .key
  net::Identity proxy_client;               // front-proxy-client.crt, .key: presented to aggregated API servers.
  std::string service_account_public_pem;   // sa.pub
  std::string service_account_private_pem;  // sa.key
};

struct PkiOptions {
  std::string directory;
  std::vector<std::string> dns_names;  // Additional names for the serving certificate.
  std::vector<std::string> addresses;
  bool serving = true;  // False: the operator has a serving certificate.
  bool clients = true;  // False: another CA signs client certificates, so an administrator's certificate from an
                        // earlier start is removed.
};

// Reads existing files and creates missing ones. A serving or admin certificate that expires within a month, or lacks a
// required name, is reissued; nothing else is ever replaced. Private keys are readable only by the owner.
Result<Pki> ensure_pki(const PkiOptions& options);

struct KubeconfigRequest {
  std::string server;  // https://127.0.0.1:6443
  std::string ca_pem;
  net::Identity identity = {};  // Empty for a kubeconfig without credentials.
  std::string cluster_name = "holdfast";
  std::string user_name = "admin";
};
std::string make_kubeconfig(const KubeconfigRequest& request);

// The last certificate of a file with a chain, which is what clients of its first one have to trust. BadRequest if
// there is none.
Result<std::string> last_certificate(std::string_view pem, std::string_view source);

// The earliest end of the validity of the certificates in `pem`; not set if there is none.
std::optional<UnixTime> expiry_of(std::string_view pem);

}  // namespace holdfast::auth
