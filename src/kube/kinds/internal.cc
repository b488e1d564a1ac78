#include "kinds/internal.h"

#include <algorithm>

#include "base/ascii.h"
#include "kinds/hooks.h"

namespace holdfast::kinds {
namespace {

using types::Field;
using types::Shape;
using types::Type;

struct Name {
  std::string_view json, go;
};

// Go's names that are not just the API's with a capital letter; sorted.
constexpr Name kNames[] = {
    {"apiGroup", "APIGroup"},
    {"apiGroups", "APIGroups"},
    {"apiVersion", "APIVersion"},
    {"awsElasticBlockStore", "AWSElasticBlockStore"},
    {"cel", "CEL"},
    {"cephfs", "CephFS"},
    {"chapAuthDiscovery", "DiscoveryCHAPAuth"},
    {"chapAuthSession", "SessionCHAPAuth"},
    {"cidr", "CIDR"},
    {"cidrs", "CIDRs"},
    {"csi", "CSI"},
    {"diskURI", "DataDiskURI"},
    {"dnsConfig", "DNSConfig"},
    {"dnsPolicy", "DNSPolicy"},
    {"endpoints", "EndpointsName"},
    {"fc", "FC"},
    {"fsGroup", "FSGroup"},
    {"fsGroupChangePolicy", "FSGroupChangePolicy"},
    {"fsGroupPolicy", "FSGroupPolicy"},
    {"fsType", "FSType"},
    {"gcePersistentDisk", "GCEPersistentDisk"},
    {"gid", "GID"},
    {"gmsaCredentialSpec", "GMSACredentialSpec"},
    {"gmsaCredentialSpecName", "GMSACredentialSpecName"},
    {"grpc", "GRPC"},
    {"http", "HTTP"},
    {"httpGet", "HTTPGet"},
    {"httpHeaders", "HTTPHeaders"},
    {"ip", "IP"},
    {"ipBlock", "IPBlock"},
    {"ipFamilies", "IPFamilies"},
    {"ipFamilyPolicy", "IPFamilyPolicy"},
    {"ipMode", "IPMode"},
    {"ips", "IPs"},
    {"iqn", "IQN"},
    {"iscsi", "ISCSI"},
    {"iscsiInterface", "ISCSIInterface"},
    {"nfs", "NFS"},
    {"os", "OS"},
    {"pdName", "PDName"},
    {"qosClass", "QOSClass"},
    {"rbd", "RBD"},
    {"reportingComponent", "ReportingController"},
    {"seLinuxChangePolicy", "SELinuxChangePolicy"},
    {"seLinuxMount", "SELinuxMount"},
    {"seLinuxOptions", "SELinuxOptions"},
    {"sslEnabled", "SSLEnabled"},
    {"storageos", "StorageOS"},
    {"tcpSocket", "TCPSocket"},
    {"tls", "TLS"},
    {"ttlSecondsAfterFinished", "TTLSecondsAfterFinished"},
    {"tty", "TTY"},
    {"uid", "UID"},
    {"wwids", "WWIDs"},
};
static_assert(std::is_sorted(std::begin(kNames), std::end(kNames),
                             [](const Name& a, const Name& b) { return a.json < b.json; }));

// Names with another meaning in other structs.
constexpr Name kRbdNames[] = {
    {"monitors", "CephMonitors"}, {"image", "RBDImage"}, {"pool", "RBDPool"}, {"user", "RadosUser"}};

std::string_view go_name(Arena& arena, const Type& type, std::string_view json) {
  if (type.name == "core/v1.RBDVolumeSource" || type.name == "core/v1.RBDPersistentVolumeSource") {
    for (const Name& name : kRbdNames) {
      if (name.json == json) return name.go;
    }
  }
  // "int" becomes IntValue, "ints" becomes IntValues.
  if (type.name == "resource/v1.DeviceAttribute") {
    const bool many = json.ends_with('s');
    std::string name = std::string(json.substr(0, json.size() - many)) + (many ? "Values" : "Value");
    name[0] = static_cast<char>(name[0] - 'a' + 'A');
    return arena.copy(name);
  }
  const auto found = std::lower_bound(std::begin(kNames), std::end(kNames), json,
                                      [](const Name& name, std::string_view text) { return name.json < text; });
  if (found != std::end(kNames) && found->json == json) return found->go;
  std::string name(json);
  if (!name.empty()) name[0] = to_upper(name[0]);
  return arena.copy(name);
}

// Structs whose internal fields have another order, or lack some.
constexpr std::string_view kPodSpec[] = {"volumes",
                                         "initContainers",
                                         "containers",
                                         "ephemeralContainers",
                                         "restartPolicy",
                                         "terminationGracePeriodSeconds",
                                         "activeDeadlineSeconds",
                                         "dnsPolicy",
                                         "nodeSelector",
                                         "serviceAccountName",
                                         "automountServiceAccountToken",
                                         "nodeName",
                                         "securityContext",
                                         "imagePullSecrets",
                                         "hostname",
                                         "subdomain",
                                         "setHostnameAsFQDN",
                                         "affinity",
                                         "schedulerName",
                                         "tolerations",
                                         "hostAliases",
                                         "priorityClassName",
                                         "priority",
                                         "preemptionPolicy",
                                         "dnsConfig",
                                         "readinessGates",
                                         "runtimeClassName",
                                         "overhead",
                                         "enableServiceLinks",
                                         "topologySpreadConstraints",
                                         "os",
                                         "schedulingGates",
                                         "resourceClaims",
                                         "resources",
                                         "hostnameOverride",
                                         "schedulingGroup"};
constexpr std::string_view kPodSecurity[] = {"seLinuxOptions",
                                             "windowsOptions",
                                             "runAsUser",
                                             "runAsGroup",
                                             "runAsNonRoot",
                                             "supplementalGroups",
                                             "supplementalGroupsPolicy",
                                             "fsGroup",
                                             "fsGroupChangePolicy",
                                             "sysctls",
                                             "seccompProfile",
                                             "appArmorProfile",
                                             "seLinuxChangePolicy"};
constexpr std::string_view kVolume[] = {"name",
                                        "hostPath",
                                        "emptyDir",
                                        "gcePersistentDisk",
                                        "awsElasticBlockStore",
                                        "gitRepo",
                                        "secret",
                                        "nfs",
                                        "iscsi",
                                        "glusterfs",
                                        "persistentVolumeClaim",
                                        "rbd",
                                        "quobyte",
                                        "flexVolume",
                                        "cinder",
                                        "cephfs",
                                        "flocker",
                                        "downwardAPI",
                                        "fc",
                                        "azureFile",
                                        "configMap",
                                        "vsphereVolume",
                                        "azureDisk",
                                        "photonPersistentDisk",
                                        "projected",
                                        "portworxVolume",
                                        "scaleIO",
                                        "storageos",
                                        "csi",
                                        "ephemeral",
                                        "image"};
constexpr std::string_view kPersistentVolumeSource[] = {"gcePersistentDisk",
                                                        "awsElasticBlockStore",
                                                        "hostPath",
                                                        "glusterfs",
                                                        "nfs",
                                                        "rbd",
                                                        "quobyte",
                                                        "iscsi",
                                                        "flexVolume",
                                                        "cinder",
                                                        "cephfs",
                                                        "fc",
                                                        "flocker",
                                                        "azureFile",
                                                        "vsphereVolume",
                                                        "azureDisk",
                                                        "photonPersistentDisk",
                                                        "portworxVolume",
                                                        "scaleIO",
                                                        "local",
                                                        "storageos",
                                                        "csi"};

struct Order {
  std::string_view type;
  std::span<const std::string_view> members;
};
constexpr Order kOrders[] = {{"core/v1.PodSpec", kPodSpec},
                             {"core/v1.PodSecurityContext", kPodSecurity},
                             {"core/v1.Volume", kVolume},
                             {"core/v1.PersistentVolumeSource", kPersistentVolumeSource}};

Value form(Arena& arena, const Type& type, const Value* value, bool pointer);

// Internally, these fields are part of the security context.
constexpr std::string_view kShared[] = {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"};

void add_member(Arena& arena, MapBuilder& builder, const Type& type, std::string_view key, const Value& object) {
  const Field* field = types::find_member(type, key);
  if (field == nullptr || !field->exists(nullptr)) return;
  const bool security = type.name == "core/v1.PodSpec" && key == "securityContext";
  const bool labelled = field->type->name == "meta/v1.ObjectMeta";
  if (labelled) {
    // Embedded: its members belong to the enclosing struct.
    for (const Member& member : object.members_at(key)) builder.add(member.key, member.value);
    return;
  }
  if (!security) {
    builder.add(go_name(arena, type, key), form(arena, *field->type, object.find(key), field->pointer));
    return;
  }
  MapBuilder context(arena);
  for (const std::string_view shared : kShared) add_member(arena, context, type, shared, object);
  for (const std::string_view own : kPodSecurity) add_member(arena, context, *field->type, own, sub(object, key));
  builder.add("SecurityContext", context.build());
}

Value form_of_struct(Arena& arena, const Type& type, const Value& object) {
  MapBuilder builder(arena);
  const auto order =
      std::find_if(std::begin(kOrders), std::end(kOrders), [&](const Order& one) { return one.type == type.name; });
  if (order != std::end(kOrders)) {
    for (const std::string_view key : order->members) add_member(arena, builder, type, key, object);
  } else {
    for (const Field* field : type.members) add_member(arena, builder, type, field->name, object);
  }
  return builder.build();
}

Value form(Arena& arena, const Type& type, const Value* value, bool pointer) {
  const bool absent = value == nullptr || value->is_null();
  if (absent && pointer) return Value::null();
  if (absent && (type.shape == Shape::Time || type.shape == Shape::MicroTime)) return Value::null();
  if (type.name.starts_with("meta/v1.")) return absent ? Value::empty_map() : *value;
  switch (type.shape) {
    case Shape::Struct:
      return form_of_struct(arena, type, absent ? Value::empty_map() : *value);
    case Shape::List: {
      if (absent || !value->is_list()) return Value::null();
      ListBuilder list(arena);
      for (const Value& item : value->items()) list.add(form(arena, *type.element, &item, false));
      return list.build();
    }
    case Shape::Map: {
      if (absent || !value->is_map()) return Value::null();
      std::vector<Member> members(value->members().begin(), value->members().end());
      std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.key < b.key; });
      MapBuilder map(arena);
      for (const Member& member : members) map.add(member.key, form(arena, *type.element, &member.value, false));
      return map.build();
    }
    default:
      return absent ? zero_value(arena, type) : *value;
  }
}

}  // namespace

Value internal_form(Arena& arena, const types::Type& type, const Value* value) {
  return form(arena, type, value, false);
}

Shown shown_internal(const types::Type& type, const Value* value) {
  Arena arena;
  return Shown(internal_form(arena, type, value));
}

Shown shown_internal(const types::Type& parent, const Value& object, std::string_view key) {
  Arena arena;
  const Field* field = types::find_member(parent, key);
  if (field == nullptr) return Shown(object.find(key));
  return Shown(form(arena, *field->type, object.find(key), field->pointer));
}

}  // namespace holdfast::kinds
