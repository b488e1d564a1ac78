#include "services/service_pools.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cassert>

#include "base/api_error.h"
#include "resource/storage.h"

namespace holdfast::services {
namespace {

uint32_t address_of(std::string_view text) {
  in_addr address{};
  const std::string copy(text);
  return inet_pton(AF_INET, copy.c_str(), &address) == 1 ? ntohl(address.s_addr) : 0;
}

std::string text_of(uint32_t address) {
  char text[INET_ADDRSTRLEN];
  const in_addr in{htonl(address)};
  return inet_ntop(AF_INET, &in, text, sizeof text);
}

// The lower part of a range is left to those who ask for an address by name, as Kubernetes does it.
uint32_t static_band(uint32_t count) { return std::min(std::max(16u, count / 16), 256u); }

}  // namespace

ServiceLease& ServiceLease::operator=(ServiceLease&& other) noexcept {
  if (this != &other) {
    give_back();
    pools_ = std::exchange(other.pools_, nullptr);
    ips_ = std::move(other.ips_);
    ports_ = std::move(other.ports_);
    released_ips_ = std::move(other.released_ips_);
    released_ports_ = std::move(other.released_ports_);
  }
  return *this;
}

ServiceLease::Kept ServiceLease::keep() {
  if (pools_ == nullptr) return {};
  const std::lock_guard lock(pools_->mutex_);
  for (const std::string& ip : released_ips_) pools_->ips_.erase(ip);
  for (const int32_t port : released_ports_) pools_->ports_.erase(port);
  pools_ = nullptr;
  return {std::move(ips_), std::move(released_ips_)};
}

void ServiceLease::give_back() {
  if (pools_ == nullptr) return;
  const std::lock_guard lock(pools_->mutex_);
  for (const std::string& ip : ips_) pools_->ips_.erase(ip);
  for (const int32_t port : ports_) pools_->ports_.erase(port);
  pools_ = nullptr;
}

ServicePools::ServicePools(std::string_view cidr, int32_t first_port, int32_t last_port, resource::Storage& services,
                           resource::Storage& ip_objects)
    : cidr_(cidr), first_port_(first_port), last_port_(last_port), services_(services), ip_objects_(ip_objects) {
  const size_t slash = cidr_.find('/');
  assert(slash != std::string::npos);
  const int bits = std::clamp(std::atoi(cidr_.c_str() + slash + 1), 8, 30);
  count_ = 1u << (32 - bits);
  base_ = address_of(std::string_view(cidr_).substr(0, slash)) & ~(count_ - 1);
}

Result<Unit> ServicePools::load() {
  if (loaded_ && unread_.empty()) return Unit{};
  Result<cache::Snapshot> snapshot = services_.cache().snapshot();
  if (!snapshot) return snapshot.take_error();
  const auto is_unread = [&](const std::string& key) { return snapshot->find_unreadable(key) != nullptr; };
  if (loaded_ && std::all_of(unread_.begin(), unread_.end(), is_unread)) return Unit{};
  // For the first time, or because one that could not be read now can, or is gone.
  loaded_ = true;
  unread_.clear();
  const cache::ListPage page = snapshot->list({});
  for (const cache::Unreadable& unreadable : page.unreadable) unread_.push_back(unreadable.key);
  for (const cache::EntryRef& entry : page.entries) {
    Arena arena;
    const store::Blob body = entry->body();
    Result<Value> service = services_.codec().tree(arena, *body);
    if (!service) return corrupt_object(services_.key(entry->key()), service.error().message);
    const kinds::ServiceClaims held = kinds::claims_of_delete(*service);
    for (const std::string_view ip : held.released_ips) ips_.emplace(ip);
    ports_.insert(held.released_ports.begin(), held.released_ports.end());
  }
  return Unit{};
}

std::optional<Error> ServicePools::unknown_ports() const {
  if (unread_.empty()) return std::nullopt;
  return corrupt_object(services_.key(unread_.front()), "its node ports are not known, so none can be allocated");
}

// By a Service, or by an IPAddress that was created by hand, or that is all that can be read of a Service.
bool ServicePools::is_taken(const std::string& ip) const {
  if (ips_.contains(ip)) return true;
  Result<cache::Snapshot> snapshot = ip_objects_.cache().snapshot();
  const std::string key = ip_objects_.short_key("", ip);
  return snapshot && (snapshot->find(key) || snapshot->find_unreadable(key) != nullptr);
}

std::string ServicePools::why_not_ip(std::string_view ip, bool dry_run) const {
  const uint32_t address = address_of(ip);
  if (address <= base_ || address - base_ >= count_ - 1) {
    return "provided IP is not in the valid range. The range of valid IPs is " + cidr_;
  }
  if (!dry_run && is_taken(std::string(ip))) return "provided IP is already allocated";
  return {};
}

Result<ServiceLease> ServicePools::take(kinds::Context& context, Draft::Node service,
                                        const kinds::ServiceClaims& claims, bool dry_run) {
  ServiceLease lease;
  std::vector<std::string> ips;
  std::vector<int32_t> ports;
  std::optional<Error> refused;
  {
    const std::lock_guard lock(mutex_);
    if (Result<Unit> loaded = load(); !loaded) return loaded.take_error();
    if (!claims.ports.empty()) refused = unknown_ports();
    for (size_t i = 0; i < claims.ips.size() && !refused; ++i) {
      std::string ip(claims.ips[i].wanted);
      if (!ip.empty()) {
        if (const std::string why = why_not_ip(ip, dry_run); !why.empty()) {
          refused = kinds::ip_refused(service.value(), claims, i, why);
        }
      } else {
        const uint32_t band = static_band(count_);
        const uint32_t upper = count_ - 2 > band ? count_ - 2 - band : 0;
        const uint32_t start = upper > 0 ? band + random_() % upper : 0;
        for (uint32_t step = 0; step < count_ - 2; ++step) {
          const uint32_t offset = 1 + (start + step) % (count_ - 2);
          std::string candidate = text_of(base_ + offset);
          if (!is_taken(candidate)) {
            ip = std::move(candidate);
            break;
          }
        }
        if (ip.empty()) refused = kinds::ip_refused(service.value(), claims, i, "range is full");
      }
      if (refused) break;
      if (ips_.insert(ip).second) lease.ips_.push_back(ip);  // A dry run may find it taken.
      ips.push_back(std::move(ip));
    }
    for (size_t i = 0; i < claims.ports.size() && !refused; ++i) {
      int32_t port = claims.ports[i].wanted;
      if (port != 0) {
        if (port < first_port_ || port > last_port_) {
          refused = kinds::port_refused(service.value(), claims, i,
                                        "provided port is not in the valid range. The range of valid ports is " +
                                            std::to_string(first_port_) + "-" + std::to_string(last_port_));
        } else if (ports_.contains(port)) {
          refused = kinds::port_refused(service.value(), claims, i, "provided port is already allocated");
        }
      } else {
        const int32_t all = last_port_ - first_port_ + 1;
        const int32_t start = static_cast<int32_t>(random_() % static_cast<uint32_t>(all));
        for (int32_t step = 0; step < all && port == 0; ++step) {
          const int32_t candidate = first_port_ + (start + step) % all;
          if (!ports_.contains(candidate)) port = candidate;
        }
        if (port == 0) refused = kinds::port_refused(service.value(), claims, i, "range is full");
      }
      if (refused) break;
      ports_.insert(port);
      ports.push_back(port);
    }
    lease.pools_ = this;
    lease.ports_ = ports;
    for (const std::string_view ip : claims.released_ips) lease.released_ips_.emplace_back(ip);
    lease.released_ports_ = claims.released_ports;
  }
  if (refused) return std::move(*refused);  // The lease gives back what was taken before.
  kinds::fill_claims(context.arena, service, claims, ips, ports);
  return lease;
}

Result<ServiceLease> ServicePools::lease_create(kinds::Context& context, Draft::Node service, bool dry_run) {
  Result<kinds::ServiceClaims> claims = kinds::claims_of_create(context, service);
  if (!claims) return claims.take_error();
  return take(context, service, *claims, dry_run);
}

Result<ServiceLease> ServicePools::lease_update(kinds::Context& context, Draft::Node service, const Value& old,
                                                bool dry_run) {
  Result<kinds::ServiceClaims> claims = kinds::claims_of_update(context, service, old);
  if (!claims) return claims.take_error();
  return take(context, service, *claims, dry_run);
}

std::vector<std::string> ServicePools::release(const Value& service) {
  const kinds::ServiceClaims held = kinds::claims_of_delete(service);
  const std::lock_guard lock(mutex_);
  for (const std::string_view ip : held.released_ips) ips_.erase(std::string(ip));
  for (const int32_t port : held.released_ports) ports_.erase(port);
  return {held.released_ips.begin(), held.released_ips.end()};
}

}  // namespace holdfast::services
