#include <algorithm>
#include <string>
#include <vector>

#include "base/strings.h"
#include "bootstrap/roles.h"

namespace holdfast::bootstrap {
namespace {

std::string_view full_group(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kShort[] = {
      {"core", ""},
      {"authn", "authentication.k8s.io"},
      {"authz", "authorization.k8s.io"},
      {"rbac", "rbac.authorization.k8s.io"},
      {"certs", "certificates.k8s.io"},
      {"coord", "coordination.k8s.io"},
      {"net", "networking.k8s.io"},
      {"disc", "discovery.k8s.io"},
      {"admreg", "admissionregistration.k8s.io"},
      {"storage", "storage.k8s.io"},
      {"resource", "resource.k8s.io"},
      {"events", "events.k8s.io"},
  };
  for (const auto& [short_name, full] : kShort) {
    if (short_name == name) return full;
  }
  return name;
}

void add_letters(std::string_view letters, std::vector<std::string>& verbs) {
  static constexpr std::pair<char, std::string_view> kVerbs[] = {
      {'c', "create"}, {'d', "delete"}, {'x', "deletecollection"},
      {'g', "get"},    {'l', "list"},   {'p', "patch"},
      {'u', "update"}, {'w', "watch"},  {'*', "*"}};
  for (char letter : letters) {
    if (letter == 'R') {
      add_letters("glw", verbs);
    } else if (letter == 'W') {
      add_letters("cdxpu", verbs);
    } else {
      const auto* known = std::find_if(std::begin(kVerbs), std::end(kVerbs),
                                       [letter](const auto& verb) { return verb.first == letter; });
      assert(known != std::end(kVerbs));
      verbs.emplace_back(known->second);
    }
  }
}

std::vector<std::string> parse_verbs(std::string_view text) {
  static constexpr std::string_view kWords[] = {"impersonate", "approve", "sign", "proxy", "escalate", "bind"};
  std::vector<std::string> verbs;
  for (std::string_view part : split(text, '+')) {
    if (std::find(std::begin(kWords), std::end(kWords), part) != std::end(kWords))
      verbs.emplace_back(part);
    else
      add_letters(part, verbs);
  }
  std::sort(verbs.begin(), verbs.end());
  return verbs;
}

Value texts(Arena& arena, std::vector<std::string> values) {
  std::sort(values.begin(), values.end());
  ListBuilder list(arena);
  for (const std::string& value : values) list.add(Value::string(arena, value));
  return list.build();
}

Value parse_rule(Arena& arena, std::string_view text) {
  MapBuilder rule(arena);
  if (text == "E") text = "core+events/events:cpu";
  const size_t colon = text.rfind(':');
  rule.add("verbs", texts(arena, parse_verbs(text.substr(colon + 1))));
  text = text.substr(0, colon);
  if (text.starts_with("url:")) {
    std::vector<std::string> paths;
    for (std::string_view path : split(text.substr(4), ',')) paths.emplace_back(path);
    rule.add("nonResourceURLs", texts(arena, paths));
    return rule.build();
  }
  const size_t slash = text.find('/');
  std::vector<std::string> groups, resources, names;
  for (std::string_view group : split(text.substr(0, slash), '+')) groups.emplace_back(full_group(group));
  text = text.substr(slash + 1);
  if (const size_t bracket = text.find('['); bracket != std::string_view::npos) {
    for (std::string_view name : split(text.substr(bracket + 1, text.size() - bracket - 2), ',')) {
      names.push_back(name.starts_with("k/") ? "kubernetes.io/" + std::string(name.substr(2)) : std::string(name));
    }
    text = text.substr(0, bracket);
  }
  for (std::string_view resource : split(text, ',')) resources.emplace_back(resource);
  rule.add("apiGroups", texts(arena, groups));
  rule.add("resources", texts(arena, resources));
  if (!names.empty()) rule.add("resourceNames", texts(arena, names));
  return rule.build();
}

}  // namespace

Value parse_rules(Arena& arena, std::string_view notation) {
  ListBuilder rules(arena);
  for (std::string_view text : split(notation, ' ')) {
    if (!text.empty()) rules.add(parse_rule(arena, text));
  }
  return rules.build();
}

}  // namespace holdfast::bootstrap
