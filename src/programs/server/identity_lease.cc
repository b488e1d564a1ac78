#include "server/identity_lease.h"

#include <openssl/sha.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "own_calls/requests.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::server {
namespace {

constexpr std::string_view kManager = "kube-apiserver";
constexpr int64_t kLeaseSeconds = 3600;
constexpr std::chrono::milliseconds kBetween{10'000};
constexpr std::string_view kIdentityLabel = "apiserver.kubernetes.io/identity";
constexpr std::string_view kSigningKey = "holdfast/service-account-signing-key";

}  // namespace

// Base32 without padding of the first half of a SHA-256 over the names of the host and the program, each prefixed with
// a two-byte length (apiserver/pkg/server/config.go, NewConfig).
std::string identity_of(const std::string& hostname) {
  std::string hashed;
  for (const std::string_view text : {std::string_view(hostname), std::string_view("kube-apiserver")}) {
    hashed += static_cast<char>(text.size() >> 8);
    hashed += static_cast<char>(text.size() & 0xff);
    hashed += text;
  }
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(hashed.data()), hashed.size(), digest);
  constexpr size_t kBytes = 16;
  constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz234567";
  std::string text = "apiserver-";
  uint32_t waiting = 0;
  int bits = 0;
  for (size_t i = 0; i < kBytes; ++i) {
    waiting = (waiting << 8) | digest[i];
    for (bits += 8; bits >= 5; bits -= 5) text += kLetters[(waiting >> (bits - 5)) & 31];
  }
  if (bits > 0) text += kLetters[(waiting << (5 - bits)) & 31];
  return text;
}

IdentityLease::IdentityLease(api::Api& api, net::EventLoop& loop, std::string hostname, std::string advertised,
                             SigningKeys keys)
    : calls_(api.own_calls(loop)),
      tasks_(loop, "identity lease"),
      hostname_(std::move(hostname)),
      advertised_(std::move(advertised)),
      name_(identity_of(hostname_)),
      holder_(name_ + "_" + random_uuid()),
      keys_(std::move(keys)) {}

void IdentityLease::start() {
  tasks_.post([this] { return keep(); });
}

Task<void> IdentityLease::close(Executor& executor) { return tasks_.close(executor); }

Task<void> IdentityLease::keep() {
  while (!tasks_.closing()) {
    try {
      co_await check_others();  // First: two servers on one machine write to the same Lease.
      co_await renew();
    } catch (...) {
      // The next renewal may succeed; without one, other servers would consider this one dead.
      report_failed_task("identity lease", std::current_exception());
    }
    co_await tasks_.sleep(kBetween);
  }
}

Task<void> IdentityLease::renew() {
  using own_calls::Request;
  static const types::Resource& leases = *types::find_resource("coordination.k8s.io", "v1", "leases");
  const own_calls::Target target = own_calls::object(leases, "kube-system", name_);
  const Result<own_calls::Answer> found = co_await own_calls::send(calls_, Request::get(target));
  if (!found || !(found->succeeded() || found->not_found())) co_return;

  Arena arena;
  MapBuilder spec(arena);
  spec.add("holderIdentity", Value::string(holder_));
  spec.add("leaseDurationSeconds", Value::integer(kLeaseSeconds));
  spec.add("renewTime", Value::string(arena, format_rfc3339_micro(system_clock().now())));
  // Errors are ignored: the next renewal may succeed, or someone else holds the lease.
  if (found->not_found()) {
    MapBuilder labels(arena), annotations(arena), metadata(arena), lease(arena);
    labels.add(kIdentityLabel, Value::string("kube-apiserver"));
    labels.add("kubernetes.io/hostname", Value::string(hostname_));
    annotations.add("kubernetes.io/peer-advertise-address", Value::string(advertised_));
    if (!keys_.own.empty()) annotations.add(kSigningKey, Value::string(keys_.own));
    metadata.add("name", Value::string(name_));
    metadata.add("namespace", Value::string("kube-system"));
    metadata.add("labels", labels.build());
    metadata.add("annotations", annotations.build());
    lease.add("apiVersion", Value::string("coordination.k8s.io/v1"));
    lease.add("kind", Value::string("Lease"));
    lease.add("metadata", metadata.build());
    lease.add("spec", spec.build());
    (void)co_await own_calls::send(
        calls_, Request::create(own_calls::collection(leases, "kube-system"), lease.build(), kManager));
    co_return;
  }
  const Result<Value> lease = found->object(arena);
  if (!lease) co_return;
  Value next = with_member(arena, *lease, "spec", spec.build());
  constexpr std::string_view kPath[] = {"metadata", "annotations", kSigningKey};
  if (!keys_.own.empty()) next = with_path(arena, next, kPath, Value::string(keys_.own));
  (void)co_await own_calls::send(calls_, Request::update(target, next, kManager));
}

Task<void> IdentityLease::check_others() {
  if (!keys_.accepts) co_return;
  static const types::Resource& leases = *types::find_resource("coordination.k8s.io", "v1", "leases");
  const Result<own_calls::Answer> found =
      co_await own_calls::send(calls_, own_calls::Request::list(own_calls::collection(leases, "kube-system")));
  if (!found || !found->succeeded()) co_return;
  Arena arena;
  const Result<Value> list = found->object(arena);
  if (!list) co_return;
  for (const Value& lease : list->items_at("items")) {
    const std::string_view key = lease.text_at("metadata", "annotations", kSigningKey);
    const std::string_view holder = lease.text_at("spec", "holderIdentity");
    if (key.empty() || holder == holder_ || lease.text_at("metadata", "labels", kIdentityLabel).empty()) continue;
    const std::optional<UnixTime> renewed = parse_rfc3339(lease.text_at("spec", "renewTime"));
    if (!renewed || renewed->seconds + kLeaseSeconds < system_clock().now().seconds) continue;
    if (keys_.accepts(key) || !reported_.emplace(key).second) continue;
    log::warning("service account tokens of another server on this etcd are not accepted here",
                 {{"server", holder},
                  {"address", lease.text_at("metadata", "annotations", "kubernetes.io/peer-advertise-address")},
                  {"todo",
                   "give all servers the same keys: copy pki/ of the first to the others before their first start, or "
                   "use --service-account-signing-key-file, --service-account-key-file and --client-ca-file"}});
  }
}

}  // namespace holdfast::server
