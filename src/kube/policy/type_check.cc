#include "policy/type_check.h"

#include <algorithm>

#include "base/api_version.h"
#include "expressions/expressions.h"

namespace holdfast::policy {
namespace {

constexpr size_t kMaxTypes = 10;
constexpr std::string_view kCompilationFailed = "compilation failed: ";

// The strings of a list, sorted; nullopt if one is a wildcard.
std::optional<std::vector<std::string>> plain_texts(const Value& rule, std::string_view key) {
  std::vector<std::string> texts;
  for (const Value& item : rule.items_at(key)) {
    if (!item.is_string() || item.as_string().find('*') != std::string_view::npos) return std::nullopt;
    texts.emplace_back(item.as_string());
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

// Resolves the references in an OpenAPI v3 schema.
class Resolver {
 public:
  Resolver(Arena& arena, const Value& document) : arena_(arena), schemas_(document.get("components", "schemas")) {}

  const Value* find(std::string_view group, std::string_view version, std::string_view kind) const {
    if (schemas_ == nullptr || !schemas_->is_map()) return nullptr;
    for (const Member& schema : schemas_->members()) {
      for (const Value& one : schema.value.items_at("x-kubernetes-group-version-kind")) {
        if (one.text_at("group") == group && one.text_at("version") == version && one.text_at("kind") == kind) {
          return &schema.value;
        }
      }
    }
    return nullptr;
  }

  Value resolve(const Value& schema) {
    if (!schema.is_map()) return schema;
    if (const std::string_view name = reference(schema); !name.empty()) {
      const Value* target = schemas_->find(name);
      // A recursive type becomes an object of unknown type.
      if (target == nullptr || std::find(open_.begin(), open_.end(), name) != open_.end()) return plain_object();
      open_.push_back(name);
      const Value resolved = resolve(*target);
      open_.pop_back();
      return resolved;
    }
    MapBuilder map(arena_);
    for (const Member& member : schema.members()) {
      if (member.key == "properties" && member.value.is_map()) {
        MapBuilder properties(arena_);
        for (const Member& property : member.value.members()) properties.add(property.key, resolve(property.value));
        map.add(member.key, properties.build());
      } else if (member.key == "items" || member.key == "additionalProperties") {
        map.add(member.key, resolve(member.value));
      } else {
        map.add(member.key, member.value);
      }
    }
    return map.build();
  }

 private:
  // Either direct, or in an allOf next to a description.
  static std::string_view reference(const Value& schema) {
    constexpr std::string_view kPrefix = "#/components/schemas/";
    std::string_view text = schema.text_at("$ref");
    for (const Value& one : schema.items_at("allOf")) {
      if (text.empty()) text = one.text_at("$ref");
    }
    return text.starts_with(kPrefix) ? text.substr(kPrefix.size()) : std::string_view{};
  }
  Value plain_object() {
    MapBuilder map(arena_);
    map.add("type", Value::string("object"));
    return map.build();
  }

  Arena& arena_;
  const Value* schemas_;
  std::vector<std::string_view> open_;  // References being resolved.
};

// All issues of one expression, by kind; empty if there are none.
std::string issues(const Value& policy, std::span<const CheckedKind> kinds,
                   const std::shared_ptr<const cel::SchemaTypes>& params, std::string_view expression) {
  std::string all;
  const Value* param_kind = policy.get("spec", "paramKind");
  for (const CheckedKind& kind : kinds) {
    expressions::Compiler compiler({.variables = true, .params = param_kind != nullptr && param_kind->is_map()},
                                   {kind.types, params});
    for (const Value& variable : policy.items_at("spec", "variables")) {
      compiler.add_variable(variable.text_at("name"), variable.text_at("expression"));
    }
    const expressions::Expression compiled = compiler.compile(expression, expressions::Purpose::Variable);
    if (compiled.program != nullptr) continue;
    std::string_view problem = compiled.problem;
    if (problem.starts_with(kCompilationFailed)) problem.remove_prefix(kCompilationFailed.size());
    all += (all.empty() ? "" : "\n") + go_kind_text(kind.group, kind.version, kind.kind) + ": " + std::string(problem) +
           "\n";
  }
  return all;
}

}  // namespace

std::vector<CheckedResource> resources_to_check(const Value& policy) {
  std::vector<CheckedResource> found;
  for (const Value& rule : policy.items_at("spec", "matchConstraints", "resourceRules")) {
    const std::optional<std::vector<std::string>> groups = plain_texts(rule, "apiGroups");
    const std::optional<std::vector<std::string>> versions = plain_texts(rule, "apiVersions");
    if (!groups || !versions) continue;
    std::vector<std::string> resources;
    for (const Value& item : rule.items_at("resources")) {
      if (item.is_string() && item.as_string().find_first_of("*/") == std::string_view::npos) {
        resources.emplace_back(item.as_string());
      }
    }
    std::sort(resources.begin(), resources.end());
    size_t count = 0;
    for (const std::string& group : *groups) {
      for (const std::string& version : *versions) {
        for (const std::string& resource : resources) {
          if (++count <= kMaxTypes) found.push_back({group, version, resource});
        }
      }
    }
  }
  return found;
}

std::shared_ptr<const cel::SchemaTypes> schema_of(Arena& arena, const Value& document, std::string_view group,
                                                  std::string_view version, std::string_view kind) {
  Resolver resolver(arena, document);
  const Value* schema = resolver.find(group, version, kind);
  if (schema == nullptr) return nullptr;
  return cel::SchemaTypes::build(resolver.resolve(*schema), false);
}

std::vector<TypeWarning> type_warnings(const Value& policy, std::span<const CheckedKind> kinds,
                                       const std::shared_ptr<const cel::SchemaTypes>& params) {
  std::vector<TypeWarning> warnings;
  const std::span<const Value> validations = policy.items_at("spec", "validations");
  for (size_t i = 0; i < validations.size(); ++i) {
    for (const std::string_view member : {"expression", "messageExpression"}) {
      const std::string_view expression = validations[i].text_at(member);
      if (expression.empty()) continue;
      std::string found = issues(policy, kinds, params, expression);
      if (found.empty()) continue;
      warnings.push_back({"spec.validations[" + std::to_string(i) + "]." + std::string(member), std::move(found)});
    }
  }
  return warnings;
}

}  // namespace holdfast::policy
