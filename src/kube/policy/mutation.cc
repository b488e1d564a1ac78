#include "policy/mutation.h"

#include <algorithm>

#include "cel/cel.h"
#include "patch/patch.h"

namespace holdfast::policy {
namespace {

using ownership::MergeType;

// --- Values without an apply configuration form ---

// structured-merge-diff's error for a foreign value of this type.
std::string misfit(const MergeType& type, const cel::ForeignValue& value) {
  switch (ownership::handled(type.offers)) {
    case MergeType::kMap:
      return "expected map, got &{" + value.text + "}";
    case MergeType::kList:
      return "expected list, got &{" + value.text + "}";
    default:
      break;
  }
  switch (type.scalar) {
    case ownership::ScalarKind::Numeric:
      return "expected numeric (int or float), got " + value.type;
    case ownership::ScalarKind::String:
      return "expected string, got &value.valueUnstructured{Value:" + value.syntax + "}";
    case ownership::ScalarKind::Boolean:
      return "expected boolean, got &{" + value.text + "}";
    case ownership::ScalarKind::Untyped:
      break;
  }
  return "expected any scalar, got &{" + value.text + "}";
}

// The same with the path; empty if the type does not contain the path, for which validation has a better error.
std::string misfit_with_path(const MergeType& root, const Value& configuration, const cel::ForeignValue& value) {
  const MergeType* type = &root;
  Value at = configuration;
  std::string path;
  for (const cel::ForeignValue::Step& step : value.path) {
    if (const std::string_view* name = std::get_if<std::string_view>(&step)) {
      bool declared = false;
      type = type->member(*name, declared);
      if (type == nullptr) return path + "." + std::string(*name) + ": field not declared in schema";
      path += "." + std::string(*name);
      at = at.is_map() ? *at.find(*name) : Value();
      continue;
    }
    const size_t index = std::get<size_t>(step);
    if (type->item == nullptr) return {};
    at = at.is_list() ? at.items()[index] : Value();
    if (type->atomic_list || !type->keys.empty()) {
      // An item of a keyed list is identified by its keys; a foreign item has none.
      if (!type->atomic_list && &step == &value.path.back()) {
        return path + ": element " + std::to_string(index) +
               ": associative list with keys may not have non-map elements";
      }
      std::string keys;
      for (const std::string_view key : type->keys) {
        const Value* held = at.is_map() ? at.find(key) : nullptr;
        if (held == nullptr || !held->is_string()) continue;
        keys += (keys.empty() ? "" : ",") + std::string(key) + "=\"" + std::string(held->as_string()) + "\"";
      }
      path += "[" + (keys.empty() ? std::to_string(index) : keys) + "]";
    } else {
      path += "[={{undefined}}]";
    }
    type = type->item;
  }
  return path + ": " + misfit(*type, value);
}

std::string misfits(const MergeType& type, const cel::Configuration& configuration) {
  std::vector<std::string> lines;
  lines.reserve(configuration.foreign.size());
  for (const cel::ForeignValue& value : configuration.foreign) {
    lines.push_back(misfit_with_path(type, configuration.value, value));
  }
  std::erase(lines, "");
  if (lines.size() == 1) return lines.front();
  std::string out = "errors:";
  for (const std::string& line : lines) out += "\n  " + line;
  return out;
}

// --- JSON patches ---

// Upstream writes op, path and from to JSON with Go's string quoting; escapes unknown to JSON make them unreadable.
bool is_readable_when_quoted(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    const bool both_have = c == '\b' || c == '\f' || c == '\n' || c == '\r' || c == '\t';
    return (byte < 0x20 && !both_have) || byte == 0x7f;
  });
}

const MergeType& type_of(const ownership::FieldManager& fields) {
  const ownership::FieldManagerOptions& options = fields.options();
  const auto own = std::find_if(options.versions.begin(), options.versions.end(),
                                [&](const auto& version) { return version.api_version == options.api_version; });
  assert(own != options.versions.end());
  return *own->type;
}

Result<Value> configure(Arena& arena, const cel::Val& configuration, const Value& object,
                        const ownership::FieldManager* fields) {
  if (const std::string problems = configuration.object_type_errors(); !problems.empty()) {
    return bad_request("type mismatch: " + problems);
  }
  cel::Configuration converted = configuration.to_configuration(arena, ownership::kUnsetKey);
  if (!converted.foreign.empty() && converted.foreign.front().path.empty()) {
    return bad_request("invalid return type: *dynamic.ObjectVal");
  }
  constexpr std::string_view kUntyped = "error applying patch: failed to convert patch object to typed object: ";
  if (fields == nullptr) {
    return bad_request(std::string(kUntyped) + "no corresponding type for " +
                       std::string(object.text_at("apiVersion")) + ", Kind=" + std::string(object.text_at("kind")));
  }
  if (!converted.foreign.empty()) return bad_request(std::string(kUntyped) + misfits(type_of(*fields), converted));
  // The configuration is always for this object. A marker in place of these fields is reported below.
  Value config = converted.value;
  for (const std::string_view key : {"apiVersion", "kind"}) {
    const Value* given = config.find(key);
    if (given != nullptr && ownership::has_marker(*given)) continue;
    config = with_member(arena, config, key, Value::string(object.text_at(key)));
  }
  Result<Value> merged = fields->apply_unowned(arena, object, config);
  if (!merged) return bad_request("error applying patch: " + merged.error().message);
  return merged;
}

Result<Value> patch_by(Arena& arena, const cel::Val& operations, const Value& object) {
  ListBuilder list(arena);
  for (uint64_t i = 0; i < operations.size(); ++i) {
    const cel::Val::Patch& operation = operations.at(arena, i).json_patch();
    MapBuilder members(arena);
    const std::pair<std::string_view, std::string_view> texts[] = {
        {"op", operation.op}, {"path", operation.path}, {"from", operation.from}};
    for (const auto& [name, text] : texts) {
      if (name == "from" && text.empty()) continue;
      if (is_readable_when_quoted(text)) members.add(name, Value::string(text));
    }
    if (operation.value != nullptr) {
      if (operation.value->kind() == cel::Val::Kind::Object) {
        const std::string problems = operation.value->object_type_errors();
        if (!problems.empty()) return bad_request("type mismatch: " + problems);
      }
      std::string problem;
      const std::optional<Value> value = operation.value->to_json(arena, problem);
      if (!value) {
        return bad_request("JSONPath valueExpression evaluated to a type that could not marshal to JSON: " + problem);
      }
      members.add("value", *value);
    }
    list.add(members.build());
  }
  patch::JsonPatched patched = patch::run_json_patch(arena, object, list.build());
  if (patched.value) return *patched.value;
  // A failed test means that the patch is not applied.
  if (patched.test_failed) return object;
  return bad_request("JSON Patch: " + patched.problem);
}

}  // namespace

Mutation compile_mutation(expressions::Compiler& compiler, const Value& mutation) {
  if (mutation.text_at("patchType") == "JSONPatch") {
    return {Mutation::Kind::JsonPatch,
            compiler.compile(mutation.text_at("jsonPatch", "expression"), expressions::Purpose::JsonPatch)};
  }
  return {Mutation::Kind::ApplyConfiguration, compiler.compile(mutation.text_at("applyConfiguration", "expression"),
                                                               expressions::Purpose::ApplyConfiguration)};
}

Result<Value> apply_mutation(Arena& arena, const Mutation& mutation, expressions::Activation& activation,
                             int64_t& budget, const Value& object, const ownership::FieldManager* fields) {
  if (mutation.expression.program == nullptr) return bad_request(mutation.expression.problem);
  const std::optional<expressions::Evaluated> result = activation.evaluate(mutation.expression, budget);
  if (!result) return bad_request(std::string(expressions::kOutOfBudget));
  if (!result->problem.empty()) return bad_request(result->problem);
  return mutation.kind == Mutation::Kind::JsonPatch ? patch_by(arena, result->value, object)
                                                    : configure(arena, result->value, object, fields);
}

}  // namespace holdfast::policy
