// Kubernetes' error messages for malformed text (util/validation), beyond those that kinds.h offers to other modules.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/kinds.h"

namespace holdfast::kinds {

using Messages = std::vector<std::string>;

inline constexpr std::string_view kImmutable = "field is immutable";
inline constexpr std::string_view kNegative = "must be greater than or equal to 0";
inline constexpr std::string_view kNotPositive = "must be greater than zero";

std::string max_length_message(int64_t characters, std::string_view unit = "characters");  // must be no more than N ...
std::string range_message(int64_t lowest, int64_t highest);  // must be between A and B, inclusive
// "<sentence> (e.g. 'a',  or 'b', regex used for validation is '<pattern>')"
std::string pattern_message(std::string_view sentence, std::string_view pattern,
                            std::initializer_list<std::string_view> examples);

bool is_dns_label(std::string_view text);
bool is_dns_subdomain(std::string_view text);
Messages wildcard_subdomain_errors(std::string_view text);
Messages config_key_errors(std::string_view text);  // Keys of ConfigMaps and Secrets.
Messages port_name_errors(std::string_view text);   // IANA service names.
Messages port_number_errors(int64_t port);
Messages env_name_errors(std::string_view text);
Messages percent_errors(std::string_view text);
Messages header_name_errors(std::string_view text);
Messages id_range_errors(int64_t id);  // User and group ids.
Messages c_identifier_errors(std::string_view text);
// "example.com/gpu": a resource that is not one of Kubernetes' own.
bool is_extended_resource(std::string_view name);
// domain/path, such as a signer or an ingress controller.
void validate_domain_prefixed_path(std::string_view text, const Path& at, FieldErrors& errors);

}  // namespace holdfast::kinds
