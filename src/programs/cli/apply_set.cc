#include "cli/apply_set.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/api_version.h"
#include "base/base64.h"
#include "base/strings.h"
#include "codec/codec.h"
#include "server/server.h"

namespace holdfast::cli {

namespace {

constexpr std::string_view kId = "applyset.kubernetes.io/id";
constexpr std::string_view kPartOf = "applyset.kubernetes.io/part-of";
constexpr std::string_view kTooling = "applyset.kubernetes.io/tooling";
constexpr std::string_view kKinds = "applyset.kubernetes.io/contains-group-kinds";
constexpr std::string_view kSpaces = "applyset.kubernetes.io/additional-namespaces";
constexpr std::string_view kParentType = "applyset.kubernetes.io/is-parent-type";
constexpr std::string_view kTool = "holdfast";

std::string group_kind(std::string_view kind, std::string_view group) {
  return group.empty() ? std::string(kind) : std::string(kind) + "." + std::string(group);
}

std::string key_of(const client::Resource& resource, std::string_view space, std::string_view name) {
  return group_kind(resource.kind, resource.group) + "/" + std::string(space) + "/" + std::string(name);
}

std::set<std::string> parts_of(std::string_view list) {
  std::set<std::string> parts;
  for (const std::string_view part : split(list, ',')) {
    if (!part.empty()) parts.emplace(part);
  }
  return parts;
}

std::string joined(const std::set<std::string>& parts) {
  return join(std::vector<std::string>(parts.begin(), parts.end()), ",");
}

bool is_made_for(const client::Resource& resource) {
  return resource.group.empty() && (resource.kind == "Secret" || resource.kind == "ConfigMap");
}

}  // namespace

std::string apply_set_id(std::string_view name, std::string_view space, std::string_view kind, std::string_view group) {
  const std::string_view parts[] = {name, space, kind, group};
  const std::string text = join(parts, ".");
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return "applyset-" + base64url_encode({reinterpret_cast<const char*>(digest.data()), digest.size()}) + "-v1";
}

ApplySet::ApplySet(const Session& session, client::Resource resource, std::string name, Adoption adoption)
    : session_(&session),
      resource_(std::move(resource)),
      name_(std::move(name)),
      space_(space_for(session, resource_)),
      id_(apply_set_id(name_, space_, resource_.kind, resource_.group)),
      adoption_(adoption) {}

Result<ApplySet> ApplySet::open(const Session& session, const std::string& reference, Adoption adoption) {
  const size_t slash = reference.find('/');
  const std::string kind = slash == std::string::npos ? "secrets" : reference.substr(0, slash);
  const std::string name = slash == std::string::npos ? reference : reference.substr(slash + 1);
  if (name.empty()) return bad_request("--applyset: a name is needed, such as shop or configmaps/shop");
  Result<client::Resource> resource = session.client.find(kind).wait();
  if (!resource) return resource.take_error();
  ApplySet set(session, std::move(*resource), name, adoption);
  Result<Unit> read = set.read_parent();
  if (!read) return read.take_error();
  return set;
}

Result<Unit> ApplySet::read_parent() {
  const std::string shown = display_name(resource_, name_);
  if (!is_made_for(resource_)) {
    Result<Unit> allowed = check_custom_parent();
    if (!allowed) return allowed;
  }
  Result<client::Object> parent = session_->client.api(resource_, space_).get(name_).wait();
  if (!parent && parent.error().reason == Reason::NotFound) {
    if (is_made_for(resource_)) return Unit{};
    return bad_request(shown + " does not exist: only Secrets and ConfigMaps are created as parents of apply sets");
  }
  if (!parent) return parent.take_error();
  const Value& root = parent->root();
  const std::string_view id = root.text_at("metadata", "labels", kId);
  const std::string_view tooling = root.text_at("metadata", "annotations", kTooling);
  const std::string_view tool = tooling.substr(0, std::min(tooling.rfind('/'), tooling.size()));
  if (!id.empty() && id != id_) {
    return bad_request(shown + " has the id of another apply set: " + std::string(kId) + " is " + std::string(id) +
                       " instead of " + id_);
  }
  if (adoption_ == Adoption::Refused && (id.empty() || tooling.empty())) {
    return bad_request(shown + " exists and is not an apply set; --adopt makes it one");
  }
  if (adoption_ == Adoption::Refused && tool != kTool) {
    return bad_request(shown + " is managed by " + std::string(tool) + "; --adopt takes it over");
  }
  if (id.empty()) return Unit{};  // The set has no members yet.
  const Value* annotations = root.get("metadata", "annotations");
  if (annotations != nullptr && annotations->has(kKinds)) {
    old_kinds_ = parts_of(annotations->text_at(kKinds));
  } else {
    // Members may be of any kind.
    Result<std::vector<client::Resource>> all = resources_with(*session_, {"list", "delete"});
    if (!all) return all.take_error();
    for (const client::Resource& resource : *all) old_kinds_.insert(group_kind(resource.kind, resource.group));
  }
  old_spaces_ = parts_of(root.text_at("metadata", "annotations", kSpaces));
  if (resource_.namespaced) old_spaces_.insert(space_);
  return Unit{};
}

Result<Unit> ApplySet::check_custom_parent() const {
  const client::Resource definitions = client::builtin("apiextensions.k8s.io/v1", "CustomResourceDefinition");
  const std::string name = resource_.plural + "." + resource_.group;
  Result<client::Object> definition = session_->client.api(definitions).get(name).wait();
  if (!definition && definition.error().reason != Reason::NotFound) return definition.take_error();
  const Value* labels = definition ? definition->root().get("metadata", "labels") : nullptr;
  if (labels != nullptr && labels->has(kParentType)) return Unit{};
  return bad_request("--applyset: " + name + " cannot be the parent of an apply set; use a Secret, a ConfigMap, or a " +
                     "custom resource whose definition has the label " + std::string(kParentType));
}

Result<std::vector<Manifest>> ApplySet::as_members(const std::vector<Manifest>& manifests) const {
  std::vector<Manifest> members;
  for (const Manifest& manifest : manifests) {
    if (!manifest.object.root().text_at("metadata", "labels", kPartOf).empty()) {
      return at(manifest, bad_request("the label " + std::string(kPartOf) + " is set; --applyset sets it"));
    }
    const std::string_view path[] = {"metadata", "labels", kPartOf};
    codec::Document document;
    const Value copy = deep_copy(document.arena(), manifest.object.root());
    document.set_root(with_path(document.arena(), copy, path, Value::string(document.arena(), id_)));
    members.push_back({manifest.source, manifest.line, manifest.document, client::Object(std::move(document))});
  }
  return members;
}

bool ApplySet::belongs(const Value& object) const { return object.text_at("metadata", "labels", kPartOf) == id_; }

Result<Unit> ApplySet::find_members() {
  if (old_kinds_.empty()) return Unit{};
  Result<std::vector<client::Resource>> served = resources_with(*session_, {"list"});
  if (!served) return served.take_error();
  std::map<std::string, client::Resource> by_kind;
  for (const client::Resource& one : *served) by_kind.emplace(group_kind(one.kind, one.group), one);
  for (const std::string& kind : old_kinds_) {
    const auto found = by_kind.find(kind);
    if (found == by_kind.end()) {
      unknown_kinds_.insert(kind);
      continue;
    }
    const client::Resource& resource = found->second;
    const std::set<std::string> everywhere = {""};
    for (const std::string& space : resource.namespaced ? old_spaces_ : everywhere) {
      const std::string selector = std::string(kPartOf) + "=" + id_;
      Result<Unit> listed =
          each_object(*session_, {resource, ""}, space, selector, [&](const Value& object) -> Result<Unit> {
            to_prune_.push_back({{resource, std::string(object.text_at("metadata", "name"))},
                                 space,
                                 std::string(object.text_at("metadata", "uid"))});
            return Unit{};
          });
      if (!listed) return listed;
    }
  }
  return Unit{};
}

Result<Unit> ApplySet::plan(const std::vector<Manifest>& manifests) {
  Result<Unit> found = find_members();
  if (!found) return found;
  std::set<std::string> members, applied;  // By key; `applied` also by uid.
  for (const Pruned& one : to_prune_) members.insert(key_of(one.target.resource, one.space, one.target.name));
  std::string unmanaged, others;
  for (const Manifest& manifest : manifests) {
    new_kinds_.insert(group_kind(manifest.kind(), split_api_version(manifest.api_version()).group));
    const std::string name(manifest.object.name());
    const std::string own(manifest.object.space());
    Result<client::Api<>> api = api_of(*session_, manifest);
    if (!api && api.error().reason != Reason::NotFound) return api.take_error();
    if (!api) {  // Its CRD may be among the manifests; whether it is namespaced is not known yet.
      new_spaces_.insert(own.empty() ? session_->space : own);
      continue;
    }
    const std::string space = own.empty() ? space_for(*session_, api->resource()) : own;
    if (api->resource().namespaced) new_spaces_.insert(space);
    const std::string key = key_of(api->resource(), space, name);
    applied.insert(key);
    if (members.contains(key)) continue;
    Result<client::Object> live = api->get(name).wait();
    if (!live && live.error().reason == Reason::NotFound) continue;
    if (!live) return at(manifest, live.take_error());
    applied.insert(std::string(live->uid()));
    if (belongs(live->root())) continue;
    const std::string_view set = live->root().text_at("metadata", "labels", kPartOf);
    const std::string line = "\n  " + display_name(api->resource(), name) + " (" + manifest.where() + ")";
    if (!set.empty()) {
      others += line + " of " + std::string(set);
    } else if (adoption_ == Adoption::Refused) {
      unmanaged += line;
    }
  }
  if (!others.empty()) {
    return bad_request("these objects belong to another apply set; to move them, remove their label " +
                       std::string(kPartOf) + " first:" + others);
  }
  if (!unmanaged.empty()) {
    return bad_request(
        "these objects exist and are not in the apply set; --adopt makes them members, which are deleted when they are "
        "no longer applied:" +
        unmanaged);
  }
  std::erase_if(to_prune_, [&](const Pruned& one) {
    return applied.contains(one.uid) || applied.contains(key_of(one.target.resource, one.space, one.target.name));
  });
  // Cluster-scoped objects last: namespaces and CRDs contain others.
  std::stable_partition(to_prune_.begin(), to_prune_.end(),
                        [](const Pruned& one) { return one.target.resource.namespaced; });
  return Unit{};
}

Result<Unit> ApplySet::update_parent(Extent extent, bool dry_run) const {
  std::set<std::string> kinds = new_kinds_, spaces = new_spaces_;
  kinds.insert(unknown_kinds_.begin(), unknown_kinds_.end());
  if (extent == Extent::OldAndNew) {
    kinds.insert(old_kinds_.begin(), old_kinds_.end());
    spaces.insert(old_spaces_.begin(), old_spaces_.end());
  }
  if (resource_.namespaced) spaces.erase(space_);
  Arena arena;
  MapBuilder labels(arena), annotations(arena), metadata(arena), parent(arena);
  labels.add(kId, Value::string(id_));
  annotations.add(kTooling, Value::string(arena, std::string(kTool) + "/" + std::string(server::holdfast_version())));
  annotations.add(kKinds, Value::string(arena, joined(kinds)));
  annotations.add(kSpaces, Value::string(arena, joined(spaces)));
  metadata.add("name", Value::string(name_));
  if (resource_.namespaced) metadata.add("namespace", Value::string(space_));
  metadata.add("labels", labels.build());
  metadata.add("annotations", annotations.build());
  parent.add("apiVersion", Value::string(arena, resource_.api_version()));
  parent.add("kind", Value::string(resource_.kind));
  parent.add("metadata", metadata.build());
  // Force: these labels and annotations are ours, even if another tool has written them.
  const client::ApplyOptions options{.force = true, .field_manager = "holdfast-applyset", .dry_run = dry_run};
  Result<client::Object> applied = session_->client.api(resource_, space_).apply(parent.build(), options).wait();
  if (!applied) return applied.take_error();
  return Unit{};
}

}  // namespace holdfast::cli
