// NodeRestriction: a kubelet changes its own Node, its own pods' status and what belongs to them, and nothing else. The
// rules and messages of plugin/pkg/admission/noderestriction in Kubernetes v1.36, with its feature gates at their
// defaults.

#include <algorithm>
#include <set>

#include "admission/plugin.h"
#include "base/api_error.h"
#include "base/base64.h"
#include "base/strings.h"
#include "base/text.h"
#include "kinds/pod_references.h"

namespace holdfast::admission {
namespace {

constexpr std::string_view kMirror = "kubernetes.io/config.mirror";
constexpr std::string_view kLeaseNamespace = "kube-node-lease";

std::string_view node_of(const Attributes& attributes) { return *attributes.node; }

// node "n1" ...
Error refuse_node(const Attributes& attributes, const Value& object, std::string_view why) {
  return refuse(attributes, object, "node " + go_quote(node_of(attributes)) + " " + std::string(why));
}

// An absent list or map, an empty one and null are the same.
bool same(const Value* a, const Value* b) {
  const bool no_a = a == nullptr || is_zero(*a), no_b = b == nullptr || is_zero(*b);
  if (no_a || no_b) return no_a == no_b;
  return equal(*a, *b);
}
template <class... Keys>
bool same_at(const Value& a, const Value& b, Keys... keys) {
  return same(a.get(keys...), b.get(keys...));
}

const Value& old_of(const Attributes& attributes) {
  static const Value kNone = Value::null();
  return attributes.old == nullptr ? kNone : *attributes.old;
}

std::optional<Value> find(const Attributes& attributes, std::string_view group, std::string_view plural,
                          std::string_view ns, std::string_view name) {
  return attributes.lookup.get(attributes.arena, group, plural, ns, name);
}

// The error of Kubernetes' listers, which name the kind.
Error missing(std::string_view kind, std::string_view name) { return not_found(GroupResource{"", kind}, name); }

bool has(const Value& map, std::string_view key) {
  const Value* found = map.find(key);
  return found != nullptr && !found->is_null();
}

// --- Mirror pods -----------------------------------------------------------------------------------------------------

// What a pod's volume needs from the API; empty if it needs nothing.
Result<std::string_view> needs_of_volume(const Value& volume) {
  static constexpr std::string_view kPlain[] = {"awsElasticBlockStore",
                                                "azureDisk",
                                                "cephfs",
                                                "cinder",
                                                "downwardAPI",
                                                "emptyDir",
                                                "fc",
                                                "flexVolume",
                                                "flocker",
                                                "gcePersistentDisk",
                                                "gitRepo",
                                                "hostPath",
                                                "image",
                                                "iscsi",
                                                "nfs",
                                                "photonPersistentDisk",
                                                "portworxVolume",
                                                "quobyte",
                                                "rbd",
                                                "scaleIO",
                                                "storageos",
                                                "vsphereVolume"};
  struct Need {
    std::string_view member, resource;
  };
  static constexpr Need kNeeds[] = {{"configMap", "configmaps (via configmap volumes)"},
                                    {"secret", "secrets (via secret volumes)"},
                                    {"csi", "csidrivers (via CSI volumes)"},
                                    {"glusterfs", "endpoints (via glusterFS volumes)"},
                                    {"persistentVolumeClaim", "persistentvolumeclaims"},
                                    {"ephemeral", "persistentvolumeclaims (via ephemeral volumes)"},
                                    {"azureFile", "secrets (via azureFile volumes)"}};
  static constexpr Need kProjected[] = {{"configMap", "configmaps (via projected volumes)"},
                                        {"secret", "secrets (via projected volumes)"},
                                        {"serviceAccountToken", "serviceaccounts (via projected volumes)"},
                                        {"clusterTrustBundle", "clustertrustbundles"},
                                        {"podCertificate", "podcertificates"}};
  for (const std::string_view plain : kPlain) {
    if (has(volume, plain)) return std::string_view();
  }
  for (const Need& need : kNeeds) {
    if (has(volume, need.member)) return need.resource;
  }
  if (!has(volume, "projected")) {
    return bad_request("unknown volume type for volume  " + go_quote(volume.text_at("name")));
  }
  for (const Value& source : volume.items_at("projected", "sources")) {
    for (const Need& need : kProjected) {
      if (has(source, need.member)) return need.resource;
    }
    if (!has(source, "downwardAPI")) {
      return bad_request("unknown source for projected volume " + go_quote(volume.text_at("name")));
    }
  }
  return std::string_view();
}

// The first kind of objects that the pod refers to; empty if there is none.
Result<std::string_view> needs_of(const Value& pod) {
  if (!pod.text_at("spec", "serviceAccountName").empty()) return std::string_view("serviceaccounts");
  bool secrets = false, config_maps = false;
  kinds::visit_secrets(pod, [&](std::string_view) { secrets = true; });
  if (secrets) return std::string_view("secrets");
  kinds::visit_config_maps(pod, [&](std::string_view) { config_maps = true; });
  if (config_maps) return std::string_view("configmaps");
  if (!pod.items_at("spec", "resourceClaims").empty()) return std::string_view("resourceclaims");
  for (const Value& volume : pod.items_at("spec", "volumes")) {
    Result<std::string_view> needs = needs_of_volume(volume);
    if (!needs || !needs->empty()) return needs;
  }
  return std::string_view();
}

Result<Unit> check_owner(Attributes& attributes, const Value& pod) {
  const std::string node(node_of(attributes));
  const std::span<const Value> owners = pod.items_at("metadata", "ownerReferences");
  if (owners.size() > 1) {
    return refuse_node(attributes, pod, "can only create pods with a single owner reference set to itself");
  }
  if (owners.empty() || owners[0].text_at("apiVersion") != "v1" || owners[0].text_at("kind") != "Node" ||
      owners[0].text_at("name") != node) {
    return refuse_node(attributes, pod, "can only create pods with an owner reference set to itself");
  }
  if (!is_true(owners[0], "controller")) {
    return refuse_node(attributes, pod, "can only create pods with a controller owner reference set to itself");
  }
  if (is_true(owners[0], "blockOwnerDeletion")) {
    return refuse_node(attributes, pod, "must not set blockOwnerDeletion on an owner reference");
  }
  const std::optional<Value> live = find(attributes, "", "nodes", "", node);
  if (!live) return missing("node", node);
  const std::string_view uid = owners[0].text_at("uid"), live_uid = live->text_at("metadata", "uid");
  if (uid == live_uid) return Unit{};
  return refuse(attributes, pod,
                "node " + node + " UID mismatch: expected " + std::string(uid) + " got " + std::string(live_uid));
}

Result<Unit> admit_mirror_pod(Attributes& attributes, const Value& pod) {
  if (pod.get("metadata", "annotations", kMirror) == nullptr) {
    return refuse(attributes, pod,
                  "pod does not have " + go_quote(kMirror) + " annotation, node " + go_quote(node_of(attributes)) +
                      " can only create mirror pods");
  }
  if (pod.text_at("spec", "nodeName") != node_of(attributes)) {
    return refuse_node(attributes, pod, "can only create pods with spec.nodeName set to itself");
  }
  if (Result<Unit> owned = check_owner(attributes, pod); !owned) return owned;
  const Result<std::string_view> needs = needs_of(pod);
  if (!needs) return refuse(attributes, pod, "error checking mirror pod for API references: " + needs.error().message);
  if (needs->empty()) return Unit{};
  return refuse_node(attributes, pod, "can not create pods that reference " + std::string(*needs));
}

// --- Pods ------------------------------------------------------------------------------------------------------------

bool same_claim_statuses(const Value& a, const Value& b) {
  const std::span<const Value> of_a = a.items_at("status", "resourceClaimStatuses"),
                               of_b = b.items_at("status", "resourceClaimStatuses");
  return std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), [](const Value& one, const Value& other) {
    return one.text_at("name") == other.text_at("name") && same_at(one, other, "resourceClaimName") &&
           has(one, "resourceClaimName") == has(other, "resourceClaimName");
  });
}

Result<Unit> admit_pod_status(Attributes& attributes, const Value& pod) {
  if (attributes.operation != Operation::Update) {
    return refuse(attributes, pod, "unexpected operation " + go_quote(to_string(attributes.operation)));
  }
  const Value& old = old_of(attributes);
  if (old.text_at("spec", "nodeName") != node_of(attributes)) {
    return refuse_node(attributes, pod, "can only update pod status for pods with spec.nodeName set to itself");
  }
  if (!same_at(pod, old, "metadata", "labels")) {
    return refuse_node(attributes, pod, "cannot update labels through pod status");
  }
  if (!same_claim_statuses(pod, old)) return refuse_node(attributes, pod, "cannot update resource claim statues");
  if (!same_at(pod, old, "status", "extendedResourceClaimStatus")) {
    return refuse_node(attributes, pod, "cannot update extended resource claim status");
  }
  return Unit{};
}

Result<Unit> admit_eviction(Attributes& attributes, const Value& eviction) {
  if (attributes.operation != Operation::Create) {
    return refuse(attributes, eviction, "unexpected operation " + std::string(to_string(attributes.operation)));
  }
  const std::string_view name = attributes.name;
  if (name.empty()) return refuse(attributes, eviction, "could not determine pod from request data");
  const std::optional<Value> pod = find(attributes, "", "pods", attributes.ns, name);
  if (!pod) return missing("pod", name);
  if (pod->text_at("spec", "nodeName") == node_of(attributes)) return Unit{};
  return refuse(attributes, eviction,
                "node " + std::string(node_of(attributes)) + " can only evict pods with spec.nodeName set to itself");
}

Result<Unit> admit_pod(Attributes& attributes, const Value& pod) {
  if (attributes.subresource == "status") return admit_pod_status(attributes, pod);
  if (attributes.subresource == "eviction") return admit_eviction(attributes, pod);
  if (!attributes.subresource.empty()) {
    return refuse(attributes, pod,
                  "unexpected pod subresource " + go_quote(attributes.subresource) +
                      ", only 'status' and 'eviction' are allowed");
  }
  if (attributes.operation == Operation::Create) return admit_mirror_pod(attributes, pod);
  if (attributes.operation != Operation::Delete) {
    return refuse(attributes, pod,
                  "unexpected operation " + go_quote(to_string(attributes.operation)) + ", node " +
                      go_quote(node_of(attributes)) + " can only create and delete mirror pods");
  }
  if (old_of(attributes).text_at("spec", "nodeName") == node_of(attributes)) return Unit{};
  return refuse_node(attributes, pod, "can only delete pods with spec.nodeName set to itself");
}

// --- Nodes -----------------------------------------------------------------------------------------------------------

std::string_view domain_of(std::string_view label) {
  const size_t slash = label.find('/');
  return slash == std::string_view::npos ? std::string_view() : label.substr(0, slash);
}
bool is_within(std::string_view domain, std::string_view parent) {
  return domain == parent || (domain.ends_with(parent) && domain[domain.size() - parent.size() - 1] == '.');
}

// Labels with which a node could attract pods that are not meant for it.
bool is_forbidden_label(std::string_view label) {
  static constexpr std::string_view kKubelets[] = {"kubernetes.io/hostname",
                                                   "topology.kubernetes.io/zone",
                                                   "topology.kubernetes.io/region",
                                                   "failure-domain.beta.kubernetes.io/zone",
                                                   "failure-domain.beta.kubernetes.io/region",
                                                   "beta.kubernetes.io/instance-type",
                                                   "node.kubernetes.io/instance-type",
                                                   "kubernetes.io/os",
                                                   "kubernetes.io/arch",
                                                   "beta.kubernetes.io/os",
                                                   "beta.kubernetes.io/arch"};
  const std::string_view domain = domain_of(label);
  if (is_within(domain, "node-restriction.kubernetes.io")) return true;
  if (!is_within(domain, "kubernetes.io") && !is_within(domain, "k8s.io")) return false;
  if (is_within(domain, "kubelet.kubernetes.io") || is_within(domain, "node.kubernetes.io")) return false;
  return std::find(std::begin(kKubelets), std::end(kKubelets), label) == std::end(kKubelets);
}

// The forbidden ones among the labels that differ, sorted.
std::string forbidden_labels(const Value& node, const Value& old) {
  std::set<std::string_view> found;
  for (const auto& [one, other] : {std::pair(&node, &old), std::pair(&old, &node)}) {
    for (const Member& label : one->members_at("metadata", "labels")) {
      const Value* counterpart = other->get("metadata", "labels", label.key);
      const bool differs = counterpart == nullptr || !equal(*counterpart, label.value);
      if (differs && is_forbidden_label(label.key)) found.insert(label.key);
    }
  }
  return join(found, ", ");
}

Result<Unit> admit_node(Attributes& attributes, const Value& node) {
  if (attributes.name != node_of(attributes)) {
    return refuse_node(attributes, node, "is not allowed to modify node " + go_quote(attributes.name));
  }
  if (attributes.operation == Operation::Create) {
    if (has(node, "spec") && has(*node.find("spec"), "configSource")) {
      return refuse_node(attributes, node, "is not allowed to create pods with a non-nil configSource");
    }
    if (const std::string labels = forbidden_labels(node, Value::null()); !labels.empty()) {
      return refuse_node(attributes, node, "is not allowed to set the following labels: " + labels);
    }
  }
  if (attributes.operation != Operation::Update) return Unit{};
  const Value& old = old_of(attributes);
  const Value* source = node.get("spec", "configSource");
  if (source != nullptr && !source->is_null() && !same_at(node, old, "spec", "configSource")) {
    return refuse_node(attributes, node, "is not allowed to update configSource to a new non-nil configSource");
  }
  if (!same_at(node, old, "spec", "taints")) return refuse_node(attributes, node, "is not allowed to modify taints");
  if (!same_at(node, old, "metadata", "ownerReferences")) {
    return refuse_node(attributes, node, "is not allowed to modify ownerReferences");
  }
  if (const std::string labels = forbidden_labels(node, old); !labels.empty()) {
    return refuse(attributes, node, "is not allowed to modify labels: " + labels);
  }
  return Unit{};
}

// --- Claims ----------------------------------------------------------------------------------------------------------

// Without what a kubelet may change.
Value bare_claim(Arena& arena, Value claim) {
  static constexpr std::string_view kMetadata[] = {"resourceVersion", "managedFields"};
  static constexpr std::string_view kStatus[] = {"capacity", "conditions", "allocatedResourceStatuses",
                                                 "allocatedResources"};
  for (const std::string_view key : kMetadata) {
    const std::string_view path[] = {"metadata", key};
    claim = without_path(arena, claim, path);
  }
  for (const std::string_view key : kStatus) {
    const std::string_view path[] = {"status", key};
    claim = without_path(arena, claim, path);
  }
  return claim;
}

Result<Unit> admit_claim(Attributes& attributes, const Value& claim) {
  if (attributes.subresource != "status") return refuse(attributes, claim, "may only update PVC status");
  if (attributes.operation != Operation::Update) {
    return refuse(attributes, claim, "unexpected operation " + go_quote(to_string(attributes.operation)));
  }
  const Value now = bare_claim(attributes.arena, claim), before = bare_claim(attributes.arena, old_of(attributes));
  for (const std::string_view part : {"metadata", "spec", "status"}) {
    if (same_at(now, before, part)) continue;
    return refuse_node(attributes, claim,
                       "is not allowed to update fields other than status.quantity and status.conditions: " +
                           std::string(part) + " differs");
  }
  return Unit{};
}

// --- Tokens ----------------------------------------------------------------------------------------------------------

// The CSI driver that replaces a volume of a pod or a PersistentVolume's own type; empty if there is none.
std::string_view driver_of(const Value& source) {
  struct Migrated {
    std::string_view member, driver;
  };
  static constexpr Migrated kMigrated[] = {
      {"awsElasticBlockStore", "ebs.csi.aws.com"}, {"gcePersistentDisk", "pd.csi.storage.gke.io"},
      {"cinder", "cinder.csi.openstack.org"},      {"azureDisk", "disk.csi.azure.com"},
      {"azureFile", "file.csi.azure.com"},         {"vsphereVolume", "csi.vsphere.vmware.com"},
      {"portworxVolume", "pxd.portworx.com"}};
  if (const std::string_view driver = source.text_at("csi", "driver"); !driver.empty()) return driver;
  for (const Migrated& migrated : kMigrated) {
    if (has(source, migrated.member)) return migrated.driver;
  }
  return {};
}

Result<std::string> driver_of_claim(const Attributes& attributes, std::string_view claim_name) {
  const std::optional<Value> claim = find(attributes, "", "persistentvolumeclaims", attributes.ns, claim_name);
  if (!claim) return missing("persistentvolumeclaim", claim_name);
  const std::string_view volume_name = claim->text_at("spec", "volumeName");
  const std::optional<Value> volume = find(attributes, "", "persistentvolumes", "", volume_name);
  if (!volume) return missing("persistentvolume", volume_name);
  const Value* spec = volume->find("spec");
  return spec == nullptr ? std::string() : std::string(driver_of(*spec));
}

Result<std::string> driver_of_volume(const Attributes& attributes, const Value& pod, const Value& volume) {
  const Value* ephemeral = volume.get("ephemeral", "volumeClaimTemplate");
  if (ephemeral != nullptr && !ephemeral->is_null()) {
    return driver_of_claim(attributes,
                           std::string(pod.text_at("metadata", "name")) + "-" + std::string(volume.text_at("name")));
  }
  if (has(volume, "persistentVolumeClaim")) {
    return driver_of_claim(attributes, volume.text_at("persistentVolumeClaim", "claimName"));
  }
  return std::string(driver_of(volume));
}

Result<bool> driver_has_audience(const Attributes& attributes, std::string_view name, std::string_view audience) {
  const std::optional<Value> driver = find(attributes, "storage.k8s.io", "csidrivers", "", name);
  if (!driver) return not_found(GroupResource{"storage.k8s.io", "csidriver"}, name);
  const std::span<const Value> requests = driver->items_at("spec", "tokenRequests");
  return std::any_of(requests.begin(), requests.end(),
                     [&](const Value& request) { return request.text_at("audience") == audience; });
}

// Whether a volume of the pod needs tokens for the audience.
Result<bool> uses_audience(const Attributes& attributes, const Value& pod, std::string_view audience) {
  std::vector<std::string> errors;
  for (const Value& volume : pod.items_at("spec", "volumes")) {
    for (const Value& source : volume.items_at("projected", "sources")) {
      if (has(source, "serviceAccountToken") && source.text_at("serviceAccountToken", "audience") == audience) {
        return true;
      }
    }
    Result<std::string> driver = driver_of_volume(attributes, pod, volume);
    if (driver && driver->empty()) continue;
    Result<bool> used = driver ? driver_has_audience(attributes, *driver, audience) : driver.take_error();
    if (!used) {
      errors.push_back(used.error().message);
    } else if (*used) {
      return true;
    }
  }
  if (errors.empty()) return false;
  return bad_request(aggregate_text(errors));
}

Result<Unit> check_audience(Attributes& attributes, const Value& request, const Value& pod) {
  const std::span<const Value> audiences = request.items_at("spec", "audiences");
  if (audiences.size() > 1) return refuse(attributes, request, "node may only request 0 or 1 audiences");
  std::string_view audience;
  if (!audiences.empty() && audiences[0].is_string()) audience = audiences[0].as_string();
  const Result<bool> used = uses_audience(attributes, pod, audience);
  if (!used) {
    return refuse(attributes, request, "error validating audience " + go_quote(audience) + ": " + used.error().message);
  }
  if (*used || !attributes.lookup.denied({.verb = "request-serviceaccounts-token-audience",
                                          .resource = audience,
                                          .ns = attributes.ns,
                                          .name = attributes.name})) {
    return Unit{};
  }
  return refuse(attributes, request,
                "audience " + go_quote(audience) + " not found in pod spec volume, " + std::string(attributes.user) +
                    " is not authorized to request tokens for this audience");
}

Result<Unit> admit_token(Attributes& attributes, const Value& request) {
  if (attributes.operation != Operation::Create || attributes.subresource != "token") return Unit{};
  const auto bound = [&request](std::string_view key) { return request.text_at("spec", "boundObjectRef", key); };
  const std::string_view name = bound("name"), uid = bound("uid");
  if (bound("apiVersion") != "v1" || bound("kind") != "Pod" || name.empty()) {
    return refuse(attributes, request, "node requested token not bound to a pod");
  }
  if (uid.empty()) return refuse(attributes, request, "node requested token with a pod binding without a uid");
  const std::optional<Value> pod = find(attributes, "", "pods", attributes.ns, name);
  if (!pod) return missing("pod", name);
  if (uid != pod->text_at("metadata", "uid")) {
    return refuse(attributes, request,
                  "the UID in the bound object reference (" + std::string(uid) +
                      ") does not match the UID in record. The object might have been deleted and then recreated");
  }
  if (pod->text_at("spec", "nodeName") != node_of(attributes)) {
    return refuse(attributes, request, "node requested token bound to a pod scheduled on a different node");
  }
  return check_audience(attributes, request, *pod);
}

// --- Leases, CSINodes, ResourceSlices --------------------------------------------------------------------------------

Result<Unit> admit_lease(Attributes& attributes, const Value& lease) {
  if (attributes.ns != kLeaseNamespace) {
    return refuse(attributes, lease,
                  "can only access leases in the " + go_quote(kLeaseNamespace) + " system namespace");
  }
  if (attributes.name == node_of(attributes)) return Unit{};
  return refuse(attributes, lease, "can only access node lease with the same name as the requesting node");
}

Result<Unit> admit_csi_node(Attributes& attributes, const Value& csi_node) {
  if (attributes.name == node_of(attributes)) return Unit{};
  return refuse(attributes, csi_node, "can only access CSINode with the same name as the requesting node");
}

// The authorizer has decided about the others; it knows neither what is created nor which objects a deletecollection
// deletes.
Result<Unit> admit_slice(Attributes& attributes, const Value& slice) {
  const bool created = attributes.operation == Operation::Create, deleted = attributes.operation == Operation::Delete;
  if (!created && !deleted) return Unit{};
  const Value& concerned = created ? slice : old_of(attributes);
  if (concerned.text_at("spec", "nodeName") == node_of(attributes)) return Unit{};
  return refuse(attributes, slice,
                std::string("can only ") + (created ? "create" : "delete") +
                    " ResourceSlice with the same NodeName as the requesting node");
}

// --- Certificate signing requests ------------------------------------------------------------------------------------

// Reads DER: tag, length, content.
class DerReader {
 public:
  explicit DerReader(std::string_view bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }
  // The content of the next element; nullopt if it is not one of this tag (0 for any), or is cut off.
  std::optional<std::string_view> next(uint8_t tag) {
    if (rest_.size() < 2 || (tag != 0 && static_cast<uint8_t>(rest_[0]) != tag)) return std::nullopt;
    size_t length = static_cast<uint8_t>(rest_[1]), head = 2;
    if (length >= 0x80) {
      const size_t count = length & 0x7f;
      if (count == 0 || count > 4 || rest_.size() < 2 + count) return std::nullopt;
      length = 0;
      for (size_t i = 0; i < count; ++i) length = length << 8 | static_cast<uint8_t>(rest_[2 + i]);
      head += count;
    }
    if (rest_.size() - head < length) return std::nullopt;
    const std::string_view content = rest_.substr(head, length);
    rest_.remove_prefix(head + length);
    return content;
  }

 private:
  std::string_view rest_;
};

// The common name in the subject of a PKCS #10 request in PEM; nullopt if it cannot be read. The last one counts, as in
// Go.
std::optional<std::string> common_name_of(std::string_view pem) {
  constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE REQUEST-----", kEnd = "-----END CERTIFICATE REQUEST-----";
  constexpr std::string_view kCommonName("\x55\x04\x03", 3);
  constexpr uint8_t kSequence = 0x30, kSet = 0x31, kInteger = 0x02, kObjectId = 0x06;
  const size_t begin = pem.find(kBegin), end = pem.find(kEnd);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin + kBegin.size()) {
    return std::nullopt;
  }
  std::string letters;
  for (const char c : pem.substr(begin + kBegin.size(), end - begin - kBegin.size())) {
    if (c != '\n' && c != '\r' && c != ' ' && c != '\t') letters += c;
  }
  const std::optional<std::string> der = base64_decode(letters);
  if (!der) return std::nullopt;
  DerReader file(*der);
  const std::optional<std::string_view> request = file.next(kSequence);
  if (!request) return std::nullopt;
  const std::optional<std::string_view> info = DerReader(*request).next(kSequence);
  if (!info) return std::nullopt;
  DerReader members(*info);
  if (!members.next(kInteger)) return std::nullopt;
  const std::optional<std::string_view> subject = members.next(kSequence);
  if (!subject) return std::nullopt;
  std::string name;
  for (DerReader sets(*subject); !sets.at_end();) {
    const std::optional<std::string_view> set = sets.next(kSet);
    if (!set) return std::nullopt;
    for (DerReader pairs(*set); !pairs.at_end();) {
      const std::optional<std::string_view> pair = pairs.next(kSequence);
      if (!pair) return std::nullopt;
      DerReader attribute(*pair);
      const std::optional<std::string_view> id = attribute.next(kObjectId);
      const std::optional<std::string_view> value = attribute.next(0);
      if (!id || !value) return std::nullopt;
      if (*id == kCommonName) name = *value;
    }
  }
  return name;
}

Result<Unit> admit_signing_request(Attributes& attributes, const Value& request) {
  if (attributes.operation != Operation::Create) return Unit{};
  const std::string_view signer = request.text_at("spec", "signerName");
  if (signer != "kubernetes.io/kubelet-serving" && signer != "kubernetes.io/kube-apiserver-client-kubelet") {
    return Unit{};
  }
  const std::optional<std::string> pem = base64_decode(request.text_at("spec", "request"));
  const std::optional<std::string> name = pem ? common_name_of(*pem) : std::nullopt;
  if (!name) {
    return refuse(attributes, request, "unable to parse csr: PEM block type must be CERTIFICATE REQUEST");
  }
  const std::string wanted = "system:node:" + std::string(node_of(attributes));
  if (*name == wanted) return Unit{};
  return refuse(attributes, request, "can only create a node CSR with CN=" + wanted);
}

// --- The plugin ------------------------------------------------------------------------------------------------------

using Rule = Result<Unit> (*)(Attributes& attributes, const Value& object);

Rule rule_of(const types::Resource& resource) {
  struct Row {
    std::string_view group, plural;
    Rule rule;
  };
  static constexpr Row kRules[] = {{"", "pods", admit_pod},
                                   {"", "nodes", admit_node},
                                   {"", "persistentvolumeclaims", admit_claim},
                                   {"", "serviceaccounts", admit_token},
                                   {"coordination.k8s.io", "leases", admit_lease},
                                   {"storage.k8s.io", "csinodes", admit_csi_node},
                                   {"resource.k8s.io", "resourceslices", admit_slice},
                                   {"certificates.k8s.io", "certificatesigningrequests", admit_signing_request}};
  const auto* found = std::find_if(std::begin(kRules), std::end(kRules), [&resource](const Row& row) {
    return row.group == resource.group && row.plural == resource.plural;
  });
  return found == std::end(kRules) ? nullptr : found->rule;
}

// Also resources without a rule: a node without a name may change nothing.
bool is_change(const types::Resource&, std::string_view, Operation operation) {
  return operation != Operation::Connect;
}

Result<Unit> restrict_node(Attributes& attributes, Draft::Node object) {
  if (!attributes.node) return Unit{};
  if (attributes.node->empty()) {
    return refuse(attributes, object.value(), "could not determine node from user " + go_quote(attributes.user));
  }
  const Rule rule = rule_of(attributes.resource);
  return rule == nullptr ? Result<Unit>(Unit{}) : rule(attributes, object.value());
}

}  // namespace

const Plugin kNodeRestriction = {.name = "NodeRestriction", .handles = is_change, .admit = restrict_node};

}  // namespace holdfast::admission
