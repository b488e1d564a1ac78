// The layers above the engine, outermost first; each function is named after its layer in Kubernetes' field manager
// (k8s.io/apimachinery/pkg/util/managedfields/internal).
#include <algorithm>
#include <array>

#include "base/api_version.h"
#include "base/limits.h"
#include "base/strings.h"
#include "codec/json.h"
#include "ownership/deep.h"
#include "ownership/engine.h"
#include "ownership/ownership.h"
#include "ownership/unions.h"
#include "ownership/unset.h"

namespace holdfast::ownership {
namespace {

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
constexpr size_t kMaxAnnotationBytes = 262144;
constexpr std::string_view kKubectl = "kubectl";
constexpr std::string_view kBeforeFirstApply = "before-first-apply";
constexpr std::string_view kAncientChanges = "ancient-changes";
constexpr size_t kNone = SIZE_MAX;

// Exactly these paths are never owned.
FieldSet never_owned_paths() {
  struct Paths {
    Arena arena;
    FieldSet set;
    Paths() {
      SetBuilder metadata(arena), root(arena);
      for (const std::string_view name : {"clusterName", "creationTimestamp", "generation", "managedFields", "name",
                                          "namespace", "resourceVersion", "selfLink", "uid"}) {
        metadata.add(PathElement::field(name), true, {});
      }
      root.add(PathElement::field("apiVersion"), true, {});
      root.add(PathElement::field("kind"), true, {});
      root.add(PathElement::field("metadata"), true, metadata.close(0));
      set = root.close(0);
    }
  };
  static const Paths paths;
  return paths.set;
}

Value without_managed_fields(Arena& arena, const Value& object) {
  static constexpr std::array<std::string_view, 2> kPath = {"metadata", "managedFields"};
  if (object.get("metadata", "managedFields") == nullptr) return object;
  return without_path(arena, object, kPath);
}

Error unknown_error(std::string message) { return {Reason::Unknown, std::move(message)}; }

// Whether Kubernetes could parse managedFields. If not, it treats them as absent here and rejects their type later.
bool is_readable_managed_fields(const Value& managed_fields) {
  if (!managed_fields.is_list()) return false;
  constexpr std::string_view kTexts[] = {"manager", "operation", "apiVersion", "time", "fieldsType", "subresource"};
  for (const Value& entry : managed_fields.items()) {
    if (!entry.is_map()) return false;
    for (const std::string_view key : kTexts) {
      const Value* text = entry.find(key);
      if (text != nullptr && !text->is_string() && !text->is_null()) return false;
      if (key == "time" && text != nullptr && text->is_string() && !parse_rfc3339(text->as_string())) return false;
    }
  }
  return true;
}

// "namespace/name; group/version, Kind=K"
std::string object_text(const Value& object, std::string_view api_version, std::string_view kind) {
  return std::string(object.text_at("metadata", "namespace")) + "/" + std::string(object.text_at("metadata", "name")) +
         "; " + go_kind_text(api_version, kind);
}

// Each conflict names its manager and its whole path, so the text can be far longer than the request: beyond a size,
// conflicts are only counted.
Error conflict_error(const std::vector<Conflict>& conflicts) {
  std::vector<std::pair<std::string, const Conflict*>> sorted;
  sorted.reserve(conflicts.size());
  for (const Conflict& conflict : conflicts) sorted.emplace_back(identity_text(conflict.owner), &conflict);
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Error error{Reason::Conflict, ""};
  error.details.emplace();
  std::string blocks;
  size_t count = 0, cause_bytes = 0;
  for (const auto& [identity, conflict] : sorted) {
    std::string who;
    conflict->paths.for_each([&](Path path) {
      ++count;
      if (blocks.size() + cause_bytes >= limits::kReportedBytes) return;
      if (who.empty()) {
        who = manager_text(conflict->owner);
        blocks += (blocks.empty() ? "conflicts with " : "\nconflicts with ") + who + ":";
      }
      // Owners were read from FieldsV1, so their numbers are shown as doubles.
      const std::string shown = to_string(path, ShownNumbers::AsRead);
      blocks += "\n- " + shown;
      error.causes.push_back({"FieldManagerConflict", "conflict with " + who, shown});
      cause_bytes += who.size() + shown.size();
    });
  }
  if (count == 1) {
    error.message = "Apply failed with 1 conflict: " + error.causes[0].message + ": " + error.causes[0].field;
  } else {
    error.message = "Apply failed with " + std::to_string(count) + " conflicts: " + blocks;
    if (count > error.causes.size()) {
      error.message += "\nand " + std::to_string(count - error.causes.size()) + " more";
    }
  }
  return error;
}

void strip_meta(Arena& arena, Managed& managed, const ManagerEntry& who) {
  for (ManagerEntry& entry : managed) {
    if (same_manager(entry, who)) entry.fields = difference(arena, entry.fields, never_owned_paths());
  }
  std::erase_if(managed, [&](const ManagerEntry& entry) { return entry.fields.empty() && same_manager(entry, who); });
}

// The versions of a manager, for a request with its own conversion function.
class ConvertedBy final : public Versions {
 public:
  ConvertedBy(const Versions& versions, const Convert& convert) : versions_(versions), convert_(convert) {}

  const VersionView* find(std::string_view api_version) const override { return versions_.find(api_version); }
  Result<std::optional<Value>> convert(Arena& arena, const Value& object, const VersionView& from,
                                       const VersionView& to) const override {
    if (!convert_) return versions_.convert(arena, object, from, to);
    Result<Value> converted = convert_(arena, object, from.api_version, to.api_version);
    if (!converted) return converted.take_error();
    return std::optional<Value>(*converted);
  }

 private:
  const Versions& versions_;
  const Convert& convert_;
};

}  // namespace

struct FieldManager::State final : Versions {
  explicit State(FieldManagerOptions o) : options(std::move(o)) {
    for (const ServedVersion& version : options.versions) {
      assert(version.type != nullptr);
      views.push_back({version.api_version, version.type, version.reset.empty() ? nullptr : &version.reset});
    }
    own = find(options.api_version);
    assert(own != nullptr);
  }

  const VersionView* find(std::string_view api_version) const override {
    for (const VersionView& view : views) {
      if (view.api_version == api_version) return &view;
    }
    return nullptr;
  }

  Result<std::optional<Value>> convert(Arena& arena, const Value& object, const VersionView& from,
                                       const VersionView& to) const override {
    if (!options.convert) return std::optional<Value>();
    Result<Value> converted = options.convert(arena, object, from.api_version, to.api_version);
    if (!converted) return converted.take_error();
    return std::optional<Value>(*converted);
  }

  Value zero_object(Arena& arena) const {
    if (options.zero_object) return unfold_raw(arena, *own->type, options.zero_object(arena));
    MapBuilder map(arena);
    map.add("apiVersion", Value::string(options.api_version));
    map.add("kind", Value::string(options.kind));
    return map.build();
  }

  // Build manager info. Entries may outlive this manager and the request's texts.
  ManagerEntry entry_of(Arena& arena, std::string_view manager, Operation operation) const {
    ManagerEntry entry;
    entry.manager = manager.empty() ? std::string_view("unknown") : arena.copy(manager);
    entry.operation = operation;
    entry.api_version = arena.copy(std::string_view(options.api_version));
    entry.subresource = arena.copy(std::string_view(options.subresource));
    return entry;
  }

  // Structured merge, strip meta, managed-fields updater.
  Result<Managed> track(Arena& arena, const Value& live, const Value& object, const Managed& managed,
                        std::string_view manager, UnixTime now, const Convert& convert_by) const {
    auto problem = [&](std::string_view what, const Value& which, std::string_view why) {
      return unknown_error("failed to convert " + std::string(what) + " object (" +
                           object_text(which, options.api_version, options.kind) +
                           ") to smd typed: " + std::string(why));
    };
    if (std::string why = validate(*own->type, object, Duplicates::Tolerated); !why.empty()) {
      return problem("new", object, why);
    }
    if (std::string why = validate(*own->type, live, Duplicates::Tolerated); !why.empty()) {
      return problem("live", live, why);
    }
    const ConvertedBy versions(*this, convert_by);
    Engine engine(arena, versions, *own);
    Result<Engine::Updated> updated = engine.update(live, object, managed);
    if (!updated) {
      return unknown_error("failed to update ManagedFields (" + object_text(object, options.api_version, options.kind) +
                           "): " + updated.error().message);
    }
    const FieldSet gained = difference(arena, updated->gained, never_owned_paths());
    if (!gained.empty()) {
      ManagerEntry self = entry_of(arena, manager, Operation::Update);
      self.time = now.seconds;
      self.fields = gained;
      const auto before = std::find_if(updated->managed.begin(), updated->managed.end(),
                                       [&](const ManagerEntry& entry) { return same_manager(entry, self); });
      if (before == updated->managed.end()) {
        updated->managed.push_back(self);
      } else {
        self.fields = union_of(arena, gained, before->fields);
        *before = self;
      }
    }
    cap_managers(arena, updated->managed);
    return std::move(updated->managed);
  }

  // If there are too many update managers, the oldest of each version are merged into one entry.
  void cap_managers(Arena& arena, Managed& managed) const {
    if (options.retain_all_managers) return;
    std::vector<std::pair<std::string, size_t>> updaters;  // Identity and position.
    for (size_t i = 0; i < managed.size(); ++i) {
      if (managed[i].operation == Operation::Update) updaters.emplace_back("", i);
    }
    if (updaters.size() <= options.max_update_managers) return;
    for (auto& [identity, at] : updaters) identity = identity_text(managed[at]);
    std::sort(updaters.begin(), updaters.end(), [&](const auto& a, const auto& b) {
      const int64_t x = managed[a.second].time.value_or(0), y = managed[b.second].time.value_or(0);
      return x != y ? x < y : a.first < b.first;
    });
    struct Bucket {
      std::string_view api_version;
      size_t first;                 // The oldest entry of the version ...
      std::optional<size_t> place;  // ... and the one that it and later ones are merged into.
      std::vector<FieldSet> parts;
    };
    std::vector<Bucket> buckets;
    std::vector<bool> merged(managed.size());
    for (size_t i = 0; i < managed.size(); ++i) {
      if (managed[i].operation != Operation::Update || managed[i].manager != kAncientChanges) continue;
      if (managed[i].subresource.empty()) buckets.push_back({managed[i].api_version, kNone, i, {managed[i].fields}});
    }
    size_t count = updaters.size();
    for (const auto& [identity, at] : updaters) {
      if (count <= options.max_update_managers) break;
      auto bucket =
          std::find_if(buckets.begin(), buckets.end(),
                       [&, version = managed[at].api_version](const Bucket& b) { return b.api_version == version; });
      if (bucket == buckets.end()) {
        buckets.push_back({managed[at].api_version, kNone, {}, {}});
        bucket = buckets.end() - 1;
      }
      if (bucket->first == kNone) {
        bucket->first = at;
        continue;
      }
      if (!bucket->place) {
        if (!merged[bucket->first]) bucket->parts.push_back(managed[bucket->first].fields);
        merged[bucket->first] = true;
        bucket->place = managed.size();
        ManagerEntry made;
        made.manager = kAncientChanges;
        made.operation = Operation::Update;
        made.api_version = bucket->api_version;
        managed.push_back(made);
        merged.push_back(false);
      }
      bucket->parts.push_back(managed[at].fields);
      managed[*bucket->place].time = managed[at].time;
      merged[at] = true;
      // Like upstream: if the entry is the bucket itself, its fields are lost.
      if (at == *bucket->place) {
        bucket->place.reset();
        bucket->parts.clear();
      }
      --count;
    }
    for (Bucket& bucket : buckets) {
      if (bucket.place) managed[*bucket.place].fields = union_of(arena, std::move(bucket.parts));
    }
    size_t kept = 0;
    for (size_t i = 0; i < managed.size(); ++i) {
      if (!merged[i]) managed[kept++] = managed[i];
    }
    managed.resize(kept);
  }

  // Structured merge, strip meta, managed-fields updater.
  Result<Engine::Applied> apply_once(Arena& arena, const Value& live, const Value& config, const Managed& managed,
                                     const ManagerEntry& applier, const Engine::ApplyOptions& how, UnixTime now,
                                     const Convert& convert_by) const {
    const ConvertedBy versions(*this, convert_by);
    Engine engine(arena, versions, *own);
    Result<Engine::Applied> applied = engine.apply(live, config, managed, applier, how);
    if (!applied) return unknown_error(applied.take_error().message);
    if (!applied->conflicts.empty()) return applied;
    strip_meta(arena, applied->managed, applier);
    if (applied->changed) {
      for (ManagerEntry& entry : applied->managed) {
        if (same_manager(entry, applier)) entry.time = now.seconds;
      }
    }
    return applied;
  }

  // The paths that kubectl set according to client-side apply's annotation and whose values are unchanged since. Empty
  // if there is no usable annotation.
  std::optional<FieldSet> client_side_fields(Arena& arena, const Value& live) const {
    const std::string_view text = live.text_at("metadata", "annotations", kLastApplied);
    if (text.empty() || !validate(*own->type, live, Duplicates::Refused).empty()) return std::nullopt;
    const Result<Value> last = codec::decode_json(arena, text);
    if (!last || last->text_at("apiVersion") != options.api_version || last->text_at("kind").empty()) {
      return std::nullopt;
    }
    if (last->text_at("kind") != options.kind) return std::nullopt;
    if (!validate(*own->type, *last, Duplicates::Refused).empty()) return std::nullopt;
    const Comparison drift = compare(arena, *own->type, *last, live);
    FieldSet fields = to_set(arena, *own->type, *last);
    fields = difference(arena, fields, drift.modified);
    fields = difference(arena, fields, drift.added);
    return difference(arena, fields, drift.removed);
  }

  // Updates kubectl's annotation to what kubectl applied through the server.
  Value update_last_applied(Arena& arena, const Value& object, const Value& config) const {
    if (object.text_at("metadata", "annotations", kLastApplied).empty()) return object;
    static constexpr std::array<std::string_view, 3> kPath = {"metadata", "annotations", kLastApplied};
    const Value plain =
        config.get("metadata", "annotations", kLastApplied) == nullptr ? config : without_path(arena, config, kPath);
    std::string text;
    codec::encode_json_sorted(plain, text);
    text += '\n';
    size_t bytes = kLastApplied.size() + text.size();
    for (const Member& m : object.members_at("metadata", "annotations")) {
      if (m.key != kLastApplied) bytes += m.key.size() + (m.value.is_string() ? m.value.as_string().size() : 0);
    }
    if (bytes > kMaxAnnotationBytes) return without_path(arena, object, kPath);
    return with_path(arena, object, kPath, Value::string(arena, text));
  }

  UpdateResult update(Arena& arena, const UpdateRequest& request) const;
  Result<ApplyResult> apply(Arena& arena, const ApplyRequest& request) const;
  Result<Value> apply_unowned(Arena& arena, const Value& object, const Value& config) const;
  Result<Value> extract(Arena& arena, const Value& object, const Managed& managed, std::string_view manager,
                        std::string_view subresource, Markers markers) const;

  const FieldManagerOptions options;
  std::vector<VersionView> views;
  const VersionView* own = nullptr;
};

FieldManager::FieldManager(FieldManagerOptions options) : state_(std::make_unique<State>(std::move(options))) {}
FieldManager::~FieldManager() = default;
FieldManager::FieldManager(FieldManager&&) noexcept = default;
FieldManager& FieldManager::operator=(FieldManager&&) noexcept = default;
const FieldManagerOptions& FieldManager::options() const { return state_->options; }

namespace {

constexpr std::string_view kTooDeep = "the object is nested too deeply";

}  // namespace

UpdateResult FieldManager::update(Arena& arena, const UpdateRequest& request) const {
  UpdateResult out;
  out.object = request.object;
  if (!run_with_stack_for({request.live, &request.object}, [&] { out = state_->update(arena, request); }))
    out.problem = kTooDeep;
  return out;
}

Result<ApplyResult> FieldManager::apply(Arena& arena, const ApplyRequest& request) const {
  Result<ApplyResult> out = unknown_error(std::string(kTooDeep));
  run_with_stack_for({request.live, &request.config}, [&] { out = state_->apply(arena, request); });
  return out;
}

Result<Value> FieldManager::apply_unowned(Arena& arena, const Value& object, const Value& config) const {
  Result<Value> out = unknown_error(std::string(kTooDeep));
  run_with_stack_for({&object, &config}, [&] { out = state_->apply_unowned(arena, object, config); });
  return out;
}

Result<Value> FieldManager::extract(Arena& arena, const Value& object, const Managed& managed, std::string_view manager,
                                    std::string_view subresource, Markers markers) const {
  Result<Value> out = unknown_error(std::string(kTooDeep));
  run_with_stack_for({&object}, [&] { out = state_->extract(arena, object, managed, manager, subresource, markers); });
  return out;
}

FieldSet FieldManager::restored(Arena& arena, const Value& object, FieldSet unset) const {
  if (unset.empty()) return unset;
  return recursive_difference(arena, unset, vacancies(arena, *state_->own->type, object, unset));
}

UpdateResult FieldManager::State::update(Arena& arena, const UpdateRequest& request) const {
  const State& s = *this;
  static const Managed kNoManagers;
  const Managed& stored = request.live_managed == nullptr ? kNoManagers : *request.live_managed;
  UpdateResult out;
  out.object = without_managed_fields(arena, request.object);

  // Starting point: the client may set or reset ownership through the main resource.
  Managed managed = stored;
  const Value* sent = request.object.get("metadata", "managedFields");
  if (s.options.subresource.empty() && sent != nullptr) {
    if (resets_managed(*sent)) {
      managed.clear();
    } else if (Result<Managed> decoded = decode_managed(arena, *sent, {.fields_v2 = s.options.fields_v2});
               decoded && !decoded->empty()) {
      managed = std::move(*decoded);
    }
  }

  // An object without owners is tracked from its creation or its first apply on, never from a later update.
  const bool creating = request.live == nullptr || request.live->text_at("metadata", "uid").empty();
  if (managed.empty() && !creating) return out;

  const Value live = request.live == nullptr
                         ? s.zero_object(arena)
                         : unfold_raw(arena, *s.own->type, without_managed_fields(arena, *request.live));
  const Value object = unfold_raw(arena, *s.own->type, out.object);
  Result<Managed> tracked = s.track(arena, live, object, managed, request.manager, request.now, request.convert);
  if (!tracked) {
    out.problem = tracked.take_error().message;
    return out;
  }
  out.managed = std::move(*tracked);
  sort_managed(out.managed);
  return out;
}

Result<ApplyResult> FieldManager::State::apply(Arena& arena, const ApplyRequest& request) const {
  const State& s = *this;
  // Take out markers first: the rest must match the type like any configuration, and a marker in place of `kind` is
  // reported as such.
  Engine::ApplyOptions how;
  how.force = request.force;
  how.unset_markers = s.options.unset_markers;
  Value config = request.config;
  if (s.options.unset_markers && has_marker(config)) {
    Result<Unset> unset = take_markers(arena, *s.own->type, config);
    if (!unset) return unset.take_error();
    config = unset->config;
    how.unset = unset->paths;
  }
  how.defaults = request.declared_defaults ? &request.declared_defaults : &s.options.declared_defaults;

  const std::string_view config_version = config.text_at("apiVersion");
  const std::string_view config_kind = config.text_at("kind");
  if (config_version != s.options.api_version || config_kind != s.options.kind) {
    return bad_request("invalid object type: " + go_kind_text(config_version, config_kind));
  }
  if (const Value* sent = config.get("metadata", "managedFields");
      sent != nullptr && is_readable_managed_fields(*sent)) {
    return bad_request("metadata.managedFields must be nil");
  }

  const Value live = request.live == nullptr
                         ? Value::empty_map()
                         : unfold_raw(arena, *s.own->type, without_managed_fields(arena, *request.live));
  Managed managed = request.live_managed == nullptr ? Managed() : *request.live_managed;

  // Everything in an object that had no owner before its first apply is attributed to "before-first-apply".
  if (managed.empty() && request.live != nullptr) {
    Result<Managed> tracked =
        s.track(arena, s.zero_object(arena), live, managed, kBeforeFirstApply, request.now, request.convert);
    if (!tracked) {
      return unknown_error("failed to create manager for existing fields: " + tracked.error().message);
    }
    managed = std::move(*tracked);
  }

  if (std::string why = validate(*s.own->type, config, Duplicates::Refused); !why.empty()) {
    return unknown_error("failed to create typed patch object (" + object_text(config, config_version, config_kind) +
                         "): " + why);
  }
  if (std::string why = validate(*s.own->type, live, Duplicates::Tolerated); !why.empty()) {
    return unknown_error("failed to create typed live object (" +
                         object_text(live, s.options.api_version, s.options.kind) + "): " + why);
  }

  const ManagerEntry applier = s.entry_of(arena, request.manager, Operation::Apply);

  Result<Engine::Applied> applied =
      s.apply_once(arena, live, config, managed, applier, how, request.now, request.convert);
  if (!applied) return applied.take_error();
  if (!applied->conflicts.empty()) {
    // kubectl may take over fields that its own client-side apply wrote.
    std::optional<FieldSet> allowed;
    if (request.manager == kKubectl) allowed = s.client_side_fields(arena, live);
    if (!allowed) return conflict_error(applied->conflicts);
    std::vector<Conflict> rest;
    for (const Conflict& conflict : applied->conflicts) {
      const FieldSet outside = difference(arena, conflict.paths, *allowed);
      if (!outside.empty()) rest.push_back({conflict.owner, outside});
    }
    if (!rest.empty()) return conflict_error(rest);
    how.force = true;
    applied = s.apply_once(arena, live, config, managed, applier, how, request.now, request.convert);
    if (!applied) return applied.take_error();
  }

  // A configuration may set managedFields to null. Unreadable ones stay in the object for the caller to reject.
  const Value* sent = config.get("metadata", "managedFields");
  const bool unreadable = sent != nullptr && !sent->is_null();
  ApplyResult out{unreadable ? applied->object : without_managed_fields(arena, applied->object), applied->changed,
                  std::move(applied->managed), how.unset};
  if (request.live == nullptr) out.changed = true;
  if (!out.changed) out.object = without_managed_fields(arena, *request.live);
  if (request.manager == kKubectl) {
    // Without markers, which client-side apply does not know.
    const Value updated = s.update_last_applied(arena, out.object, config);
    if (!updated.same(out.object)) {
      out.changed |= !holdfast::equal(updated, out.object);
      out.object = updated;
    }
  }
  sort_managed(out.managed);
  return out;
}

namespace {

// Paths of everything atomic in the configuration, as far as they fit an error message. Of maps, only declared fields
// are checked, like upstream (k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch/smd.go).
class Atomics {
 public:
  void find(const MergeType& type, const Value& value) {
    const size_t before = path_.size();
    if (value.is_map() && (type.offers & MergeType::kMap) != 0) {
      if (type.atomic_map) add();
      for (const Member& member : value.members()) {
        const MergeField* field = type.find(member.key);
        if (field == nullptr) continue;
        path_ += '.';
        path_ += member.key;
        find(*field->type, member.value);
        path_.resize(before);
      }
    } else if (value.is_list() && (type.offers & MergeType::kList) != 0) {
      if (type.atomic_list) add();
      for (size_t i = 0; i < value.count(); ++i) {
        path_ += "[" + std::to_string(i) + "]";
        find(*type.item, value.items()[i]);
        path_.resize(before);
      }
    }
  }

  bool empty() const { return count_ == 0; }
  std::string text() const {
    const size_t more = count_ - paths_.size();
    return join(paths_, ", ") + (more == 0 ? "" : " and " + std::to_string(more) + " more");
  }

 private:
  void add() {
    ++count_;
    if (bytes_ >= limits::kReportedBytes) return;
    paths_.push_back(path_);
    bytes_ += path_.size();
  }

  std::string path_;
  std::vector<std::string> paths_;
  size_t count_ = 0, bytes_ = 0;
};

}  // namespace

Result<Value> FieldManager::State::apply_unowned(Arena& arena, const Value& object, const Value& config) const {
  const MergeType& type = *own->type;
  FieldSet unset;
  Value wanted = config;
  if (has_marker(config)) {
    Result<Unset> taken = take_markers(arena, type, config);
    if (!taken) return taken.take_error();
    wanted = taken->config;
    unset = taken->paths;
  }
  if (std::string why = validate(type, wanted, Duplicates::Refused); !why.empty()) {
    return bad_request("failed to convert patch object to typed object: " + why);
  }
  Atomics atomics;
  atomics.find(type, wanted);
  if (!atomics.empty()) {
    return bad_request("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: " + atomics.text());
  }
  const Value base = unfold_raw(arena, type, object);
  if (std::string why = validate(type, base, Duplicates::Tolerated); !why.empty()) {
    return bad_request("failed to convert original object to typed object: " + why);
  }
  const Value merged = merge(arena, type, base, wanted);
  if (unset.empty()) return merged;
  // The caller sets defaults, but not in containers that do not exist.
  return with_defaulted_parents(arena, type, remove(arena, type, merged, unset, Emptied::Keep), unset,
                                options.declared_defaults);
}

Result<Value> FieldManager::State::extract(Arena& arena, const Value& object, const Managed& managed,
                                           std::string_view manager, std::string_view subresource,
                                           Markers markers) const {
  const State& s = *this;
  const auto entry = std::find_if(managed.begin(), managed.end(), [&](const ManagerEntry& e) {
    return e.operation == Operation::Apply && e.manager == manager && e.subresource == subresource;
  });
  if (entry == managed.end()) return Value();
  const Value whole = unfold_raw(arena, *s.own->type, without_managed_fields(arena, object));
  if (std::string why = validate(*s.own->type, whole, Duplicates::Refused); !why.empty()) {
    return bad_request("error converting obj to typed: " + why);
  }
  const FieldSet vacant = vacancies(arena, *s.own->type, whole, entry->fields);
  const FieldSet present = vacant.empty() ? entry->fields : recursive_difference(arena, entry->fields, vacant);
  Value found = ownership::extract(arena, *s.own->type, whole, leaves(arena, present));
  if (markers == Markers::Included) {
    found = with_escapes(arena, found);
    FieldSet defaulted;
    if (s.options.declared_defaults) {
      defaulted = defaulted_containers(arena, *s.own->type, whole, present, [&](const Value& bare) {
        return Result<Value>(s.options.declared_defaults(arena, bare));
      });
    }
    found = with_markers(arena, *s.own->type, found, union_of(arena, vacant, defaulted));
  }
  MapBuilder out(arena);
  out.add("apiVersion", Value::string(s.options.api_version));
  out.add("kind", Value::string(s.options.kind));
  if (found.is_map()) {
    for (const Member& m : found.members()) out.set(m.key, m.value);
  }
  return out.build();
}

bool equal(const Managed& a, const Managed& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const ManagerEntry& x, const ManagerEntry& y) {
    return same_manager(x, y) && x.api_version == y.api_version && x.time == y.time && x.fields == y.fields;
  });
}

bool differ_only_in_times(const Managed& a, const Managed& b) {
  if (a.empty() || a.size() != b.size()) return false;
  bool times_differ = false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same_manager(a[i], b[i]) || a[i].api_version != b[i].api_version || !(a[i].fields == b[i].fields))
      return false;
    times_differ |= a[i].time != b[i].time;
  }
  return times_differ;
}

}  // namespace holdfast::ownership
