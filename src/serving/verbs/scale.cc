// The scale subresource: an autoscaling/v1 Scale for a kind's replicas.
#include "base/api_error.h"
#include "base/strings.h"
#include "codec/typed.h"
#include "custom/conversions.h"
#include "resource/managed.h"
#include "resource/object_codec.h"
#include "verbs/markers.h"
#include "verbs/patch.h"
#include "verbs/subresources.h"
#include "write/body.h"
#include "write/write.h"

namespace holdfast::verbs {
namespace {

const types::Type& scale_type() {
  static const types::Type& type = *types::find_type("autoscaling/v1.Scale");
  return type;
}

// The path of the replicas of this resource in managedFields, for custom resources from the definition:
// ".spec.replicas".
std::string replicas_path(const call::Call& call) {
  if (!call.served->custom) return "spec.replicas";
  return join(call.served->version->scale->spec_replicas, ".");
}

Result<Value> scale_from(call::Call& call, const Value& object) {
  if (call.served->custom) return crd::scale_of(call.arena, *call.served->version->scale, object);
  return kinds::scale_of(call.arena, *call.served->resource, object);
}

bool has_path(const Value& object, std::span<const std::string_view> path) {
  const Value* here = &object;
  for (const std::string_view key : path) {
    here = here->is_map() ? here->find(key) : nullptr;
    if (here == nullptr) return false;
  }
  return true;
}

struct ScaleLive {
  Value scale;
  ownership::Managed managed;
  std::vector<ownership::ReplicasPath> paths;
};
Result<ScaleLive> scale_live(call::Call& call, const write::LiveObject& live) {
  ScaleLive out;
  Value object = live.object;
  if (call.served->custom) {
    // For a write, absent replicas count as 0; only reading them is an error.
    const std::vector<std::string>& path = call.served->version->scale->spec_replicas;
    const std::vector<std::string_view> keys(path.begin(), path.end());
    if (!has_path(object, keys)) object = with_path(call.arena, object, keys, Value::integer(0));
  }
  Result<Value> scale = scale_from(call, object);
  if (!scale) return scale.take_error();
  out.scale = *scale;
  const std::string_view replicas = call.arena.copy(replicas_path(call));
  for (const resource::Served& other : call.registry->all()) {
    if (other.storage != call.served->storage) continue;
    out.paths.push_back({call.arena.copy(resource::api_version_of(*other.resource)), replicas});
  }
  out.managed = ownership::scale_entries(call.arena, live.managed, out.paths);
  return out;
}

// Applies the Scale to its parent object and computes the parent's managedFields.
Result<write::NextObject> parent_of(call::Call& call, const write::LiveObject& live, const ScaleLive& before,
                                    const Value& scale, const ownership::Managed& managed) {
  // For custom resources, the replicas are validated with the object.
  if (!call.served->custom) {
    Result<Unit> valid = kinds::validate_scale(scale);
    if (!valid) return valid.take_error();
  }
  const std::string_view uid = scale.text_at("metadata", "uid"), own = live.object.text_at("metadata", "uid");
  if (!uid.empty() && uid != own) {
    const std::string resource = std::string(call.served->resource->plural) + "/scale";
    return conflict(
        {call.served->resource->group, resource}, live.object.text_at("metadata", "name"),
        "Precondition failed: UID in precondition: " + std::string(uid) + ", UID in object meta: " + std::string(own));
  }
  Value parent = live.object;
  if (call.served->custom) {
    Result<Value> scaled = crd::with_scale(call.arena, *call.served->version->scale, live.object, scale);
    if (!scaled) return scaled.take_error();
    parent = *scaled;
  }
  Draft draft(call.arena, parent);
  if (!call.served->custom) kinds::apply_scale(draft.root(), scale);
  const std::string_view revision = scale.text_at("metadata", "resourceVersion");
  Draft::Node metadata = draft.root().child("metadata");
  if (!revision.empty()) {
    metadata.set("resourceVersion", Value::string(revision));
  } else if (!call.served->custom) {
    metadata.remove("resourceVersion");  // Unconditional; a custom resource keeps the one that was read.
  }
  write::NextObject next;
  next.object = draft.value();
  next.managed =
      ownership::parent_entries(call.arena, live.managed, managed,
                                call.arena.copy(resource::api_version_of(*call.served->resource)), before.paths);
  return next;
}

// Admission sees the Scale, not the object being scaled.
Task<Result<write::NextObject>> finish_scale(call::Call& call, write::Writer& writer,
                                             const request::WriteOptions& options, const write::LiveObject& live,
                                             const ScaleLive& before, Value scale, const ownership::Managed& managed) {
  Result<Value> admitted =
      co_await writer.admit_subresource(call, write::AdmissionOperation::Update, options, scale, before.scale, false);
  if (!admitted) co_return admitted.take_error();
  Result<write::NextObject> next = parent_of(call, live, before, *admitted, managed);
  if (!next) co_return next;
  next->seen = *admitted;
  next->seen_old = before.scale;
  next->field_manager = options.field_manager;
  co_return next;
}

Task<Result<write::NextObject>> replace_scale(call::Call& call, write::Writer& writer,
                                              const request::WriteOptions& options, Value scale,
                                              const write::LiveObject* live) {
  Result<ScaleLive> known = scale_live(call, *live);
  if (!known) co_return known.take_error();
  const ScaleLive& before = *known;
  const std::string manager = write::manager_of(call, options);
  ownership::UpdateResult owned = call.served->managers->scale().update(call.arena, {.live = &before.scale,
                                                                                     .live_managed = &before.managed,
                                                                                     .object = scale,
                                                                                     .manager = manager,
                                                                                     .now = call.view.now});
  co_return co_await finish_scale(call, writer, options, *live, before, owned.object, owned.managed);
}

// The Scale in the namespace of the request, after checking its name.
Result<Value> placed(call::Call& call, const Value& scale) {
  Result<Value> result = write::with_request_namespace(call, scale);
  if (!result) return result;
  Result<Unit> named = write::check_name(call, *result);
  if (!named) return named.take_error();
  return result;
}

Task<Result<write::NextObject>> patch_scale_live(call::Call& call, write::Writer& writer, request::WriteOptions options,
                                                 const DecodedPatch& patch, const write::LiveObject* live) {
  Result<ScaleLive> known = scale_live(call, *live);
  if (!known) co_return known.take_error();
  const ScaleLive& before = *known;
  Result<Value> patched = apply_patch(call.arena, patch, before.scale, scale_type());
  if (!patched) co_return patched.take_error();
  const auto shown = [&] {
    return shown_in_errors(call.arena, patch, before.scale, before.managed, false, scale_type());
  };
  Result<Value> scale = typed_from_patch(call, patch, *patched, shown, scale_type(), options);
  if (scale) scale = placed(call, *scale);
  if (!scale) co_return scale.take_error();
  const std::string manager = write::manager_of(call, options);
  ownership::UpdateResult owned = call.served->managers->scale().update(call.arena, {.live = &before.scale,
                                                                                     .live_managed = &before.managed,
                                                                                     .object = *scale,
                                                                                     .manager = manager,
                                                                                     .now = call.view.now});
  co_return co_await finish_scale(call, writer, options, *live, before, owned.object, owned.managed);
}

// Fills in missing replicas of a Scale from the object's defaults, if they have any.
Value with_default_replicas(call::Call& call, const write::LiveObject& live, const Value& scale) {
  static constexpr std::string_view kReplicas[] = {"spec", "replicas"};
  if (scale.get("spec", "replicas") != nullptr) return scale;
  Value parent;
  if (call.served->custom) {
    const std::vector<std::string>& keys = call.served->version->scale->spec_replicas;
    parent = without_path(call.arena, live.object, std::vector<std::string_view>(keys.begin(), keys.end()));
  } else {
    parent = without_path(call.arena, live.object, kReplicas);
  }
  Result<Value> defaulted = scale_from(call, call.served->object_rules->with_defaults(call.arena, parent));
  const Value* replicas = defaulted ? defaulted->get("spec", "replicas") : nullptr;
  return replicas == nullptr ? scale : with_path(call.arena, scale, kReplicas, *replicas);
}

Task<Result<write::NextObject>> apply_scale_live(call::Call& call, write::Writer& writer,
                                                 const request::WriteOptions& options, const DecodedConfig& config,
                                                 bool& unset, const write::LiveObject* live) {
  if (!live->managed_problem.empty()) co_return untyped("failed to decode managed fields: " + live->managed_problem);
  Result<ScaleLive> known = scale_live(call, *live);
  if (!known) co_return known.take_error();
  const ScaleLive& before = *known;
  Result<ownership::ApplyResult> applied = call.served->managers->scale().apply(
      call.arena,
      {.live = &before.scale,
       .live_managed = &before.managed,
       .config = config.value,
       .manager = options.field_manager,
       .force = options.force.value_or(false),
       .now = call.view.now,
       .declared_defaults = [&](Arena&, const Value& scale) { return with_default_replicas(call, *live, scale); }});
  if (!applied) co_return applied.take_error();
  Result<Unit> strict = report_config_findings(call, config, options.field_validation);
  if (!strict) co_return strict.take_error();
  unset = !applied->unset.empty();
  call.served->managers->scale()
      .restored(call.arena, applied->object, applied->unset)
      .for_each([&](ownership::Path path) {
        call.warnings.add(ownership::to_string(path) + " was unset, but is set again: it has a default");
      });
  if (!applied->unset.empty() && call.served->custom && applied->object.get("spec", "replicas") == nullptr) {
    co_return bad_request("spec.replicas cannot be unset: the object has no default for " + replicas_path(call));
  }
  if (call.served->custom && applied->unset.empty() && !equal(applied->object, before.scale)) {
    // kube-apiserver passes the Scale to the converter of the custom kind, which only supports its own group.
    const std::string shown = "(" + std::string(config.value.text_at("metadata", "namespace")) + "/" +
                              std::string(config.value.text_at("metadata", "name")) + "; autoscaling/v1, Kind=Scale)";
    co_return untyped("failed to convert new object " + shown +
                      " to proper version: request to convert CR to an invalid group/version: autoscaling/v1");
  }
  Result<Value> scale = typed_from_config(call, applied->object, config.value, scale_type());
  if (scale) scale = placed(call, *scale);
  if (!scale) co_return scale.take_error();
  co_return co_await finish_scale(call, writer, options, *live, before, *scale, applied->managed);
}

Task<void> respond_scale_of(call::Call& call, int code, Value stored) {
  Result<Value> object = co_await custom::convert_object(
      call, call.served->object_rules->version_of(stored, *call.served->stored), *call.served->resource, stored);
  if (!object) co_return respond_error(call, object.error());
  Result<Value> scale = scale_from(call, *object);
  if (!scale) co_return respond_error(call, internal(scale.error().message));
  respond_tree(call, code, *scale, scale_type());
}

}  // namespace

Task<void> respond_scale(call::Call& call, cache::EntryRef entry) {
  const store::Blob body = entry->body();
  Result<Value> tree = call.storage().codec().tree(call.arena, *body);
  if (!tree) co_return respond_error(call, tree.error());
  co_await respond_scale_of(call, 200, *tree);
}

Task<void> update_scale(call::Call& call, write::Writer& writer, const std::string& bytes, request::Format format) {
  const Result<write::WriteBody> body = write::read_placed_body(call, request::WriteKind::Update, bytes, format);
  if (!body) co_return respond_error(call, body.error());
  const Value scale = body->object;
  record_request(call, scale);
  Result<Unit> named = write::check_name(call, scale);
  if (!named) co_return respond_error(call, named.error());
  write::WriteRequest request;
  request.options = body->options;
  if (const std::string_view uid = scale.text_at("metadata", "uid"); !uid.empty()) request.uid = std::string(uid);
  Result<write::Written> written = co_await writer.write_object(
      call, std::move(request),
      [&](const write::LiveObject* live) { return replace_scale(call, writer, body->options, scale, live); });
  if (!written) co_return respond_error(call, written.error());
  co_await respond_scale_of(call, 200, written->stored);
}

Task<void> patch_scale(call::Call& call, write::Writer& writer, request::PatchType type, const std::string& bytes) {
  write::WriteRequest request;
  Result<write::Written> written = internal_error("not written");
  if (type == request::PatchType::ApplyYaml || type == request::PatchType::ApplyCbor) {
    DecodedConfig config;
    Result<request::WriteOptions> options = parse_apply_options(call, type, bytes, config);
    if (!options) co_return respond_error(call, options.error());
    request.options = *options;
    request.keeps_ownership_if_too_large = true;
    bool unset = false;
    written = co_await writer.write_object(call, std::move(request), [&](const write::LiveObject* live) {
      return apply_scale_live(call, writer, *options, config, unset, live);
    });
    if (written && unset) count_unset(call, *options);
  } else {
    Result<request::WriteOptions> options = parse_write_options(call.query, request::WriteKind::Patch);
    if (!options) co_return respond_error(call, options.error());
    Result<DecodedPatch> patch = decode_patch(call, type, bytes, options->field_validation);
    if (!patch) co_return respond_error(call, patch.error());
    request.options = *options;
    written = co_await writer.write_object(call, std::move(request), [&](const write::LiveObject* live) {
      return patch_scale_live(call, writer, *options, *patch, live);
    });
  }
  if (!written) co_return respond_error(call, written.error());
  co_await respond_scale_of(call, 200, written->stored);
}

}  // namespace holdfast::verbs
