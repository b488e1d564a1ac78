#include <algorithm>

#include "audit/audit.h"
#include "base/strings.h"
#include "base/text.h"
#include "codec/codec.h"
#include "value/value.h"

namespace holdfast::audit {
namespace {

constexpr std::string_view kLevels[] = {"None", "Metadata", "Request", "RequestResponse"};
constexpr std::string_view kStages[] = {"RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"};

bool has(const std::vector<std::string>& set, std::string_view text) {
  return std::find(set.begin(), set.end(), text) != set.end();
}

template <size_t N>
Result<size_t> index_of(const std::string_view (&names)[N], std::string_view name, const std::string& field) {
  const auto found = std::find(std::begin(names), std::end(names), name);
  if (found != std::end(names)) return static_cast<size_t>(found - std::begin(names));
  return bad_request(field + ": Unsupported value: " + go_quote(name) +
                     ": supported values: " + join(names, ", ", go_quote));
}

Result<Unit> add_stages(const Value& map, const std::string& field, std::array<bool, 4>& omitted) {
  const std::vector<std::string> names = texts_of(map.items_at("omitStages"));
  for (size_t i = 0; i < names.size(); ++i) {
    Result<size_t> stage = index_of(kStages, names[i], field + "[" + std::to_string(i) + "]");
    if (!stage) return stage.take_error();
    omitted[*stage] = true;
  }
  return Unit{};
}

bool path_matches(std::string_view path, std::string_view pattern) {
  if (pattern == "*") return true;
  if (pattern.ends_with('*')) return path.starts_with(pattern.substr(0, pattern.size() - 1));
  return path == pattern;
}

}  // namespace

std::string_view to_string(Level level) { return kLevels[static_cast<size_t>(level)]; }
std::string_view to_string(Stage stage) { return kStages[static_cast<size_t>(stage)]; }

Result<Policy> Policy::parse(std::string_view text, std::string_view source) {
  auto failed = [&](std::string_view why) { return bad_request(std::string(source) + ": " + std::string(why)); };
  Arena arena;
  Result<Value> tree = codec::decode_yaml(arena, text);
  if (!tree) return failed(tree.error().message);
  if (!tree->is_map() || tree->text_at("kind") != "Policy" || tree->text_at("apiVersion") != "audit.k8s.io/v1") {
    return failed("is not a Policy of audit.k8s.io/v1");
  }
  if (tree->items_at("rules").empty()) return failed("a policy needs rules");
  std::array<bool, 4> omitted_always{};
  if (Result<Unit> ok = add_stages(*tree, "omitStages", omitted_always); !ok) return failed(ok.error().message);
  auto flag = [](const Value& map, bool otherwise) {
    const Value* found = map.find("omitManagedFields");
    return found != nullptr && found->is_bool() ? found->as_bool() : otherwise;
  };
  Policy policy;
  size_t index = 0;
  for (const Value& item : tree->items_at("rules")) {
    const std::string at = "rules[" + std::to_string(index++) + "]";
    Rule rule;
    Result<size_t> level = index_of(kLevels, item.text_at("level"), at + ".level");
    if (!level) return failed(level.error().message);
    rule.wanted.level = static_cast<Level>(*level);
    rule.wanted.omitted = omitted_always;
    if (Result<Unit> ok = add_stages(item, at + ".omitStages", rule.wanted.omitted); !ok) {
      return failed(ok.error().message);
    }
    rule.wanted.omits_managed_fields = flag(item, flag(*tree, false));
    rule.users = texts_of(item.items_at("users"));
    rule.groups = texts_of(item.items_at("userGroups"));
    rule.verbs = texts_of(item.items_at("verbs"));
    rule.namespaces = texts_of(item.items_at("namespaces"));
    rule.paths = texts_of(item.items_at("nonResourceURLs"));
    for (const Value& resources : item.items_at("resources")) {
      rule.resources.push_back({std::string(resources.text_at("group")), texts_of(resources.items_at("resources")),
                                texts_of(resources.items_at("resourceNames"))});
    }
    if (!rule.paths.empty() && (!rule.resources.empty() || !rule.namespaces.empty())) {
      return failed(at + ".nonResourceURLs: rules cannot apply to both regular resources and non-resource URLs");
    }
    policy.rules_.push_back(std::move(rule));
  }
  return policy;
}

bool Policy::Rule::matches(const auth::Attributes& a) const {
  if (!users.empty() && (a.user == nullptr || !has(users, a.user->name))) return false;
  if (!groups.empty() &&
      (a.user == nullptr ||
       std::none_of(groups.begin(), groups.end(), [&](const std::string& group) { return a.user->in_group(group); }))) {
    return false;
  }
  if (!verbs.empty() && !has(verbs, a.verb)) return false;
  if (!namespaces.empty() || !resources.empty()) {
    if (!a.is_resource) return false;
    if (!namespaces.empty() && !has(namespaces, a.ns)) return false;
    if (resources.empty()) return true;
    std::string full(a.resource);
    if (!a.subresource.empty()) full += "/" + std::string(a.subresource);
    for (const Resources& one : resources) {
      if (one.group != a.group && one.group != "*") continue;
      if (one.resources.empty()) return true;
      if (!one.names.empty() && !has(one.names, a.name)) continue;
      for (const std::string& resource : one.resources) {
        if (resource == full || resource == "*") return true;
        if (!a.subresource.empty() && resource == "*/" + std::string(a.subresource)) return true;
        if (resource.ends_with("/*") && resource.substr(0, resource.size() - 2) == a.resource) return true;
      }
    }
    return false;
  }
  if (paths.empty()) return true;
  return !a.is_resource &&
         std::any_of(paths.begin(), paths.end(), [&](const std::string& path) { return path_matches(a.path, path); });
}

Wanted Policy::wanted(const auth::Attributes& attributes) const {
  for (const Rule& rule : rules_) {
    if (rule.matches(attributes)) return rule.wanted;
  }
  return {};
}

}  // namespace holdfast::audit
