// Networking, access, storage, admission, flow control, certificates, scheduling and resource claims.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kinds/kinds.h"
#include "table/cells.h"

namespace holdfast::table {
namespace {

void name_age(Row& row) {
  row.name();
  row.age();
}

constexpr size_t kShownHosts = 3;

void ingress(Row& row) {
  const Value& o = row.object();
  row.name();
  row.text(or_none(o.text_at("spec", "ingressClassName")));
  std::vector<std::string> hosts;
  const auto rules = o.items_at("spec", "rules");
  for (const Value& rule : rules) {
    if (hosts.size() == kShownHosts) break;
    if (const std::string_view host = rule.text_at("host"); !host.empty()) hosts.emplace_back(host);
  }
  std::string text = hosts.empty() ? "*" : join(hosts, ",");
  if (rules.size() > kShownHosts && hosts.size() == kShownHosts)
    text += " + " + std::to_string(rules.size() - kShownHosts) + " more...";
  row.text(text);
  std::set<std::string> addresses;
  for (const Value& item : o.items_at("status", "loadBalancer", "ingress")) {
    const std::string_view ip = item.text_at("ip"), host = item.text_at("hostname");
    if (!ip.empty())
      addresses.emplace(ip);
    else if (!host.empty())
      addresses.emplace(host);
  }
  row.text(join(addresses, ","));
  row.text(o.items_at("spec", "tls").empty() ? "80" : "80, 443");
  row.age();
}

bool annotated_true(const Value& o, std::string_view key) {
  return o.text_at("metadata", "annotations", key) == "true";
}

void ingress_class(Row& row) {
  const Value& o = row.object();
  std::string name(o.text_at("metadata", "name"));
  if (annotated_true(o, "ingressclass.kubernetes.io/is-default-class")) name += " (default)";
  row.text(name);
  row.text(o.text_at("spec", "controller"));
  std::string parameters = "<none>";
  if (const Value* reference = o.get("spec", "parameters")) {
    parameters = reference->text_at("kind");
    if (const std::string_view group = reference->text_at("apiGroup"); !group.empty())
      parameters += "." + std::string(group);
    parameters += "/" + std::string(reference->text_at("name"));
  }
  row.text(parameters);
  row.age();
}

// Kubernetes prints an age here although there is no column for it.
void ip_address(Row& row) {
  const Value& o = row.object();
  row.name();
  const Value* parent = o.get("spec", "parentRef");
  std::string text = "<none>";
  if (parent != nullptr) {
    text.clear();
    const std::string_view group = parent->text_at("group"), ns = parent->text_at("namespace");
    text += parent->text_at("resource");
    if (!group.empty()) text += "." + std::string(group);
    text = to_lower(text);
    if (!ns.empty()) text += "/" + std::string(ns);
    text += "/" + std::string(parent->text_at("name"));
  }
  row.text(text);
  row.age();
}

void network_policy(Row& row) {
  row.name();
  row.text(or_none(kinds::selector_text(row.object().get("spec", "podSelector"))));
  row.age();
}

void service_cidr(Row& row) {
  row.name();
  row.text(join_strings(row.object().items_at("spec", "cidrs"), ","));
  row.age();
}

void role_binding(Row& row) {
  const Value& o = row.object();
  row.name();
  row.text(std::string(o.text_at("roleRef", "kind")) + "/" + std::string(o.text_at("roleRef", "name")));
  row.age();
  std::vector<std::string> users, groups, accounts;
  for (const Value& subject : o.items_at("subjects")) {
    const std::string_view kind = subject.text_at("kind");
    const std::string name(subject.text_at("name"));
    if (kind == "User")
      users.push_back(name);
    else if (kind == "Group")
      groups.push_back(name);
    else if (kind == "ServiceAccount")
      accounts.push_back(std::string(subject.text_at("namespace")) + "/" + name);
  }
  row.text(join(users, ", "));
  row.text(join(groups, ", "));
  row.text(join(accounts, ", "));
}

void priority_class(Row& row) {
  const Value& o = row.object();
  row.name();
  row.integer(o.int_at_or(0, "value"));
  const Value* global = o.find("globalDefault");
  row.boolean(global != nullptr && global->is_bool() && global->as_bool());
  row.age();
  row.text(o.text_at("preemptionPolicy"));
}

void storage_class(Row& row) {
  const Value& o = row.object();
  std::string name(o.text_at("metadata", "name"));
  if (annotated_true(o, "storageclass.kubernetes.io/is-default-class") ||
      annotated_true(o, "storageclass.beta.kubernetes.io/is-default-class")) {
    name += " (default)";
  }
  row.text(name);
  row.text(o.text_at("provisioner"));
  row.text_or(o.text_at("reclaimPolicy"), "Delete");
  row.text_or(o.text_at("volumeBindingMode"), "<unset>");
  const Value* expansion = o.find("allowVolumeExpansion");
  row.boolean(expansion != nullptr && expansion->is_bool() && expansion->as_bool());
  row.age();
}

void lease(Row& row) {
  row.name();
  row.text(row.object().text_at("spec", "holderIdentity"));
  row.age();
}

void signing_request(Row& row) {
  const Value& o = row.object();
  row.name();
  row.age();
  row.text_or(o.text_at("spec", "signerName"), "<none>");
  row.text(o.text_at("spec", "username"));
  const Value* seconds = o.get("spec", "expirationSeconds");
  row.text(seconds != nullptr && seconds->is_int() ? age_text(seconds->as_int()) : "<none>");
  bool approved = false, denied = false, failed = false;
  for (const Value& condition : o.items_at("status", "conditions")) {
    const std::string_view type = condition.text_at("type");
    approved |= type == "Approved";
    denied |= type == "Denied";
    failed |= type == "Failed";
  }
  std::string status = denied ? "Denied" : approved ? "Approved" : "Pending";
  if (failed) status += ",Failed";
  if (!o.text_at("status", "certificate").empty()) status += ",Issued";
  row.text(status);
}

void webhook_configuration(Row& row) {
  row.name();
  row.integer(static_cast<int64_t>(row.object().items_at("webhooks").size()));
  row.age();
}

void policy_row(Row& row, std::string_view list) {
  const Value& o = row.object();
  row.name();
  row.integer(static_cast<int64_t>(o.items_at("spec", list).size()));
  const Value* kind = o.get("spec", "paramKind");
  row.text(kind == nullptr ? "<unset>"
                           : std::string(kind->text_at("apiVersion")) + "/" + std::string(kind->text_at("kind")));
  row.age();
}
void validating_policy(Row& row) { policy_row(row, "validations"); }
void mutating_policy(Row& row) { policy_row(row, "mutations"); }

// A LabelSelector in the format of Go's generated String(), which is what the printer shows.
std::string go_selector_text(const Value& selector) {
  std::vector<std::pair<std::string_view, std::string_view>> labels;
  for (const Member& label : selector.members_at("matchLabels"))
    labels.emplace_back(label.key, label.value.is_string() ? label.value.as_string() : "");
  std::sort(labels.begin(), labels.end());
  std::string text = "&LabelSelector{MatchLabels:map[string]string{";
  for (const auto& [key, value] : labels) text += std::string(key) + ": " + std::string(value) + ",";
  text += "},MatchExpressions:[]LabelSelectorRequirement{";
  for (const Value& requirement : selector.items_at("matchExpressions")) {
    text += "LabelSelectorRequirement{Key:" + std::string(requirement.text_at("key")) +
            ",Operator:" + std::string(requirement.text_at("operator")) + ",Values:[" +
            join_strings(requirement.items_at("values"), " ") + "],},";
  }
  return text + "},}";
}

void policy_binding(Row& row) {
  const Value& o = row.object();
  row.name();
  row.text(o.text_at("spec", "policyName"));
  const Value* reference = o.get("spec", "paramRef");
  if (reference == nullptr) {
    row.text("<unset>");
  } else if (const Value* selector = reference->find("selector")) {
    row.text(go_selector_text(*selector));
  } else {
    const std::string_view ns = reference->text_at("namespace");
    row.text((ns.empty() ? std::string("*") : std::string(ns)) + "/" + std::string(reference->text_at("name")));
  }
  row.age();
}

void flow_schema(Row& row) {
  const Value& o = row.object();
  row.name();
  row.text(o.text_at("spec", "priorityLevelConfiguration", "name"));
  row.integer(o.int_at_or(0, "spec", "matchingPrecedence"));
  row.text(or_none(o.text_at("spec", "distinguisherMethod", "type")));
  row.age();
  std::string dangling = "?";
  for (const Value& condition : o.items_at("status", "conditions")) {
    if (condition.text_at("type") == "Dangling") dangling = condition.text_at("status");
  }
  row.text(dangling);
}

void priority_level(Row& row) {
  const Value& o = row.object();
  row.name();
  row.text(o.text_at("spec", "type"));
  auto integer_or_none = [&row](const Value* value) {
    if (value != nullptr && value->is_int())
      row.integer(value->as_int());
    else
      row.text("<none>");
  };
  integer_or_none(o.get("spec", "limited", "nominalConcurrencyShares"));
  const Value* queuing = o.get("spec", "limited", "limitResponse", "queuing");
  for (std::string_view key : {"queues", "handSize", "queueLengthLimit"})
    integer_or_none(queuing == nullptr ? nullptr : queuing->find(key));
  row.age();
}

void api_service(Row& row) {
  const Value& o = row.object();
  row.name();
  const Value* service = o.get("spec", "service");
  row.text(service == nullptr
               ? "Local"
               : std::string(service->text_at("namespace")) + "/" + std::string(service->text_at("name")));
  std::string available = "Unknown";
  for (const Value& condition : o.items_at("status", "conditions")) {
    if (condition.text_at("type") != "Available") continue;
    available = condition.text_at("status");
    if (available != "True") available += " (" + std::string(condition.text_at("reason")) + ")";
  }
  row.text(available);
  row.age();
}

void csi_driver(Row& row) {
  const Value& o = row.object();
  row.name();
  auto flag = [&](std::string_view key, bool otherwise) {
    const Value* value = o.get("spec", key);
    row.boolean(value != nullptr && value->is_bool() ? value->as_bool() : otherwise);
  };
  flag("attachRequired", true);
  flag("podInfoOnMount", false);
  flag("storageCapacity", false);
  const Value* tokens = o.get("spec", "tokenRequests");
  if (tokens == nullptr || !tokens->is_list()) {
    row.text("<unset>");
  } else {
    std::vector<std::string> audiences;
    for (const Value& token : tokens->items()) audiences.emplace_back(token.text_at("audience"));
    row.text(join(audiences, ","));
  }
  flag("requiresRepublish", false);
  row.text(or_none(join_strings(o.items_at("spec", "volumeLifecycleModes"), ",")));
  row.age();
}

void csi_node(Row& row) {
  row.name();
  row.integer(static_cast<int64_t>(row.object().items_at("spec", "drivers").size()));
  row.age();
}

void volume_attachment(Row& row) {
  const Value& o = row.object();
  row.name();
  row.text(o.text_at("spec", "attacher"));
  row.text(o.text_at("spec", "source", "persistentVolumeName"));
  row.text(o.text_at("spec", "nodeName"));
  row.boolean(bool_at(o, "status", "attached"));
  row.age();
}

void volume_attributes_class(Row& row) {
  row.name();
  row.text(row.object().text_at("driverName"));
  row.age();
}

void runtime_class(Row& row) {
  row.name();
  row.text(row.object().text_at("handler"));
  row.age();
}

void resource_slice(Row& row) {
  const Value& o = row.object();
  row.name();
  row.text(o.text_at("spec", "nodeName"));
  row.text(o.text_at("spec", "driver"));
  row.text(o.text_at("spec", "pool", "name"));
  row.age();
}

void field_protection(Row& row) {
  const Value& o = row.object();
  row.name();
  row.text(o.text_at("spec", "action"));
  std::vector<std::string> resources;
  for (const Value& item : o.items_at("spec", "resources")) {
    resources.push_back(join_strings(item.items_at("resources"), ","));
  }
  row.text(join(resources, ","));
  row.text(join_strings(o.items_at("spec", "paths"), ","));
  row.age();
}

void resource_claim(Row& row) {
  const Value& o = row.object();
  row.name();
  std::vector<std::string> states;
  if (!o.text_at("metadata", "deletionTimestamp").empty()) states.emplace_back("deleted");
  const bool allocated = o.get("status", "allocation") != nullptr;
  if (allocated) states.emplace_back("allocated");
  if (allocated && !o.items_at("status", "reservedFor").empty()) states.emplace_back("reserved");
  if (!allocated) states.emplace_back("pending");
  row.text(join(states, ","));
  row.age();
}

}  // namespace

Printer cluster_printer(std::string_view kind) {
  struct Entry {
    std::string_view kind;
    Printer printer;
  };
  static constexpr Entry kPrinters[] = {
      {"Ingress", ingress},
      {"IngressClass", ingress_class},
      {"IPAddress", ip_address},
      {"NetworkPolicy", network_policy},
      {"ServiceCIDR", service_cidr},
      {"RoleBinding", role_binding},
      {"ClusterRoleBinding", role_binding},
      {"PriorityClass", priority_class},
      {"FieldProtection", field_protection},
      {"StorageClass", storage_class},
      {"Lease", lease},
      {"CertificateSigningRequest", signing_request},
      {"ValidatingWebhookConfiguration", webhook_configuration},
      {"MutatingWebhookConfiguration", webhook_configuration},
      {"ValidatingAdmissionPolicy", validating_policy},
      {"MutatingAdmissionPolicy", mutating_policy},
      {"ValidatingAdmissionPolicyBinding", policy_binding},
      {"MutatingAdmissionPolicyBinding", policy_binding},
      {"FlowSchema", flow_schema},
      {"PriorityLevelConfiguration", priority_level},
      {"APIService", api_service},
      {"CSIDriver", csi_driver},
      {"CSINode", csi_node},
      {"VolumeAttachment", volume_attachment},
      {"VolumeAttributesClass", volume_attributes_class},
      {"RuntimeClass", runtime_class},
      {"DeviceClass", name_age},
      {"ResourceClaim", resource_claim},
      {"ResourceClaimTemplate", name_age},
      {"ResourceSlice", resource_slice},
  };
  for (const Entry& entry : kPrinters) {
    if (entry.kind == kind) return entry.printer;
  }
  return nullptr;
}

}  // namespace holdfast::table
