#include "admission/amounts.h"

namespace holdfast::admission {

using codec::Quantity;

Quantity quantity_of(const Value* value) {
  if (value == nullptr || !value->is_string()) return {};
  Result<Quantity> quantity = Quantity::parse(value->as_string());
  return quantity ? *std::move(quantity) : Quantity();
}

Amounts amounts_in(const Value& holder, std::string_view member) {
  Amounts amounts;
  for (const Member& amount : holder.members_at(member)) amounts[std::string(amount.key)] = quantity_of(&amount.value);
  return amounts;
}

Amounts amounts_of(const Value& holder, std::string_view list) {
  const Value* resources = holder.find("resources");
  return resources == nullptr ? Amounts() : amounts_in(*resources, list);
}

void add(Amounts& to, const Amounts& more) {
  for (const auto& [name, amount] : more) to[name] = to[name] + amount;
}

void keep_larger(Amounts& to, const Amounts& other) {
  for (const auto& [name, amount] : other) {
    const auto found = to.find(name);
    if (found == to.end() || amount > found->second) to[name] = amount;
  }
}

namespace {

Amounts container_amounts(const Value& pod, const Value& container, std::string_view list, std::string_view statuses) {
  Amounts amounts = amounts_of(container, list);
  if (statuses.empty()) return amounts;
  for (const Value& status : pod.items_at("status", statuses)) {
    if (status.text_at("name") != container.text_at("name")) continue;
    keep_larger(amounts, amounts_of(status, list));
    if (list == "requests") keep_larger(amounts, amounts_in(status, "allocatedResources"));
  }
  return amounts;
}

}  // namespace

Amounts pod_amounts(const Value& pod, std::string_view list, PodView view) {
  const bool running = view == PodView::Running;
  Amounts sum, sidecars, init;
  for (const Value& container : pod.items_at("spec", "containers")) {
    add(sum, container_amounts(pod, container, list, running ? "containerStatuses" : ""));
  }
  for (const Value& container : pod.items_at("spec", "initContainers")) {
    Amounts own = container_amounts(pod, container, list, running ? "initContainerStatuses" : "");
    if (container.text_at("restartPolicy") == "Always") {
      add(sum, own);
      add(sidecars, own);
      own = sidecars;
    } else {
      add(own, sidecars);
    }
    keep_larger(init, own);
  }
  keep_larger(sum, init);
  for (const Member& amount : pod.members_at("spec", "resources", list)) {
    if (amount.key == "cpu" || amount.key == "memory" || amount.key.starts_with("hugepages-")) {
      sum[std::string(amount.key)] = quantity_of(&amount.value);
    }
  }
  return sum;
}

}  // namespace holdfast::admission
