#include <algorithm>
#include <mutex>

#include "kinds/pod_references.h"
#include "node_access/node_access.h"

namespace holdfast::node_access {
namespace {

constexpr std::string_view kMirror = "kubernetes.io/config.mirror";

// The claim of a pod's volume; empty if it has none. That of an ephemeral volume is named after pod and volume.
std::string claim_in(std::string_view pod_name, const Value& volume) {
  if (const Value* claim = volume.find("persistentVolumeClaim"); claim != nullptr && claim->is_map()) {
    return std::string(claim->text_at("claimName"));
  }
  if (const Value* ephemeral = volume.find("ephemeral"); ephemeral == nullptr || !ephemeral->is_map()) return {};
  return std::string(pod_name) + "-" + std::string(volume.text_at("name"));
}

// The ResourceClaim of an entry of spec.resourceClaims; empty if there is none, or none yet.
std::string_view resource_claim_in(const Value& pod, const Value& entry) {
  if (const std::string_view name = entry.text_at("resourceClaimName"); !name.empty()) return name;
  if (entry.text_at("resourceClaimTemplateName").empty()) return {};
  for (const Value& status : pod.items_at("status", "resourceClaimStatuses")) {
    if (status.text_at("name") == entry.text_at("name")) return status.text_at("resourceClaimName");
  }
  return {};
}

struct SecretName {
  std::string_view ns, name;
};

// The secrets of a volume that its node needs; those of the controller are not among them. Matches VisitPVSecretNames
// in pkg/api/v1/persistentvolume/util.go: without a namespace, older volumes mean that of the claim.
std::vector<SecretName> secrets_in(const Value& volume) {
  std::vector<SecretName> secrets;
  const std::string_view claim_ns = volume.text_at("spec", "claimRef", "namespace");
  const auto add = [&](std::string_view ns, std::string_view name) {
    if (!name.empty()) secrets.push_back({ns, name});
  };
  const auto or_claims = [&](std::string_view ns) { return ns.empty() ? claim_ns : ns; };
  add(or_claims(volume.text_at("spec", "azureFile", "secretNamespace")),
      volume.text_at("spec", "azureFile", "secretName"));
  for (const std::string_view source : {"cephfs", "flexVolume", "rbd", "scaleIO", "iscsi"}) {
    add(or_claims(volume.text_at("spec", source, "secretRef", "namespace")),
        volume.text_at("spec", source, "secretRef", "name"));
  }
  for (const std::string_view source : {"cinder", "storageos"}) {
    add(volume.text_at("spec", source, "secretRef", "namespace"), volume.text_at("spec", source, "secretRef", "name"));
  }
  for (const std::string_view reference : {"nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"}) {
    add(volume.text_at("spec", "csi", reference, "namespace"), volume.text_at("spec", "csi", reference, "name"));
  }
  return secrets;
}

char letter_of(Kind kind) { return static_cast<char>('a' + static_cast<int>(kind)); }
bool is_claim(std::string_view name) { return name[0] == letter_of(Kind::Claim); }

void keep_once(std::vector<std::string>& names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
}

}  // namespace

// --- Names -----------------------------------------------------------------------------------------------------------

Graph::Id Graph::Names::take(std::string_view name) {
  auto found = ids_.find(name);
  if (found == ids_.end()) {
    Id id = 0;
    if (free_.empty()) {
      id = static_cast<Id>(slots_.size());
      slots_.emplace_back();
    } else {
      id = free_.back();
      free_.pop_back();
    }
    found = ids_.emplace(std::string(name), id).first;
    slots_[id].name = &found->first;
  }
  ++slots_[found->second].references;
  return found->second;
}

void Graph::Names::release(Id id) {
  Slot& slot = slots_[id];
  if (--slot.references > 0) return;
  ids_.erase(ids_.find(*slot.name));
  slot = {};
  free_.push_back(id);
}

Graph::Id Graph::Names::find(std::string_view name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? kNone : found->second;
}

std::string Graph::name_of(Kind kind, std::string_view ns, std::string_view name) {
  std::string text(1, letter_of(kind));
  return text.append(ns).append(1, '/').append(name);
}

std::string Graph::name_of_node(std::string_view node) { return "/" + std::string(node); }

std::vector<std::string> Graph::names_in(std::string_view key, const Value& pod) {
  std::vector<std::string> names;
  // A node creates mirror pods itself: they must not give it access to anything. NodeRestriction rejects those that
  // would, but it may be disabled.
  if (pod.get("metadata", "annotations", kMirror) != nullptr) return names;
  const size_t slash = key.find('/');
  const std::string_view ns = key.substr(0, slash), pod_name = key.substr(slash + 1);
  const auto add = [&](Kind kind, std::string_view name) {
    if (!name.empty()) names.push_back(name_of(kind, ns, name));
  };
  add(Kind::ServiceAccount, pod.text_at("spec", "serviceAccountName"));
  kinds::visit_secrets(pod, [&](std::string_view name) { add(Kind::Secret, name); });
  kinds::visit_config_maps(pod, [&](std::string_view name) { add(Kind::ConfigMap, name); });
  for (const Value& volume : pod.items_at("spec", "volumes")) add(Kind::Claim, claim_in(pod_name, volume));
  for (const Value& entry : pod.items_at("spec", "resourceClaims")) {
    add(Kind::ResourceClaim, resource_claim_in(pod, entry));
  }
  add(Kind::ResourceClaim, pod.text_at("status", "extendedResourceClaimStatus", "resourceClaimName"));
  keep_once(names);
  return names;
}

std::vector<std::string> Graph::names_in_volume(std::string_view key, const Value& volume) {
  std::vector<std::string> names = {name_of(Kind::Volume, "", key)};
  for (const SecretName& secret : secrets_in(volume)) names.push_back(name_of(Kind::Secret, secret.ns, secret.name));
  keep_once(names);
  return names;
}

// --- Pairs -----------------------------------------------------------------------------------------------------------

void Graph::relate(Id object, Id node) {
  if (++pairs_[pair_of(object, node)] > 1) return;
  const auto claim = claims_.find(object);
  if (claim == claims_.end()) return;
  claim->second.nodes.insert(node);
  for (const VolumeSource* volume : claim->second.volumes) {
    for (const Id given : volume->given) relate(given, node);
  }
}

void Graph::unrelate(Id object, Id node) {
  const auto pair = pairs_.find(pair_of(object, node));
  if (--pair->second > 0) return;
  pairs_.erase(pair);
  const auto claim = claims_.find(object);
  if (claim == claims_.end()) return;
  claim->second.nodes.erase(node);
  for (const VolumeSource* volume : claim->second.volumes) {
    for (const Id given : volume->given) unrelate(given, node);
  }
  drop_unused_claim(object);
}

void Graph::drop_unused_claim(Id id) {
  const auto claim = claims_.find(id);
  if (claim->second.nodes.empty() && claim->second.volumes.empty()) claims_.erase(claim);
}

// --- Pods, attachments, slices ---------------------------------------------------------------------------------------

Graph::ByKey<Graph::Source>& Graph::sources_of(Kind kind) {
  return kind == Kind::Pod ? pods_ : kind == Kind::Attachment ? attachments_ : slices_;
}
const Graph::ByKey<Graph::Source>& Graph::sources_of(Kind kind) const {
  return kind == Kind::Pod ? pods_ : kind == Kind::Attachment ? attachments_ : slices_;
}

void Graph::put_source(Kind kind, std::string_view key, std::string_view node, const std::vector<std::string>& names) {
  Source source{.round = rounds_[kind], .node = names_.take(name_of_node(node))};
  if (!names.empty()) {
    Objects objects;
    for (const std::string& name : names) objects.push_back(names_.take(name));
    std::sort(objects.begin(), objects.end());
    source.objects = &*shared_.try_emplace(std::move(objects), 0).first;
    ++source.objects->second;
    for (const std::string& name : names) {
      if (is_claim(name)) (void)claims_[names_.find(name)];
    }
    for (const Id object : source.objects->first) relate(object, source.node);
  }
  ByKey<Source>& sources = sources_of(kind);
  const auto [at, fresh] = sources.try_emplace(std::string(key), source);
  if (fresh) return;
  // After the new one, so that what both refer to stays as it is.
  const Source before = std::exchange(at->second, source);
  forget(before);
}

void Graph::forget(const Source& source) {
  if (source.objects != nullptr) {
    for (const Id object : source.objects->first) {
      unrelate(object, source.node);
      names_.release(object);
    }
    if (--source.objects->second == 0) shared_.erase(shared_.find(source.objects->first));
  }
  names_.release(source.node);
}

void Graph::erase_source(Kind kind, std::string_view key) {
  ByKey<Source>& sources = sources_of(kind);
  const auto found = sources.find(key);
  if (found == sources.end()) return;
  forget(found->second);
  sources.erase(found);
}

// --- Volumes ---------------------------------------------------------------------------------------------------------

void Graph::put_volume(std::string_view key, const Value& volume) {
  VolumeSource source{.round = rounds_[Kind::Volume]};
  source.claim = names_.take(name_of(Kind::Claim, volume.text_at("spec", "claimRef", "namespace"),
                                     volume.text_at("spec", "claimRef", "name")));
  for (const std::string& name : names_in_volume(key, volume)) source.given.push_back(names_.take(name));
  const auto found = volumes_.find(key);
  if (found != volumes_.end() && found->second.claim == source.claim && found->second.given == source.given) {
    found->second.round = source.round;
    names_.release(source.claim);
    for (const Id given : source.given) names_.release(given);
    return;
  }
  if (found != volumes_.end()) erase_volume(key);
  const VolumeSource& stored = volumes_.emplace(std::string(key), std::move(source)).first->second;
  Claim& claim = claims_[stored.claim];
  claim.volumes.push_back(&stored);
  for (const Id node : claim.nodes) {
    for (const Id given : stored.given) relate(given, node);
  }
}

void Graph::erase_volume(std::string_view key) {
  const auto found = volumes_.find(key);
  if (found == volumes_.end()) return;
  const VolumeSource& volume = found->second;
  Claim& claim = claims_[volume.claim];
  std::erase(claim.volumes, &volume);
  for (const Id node : claim.nodes) {
    for (const Id given : volume.given) unrelate(given, node);
  }
  drop_unused_claim(volume.claim);
  names_.release(volume.claim);
  for (const Id given : volume.given) names_.release(given);
  volumes_.erase(found);
}

// --- Interface -------------------------------------------------------------------------------------------------------

void Graph::put(Kind kind, std::string_view key, const Value& object) {
  const std::unique_lock lock(mutex_);
  if (kind == Kind::Volume) {
    if (object.text_at("spec", "claimRef", "name").empty()) return erase_volume(key);
    return put_volume(key, object);
  }
  const std::string_view node = object.text_at("spec", "nodeName");
  if (node.empty()) return erase_source(kind, key);
  put_source(kind, key, node, kind == Kind::Pod ? names_in(key, object) : std::vector<std::string>());
}

void Graph::erase(Kind kind, std::string_view key) {
  const std::unique_lock lock(mutex_);
  if (kind == Kind::Volume) return erase_volume(key);
  erase_source(kind, key);
}

void Graph::begin_list(Kind kind) {
  const std::unique_lock lock(mutex_);
  ++rounds_[kind];
}

void Graph::end_list(Kind kind) {
  const std::unique_lock lock(mutex_);
  const auto keys_of_others = [round = rounds_[kind]](const auto& sources) {
    std::vector<std::string> keys;
    for (const auto& [key, source] : sources) {
      if (source.round != round) keys.push_back(key);
    }
    return keys;
  };
  if (kind == Kind::Volume) {
    for (const std::string& key : keys_of_others(volumes_)) erase_volume(key);
  } else {
    for (const std::string& key : keys_of_others(sources_of(kind))) erase_source(kind, key);
  }
}

bool Graph::related(std::string_view node, Kind kind, std::string_view ns, std::string_view name) const {
  const std::shared_lock lock(mutex_);
  const Id known = names_.find(name_of_node(node));
  if (known == kNone) return false;
  if (kind == Kind::Pod || kind == Kind::Attachment || kind == Kind::Slice) {
    const std::string key = kind == Kind::Pod ? std::string(ns) + "/" + std::string(name) : std::string(name);
    const ByKey<Source>& sources = sources_of(kind);
    const auto found = sources.find(key);
    return found != sources.end() && found->second.node == known;
  }
  const Id object = names_.find(name_of(kind, ns, name));
  return object != kNone && pairs_.contains(pair_of(object, known));
}

size_t Graph::size() const {
  const std::shared_lock lock(mutex_);
  return pairs_.size();
}

}  // namespace holdfast::node_access
