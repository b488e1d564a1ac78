// Resources that are evaluated but not stored: access reviews, token reviews, self subject reviews and rules reviews.
// Reviews of ownership are evaluated in ownership_reviews.cc; transfers and releases write in ownership_transfers.cc.
#include <algorithm>

#include "base/api_error.h"
#include "base/text.h"
#include "call/call.h"
#include "codec/codec.h"
#include "request/selectors.h"
#include "resource/managed.h"
#include "verbs/ownership_reviews.h"
#include "verbs/ownership_transfers.h"
#include "verbs/subresources.h"
#include "write/body.h"
#include "write/write.h"

namespace holdfast::verbs {
namespace {

Value text_list(Arena& arena, const std::vector<std::string>& texts) {
  ListBuilder list(arena);
  for (const std::string& text : texts) list.add(Value::string(arena, text));
  return list.build();
}

Value user_value(Arena& arena, const auth::UserInfo& user) {
  MapBuilder map(arena);
  if (!user.name.empty()) map.add("username", Value::string(arena, user.name));
  if (!user.uid.empty()) map.add("uid", Value::string(arena, user.uid));
  if (!user.groups.empty()) map.add("groups", text_list(arena, user.groups));
  if (!user.extra.empty()) {
    std::vector<const std::pair<std::string, std::vector<std::string>>*> sorted;
    sorted.reserve(user.extra.size());
    for (const auto& entry : user.extra) sorted.push_back(&entry);
    std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
    MapBuilder extra(arena);
    for (const auto* entry : sorted) extra.add_copy(entry->first, text_list(arena, entry->second));
    map.add("extra", extra.build());
  }
  return map.build();
}

// --- Access reviews ---

// The spec.nodeName that the field selector of an access review requires; empty if it requires none.
std::string selected_node(const Value& resource) {
  const Value* selector = resource.find("fieldSelector");
  if (selector == nullptr || !selector->is_map()) return {};
  if (const std::string_view raw = selector->text_at("rawSelector"); !raw.empty()) {
    const Result<std::vector<request::FieldTerm>> terms = request::parse_field_terms(raw);
    return terms ? std::string(request::required_node(*terms)) : std::string();
  }
  for (const Value& requirement : selector->items_at("requirements")) {
    const std::span<const Value> values = requirement.items_at("values");
    if (requirement.text_at("key") == "spec.nodeName" && requirement.text_at("operator") == "In" &&
        values.size() == 1 && values[0].is_string()) {
      return std::string(values[0].as_string());
    }
  }
  return {};
}

// The attributes an access review asks about. They refer to `node`, which this sets.
auth::Attributes attributes_of(const Value& spec, const auth::UserInfo& user, std::string& node) {
  const Value* resource = spec.find("resourceAttributes");
  if (resource == nullptr || !resource->is_map()) {
    return {&user, spec.text_at("nonResourceAttributes", "verb"), spec.text_at("nonResourceAttributes", "path")};
  }
  node = selected_node(*resource);
  return {&user,
          resource->text_at("verb"),
          {.group = resource->text_at("group"),
           .version = resource->text_at("version"),
           .resource = resource->text_at("resource"),
           .subresource = resource->text_at("subresource"),
           .ns = resource->text_at("namespace"),
           .name = resource->text_at("name"),
           .selected_node = node}};
}

auth::UserInfo user_of_spec(const Value& spec) {
  auth::UserInfo user;
  user.name = spec.text_at("user");
  user.uid = spec.text_at("uid");
  user.groups = texts_of(spec.items_at("groups"));
  for (const Member& extra : spec.members_at("extra")) {
    user.extra.emplace_back(std::string(extra.key),
                            extra.value.is_list() ? texts_of(extra.value.items()) : std::vector<std::string>());
  }
  return user;
}

bool is_given(const Value& spec, std::string_view key) {
  const Value* found = spec.find(key);
  return found != nullptr && !found->is_null();
}

// How much of a selector Kubernetes can parse. The rest is ignored, which is reported. Only the
// Node authorizer uses selectors.
enum class Parsed : uint8_t { All, Some, None };

Parsed parsed_selector(const Value& selector, bool of_fields) {
  if (const std::string_view raw = selector.text_at("rawSelector"); !raw.empty()) {
    const bool good = of_fields ? bool(request::parse_field_terms(raw)) : bool(request::parse_label_selector(raw));
    return good ? Parsed::All : Parsed::None;
  }
  size_t good = 0;
  const std::span<const Value> requirements = selector.items_at("requirements");
  for (const Value& requirement : requirements) {
    const std::string_view op = requirement.text_at("operator");
    const bool has_values = op == "In" || op == "NotIn";
    if (of_fields) {
      good += has_values && requirement.items_at("values").size() == 1;
    } else {
      good += has_values || op == "Exists" || op == "DoesNotExist";
    }
  }
  if (good == requirements.size()) return Parsed::All;
  return good > 0 ? Parsed::Some : Parsed::None;
}

std::string evaluation_error(const Value& spec) {
  std::string text;
  for (const std::string_view key : {"fieldSelector", "labelSelector"}) {
    const Value* selector = spec.get("resourceAttributes", key);
    if (selector == nullptr || !selector->is_map()) continue;
    const Parsed parsed = parsed_selector(*selector, key == "fieldSelector");
    if (parsed == Parsed::All) continue;
    text += (text.empty() ? "spec.resourceAttributes." : "; spec.resourceAttributes.") + std::string(key) +
            (parsed == Parsed::Some ? " partially ignored due to parse error" : " ignored due to parse error");
  }
  return text;
}

Value decision_value(Arena& arena, const auth::Decision& decision, const Value& spec) {
  MapBuilder status(arena);
  status.add("allowed", Value::boolean(decision.allowed()));
  if (decision.verdict == auth::Decision::Verdict::Deny) status.add("denied", Value::boolean(true));
  if (!decision.reason.empty()) status.add("reason", Value::string(arena, decision.reason));
  if (const std::string error = evaluation_error(spec); !error.empty()) {
    status.add("evaluationError", Value::string(arena, error));
  }
  return status.build();
}

void check_selector(const Value& spec, std::string_view key, std::vector<Cause>& causes) {
  const Value* selector = spec.get("resourceAttributes", key);
  if (selector == nullptr || !selector->is_map()) return;
  const std::string at = "spec.resourceAttributes." + std::string(key);
  const std::string_view raw = selector->text_at("rawSelector");
  const std::span<const Value> requirements = selector->items_at("requirements");
  if (!raw.empty() && !requirements.empty()) {
    causes.push_back(
        field_invalid_text(at + ".rawSelector", raw, "may not specified at the same time as requirements"));
  }
  if (raw.empty() && requirements.empty()) {
    causes.push_back(
        field_required(at + ".requirements", "when " + at + " is specified, requirements or rawSelector is required"));
  }
  for (size_t i = 0; i < requirements.size(); ++i) {
    const Value& one = requirements[i];
    const std::string item = at + ".requirements[" + std::to_string(i) + "]";
    if (key == "fieldSelector" && one.text_at("key").empty()) {
      causes.push_back(field_required(item + ".key", "must be specified"));
    }
    auto check_label_key = [&] {
      if (key == "fieldSelector") return;
      for (const std::string& problem : kinds::qualified_name_errors(one.text_at("key"))) {
        causes.push_back(field_invalid_text(item + ".key", one.text_at("key"), problem));
      }
    };
    const std::string_view op = one.text_at("operator");
    if ((op == "In" || op == "NotIn") && one.items_at("values").empty()) {
      causes.push_back(field_required(item + ".values", "must be specified when `operator` is 'In' or 'NotIn'"));
    } else if ((op == "Exists" || op == "DoesNotExist") && !one.items_at("values").empty()) {
      causes.push_back(
          field_forbidden(item + ".values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
    }
    check_label_key();
  }
}

// Orders members like generated code, in the order of the type.
Value in_order(Arena& arena, const Value& metadata) {
  static const types::Type& type = *types::find_type("meta/v1.ObjectMeta");
  const Result<Value> ordered = codec::to_typed(arena, type, metadata);
  return ordered ? *ordered : metadata;
}

// Kubernetes prints its internal type here, which has no JSON names.
std::string shown_path_attributes(const Value& spec) {
  const Value* attributes = spec.find("nonResourceAttributes");
  if (attributes == nullptr || attributes->is_null()) return "null";
  return "{\"Path\":" + codec::encode_json_string(attributes->text_at("path")) +
         ",\"Verb\":" + codec::encode_json_string(attributes->text_at("verb")) + "}";
}

// Errors do not name a kind: upstream's object has lost its type metadata at this point.
Result<Unit> validate_access_review(call::Call& call, const Value& review, const Value& spec,
                                    const ownership::Managed& managed) {
  const std::string_view kind = call.served->resource->kind;
  const bool self = kind == "SelfSubjectAccessReview", local = kind == "LocalSubjectAccessReview";
  const bool resource = is_given(spec, "resourceAttributes"), path = is_given(spec, "nonResourceAttributes");
  std::vector<Cause> causes;
  if (resource && path) {
    causes.push_back(field_invalid("spec.nonResourceAttributes", shown_path_attributes(spec),
                                   "cannot be specified in combination with resourceAttributes"));
  }
  if (!resource && !path) {
    causes.push_back(field_invalid("spec.resourceAttributes", "null",
                                   "exactly one of nonResourceAttributes or resourceAttributes must be specified"));
  }
  if (!self && spec.text_at("user").empty() && spec.items_at("groups").empty()) {
    causes.push_back(field_invalid_text("spec.user", "", "at least one of user or group must be specified"));
  }
  check_selector(spec, "fieldSelector", causes);
  check_selector(spec, "labelSelector", causes);
  Value bare = Value::empty_map();
  if (const Value* metadata = review.find("metadata"); metadata != nullptr && metadata->is_map()) {
    bare = without_member(call.arena, *metadata, "managedFields");
    if (local) bare = without_member(call.arena, bare, "namespace");
  }
  if (bare.count() > 0) {
    const Value shown = write::with_managed(
        call.arena, with_member(call.arena, review, "metadata", in_order(call.arena, *review.find("metadata"))),
        managed, false);
    causes.push_back(field_invalid("metadata", codec::encode_json(*shown.find("metadata")),
                                   local ? "must be empty except for namespace" : "must be empty"));
  }
  if (local && resource) {
    const std::string_view ns = spec.text_at("resourceAttributes", "namespace");
    if (ns != review.text_at("metadata", "namespace")) {
      causes.push_back(field_invalid_text("spec.resourceAttributes.namespace", ns, "must match metadata.namespace"));
    }
  }
  if (local && path) {
    causes.push_back(
        field_invalid("spec.nonResourceAttributes", shown_path_attributes(spec), "disallowed on this kind of request"));
  }
  if (causes.empty()) return Unit{};
  return invalid({call.served->resource->group, ""}, "", std::move(causes));
}

// Validates a review before it is evaluated.
Result<Unit> validate_review(call::Call& call, const Value& review, const Value& spec,
                             const ownership::Managed& managed) {
  const std::string_view kind = call.served->resource->kind;
  if (kind == "SelfSubjectReview") return Unit{};
  if (kind == "SelfSubjectRulesReview") {
    if (spec.text_at("namespace").empty()) return bad_request("no namespace on request");
    return Unit{};
  }
  if (kind == "TokenReview") {
    if (spec.text_at("token").empty()) return bad_request("token is required for TokenReview in authentication");
    return Unit{};
  }
  if (is_ownership_review(*call.served->resource)) return validate_ownership_review(spec);
  if (is_ownership_transfer(*call.served->resource)) return validate_ownership_transfer(*call.served->resource, spec);
  if (kind.ends_with("SubjectAccessReview")) return validate_access_review(call, review, spec, managed);
  return method_not_supported(call.group_resource(), "create");
}

Value access_status(call::Call& call, const Parts& parts, const Value& spec) {
  const auth::Authorizer& authorizer = parts.authorizers;
  std::string node;
  if (call.served->resource->kind == "SelfSubjectAccessReview") {
    return decision_value(call.arena, authorizer.authorize(attributes_of(spec, *call.user, node)), spec);
  }
  const auth::UserInfo user = user_of_spec(spec);
  return decision_value(call.arena, authorizer.authorize(attributes_of(spec, user, node)), spec);
}

// --- SelfSubjectRulesReview ---

Task<Value> rules_status(call::Call& call, const Parts& parts, std::string_view ns) {
  // Reading a megabyte of rules takes some milliseconds.
  constexpr size_t kManyTexts = 10'000;
  Arena& arena = call.arena;
  const access::KnownRules known = parts.authorizers.rules_for(*call.user, ns);
  if (rbac::texts_in(known.rules) > kManyTexts) co_await leave_loop(call);
  ListBuilder resources(arena), paths(arena);
  const auto add = [&](const rbac::Rule& rule) {
    if (!rule.resources.empty()) {
      MapBuilder map(arena);
      map.add("verbs", text_list(arena, rule.verbs));
      if (!rule.groups.empty()) map.add("apiGroups", text_list(arena, rule.groups));
      map.add("resources", text_list(arena, rule.resources));
      if (!rule.names.empty()) map.add("resourceNames", text_list(arena, rule.names));
      resources.add(map.build());
    }
    if (!rule.paths.empty()) {
      MapBuilder map(arena);
      map.add("verbs", text_list(arena, rule.verbs));
      map.add("nonResourceURLs", text_list(arena, rule.paths));
      paths.add(map.build());
    }
  };
  for (const rbac::RulesRef& role : known.rules) std::for_each(role->begin(), role->end(), add);
  MapBuilder status(arena);
  status.add("resourceRules", resources.build());
  status.add("nonResourceRules", paths.build());
  status.add("incomplete", Value::boolean(known.incomplete));
  if (!known.problem.empty()) status.add("evaluationError", Value::string(arena, known.problem));
  co_return status.build();
}

// --- TokenReview ---

Task<Value> token_status(call::Call& call, const Parts& parts, const Value& spec) {
  std::vector<std::string> audiences = texts_of(spec.items_at("audiences"));
  Result<auth::TokenUser> known = Error{Reason::Unauthorized, "invalid bearer token"};
  // As in an Authorization header, a token ends at the first space.
  std::string_view token = spec.text_at("token");
  token = token.substr(0, token.find(' '));
  if (parts.review_token && !token.empty()) {
    co_await return_to_loop(call);
    known = co_await parts.review_token(std::string(token), std::move(audiences), call.request.loop(), call.outgoing());
  }
  MapBuilder status(call.arena);
  if (!known) {
    status.add("user", Value::empty_map());
    status.add("error", Value::string(call.arena, known.error().message));
    co_return status.build();
  }
  status.add("authenticated", Value::boolean(true));
  status.add("user", user_value(call.arena, *known->user));
  if (!known->audiences.empty()) status.add("audiences", text_list(call.arena, known->audiences));
  co_return status.build();
}

// A response built as a new object, without other data of the request.
Value fresh(call::Call& call, const Value& review, const Value& metadata, std::optional<Value> spec,
            const Value& status) {
  MapBuilder map(call.arena);
  map.add("kind", *review.find("kind"));
  map.add("apiVersion", *review.find("apiVersion"));
  map.add("metadata", metadata);
  if (spec) map.add("spec", *spec);
  map.add("status", status);
  return map.build();
}

}  // namespace

void respond_unstored(call::Call& call, const Value& object, const ownership::Managed& managed,
                      const types::Type& type) {
  const Value* sent = object.find("metadata");
  const Value bare =
      with_member(call.arena, object, "metadata", in_order(call.arena, sent == nullptr ? Value::empty_map() : *sent));
  const auto shown_in = [&](const render::View& view) {
    if (view.omits_ownership() || managed.empty()) return bare;
    std::vector<ownership::ManagedEntry> entries = resource::stored_entries(call.arena, managed, false);
    if (view.accepted.ownership == request::Ownership::V2) entries = resource::as_fields_v2(call.arena, entries);
    return with_member(call.arena, bare, "metadata",
                       with_member(call.arena, *bare.find("metadata"), "managedFields",
                                   resource::managed_fields_value(call.arena, entries)));
  };
  if (const std::optional<render::View> view = recorded_view(call)) {
    record_response(call, render_tree(*view, call.arena, shown_in(*view), type));
  }
  respond_tree(call, 201, shown_in(call.view), type);
}

Task<void> serve_review(call::Call& call, const Parts& parts, const std::string& bytes, request::Format format) {
  const Result<write::WriteBody> body = write::read_placed_body(call, request::WriteKind::Create, bytes, format);
  if (!body) co_return respond_error(call, body.error());

  record_request(call, body->object);
  const types::Resource& resource = *call.served->resource;
  const std::string_view kind = resource.kind;
  const std::string manager = write::manager_of(call, body->options);
  ownership::UpdateResult owned =
      call.served->managers->at(kinds::Endpoint::Main)
          .update(call.arena, {.object = body->object, .manager = manager, .now = call.view.now});
  Result<write::NextObject> mutated =
      co_await parts.writer.mutate(call, write::AdmissionOperation::Create, body->options,
                                   write::NextObject{owned.object, std::move(owned.managed)}, nullptr);
  if (!mutated) co_return respond_error(call, mutated.error());
  const Value review = mutated->object;
  const Value* found = review.find("spec");
  const Value spec = found == nullptr || !found->is_map() ? Value::empty_map() : *found;
  Result<Unit> valid = validate_review(call, review, spec, mutated->managed);
  if (!valid) co_return respond_error(call, valid.error());
  Result<Unit> accepted =
      co_await parts.writer.validate(call, write::AdmissionOperation::Create, body->options, review, *mutated, nullptr);
  if (!accepted) co_return respond_error(call, accepted.error());

  if (kind == "SelfSubjectReview") {
    MapBuilder metadata(call.arena), status(call.arena);
    metadata.add("creationTimestamp", Value::string(call.arena, format_rfc3339(call.view.now)));
    status.add("userInfo", user_value(call.arena, *call.user));
    co_return respond_tree(call, 201, fresh(call, review, metadata.build(), {}, status.build()), *resource.type);
  }
  if (kind == "SelfSubjectRulesReview") {
    const Value status = co_await rules_status(call, parts, spec.text_at("namespace"));
    co_return respond_tree(call, 201, fresh(call, review, Value::empty_map(), Value::empty_map(), status),
                           *resource.type);
  }
  if (is_ownership_transfer(resource)) {
    Result<Value> status = co_await transfer_ownership(call, parts, spec, body->options.dry_run);
    if (!status) co_return respond_error(call, status.error());
    co_return respond_unstored(call, with_member(call.arena, review, "status", *status), mutated->managed,
                               *resource.type);
  }
  const Value status = kind == "TokenReview"           ? co_await token_status(call, parts, spec)
                       : is_ownership_review(resource) ? co_await ownership_review_status(call, parts, spec)
                                                       : access_status(call, parts, spec);
  respond_unstored(call, with_member(call.arena, review, "status", status), mutated->managed, *resource.type);
}

}  // namespace holdfast::verbs
