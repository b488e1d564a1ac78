// The steps of a write, for every kind: the common parts are here, those specific to a kind are in its Hooks.

#include "kinds/kinds.h"

#include "base/api_error.h"
#include "kinds/hooks.h"

namespace holdfast::kinds {
namespace {

const Hooks& hooks_of(const Rules& rules) {
  static constexpr Hooks kPlain;
  return rules.hooks == nullptr ? kPlain : *rules.hooks;
}

// The type of objects in the storage version, as passed to prepare and validate.
const types::Type& stored_type(const types::Resource& resource) {
  if (resource.group == resource.storage_group && resource.version == resource.storage_version) return *resource.type;
  const types::Resource* stored =
      types::find_resource(resource.storage_group, resource.storage_version, resource.plural);
  return stored == nullptr || stored->type == nullptr ? *resource.type : *stored->type;
}

constexpr std::string_view kObjectMetadata[] = {"labels", "annotations", "finalizers", "ownerReferences"};

bool counts_up(const types::Type& type, Generation rule, const Value& next, const Value& old) {
  switch (rule) {
    case Generation::None:
    case Generation::Never:
      return false;
    case Generation::Spec:
    case Generation::SpecAsSent:
    case Generation::SpecFromZero:
      return !unchanged(type, next, old, "spec");
    case Generation::SpecOrAnnotations:
      return !unchanged(type, next, old, "spec") ||
             !unchanged(member_type(type, "metadata"), sub(next, "metadata"), sub(old, "metadata"), "annotations");
    case Generation::Template:
      return !unchanged(type, next, old, "template");
    case Generation::Webhooks: {
      const Value &a = sub(next, "webhooks"), &b = sub(old, "webhooks");
      return !equal(a, b);
    }
    case Generation::AllButMetadata:
      for (const types::Field* field : type.members) {
        if (field->name == "metadata" || field->name == "kind" || field->name == "apiVersion") continue;
        if (!semantic_equal(*field->type, next.find(field->name), old.find(field->name))) return true;
      }
      return !unchanged(member_type(type, "metadata"), sub(next, "metadata"), sub(old, "metadata"), "labels");
  }
  return false;
}

// Restores everything but metadata and status.
void keep_all_but_status(Draft::Node next, const Value& old) {
  std::vector<std::string_view> added;
  for (const Member& member : next.value().members()) {
    if (!old.has(member.key)) added.push_back(member.key);
  }
  for (const std::string_view key : added) {
    if (key != "metadata" && key != "status") next.remove(key);
  }
  for (const Member& member : old.members()) {
    if (member.key != "metadata" && member.key != "status") next.set(member.key, member.value);
  }
}

void keep_metadata(StatusMetadata rule, Draft::Node metadata, const Value& old) {
  switch (rule) {
    case StatusMetadata::Honoured:
      break;
    case StatusMetadata::KeepLabels:
      restore(metadata, old, "labels");
      break;
    case StatusMetadata::KeepOwners:
      restore(metadata, old, "ownerReferences");
      metadata.remove("deletionTimestamp");  // Deletion must be requested, not set.
      break;
    case StatusMetadata::KeepObjectAndDeletion:
      restore(metadata, old, "deletionTimestamp");
      restore(metadata, old, "selfLink");
      [[fallthrough]];
    case StatusMetadata::KeepObject:
      for (const std::string_view key : kObjectMetadata) restore(metadata, old, key);
      break;
    case StatusMetadata::KeepAll: {
      const Value* sent = metadata.find("managedFields");
      const Value managed = sent == nullptr ? Value::null() : *sent;
      const Value* version = metadata.find("resourceVersion");
      const Value revision = version == nullptr ? Value::null() : *version;
      metadata.assign(old);
      metadata.remove("managedFields");
      if (!managed.is_null()) metadata.set("managedFields", managed);
      if (!revision.is_null()) metadata.set("resourceVersion", revision);
      break;
    }
  }
}

}  // namespace

std::optional<Endpoint> endpoint_of(std::string_view subresource) {
  if (subresource.empty()) return Endpoint::Main;
  if (subresource == "status") return Endpoint::Status;
  if (subresource == "finalize") return Endpoint::Finalize;
  if (subresource == "approval") return Endpoint::Approval;
  if (subresource == "ephemeralcontainers") return Endpoint::EphemeralContainers;
  if (subresource == "resize") return Endpoint::Resize;
  return std::nullopt;
}

void set_defaults(Arena& arena, const types::Resource& resource, Draft::Node object) {
  const Hooks& hooks = hooks_of(rules_of(resource));
  if (hooks.defaults != nullptr) hooks.defaults(arena, resource, object);
}

void prepare_for_create(Context& context, Draft::Node object) {
  const Rules& rules = rules_of(context.resource);
  const Hooks& hooks = hooks_of(rules);
  if (hooks.generation != Generation::None && hooks.generation != Generation::SpecFromZero) {
    object.child("metadata").set("generation", Value::integer(1));
  }
  if (rules.has_status && rules.plural != "nodes" && rules.plural != "pods") {
    object.set("status", zero_value(context.arena, member_type(stored_type(context.resource), "status")));
  }
  if (hooks.create != nullptr) hooks.create(context, object);
}

void prepare_for_update(Context& context, Endpoint endpoint, Draft::Node next, const Value& old) {
  const Rules& rules = rules_of(context.resource);
  const Hooks& hooks = hooks_of(rules);
  const Value& old_metadata = sub(old, "metadata");
  restore(next.child("metadata"), old_metadata, "generation");
  // Slices are compared as sent, before anything is dropped.
  const bool early = hooks.generation == Generation::AllButMetadata || hooks.generation == Generation::SpecAsSent;
  const bool sent_differs = early && counts_up(stored_type(context.resource), hooks.generation, next.value(), old);
  if (endpoint == Endpoint::Main) {
    if (rules.has_status) restore(next, old, "status");
    if (hooks.update != nullptr) hooks.update(context, next, old);
  } else if (endpoint == Endpoint::Status) {
    keep_all_but_status(next, old);
    keep_metadata(hooks.status_metadata, next.child("metadata"), old_metadata);
    if (hooks.update_status != nullptr) hooks.update_status(context, next, old);
  } else if (hooks.update_other != nullptr) {
    hooks.update_other(context, endpoint, next, old);
  }
  if (endpoint != Endpoint::Status &&
      (early ? sent_differs : counts_up(stored_type(context.resource), hooks.generation, next.value(), old))) {
    next.child("metadata").set("generation", Value::integer(old_metadata.int_at_or(0, "generation") + 1));
  }
  Draft::Node metadata = next.child("metadata");
  if (metadata.value().text_at("uid").empty()) restore(metadata, old_metadata, "uid");
  if (old_metadata.has("creationTimestamp")) restore(metadata, old_metadata, "creationTimestamp");
  if (old_metadata.has("deletionTimestamp")) restore(metadata, old_metadata, "deletionTimestamp");
  if (!metadata.has("deletionGracePeriodSeconds")) restore(metadata, old_metadata, "deletionGracePeriodSeconds");
}

namespace {

// Except in groups whose validation lacks what Kubernetes adds to the generic API server.
void validate_known_finalizers(const Context& context, const Value& metadata, FieldErrors& errors) {
  constexpr std::string_view kAnything[] = {"admissionregistration.k8s.io", "apiextensions.k8s.io",
                                            "apiregistration.k8s.io", "coordination.k8s.io", "node.k8s.io"};
  if (contains(kAnything, context.resource.group)) return;
  validate_finalizers_are_known(metadata, Path("metadata"), errors);
}

// By the rules of the kind, as on create.
void validate_own_metadata(const Context& context, const Hooks& hooks, const Value& object, FieldErrors& errors) {
  const Value& metadata = sub(object, "metadata");
  const auto name_errors = [&](std::string_view name, bool prefix) {
    return hooks.name_in == nullptr ? hooks.name(name, prefix) : hooks.name_in(object, name);
  };
  validate_metadata(metadata, context.resource.namespaced, name_errors, Path("metadata"), errors);
  validate_known_finalizers(context, metadata, errors);
}

// Events are reported as core events, whichever group the request used.
Error refusal(const Context& context, const FieldErrors& errors, std::string_view name) {
  const types::Resource& resource = context.resource;
  return errors.to_error(resource.group == "events.k8s.io" ? "" : resource.group, resource.kind, name);
}

}  // namespace

Result<Unit> validate_create(Context& context, const Value& object) {
  const Hooks& hooks = hooks_of(rules_of(context.resource));
  FieldErrors errors(context.resource.type, context.sent);
  const Path at("metadata");
  const Value& metadata = sub(object, "metadata");
  if (!hooks.checks_metadata_last) validate_own_metadata(context, hooks, object, errors);
  if (hooks.validate != nullptr) hooks.validate(context, object, errors);
  if (errors.empty()) {
    validate_metadata(metadata, context.resource.namespaced, name_is_path_segment, at, errors);
  }
  if (errors.empty()) return Unit{};
  return refusal(context, errors, metadata.text_at("name"));
}

Result<Unit> validate_update(Context& context, Endpoint endpoint, const Value& next, const Value& old) {
  const Hooks& hooks = hooks_of(rules_of(context.resource));
  FieldErrors errors(context.resource.type, context.sent);
  const Path at("metadata");
  const Value &metadata = sub(next, "metadata"), &old_metadata = sub(old, "metadata");
  validate_metadata(metadata, context.resource.namespaced, name_is_path_segment, at, errors);
  validate_metadata_update(metadata, old_metadata, at, errors);
  if (!hooks.checks_metadata_last) {
    const MetadataChecks checks = endpoint == Endpoint::Main     ? hooks.update_checks
                                  : endpoint == Endpoint::Status ? hooks.status_checks
                                                                 : MetadataChecks{};
    const auto compare = [&] {
      for (int i = 0; i < checks.compared; ++i) {
        if (!errors.empty()) validate_metadata_update(metadata, old_metadata, at, errors);
        validate_known_finalizers(context, metadata, errors);
      }
    };
    if (checks.compares_first) compare();
    for (int i = 0; i < checks.whole; ++i) validate_own_metadata(context, hooks, next, errors);
    if (!checks.compares_first) compare();
  }
  switch (endpoint) {
    case Endpoint::Main:
      if (hooks.validate_update != nullptr) {
        hooks.validate_update(context, next, old, errors);
      } else if (hooks.validate != nullptr) {
        hooks.validate(context, next, errors);
      }
      break;
    case Endpoint::Status:
      if (hooks.validate_status != nullptr) hooks.validate_status(context, next, old, errors);
      break;
    default:
      if (hooks.validate_other != nullptr) hooks.validate_other(context, endpoint, next, old, errors);
      break;
  }
  if (errors.empty()) return Unit{};
  return refusal(context, errors, metadata.text_at("name"));
}

void add_warnings(Context& context, const Value& object, const Value* old, Endpoint endpoint, Warnings& texts) {
  const Hooks& hooks = hooks_of(rules_of(context.resource));
  if (endpoint == Endpoint::Main && hooks.warn != nullptr) hooks.warn(context, object, old, texts);
  if (endpoint == Endpoint::Status && hooks.warn_status != nullptr) hooks.warn_status(object, texts);
}

std::string_view deletion_forbidden_reason(const types::Resource& resource, std::string_view name) {
  if (resource.group != "scheduling.k8s.io" || resource.plural != "priorityclasses") return {};
  if (name != "system-node-critical" && name != "system-cluster-critical") return {};
  return "this is a system priority class and cannot be deleted";
}

std::string_view deprecation_warning(const types::Resource& resource) {
  if (!resource.group.empty()) return {};
  if (resource.plural == "endpoints") {
    return "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
  }
  if (resource.plural == "componentstatuses") return "v1 ComponentStatus is deprecated in v1.19+";
  return {};
}

std::string generate_name(std::string_view base, uint64_t random) {
  // Without vowels, 0, 1 and 3, so that no words are formed.
  static constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  static constexpr size_t kRandom = 5, kLongest = 63;
  std::string name(base.substr(0, kLongest - kRandom));
  for (size_t i = 0; i < kRandom; ++i) {
    name += kLetters[random % kLetters.size()];
    random /= kLetters.size();
  }
  return name;
}

int64_t grace_period(const Rules& rules, const Value& object, std::optional<int64_t> requested) {
  if (rules.deletion != Deletion::Graceful) return 0;
  int64_t seconds = requested.value_or(object.int_at_or(0, "spec", "terminationGracePeriodSeconds"));
  if (object.text_at("spec", "nodeName").empty()) return 0;
  const std::string_view phase = object.text_at("status", "phase");
  if (phase == "Failed" || phase == "Succeeded") return 0;
  return seconds < 0 ? 1 : seconds;
}

}  // namespace holdfast::kinds
