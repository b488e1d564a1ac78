#include "rbac/rbac.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "base/api_error.h"
#include "base/error_budget.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/strings.h"
#include "base/text.h"
#include "kinds/kinds.h"

namespace holdfast::rbac {
namespace {

bool has(const std::vector<std::string>& set, std::string_view text) {
  return std::find(set.begin(), set.end(), text) != set.end();
}

bool path_matches(const std::vector<std::string>& paths, std::string_view path) {
  return std::any_of(paths.begin(), paths.end(), [path](const std::string& pattern) {
    return pattern == path || pattern == "*" ||
           (pattern.ends_with('*') &&
            path.starts_with(std::string_view(pattern).substr(0, pattern.find_last_not_of('*') + 1)));
  });
}

using Texts = std::unordered_set<std::string_view, KeyHash>;

// A rule that a user holds, indexed for lookups.
struct Held {
  explicit Held(const Rule& rule)
      : verbs(rule.verbs.begin(), rule.verbs.end()),
        groups(rule.groups.begin(), rule.groups.end()),
        resources(rule.resources.begin(), rule.resources.end()),
        names(rule.names.begin(), rule.names.end()) {
    for (const std::string& path : rule.paths) {
      paths.insert(path);
      if (path.ends_with('*')) patterns.push_back(path);
    }
  }

  bool has_verb(std::string_view verb) const { return verbs.contains("*") || verbs.contains(verb); }
  bool has_group(std::string_view group) const { return groups.contains("*") || groups.contains(group); }
  bool has_resource(std::string_view resource) const {
    if (resources.contains("*") || resources.contains(resource)) return true;
    const size_t slash = resource.find('/');
    return slash != std::string_view::npos && resources.contains("*" + std::string(resource.substr(slash)));
  }
  bool has_name(std::string_view name) const { return names.empty() || names.contains(name); }
  bool has_path(std::string_view path) const {
    return names.empty() && (paths.contains(path) || path_matches(patterns, path));
  }
  // Whether it covers any rule about resources, or about paths.
  bool has_all_resources() const {
    return names.empty() && verbs.contains("*") && groups.contains("*") && resources.contains("*");
  }
  bool has_all_paths() const { return names.empty() && verbs.contains("*") && paths.contains("*"); }

  Texts verbs, groups, resources, names, paths;
  std::vector<std::string> patterns;
};

// What comparing rules may still cost; see kCoverageSteps.
class Steps {
 public:
  // Looking for a text takes about as long as this many steps from one combination to the next.
  static constexpr size_t kLookup = 8;

  // Whether there are that many left.
  bool take(size_t count) {
    if (count > left_) {
      left_ = 0;
      return false;
    }
    left_ -= count;
    return true;
  }

 private:
  size_t left_ = kCoverageSteps;
};

// The values in one column of a rule (its verbs, its groups, ...), grouped into classes: values of one class are
// covered by exactly the same held rules. There are far fewer classes than values, and the rules need checking only
// once per class.
class Classes {
 public:
  template <class Has>
  Classes(const std::vector<std::string>& texts, const std::vector<const Held*>& held, Has&& has) {
    std::map<std::vector<bool>, size_t> known;
    for (const std::string& text : texts) {
      std::vector<bool> holders(held.size());
      for (size_t i = 0; i < held.size(); ++i) holders[i] = has(*held[i], text);
      const auto [at, fresh] = known.try_emplace(std::move(holders), holders_.size());
      if (fresh) holders_.push_back(at->first);
      class_of_.push_back(at->second);
    }
  }
  // For an empty column: one class, covered by every held rule for which `fits` is true.
  template <class Fits>
  Classes(const std::vector<const Held*>& held, Fits&& fits) : class_of_{0} {
    holders_.emplace_back(held.size());
    for (size_t i = 0; i < held.size(); ++i) holders_[0][i] = fits(*held[i]);
  }

  size_t count() const { return holders_.size(); }
  size_t texts() const { return class_of_.size(); }
  size_t of(size_t text) const { return class_of_[text]; }
  bool has(size_t a_class, size_t rule) const { return holders_[a_class][rule]; }
  bool all_have(size_t rule) const {
    return std::all_of(holders_.begin(), holders_.end(), [rule](const std::vector<bool>& have) { return have[rule]; });
  }

 private:
  std::vector<std::vector<bool>> holders_;  // Per class: which rules cover it.
  std::vector<size_t> class_of_;            // Per value.
};

// Whether every combination of classes is covered by a single rule. Calls `visit(indices)` for each combination of
// values that is not, until it returns false. Works on classes because a role of a few kilobytes has millions of
// combinations of values.
template <size_t columns, class Visit>
bool covers_product(const std::array<const Classes*, columns>& classes, size_t rules, Steps& steps, Visit&& visit) {
  for (const Classes* column : classes) {
    if (column->texts() == 0) return true;
  }
  for (size_t rule = 0; rule < rules; ++rule) {
    if (std::all_of(classes.begin(), classes.end(), [rule](const Classes* column) { return column->all_have(rule); }))
      return true;
  }
  size_t combinations = 1;
  for (const Classes* column : classes) {
    combinations *= column->count();
    if (combinations > limits::kRuleCombinations) return visit(std::array<size_t, columns>{}), false;
  }
  if (!steps.take(combinations * (rules + 1))) return visit(std::array<size_t, columns>{}), false;
  std::vector<bool> held(combinations);
  std::array<size_t, columns> at{};
  const auto number = [&](auto&& class_at) {
    size_t all = 0;
    for (size_t c = 0; c < columns; ++c) all = all * classes[c]->count() + class_at(c);
    return all;
  };
  bool covered = true;
  for (size_t i = 0; i < combinations; ++i) {
    size_t rest = i;
    for (size_t c = columns; c-- > 0;) {
      at[c] = rest % classes[c]->count();
      rest /= classes[c]->count();
    }
    for (size_t rule = 0; rule < rules && !held[i]; ++rule) {
      bool has_all = true;
      for (size_t c = 0; c < columns && has_all; ++c) has_all = classes[c]->has(at[c], rule);
      held[i] = has_all;
    }
    covered = covered && held[i];
  }
  if (covered) return true;
  std::array<size_t, columns> texts{};
  for (size_t looked_at = 0; looked_at < limits::kRuleCombinations; ++looked_at) {
    if (!held[number([&](size_t c) { return classes[c]->of(texts[c]); })] && !visit(texts)) return false;
    size_t c = columns;
    while (c > 0 && ++texts[c - 1] == classes[c - 1]->texts()) texts[--c] = 0;
    if (c == 0) break;
  }
  return false;
}

std::string quoted_list(const std::vector<std::string>& values) { return "[" + join(values, " ", go_quote) + "]"; }

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

// Merges pieces that differ only in the verb, so that they look as the user wrote them.
std::vector<Rule> joined(const std::vector<Rule>& missing) {
  std::vector<Rule> result;
  using Columns = std::tuple<std::vector<std::string>, std::vector<std::string>, std::vector<std::string>>;
  std::map<Columns, size_t> places;
  for (const Rule& rule : missing) {
    if (rule.groups.size() != 1 || rule.resources.size() != 1 || rule.names.size() > 1 || !rule.paths.empty()) {
      result.push_back(rule);
      continue;
    }
    const auto [at, fresh] = places.try_emplace(Columns(rule.groups, rule.resources, rule.names), result.size());
    if (fresh) {
      result.push_back(rule);
    } else {
      std::vector<std::string>& verbs = result[at->second].verbs;
      verbs.insert(verbs.end(), rule.verbs.begin(), rule.verbs.end());
    }
  }
  return result;
}

// Collects errors and formats them like Go's aggregate: a single one as is, several in brackets, without duplicates. No
// more than kMissingRoles are kept.
class Problems {
 public:
  bool empty() const { return distinct_.empty(); }
  bool full() const { return distinct_.size() >= kMissingRoles || bytes_ >= kMissingRoleBytes; }
  void add(std::string problem) {
    if (full() || !known_.insert(problem).second) return;
    bytes_ += problem.size();
    distinct_.push_back(std::move(problem));
  }
  std::string text() const { return distinct_.size() == 1 ? distinct_[0] : "[" + join(distinct_, ", ") + "]"; }

 private:
  std::vector<std::string> distinct_;
  std::unordered_set<std::string, KeyHash> known_;
  size_t bytes_ = 0;
};

Value strings(Arena& arena, const std::vector<std::string>& values) {
  ListBuilder list(arena);
  for (const std::string& value : values) list.add(Value::string(arena, value));
  return list.build();
}

}  // namespace

Rule Rule::from(const Value& rule) {
  return {texts_of(rule.items_at("verbs")), texts_of(rule.items_at("apiGroups")), texts_of(rule.items_at("resources")),
          texts_of(rule.items_at("resourceNames")), texts_of(rule.items_at("nonResourceURLs"))};
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

namespace {

// Collects what is missing: no more than fits an error.
class Missing {
 public:
  // Null: nobody wants to know.
  explicit Missing(std::vector<Rule>* pieces) : pieces_(pieces) {}
  bool full() const { return pieces_ == nullptr || pieces_->size() >= limits::kMissingRules || !budget_.admits(); }
  // Each piece has one verb and one resource (and name), or one verb and one path. False if there is no room for more.
  bool add(Rule piece) {
    if (full()) return false;
    for (const auto* column : {&piece.verbs, &piece.groups, &piece.resources, &piece.names, &piece.paths}) {
      for (const std::string& text : *column) budget_.took(text.size());
    }
    pieces_->push_back(std::move(piece));
    return !full();
  }

 private:
  std::vector<Rule>* const pieces_;
  mutable ErrorBudget budget_;
};

// Whether a rule of `held` may cover a part of a rule of `wanted`, judging by its verbs.
std::vector<const Rule*> relevant(const std::vector<const Rule*>& held, const std::vector<Rule>& wanted) {
  Texts verbs = {"*"};
  for (const Rule& rule : wanted) verbs.insert(rule.verbs.begin(), rule.verbs.end());
  std::vector<const Rule*> some;
  std::copy_if(held.begin(), held.end(), std::back_inserter(some), [&](const Rule* rule) {
    return std::any_of(rule->verbs.begin(), rule->verbs.end(),
                       [&](const std::string& verb) { return verbs.contains(verb); });
  });
  return some;
}

// The rules that a user holds, and which of them may cover a part of a rule: of thousands, usually few.
class HeldRules {
 public:
  explicit HeldRules(std::vector<Held> rules) : rules_(std::move(rules)) {
    for (size_t i = 0; i < rules_.size(); ++i) {
      const Held& rule = rules_[i];
      all_resources_ = all_resources_ || rule.has_all_resources();
      all_paths_ = all_paths_ || rule.has_all_paths();
      patterns_ += rule.patterns.size();
      const auto is_general = [](std::string_view text) { return text.starts_with('*'); };
      verbs_.add(i, rule.verbs, std::any_of(rule.verbs.begin(), rule.verbs.end(), is_general));
      groups_.add(i, rule.groups, std::any_of(rule.groups.begin(), rule.groups.end(), is_general));
      resources_.add(i, rule.resources, std::any_of(rule.resources.begin(), rule.resources.end(), is_general));
      names_.add(i, rule.names, rule.names.empty());
      paths_.add(i, rule.paths, !rule.patterns.empty());
    }
  }
  bool all_resources() const { return all_resources_; }
  bool all_paths() const { return all_paths_; }
  size_t patterns() const { return patterns_; }

  std::vector<const Held*> about_resources(const Rule& rule) const {
    return fewest(
        {{&verbs_, rule.verbs}, {&groups_, rule.groups}, {&resources_, rule.resources}, {&names_, rule.names}});
  }
  std::vector<const Held*> about_paths(const Rule& rule) const {
    return fewest({{&verbs_, rule.verbs}, {&paths_, rule.paths}});
  }

 private:
  // Which rules have which text in one column; those in `any_` may cover any text.
  class Column {
   public:
    void add(size_t rule, const Texts& texts, bool general) {
      if (general) {
        any_.push_back(rule);
      } else {
        for (const std::string_view text : texts) rules_[text].push_back(rule);
      }
    }
    // A rule may be counted for each of the texts.
    size_t count(const Texts& texts) const {
      size_t count = any_.size();
      for (const std::string_view text : texts) {
        const auto some = rules_.find(text);
        if (some != rules_.end()) count += some->second.size();
      }
      return count;
    }
    std::vector<size_t> of(const Texts& texts) const {
      std::vector<size_t> found = any_;
      for (const std::string_view text : texts) {
        const auto some = rules_.find(text);
        if (some != rules_.end()) found.insert(found.end(), some->second.begin(), some->second.end());
      }
      std::sort(found.begin(), found.end());
      found.erase(std::unique(found.begin(), found.end()), found.end());
      return found;
    }

   private:
    std::vector<size_t> any_;
    std::unordered_map<std::string_view, std::vector<size_t>, KeyHash> rules_;
  };

  // By the column that leaves the fewest.
  std::vector<const Held*> fewest(
      const std::vector<std::pair<const Column*, const std::vector<std::string>&>>& columns) const {
    const Column* best = nullptr;
    Texts best_texts;
    size_t least = SIZE_MAX;
    for (const auto& [column, texts] : columns) {
      Texts distinct(texts.begin(), texts.end());
      const size_t count = column->count(distinct);
      if (count >= least) continue;
      least = count;
      best = column;
      best_texts = std::move(distinct);
    }
    std::vector<const Held*> some;
    for (const size_t i : best->of(best_texts)) some.push_back(&rules_[i]);
    return some;
  }

  const std::vector<Held> rules_;
  Column verbs_, groups_, resources_, names_, paths_;
  bool all_resources_ = false, all_paths_ = false;
  size_t patterns_ = 0;
};

Rule first_piece_of_resources(const Rule& rule) {
  Rule piece{{rule.verbs[0]}, {rule.groups[0]}, {rule.resources[0]}, {}, {}};
  if (!rule.names.empty()) piece.names = {rule.names[0]};
  return piece;
}

bool covers_resources(const HeldRules& all, const Rule& rule, Steps& steps, Missing& missing) {
  if (rule.verbs.empty() || rule.groups.empty() || rule.resources.empty() || all.all_resources()) return true;
  const std::vector<const Held*> held = all.about_resources(rule);
  if (!steps.take(Steps::kLookup * (rule.texts() - rule.paths.size()) * (held.size() + 1))) {
    missing.add(first_piece_of_resources(rule));
    return false;
  }
  const Classes verbs(rule.verbs, held, [](const Held& h, std::string_view verb) { return h.has_verb(verb); });
  const Classes groups(rule.groups, held, [](const Held& h, std::string_view group) { return h.has_group(group); });
  const Classes resources(rule.resources, held,
                          [](const Held& h, std::string_view resource) { return h.has_resource(resource); });
  const Classes names =
      rule.names.empty()
          ? Classes(held, [](const Held& h) { return h.names.empty(); })
          : Classes(rule.names, held, [](const Held& h, std::string_view name) { return h.has_name(name); });
  return covers_product<4>({&groups, &resources, &verbs, &names}, held.size(), steps,
                           [&](const std::array<size_t, 4>& at) {
                             Rule piece{{rule.verbs[at[2]]}, {rule.groups[at[0]]}, {rule.resources[at[1]]}, {}, {}};
                             if (!rule.names.empty()) piece.names = {rule.names[at[3]]};
                             return missing.add(std::move(piece));
                           });
}

bool covers_paths(const HeldRules& all, const Rule& rule, Steps& steps, Missing& missing) {
  if (rule.verbs.empty() || rule.paths.empty() || all.all_paths()) return true;
  const std::vector<const Held*> held = all.about_paths(rule);
  const size_t lookups = rule.paths.size() * (held.size() + all.patterns() + 1) + rule.verbs.size() * held.size();
  if (!steps.take(Steps::kLookup * lookups)) {
    missing.add({{rule.verbs[0]}, {}, {}, {}, {rule.paths[0]}});
    return false;
  }
  const Classes verbs(rule.verbs, held, [](const Held& h, std::string_view verb) { return h.has_verb(verb); });
  const Classes paths(rule.paths, held, [](const Held& h, std::string_view path) { return h.has_path(path); });
  return covers_product<2>({&paths, &verbs}, held.size(), steps, [&](const std::array<size_t, 2>& at) {
    return missing.add({{rule.verbs[at[1]]}, {}, {}, {}, {rule.paths[at[0]]}});
  });
}

bool covers(const std::vector<const Rule*>& all, const std::vector<Rule>& wanted, std::vector<Rule>* missing_rules) {
  Missing missing(missing_rules);
  std::vector<Held> some;
  size_t texts = 0;
  for (const Rule* rule : relevant(all, wanted)) {
    texts += rule->texts();
    if (texts > kHeldTexts) break;  // What is missing then is reported like anything else that is not held.
    some.emplace_back(*rule);
  }
  const HeldRules held(std::move(some));
  Steps steps;
  bool covered = true;
  for (const Rule& rule : wanted) {
    covered = covers_resources(held, rule, steps, missing) && covered;
    covered = covers_paths(held, rule, steps, missing) && covered;
    if (!covered && missing.full()) return false;
  }
  return covered;
}

}  // namespace

size_t texts_in(const std::vector<RulesRef>& roles) {
  size_t texts = 0;
  for (const RulesRef& role : roles) {
    for (const Rule& rule : *role) texts += rule.texts();
  }
  return texts;
}

bool covers(const std::vector<RulesRef>& held, const std::vector<Rule>& wanted, std::vector<Rule>* missing) {
  std::vector<const Rule*> rules;
  for (const RulesRef& role : held) {
    for (const Rule& rule : *role) rules.push_back(&rule);
  }
  return covers(rules, wanted, missing);
}

bool covers(const std::vector<Rule>& held, const std::vector<Rule>& wanted, std::vector<Rule>* missing) {
  std::vector<const Rule*> rules;
  rules.reserve(held.size());
  for (const Rule& rule : held) rules.push_back(&rule);
  return covers(rules, wanted, missing);
}

// --- Index ----------------------------------------------------------------------------------------------------------

namespace {

std::string table_key(Kind kind, std::string_view key) {
  constexpr std::string_view kNames[] = {"Role/", "ClusterRole/", "RoleBinding/", "ClusterRoleBinding/"};
  return std::string(kNames[static_cast<size_t>(kind)]) + std::string(key);
}

std::string role_key(std::string_view role_kind, std::string_view ns, std::string_view name) {
  return std::string(role_kind) + "/" + (role_kind == "Role" ? std::string(ns) : "") + "/" + std::string(name);
}

}  // namespace

template <class T>
const T* Index::Table<T>::find(std::string_view key) const {
  const Piece* piece = pieces_[piece_of(key)].get();
  if (piece == nullptr) return nullptr;
  const auto found = piece->find(key);
  return found == piece->end() ? nullptr : &found->second;
}

template <class T>
void Index::Table<T>::change(std::unordered_map<std::string, T, KeyHash, std::equal_to<>> changes) {
  std::array<std::shared_ptr<Piece>, kPieces> changed;
  for (auto& [key, value] : changes) {
    const size_t at = piece_of(key);
    std::shared_ptr<Piece>& piece = changed[at];
    if (piece == nullptr) piece = pieces_[at] ? std::make_shared<Piece>(*pieces_[at]) : std::make_shared<Piece>();
    if (value == nullptr) {
      piece->erase(key);
    } else {
      (*piece)[key] = std::move(value);
    }
  }
  for (size_t at = 0; at < kPieces; ++at) {
    if (changed[at] != nullptr) pieces_[at] = std::move(changed[at]);
  }
}

Index::BindingRef Index::read_binding(const Value& object) {
  auto binding = std::make_shared<Binding>();
  binding->ns = object.text_at("metadata", "namespace");
  binding->name = object.text_at("metadata", "name");
  binding->role_kind = object.text_at("roleRef", "kind");
  binding->role_name = object.text_at("roleRef", "name");
  binding->role = role_key(binding->role_kind, binding->ns, binding->role_name);
  const std::string scope = binding->ns + "/";
  std::unordered_set<std::string, KeyHash> known;
  const auto add = [&](std::string key, std::string shown) {
    if (known.insert(key).second) binding->subjects.push_back({std::move(key), std::move(shown)});
  };
  for (const Value& subject : object.items_at("subjects")) {
    const std::string_view kind = subject.text_at("kind");
    const std::string name(subject.text_at("name"));
    if (kind == "User") {
      add(scope + "u:" + name, "User " + go_quote(name));
    } else if (kind == "Group") {
      add(scope + "g:" + name, "Group " + go_quote(name));
    } else if (kind == "ServiceAccount") {
      std::string ns(subject.text_at("namespace"));
      if (ns.empty()) ns = binding->ns;
      if (ns.empty()) continue;
      add(scope + "u:system:serviceaccount:" + ns + ":" + name, "ServiceAccount " + go_quote(name + "/" + ns));
    }
  }
  return binding;
}

Index::Edit::Edit(std::shared_ptr<const Index> before)
    : before_(before != nullptr ? std::move(before) : std::make_shared<const Index>()) {}

void Index::Edit::put(Kind kind, std::string_view key, const Value& object) {
  std::string name = table_key(kind, key);
  if (kind == Kind::Role || kind == Kind::ClusterRole) {
    roles_[std::move(name)] = std::make_shared<const std::vector<Rule>>(rules_from(object.find("rules")));
  } else {
    bindings_[std::move(name)] = read_binding(object);
  }
}

void Index::Edit::erase(Kind kind, std::string_view key) {
  if (kind == Kind::Role || kind == Kind::ClusterRole) {
    roles_[table_key(kind, key)] = nullptr;
  } else {
    bindings_[table_key(kind, key)] = nullptr;
  }
}

std::shared_ptr<const Index> Index::Edit::build() {
  // What stays as it is, such as the rules of a role whose labels changed, is not touched.
  const auto drop_equal = [](auto& changes, const auto& table) {
    std::erase_if(changes, [&table](const auto& change) {
      const auto* before = table.find(change.first);
      if (before == nullptr || change.second == nullptr) return before == nullptr && change.second == nullptr;
      return **before == *change.second;
    });
  };
  drop_equal(roles_, before_->roles_);
  drop_equal(bindings_, before_->bindings_);
  if (roles_.empty() && bindings_.empty()) return before_;

  // For each subject, the bindings that change, by name. Views are of bindings, which are kept until the end.
  std::unordered_map<std::string_view, std::map<std::string_view, Grant>, KeyHash> changed;
  std::vector<BindingRef> old_bindings;
  for (const auto& [key, binding] : bindings_) {
    if (const BindingRef* old = before_->bindings_.find(key); old != nullptr) {
      for (const Subject& subject : (*old)->subjects) changed[subject.key].emplace((*old)->name, Grant{});
      old_bindings.push_back(*old);
    }
    if (binding == nullptr) continue;
    for (uint32_t i = 0; i < binding->subjects.size(); ++i) {
      changed[binding->subjects[i].key].insert_or_assign(binding->name, Grant{binding, i});
    }
  }
  std::unordered_map<std::string, GrantsRef, KeyHash, std::equal_to<>> grants;
  for (const auto& [subject, changes] : changed) {
    const GrantsRef* before = before_->grants_.find(subject);
    std::vector<Grant> merged;
    const auto add = [&merged](const Grant& grant) {
      if (grant.binding != nullptr) merged.push_back(grant);
    };
    auto next = changes.begin();
    if (before != nullptr) {
      merged.reserve((*before)->size() + changes.size());
      for (const Grant& grant : **before) {
        for (; next != changes.end() && next->first < grant.binding->name; ++next) add(next->second);
        const bool replaced = next != changes.end() && next->first == grant.binding->name;
        add(replaced ? next->second : grant);
        if (replaced) ++next;
      }
    }
    for (; next != changes.end(); ++next) add(next->second);
    grants.emplace(subject, merged.empty() ? nullptr : std::make_shared<const std::vector<Grant>>(std::move(merged)));
  }
  auto made = std::make_shared<Index>(*before_);
  made->roles_.change(std::move(roles_));
  made->bindings_.change(bindings_);
  made->grants_.change(std::move(grants));
  return made;
}

std::shared_ptr<const Index> Index::build(const Objects& roles, const Objects& cluster_roles,
                                          const Objects& role_bindings, const Objects& cluster_role_bindings) {
  Edit edit(nullptr);
  for (const auto& [kind, objects] :
       {std::pair{Kind::Role, &roles}, std::pair{Kind::ClusterRole, &cluster_roles},
        std::pair{Kind::RoleBinding, &role_bindings}, std::pair{Kind::ClusterRoleBinding, &cluster_role_bindings}}) {
    for (const auto& [key, object] : *objects) edit.put(kind, key, object);
  }
  return edit.build();
}

template <class Visit>
void Index::visit(const auth::UserInfo& user, std::string_view ns, Visit&& visit) const {
  // Thousands of bindings may grant the same role, which has no more rules for that.
  constexpr size_t kFew = 8;
  std::unordered_set<const void*> visited;
  auto grants_of = [&](const std::string& subject) {
    const GrantsRef* found = grants_.find(subject);
    if (found == nullptr) return true;
    const bool many = (*found)->size() > kFew;
    return std::all_of((*found)->begin(), (*found)->end(), [&](const Grant& grant) {
      const RulesRef* rules = roles_.find(grant.binding->role);
      if (many && rules != nullptr && !visited.insert(rules->get()).second) return true;
      return visit(*grant.binding, grant.binding->subjects[grant.subject], rules);
    });
  };
  // Cluster-wide bindings first, in the order of kube-apiserver.
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
  Problems problems;
  visit(*attributes.user, attributes.ns, [&](const Binding& binding, const Subject& subject, const RulesRef* found) {
    if (found == nullptr) {
      if (!problems.full()) problems.add(missing_role(binding));
      return true;
    }
    const std::vector<Rule>& rules = **found;
    if (std::none_of(rules.begin(), rules.end(), [&](const Rule& rule) { return rule.allows(attributes); }))
      return true;
    decision.verdict = auth::Decision::Verdict::Allow;
    decision.reason = binding.ns.empty() ? "RBAC: allowed by ClusterRoleBinding " + go_quote(binding.name)
                                         : "RBAC: allowed by RoleBinding " + go_quote(binding.name + "/" + binding.ns);
    decision.reason += " of " + binding.role_kind + " " + go_quote(binding.role_name) + " to " + subject.shown;
    return false;
  });
  if (!decision.allowed() && !problems.empty()) decision.reason = "RBAC: " + problems.text();
  return decision;
}

std::vector<RulesRef> Index::rules_for(const auth::UserInfo& user, std::string_view ns, std::string* problem) const {
  std::vector<RulesRef> roles;
  std::unordered_set<const void*> known;
  Problems problems;
  visit(user, ns, [&](const Binding& binding, const Subject&, const RulesRef* found) {
    if (found == nullptr) {
      if (!problems.full()) problems.add(missing_role(binding));
    } else if (known.insert(found->get()).second) {
      roles.push_back(*found);
    }
    return true;
  });
  if (problem != nullptr && !problems.empty()) *problem = problems.text();
  return roles;
}

std::optional<std::vector<Rule>> Index::rules_of(std::string_view role_kind, std::string_view ns,
                                                 std::string_view name) const {
  const RulesRef* found = roles_.find(role_key(role_kind, ns, name));
  if (found == nullptr) return {};
  return **found;
}

Value aggregate(Arena& arena, const Value& cluster_role, const Index::Objects& cluster_roles) {
  ListBuilder rules(arena);
  std::unordered_multimap<uint64_t, Value> taken;  // By hash.
  for (const Value& selector : cluster_role.items_at("aggregationRule", "clusterRoleSelectors")) {
    for (const auto& [key, candidate] : cluster_roles) {
      if (candidate.text_at("metadata", "name") == cluster_role.text_at("metadata", "name")) continue;
      if (!kinds::selects(&selector, candidate.get("metadata", "labels"))) continue;
      for (const Value& rule : candidate.items_at("rules")) {
        const uint64_t key = hash(rule);
        const auto [first, last] = taken.equal_range(key);
        if (std::any_of(first, last, [&rule](const auto& other) { return equal(other.second, rule); })) continue;
        taken.emplace(key, rule);
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
  const size_t dot = group_resource.find('.');
  const GroupResource resource{dot == std::string_view::npos ? std::string_view() : group_resource.substr(dot + 1),
                               group_resource.substr(0, dot)};
  return forbidden(resource, name,
                   "user " + go_quote(user.name) + " (groups=" + quoted_list(user.groups) +
                       ") is attempting to grant RBAC permissions not currently held:\n" + join(descriptions, "\n"));
}

}  // namespace holdfast::rbac
