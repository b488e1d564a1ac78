#include "custom/custom_objects.h"

#include <algorithm>
#include <atomic>
#include <set>

#include "base/api_version.h"
#include "base/limits.h"
#include "base/text.h"
#include "codec/codec.h"
#include "codec/typed.h"
#include "custom/conversions.h"
#include "ownership/ownership.h"
#include "resource/managed.h"
#include "resource/outdated.h"
#include "schema/schema.h"

namespace holdfast::custom {
namespace {

const types::Type& object_meta() {
  static const types::Type& type = *types::find_type("meta/v1.ObjectMeta");
  return type;
}

// Stored metadata as decoded by ObjectMeta, without undecodable members, which Kubernetes drops as well. Code that uses
// it can rely on the types of its members.
Value readable_metadata(Arena& arena, const Value& stored) {
  if (Result<Value> typed = codec::to_typed(arena, object_meta(), stored)) return *typed;
  MapBuilder readable(arena);
  for (const Member& member : stored.members()) {
    if (codec::to_typed(arena, object_meta(), Value::map(arena, {&member, 1}))) readable.add(member.key, member.value);
  }
  return *codec::to_typed(arena, object_meta(), readable.build());
}

// Normalizes embedded resources in stored objects and in defaults, like the object's own metadata.
struct EmbeddedReader {
  Arena& arena;

  Value read(const types::Type& type, const Value& value) {
    if (value.is_list() && type.shape == types::Shape::List) {
      return with_each_item(arena, value, [&](const Value& item) { return read(*type.element, item); });
    }
    if (!value.is_map()) return value;
    return with_each_member(arena, value, [&](const Member& member) -> std::optional<Value> {
      const bool names = type.embedded_resource && (member.key == "apiVersion" || member.key == "kind");
      if (names && !member.value.is_string()) return std::nullopt;
      if (type.embedded_resource && member.key == "metadata") {
        const Value metadata = member.value.is_null() ? Value::empty_map() : member.value;
        return metadata.is_map() ? readable_metadata(arena, metadata) : metadata;
      }
      const types::Type* child = schema::member_type(type, member.key);
      return child == nullptr ? member.value : read(*child, member.value);
    });
  }
};

bool embeds_resources(const types::Type& type) {
  if (type.embedded_resource) return true;
  if (!type.name.empty()) return false;
  if (type.element != nullptr && embeds_resources(*type.element)) return true;
  return std::any_of(type.members.begin(), type.members.end(),
                     [](const types::Field* field) { return embeds_resources(*field->type); });
}

// Normalizes the resources embedded in objects of a version. Whether the schema allows any is determined on the first
// object, because types are built on first use.
class Embedded {
 public:
  Value read(Arena& arena, const crd::Version& version, const Value& object) const {
    const types::Type& root = version.schema->root();
    Answer known = any_.load(std::memory_order_relaxed);
    if (known == Answer::Unknown) {
      known = embeds_resources(root) ? Answer::Yes : Answer::No;
      any_.store(known, std::memory_order_relaxed);
    }
    return known == Answer::Yes ? EmbeddedReader{arena}.read(root, object) : object;
  }

 private:
  enum class Answer : uint8_t { Unknown, No, Yes };
  mutable std::atomic<Answer> any_{Answer::Unknown};
};

// Compares everything except metadata, apiVersion and kind.
bool same_but_metadata(const Value& a, const Value& b, bool status_counts) {
  auto counts = [status_counts](std::string_view key) {
    return key != "metadata" && key != "apiVersion" && key != "kind" && (status_counts || key != "status");
  };
  auto within = [&counts](const Value& one, const Value& other) {
    for (const Member& member : one.members()) {
      if (!counts(member.key)) continue;
      const Value* match = other.find(member.key);
      if (match == nullptr || !equal(member.value, *match)) return false;
    }
    return true;
  };
  return within(a, b) && within(b, a);
}

// The version named "group/version"; null if the definition does not have it.
const crd::Version* version_named(const crd::Definition& definition, std::string_view api_version) {
  const auto [group, version] = split_api_version(api_version);
  return group == definition.storage_version().resource->group ? definition.find(version) : nullptr;
}

class CustomRules final : public resource::ObjectRules {
 public:
  CustomRules(std::shared_ptr<const crd::Definition> definition, const crd::Version& version,
              std::shared_ptr<Conversions> conversions)
      : definition_(std::move(definition)), version_(version), conversions_(std::move(conversions)) {}

  Value with_defaults(Arena& arena, const Value& decoded) const override {
    const Value set = schema::apply_defaults(arena, version_.schema->root(), decoded);
    return embedded_.read(arena, version_, set);  // Defaults are not normalized yet.
  }

  // Strategy None: changes the version's name and prunes fields unknown to the target version.
  Result<Value> convert(Arena& arena, const types::Resource& from, const types::Resource& to, const Value& object,
                        resource::MissingConversions* missing) const override {
    if (&from == &to) return object;
    if (conversions_ != nullptr) return conversions_->find(arena, from, to, object, missing);
    const Value named = with_member(arena, object, "apiVersion", Value::string(arena, resource::api_version_of(to)));
    const crd::Version* target = definition_->find(to.version);
    if (target == nullptr) return named;
    const types::Type& root = target->schema->root();
    return schema::prune(arena, root, named);
  }

  bool converts_by_webhook() const override { return conversions_ != nullptr; }
  const types::Resource& version_of(const Value& object, const types::Resource& usual) const override {
    if (conversions_ == nullptr) return usual;
    const crd::Version* version = version_named(*definition_, object.text_at("apiVersion"));
    return version == nullptr ? usual : *version->resource;
  }

  void prepare_for_create(kinds::Context&, Draft::Node object) const override {
    if (version_.has_status) object.remove("status");
    object.child("metadata").set("generation", Value::integer(1));
  }

  void prepare_for_update(kinds::Context& context, kinds::Endpoint endpoint, Draft::Node next,
                          const Value& old) const override {
    const Value* old_status = old.find("status");
    if (endpoint == kinds::Endpoint::Status) {
      // Only status and managedFields are taken from the request.
      const Value* status = next.find("status");
      const Value* managed = next.value().get("metadata", "managedFields");
      Value taken = status == nullptr ? without_member(context.arena, old, "status")
                                      : with_member(context.arena, old, "status", *status);
      if (managed != nullptr) {
        taken = with_path(context.arena, taken, std::vector<std::string_view>{"metadata", "managedFields"}, *managed);
      }
      next.assign(taken);
      return;
    }
    if (version_.has_status) {
      if (old_status != nullptr)
        next.set("status", *old_status);
      else
        next.remove("status");
    }
    Draft::Node metadata = next.child("metadata");
    for (std::string_view key : {"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"}) {
      const Value* before = old.get("metadata", key);
      if (before == nullptr) continue;
      // Like kube-apiserver, ignores what a client wrote there (an exported object that is restored, for example).
      if (key == "creationTimestamp" || key == "deletionTimestamp") {
        metadata.set(key, *before);
      } else {
        metadata.set_default(key, *before);
      }
    }
    const int64_t generation = old.int_at_or(1, "metadata", "generation");
    const bool changed = !same_but_metadata(next.value(), old, !version_.has_status);
    metadata.set("generation", Value::integer(changed ? generation + 1 : generation));
  }

  Result<Unit> validate_create(kinds::Context&, const Value& object) const override {
    return crd::validate_object(version_, object, nullptr);
  }
  Result<Unit> validate_update(kinds::Context&, kinds::Endpoint endpoint, const Value& next,
                               const Value& old) const override {
    return endpoint == kinds::Endpoint::Status ? crd::validate_object_status(version_, next, old)
                                               : crd::validate_object(version_, next, &old);
  }
  // Warns about CEL rules that fail on unchanged values (ratcheting), and about new finalizers without a
  // domain-qualified name. Through /status no finalizers are added.
  void add_warnings(kinds::Context&, kinds::Endpoint, const Value& object, const Value* old,
                    Warnings& warnings) const override {
    std::set<std::string_view> added;
    for (const Value& finalizer : object.items_at("metadata", "finalizers")) added.insert(finalizer.as_string());
    if (old != nullptr) {
      for (const Value& finalizer : old->items_at("metadata", "finalizers")) added.erase(finalizer.as_string());
    }
    if (old != nullptr) crd::add_rule_warnings(version_, object, *old, warnings);
    for (const std::string_view finalizer : added) {
      const std::string start = "metadata.finalizers: " + go_quote(finalizer) + ": ";
      for (const std::string& problem : kinds::qualified_name_errors(finalizer)) warnings.add(start + problem);
      const bool standard = finalizer == "orphan" || finalizer == "foregroundDeletion" || finalizer == "kubernetes";
      if (standard || finalizer.find('/') != std::string_view::npos) continue;
      const bool dotted = finalizer.find('.') != std::string_view::npos;
      warnings.add(start + "prefer a domain-qualified finalizer name " + (dotted ? "including a path (/) " : "") +
                   "to avoid accidental conflicts with other finalizer writers");
    }
  }
  bool same(const Value& a, const Value& b) const override { return equal(a, b); }
  std::string_view deprecation_warning() const override { return version_.deprecation_warning; }

 private:
  const std::shared_ptr<const crd::Definition> definition_;
  const crd::Version& version_;
  const std::shared_ptr<Conversions> conversions_;  // Null for strategy None.
  const Embedded embedded_;
};

class CustomCodec final : public resource::ObjectCodec, public resource::OutdatedValues {
 public:
  explicit CustomCodec(std::shared_ptr<const crd::Definition> definition)
      : definition_(std::move(definition)),
        embedded_(definition_->versions().size()),
        written_version_(resource::api_version_of(*definition_->storage_version().resource)) {
    // All versions share one cache, each with its own selectable fields.
    for (const crd::Version& version : definition_->versions()) {
      for (const std::string& field : version.selectable_fields) {
        if (std::find(names_.begin(), names_.end(), field) == names_.end()) names_.push_back(field);
      }
    }
  }

  const types::Resource& stored() const override { return *version().resource; }
  ownership::MemberOrder member_order() const override { return ownership::MemberOrder::Bytewise; }
  std::span<const std::string_view> field_names() const override { return names_; }

  Result<cache::Decoded> decode(std::string_view key, std::string_view stored, Revision revision) const override {
    auto memory = std::make_shared<Memory>();
    Arena& arena = memory->arena;
    if (stored.starts_with("k8s:enc:")) {
      return internal_error("stored object " + std::string(key) +
                            " was encrypted by kube-apiserver; this server cannot read it");
    }
    Result<Value> tree =
        stored.starts_with("\xd9\xd9\xf7") ? codec::decode_cbor(arena, stored) : codec::decode_json(arena, stored);
    if (!tree) return internal_error("stored object " + std::string(key) + ": " + tree.error().message);
    const Value* metadata = tree->find("metadata");
    if (!tree->is_map() || (metadata != nullptr && !metadata->is_map())) {
      return internal_error("stored object " + std::string(key) + ": it is not an object");
    }

    cache::Decoded decoded;
    decoded.managed = resource::managed_entries(arena, tree->get("metadata", "managedFields"));
    Draft draft(arena, *tree);
    draft.root().child("metadata").remove("managedFields");
    draft.root().child("metadata").remove("options");  // Request options; see BuiltinCodec::decode().
    draft.root().set("metadata", readable_metadata(arena, *draft.value().find("metadata")));
    // Objects stored before generations were introduced.
    if (draft.value().int_at_or(0, "metadata", "generation") == 0)
      draft.root().child("metadata").set("generation", Value::integer(1));
    const crd::Version& own = version_of(*tree);
    if (tree->text_at("apiVersion") != written_version_) read_outdated_.store(true, std::memory_order_relaxed);
    draft.root().set("apiVersion", Value::string(arena, resource::api_version_of(*own.resource)));
    Draft finished(arena, as_read(arena, schema::prune(arena, own.schema->root(), draft.value())));
    finished.root().child("metadata").set("resourceVersion", Value::string(arena, std::to_string(revision.value)));
    const Value object = finished.value();

    codec::encode_json_sorted(object, decoded.body);
    decoded.uid = object.text_at("metadata", "uid");
    for (const Member& label : object.members_at("metadata", "labels")) {
      if (label.value.is_string()) decoded.labels.emplace_back(label.key, label.value.as_string());
    }
    decoded.fields = fields_of(arena, object);
    decoded.memory = std::move(memory);
    return decoded;
  }

  Result<std::string> encode(std::string_view body, std::span<const ownership::ManagedEntry> managed) const override {
    Arena arena;
    Result<Value> object = codec::decode_json(arena, body);
    if (!object) return object.take_error();
    std::string json;
    codec::encode_json_sorted(resource::stored_form(arena, *object, managed), json);
    json += '\n';
    return json;
  }

  std::string with_revision(std::string_view body, Revision revision) const override {
    Arena arena;
    Result<Value> object = codec::decode_json(arena, body);
    assert(object);
    Draft draft(arena, *object);
    draft.root().child("metadata").set("resourceVersion", Value::string(arena, std::to_string(revision.value)));
    return codec::encode_json_sorted(as_read(arena, draft.value()));
  }

  Value as_read(Arena& arena, const Value& stored) const override {
    const crd::Version& own = version_of(stored);
    const types::Type& root = own.schema->root();
    const Value set = schema::apply_defaults(arena, root, schema::drop_nulls(arena, root, stored));
    return embedded_[static_cast<size_t>(&own - definition_->versions().data())].read(arena, own, set);
  }

  Result<Value> tree(Arena& arena, std::string_view body) const override { return codec::decode_json(arena, body); }

  Result<std::string> body_of(Arena& arena, const Value& tree) const override {
    Draft draft(arena, tree);
    draft.root().child("metadata").remove("managedFields");
    if (deeper_than(draft.value(), limits::kObjectDepth)) return resource::nested_too_deeply();
    return codec::encode_json_sorted(draft.value());
  }

  bool is_outdated(std::string_view stored) const override {
    return resource::stored_type(stored).api_version != written_version_;
  }
  bool has_read_outdated() const override { return read_outdated_.load(std::memory_order_relaxed); }

  std::vector<std::string_view> fields_of(Arena& arena, const Value& tree) const override {
    std::vector<std::string_view> fields;
    fields.reserve(names_.size());
    for (const std::string_view name : names_) fields.push_back(arena.copy(crd::selectable_value(tree, name)));
    return fields;
  }

 private:
  struct Memory {
    Arena arena;
  };
  const crd::Version& version() const { return definition_->storage_version(); }
  // Without a webhook, an older version is read as the storage version, since only the name differs. With one it keeps
  // its version: the cache cannot wait for a conversion.
  const crd::Version& version_of(const Value& stored) const {
    if (definition_->conversion_webhook() == nullptr) return version();
    const crd::Version* named = version_named(*definition_, stored.text_at("apiVersion"));
    return named == nullptr ? version() : *named;
  }

  const std::shared_ptr<const crd::Definition> definition_;
  const std::vector<Embedded> embedded_;  // One per version.
  const std::string written_version_;
  std::vector<std::string_view> names_;
  mutable std::atomic<bool> read_outdated_{false};
};

// Metadata of the object and of every embedded resource, as decoded and encoded by Go's ObjectMeta.
struct MetadataTyper {
  Arena& arena;
  const Gates& gates;
  // Receive the fields unknown to ObjectMeta. May be null.
  std::vector<std::string>* unknown = nullptr;           // In the object's own metadata.
  std::vector<std::string>* embedded_unknown = nullptr;  // In embedded metadata.

  // The object's own metadata may carry request options, which are not part of the type.
  Result<Value> own_metadata(const Value& value, const std::string& path) {
    const Value* options = gates.on(Gate::DeclarativeFieldManager) ? value.find("options") : nullptr;
    if (options == nullptr) return metadata(value, path, unknown);
    Result<Value> typed = metadata(without_member(arena, value, "options"), path, unknown);
    if (!typed) return typed;
    return with_member(arena, *typed, "options", *options);
  }

  Result<Value> metadata(const Value& value, const std::string& path, std::vector<std::string>* findings) {
    codec::TypedReport report;
    Result<Value> typed = codec::to_typed(arena, object_meta(), value, {.gates = &gates}, &report);
    if (!typed) return typed;
    if (findings != nullptr && report.has_unknown) {
      // unknown field "foo" -> unknown field "metadata.foo"
      for (std::string& finding : codec::strict_tree_errors(object_meta(), value, &gates)) {
        findings->push_back(std::move(finding.insert(std::string_view("unknown field \"").size(), path + ".")));
      }
    }
    return typed;
  }

  Result<Value> walk(const types::Type& type, const Value& value, bool root, const std::string& path) {
    if (value.is_list() && type.shape == types::Shape::List) {
      ListBuilder list(arena);
      bool changed = false;
      for (size_t i = 0; i < value.count(); ++i) {
        Result<Value> item = walk(*type.element, value.items()[i], false, path + "[" + std::to_string(i) + "]");
        if (!item) return item;
        changed |= !item->same(value.items()[i]);
        list.add(*item);
      }
      return changed ? list.build() : value;
    }
    if (!value.is_map()) return value;
    MapBuilder map(arena);
    bool changed = false;
    for (const Member& member : value.members()) {
      std::string here = path;
      if (path.empty())
        here = member.key;
      else if (type.shape == types::Shape::Map)
        here.append("[").append(member.key).append("]");
      else
        here.append(".").append(member.key);
      const Value& given = member.key == "metadata" && member.value.is_null() ? Value::empty_map() : member.value;
      Result<Value> next = member.value;
      if (root && member.key == "metadata") {
        next = own_metadata(given, here);
      } else if (type.embedded_resource && !root && member.key == "metadata") {
        next = metadata(given, here, embedded_unknown);
        if (!next) return refusal(here, member.value, next.error().message);
      } else if (type.embedded_resource && !root && (member.key == "apiVersion" || member.key == "kind")) {
        if (!member.value.is_string()) return refusal(here, member.value, "must be a string");
      } else if (const types::Type* child = schema::member_type(type, member.key)) {
        next = walk(*child, member.value, false, here);
      }
      if (!next) return next;
      changed |= !next->same(member.value);
      map.add(member.key, *next);
    }
    return changed ? map.build() : value;
  }

  // Error for an embedded resource, with its path.
  static Error refusal(const std::string& path, const Value& value, std::string_view why) {
    kinds::FieldErrors errors;
    errors.invalid(kinds::Path(path), value, why);
    return bad_request(path + ": " + errors.all().front().message);
  }
};

}  // namespace

std::shared_ptr<const resource::ObjectCodec> make_custom_codec(std::shared_ptr<const crd::Definition> definition) {
  return std::make_shared<CustomCodec>(std::move(definition));
}

std::shared_ptr<const resource::ObjectRules> custom_rules(std::shared_ptr<const crd::Definition> definition,
                                                          const crd::Version& version,
                                                          std::shared_ptr<Conversions> conversions) {
  return std::make_shared<CustomRules>(std::move(definition), version, std::move(conversions));
}

kinds::Rules custom_kind_rules(const crd::Version& version) {
  kinds::Rules rules;
  rules.group = version.resource->group;
  rules.plural = version.resource->plural;
  rules.has_status = version.has_status;
  rules.unconditional_update = false;
  return rules;
}

Result<Value> with_typed_metadata(Arena& arena, const crd::Version& version, const Value& object, const Gates& gates) {
  return MetadataTyper{arena, gates}.walk(version.schema->root(), object, true, "");
}

Result<Value> normalize_custom(Arena& arena, const crd::Version& version, const Value& object, const Gates& gates,
                               std::vector<std::string>* unknown) {
  const types::Type& root = version.schema->root();
  std::vector<std::string> paths;
  const Value pruned = schema::prune(arena, root, object, unknown == nullptr ? nullptr : &paths);
  std::vector<std::string> embedded;
  Result<Value> typed =
      MetadataTyper{arena, gates, unknown, unknown == nullptr ? nullptr : &embedded}.walk(root, pruned, true, "");
  if (!typed) return typed;
  if (unknown != nullptr) {
    // Same order as unstructuredSchemaCoercer.apply: the object's own metadata, the schema, other metadata.
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) unknown->push_back("unknown field \"" + path + "\"");
    unknown->insert(unknown->end(), embedded.begin(), embedded.end());
  }
  return schema::drop_nulls(arena, root, *typed);
}

}  // namespace holdfast::custom
