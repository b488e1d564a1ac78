// Volume sources shared by volumes of pods and PersistentVolumes.

#include <algorithm>

#include "base/ascii.h"
#include "base/strings.h"
#include "base/text.h"
#include "kinds/pod.h"
#include "kinds/references.h"

namespace holdfast::kinds {
namespace {

void require(const Value& source, std::string_view key, const Path& at, FieldErrors& errors) {
  if (is_empty(source, key)) errors.required(at.child(key));
}

void require_all(const Value& source, std::initializer_list<std::string_view> keys, const Path& at,
                 FieldErrors& errors) {
  for (const std::string_view key : keys) require(source, key, at, errors);
}

// A secret referenced by a source; for a PersistentVolume it must name a namespace.
void validate_secret(const Value& source, SourceUse use, const Path& at, FieldErrors& errors) {
  if (!is_set(source, "secretRef")) return;
  const Value& secret = sub(source, "secretRef");
  require(secret, "name", at.child("secretRef"), errors);
  if (use == SourceUse::PersistentVolume) require(secret, "namespace", at.child("secretRef"), errors);
}

void validate_partition(const Value& source, const Path& at, FieldErrors& errors) {
  const int64_t partition = source.int_at_or(0, "partition");
  if (partition < 0 || partition > 255) errors.invalid(at.child("partition"), partition, range_message(1, 255));
}

void validate_lun(int64_t lun, const Path& at, FieldErrors& errors) {
  if (lun < 0 || lun > 255) errors.invalid(at.child("lun"), lun, range_message(0, 255));
}

// iqn.2001-04.com.example:name, anywhere in the text up to its end.
bool ends_with_iqn(std::string_view text) {
  constexpr std::string_view kShape = "iqn.dddd-dd.";
  for (size_t start = text.find("iqn."); start != std::string_view::npos; start = text.find("iqn.", start + 1)) {
    std::string_view rest = text.substr(start);
    const bool dated = rest.size() > kShape.size() &&
                       std::equal(kShape.begin(), kShape.end(), rest.begin(),
                                  [](char shape, char c) { return shape == 'd' ? is_digit(c) : shape == c; });
    if (!dated) continue;
    rest.remove_prefix(kShape.size());
    const size_t colon = rest.find(':');
    if (colon == 0 || colon == std::string_view::npos || colon + 1 == rest.size()) continue;
    const std::string_view authority = rest.substr(0, colon);
    const bool named =
        std::all_of(authority.begin(), authority.end(), [](char c) { return is_alnum(c) || c == '-' || c == '.'; });
    if (named && rest.find_first_of(",;*&$| \t\n\f\r", colon + 1) == std::string_view::npos) return true;
  }
  return false;
}

// Three letters, any character, and `count` letters or digits.
bool is_world_wide_name(std::string_view text, size_t count) {
  if (text.size() < 3 + 1 + count) return false;
  const std::string_view digits = text.substr(text.size() - count), mark = text.substr(3, text.size() - 3 - count);
  return std::all_of(digits.begin(), digits.end(), is_alnum) && mark != "\n" && !continues_character(mark[0]) &&
         std::all_of(mark.begin() + 1, mark.end(), continues_character);
}

// An iSCSI qualified name. For PersistentVolumes the error does not mention the prefix.
void validate_iqn(std::string_view name, SourceUse use, const Path& at, FieldErrors& errors) {
  constexpr std::string_view kForm = "must be valid format";
  if (name.starts_with("iqn") ? ends_with_iqn(name)
                              : (name.starts_with("eui") && is_world_wide_name(name, 16)) ||
                                    (name.starts_with("naa") && is_world_wide_name(name, 32))) {
    return;
  }
  const bool known = name.starts_with("iqn") || name.starts_with("eui") || name.starts_with("naa");
  errors.invalid(
      at, name,
      known || use == SourceUse::PersistentVolume ? kForm : "must be valid format starting with iqn, eui, or naa");
}

void validate_iscsi(const Value& source, SourceUse use, std::string_view volume, const Path& at, FieldErrors& errors) {
  require(source, "targetPortal", at, errors);
  if (use == SourceUse::PersistentVolume && !has_room_for_initiator(source, volume)) {
    errors.invalid(at.child("targetportal"), source.text_at("targetPortal"), kInitiatorTooLong);
  }
  const std::string_view name = source.text_at("iqn");
  if (name.empty()) {
    errors.required(at.child("iqn"));
  } else {
    validate_iqn(name, use, at.child("iqn"), errors);
  }
  validate_lun(source.int_at_or(0, "lun"), at, errors);
  if ((is_true(source, "chapAuthDiscovery") || is_true(source, "chapAuthSession")) && !is_set(source, "secretRef")) {
    errors.required(at.child("secretRef"));
  }
  if (use == SourceUse::PersistentVolume && is_set(source, "secretRef")) {
    require(sub(source, "secretRef"), "name", at.child("secretRef"), errors);
  }
  if (is_set(source, "initiatorName")) {
    validate_iqn(source.text_at("initiatorName"), use, at.child("initiatorname"), errors);
  }
}

void validate_fc(const Value& source, const Path& at, FieldErrors& errors) {
  const bool targets = !is_empty(source, "targetWWNs"), ids = !is_empty(source, "wwids");
  if (!targets && !ids) {
    errors.required(at.child("targetWWNs"), "must specify either targetWWNs or wwids, but not both");
  }
  if (!targets) return;
  if (ids) {
    errors.invalid(at.child("targetWWNs"), source.find("targetWWNs"),
                   "targetWWNs and wwids can not be specified simultaneously");
  }
  if (!is_set(source, "lun")) return errors.required(at.child("lun"), "lun is required if targetWWNs is specified");
  validate_lun(source.int_at_or(0, "lun"), at, errors);
}

void validate_host_path(const Value& source, const Path& at, FieldErrors& errors) {
  const std::string_view path = source.text_at("path");
  if (path.empty()) return errors.required(at.child("path"));
  if (has_parent_segment(path)) errors.invalid(at.child("path"), path, "must not contain '..'");
  if (is_set(source, "type")) {
    validate_enum(source, "type",
                  {"", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"},
                  at, errors);
  }
}

void validate_nfs(const Value& source, const Path& at, FieldErrors& errors) {
  require_all(source, {"server", "path"}, at, errors);
  const std::string_view path = source.text_at("path");
  if (!path.starts_with('/')) errors.invalid(at.child("path"), path, "must be an absolute path");
}

void validate_flocker(const Value& source, const Path& at, FieldErrors& errors) {
  const std::string_view name = source.text_at("datasetName"), uuid = source.text_at("datasetUUID");
  if (name.empty() && uuid.empty()) errors.required(at, "one of datasetName and datasetUUID is required");
  if (!name.empty() && !uuid.empty()) {
    errors.invalid(at, "resource", "datasetName and datasetUUID can not be specified simultaneously");
  }
  if (name.find('/') != std::string_view::npos) {
    errors.invalid(at.child("datasetName"), name, "must not contain '/'");
  }
}

// "host:port" or "[host]:port", like Go's net.SplitHostPort: neither is validated, and both may be empty.
bool is_host_and_port(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view port = text.substr(colon + 1);
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[')) {
    if (!host.ends_with(']')) return false;
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return false;
  }
  return host.find_first_of("[]") == std::string_view::npos && port.find_first_of("[]") == std::string_view::npos;
}

void validate_quobyte(const Value& source, const Path& at, FieldErrors& errors) {
  constexpr std::string_view kPairs = "must be a host:port pair or multiple pairs separated by commas";
  const std::string_view registry = source.text_at("registry");
  if (registry.empty()) {
    errors.required(at.child("registry"), kPairs);
  } else if (source.text_at("tenant").size() >= 65) {
    errors.required(at.child("tenant"), "must be a UUID and may not exceed a length of 64 characters");
  } else {
    for (const std::string_view pair : split(registry, ',')) {
      if (!is_host_and_port(pair)) errors.invalid(at.child("registry"), registry, kPairs);
    }
  }
  require(source, "volume", at, errors);
}

void validate_glusterfs(const Value& source, const Path& at, FieldErrors& errors) {
  require_all(source, {"endpoints", "path"}, at, errors);
  if (!is_set(source, "endpointsNamespace")) return;  // Only PersistentVolumes have it.
  const std::string_view name = source.text_at("endpointsNamespace");
  if (name.empty()) {
    errors.invalid(at.child("endpointsNamespace"), name,
                   "if the endpointnamespace is set, it must be a valid namespace name");
  } else {
    errors.invalid_each(at.child("endpointsNamespace"), name, dns_label_errors(name));
  }
}

void validate_flex(const Value& source, const Path& at, FieldErrors& errors) {
  require(source, "driver", at, errors);
  const Path options = at.child("options");
  for (const Member& option : source.members_at("options")) {
    const std::string domain = "." + to_lower(option.key.substr(0, option.key.find('/')));
    if (domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io")) {
      errors.invalid(options.key(option.key), option.key, "kubernetes.io and k8s.io namespaces are reserved");
    }
  }
}

void validate_azure_file(const Value& source, const Path& at, FieldErrors& errors) {
  require_all(source, {"secretName", "shareName"}, at, errors);
  // Only PersistentVolumes have it.
  if (is_set(source, "secretNamespace")) require(source, "secretNamespace", at, errors);
}

void validate_azure_disk(const Value& source, const Path& at, FieldErrors& errors) {
  require_all(source, {"diskName", "diskURI"}, at, errors);
  if (is_set(source, "cachingMode")) {
    validate_enum(source, "cachingMode", {"None", "ReadOnly", "ReadWrite"}, at, errors);
  }
  if (!is_set(source, "kind")) return;
  validate_enum(source, "kind", {"Dedicated", "Managed", "Shared"}, at, errors);
  const std::string_view uri = source.text_at("diskURI");
  if (source.text_at("kind") == "Managed") {
    if (!uri.starts_with("/subscriptions/")) {
      errors.not_supported(
          at.child("diskURI"), uri,
          {"/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"});
    }
  } else if (!uri.starts_with("https://")) {
    errors.not_supported(at.child("diskURI"), uri,
                         {"https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"});
  }
}

void validate_storageos(const Value& source, SourceUse use, const Path& at, FieldErrors& errors) {
  const std::string_view name = source.text_at("volumeName"), scope = source.text_at("volumeNamespace");
  errors.require_valid(at.child("volumeName"), name, dns_label_errors);
  if (!scope.empty()) errors.invalid_each(at.child("volumeNamespace"), scope, dns_label_errors(scope));
  validate_secret(source, use, at, errors);
}

}  // namespace

bool has_room_for_initiator(const Value& iscsi, std::string_view volume) {
  return !is_set(iscsi, "initiatorName") || volume.size() + 1 + iscsi.text_at("targetPortal").size() <= 64;
}

void validate_volume_source(const Value& source, std::string_view key, SourceUse use, std::string_view volume,
                            const Path& at, FieldErrors& errors) {
  if (key == "hostPath") {
    validate_host_path(source, at, errors);
  } else if (key == "gcePersistentDisk") {
    require(source, "pdName", at, errors);
    validate_partition(source, at, errors);
  } else if (key == "awsElasticBlockStore") {
    require(source, "volumeID", at, errors);
    validate_partition(source, at, errors);
  } else if (key == "nfs") {
    validate_nfs(source, at, errors);
  } else if (key == "iscsi") {
    validate_iscsi(source, use, volume, at, errors);
  } else if (key == "glusterfs") {
    validate_glusterfs(source, at, errors);
  } else if (key == "flocker") {
    validate_flocker(source, at, errors);
  } else if (key == "rbd") {
    require_all(source, {"monitors", "image"}, at, errors);
  } else if (key == "cinder") {
    require(source, "volumeID", at, errors);
    validate_secret(source, use, at, errors);
  } else if (key == "cephfs") {
    require(source, "monitors", at, errors);
  } else if (key == "quobyte") {
    validate_quobyte(source, at, errors);
  } else if (key == "fc") {
    validate_fc(source, at, errors);
  } else if (key == "flexVolume") {
    validate_flex(source, at, errors);
  } else if (key == "azureFile") {
    validate_azure_file(source, at, errors);
  } else if (key == "vsphereVolume") {
    require(source, "volumePath", at, errors);
  } else if (key == "photonPersistentDisk") {
    require(source, "pdID", at, errors);
  } else if (key == "portworxVolume") {
    require(source, "volumeID", at, errors);
  } else if (key == "azureDisk") {
    validate_azure_disk(source, at, errors);
  } else if (key == "storageos") {
    validate_storageos(source, use, at, errors);
  } else if (key == "scaleIO") {
    require_all(source, {"gateway", "system", "volumeName"}, at, errors);
  }
}

void default_volume_sources(Draft::Node holder) {
  if (Draft::Node source = holder.existing("hostPath")) source.set_default("type", Value::string(""));
  if (Draft::Node source = holder.existing("iscsi")) source.set_if_zero("iscsiInterface", Value::string("default"));
  if (Draft::Node source = holder.existing("rbd")) {
    source.set_if_zero("pool", Value::string("rbd"));
    source.set_if_zero("user", Value::string("admin"));
    source.set_if_zero("keyring", Value::string("/etc/ceph/keyring"));
  }
  if (Draft::Node source = holder.existing("azureDisk")) {
    source.set_default("cachingMode", Value::string("ReadWrite"));
    source.set_default("fsType", Value::string("ext4"));
    source.set_default("readOnly", Value::boolean(false));
    source.set_default("kind", Value::string("Shared"));
  }
  if (Draft::Node source = holder.existing("scaleIO")) {
    source.set_if_zero("storageMode", Value::string("ThinProvisioned"));
    source.set_if_zero("fsType", Value::string("xfs"));
  }
}

}  // namespace holdfast::kinds
