// Validation of IP addresses and networks in text form. Private to the module.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/ip.h"
#include "kinds/hooks.h"
#include "kinds/names.h"

namespace holdfast::kinds {

// Rejects, with the reason, formats that Kubernetes no longer accepts (leading zeros, IPv4-mapped IPv6). Values that
// the old object has, in any form, are accepted (`existing`).
void validate_ip(std::string_view text, const Path& at, FieldErrors& errors, const Names& existing = {});
void validate_cidr(std::string_view text, const Path& at, FieldErrors& errors, const Names& existing = {});
// The reason for such a rejection; empty if the text is valid.
std::string ip_problem(std::string_view text);
// The same for fields that Kubernetes introduced later, whose texts must be in canonical form.
std::string canonical_ip_problem(std::string_view text);
std::string canonical_cidr_problem(std::string_view text);
// Several addresses or networks must be a pair of one IPv4 and one IPv6. `shown` is the list as shown in an error.
void validate_ip_families(std::span<const std::string_view> addresses, const Path& at, const Shown& shown,
                          FieldErrors& errors);
void validate_cidr_families(std::span<const std::string_view> networks, const Path& at, const Shown& shown,
                            FieldErrors& errors);
// Warns about an IPv6 text that is not in the form of RFC 5952.
void warn_about_ip(std::string_view text, const Path& at, Warnings& texts);
void warn_about_cidr(std::string_view text, const Path& at, Warnings& texts);
// The addresses in status.loadBalancer.
Names balancer_ips(const Value& object);
// The host name of an item of status.loadBalancer.ingress, if it has one.
void validate_balancer_host(const Value& ingress, const Path& at, FieldErrors& errors);
// Addresses of endpoints: not unspecified, loopback or link-local.
void validate_endpoint_ip(std::string_view text, const Path& at, FieldErrors& errors);

}  // namespace holdfast::kinds
