// PodNodeSelector and PodTolerationRestriction: where the pods of a namespace may run, as its annotations and the
// configuration of the server say.

#include <algorithm>
#include <map>

#include "admission/plugin.h"
#include "base/api_error.h"
#include "base/strings.h"
#include "codec/json.h"
#include "kinds/kinds.h"
#include "kinds/qos.h"

namespace holdfast::admission {
namespace {

// The pod's namespace; 404 if it does not exist.
Result<Value> namespace_of(const Attributes& attributes) {
  std::optional<Value> ns = attributes.lookup.get(attributes.arena, "", "namespaces", "", attributes.ns);
  if (!ns) return not_found(GroupResource{"", "namespaces"}, attributes.ns);
  return *ns;
}

// --- PodNodeSelector -------------------------------------------------------------------------------------------------

constexpr std::string_view kSelectorAnnotation = "scheduler.alpha.kubernetes.io/node-selector";
constexpr std::string_view kDefaultSelector = "clusterDefaultNodeSelector";

using Labels = std::map<std::string, std::string, std::less<>>;

bool is_pod_create(const types::Resource& resource, std::string_view subresource, Operation operation) {
  return is_core(resource, "pods") && subresource.empty() && operation == Operation::Create;
}

// "a=b,c=d", with the errors of labels.ConvertSelectorToLabelsMap.
Result<Labels> parse_labels(std::string_view text) {
  Labels labels;
  if (text.empty()) return labels;
  for (const std::string_view part : split(text, ',')) {
    const std::vector<std::string_view> sides = split(part, '=');
    if (sides.size() != 2) return untyped("invalid selector: [" + join(sides, " ") + "]");
    const std::string key(trim(sides[0])), value(trim(sides[1]));
    if (const std::vector<std::string> wrong = kinds::qualified_name_errors(key); !wrong.empty()) {
      return untyped("<nil>: Invalid value: \"" + key + "\": " + join(wrong, "; "));
    }
    if (const std::vector<std::string> wrong = kinds::label_value_errors(value); !wrong.empty()) {
      return untyped("[" + key + "]: Invalid value: \"" + value + "\": " + join(wrong, "; "));
    }
    labels.insert_or_assign(key, value);
  }
  return labels;
}

Result<Labels> configured_labels(const Attributes& attributes, std::string_view name) {
  const auto found = attributes.configuration->node_selectors.find(name);
  return parse_labels(found == attributes.configuration->node_selectors.end() ? "" : found->second);
}

// What the namespace demands of its pods' nodes.
Result<Labels> namespace_labels(const Attributes& attributes) {
  const Result<Value> ns = namespace_of(attributes);
  if (!ns) return ns.error();
  const Value* annotation = ns->get("metadata", "annotations", kSelectorAnnotation);
  if (annotation != nullptr && annotation->is_string()) return parse_labels(annotation->as_string());
  return configured_labels(attributes, kDefaultSelector);
}

Error refuse_selector(const Value& pod, std::string_view why) {
  return forbidden(GroupResource{"", "pods"}, pod.text_at("metadata", "name"), why);
}

Result<Unit> check_node_selector(Attributes& attributes, const Value& pod) {
  const Result<Labels> demanded = namespace_labels(attributes);
  if (!demanded) return demanded.error();
  for (const auto& [key, value] : *demanded) {
    const Value* chosen = pod.get("spec", "nodeSelector", key);
    if (chosen == nullptr || (chosen->is_string() && chosen->as_string() == value)) continue;
    return refuse_selector(pod, "pod node label selector conflicts with its namespace node label selector");
  }
  const Result<Labels> allowed = configured_labels(attributes, attributes.ns);
  if (!allowed) return allowed.error();
  if (allowed->empty()) return Unit{};
  for (const Member& label : pod.members_at("spec", "nodeSelector")) {
    const auto found = allowed->find(label.key);
    if (found != allowed->end() && label.value.is_string() && label.value.as_string() == found->second) continue;
    return refuse_selector(pod, "pod node label selector labels conflict with its namespace whitelist");
  }
  return Unit{};
}

Result<Unit> add_node_selector(Attributes& attributes, Draft::Node pod) {
  const Result<Labels> demanded = namespace_labels(attributes);
  if (!demanded) return demanded.error();
  for (const auto& [key, value] : *demanded) {
    pod.child("spec")
        .child("nodeSelector")
        .set_default(attributes.arena.copy(key), Value::string(attributes.arena, value));
  }
  return check_node_selector(attributes, pod.value());
}

// --- PodTolerationRestriction ----------------------------------------------------------------------------------------

constexpr std::string_view kDefaultsAnnotation = "scheduler.alpha.kubernetes.io/defaultTolerations";
constexpr std::string_view kAllowedAnnotation = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";

// Each is compared with each other one.
constexpr size_t kMostTolerations = 1000;

Error too_many_tolerations(const Attributes& attributes, const Value& pod) {
  return refuse(attributes, pod, "more than " + std::to_string(kMostTolerations) + " tolerations");
}

bool is_pod_write(const types::Resource& resource, std::string_view subresource, Operation operation) {
  return is_core(resource, "pods") && subresource.empty() &&
         (operation == Operation::Create || operation == Operation::Update);
}

Toleration toleration_from(const Value& value) {
  Toleration toleration{.key = std::string(value.text_at("key")),
                        .op = std::string(value.text_at("operator")),
                        .value = std::string(value.text_at("value")),
                        .effect = std::string(value.text_at("effect"))};
  if (const Value* seconds = value.find("tolerationSeconds"); seconds != nullptr && seconds->is_int()) {
    toleration.seconds = seconds->as_int();
  }
  return toleration;
}

std::vector<Toleration> tolerations_in(std::span<const Value> values) {
  std::vector<Toleration> all;
  for (const Value& value : values) all.push_back(toleration_from(value));
  return all;
}

Value to_value(Arena& arena, const Toleration& toleration) {
  MapBuilder map(arena);
  const std::pair<std::string_view, const std::string*> texts[] = {{"key", &toleration.key},
                                                                   {"operator", &toleration.op},
                                                                   {"value", &toleration.value},
                                                                   {"effect", &toleration.effect}};
  for (const auto& [name, text] : texts) {
    if (!text->empty()) map.add(name, Value::string(arena, *text));
  }
  if (toleration.seconds) map.add("tolerationSeconds", Value::integer(*toleration.seconds));
  return map.build();
}

// The tolerations in an annotation of the namespace; nullopt if it does not have the annotation.
Result<std::optional<std::vector<Toleration>>> annotated(const Attributes& attributes, std::string_view annotation) {
  const Result<Value> ns = namespace_of(attributes);
  if (!ns) return ns.error();
  const Value* text = ns->get("metadata", "annotations", annotation);
  if (text == nullptr || !text->is_string()) return std::optional<std::vector<Toleration>>();
  if (text->as_string().empty()) return std::optional(std::vector<Toleration>());
  const Result<Value> list = codec::decode_json(attributes.arena, text->as_string());
  if (!list) return untyped(list.error().message);
  if (list->is_null()) return std::optional<std::vector<Toleration>>();
  const bool good = list->is_list() && std::all_of(list->items().begin(), list->items().end(),
                                                   [](const Value& item) { return item.is_map() || item.is_null(); });
  if (!good) return untyped(std::string(annotation) + " of the namespace is not a list of tolerations");
  return std::optional(tolerations_in(list->items()));
}

// Whether `wide` tolerates everything that `narrow` does.
bool covers(const Toleration& wide, const Toleration& narrow) {
  if (wide == narrow) return true;
  if (wide.key != narrow.key && (!wide.key.empty() || wide.op != "Exists")) return false;
  if (wide.effect != narrow.effect && !wide.effect.empty()) return false;
  if (wide.effect == "NoExecute" && wide.seconds && (!narrow.seconds || *narrow.seconds > *wide.seconds)) return false;
  if (wide.op == "Exists") return true;
  return (wide.op.empty() || wide.op == "Equal") && narrow.op == "Equal" && wide.value == narrow.value;
}

bool covers_any(const std::vector<Toleration>& wide, const Toleration& narrow) {
  return std::any_of(wide.begin(), wide.end(), [&narrow](const Toleration& one) { return covers(one, narrow); });
}

// Without those that others cover. Of equal ones the first is kept.
std::vector<Toleration> merged(const std::vector<Toleration>& all) {
  std::vector<Toleration> kept;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool covered_later =
        std::any_of(all.begin() + static_cast<ptrdiff_t>(i) + 1, all.end(),
                    [&](const Toleration& later) { return later != all[i] && covers(later, all[i]); });
    if (!covered_later && !covers_any(kept, all[i])) kept.push_back(all[i]);
  }
  return kept;
}

Result<Unit> check_tolerations(Attributes& attributes, const Value& pod) {
  const std::vector<Toleration> tolerations = tolerations_in(pod.items_at("spec", "tolerations"));
  if (tolerations.empty()) return Unit{};
  if (tolerations.size() > kMostTolerations) return too_many_tolerations(attributes, pod);
  const Result<std::optional<std::vector<Toleration>>> of_namespace = annotated(attributes, kAllowedAnnotation);
  if (!of_namespace) return of_namespace.error();
  const std::vector<Toleration>& allowed =
      *of_namespace ? **of_namespace : attributes.configuration->pod_tolerations.allowed;
  if (allowed.empty()) return Unit{};
  const bool all_allowed = std::all_of(tolerations.begin(), tolerations.end(),
                                       [&allowed](const Toleration& one) { return covers_any(allowed, one); });
  if (all_allowed) return Unit{};
  return untyped("pod tolerations (possibly merged with namespace default tolerations) conflict with its " +
                 std::string(*of_namespace ? "namespace" : "cluster") + " whitelist");
}

bool is_best_effort(const Value& pod) {
  const std::string_view known = pod.text_at("status", "qosClass");
  const Value* spec = pod.find("spec");
  if (!known.empty() || spec == nullptr) return known == "BestEffort";
  return kinds::qos_class(*spec) == "BestEffort";
}

Result<Unit> add_tolerations(Attributes& attributes, Draft::Node pod) {
  std::vector<Toleration> all = tolerations_in(pod.value().items_at("spec", "tolerations"));
  const size_t given = all.size();
  if (attributes.operation == Operation::Create) {
    const Result<std::optional<std::vector<Toleration>>> defaults = annotated(attributes, kDefaultsAnnotation);
    if (!defaults) return defaults.error();
    const std::vector<Toleration>& added = *defaults ? **defaults : attributes.configuration->pod_tolerations.defaults;
    all.insert(all.end(), added.begin(), added.end());
  }
  if (!is_best_effort(pod.value())) {
    all.push_back({.key = "node.kubernetes.io/memory-pressure", .op = "Exists", .effect = "NoSchedule"});
  }
  if (all.size() > kMostTolerations) return too_many_tolerations(attributes, pod.value());
  if (all.size() > given) {
    ListBuilder list(attributes.arena);
    for (const Toleration& toleration : merged(all)) list.add(to_value(attributes.arena, toleration));
    pod.child("spec").set("tolerations", list.build());
  }
  return check_tolerations(attributes, pod.value());
}

}  // namespace

const Plugin kPodNodeSelector = {
    .name = "PodNodeSelector", .handles = is_pod_create, .admit = add_node_selector, .validate = check_node_selector};
const Plugin kPodTolerationRestriction = {.name = "PodTolerationRestriction",
                                          .handles = is_pod_write,
                                          .admit = add_tolerations,
                                          .validate = check_tolerations};

}  // namespace holdfast::admission
