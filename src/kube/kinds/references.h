// Shared by containers and volumes of pods, PersistentVolumes and VolumeAttachments: references to fields of the pod
// and to resources of a container, paths, volume sources. Private to the module.
#pragma once

#include "kinds/hooks.h"

namespace holdfast::kinds {

enum class FieldRefUse : uint8_t { Environment, Volume };
void validate_field_ref(const Value& reference, FieldRefUse use, const Path& at, FieldErrors& errors);
void validate_resource_ref(const Value& reference, FieldRefUse use, const Path& at, FieldErrors& errors);

bool has_parent_segment(std::string_view path);  // A ".." between slashes.
void validate_descending_path(std::string_view path, const Path& at, FieldErrors& errors);
// The name of a CSI driver; must not be empty.
void validate_driver_name(std::string_view name, const Path& at, FieldErrors& errors);

// --- Volume sources ---

enum class SourceUse : uint8_t { PodVolume, PersistentVolume };

// Validates the source `key` of the volume named `volume`, if it is one that pods and PersistentVolumes share.
void validate_volume_source(const Value& source, std::string_view key, SourceUse use, std::string_view volume,
                            const Path& at, FieldErrors& errors);
// Defaults of the shared sources in a volume of a pod or in the spec of a PersistentVolume.
void default_volume_sources(Draft::Node holder);

// An iSCSI initiator builds a name from the volume and its portal.
bool has_room_for_initiator(const Value& iscsi, std::string_view volume);
inline constexpr std::string_view kInitiatorTooLong =
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is "
    "specified.";

// The spec of a PersistentVolume, or the inline one of a VolumeAttachment.
enum class SpecUse : uint8_t { Own, Inline };
void validate_volume_spec(const Value& spec, SpecUse use, std::string_view volume, const Path& at, FieldErrors& errors);
void default_volume_spec(Arena& arena, Draft::Node spec);

}  // namespace holdfast::kinds
