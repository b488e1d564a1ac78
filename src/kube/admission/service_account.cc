// ServiceAccount: pods run as an existing account, with its token and image pull secrets.
#include <random>
#include <unordered_set>

#include "admission/plugin.h"
#include "base/hash.h"
#include "base/strings.h"
#include "base/text.h"
#include "kinds/kinds.h"

namespace holdfast::admission {
namespace {

constexpr std::string_view kMirrorAnnotation = "kubernetes.io/config.mirror";
constexpr std::string_view kEnforceAnnotation = "kubernetes.io/enforce-mountable-secrets";
constexpr std::string_view kMountPath = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr std::string_view kVolumePrefix = "kube-api-access-";
// Slightly more than an hour; the server recognizes tokens of this volume by it (verbs/token_request.cc).
constexpr int64_t kTokenSeconds = 3607;

bool concerns(const types::Resource& resource, std::string_view subresource, Operation operation) {
  if (!is_core(resource, "pods")) return false;
  if (subresource.empty()) return operation == Operation::Create;
  return subresource == "ephemeralcontainers" && operation == Operation::Update;
}

bool is_mirror(const Value& pod) { return pod.get("metadata", "annotations", kMirrorAnnotation) != nullptr; }

Result<Value> account_of(const Attributes& attributes, const Value& pod) {
  const std::string_view name = pod.text_at("spec", "serviceAccountName");
  std::optional<Value> account = attributes.lookup.get(attributes.arena, "", "serviceaccounts", attributes.ns, name);
  if (account) return *account;
  return refuse(attributes, pod,
                "error looking up service account " + std::string(attributes.ns) + "/" + std::string(name) +
                    ": serviceaccount " + go_quote(name) + " not found");
}

bool wants_token(const Value& pod, const Value& account) {
  const Value* own = pod.get("spec", "automountServiceAccountToken");
  if (own != nullptr && own->is_bool()) return own->as_bool();
  const Value* usual = account.find("automountServiceAccountToken");
  return usual == nullptr || !usual->is_bool() || usual->as_bool();
}

template <class... Pairs>
Value map_of(Arena& arena, Pairs... pairs) {
  MapBuilder map(arena);
  (map.add(pairs.first, pairs.second), ...);
  return map.build();
}
std::pair<std::string_view, Value> is(std::string_view key, Value value) { return {key, value}; }

Value list_of_one(Arena& arena, Value item) {
  ListBuilder list(arena);
  list.add(item);
  return list.build();
}

Value token_volume(Arena& arena, Value name) {
  ListBuilder sources(arena);
  sources.add(
      map_of(arena, is("serviceAccountToken", map_of(arena, is("expirationSeconds", Value::integer(kTokenSeconds)),
                                                     is("path", Value::string("token"))))));
  sources.add(map_of(
      arena, is("configMap", map_of(arena, is("name", Value::string("kube-root-ca.crt")),
                                    is("items", list_of_one(arena, map_of(arena, is("key", Value::string("ca.crt")),
                                                                          is("path", Value::string("ca.crt")))))))));
  const Value own_namespace =
      map_of(arena, is("apiVersion", Value::string("v1")), is("fieldPath", Value::string("metadata.namespace")));
  sources.add(map_of(
      arena, is("downwardAPI",
                map_of(arena, is("items", list_of_one(arena, map_of(arena, is("path", Value::string("namespace")),
                                                                    is("fieldRef", own_namespace))))))));
  return map_of(
      arena, is("name", name),
      is("projected", map_of(arena, is("sources", sources.build()), is("defaultMode", Value::integer(0644)))));
}

void mount_token(Attributes& attributes, Draft::Node pod) {
  static thread_local std::mt19937_64 random{std::random_device{}()};
  Arena& arena = attributes.arena;
  Value name = Value::null();
  for (const Value& volume : pod.value().items_at("spec", "volumes")) {
    if (!volume.text_at("name").starts_with(kVolumePrefix)) continue;
    name = *volume.find("name");
    break;
  }
  const bool has_volume = !name.is_null();
  if (!has_volume) name = Value::string(arena, kinds::generate_name(kVolumePrefix, random()));
  const Value mount =
      map_of(arena, is("name", name), is("readOnly", Value::boolean(true)), is("mountPath", Value::string(kMountPath)));
  bool needs_volume = false;
  Draft::Node spec = pod.child("spec");
  for (const std::string_view list : {"initContainers", "containers"}) {
    for (Draft::Node container : spec.list(list)) {
      bool mounted = false;
      for (const Value& other : container.value().items_at("volumeMounts")) {
        mounted = mounted || other.text_at("mountPath") == kMountPath;
      }
      if (mounted) continue;
      container.append("volumeMounts", mount);
      needs_volume = true;
    }
  }
  if (needs_volume && !has_volume) spec.append("volumes", token_volume(arena, name));
}

// --- Errors ---

// Visits the secrets that a container refers to, each with a function that makes Kubernetes' name for the location: it
// has the names of container and variable, which are of any length at this point.
template <class Visit>
void visit_container_secrets(const Value& container, std::string_view kind, Visit&& visit) {
  const auto prefix = [&] { return std::string(kind) + " " + std::string(container.text_at("name")); };
  for (const Value& env : container.items_at("env")) {
    if (const Value* key = env.get("valueFrom", "secretKeyRef"); key != nullptr && key->is_map()) {
      visit([&] { return prefix() + " with envVar " + std::string(env.text_at("name")); }, key->text_at("name"));
    }
  }
  for (const Value& from : container.items_at("envFrom")) {
    if (const Value* secret = from.find("secretRef"); secret != nullptr && secret->is_map()) {
      visit([&] { return prefix() + " with envFrom"; }, secret->text_at("name"));
    }
  }
}

constexpr std::pair<std::string_view, std::string_view> kContainerLists[] = {{"initContainers", "init container"},
                                                                             {"containers", "container"}};

bool refers_to_secrets(const Value& pod) {
  if (!pod.items_at("spec", "imagePullSecrets").empty()) return true;
  bool found = false;
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const Value& container : pod.items_at("spec", list)) {
      visit_container_secrets(container, "", [&](const auto&, std::string_view) { found = true; });
    }
  }
  for (const Value& volume : pod.items_at("spec", "volumes")) {
    found = found || volume.find("secret") != nullptr || volume.find("azureFile") != nullptr;
    for (const std::string_view kind : {"cephfs", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"}) {
      found = found || volume.get(kind, "secretRef") != nullptr;
    }
    found = found || volume.get("csi", "nodePublishSecretRef") != nullptr;
    for (const Value& source : volume.items_at("projected", "sources"))
      found = found || source.find("secret") != nullptr;
  }
  return found;
}

Result<Unit> check_mirror(const Attributes& attributes, const Value& pod) {
  if (!pod.text_at("spec", "serviceAccountName").empty()) {
    return refuse(attributes, pod, "a mirror pod may not reference service accounts");
  }
  if (refers_to_secrets(pod)) return refuse(attributes, pod, "a mirror pod may not reference secrets");
  for (const Value& volume : pod.items_at("spec", "volumes")) {
    for (const Value& source : volume.items_at("projected", "sources")) {
      if (source.find("serviceAccountToken") == nullptr) continue;
      return refuse(attributes, pod, "a mirror pod may not use ServiceAccountToken volume projections");
    }
  }
  return Unit{};
}

// The names in a list of an account. There may be thousands, and a pod may refer to as many.
class SecretNames {
 public:
  SecretNames(const Value& account, std::string_view list) {
    for (const Value& secret : account.items_at(list)) names_.insert(secret.text_at("name"));
  }
  bool contains(std::string_view name) const { return names_.contains(name); }

 private:
  std::unordered_set<std::string_view, KeyHash> names_;
};

bool enforces_secrets(const Value& account) {
  return parse_bool(account.text_at("metadata", "annotations", kEnforceAnnotation)).value_or(false);
}

// The first secret that is not listed by an account with restricted secrets.
std::string foreign_secret(const Value& account, const Value& pod, bool ephemeral) {
  const std::string name(account.text_at("metadata", "name"));
  const SecretNames secrets(account, "secrets"), pull_secrets(account, "imagePullSecrets");
  std::string problem;
  auto check = [&](const auto& place, std::string_view secret) {
    if (!problem.empty() || secrets.contains(secret)) return;
    problem = place() + " referencing secret.secretName=\"" + std::string(secret) +
              "\" is not allowed because service account " + name + " does not reference that secret";
  };
  if (ephemeral) {
    for (const Value& container : pod.items_at("spec", "ephemeralContainers")) {
      visit_container_secrets(container, "ephemeral container", check);
    }
    return problem;
  }
  for (const Value& volume : pod.items_at("spec", "volumes")) {
    const Value* source = volume.find("secret");
    if (source == nullptr || !source->is_map() || secrets.contains(source->text_at("secretName"))) continue;
    return "volume with secret.secretName=\"" + std::string(source->text_at("secretName")) +
           "\" is not allowed because service account " + name + " does not reference that secret";
  }
  for (const auto& [list, kind] : kContainerLists) {
    for (const Value& container : pod.items_at("spec", list)) visit_container_secrets(container, kind, check);
  }
  if (!problem.empty()) return problem;
  size_t index = 0;
  for (const Value& secret : pod.items_at("spec", "imagePullSecrets")) {
    if (!pull_secrets.contains(secret.text_at("name"))) {
      return "imagePullSecrets[" + std::to_string(index) + "].name=\"" + std::string(secret.text_at("name")) +
             "\" is not allowed because service account " + name + " does not reference that imagePullSecret";
    }
    ++index;
  }
  return "";
}

Result<Unit> check_pod(Attributes& attributes, const Value& pod) {
  const bool ephemeral = attributes.operation == Operation::Update;
  if (!ephemeral && is_mirror(pod)) return check_mirror(attributes, pod);
  if (pod.text_at("spec", "serviceAccountName").empty()) {
    return refuse(attributes, pod,
                  "no service account specified for pod " + std::string(attributes.ns) + "/" +
                      std::string(pod.text_at("metadata", "name")));
  }
  Result<Value> account = account_of(attributes, pod);
  if (!account) return account.take_error();
  if (!enforces_secrets(*account)) return Unit{};
  const std::string problem = foreign_secret(*account, pod, ephemeral);
  if (problem.empty()) return Unit{};
  // Matches upstream: this error for ephemeral containers is untyped.
  if (ephemeral) return Error{Reason::Unknown, problem};
  return refuse(attributes, pod, problem);
}

Result<Unit> complete_pod(Attributes& attributes, Draft::Node pod) {
  if (attributes.operation != Operation::Create) return Unit{};
  if (is_mirror(pod.value())) return check_mirror(attributes, pod.value());
  if (pod.value().text_at("spec", "serviceAccountName").empty()) {
    // The deprecated member mirrors the new one.
    for (const std::string_view key : {"serviceAccountName", "serviceAccount"}) {
      pod.child("spec").set(key, Value::string("default"));
    }
  }
  Result<Value> account = account_of(attributes, pod.value());
  if (!account) return account.take_error();
  if (wants_token(pod.value(), *account)) mount_token(attributes, pod);
  if (pod.value().items_at("spec", "imagePullSecrets").empty()) {
    for (const Value& secret : account->items_at("imagePullSecrets")) {
      pod.child("spec").append("imagePullSecrets", secret);
    }
  }
  return check_pod(attributes, pod.value());
}

}  // namespace

const Plugin kServiceAccount = {
    .name = "ServiceAccount", .handles = concerns, .admit = complete_pod, .validate = check_pod};

}  // namespace holdfast::admission
