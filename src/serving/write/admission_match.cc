#include "write/admission_match.h"

#include <algorithm>

#include "base/api_error.h"
#include "base/strings.h"
#include "codec/typed.h"
#include "custom/conversions.h"
#include "custom/custom_objects.h"
#include "schema/schema.h"
#include "write/body.h"

namespace holdfast::write {

webhook::GroupVersionResource resource_of(const types::Resource& resource) {
  return {resource.group, resource.version, resource.plural};
}

webhook::GroupVersionKind kind_of(const call::Call& call, const types::Resource& resource) {
  if (call.subresource != nullptr && !call.subresource->kind.empty() && call.subresource->kind != resource.kind) {
    const bool own = call.subresource->version.empty();
    return {own ? resource.group : call.subresource->group, own ? resource.version : call.subresource->version,
            call.subresource->kind};
  }
  return {resource.group, resource.version, resource.kind};
}

bool has_own_kind(const call::Call& call) {
  return kind_of(call, *call.served->resource).kind != call.served->resource->kind;
}

Task<Result<Unit>> show_as(call::Call& call, Versioned& versioned, const resource::Served& wanted) {
  if (versioned.served == &wanted) co_return Unit{};
  if (!has_own_kind(call)) {
    for (Value* value : {&versioned.object, &versioned.old}) {
      if (value->is_null()) continue;
      Result<Value> converted =
          co_await custom::convert_object(call, *versioned.served->resource, *wanted.resource, *value);
      if (!converted) co_return internal(converted.error().message);
      *value = *converted;
    }
  }
  versioned.served = &wanted;
  co_return Unit{};
}

Result<Patched> take_patched(call::Call& call, const Versioned& before, const Value& patched, bool strict) {
  Arena& arena = call.arena;
  const Gates& gates = call.settings.gates;
  Value object = patched;
  if (has_own_kind(call) || !before.served->custom) {
    const types::Type& type = has_own_kind(call) ? *expected_of(call).type : *before.served->resource->type;
    codec::TypedReport report;
    Result<Value> typed = codec::to_typed(arena, type, object, {.gates = &gates}, &report);
    if (!typed) return internal(typed.error().message);
    if (strict && report.has_unknown) {
      return internal("strict decoding error: " + join(codec::strict_tree_errors(type, object, &gates), ", "));
    }
    object = *typed;
  } else {
    Result<Value> typed = custom::with_typed_metadata(arena, *before.served->version, object, gates);
    if (!typed) return internal(typed.error().message);
    object = schema::prune(arena, before.served->version->schema->root(), *typed);
  }
  Patched result;
  result.changed = !equal(object, before.object);
  if (!has_own_kind(call) && before.served->object_rules != nullptr) {
    object = before.served->object_rules->with_defaults(arena, object);
  }
  result.object = object;
  return result;
}

bool RequestMatcher::matches(const webhook::Rule& rule, const types::Resource& resource) const {
  return rule.matches(request_.operation, resource_of(resource), request_.subresource, request_.ns, request_.name);
}

const resource::Served* RequestMatcher::version(std::span<const webhook::Rule> rules, bool equivalent) {
  const types::Resource& asked = *call_.served->resource;
  if (std::any_of(rules.begin(), rules.end(), [&](const webhook::Rule& rule) { return matches(rule, asked); })) {
    return call_.served;
  }
  if (!equivalent || call_.served->storage == nullptr) return nullptr;
  if (!siblings_) {
    siblings_.emplace();
    for (const resource::Served& other : call_.registry->all()) {
      if (other.resource != &asked && other.storage == call_.served->storage) siblings_->push_back(&other);
    }
  }
  // Earlier rules take precedence.
  for (const webhook::Rule& rule : rules) {
    for (const resource::Served* other : *siblings_) {
      if (matches(rule, *other->resource)) return other;
    }
  }
  return nullptr;
}

const Value& RequestMatcher::namespace_object() {
  if (!namespace_) {
    namespace_ = Value::null();
    if (known_.ns) {
      const store::Blob body = known_.ns->body();
      Result<Value> tree =
          call_.registry->storage_of("", "namespaces")->codec().tree(call_.arena, call_.arena.copy(*body));
      if (tree) namespace_ = *tree;
    }
  }
  return *namespace_;
}

bool RequestMatcher::selects_namespace(const Value& selector) {
  if (call_.ns().empty() && !is_namespaces()) return true;
  if (webhook::selects_all(selector)) return true;
  const bool written = request_.subresource.empty() && request_.object.is_map();
  const Value& holder = !is_namespaces() ? namespace_object() : written ? request_.object : request_.old;
  return webhook::selects_namespace(selector, holder.get("metadata", "labels"));
}

}  // namespace holdfast::write
