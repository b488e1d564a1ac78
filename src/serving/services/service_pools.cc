#include "services/service_pools.h"

#include <algorithm>

#include "base/api_error.h"
#include "base/log.h"
#include "resource/storage.h"

namespace holdfast::services {
namespace {

// Attempts fail when another repair or a change of the ledger intervenes; the next repair is only minutes away.
constexpr int kRepairAttempts = 10;

// IPAddresses have canonical names; a Service keeps the text that its client chose.
std::string canonical(std::string_view ip) {
  const std::optional<IpAddress> address = IpAddress::parse(ip);
  return address ? address->text() : std::string(ip);
}

std::vector<std::string> canonical(std::span<const std::string_view> ips) {
  std::vector<std::string> all;
  all.reserve(ips.size());
  for (const std::string_view ip : ips) all.push_back(canonical(ip));
  return all;
}

const IpRange* first_of(const ServiceRanges::List& ranges, std::string_view family) {
  for (const IpRange& range : ranges) {
    if (range.family() == family) return &range;
  }
  return nullptr;
}

IpObjects::Service owner_of(const Value& service) {
  return {std::string(service.text_at("metadata", "namespace")), std::string(service.text_at("metadata", "name"))};
}

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
  for (const Address& address : ips_) pools_->ips_.erase(address.ip);
  for (const int32_t port : ports_) pools_->ports_.remove(port);
  pools_ = nullptr;
}

ServicePools::ServicePools(Options options, const resource::Registry& registry, const Clock& clock)
    : ranges_(options.cidrs, registry),
      services_(*registry.snapshot()->storage_of("", "services")),
      ip_objects_(registry, clock),
      ledger_(options.port_ledger.empty()
                  ? nullptr
                  : std::make_unique<PortLedger>(services_.store(), std::move(options.port_ledger), options.first_port,
                                                 options.last_port)),
      ports_(options.first_port, options.last_port) {}

Result<Unit> ServicePools::load() {
  if (loaded_ && unread_.empty()) return Unit{};
  Result<cache::Snapshot> snapshot = services_.cache().snapshot();
  if (!snapshot) return snapshot.take_error();
  const auto is_unread = [&](const std::string& key) { return snapshot->find_unreadable(key) != nullptr; };
  if (loaded_ && std::all_of(unread_.begin(), unread_.end(), is_unread)) return Unit{};
  // Either the first load, or a Service that could not be decoded has become readable or was deleted.
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
    for (const std::string_view ip : held.released_ips) ips_.insert(canonical(ip));
    for (const int32_t port : held.released_ports) ports_.add(port);
  }
  return Unit{};
}

std::optional<Error> ServicePools::unknown_ports() const {
  if (unread_.empty()) return std::nullopt;
  return corrupt_object(services_.key(unread_.front()), "its node ports are not known, so none can be allocated");
}

// Allocated to a Service, or by an IPAddress that was created manually or belongs to a Service that cannot be decoded.
bool ServicePools::is_taken(const std::string& ip) const {
  if (ips_.contains(ip)) return true;
  Result<cache::Snapshot> objects = ip_objects_.snapshot();
  return objects && IpObjects::has(*objects, ip);
}

IpRange::Search ServicePools::search(const IpRange& range) {
  const std::lock_guard lock(mutex_);
  return range.search(address_random_);
}

Result<bool> ServicePools::take_without_allocating(ServiceAllocation& taking, const ServiceRanges::List& ranges,
                                                   size_t claim) {
  const kinds::ServiceClaims::Ip& wanted = taking.claims.ips[claim];
  if (!wanted.wanted.empty()) {
    const std::optional<IpAddress> address = IpAddress::parse(wanted.wanted);
    const bool known = address && std::any_of(ranges.begin(), ranges.end(),
                                              [&](const IpRange& range) { return range.contains(*address); });
    if (!known) {
      const IpRange* first = first_of(ranges, wanted.family);
      // Upstream's message is another one for a dry run.
      if (!taking.dry_run || first == nullptr) {
        return kinds::ip_refused(taking.service, taking.claims, claim,
                                 "the provided network does not match the current range");
      }
      return kinds::ip_refused(taking.service, taking.claims, claim,
                               "the provided IP (" + canonical(wanted.wanted) +
                                   ") is not in the valid range. The range of valid IPs is " + first->network().text());
    }
    if (taking.dry_run) taking.ips.emplace_back(wanted.wanted);
    return taking.dry_run;
  }
  if (!taking.dry_run) return false;
  const IpRange* range = first_of(ranges, wanted.family);
  if (range == nullptr) return kinds::ip_refused(taking.service, taking.claims, claim, "range is full");
  taking.ips.push_back(range->network().address.text());
  return true;
}

Result<Unit> ServicePools::take_local_ips(ServiceAllocation& taking, const ServiceRanges::List& ranges) {
  const std::lock_guard lock(mutex_);
  if (Result<Unit> loaded = load(); !loaded) return loaded;
  for (size_t i = 0; i < taking.claims.ips.size(); ++i) {
    Result<bool> done = take_without_allocating(taking, ranges, i);
    if (!done) return done.take_error();
    if (*done) continue;
    const kinds::ServiceClaims::Ip& claim = taking.claims.ips[i];
    std::string ip;
    if (!claim.wanted.empty()) {
      ip = canonical(claim.wanted);
      if (is_taken(ip)) {
        return kinds::ip_refused(taking.service, taking.claims, i, "provided IP is already allocated");
      }
    } else {
      for (const IpRange& range : ranges) {
        if (range.family() != claim.family || !ip.empty()) continue;
        IpRange::Search free = range.search(address_random_);
        for (std::optional<IpAddress> next = free.next(); next && ip.empty(); next = free.next()) {
          std::string text = next->text();
          if (!is_taken(text)) ip = std::move(text);
        }
      }
      if (ip.empty()) return kinds::ip_refused(taking.service, taking.claims, i, "range is full");
    }
    ips_.insert(ip);
    taking.lease.ips_.push_back({ip, Revision{}});
    taking.ips.push_back(claim.wanted.empty() ? std::move(ip) : std::string(claim.wanted));
  }
  return Unit{};
}

Task<Result<std::optional<std::string>>> ServicePools::take_any_shared_ip(ServiceAllocation& taking, Ranges ranges,
                                                                          std::string_view family) {
  Result<cache::Snapshot> objects = ip_objects_.snapshot();
  if (!objects) co_return objects.take_error();
  for (const IpRange& range : *ranges) {
    if (range.family() != family) continue;
    IpRange::Search free = search(range);
    while (const std::optional<IpAddress> next = free.next()) {
      const std::string ip = next->text();
      if (IpObjects::has(*objects, ip)) continue;
      Result<std::optional<Revision>> claimed =
          co_await ip_objects_.claim(ip, owner_of(taking.service), taking.executor);
      if (!claimed) co_return claimed.take_error();
      // Otherwise another request or server was faster.
      if (*claimed) {
        taking.lease.ips_.push_back({ip, **claimed});
        co_return std::optional(ip);
      }
    }
  }
  co_return std::optional<std::string>();
}

Task<Result<Unit>> ServicePools::take_shared_ips(ServiceAllocation& taking, Ranges ranges) {
  for (size_t i = 0; i < taking.claims.ips.size(); ++i) {
    Result<bool> done = take_without_allocating(taking, *ranges, i);
    if (!done) co_return done.take_error();
    if (*done) continue;
    const kinds::ServiceClaims::Ip& claim = taking.claims.ips[i];
    if (claim.wanted.empty()) {
      Result<std::optional<std::string>> any = co_await take_any_shared_ip(taking, ranges, claim.family);
      if (!any) co_return any.take_error();
      if (!*any) co_return kinds::ip_refused(taking.service, taking.claims, i, "range is full");
      taking.ips.push_back(std::move(**any));
      continue;
    }
    const std::string ip = canonical(claim.wanted);
    Result<std::optional<Revision>> claimed = co_await ip_objects_.claim(ip, owner_of(taking.service), taking.executor);
    if (!claimed) co_return claimed.take_error();
    if (!*claimed) {
      co_return kinds::ip_refused(taking.service, taking.claims, i, "provided IP is already allocated");
    }
    taking.lease.ips_.push_back({ip, **claimed});
    taking.ips.emplace_back(claim.wanted);
  }
  co_return Unit{};
}

Result<AllocatedPorts> ServicePools::take_local_ports(std::span<const int32_t> wanted, bool dry_run) {
  const std::lock_guard lock(mutex_);
  if (Result<Unit> loaded = load(); !loaded) return loaded.take_error();
  if (std::optional<Error> unknown = unknown_ports()) return std::move(*unknown);
  PortBitmap trial = ports_;
  return take_ports(dry_run ? trial : ports_, wanted, random_);
}

Task<Result<AllocatedPorts>> ServicePools::take_shared_ports(std::vector<int32_t> wanted, bool dry_run,
                                                             Executor& executor) {
  // If there is no ledger, a repair creates it.
  for (const bool repaired : {false, true}) {
    Result<std::optional<AllocatedPorts>> taken =
        dry_run ? co_await ledger_->look(wanted, executor) : co_await ledger_->claim(wanted, executor);
    if (!taken) co_return taken.take_error();
    if (*taken) co_return std::move(**taken);
    if (repaired) break;
    if (Result<Unit> made = co_await repair_ports(executor); !made) co_return made.take_error();
  }
  co_return internal_error(
      "failed to allocate a nodePort: cannot allocate resources of type servicenodeportallocations at this time");
}

Task<Result<Unit>> ServicePools::take_ports_of(ServiceAllocation& taking) {
  std::vector<int32_t> wanted;
  wanted.reserve(taking.claims.ports.size());
  for (const kinds::ServiceClaims::Port& port : taking.claims.ports) wanted.push_back(port.wanted);
  Result<AllocatedPorts> taken = shared()
                                     ? co_await take_shared_ports(std::move(wanted), taking.dry_run, taking.executor)
                                     : take_local_ports(wanted, taking.dry_run);
  if (!taken) co_return taken.take_error();
  if (const auto* refused = std::get_if<PortRefusal>(&*taken)) {
    co_return kinds::port_refused(taking.service, taking.claims, refused->claim, refused->why);
  }
  taking.ports = std::get<0>(std::move(*taken));
  if (!taking.dry_run) taking.lease.ports_ = taking.ports;
  co_return Unit{};
}

Task<Result<ServiceLease>> ServicePools::take(kinds::Context& context, Draft::Node service,
                                              const kinds::ServiceClaims& claims, bool dry_run, Executor& executor) {
  ServiceAllocation taking{.service = service.value(), .claims = claims, .dry_run = dry_run, .executor = executor};
  if (!dry_run) {
    taking.lease.pools_ = this;
    taking.lease.released_ips_ = canonical(claims.released_ips);
    taking.lease.released_ports_ = claims.released_ports;
  }
  Result<Unit> taken = Unit{};
  if (!claims.ips.empty()) {
    Result<Ranges> ranges = ranges_.current();
    if (!ranges) {
      taken = ranges.take_error();
    } else {
      taken = shared() ? co_await take_shared_ips(taking, *ranges) : take_local_ips(taking, **ranges);
    }
  }
  if (taken && !claims.ports.empty()) taken = co_await take_ports_of(taking);
  if (!taken) {
    co_await give_back(std::move(taking.lease), executor);
    co_return taken.take_error();
  }
  kinds::fill_claims(context.arena, service, claims, taking.ips, taking.ports);
  co_return std::move(taking.lease);
}

Task<Result<ServiceLease>> ServicePools::lease_create(kinds::Context& context, Draft::Node service, bool dry_run,
                                                      Executor& executor) {
  Result<kinds::ServiceClaims> claims = kinds::claims_of_create(context, service);
  if (!claims) co_return claims.take_error();
  co_return co_await take(context, service, *claims, dry_run, executor);
}

Task<Result<ServiceLease>> ServicePools::lease_update(kinds::Context& context, Draft::Node service, const Value& old,
                                                      bool dry_run, Executor& executor) {
  Result<kinds::ServiceClaims> claims = kinds::claims_of_update(context, service, old);
  if (!claims) co_return claims.take_error();
  co_return co_await take(context, service, *claims, dry_run, executor);
}

Task<void> ServicePools::keep(ServiceLease lease, Value service, Executor& executor) {
  const std::vector<ServiceLease::Address> taken = std::exchange(lease.ips_, {});
  lease.ports_.clear();
  if (!shared()) {
    {
      const std::lock_guard lock(mutex_);
      for (const std::string& ip : lease.released_ips_) ips_.erase(ip);
    }
    for (const ServiceLease::Address& address : taken) {
      // The Service is stored and owns the IP even if this write fails.
      (void)co_await ip_objects_.claim(address.ip, owner_of(service), executor);
    }
  }
  co_await release_ports(std::move(lease.released_ports_), executor);
  co_await ip_objects_.release(std::move(lease.released_ips_), owner_of(service), executor);
  if (shared()) co_await claim_missing(service, taken, executor);
}

Task<void> ServicePools::claim_missing(Value service, std::span<const ServiceLease::Address> taken,
                                       Executor& executor) {
  const kinds::ServiceClaims held = kinds::claims_of_delete(service);
  Result<cache::Snapshot> objects = ip_objects_.snapshot();
  if (!objects) co_return;
  for (const std::string& ip : canonical(held.released_ips)) {
    const bool just_taken =
        std::any_of(taken.begin(), taken.end(), [&](const ServiceLease::Address& own) { return own.ip == ip; });
    // If the object was created after this snapshot, it stays as it is. After an error, the next repair creates it.
    if (!just_taken && !IpObjects::has(*objects, ip)) (void)co_await ip_objects_.claim(ip, owner_of(service), executor);
  }
}

Task<void> ServicePools::give_back(ServiceLease lease, Executor& executor) {
  if (!shared()) co_return;  // Done by the destructor of the lease.
  co_await release_ports(std::exchange(lease.ports_, {}), executor);
  for (const ServiceLease::Address& address : lease.ips_) {
    co_await ip_objects_.give_back(address.ip, address.object, executor);
  }
}

Task<void> ServicePools::release(Value service, Executor& executor) {
  const kinds::ServiceClaims held = kinds::claims_of_delete(service);
  const std::vector<std::string> ips = canonical(held.released_ips);
  if (!shared()) {
    const std::lock_guard lock(mutex_);
    for (const std::string& ip : ips) ips_.erase(ip);
  }
  co_await release_ports(held.released_ports, executor);
  co_await ip_objects_.release(ips, owner_of(service), executor);
}

Task<void> ServicePools::release_ports(std::vector<int32_t> ports, Executor& executor) {
  if (ports.empty()) co_return;
  if (!shared()) {
    const std::lock_guard lock(mutex_);
    for (const int32_t port : ports) ports_.remove(port);
    co_return;
  }
  Result<Unit> released = co_await ledger_->release(std::move(ports), executor);
  // The write of the Service stands; a repair will find the ports.
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
  if (!shared()) co_return Unit{};
  Result<Unit> ports = co_await repair_ports(executor);
  Result<Unit> addresses = co_await ip_objects_.repair(services_, executor);
  co_return ports ? std::move(addresses) : std::move(ports);
}

Task<Result<Unit>> ServicePools::repair_ports(Executor& executor) {
  for (int attempt = 0; attempt < kRepairAttempts; ++attempt) {
    // The order matters: a port allocated after the ledger was read is not mistaken for leaked, because the ledger has
    // then changed and replace() fails.
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
      for (const int32_t port : rebuilt->freed) log::warning("releasing a leaked node port", {{"port", port}});
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
