#include "kinds/ip.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "base/text.h"

namespace holdfast::kinds {
namespace {

// "010.0.0.1"
bool has_leading_zeros(std::string_view text) {
  if (text.find(':') != std::string_view::npos) return false;
  const std::vector<std::string_view> parts = split(text, '.');
  return std::any_of(parts.begin(), parts.end(),
                     [](std::string_view part) { return part.size() > 1 && part[0] == '0'; });
}

// "::ffff:1.2.3.4"
bool is_mapped(std::string_view text, const IpAddress& address) {
  return !address.v6 && text.find(':') != std::string_view::npos;
}

std::string cidr_problem(std::string_view text) {
  const std::optional<IpNetwork> network = IpNetwork::parse(text);
  if (!network) return "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
  const size_t slash = text.find('/');
  const std::string_view address = text.substr(0, slash), prefix = text.substr(slash + 1);
  if (has_leading_zeros(address) || (prefix.size() > 1 && prefix[0] == '0')) {
    return "must not have leading 0s in IP or prefix length";
  }
  if (is_mapped(address, network->address)) return "must not have an IPv4-mapped IPv6 address";
  if (network->first() != network->address) return "must not have bits set beyond the prefix length";
  return {};
}

std::string difference_from_canonical(std::string_view text, const std::string& canonical) {
  return text == canonical ? "" : "must be in canonical form (" + go_quote(canonical) + ")";
}

}  // namespace

std::string ip_problem(std::string_view text) {
  const std::optional<IpAddress> address = IpAddress::parse(text);
  if (!address) return "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
  if (has_leading_zeros(text)) return "must not have leading 0s";
  if (is_mapped(text, *address)) return "must not be an IPv4-mapped IPv6 address";
  return {};
}

void validate_ip(std::string_view text, const Path& at, FieldErrors& errors, const Names& existing) {
  if (existing.contains(text)) return;
  if (const std::string problem = ip_problem(text); !problem.empty()) errors.invalid(at, text, problem);
}

void validate_cidr(std::string_view text, const Path& at, FieldErrors& errors, const Names& existing) {
  if (existing.contains(text)) return;
  if (const std::string problem = cidr_problem(text); !problem.empty()) errors.invalid(at, text, problem);
}

std::string canonical_ip_problem(std::string_view text) {
  const std::string problem = ip_problem(text);
  return problem.empty() ? difference_from_canonical(text, IpAddress::parse(text)->text()) : problem;
}

std::string canonical_cidr_problem(std::string_view text) {
  const std::string problem = cidr_problem(text);
  return problem.empty() ? difference_from_canonical(text, IpNetwork::parse(text)->text()) : problem;
}

void warn_about_ip(std::string_view text, const Path& at, Warnings& texts) {
  const std::optional<IpAddress> address = IpAddress::parse(text);
  if (!address || !address->v6 || address->text() == text) return;
  texts.add(at.text() + ": IPv6 address \"" + std::string(text) + "\" should be in RFC 5952 canonical format (\"" +
            address->text() + "\")");
}

void warn_about_cidr(std::string_view text, const Path& at, Warnings& texts) {
  const std::optional<IpNetwork> network = IpNetwork::parse(text);
  if (!network || !network->address.v6) return;
  const std::string canonical = network->text();
  if (canonical == text) return;
  texts.add(at.text() + ": IPv6 CIDR value \"" + std::string(text) + "\" should be in RFC 5952 canonical format (\"" +
            canonical + "\")");
}

Names balancer_ips(const Value& object) {
  Names ips;
  for (const Value& ingress : object.items_at("status", "loadBalancer", "ingress"))
    ips.push_back(ingress.text_at("ip"));
  return ips;
}

void validate_balancer_host(const Value& ingress, const Path& at, FieldErrors& errors) {
  const std::string_view host = ingress.text_at("hostname");
  if (host.empty()) return;
  errors.invalid_each(at.child("hostname"), host, dns_subdomain_errors(host));
  if (IpAddress::parse(host)) errors.invalid(at.child("hostname"), host, "must be a DNS name, not an IP address");
}

void validate_endpoint_ip(std::string_view text, const Path& at, FieldErrors& errors) {
  const std::optional<IpAddress> address = IpAddress::parse(text);
  if (!address) return errors.invalid(at, text, "must be a valid IP address");
  if (address->is_unspecified()) errors.invalid(at, text, "may not be unspecified (" + std::string(text) + ")");
  if (address->is_loopback()) errors.invalid(at, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
  if (address->is_link_local_unicast()) {
    errors.invalid(at, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
  }
  if (address->is_link_local_multicast()) {
    errors.invalid(at, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
  }
}

namespace {

// More than one must be a pair of both families. `is_v6` returns nullopt for an invalid text; `problem` then reports
// the i-th one.
template <class IsV6, class Problem>
void validate_pair(std::span<const std::string_view> texts, std::string_view what, const IsV6& is_v6,
                   const Problem& problem, const Path& at, const Shown& shown, FieldErrors& errors) {
  if (texts.size() <= 1) return;
  bool has_v4 = false, has_v6 = false, readable = true;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::optional<bool> v6 = is_v6(texts[i]);
    if (v6) {
      (*v6 ? has_v6 : has_v4) = true;
    } else if (std::exchange(readable, false)) {
      errors.internal(at, problem(i));
    }
  }
  if (!readable || !has_v4 || !has_v6 || texts.size() > 2) {
    errors.invalid(at, shown, "may specify no more than one " + std::string(what) + " for each IP family");
  }
}

}  // namespace

void validate_ip_families(std::span<const std::string_view> addresses, const Path& at, const Shown& shown,
                          FieldErrors& errors) {
  const auto is_v6 = [](std::string_view text) {
    const std::optional<IpAddress> address = IpAddress::parse(text);
    return address ? std::optional(address->v6) : std::nullopt;
  };
  const auto problem = [&](size_t i) {
    return "failed to check for dual stack with error:invalid IP[" + std::to_string(i) +
           "]: " + std::string(addresses[i]);
  };
  validate_pair(addresses, "IP", is_v6, problem, at, shown, errors);
}

void validate_cidr_families(std::span<const std::string_view> networks, const Path& at, const Shown& shown,
                            FieldErrors& errors) {
  const auto is_v6 = [](std::string_view text) {
    const std::optional<IpNetwork> network = IpNetwork::parse(text);
    return network ? std::optional(network->address.v6) : std::nullopt;
  };
  const auto problem = [&](size_t i) {
    return "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[" + std::to_string(i) +
           "]: <nil> (invalid CIDR address: " + std::string(networks[i]) + ")";
  };
  validate_pair(networks, "CIDR", is_v6, problem, at, shown, errors);
}

}  // namespace holdfast::kinds
