// Volumes of a pod.

#include <algorithm>

#include "base/strings.h"
#include "base/text.h"
#include "kinds/names.h"
#include "kinds/pod.h"
#include "kinds/quantity.h"
#include "kinds/references.h"

namespace holdfast::kinds {
namespace {

constexpr std::string_view kFileMode = "must be a number between 0 and 0777 (octal), both inclusive";

void validate_mode(const Value& holder, std::string_view key, const Path& at, FieldErrors& errors) {
  const int64_t mode = holder.int_at_or(0, key);
  if (mode < 0 || mode > 0777) errors.invalid(at.child(key), mode, kFileMode);
}

void require(const Value& holder, std::string_view key, const Path& at, FieldErrors& errors,
             std::string_view detail = {}) {
  if (is_empty(holder, key)) errors.required(at.child(key), detail);
}

void validate_items(const Value& source, const Path& at, FieldErrors& errors) {
  const std::span<const Value> items = source.items_at("items");
  for (size_t i = 0; i < items.size(); ++i) {
    const Path item = at.item("items", i);
    require(items[i], "key", item, errors);
    require(items[i], "path", item, errors);
    validate_local_path(items[i].text_at("path"), item.child("path"), errors);
    validate_mode(items[i], "mode", item, errors);
  }
}

void validate_downward_file(const Value& file, const Path& at, FieldErrors& errors) {
  require(file, "path", at, errors);
  validate_local_path(file.text_at("path"), at.child("path"), errors);
  if (is_set(file, "fieldRef")) {
    validate_field_ref(sub(file, "fieldRef"), FieldRefUse::Volume, at.child("fieldRef"), errors);
    if (is_set(file, "resourceFieldRef")) {
      errors.invalid(at, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously");
    }
  } else if (is_set(file, "resourceFieldRef")) {
    validate_resource_ref(sub(file, "resourceFieldRef"), FieldRefUse::Volume, at.child("resourceFieldRef"), errors);
  } else {
    errors.required(at, "one of fieldRef and resourceFieldRef is required");
  }
  validate_mode(file, "mode", at, errors);
}

void validate_projected(const Value& projected, const Path& at, FieldErrors& errors) {
  validate_mode(projected, "defaultMode", at, errors);
  Names paths;
  const auto claim = [&](std::string_view path, std::string_view shown) {
    if (path.empty()) return;
    if (contains(paths, path)) {
      errors.invalid(at, shown, "conflicting duplicate paths");
    } else {
      paths.push_back(path);
    }
  };
  const std::span<const Value> sources = projected.items_at("sources");
  for (size_t i = 0; i < sources.size(); ++i) {
    const Path source_at = at.item("sources", i);
    size_t count = 0;
    for (const std::string_view key : {"secret", "configMap"}) {
      if (!is_set(sources[i], key)) continue;
      ++count;
      const Value& source = sub(sources[i], key);
      const Path here = source_at.child(key);
      require(source, "name", here, errors);
      validate_items(source, here, errors);
      for (const Value& item : source.items_at("items")) claim(item.text_at("path"), source.text_at("name"));
    }
    if (is_set(sources[i], "downwardAPI")) {
      ++count;
      const Path here = source_at.child("downwardAPI");
      for (const Value& file : sources[i].items_at("downwardAPI", "items")) {
        validate_downward_file(file, here, errors);
        claim(file.text_at("path"), file.text_at("path"));
      }
    }
    if (is_set(sources[i], "serviceAccountToken")) {
      ++count;
      const Value& token = sub(sources[i], "serviceAccountToken");
      const Path here = source_at.child("serviceAccountToken");
      const int64_t seconds = token.int_at_or(3600, "expirationSeconds");
      if (seconds < 600) {
        errors.invalid(here.child("expirationSeconds"), seconds, "may not specify a duration less than 10 minutes");
      }
      if (seconds > int64_t{1} << 32) {
        errors.invalid(here.child("expirationSeconds"), seconds, "may not specify a duration larger than 2^32 seconds");
      }
      if (token.text_at("path").empty()) {
        errors.required(at.child("path"));
      } else {
        validate_local_path(token.text_at("path"), at.child("path"), errors);
      }
    }
    for (const std::string_view key : {"clusterTrustBundle", "podCertificate"}) count += is_set(sources[i], key);
    if (count > 1) errors.forbidden(source_at, "may not specify more than 1 volume type per source");
  }
}

// A template may leave the reference to the controller that creates its pods.
void validate_image_volume(const Value& source, bool is_pod, const Path& at, FieldErrors& errors) {
  if (is_pod) require(source, "reference", at, errors);
  validate_enum(source, "pullPolicy", {"Always", "IfNotPresent", "Never"}, at, errors);
}

void validate_csi(const Value& source, const Path& at, FieldErrors& errors) {
  validate_driver_name(source.text_at("driver"), at.child("driver"), errors);
  if (!is_set(source, "nodePublishSecretRef")) return;
  const std::string_view secret = source.text_at("nodePublishSecretRef", "name");
  if (secret.empty()) {
    errors.required(at.child("nodePublishSecretRef.name"));
  } else {
    errors.invalid_each(at.child("name"), secret, dns_subdomain_errors(secret));
  }
}

void validate_ephemeral(const Value& source, const Path& at, FieldErrors& errors) {
  if (!is_set(source, "volumeClaimTemplate")) return errors.required(at.child("volumeClaimTemplate"));
  const Value& claim = sub(source, "volumeClaimTemplate");
  const Path claim_at = at.child("volumeClaimTemplate"), metadata_at = claim_at.child("metadata");
  const Value& metadata = sub(claim, "metadata");
  validate_annotations(metadata.find("annotations"), metadata_at.child("annotations"), errors);
  validate_labels(metadata.find("labels"), metadata_at.child("labels"), errors);
  for (const std::string_view key :
       {"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
        "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers", "managedFields"}) {
    // The path uses Go's field name with a lower-case first letter.
    if (!is_empty(metadata, key)) errors.forbidden(metadata_at.child(key == "uid" ? "uID" : key), "cannot be set");
  }
  validate_claim_spec(sub(claim, "spec"), claim_at.child("spec"), errors);
}

void validate_source(const Value& volume, std::string_view key, const PodOptions& options, const Path& at,
                     FieldErrors& errors) {
  const Value& source = sub(volume, key);
  if (key == "secret" || key == "configMap") {
    require(source, key == "secret" ? "secretName" : "name", at, errors);
    validate_mode(source, "defaultMode", at, errors);
    validate_items(source, at, errors);
  } else if (key == "persistentVolumeClaim") {
    require(source, "claimName", at, errors);
  } else if (key == "downwardAPI") {
    validate_mode(source, "defaultMode", at, errors);
    for (const Value& file : source.items_at("items")) validate_downward_file(file, at, errors);
  } else if (key == "projected") {
    validate_projected(source, at, errors);
  } else if (key == "csi") {
    validate_csi(source, at, errors);
  } else if (key == "ephemeral") {
    validate_ephemeral(source, at, errors);
  } else if (key == "image") {
    validate_image_volume(source, options.is_pod, at, errors);
  } else if (key == "gitRepo") {
    require(source, "repository", at, errors);
    validate_descending_path(source.text_at("directory"), at.child("directory"), errors);
  } else {
    validate_volume_source(source, key, SourceUse::PodVolume, volume.text_at("name"), at, errors);
  }
}

// The claim created for an ephemeral volume is named after the pod and the volume.
void validate_claim_name(const Value& volume, const PodOptions& options, const Path& at, FieldErrors& errors) {
  const std::string_view pod = options.metadata == nullptr ? std::string_view() : options.metadata->text_at("name");
  const std::string_view name = volume.text_at("name");
  if (pod.empty() || name.empty()) return;
  const std::string claim = std::string(pod) + "-" + std::string(name);
  for (const std::string& message : dns_subdomain_errors(claim)) {
    errors.invalid(at.child("name"), name, "PVC name " + go_quote(claim) + ": " + message);
  }
}

// In the order checked by Kubernetes: of several sources all but the first are rejected.
constexpr std::string_view kOrder[] = {"hostPath",
                                       "gitRepo",
                                       "gcePersistentDisk",
                                       "awsElasticBlockStore",
                                       "secret",
                                       "nfs",
                                       "iscsi",
                                       "glusterfs",
                                       "flocker",
                                       "persistentVolumeClaim",
                                       "rbd",
                                       "cinder",
                                       "cephfs",
                                       "quobyte",
                                       "downwardAPI",
                                       "fc",
                                       "flexVolume",
                                       "configMap",
                                       "azureFile",
                                       "vsphereVolume",
                                       "photonPersistentDisk",
                                       "portworxVolume",
                                       "azureDisk",
                                       "storageos",
                                       "projected",
                                       "scaleIO",
                                       "csi",
                                       "ephemeral",
                                       "image"};

void validate_volume(const Value& volume, const PodOptions& options, const Path& at, FieldErrors& errors) {
  size_t count = 0;
  if (is_set(volume, "emptyDir")) {
    ++count;
    if (quantity_of(volume.get("emptyDir", "sizeLimit")).sign() < 0) {
      errors.forbidden(at.child("emptyDir.sizeLimit"), "SizeLimit field must be a valid resource quantity");
    }
  }
  for (const std::string_view key : kOrder) {
    if (!is_set(volume, key)) continue;
    if (count > 0) {
      errors.forbidden(at.child(key == "cephfs"        ? "cephFS"
                                : key == "downwardAPI" ? "downwarAPI"
                                                       : key),
                       "may not specify more than 1 volume type");
    } else {
      ++count;
      validate_source(volume, key, options, at.child(key == "gcePersistentDisk" ? "persistentDisk" : key), errors);
      if (key == "ephemeral") validate_claim_name(volume, options, at, errors);
    }
    if (key == "iscsi" && !has_room_for_initiator(sub(volume, key), volume.text_at("name"))) {
      errors.invalid(at.child("name"), volume.text_at("name"), kInitiatorTooLong);
    }
  }
  if (count == 0) errors.required(at, "must specify a volume type");
}

}  // namespace

bool has_parent_segment(std::string_view path) {
  const std::vector<std::string_view> segments = split(path, '/');
  return std::find(segments.begin(), segments.end(), "..") != segments.end();
}

void validate_descending_path(std::string_view path, const Path& at, FieldErrors& errors) {
  if (path.starts_with('/')) errors.invalid(at, path, "must be a relative path");
  if (has_parent_segment(path)) errors.invalid(at, path, "must not contain '..'");
}

void validate_local_path(std::string_view path, const Path& at, FieldErrors& errors) {
  validate_descending_path(path, at, errors);
  if (path.starts_with("..") && !path.starts_with("../")) errors.invalid(at, path, "must not start with '..'");
}

void validate_volumes(std::span<const Value> volumes, const PodOptions& options, const Path& at, FieldErrors& errors,
                      VolumeNames& valid) {
  const std::string pod_name(options.metadata == nullptr ? std::string_view() : options.metadata->text_at("name"));
  Names ephemeral;
  for (const Value& volume : volumes) {
    if (is_set(volume, "ephemeral")) ephemeral.push_back(volume.text_at("name"));
  }
  for (size_t i = 0; i < volumes.size(); ++i) {
    const Path volume_at = at.index(i), name_at = volume_at.child("name");
    const size_t before = errors.count();
    validate_volume(volumes[i], options, volume_at, errors);
    const std::string_view name = volumes[i].text_at("name");
    errors.require_valid(name_at, name, dns_label_errors);
    if (contains(valid.all, name)) errors.duplicate(name_at, name);
    if (errors.count() == before) {
      valid.all.push_back(name);
      if (is_set(volumes[i], "persistentVolumeClaim") || is_set(volumes[i], "ephemeral")) valid.claims.push_back(name);
    }
    const std::string_view claim = volumes[i].text_at("persistentVolumeClaim", "claimName");
    if (claim.empty() || pod_name.empty()) continue;
    const std::string prefix = pod_name + "-";
    if (claim.starts_with(prefix) && ephemeral.contains(claim.substr(prefix.size()))) {
      errors.invalid(volume_at.child("persistentVolumeClaim.claimName"), claim,
                     "must not reference a PVC that gets created for an ephemeral volume");
    }
  }
}

}  // namespace holdfast::kinds
