#include "controllers/standby.h"

#include "cache/cache.h"
#include "controllers/objects.h"
#include "types/types.h"

namespace holdfast::controllers {

bool Standby::on() {
  // Short enough to notice within one heartbeat of the other side, long enough to be free.
  constexpr std::chrono::milliseconds kFresh{200};
  const auto now = clock_.monotonic();
  if (looked_at_.time_since_epoch().count() == 0 || now - looked_at_ >= kFresh) {
    last_ = look();
    looked_at_ = now;
  }
  return last_;
}

bool Standby::look() const {
  cache::Cache* leases = api_.cache_of("coordination.k8s.io", "leases");
  if (leases == nullptr) return false;
  Result<cache::Snapshot> all = leases->snapshot();
  if (!all) return false;
  const cache::EntryRef entry = all->find("kube-system/kube-controller-manager");
  if (!entry) return false;
  Arena arena;
  const cache::Blob body = entry->body();
  Result<Value> lease = object_tree(arena, *types::find_type("coordination/v1.Lease"), *body);
  if (!lease || lease->text_at("spec", "holderIdentity").empty()) return false;
  const std::optional<UnixTime> renewed = parse_rfc3339(lease->text_at("spec", "renewTime"));
  return renewed && renewed->seconds + lease->int_at_or(0, "spec", "leaseDurationSeconds") >= clock_.now().seconds;
}

}  // namespace holdfast::controllers
