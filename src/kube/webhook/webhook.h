// Calls to other servers, and the protocol of admission webhooks.
//
//   Caller caller(loops, services);
//   Result<std::string> answer =
//       co_await caller.post(loop, hook.client, body, std::chrono::seconds(10), agent, nullptr);
//
// Everything except Caller and ClientCredentials is plain functions. Error messages match those of Kubernetes.
//
// Threading: a Caller is used from all loops, and each call stays on its own; plain functions run on any thread.
// Lifetime: a Caller outlives its calls. Values and views refer to the configuration or arena they were made of.
// Errors: a call that fails says why, as Go's client would; whether that rejects the request is decided by the caller
//   (ignores_failure).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admission/operation.h"
#include "auth/auth.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/task.h"
#include "client/credentials.h"
#include "expressions/expressions.h"
#include "net/net.h"
#include "value/value.h"

namespace holdfast::webhook {

// ---------------------------------------------------------------------------------------------------- Calls

struct ServiceReference {
  std::string ns, name;
  std::string path;
  uint16_t port = 443;
};

// Users of a kubeconfig as credentials for webhooks (kubeConfigFile of a WebhookAdmissionConfiguration). A user's name
// selects the servers it is used for: hook.example.com:8443, hook.default.svc, *.example.com, *. Its files are reread
// every minute, and after a server has rejected the credentials.
//
// Thread-safe.
class ClientCredentials {
 public:
  // Errors name the file and the user.
  static Result<std::shared_ptr<ClientCredentials>> load(const std::string& kubeconfig);

  // The credentials for the server at `host_port`, such as hook.default.svc:443.
  struct Shown {
    std::optional<net::Identity> identity;
    std::vector<std::pair<std::string, std::string>> headers;
  };
  Result<Shown> for_server(std::string_view host_port);
  // Called after a 401 response.
  void rejected_by(std::string_view host_port);

  // The user for that server; empty if it is called anonymously.
  std::string_view user_for(std::string_view host_port) const;

 private:
  explicit ClientCredentials(client::Config::Users users) : users_(std::move(users)) {}

  const client::Config::Users users_;
  std::mutex mutex_;
  std::map<std::string, client::Credentials, std::less<>> read_;  // By user; guarded by mutex_.
};

// The address of a webhook: a URL or a service.
struct ClientConfig {
  std::string url;
  std::optional<ServiceReference> service;
  std::string ca_pem;                              // The system's roots if empty.
  std::shared_ptr<ClientCredentials> credentials;  // If null, it is called anonymously.
};
// Reads a webhook's `clientConfig`. caBundle is base64.
ClientConfig client_config(const Value& value);

struct Address {
  std::string host;
  uint16_t port = 443;
};

// Resolves a service to its current address. Thread-safe.
class Services {
 public:
  virtual ~Services() = default;
  virtual Result<Address> resolve(std::string_view ns, std::string_view name, uint16_t port) const = 0;
};

// TLS settings for a server.
struct Trust {
  std::string server_name;
  std::string ca_pem;     // The system's roots if empty.
  bool insecure = false;  // Do not verify the server.
  const net::Identity* identity = nullptr;
};

// Pools connections to other servers, separately for each loop; calls run and resume on the given loop.
class Caller {
 public:
  // Both must outlive the Caller.
  Caller(net::Loops& loops, const Services& services);
  ~Caller();

  // POSTs a review and returns the response's body. Error messages are those of Go's client:
  //   Post "https://hook.default.svc:443/x?timeout=10s": dial tcp 10.0.0.9:443: connect: connection refused
  //   an error on the server ("unknown") has prevented the request from succeeding
  // Cancellation is an error, too.
  Task<Result<std::string>> post(net::EventLoop& loop, ClientConfig config, std::string body,
                                 std::chrono::seconds timeout, std::string_view user_agent,
                                 std::shared_ptr<net::Cancellation> cancellation);

  // A pooled client. Must be called on the loop's thread.
  std::shared_ptr<net::Client> client(net::EventLoop& loop, const Address& address, const Trust& trust);

 private:
  struct PerLoop;

  const Services& services_;
  std::vector<std::unique_ptr<PerLoop>> loops_;
};

// ---------------------------------------------------------------------------------------------------- Webhooks

using admission::Operation;
using admission::to_string;

struct GroupVersionResource {
  std::string_view group, version, resource;
  bool operator==(const GroupVersionResource&) const = default;
};
struct GroupVersionKind {
  std::string_view group, version, kind;
};

// A rule of a webhook, or of a policy's match resources.
struct Rule {
  enum class Scope : uint8_t { All, Cluster, Namespaced };
  std::vector<std::string> operations, groups, versions, resources;
  std::vector<std::string> names;  // resourceNames of a policy; all if empty.
  Scope scope = Scope::All;

  bool matches(Operation operation, const GroupVersionResource& resource, std::string_view subresource,
               std::string_view ns, std::string_view name) const;
};
Rule rule_of(const Value& value);

enum class ReviewVersion : uint8_t { None, V1, V1beta1 };

// One webhook of a configuration.
struct Hook {
  std::string configuration, name;
  std::string id;  // Unique: configuration, name, and index among webhooks of the same name.
  ClientConfig client;
  std::vector<Rule> rules;
  bool ignores_failure = false;
  bool matches_equivalent = true;
  bool has_side_effects = false;  // It cannot be called for dry runs.
  bool reinvokes = false;         // reinvocationPolicy is IfNeeded.
  std::chrono::seconds timeout{10};
  ReviewVersion review_version = ReviewVersion::None;  // The first of its versions that we support.
  Value namespace_selector, object_selector;           // metav1.LabelSelector; null or empty selects everything.
  std::vector<expressions::Expression> conditions;     // matchConditions.
};
// The webhooks of a MutatingWebhookConfiguration or ValidatingWebhookConfiguration, in order. Selectors point into the
// configuration.
std::vector<Hook> hooks_of(const Value& configuration);

// Whether the selector is absent or empty.
bool selects_all(const Value& selector);
// Whether the old or the new object (null if absent) matches the selector.
bool selects_object(const Value& selector, const Value& object, const Value& old);
bool selects_namespace(const Value& selector, const Value* labels);

// ---------------------------------------------------------------------------------------------------- AdmissionReview

// The content of an AdmissionReview request. Views must outlive it.
struct AdmissionReviewRequest {
  std::string uid;
  GroupVersionKind kind, request_kind;
  GroupVersionResource resource, request_resource;
  std::string_view subresource, name, ns;
  Operation operation = Operation::Create;
  const auth::UserInfo* user = nullptr;
  Value object, old, options;  // Null if absent. Custom resources are printed with sorted keys.
  bool sorted = false;
  bool dry_run = false;
};
std::string admission_review(const AdmissionReviewRequest& question, ReviewVersion version);
// What reviews and policies show, with views of it.
Value kind_value(Arena& arena, const GroupVersionKind& kind);
Value resource_value(Arena& arena, const GroupVersionResource& resource);
// Absent fields are omitted.
Value user_value(Arena& arena, const auth::UserInfo& user);
Value extra_value(Arena& arena, const auth::UserInfo& user);

struct AdmissionReviewResponse {
  bool allowed = false;
  std::string patch;  // JSON patch, decoded from base64; empty if there is none.
  Value status;       // Null if there is none.
  std::vector<std::string> warnings;
  std::vector<std::pair<std::string, std::string>> audit_annotations;
};
// Error messages are what follows `failed calling webhook "x": `.
Result<AdmissionReviewResponse> parse_admission_response(Arena& arena, std::string_view body, std::string_view uid,
                                                         bool mutating, ReviewVersion version);

// The rejection by a webhook, with the status it returned: admission webhook "x" denied the request: ...
struct WebhookDenial {
  Error error;
  std::string reason;  // As returned by the webhook; need not be known to Kubernetes.
};
WebhookDenial denied_by(std::string_view hook, const Value& status);
// Status 500 with the message: failed calling webhook "x": why
Error call_failed(std::string_view hook, std::string_view why);

}  // namespace holdfast::webhook
