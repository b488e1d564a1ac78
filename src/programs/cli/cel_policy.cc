#include "cli/cel_policy.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/api_version.h"
#include "base/strings.h"
#include "base/text.h"
#include "cel/cel.h"
#include "cli/line_diff.h"
#include "codec/codec.h"
#include "codec/typed.h"
#include "codec/visible.h"
#include "expressions/expressions.h"
#include "kinds/kinds.h"
#include "ownership/ownership.h"
#include "policy/policy.h"
#include "schema/schema.h"
#include "types/types.h"
#include "webhook/webhook.h"

namespace holdfast::cli {
namespace {

constexpr std::string_view kValidating = "ValidatingAdmissionPolicy", kMutating = "MutatingAdmissionPolicy";

class NobodyToAsk final : public cel::Authorizer {
 public:
  Decision decide(const Check&) override { return {.error = "authorization checks are not available offline"}; }
};

// The kind of the object: its defaulting, and how apply configurations merge into it.
class ObjectKind {
 public:
  static Result<ObjectKind> of(const Value& object, const Value& definition) {
    ObjectKind kind;
    kind.api_version_ = object.text_at("apiVersion");
    kind.kind_ = object.text_at("kind");
    if (kind.api_version_.empty() || kind.kind_.empty()) return bad_request("the object has no apiVersion or kind");
    const auto [group, version] = split_api_version(kind.api_version_);
    kind.plural_ = to_lower(kind.kind_) + "s";
    ownership::FieldManagerOptions options;
    options.api_version = kind.api_version_;
    options.kind = kind.kind_;
    const ownership::MergeType* type = &ownership::MergeTypes::deduced();
    if (const Value* schema = definition.is_map() ? schema_for(definition, object) : nullptr) {
      kind.schema_ = schema::Schema::build(*schema, false);
      kind.merge_types_ = std::make_unique<ownership::MergeTypes>();
      type = &kind.merge_types_->of(kind.schema_->root());
      kind.plural_ = definition.text_at("spec", "names", "plural");
    } else if (definition.is_map()) {
      return bad_request("the CustomResourceDefinition has no version with a schema that matches the object");
    } else if (const types::Resource* resource = types::find_kind(group, version, kind.kind_);
               resource != nullptr && resource->type) {
      kind.resource_ = resource;
      type = &ownership::builtin_merge_types().of(*resource->type);
      kind.plural_ = resource->plural;
    }
    options.versions.push_back({std::string(kind.api_version_), type, {}});
    kind.fields_ = std::make_unique<ownership::FieldManager>(std::move(options));
    return kind;
  }

  std::string_view plural() const { return plural_; }
  std::string_view kind() const { return kind_; }
  std::string_view api_version() const { return api_version_; }
  const ownership::FieldManager& fields() const { return *fields_; }

  // As decoded by the server, with defaults. `strict`: unknown fields are an error instead of being dropped.
  Result<Value> taken(Arena& arena, const Value& object, bool strict) const {
    if (object.is_null()) return object;
    if (schema_ != nullptr) {
      return schema::apply_defaults(arena, schema_->root(), schema::prune(arena, schema_->root(), object));
    }
    if (resource_ == nullptr) return object;
    if (strict) {
      if (const std::vector<std::string> unknown = codec::strict_tree_errors(*resource_->type, object);
          !unknown.empty()) {
        return internal_error("Internal error occurred: strict decoding error: " + join(unknown, ", "));
      }
    }
    Result<Value> typed = codec::to_typed(arena, *resource_->type, object);
    if (!typed) return typed.take_error();
    Draft draft(arena, *typed);
    kinds::set_defaults(arena, *resource_, draft.root());
    return draft.value();
  }

 private:
  std::string_view api_version_, kind_;
  std::string plural_;
  const types::Resource* resource_ = nullptr;
  std::shared_ptr<const schema::Schema> schema_;
  std::unique_ptr<ownership::MergeTypes> merge_types_;
  std::unique_ptr<ownership::FieldManager> fields_;
};

Value map_of(Arena& arena, std::initializer_list<std::pair<std::string_view, Value>> members) {
  MapBuilder map(arena);
  for (const auto& [key, value] : members) map.add(key, value);
  return map.build();
}

Value text(Arena& arena, std::string_view value) { return Value::string(arena, value); }

// The variable `request`, as the server would set it for a request from an administrator.
Value request_value(Arena& arena, const ObjectKind& kind, const Value& object, std::string_view operation) {
  const auto [group, version] = split_api_version(kind.api_version());
  const Value of_kind = map_of(
      arena, {{"group", text(arena, group)}, {"version", text(arena, version)}, {"kind", text(arena, kind.kind())}});
  const Value of_resource = map_of(
      arena,
      {{"group", text(arena, group)}, {"version", text(arena, version)}, {"resource", text(arena, kind.plural())}});
  ListBuilder groups(arena);
  for (const std::string_view name : {"system:masters", "system:authenticated"}) groups.add(Value::string(name));
  const Value user = map_of(arena, {{"username", Value::string("admin")}, {"groups", groups.build()}});
  const Value options = map_of(arena, {{"apiVersion", Value::string("meta.k8s.io/v1")},
                                       {"kind", Value::string(operation == "CREATE"   ? "CreateOptions"
                                                              : operation == "UPDATE" ? "UpdateOptions"
                                                                                      : "DeleteOptions")}});
  MapBuilder request(arena);
  request.add("kind", of_kind);
  request.add("resource", of_resource);
  request.add("requestKind", of_kind);
  request.add("requestResource", of_resource);
  request.add("name", text(arena, object.text_at("metadata", "name")));
  if (const std::string_view ns = object.text_at("metadata", "namespace"); !ns.empty())
    request.add("namespace", text(arena, ns));
  request.add("operation", text(arena, operation));
  request.add("userInfo", user);
  request.add("dryRun", Value::boolean(false));
  request.add("options", options);
  return request.build();
}

// The namespace of the object, as far as it can be derived from its name.
Value namespace_value(Arena& arena, const Value& object) {
  const std::string_view ns = object.text_at("metadata", "namespace");
  if (ns.empty()) return Value::null();
  const Value labels = map_of(arena, {{"kubernetes.io/metadata.name", text(arena, ns)}});
  return map_of(arena, {{"metadata", map_of(arena, {{"name", text(arena, ns)}, {"labels", labels}})},
                        {"spec", Value::empty_map()},
                        {"status", map_of(arena, {{"phase", Value::string("Active")}})}});
}

std::vector<std::string> lines_of(const Value& value) {
  std::string yaml;
  (void)codec::encode_visible_yaml(value, yaml);
  std::vector<std::string> lines;
  for (size_t at = 0; at < yaml.size();) {
    const size_t end = std::min(yaml.find('\n', at), yaml.size());
    lines.push_back(yaml.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string difference(const Value& before, const Value& after) {
  const std::vector<std::string> old_lines = lines_of(before), new_lines = lines_of(after);
  const std::vector<DiffLine> lines = diff_lines(old_lines, new_lines);
  std::string out = "--- before\n+++ after\n";
  for (const Hunk& hunk : hunks(lines)) {
    out += hunk.heading + "\n";
    for (const DiffLine& line : hunk.lines) {
      switch (line.kind) {
        case DiffLine::Kind::Same:
          out += " " + old_lines[line.before] + "\n";
          break;
        case DiffLine::Kind::Removed:
          out += "-" + old_lines[line.before] + "\n";
          break;
        case DiffLine::Kind::Added:
          out += "+" + new_lines[line.after] + "\n";
          break;
      }
    }
  }
  return out;
}

class Evaluation {
 public:
  Evaluation(Arena& arena, const PolicyCase& given, const policy::Policy& policy, const ObjectKind& kind)
      : arena_(arena), given_(given), policy_(policy), kind_(kind) {
    operation_ = given.object.is_null() ? "DELETE" : given.old_object.is_null() ? "CREATE" : "UPDATE";
    const Value& about = given.object.is_null() ? given.old_object : given.object;
    request_ = request_value(arena, kind, about, operation_);
    namespace_ = kind.kind() == "Namespace" ? Value::null() : namespace_value(arena, about);
  }

  Result<PolicyReport> run() {
    note_match();
    object_ = given_.object;
    const expressions::Matched matched = policy::check_match_conditions(arena_, policy_, subject());
    if (!matched.problem.empty()) {
      report_.text += "denied: " + matched.problem + "\n";
      report_.denied = true;
    } else if (!matched.matches) {
      report_.text += "matchConditions are not met: nothing was evaluated\n";
    } else if (given_.policy.text_at("kind") == kMutating) {
      Result<Unit> done = mutate();
      if (!done) return done.take_error();
    } else {
      validate();
    }
    report_.text += std::string("verdict: ") + (report_.denied ? "denied" : "allowed") + "\n";
    return std::move(report_);
  }

 private:
  void note_match() {
    if (!policy_.match) return;
    const auto [group, version] = split_api_version(kind_.api_version());
    const webhook::Operation operation = operation_ == "CREATE"   ? webhook::Operation::Create
                                         : operation_ == "UPDATE" ? webhook::Operation::Update
                                                                  : webhook::Operation::Delete;
    const Value& about = given_.object.is_null() ? given_.old_object : given_.object;
    const auto any = [&](const std::vector<webhook::Rule>& rules) {
      return std::any_of(rules.begin(), rules.end(), [&](const webhook::Rule& rule) {
        return rule.matches(operation, {group, version, kind_.plural()}, "", about.text_at("metadata", "namespace"),
                            about.text_at("metadata", "name"));
      });
    };
    if (!any(policy_.match->rules) || any(policy_.match->excluded)) {
      report_.text += "note: matchConstraints do not match " + std::string(operation_) + " of " +
                      std::string(kind_.api_version()) + " " + std::string(kind_.plural()) + "; evaluated anyway\n";
    }
  }

  policy::Subject subject() {
    policy::Subject subject;
    subject.inputs.object = cel::Val::data(object_);
    subject.inputs.old_object = cel::Val::data(given_.old_object);
    subject.inputs.request = cel::Val::data(request_);
    subject.inputs.namespace_object = cel::Val::data(namespace_);
    subject.inputs.params = cel::Val::data(given_.params);
    subject.inputs.authorizer = &authorizer_;
    subject.original_request = subject.inputs.request;
    return subject;
  }

  void validate() {
    const policy::Verdict verdict = policy::judge(arena_, policy_, subject());
    std::vector<std::string> actions = texts_of(given_.binding.items_at("spec", "validationActions"));
    if (actions.empty()) actions = {"Deny"};
    const std::string binding(given_.binding.text_at("metadata", "name"));
    for (const policy::Failure& failure : verdict.failures) {
      for (const std::string& action : actions) {
        if (action == "Deny") {
          report_.text += "denied: " + failure.message + "\n";
          if (!failure.reason.empty()) report_.text += "reason: " + failure.reason + "\n";
          report_.denied = true;
        } else if (action == "Warn") {
          report_.text += "warning: Validation failed for ValidatingAdmissionPolicy '" + policy_.name +
                          "' with binding '" + binding + "': " + failure.message + "\n";
        } else {
          report_.text += "audit: validation.policy.admission.k8s.io/validation_failure: " + failure.message + "\n";
        }
      }
    }
    for (const auto& [key, value] : verdict.annotations) {
      report_.text += "audit: " + policy_.name + "/" + key + ": " + value + "\n";
    }
    for (const std::string& problem : verdict.annotation_problems) {
      report_.text += "denied: " + problem + "\n";
      report_.denied = true;
    }
  }

  Result<Unit> mutate() {
    if (object_.is_null()) return bad_request("a MutatingAdmissionPolicy needs an object: -f FILE");
    const Value before = object_;
    for (const policy::Mutation& mutation : policy_.programs().mutations) {
      const policy::Subject now = subject();
      expressions::Activation activation(arena_, policy_.scope(), policy_.programs().variables, now.inputs);
      int64_t budget = cel::kRuntimeBudget;
      Result<Value> mutated = policy::apply_mutation(arena_, mutation, activation, budget, object_, &kind_.fields());
      if (!mutated) {
        report_.text += (policy_.ignores_failure ? "ignored: " : "denied: ") + mutated.error().message + "\n";
        report_.denied |= !policy_.ignores_failure;
        continue;
      }
      Result<Value> taken = kind_.taken(arena_, *mutated, mutation.kind == policy::Mutation::Kind::JsonPatch);
      if (!taken) {
        // failurePolicy does not apply.
        report_.text += "denied: " + taken.error().message + "\n";
        report_.denied = true;
        return Unit{};
      }
      object_ = *taken;
    }
    report_.text += equal(before, object_) ? "no change\n" : difference(before, object_);
    return Unit{};
  }

  Arena& arena_;
  const PolicyCase& given_;
  const policy::Policy& policy_;
  const ObjectKind& kind_;
  NobodyToAsk authorizer_;
  std::string_view operation_;
  Value request_, namespace_, object_;
  PolicyReport report_;
};

// The policy with defaults, if the server would accept it.
Result<Value> checked_policy(Arena& arena, const Value& policy) {
  const std::string_view kind = policy.text_at("kind");
  if (kind != kValidating && kind != kMutating) {
    return bad_request("a policy is a ValidatingAdmissionPolicy or a MutatingAdmissionPolicy, not " + go_quote(kind));
  }
  // v1beta1 has the same form.
  const types::Resource& resource = *types::find_kind("admissionregistration.k8s.io", "v1", kind);
  Result<Value> typed = codec::to_typed(arena, *resource.type, policy);
  if (!typed) return typed.take_error();
  Draft draft(arena, *typed);
  kinds::set_defaults(arena, resource, draft.root());
  kinds::Context context{.arena = arena, .resource = resource, .now = {}, .sent = policy};
  const Value complete = draft.value();
  if (Result<Unit> valid = kinds::validate_create(context, complete); !valid) return valid.take_error();
  return complete;
}

}  // namespace

const Value* schema_for(const Value& definition, const Value& object) {
  const std::string_view wanted = split_api_version(object.text_at("apiVersion")).version;
  const Value* storage = nullptr;
  for (const Value& version : definition.items_at("spec", "versions")) {
    const Value* schema = version.get("schema", "openAPIV3Schema");
    if (version.text_at("name") == wanted) return schema;
    const Value* is_storage = version.find("storage");
    if (is_storage != nullptr && is_storage->is_bool() && is_storage->as_bool()) storage = schema;
  }
  return storage;
}

Result<PolicyReport> evaluate_policy(Arena& arena, const PolicyCase& given) {
  Result<Value> checked = checked_policy(arena, given.policy);
  if (!checked) return checked.take_error();
  if (given.object.is_null() && given.old_object.is_null()) return bad_request("a policy needs an object: -f FILE");
  const Value& about = given.object.is_null() ? given.old_object : given.object;
  Result<ObjectKind> kind = ObjectKind::of(about, given.definition);
  if (!kind) return kind.take_error();
  PolicyCase prepared = given;
  for (Value* object : {&prepared.object, &prepared.old_object}) {
    Result<Value> taken = kind->taken(arena, *object, false);
    if (!taken) return taken.take_error();
    *object = *taken;
  }
  auto memory = std::make_unique<Arena>();
  const Value copied = deep_copy(*memory, *checked);
  const policy::Policy policy(std::move(memory), copied);
  return Evaluation(arena, prepared, policy, *kind).run();
}

}  // namespace holdfast::cli
