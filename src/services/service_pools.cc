#include "services/service_pools.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cassert>

#include "base/api_error.h"
#include "base/log.h"
#include "resource/storage.h"
#include "services/ip_objects.h"

namespace holdfast::services {
namespace {

// Another repair or a change of the ledger came in between; the next repair is only minutes away.
constexpr int kRepairAttempts = 10;

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
    forget();
    pools_ = std::exchange(other.pools_, nullptr);
    ips_ = std::exchange(other.ips_, {});
    ports_ = std::exchange(other.ports_, {});
    released_ips_ = std::exchange(other.released_ips_, {});
    released_ports_ = std::exchange(other.released_ports_, {});
  }
  return *this;
}

void ServiceLease::forget() {
  if (pools_ == nullptr) return;
  const std::lock_guard lock(pools_->mutex_);
  for (const std::string& ip : ips_) pools_->ips_.erase(ip);
  for (const int32_t port : ports_) pools_->ports_.remove(port);
  pools_ = nullptr;
}

ServicePools::ServicePools(Options options, resource::Storage& services, resource::Storage& ip_objects)
    : cidr_(std::move(options.cidr)),
      services_(services),
      ip_objects_(ip_objects),
      ledger_(options.port_ledger.empty()
                  ? nullptr
                  : std::make_unique<PortLedger>(services.store(), std::move(options.port_ledger), options.first_port,
                                                 options.last_port)),
      ports_(options.first_port, options.last_port) {
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
    for (const int32_t port : held.released_ports) ports_.add(port);
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

std::optional<Error> ServicePools::take_ips(const Value& service, const kinds::ServiceClaims& claims, bool dry_run,
                                            ServiceLease& lease, std::vector<std::string>& ips) {
  if (claims.ips.empty()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (Result<Unit> loaded = load(); !loaded) return loaded.take_error();
  for (size_t i = 0; i < claims.ips.size(); ++i) {
    std::string ip(claims.ips[i].wanted);
    if (!ip.empty()) {
      const std::string why = why_not_ip(ip, dry_run);
      if (!why.empty()) return kinds::ip_refused(service, claims, i, why);
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
      if (ip.empty()) return kinds::ip_refused(service, claims, i, "range is full");
    }
    if (!dry_run) {
      ips_.insert(ip);
      lease.ips_.push_back(ip);
    }
    ips.push_back(std::move(ip));
  }
  return std::nullopt;
}

Result<PortsTaken> ServicePools::take_local_ports(std::span<const int32_t> wanted, bool dry_run) {
  const std::lock_guard lock(mutex_);
  if (Result<Unit> loaded = load(); !loaded) return loaded.take_error();
  if (std::optional<Error> unknown = unknown_ports()) return std::move(*unknown);
  PortBitmap trial = ports_;
  return take_ports(dry_run ? trial : ports_, wanted, random_);
}

Task<Result<PortsTaken>> ServicePools::take_shared_ports(std::vector<int32_t> wanted, bool dry_run,
                                                         Executor& executor) {
  // Where there is no ledger a repair makes one.
  for (const bool repaired : {false, true}) {
    Result<std::optional<PortsTaken>> taken =
        dry_run ? co_await ledger_->look(wanted, executor) : co_await ledger_->claim(wanted, executor);
    if (!taken) co_return taken.take_error();
    if (*taken) co_return std::move(**taken);
    if (repaired) break;
    if (Result<Unit> made = co_await repair(executor); !made) co_return made.take_error();
  }
  co_return internal_error(
      "failed to allocate a nodePort: cannot allocate resources of type servicenodeportallocations at this time");
}

Task<Result<std::vector<int32_t>>> ServicePools::take_ports_of(call::Call& call, Value service,
                                                               const kinds::ServiceClaims& claims, bool dry_run,
                                                               ServiceLease& lease) {
  std::vector<int32_t> wanted;
  for (const kinds::ServiceClaims::Port& port : claims.ports) wanted.push_back(port.wanted);
  if (wanted.empty()) co_return wanted;
  Result<PortsTaken> taken = ledger_ == nullptr
                                 ? take_local_ports(wanted, dry_run)
                                 : co_await take_shared_ports(std::move(wanted), dry_run, call.executor());
  if (!taken) co_return taken.take_error();
  if (const auto* refused = std::get_if<PortRefusal>(&*taken)) {
    co_return kinds::port_refused(service, claims, refused->claim, refused->why);
  }
  if (!dry_run) lease.ports_ = std::get<0>(*taken);
  co_return std::get<0>(std::move(*taken));
}

Task<Result<ServiceLease>> ServicePools::take(call::Call& call, kinds::Context& context, Draft::Node service,
                                              const kinds::ServiceClaims& claims, bool dry_run) {
  ServiceLease lease;
  if (!dry_run) {
    lease.pools_ = this;
    lease.released_ips_.assign(claims.released_ips.begin(), claims.released_ips.end());
    lease.released_ports_ = claims.released_ports;
  }
  std::vector<std::string> ips;
  std::optional<Error> refused = take_ips(service.value(), claims, dry_run, lease, ips);
  std::vector<int32_t> ports;
  if (!refused) {
    Result<std::vector<int32_t>> taken = co_await take_ports_of(call, service.value(), claims, dry_run, lease);
    if (taken) {
      ports = std::move(*taken);
    } else {
      refused = taken.take_error();
    }
  }
  if (refused) {
    co_await give_back(call, std::move(lease));
    co_return std::move(*refused);
  }
  kinds::fill_claims(context.arena, service, claims, ips, ports);
  co_return lease;
}

Task<Result<ServiceLease>> ServicePools::lease_create(call::Call& call, kinds::Context& context, Draft::Node service,
                                                      bool dry_run) {
  Result<kinds::ServiceClaims> claims = kinds::claims_of_create(context, service);
  if (!claims) co_return claims.take_error();
  co_return co_await take(call, context, service, *claims, dry_run);
}

Task<Result<ServiceLease>> ServicePools::lease_update(call::Call& call, kinds::Context& context, Draft::Node service,
                                                      const Value& old, bool dry_run) {
  Result<kinds::ServiceClaims> claims = kinds::claims_of_update(context, service, old);
  if (!claims) co_return claims.take_error();
  co_return co_await take(call, context, service, *claims, dry_run);
}

Task<void> ServicePools::keep(call::Call& call, ServiceLease lease, Value service) {
  const std::vector<std::string> taken = std::exchange(lease.ips_, {}), released = lease.released_ips_;
  lease.ports_.clear();
  {
    const std::lock_guard lock(mutex_);
    for (const std::string& ip : released) ips_.erase(ip);
  }
  co_await release_ports(call, std::move(lease.released_ports_));
  co_await make_ip_objects(call, taken, service);
  co_await drop_ip_objects(call, released);
}

Task<void> ServicePools::give_back(call::Call& call, ServiceLease lease) {
  if (ledger_ != nullptr) co_await release_ports(call, std::exchange(lease.ports_, {}));
}

Task<void> ServicePools::release(call::Call& call, Value service) {
  const kinds::ServiceClaims held = kinds::claims_of_delete(service);
  const std::vector<std::string> ips(held.released_ips.begin(), held.released_ips.end());
  {
    const std::lock_guard lock(mutex_);
    for (const std::string& ip : ips) ips_.erase(ip);
  }
  co_await release_ports(call, held.released_ports);
  co_await drop_ip_objects(call, ips);
}

Task<void> ServicePools::release_ports(call::Call& call, std::vector<int32_t> ports) {
  if (ports.empty()) co_return;
  if (ledger_ == nullptr) {
    const std::lock_guard lock(mutex_);
    for (const int32_t port : ports) ports_.remove(port);
    co_return;
  }
  Result<Unit> released = co_await ledger_->release(std::move(ports), call.executor());
  // The Service is written as it is, and a repair finds the ports.
  if (!released) log::warning("node ports could not be released", {{"error", released.error().message}});
}

Result<PortBitmap> ServicePools::used_ports(const cache::Snapshot& services) const {
  PortBitmap used(ports_.first(), ports_.last());
  const cache::ListPage all = services.list({});
  if (!all.unreadable.empty()) {
    return corrupt_object(services_.key(all.unreadable.front().key),
                          "its node ports are not known, so the ledger of node ports cannot be repaired");
  }
  for (const cache::EntryRef& entry : all.entries) {
    Arena arena;
    const store::Blob body = entry->body();
    Result<Value> service = services_.codec().tree(arena, *body);
    if (!service) return corrupt_object(services_.key(entry->key()), service.error().message);
    std::vector<int32_t> ports = kinds::claims_of_delete(*service).released_ports;
    std::sort(ports.begin(), ports.end());
    ports.erase(std::unique(ports.begin(), ports.end()), ports.end());
    for (const int32_t port : ports) {
      if (used.has(port)) {
        log::warning("a node port is assigned to several services; please recreate this one",
                     {{"port", port}, {"service", entry->key()}});
      }
      used.add(port);
    }
  }
  return used;
}

Task<Result<Unit>> ServicePools::repair(Executor& executor) {
  if (ledger_ == nullptr) co_return Unit{};
  for (int attempt = 0; attempt < kRepairAttempts; ++attempt) {
    // In this order: a port that is taken after the ledger was read cannot be taken for leaked, because the ledger has
    // changed when it is replaced.
    Result<PortLedger::Stored> stored = co_await ledger_->read(executor);
    if (!stored) co_return stored.take_error();
    Result<cache::Snapshot> services = co_await services_.cache().consistent(executor);
    if (!services) co_return services.take_error();
    Result<PortBitmap> used = used_ports(*services);
    if (!used) co_return used.take_error();
    std::optional<LeakedPorts::Rebuilt> rebuilt;
    {
      const std::lock_guard lock(mutex_);
      rebuilt = leaked_.rebuild(stored->taken, *used);
    }
    if (stored->taken != rebuilt->next) {
      for (const int32_t port : rebuilt->missing) {
        log::warning("a node port in use was not allocated; repairing", {{"port", port}});
      }
      for (const int32_t port : rebuilt->freed)
        log::warning("a node port has leaked; it is free now", {{"port", port}});
      Result<bool> replaced = co_await ledger_->replace(std::move(*stored), rebuilt->next, executor);
      if (!replaced) co_return replaced.take_error();
      if (!*replaced) continue;
    }
    const std::lock_guard lock(mutex_);
    leaked_.note(std::move(*rebuilt));
    co_return Unit{};
  }
  co_return Error{Reason::ServiceUnavailable, "the ledger of node ports changes too often to be repaired"};
}

}  // namespace holdfast::services
