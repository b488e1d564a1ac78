// Other servers that take part in this one's work: how they are reached, and what is said to admission webhooks.
//
//   Caller caller(loops, services);
//   Result<std::string> answer = co_await caller.post(loop, hook.client, body, std::chrono::seconds(10), agent,
//   nullptr);
//
// Everything but Caller is plain functions. Texts of errors are those that Kubernetes' users know.
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

// The users of a kubeconfig as credentials for webhooks (kubeConfigFile of a WebhookAdmissionConfiguration). The name
// of a user says which servers it is shown to: hook.example.com:8443, hook.default.svc, *.example.com, *. Files that it
// names are read again every minute, and after a server has rejected their contents.
//
// Threading: any thread.
class ClientCredentials {
 public:
  // Errors name the file, and the user.
  static Result<std::shared_ptr<ClientCredentials>> load(const std::string& kubeconfig);

  // What is shown to the server at `host_port`, such as hook.default.svc:443.
  struct Shown {
    std::optional<net::Identity> identity;
    std::vector<std::pair<std::string, std::string>> headers;
  };
  Result<Shown> for_server(std::string_view host_port);
  // The server answered 401.
  void rejected_by(std::string_view host_port);

  // The user for that server; empty: none, it is called anonymously.
  std::string_view user_for(std::string_view host_port) const;

 private:
  explicit ClientCredentials(client::Config::Users users) : users_(std::move(users)) {}

  const client::Config::Users users_;
  std::mutex mutex_;
  std::map<std::string, client::Credentials, std::less<>> read_;  // By user; guarded by mutex_.
};

// Where a webhook listens: a URL, or a service of the cluster.
struct ClientConfig {
  std::string url;
  std::optional<ServiceReference> service;
  std::string ca_pem;                              // The system's roots when empty.
  std::shared_ptr<ClientCredentials> credentials;  // Null: it is called anonymously.
};
// Of the `clientConfig` of a webhook. caBundle is base64.
ClientConfig client_config(const Value& value);

struct Address {
  std::string host;
  uint16_t port = 443;
};

// Finds the current address of a service. Any thread.
class Services {
 public:
  virtual ~Services() = default;
  virtual Result<Address> resolve(std::string_view ns, std::string_view name, uint16_t port) const = 0;
};

// How a server is trusted, and what is shown to it.
struct Trust {
  std::string server_name;
  std::string ca_pem;     // The system's roots when empty.
  bool insecure = false;  // Do not verify it.
  const net::Identity* identity = nullptr;
};

// Pools connections to other servers. Each loop has its own pool; calls run and resume on the given loop.
class Caller {
 public:
  // Both must outlive it.
  Caller(net::Loops& loops, const Services& services);
  ~Caller();

  // POSTs a review; the body of the response. An error's message is what Go's client would say:
  //   Post "https://hook.default.svc:443/x?timeout=10s": dial tcp 10.0.0.9:443: connect: connection refused
  //   an error on the server ("unknown") has prevented the request from succeeding
  // Ends with an error when it is cancelled, as well.
  Task<Result<std::string>> post(net::EventLoop& loop, ClientConfig config, std::string body,
                                 std::chrono::seconds timeout, std::string_view user_agent,
                                 std::shared_ptr<net::Cancellation> cancellation);

  // A client that keeps its connections. On the loop's thread.
  std::shared_ptr<net::Client> client(net::EventLoop& loop, const Address& address, const Trust& trust);

 private:
  struct PerLoop;

  const Services& services_;
  std::vector<std::unique_ptr<PerLoop>> loops_;
};

// ---------------------------------------------------------------------------------------------------- Which webhook

enum class Operation : uint8_t { Create, Update, Delete, Connect };
std::string_view to_string(Operation operation);

struct GroupVersionResource {
  std::string_view group, version, resource;
  bool operator==(const GroupVersionResource&) const = default;
};
struct GroupVersionKind {
  std::string_view group, version, kind;
};

// One of the rules of a webhook, or of what a policy matches.
struct Rule {
  enum class Scope : uint8_t { All, Cluster, Namespaced };
  std::vector<std::string> operations, groups, versions, resources;
  std::vector<std::string> names;  // Of a policy's resourceNames; empty: all.
  Scope scope = Scope::All;

  bool matches(Operation operation, const GroupVersionResource& resource, std::string_view subresource,
               std::string_view ns, std::string_view name) const;
};
Rule rule_of(const Value& value);

enum class ReviewVersion : uint8_t { None, V1, V1beta1 };

// One webhook of a configuration.
struct Hook {
  std::string configuration, name;
  std::string id;  // Tells it from all others: configuration, name, and its place among those of the same name.
  ClientConfig client;
  std::vector<Rule> rules;
  bool ignores_failure = false;
  bool matches_equivalent = true;
  bool has_side_effects = false;  // It rejects dry runs.
  bool reinvokes = false;         // reinvocationPolicy IfNeeded.
  std::chrono::seconds timeout{10};
  ReviewVersion review_version = ReviewVersion::None;  // The first of its versions that we know.
  Value namespace_selector, object_selector;           // metav1.LabelSelector; null or empty: everything.
  std::vector<expressions::Expression> conditions;     // matchConditions.
};
// The webhooks of one MutatingWebhookConfiguration or ValidatingWebhookConfiguration, in order. Selectors are in the
// configuration's memory.
std::vector<Hook> hooks_of(const Value& configuration);

// An empty selector selects everything, an absent one too.
bool selects_all(const Value& selector);
// Whether the old or the new object (null where there is none) has the labels.
bool selects_object(const Value& selector, const Value& object, const Value& old);
bool selects_namespace(const Value& selector, const Value* labels);

// ---------------------------------------------------------------------------------------------------- AdmissionReview

// One question. Views live as long as it does.
struct AdmissionQuestion {
  std::string uid;
  GroupVersionKind kind, request_kind;
  GroupVersionResource resource, request_resource;
  std::string_view subresource, name, ns;
  Operation operation = Operation::Create;
  const auth::UserInfo* user = nullptr;
  Value object, old, options;  // Null where there is none. Custom resources are printed with sorted keys.
  bool sorted = false;
  bool dry_run = false;
};
std::string admission_review(const AdmissionQuestion& question, ReviewVersion version);
// A user as reviews and policies show one; views of it. What it has not is left out.
Value user_value(Arena& arena, const auth::UserInfo& user);
Value extra_value(Arena& arena, const auth::UserInfo& user);

struct AdmissionAnswer {
  bool allowed = false;
  std::string patch;  // JSON patch, decoded from base64; empty: none.
  Value status;       // Null: none.
  std::vector<std::string> warnings;
  std::vector<std::pair<std::string, std::string>> audit_annotations;
};
// The message of an error is what follows `failed calling webhook "x": `.
Result<AdmissionAnswer> read_admission_answer(Arena& arena, std::string_view body, std::string_view uid, bool mutating,
                                              ReviewVersion version);

// The refusal of a webhook, with the status it gave: admission webhook "x" denied the request: ...
struct Refusal {
  Error error;
  std::string reason;  // In the webhook's own words, which need not be one that Kubernetes knows.
};
Refusal denied_by(std::string_view hook, const Value& status);
// failed calling webhook "x": why, as 500.
Error call_failed(std::string_view hook, std::string_view why);

}  // namespace holdfast::webhook
