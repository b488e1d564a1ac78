// Resources that are asked and not stored: access reviews, token review, who am I.
#include "api/body.h"
#include "api/state.h"
#include "api/subresources.h"
#include "base/api_error.h"

namespace holdfast::api {
namespace {

Value user_value(Arena& arena, const auth::UserInfo& user) {
  MapBuilder map(arena);
  map.add("username", Value::string(arena, user.name));
  if (!user.uid.empty()) map.add("uid", Value::string(arena, user.uid));
  if (!user.groups.empty()) {
    ListBuilder groups(arena);
    for (const std::string& group : user.groups) groups.add(Value::string(arena, group));
    map.add("groups", groups.build());
  }
  if (!user.extra.empty()) {
    MapBuilder extra(arena);
    for (const auto& [key, values] : user.extra) {
      ListBuilder list(arena);
      for (const std::string& value : values) list.add(Value::string(arena, value));
      extra.add_copy(key, list.build());
    }
    map.add("extra", extra.build());
  }
  return map.build();
}

// What an access review asks about.
auth::Attributes attributes_of(const Value& spec, const auth::UserInfo& user) {
  auth::Attributes attributes;
  attributes.user = &user;
  if (const Value* resource = spec.find("resourceAttributes"); resource != nullptr && resource->is_map()) {
    attributes.is_resource = true;
    attributes.verb = resource->text_at("verb");
    attributes.group = resource->text_at("group");
    attributes.version = resource->text_at("version");
    attributes.resource = resource->text_at("resource");
    attributes.subresource = resource->text_at("subresource");
    attributes.ns = resource->text_at("namespace");
    attributes.name = resource->text_at("name");
  } else {
    attributes.verb = spec.text_at("nonResourceAttributes", "verb");
    attributes.path = spec.text_at("nonResourceAttributes", "path");
  }
  return attributes;
}

Value decision_value(Arena& arena, const auth::Decision& decision) {
  MapBuilder status(arena);
  status.add("allowed", Value::boolean(decision.allowed()));
  if (decision.verdict == auth::Decision::Verdict::Deny) status.add("denied", Value::boolean(true));
  if (!decision.reason.empty()) status.add("reason", Value::string(arena, decision.reason));
  return status.build();
}

auth::UserInfo user_of_spec(const Value& spec) {
  auth::UserInfo user;
  user.name = spec.text_at("user");
  user.uid = spec.text_at("uid");
  for (const Value& group : spec.items_at("groups")) {
    if (group.is_string()) user.groups.emplace_back(group.as_string());
  }
  for (const Member& extra : spec.members_at("extra")) {
    std::vector<std::string> values;
    if (extra.value.is_list()) {
      for (const Value& value : extra.value.items()) {
        if (value.is_string()) values.emplace_back(value.as_string());
      }
    }
    user.extra.emplace_back(std::string(extra.key), std::move(values));
  }
  return user;
}

Result<Unit> validate_attributes(Call& call, const Value& spec) {
  const bool resource = spec.has("resourceAttributes") && !spec.find("resourceAttributes")->is_null();
  const bool path = spec.has("nonResourceAttributes") && !spec.find("nonResourceAttributes")->is_null();
  std::vector<Cause> causes;
  if (resource && path) {
    causes.push_back(field_invalid("spec.nonResourceAttributes", "{}",
                                   "cannot be specified in combination with resourceAttributes"));
  }
  if (!resource && !path) {
    causes.push_back(field_invalid("spec.resourceAttributes", "null",
                                   "exactly one of nonResourceAttributes or resourceAttributes must be specified"));
  }
  if (causes.empty()) return Unit{};
  return invalid(call.group_kind(), "", std::move(causes));
}

}  // namespace

Task<void> serve_review(Call& call, const std::string& bytes, Format format) {
  Result<WriteOptions> options = parse_write_options(call.query, WriteKind::Create);
  if (!options) co_return respond_error(call, options.error());
  Result<Value> decoded = decode_body(call, bytes, format, expected_of(*call.served), options->field_validation);
  if (!decoded) co_return respond_error(call, decoded.error());
  Result<Value> placed = with_request_namespace(call, *decoded);
  if (!placed) co_return respond_error(call, placed.error());
  const std::string_view kind = call.served->resource->kind;
  const Value* found = placed->find("spec");
  const Value spec = found == nullptr ? Value::empty_map() : *found;
  const auth::Authorizer& authorizer = *call.api.deps.authorizer;
  Value status;
  if (kind == "SelfSubjectAccessReview") {
    Result<Unit> valid = validate_attributes(call, spec);
    if (!valid) co_return respond_error(call, valid.error());
    status = decision_value(call.arena, authorizer.authorize(attributes_of(spec, *call.user)));
  } else if (kind == "SubjectAccessReview" || kind == "LocalSubjectAccessReview") {
    Result<Unit> valid = validate_attributes(call, spec);
    if (!valid) co_return respond_error(call, valid.error());
    const auth::UserInfo user = user_of_spec(spec);
    status = decision_value(call.arena, authorizer.authorize(attributes_of(spec, user)));
  } else if (kind == "SelfSubjectReview") {
    MapBuilder map(call.arena);
    map.add("userInfo", user_value(call.arena, *call.user));
    status = map.build();
  } else if (kind == "TokenReview") {
    MapBuilder map(call.arena);
    map.add("user", Value::empty_map());
    map.add("error", Value::string("no authenticator knows this token"));
    status = map.build();
  } else {
    co_return respond_error(call, method_not_supported(call.group_resource(), "create"));
  }
  respond_tree(call, 201, with_member(call.arena, *placed, "status", status), *call.served->resource->type);
}

}  // namespace holdfast::api
