// References that containers and volumes share: fields of the pod, resources of a container, paths. Private to the
// module.
#pragma once

#include "kinds/hooks.h"

namespace holdfast::kinds {

enum class FieldRefUse : uint8_t { Environment, Volume };
void validate_field_ref(const Value& reference, FieldRefUse use, const Path& at, FieldErrors& errors);
void validate_resource_ref(const Value& reference, FieldRefUse use, const Path& at, FieldErrors& errors);

bool has_backstep(std::string_view path);  // A ".." between slashes.
void validate_descending_path(std::string_view path, const Path& at, FieldErrors& errors);
// Name of a CSI driver.
void validate_driver_name(std::string_view name, const Path& at, FieldErrors& errors);

}  // namespace holdfast::kinds
