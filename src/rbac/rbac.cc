#include "rbac/rbac.h"

#include <algorithm>
#include <set>

#include "base/api_error.h"
#include "base/text.h"
#include "kinds/kinds.h"

namespace holdfast::rbac {
namespace {

bool has(const std::vector<std::string>& set, std::string_view text) {
  return std::find(set.begin(), set.end(), text) != set.end();
}

std::vector<std::string> texts(const Value& rule, std::string_view key) {
  std::vector<std::string> result;
  for (const Value& item : rule.items_at(key)) {
    if (item.is_string()) result.emplace_back(item.as_string());
  }
  return result;
}

bool path_matches(const std::vector<std::string>& paths, std::string_view path) {
  return std::any_of(paths.begin(), paths.end(), [path](const std::string& pattern) {
    return pattern == path || pattern == "*" ||
           (pattern.ends_with('*') &&
            path.starts_with(std::string_view(pattern).substr(0, pattern.find_last_not_of('*') + 1)));
  });
}

// Each piece has one verb and one resource (and name), or one verb and one path.
std::vector<Rule> pieces(const Rule& rule) {
  std::vector<Rule> result;
  for (const std::string& group : rule.groups) {
    for (const std::string& resource : rule.resources) {
      for (const std::string& verb : rule.verbs) {
        if (rule.names.empty()) result.push_back({{verb}, {group}, {resource}, {}, {}});
        for (const std::string& name : rule.names) result.push_back({{verb}, {group}, {resource}, {name}, {}});
      }
    }
  }
  for (const std::string& path : rule.paths) {
    for (const std::string& verb : rule.verbs) result.push_back({{verb}, {}, {}, {}, {path}});
  }
  return result;
}

bool covers_piece(const Rule& held, const Rule& piece) {
  auto all = [](const std::vector<std::string>& set, const std::vector<std::string>& wanted) {
    return std::all_of(wanted.begin(), wanted.end(), [&set](const std::string& text) { return has(set, text); });
  };
  if (!has(held.verbs, "*") && !all(held.verbs, piece.verbs)) return false;
  if (!has(held.groups, "*") && !all(held.groups, piece.groups)) return false;
  for (const std::string& resource : piece.resources) {
    if (has(held.resources, "*") || has(held.resources, resource)) continue;
    const size_t slash = resource.find('/');
    if (slash == std::string::npos || !has(held.resources, "*" + resource.substr(slash))) return false;
  }
  if (piece.names.empty() ? !held.names.empty() : !held.names.empty() && !all(held.names, piece.names)) return false;
  return std::all_of(piece.paths.begin(), piece.paths.end(),
                     [&held](const std::string& path) { return path_matches(held.paths, path); });
}

std::string quoted_list(const std::vector<std::string>& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) text += (i > 0 ? " " : "") + go_quote(values[i]);
  return text + "]";
}

std::string compact_text(const Rule& rule) {
  std::string text;
  auto part = [&text](std::string_view name, const std::vector<std::string>& values) {
    if (!values.empty()) text += (text.empty() ? "" : ", ") + std::string(name) + ":" + quoted_list(values);
  };
  part("APIGroups", rule.groups);
  part("Resources", rule.resources);
  part("NonResourceURLs", rule.paths);
  part("ResourceNames", rule.names);
  part("Verbs", rule.verbs);
  return "{" + text + "}";
}

// Pieces that differ in the verb alone become one, as users wrote them.
std::vector<Rule> joined(const std::vector<Rule>& missing) {
  std::vector<Rule> result;
  for (const Rule& rule : missing) {
    const bool simple =
        rule.groups.size() == 1 && rule.resources.size() == 1 && rule.names.size() <= 1 && rule.paths.empty();
    auto same = std::find_if(result.begin(), result.end(), [&rule](const Rule& other) {
      return other.paths.empty() && other.groups == rule.groups && other.resources == rule.resources &&
             other.names == rule.names;
    });
    if (!simple || same == result.end())
      result.push_back(rule);
    else
      same->verbs.insert(same->verbs.end(), rule.verbs.begin(), rule.verbs.end());
  }
  return result;
}

// Errors as Go's aggregate prints them: one alone, several in brackets, each once.
std::string aggregated(const std::vector<std::string>& errors) {
  std::vector<std::string> distinct;
  for (const std::string& error : errors) {
    if (!has(distinct, error)) distinct.push_back(error);
  }
  if (distinct.size() == 1) return distinct[0];
  std::string text = "[";
  for (size_t i = 0; i < distinct.size(); ++i) text += (i > 0 ? ", " : "") + distinct[i];
  return text + "]";
}

Value strings(Arena& arena, const std::vector<std::string>& values) {
  ListBuilder list(arena);
  for (const std::string& value : values) list.add(Value::string(arena, value));
  return list.build();
}

}  // namespace

Rule Rule::from(const Value& rule) {
  return {texts(rule, "verbs"), texts(rule, "apiGroups"), texts(rule, "resources"), texts(rule, "resourceNames"),
          texts(rule, "nonResourceURLs")};
}

bool Rule::allows(const auth::Attributes& attributes) const {
  if (!has(verbs, "*") && !has(verbs, attributes.verb)) return false;
  if (!attributes.is_resource) return path_matches(paths, attributes.path);
  if (!has(groups, "*") && !has(groups, attributes.group)) return false;
  bool resource_matches = has(resources, "*");
  if (!resource_matches && attributes.subresource.empty()) {
    resource_matches = has(resources, attributes.resource);
  } else if (!resource_matches) {
    const std::string full = std::string(attributes.resource) + "/" + std::string(attributes.subresource);
    resource_matches = has(resources, full) || has(resources, "*/" + std::string(attributes.subresource));
  }
  return resource_matches && (names.empty() || has(names, attributes.name));
}

std::vector<Rule> rules_from(const Value* rules) {
  std::vector<Rule> result;
  if (rules == nullptr || !rules->is_list()) return result;
  for (const Value& rule : rules->items()) result.push_back(Rule::from(rule));
  return result;
}

Value to_value(Arena& arena, const Rule& rule) {
  MapBuilder map(arena);
  map.add("verbs", strings(arena, rule.verbs));
  if (!rule.groups.empty()) map.add("apiGroups", strings(arena, rule.groups));
  if (!rule.resources.empty()) map.add("resources", strings(arena, rule.resources));
  if (!rule.names.empty()) map.add("resourceNames", strings(arena, rule.names));
  if (!rule.paths.empty()) map.add("nonResourceURLs", strings(arena, rule.paths));
  return map.build();
}

bool covers(const std::vector<Rule>& held, const std::vector<Rule>& wanted, std::vector<Rule>* missing) {
  bool covered = true;
  for (const Rule& rule : wanted) {
    for (Rule& piece : pieces(rule)) {
      if (std::any_of(held.begin(), held.end(), [&piece](const Rule& own) { return covers_piece(own, piece); }))
        continue;
      covered = false;
      if (missing == nullptr) return false;
      missing->push_back(std::move(piece));
    }
  }
  return covered;
}

std::shared_ptr<const Index> Index::build(const Objects& roles, const Objects& cluster_roles,
                                          const Objects& role_bindings, const Objects& cluster_role_bindings) {
  auto index = std::make_shared<Index>();
  for (const auto& [key, role] : roles)
    index->roles_["Role/" + key] = std::make_shared<const std::vector<Rule>>(rules_from(role.find("rules")));
  for (const auto& [key, role] : cluster_roles) {
    index->roles_["ClusterRole/" + key] = std::make_shared<const std::vector<Rule>>(rules_from(role.find("rules")));
  }
  auto add = [&index](const Objects& bindings) {
    for (const auto& [key, object] : bindings) {
      auto binding = std::make_unique<Binding>();
      binding->ns = object.text_at("metadata", "namespace");
      binding->name = object.text_at("metadata", "name");
      binding->role_kind = object.text_at("roleRef", "kind");
      binding->role_name = object.text_at("roleRef", "name");
      const std::string role =
          binding->role_kind + "/" + (binding->role_kind == "Role" ? binding->ns : "") + "/" + binding->role_name;
      if (auto found = index->roles_.find(role); found != index->roles_.end()) binding->rules = found->second;
      for (const Value& subject : object.items_at("subjects")) {
        const std::string_view kind = subject.text_at("kind");
        const std::string name(subject.text_at("name"));
        const std::string scope = binding->ns + "/";
        if (kind == "User") {
          index->grants_[scope + "u:" + name].push_back({binding.get(), "User " + go_quote(name)});
        } else if (kind == "Group") {
          index->grants_[scope + "g:" + name].push_back({binding.get(), "Group " + go_quote(name)});
        } else if (kind == "ServiceAccount") {
          std::string ns(subject.text_at("namespace"));
          if (ns.empty()) ns = binding->ns;
          if (ns.empty()) continue;
          index->grants_[scope + "u:system:serviceaccount:" + ns + ":" + name].push_back(
              {binding.get(), "ServiceAccount " + go_quote(name + "/" + ns)});
        }
      }
      index->bindings_.push_back(std::move(binding));
    }
  };
  add(cluster_role_bindings);
  add(role_bindings);
  return index;
}

template <class Visit>
void Index::visit(const auth::UserInfo& user, std::string_view ns, Visit&& visit) const {
  auto grants_of = [&](const std::string& subject) {
    const auto found = grants_.find(subject);
    return found == grants_.end() || std::all_of(found->second.begin(), found->second.end(), visit);
  };
  // What holds everywhere first, as Kubernetes looks at it.
  std::string scope = "/";
  while (true) {
    if (!grants_of(scope + "u:" + user.name)) return;
    for (const std::string& group : user.groups) {
      if (!grants_of(scope + "g:" + group)) return;
    }
    if (ns.empty() || scope.size() > 1) return;
    scope.insert(0, ns);
  }
}

std::string Index::missing_role(const Binding& binding) {
  return std::string(binding.role_kind == "Role" ? "role" : "clusterrole") + ".rbac.authorization.k8s.io " +
         go_quote(binding.role_name) + " not found";
}

auth::Decision Index::authorize(const auth::Attributes& attributes) const {
  auth::Decision decision;
  std::vector<std::string> problems;
  visit(*attributes.user, attributes.ns, [&](const Grant& grant) {
    const Binding& binding = *grant.binding;
    if (binding.rules == nullptr) {
      problems.push_back(missing_role(binding));
      return true;
    }
    if (std::none_of(binding.rules->begin(), binding.rules->end(),
                     [&](const Rule& rule) { return rule.allows(attributes); }))
      return true;
    decision.verdict = auth::Decision::Verdict::Allow;
    decision.reason = binding.ns.empty() ? "RBAC: allowed by ClusterRoleBinding " + go_quote(binding.name)
                                         : "RBAC: allowed by RoleBinding " + go_quote(binding.name + "/" + binding.ns);
    decision.reason += " of " + binding.role_kind + " " + go_quote(binding.role_name) + " to " + grant.subject;
    return false;
  });
  if (!decision.allowed() && !problems.empty()) decision.reason = "RBAC: " + aggregated(problems);
  return decision;
}

std::vector<Rule> Index::rules_for(const auth::UserInfo& user, std::string_view ns, std::string* problem) const {
  std::vector<Rule> rules;
  std::vector<std::string> problems;
  visit(user, ns, [&](const Grant& grant) {
    if (grant.binding->rules == nullptr) {
      problems.push_back(missing_role(*grant.binding));
    } else {
      rules.insert(rules.end(), grant.binding->rules->begin(), grant.binding->rules->end());
    }
    return true;
  });
  if (problem != nullptr && !problems.empty()) *problem = aggregated(problems);
  return rules;
}

std::optional<std::vector<Rule>> Index::rules_of(std::string_view role_kind, std::string_view ns,
                                                 std::string_view name) const {
  const auto found = roles_.find(std::string(role_kind) + "/" + (role_kind == "Role" ? std::string(ns) : "") + "/" +
                                 std::string(name));
  if (found == roles_.end()) return {};
  return *found->second;
}

Value aggregate(Arena& arena, const Value& cluster_role, const Index::Objects& cluster_roles) {
  ListBuilder rules(arena);
  std::vector<Value> taken;
  for (const Value& selector : cluster_role.items_at("aggregationRule", "clusterRoleSelectors")) {
    for (const auto& [key, candidate] : cluster_roles) {
      if (candidate.text_at("metadata", "name") == cluster_role.text_at("metadata", "name")) continue;
      if (!kinds::selects(&selector, candidate.get("metadata", "labels"))) continue;
      for (const Value& rule : candidate.items_at("rules")) {
        if (std::any_of(taken.begin(), taken.end(), [&rule](const Value& other) { return equal(other, rule); })) {
          continue;
        }
        taken.push_back(rule);
        rules.add(deep_copy(arena, rule));
      }
    }
  }
  return rules.build();
}

Error escalation_error(const auth::UserInfo& user, std::string_view group_resource, std::string_view name,
                       const std::vector<Rule>& missing) {
  std::set<std::string> descriptions;
  for (const Rule& rule : joined(missing)) descriptions.insert(compact_text(rule));
  std::string list;
  for (const std::string& text : descriptions) list += (list.empty() ? "" : "\n") + text;
  const size_t dot = group_resource.find('.');
  const GroupResource resource{dot == std::string_view::npos ? std::string_view() : group_resource.substr(dot + 1),
                               group_resource.substr(0, dot)};
  return forbidden(resource, name,
                   "user " + go_quote(user.name) + " (groups=" + quoted_list(user.groups) +
                       ") is attempting to grant RBAC permissions not currently held:\n" + list);
}

}  // namespace holdfast::rbac
