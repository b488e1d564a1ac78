// Shared by the files of Service. Private to the module.
#pragma once

#include "kinds/hooks.h"

namespace holdfast::kinds {

inline std::string_view service_type(const Value& service) { return service.text_at("spec", "type"); }
bool is_headless(const Value& service);
bool is_externally_accessible(const Value& service);
bool needs_health_check(const Value& service);
bool needs_node_port(const Value& service);
void validate_cluster_ips(const Value& service, const Value* old, FieldErrors& errors);

}  // namespace holdfast::kinds
