#include "bootstrap/bootstrap.h"

#include "base/api_version.h"
#include "base/strings.h"
#include "bootstrap/roles.h"
#include "codec/codec.h"

namespace holdfast::bootstrap {
namespace {

constexpr std::string_view kServer = "kube-apiserver";
constexpr std::string_view kFlowProducer = "api-priority-and-fairness-config-producer-v1";
constexpr std::string_view kFlowConsumer = "api-priority-and-fairness-config-consumer-v1";
constexpr std::string_view kCidrController = "kubernetes-service-cidr-controller";
constexpr std::string_view kRbacGroup = "rbac.authorization.k8s.io";
constexpr std::string_view kFlowGroup = "flowcontrol.apiserver.k8s.io";
// Everyone may ask: what is asked about needs rights of its own.
constexpr std::string_view kOwnershipRole = "holdfast:ownership-user";

struct Subject {
  std::string_view kind, name, ns = {};
};

// The group versions of this server and their priorities in discovery.
struct ApiServiceRow {
  std::string_view group, version;
  int group_priority, version_priority = 15;
};
constexpr ApiServiceRow kApiServices[] = {
    {"", "v1", 18000, 1},
    {"apps", "v1", 17800},
    {"events.k8s.io", "v1", 17750},
    {"authentication.k8s.io", "v1", 17700},
    {"authorization.k8s.io", "v1", 17600},
    {"autoscaling", "v1", 17500},
    {"autoscaling", "v2", 17500, 30},
    {"batch", "v1", 17400},
    {"certificates.k8s.io", "v1", 17300},
    {"networking.k8s.io", "v1", 17200},
    {"policy", "v1", 17100},
    {"rbac.authorization.k8s.io", "v1", 17000},
    {"storage.k8s.io", "v1", 16800},
    {"admissionregistration.k8s.io", "v1", 16700},
    {"admissionregistration.k8s.io", "v1beta1", 16700, 12},
    {"apiextensions.k8s.io", "v1", 16700},
    {"scheduling.k8s.io", "v1", 16600},
    {"coordination.k8s.io", "v1", 16500},
    {"node.k8s.io", "v1", 16300},
    {"discovery.k8s.io", "v1", 16200},
    {"resource.k8s.io", "v1", 16200, 21},
    {"flowcontrol.apiserver.k8s.io", "v1", 16100, 21},
};

std::string name_of(const ApiServiceRow& row) { return std::string(row.version) + "." + std::string(row.group); }

class Maker {
 public:
  Maker(Arena& arena, const Options& options, UnixTime now)
      : arena_(arena), options_(options), now_(format_rfc3339(now)), date_(now_.substr(0, 10)) {}

  std::vector<Step> make() {
    namespaces();
    service_cidr();
    api_services();
    config_maps();
    priority_levels();
    flow_schemas();
    priority_classes();
    cluster_role_objects();
    cluster_role_bindings();
    namespaced_roles();
    own_service();
    std::erase_if(steps_, [&](const Step& step) { return !options_.runtime_config.serves(*step.resource); });
    return std::move(steps_);
  }

 private:
  static std::string_view family_of(std::string_view ip) {
    return ip.find(':') == std::string_view::npos ? "IPv4" : "IPv6";
  }
  static std::string quoted(std::string_view text) { return codec::encode_json_string(text); }

  Value parse(const std::string& json) {
    Result<Value> value = codec::decode_json(arena_, arena_.copy(json));
    assert(value);
    return *value;
  }

  // `members`: JSON members after apiVersion and kind.
  Step& add(std::string_view group, std::string_view version, std::string_view plural, std::string_view manager,
            const std::string& members) {
    const types::Resource* resource = types::find_resource(group, version, plural);
    assert(resource != nullptr);
    const std::string api_version = api_version_of(group, version);
    steps_.push_back(
        {resource, manager,
         parse("{\"kind\":" + quoted(resource->kind) + ",\"apiVersion\":" + quoted(api_version) + "," + members + "}"),
         Value()});
    return steps_.back();
  }

  void namespaces() {
    for (std::string_view name : {"kube-system", "kube-public", "default", "kube-node-lease"}) {
      add("", "v1", "namespaces", kServer, "\"metadata\":{\"name\":" + quoted(name) + "}");
    }
  }

  void service_cidr() {
    Step& step =
        add("networking.k8s.io", "v1", "servicecidrs", kServer,
            R"("metadata":{"name":"kubernetes"},"spec":{"cidrs":[)" +
                join(options_.service_cidrs, ",", [](const std::string& cidr) { return quoted(cidr); }) + "]}");
    step.status = parse(
        R"({"kind":"ServiceCIDR","apiVersion":"networking.k8s.io/v1","metadata":{"name":"kubernetes"},"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":)" +
        quoted(now_) + R"(,"message":"Kubernetes default Service CIDR is ready"}]}})");
    step.status_manager = kCidrController;
  }

  void api_services() {
    for (const ApiServiceRow& row : kApiServices) {
      if (!options_.runtime_config.serves(row.group, row.version)) continue;
      const std::string name = name_of(row);
      add("apiregistration.k8s.io", "v1", "apiservices", kServer,
          "\"metadata\":{\"name\":" + quoted(name) + R"(,"labels":{")" + std::string(kAutomanaged) +
              R"(":"onstart"}},"spec":{)" + (row.group.empty() ? "" : "\"group\":" + quoted(row.group) + ",") +
              "\"version\":" + quoted(row.version) + ",\"groupPriorityMinimum\":" + std::to_string(row.group_priority) +
              ",\"versionPriority\":" + std::to_string(row.version_priority) +
              R"(},"status":{"conditions":[{"type":"Available","status":"True","lastTransitionTime":)" + quoted(now_) +
              R"(,"reason":"Local","message":"Local APIServices are always available"}]})");
    }
  }

  void config_maps() {
    add("", "v1", "configmaps", kServer,
        R"("metadata":{"name":"kube-apiserver-legacy-service-account-token-tracking","namespace":"kube-system"},"data":{"since":)" +
            quoted(date_) + "}");
    if (options_.client_ca_pem.empty() && options_.request_header_ca_pem.empty()) return;
    std::string data;
    auto member = [&data](std::string_view key, const std::string& value) {
      data += (data.empty() ? "" : ",") + quoted(key) + ":" + quoted(value);
    };
    if (!options_.client_ca_pem.empty()) member("client-ca-file", options_.client_ca_pem);
    if (!options_.request_header_ca_pem.empty()) {
      std::string names = "[";
      for (const std::string& name : options_.request_header_allowed_names)
        names += (names.size() > 1 ? "," : "") + quoted(name);
      member("requestheader-allowed-names", names + "]");
      member("requestheader-client-ca-file", options_.request_header_ca_pem);
      member("requestheader-extra-headers-prefix", "[\"X-Remote-Extra-\"]");
      member("requestheader-group-headers", "[\"X-Remote-Group\"]");
      member("requestheader-uid-headers", "[\"X-Remote-Uid\"]");
      member("requestheader-username-headers", "[\"X-Remote-User\"]");
    }
    add("", "v1", "configmaps", kServer,
        R"("metadata":{"name":"extension-apiserver-authentication","namespace":"kube-system"},"data":{)" + data + "}");
  }

  void priority_levels() {
    struct Row {
      std::string_view name;
      int shares, lendable_percent, queues, hand_size;  // Without queues, excess requests are rejected.
    };
    static constexpr Row kRows[] = {
        {"system", 30, 33, 64, 6},         {"node-high", 40, 25, 64, 6},      {"leader-election", 10, 0, 16, 4},
        {"workload-high", 40, 50, 128, 6}, {"workload-low", 100, 90, 128, 6}, {"global-default", 20, 50, 128, 6},
        {"catch-all", 5, 0, 0, 0},         {"exempt", 0, 0, -1, 0},
    };
    for (const Row& row : kRows) {
      const std::string shares = "\"nominalConcurrencyShares\":" + std::to_string(row.shares),
                        lendable = "\"lendablePercent\":" + std::to_string(row.lendable_percent);
      std::string spec;
      if (row.queues < 0) {
        spec = R"("type":"Exempt","exempt":{)" + shares + "," + lendable + "}";
      } else {
        const std::string queuing =
            row.queues == 0 ? R"({"type":"Reject"})"
                            : R"({"type":"Queue","queuing":{"queues":)" + std::to_string(row.queues) +
                                  ",\"handSize\":" + std::to_string(row.hand_size) + ",\"queueLengthLimit\":50}}";
        spec = R"("type":"Limited","limited":{)" + shares + ",\"limitResponse\":" + queuing + "," + lendable + "}";
      }
      add(kFlowGroup, "v1", "prioritylevelconfigurations", kFlowProducer,
          flow_metadata(row.name) + ",\"spec\":{" + spec + "}");
    }
  }

  static std::string flow_metadata(std::string_view name) {
    return "\"metadata\":{\"name\":" + quoted(name) + R"(,"annotations":{"apf.kubernetes.io/autoupdate-spec":"true"}})";
  }

  void flow_schemas() {
    constexpr std::string_view kAllResources =
        R"([{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,"namespaces":["*"]}])";
    constexpr std::string_view kAllPaths = R"([{"verbs":["*"],"nonResourceURLs":["*"]}])";
    struct Row {
      std::string_view name, level;
      int precedence;
      std::string_view distinguisher;
      std::vector<Subject> subjects;
      std::string_view resources, paths;
    };
    const std::vector<Subject> everybody = {{"Group", "system:unauthenticated"}, {"Group", "system:authenticated"}};
    const Row kRows[] = {
        {"system-nodes", "system", 500, "ByUser", {{"Group", "system:nodes"}}, kAllResources, kAllPaths},
        {"system-node-high",
         "node-high",
         400,
         "ByUser",
         {{"Group", "system:nodes"}},
         R"([{"verbs":["*"],"apiGroups":[""],"resources":["nodes","nodes/status"],"clusterScope":true,"namespaces":["*"]},{"verbs":["*"],"apiGroups":["coordination.k8s.io"],"resources":["leases"],"namespaces":["*"]}])",
         ""},
        {"probes", "exempt", 2, "", everybody, "",
         R"([{"verbs":["get"],"nonResourceURLs":["/healthz","/readyz","/livez"]}])"},
        {"system-leader-election",
         "leader-election",
         100,
         "ByUser",
         {{"User", "system:kube-controller-manager"},
          {"User", "system:kube-scheduler"},
          {"ServiceAccount", "*", "kube-system"}},
         R"([{"verbs":["get","create","update"],"apiGroups":["coordination.k8s.io"],"resources":["leases"],"namespaces":["*"]}])",
         ""},
        {"kube-controller-manager",
         "workload-high",
         800,
         "ByNamespace",
         {{"User", "system:kube-controller-manager"}},
         kAllResources,
         kAllPaths},
        {"kube-scheduler",
         "workload-high",
         800,
         "ByNamespace",
         {{"User", "system:kube-scheduler"}},
         kAllResources,
         kAllPaths},
        {"kube-system-service-accounts",
         "workload-high",
         900,
         "ByNamespace",
         {{"ServiceAccount", "*", "kube-system"}},
         kAllResources,
         kAllPaths},
        {"service-accounts",
         "workload-low",
         9000,
         "ByUser",
         {{"Group", "system:serviceaccounts"}},
         kAllResources,
         kAllPaths},
        {"global-default", "global-default", 9900, "ByUser", everybody, kAllResources, kAllPaths},
        {"exempt", "exempt", 1, "", {{"Group", "system:masters"}}, kAllResources, kAllPaths},
        {"catch-all", "catch-all", 10000, "ByUser", everybody, kAllResources, kAllPaths},
    };
    for (const Row& row : kRows) {
      std::string subjects, rule;
      for (const Subject& subject : row.subjects) {
        subjects += subjects.empty() ? "" : ",";
        if (subject.kind == "User")
          subjects += R"({"kind":"User","user":{"name":)" + quoted(subject.name) + "}}";
        else if (subject.kind == "Group")
          subjects += R"({"kind":"Group","group":{"name":)" + quoted(subject.name) + "}}";
        else
          subjects += R"({"kind":"ServiceAccount","serviceAccount":{"namespace":)" + quoted(subject.ns) +
                      ",\"name\":" + quoted(subject.name) + "}}";
      }
      rule = "{\"subjects\":[" + subjects + "]";
      if (!row.resources.empty()) rule += ",\"resourceRules\":" + std::string(row.resources);
      if (!row.paths.empty()) rule += ",\"nonResourceRules\":" + std::string(row.paths);
      rule += "}";
      std::string spec = "\"priorityLevelConfiguration\":{\"name\":" + quoted(row.level) +
                         "},\"matchingPrecedence\":" + std::to_string(row.precedence);
      if (!row.distinguisher.empty()) spec += ",\"distinguisherMethod\":{\"type\":" + quoted(row.distinguisher) + "}";
      Step& step = add(kFlowGroup, "v1", "flowschemas", kFlowProducer,
                       flow_metadata(row.name) + ",\"spec\":{" + spec + ",\"rules\":[" + rule + "]}");
      step.status = parse(R"({"kind":"FlowSchema","apiVersion":"flowcontrol.apiserver.k8s.io/v1","metadata":{"name":)" +
                          quoted(row.name) +
                          R"(},"status":{"conditions":[{"type":"Dangling","status":"False","lastTransitionTime":)" +
                          quoted(now_) + R"(,"reason":"Found","message":)" +
                          quoted("This FlowSchema references the PriorityLevelConfiguration object named \"" +
                                 std::string(row.level) + "\" and it exists") +
                          "}]}}");
      step.status_manager = kFlowConsumer;
    }
  }

  void priority_classes() {
    struct Row {
      std::string_view name;
      int64_t value;
      std::string_view description;
    };
    static constexpr Row kRows[] = {
        {"system-node-critical", 2000001000,
         "Used for system critical pods that must not be moved from their current node."},
        {"system-cluster-critical", 2000000000,
         "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."},
    };
    for (const Row& row : kRows) {
      add("scheduling.k8s.io", "v1", "priorityclasses", kServer,
          "\"metadata\":{\"name\":" + quoted(row.name) + "},\"value\":" + std::to_string(row.value) +
              ",\"description\":" + quoted(row.description));
    }
  }

  static std::string rbac_metadata(std::string_view name, std::string_view ns = {},
                                   std::string_view aggregates_to = {}) {
    std::string metadata = "\"metadata\":{\"name\":" + quoted(name);
    if (!ns.empty()) metadata += ",\"namespace\":" + quoted(ns);
    metadata += R"(,"labels":{"kubernetes.io/bootstrapping":"rbac-defaults")";
    if (!aggregates_to.empty())
      metadata += ",\"rbac.authorization.k8s.io/aggregate-to-" + std::string(aggregates_to) + "\":\"true\"";
    return metadata + R"(},"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"true"}})";
  }

  void role(std::string_view plural, std::string_view name, std::string_view ns, std::string_view notation,
            std::string_view aggregates_to = {}) {
    Step& step = add(kRbacGroup, "v1", plural, kServer, rbac_metadata(name, ns, aggregates_to));
    step.object = with_member(arena_, step.object, "rules", parse_rules(arena_, notation));
  }

  void cluster_role_objects() {
    for (const RoleRow& row : cluster_roles()) {
      if (row.rules.empty()) {
        const std::string_view parent = row.name == "edit" ? "admin" : row.name == "view" ? "edit" : "";
        add(kRbacGroup, "v1", "clusterroles", kServer,
            rbac_metadata(row.name, "", parent) +
                R"(,"rules":null,"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"rbac.authorization.k8s.io/aggregate-to-)" +
                std::string(row.name) + R"(":"true"}}]})");
        continue;
      }
      constexpr std::string_view kAggregated = "system:aggregate-to-";
      role("clusterroles", row.name, "", row.rules,
           row.name.starts_with(kAggregated) ? row.name.substr(kAggregated.size()) : std::string_view{});
    }
    for (const RoleRow& row : controller_roles())
      role("clusterroles", "system:controller:" + std::string(row.name), "", row.rules);
    if (options_.ownership_api) {
      role("clusterroles", kOwnershipRole, "",
           "ownership.holdfast.dev/ownershipreleases,ownershipreviews,ownershiptransfers:c");
    }
  }

  void binding(std::string_view plural, std::string_view name, std::string_view ns, std::string_view role_kind,
               std::string_view role_name, const std::vector<Subject>& subjects) {
    std::string list;
    for (const Subject& subject : subjects) {
      list += (list.empty() ? "" : ",") + std::string("{\"kind\":") + quoted(subject.kind);
      if (subject.kind != "ServiceAccount") list += ",\"apiGroup\":" + quoted(kRbacGroup);
      list += ",\"name\":" + quoted(subject.name);
      if (!subject.ns.empty()) list += ",\"namespace\":" + quoted(subject.ns);
      list += "}";
    }
    add(kRbacGroup, "v1", plural, kServer,
        rbac_metadata(name, ns) + (list.empty() ? "" : ",\"subjects\":[" + list + "]") +
            R"(,"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":)" + quoted(role_kind) +
            ",\"name\":" + quoted(role_name) + "}");
  }

  void cluster_role_bindings() {
    struct Row {
      std::string_view name;
      std::vector<Subject> subjects;
    };
    const Row kRows[] = {
        {"cluster-admin", {{"Group", "system:masters"}}},
        {"system:monitoring", {{"Group", "system:monitoring"}}},
        {"system:discovery", {{"Group", "system:authenticated"}}},
        {"system:basic-user", {{"Group", "system:authenticated"}}},
        {"system:public-info-viewer", {{"Group", "system:authenticated"}, {"Group", "system:unauthenticated"}}},
        {"system:node-proxier", {{"User", "system:kube-proxy"}}},
        {"system:kube-controller-manager", {{"User", "system:kube-controller-manager"}}},
        {"system:kube-dns", {{"ServiceAccount", "kube-dns", "kube-system"}}},
        {"system:kube-scheduler", {{"User", "system:kube-scheduler"}}},
        {"system:volume-scheduler", {{"User", "system:kube-scheduler"}}},
        {"system:node", {}},
        {"system:service-account-issuer-discovery", {{"Group", "system:serviceaccounts"}}},
    };
    for (const Row& row : kRows) binding("clusterrolebindings", row.name, "", "ClusterRole", row.name, row.subjects);
    for (const RoleRow& row : controller_roles()) {
      const std::string name = "system:controller:" + std::string(row.name);
      binding("clusterrolebindings", name, "", "ClusterRole", name, {{"ServiceAccount", row.name, "kube-system"}});
    }
    if (options_.ownership_api) {
      binding("clusterrolebindings", kOwnershipRole, "", "ClusterRole", kOwnershipRole,
              {{"Group", "system:authenticated"}});
    }
  }

  void namespaced_roles() {
    constexpr std::string_view kSystem = "kube-system", kPublic = "kube-public";
    role("roles", "system:controller:bootstrap-signer", kPublic, "core/configmaps:R core/configmaps[cluster-info]:u E");
    role("roles", "extension-apiserver-authentication-reader", kSystem,
         "core/configmaps[extension-apiserver-authentication]:R");
    role("roles", "system:controller:bootstrap-signer", kSystem, "core/secrets:R");
    role("roles", "system:controller:cloud-provider", kSystem, "core/configmaps:cglw");
    role("roles", "system:controller:token-cleaner", kSystem, "core/secrets:dglw E");
    for (std::string_view name : {"kube-controller-manager", "kube-scheduler"}) {
      role("roles", "system::leader-locking-" + std::string(name), kSystem,
           "coord/leases:cgluw coord/leasecandidates:cgluw");
    }
    binding("rolebindings", "system::extension-apiserver-authentication-reader", kSystem, "Role",
            "extension-apiserver-authentication-reader",
            {{"User", "system:kube-controller-manager"}, {"User", "system:kube-scheduler"}});
    binding("rolebindings", "system::leader-locking-kube-controller-manager", kSystem, "Role",
            "system::leader-locking-kube-controller-manager",
            {{"User", "system:kube-controller-manager"},
             {"ServiceAccount", "kube-controller-manager", kSystem},
             {"ServiceAccount", "leader-election-controller", kSystem}});
    binding("rolebindings", "system::leader-locking-kube-scheduler", kSystem, "Role",
            "system::leader-locking-kube-scheduler",
            {{"User", "system:kube-scheduler"}, {"ServiceAccount", "kube-scheduler", kSystem}});
    for (std::string_view name : {"bootstrap-signer", "cloud-provider", "token-cleaner"}) {
      const std::string full = "system:controller:" + std::string(name);
      binding("rolebindings", full, kSystem, "Role", full, {{"ServiceAccount", name, kSystem}});
    }
    binding("rolebindings", "system:controller:bootstrap-signer", kPublic, "Role", "system:controller:bootstrap-signer",
            {{"ServiceAccount", "bootstrap-signer", kSystem}});
  }

  void own_service() {
    const std::string family = quoted(family_of(options_.service_ip));
    const std::string port = std::to_string(options_.secure_port);
    add("networking.k8s.io", "v1", "ipaddresses", kServer,
        "\"metadata\":{\"name\":" + quoted(options_.service_ip) + R"(,"labels":{"ipaddress.kubernetes.io/ip-family":)" +
            family +
            R"(,"ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"}},"spec":{"parentRef":{"resource":"services","namespace":"default","name":"kubernetes"}})");
    add("", "v1", "services", kServer,
        R"("metadata":{"name":"kubernetes","namespace":"default","labels":{"component":"apiserver","provider":"kubernetes"}},"spec":{"ports":[{"name":"https","protocol":"TCP","port":443,"targetPort":)" +
            port + "}],\"clusterIP\":" + quoted(options_.service_ip) + ",\"clusterIPs\":[" +
            quoted(options_.service_ip) + R"(],"type":"ClusterIP","sessionAffinity":"None","ipFamilies":[)" + family +
            R"(],"ipFamilyPolicy":"SingleStack"})");
    if (!options_.own_endpoints) return;
    add("", "v1", "endpoints", kServer,
        R"("metadata":{"name":"kubernetes","namespace":"default","labels":{"endpointslice.kubernetes.io/skip-mirror":"true"}},"subsets":[{"addresses":[{"ip":)" +
            quoted(options_.advertise_address) + R"(}],"ports":[{"name":"https","port":)" + port +
            R"(,"protocol":"TCP"}]}])");
    add("discovery.k8s.io", "v1", "endpointslices", kServer,
        R"("metadata":{"name":"kubernetes","namespace":"default","labels":{"kubernetes.io/service-name":"kubernetes"}},"addressType":)" +
            quoted(family_of(options_.advertise_address)) + R"(,"endpoints":[{"addresses":[)" +
            quoted(options_.advertise_address) +
            R"(],"conditions":{"ready":true}}],"ports":[{"name":"https","protocol":"TCP","port":)" + port + "}]");
  }

  Arena& arena_;
  const Options& options_;
  const std::string now_, date_;
  std::vector<Step> steps_;
};

}  // namespace

Value node_rules(Arena& arena) {
  for (const RoleRow& row : cluster_roles()) {
    if (row.name == "system:node") return parse_rules(arena, row.rules);
  }
  return Value::empty_list();
}

std::vector<Step> steps(Arena& arena, const Options& options, UnixTime now) {
  return Maker(arena, options, now).make();
}

std::vector<std::string> unserved_api_services(const Options& options) {
  std::vector<std::string> names;
  for (const ApiServiceRow& row : kApiServices) {
    if (!options.runtime_config.serves(row.group, row.version)) names.push_back(name_of(row));
  }
  return names;
}

}  // namespace holdfast::bootstrap
