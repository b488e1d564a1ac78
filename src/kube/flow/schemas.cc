#include <algorithm>

#include "flow/flow.h"

namespace holdfast::flow {
namespace {

bool has(const std::vector<std::string>& set, std::string_view text) {
  return std::any_of(set.begin(), set.end(), [&](const std::string& one) { return one == "*" || one == text; });
}

struct Subject {
  enum class Kind : uint8_t { User, Group, ServiceAccount } kind;
  std::string ns, name;

  bool matches(const auth::UserInfo& user) const {
    switch (kind) {
      case Kind::User:
        return name == "*" || name == user.name;
      case Kind::Group:
        return name == "*" || user.in_group(name);
      case Kind::ServiceAccount:
        break;
    }
    const std::string prefix = "system:serviceaccount:" + ns + ":";
    return user.name.starts_with(prefix) && (name == "*" || user.name.substr(prefix.size()) == name);
  }
};

struct ResourceRule {
  std::vector<std::string> verbs, groups, resources, namespaces;
  bool cluster_scope = false;

  bool matches(const auth::Attributes& wanted) const {
    if (!has(verbs, wanted.verb) || !has(groups, wanted.group)) return false;
    if (wanted.ns.empty() ? !cluster_scope : !has(namespaces, wanted.ns)) return false;
    if (wanted.subresource.empty()) return has(resources, wanted.resource);
    return has(resources, std::string(wanted.resource) + "/" + std::string(wanted.subresource));
  }
};

struct PathRule {
  std::vector<std::string> verbs, paths;

  bool matches(const auth::Attributes& wanted) const {
    if (!has(verbs, wanted.verb)) return false;
    return std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
      if (path.ends_with('*')) return wanted.path.starts_with(std::string_view(path).substr(0, path.size() - 1));
      return wanted.path == path;
    });
  }
};

int64_t number(const Value& map, int64_t otherwise, std::string_view key) { return map.int_at_or(otherwise, key); }

}  // namespace

struct Schemas::Rule {
  std::vector<Subject> subjects;
  std::vector<ResourceRule> resources;
  std::vector<PathRule> paths;

  explicit Rule(const Value& rule) {
    for (const Value& item : rule.items_at("subjects")) {
      const std::string_view kind = item.text_at("kind");
      if (kind == "User") {
        subjects.push_back({Subject::Kind::User, "", std::string(item.text_at("user", "name"))});
      } else if (kind == "Group") {
        subjects.push_back({Subject::Kind::Group, "", std::string(item.text_at("group", "name"))});
      } else if (kind == "ServiceAccount") {
        subjects.push_back({Subject::Kind::ServiceAccount, std::string(item.text_at("serviceAccount", "namespace")),
                            std::string(item.text_at("serviceAccount", "name"))});
      }
    }
    for (const Value& item : rule.items_at("resourceRules")) {
      const Value* scope = item.find("clusterScope");
      resources.push_back({texts_of(item.items_at("verbs")), texts_of(item.items_at("apiGroups")),
                           texts_of(item.items_at("resources")), texts_of(item.items_at("namespaces")),
                           scope != nullptr && scope->is_bool() && scope->as_bool()});
    }
    for (const Value& item : rule.items_at("nonResourceRules")) {
      paths.push_back({texts_of(item.items_at("verbs")), texts_of(item.items_at("nonResourceURLs"))});
    }
  }

  bool matches(const auth::Attributes& wanted) const {
    if (std::none_of(subjects.begin(), subjects.end(),
                     [&](const Subject& subject) { return subject.matches(*wanted.user); })) {
      return false;
    }
    if (wanted.is_resource) {
      return std::any_of(resources.begin(), resources.end(),
                         [&](const ResourceRule& rule) { return rule.matches(wanted); });
    }
    return std::any_of(paths.begin(), paths.end(), [&](const PathRule& rule) { return rule.matches(wanted); });
  }
};

struct Schemas::Schema {
  std::string name, uid;
  int64_t precedence = 0;
  std::string distinguisher;  // ByUser, ByNamespace or empty.
  const Level* level = nullptr;
  std::vector<Rule> rules;
};

Schemas::Schemas() = default;
Schemas::~Schemas() = default;

Level Level::from(const Value& configuration) {
  Level level;
  level.name = configuration.text_at("metadata", "name");
  level.uid = configuration.text_at("metadata", "uid");
  const Value* spec = configuration.find("spec");
  if (spec == nullptr || !spec->is_map()) return level;
  level.exempt = spec->text_at("type") == "Exempt";
  const Value* limited = spec->find(level.exempt ? "exempt" : "limited");
  if (limited == nullptr || !limited->is_map()) return level;
  level.shares = number(*limited, level.exempt ? 0 : 30, "nominalConcurrencyShares");
  level.lendable = number(*limited, 0, "lendablePercent");
  level.borrowing = number(*limited, -1, "borrowingLimitPercent");
  level.queues = limited->text_at("limitResponse", "type") == "Queue";
  level.queue_count = limited->int_at_or(64, "limitResponse", "queuing", "queues");
  level.hand_size = limited->int_at_or(8, "limitResponse", "queuing", "handSize");
  level.queue_length = limited->int_at_or(50, "limitResponse", "queuing", "queueLengthLimit");
  return level;
}

std::shared_ptr<const Schemas> Schemas::build(const std::vector<Value>& flow_schemas,
                                              const std::vector<Value>& configurations) {
  auto made = std::make_shared<Schemas>();
  for (const Value& configuration : configurations) {
    made->levels_.push_back(std::make_unique<Level>(Level::from(configuration)));
  }
  for (const Value& object : flow_schemas) {
    auto schema = std::make_unique<Schema>();
    schema->name = object.text_at("metadata", "name");
    schema->uid = object.text_at("metadata", "uid");
    schema->precedence = object.int_at_or(1000, "spec", "matchingPrecedence");
    schema->distinguisher = object.text_at("spec", "distinguisherMethod", "type");
    const std::string_view level = object.text_at("spec", "priorityLevelConfiguration", "name");
    for (const std::unique_ptr<Level>& known : made->levels_) {
      if (known->name == level) schema->level = known.get();
    }
    if (schema->level == nullptr) continue;
    for (const Value& rule : object.items_at("spec", "rules")) schema->rules.emplace_back(rule);
    made->schemas_.push_back(std::move(schema));
  }
  std::sort(made->schemas_.begin(), made->schemas_.end(), [](const auto& a, const auto& b) {
    return std::pair(a->precedence, std::string_view(a->name)) < std::pair(b->precedence, std::string_view(b->name));
  });
  return made;
}

std::optional<Flow> Schemas::classify(const auth::Attributes& attributes) const {
  for (const std::unique_ptr<Schema>& schema : schemas_) {
    if (std::none_of(schema->rules.begin(), schema->rules.end(),
                     [&](const Rule& rule) { return rule.matches(attributes); })) {
      continue;
    }
    Flow flow{schema->name, schema->uid, schema->level, {}};
    if (schema->distinguisher == "ByUser") flow.distinguisher = attributes.user->name;
    if (schema->distinguisher == "ByNamespace") flow.distinguisher = attributes.ns;
    return flow;
  }
  return std::nullopt;
}

}  // namespace holdfast::flow
