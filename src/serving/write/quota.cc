#include "write/quota.h"

#include <algorithm>
#include <vector>

#include "admission/admission.h"
#include "base/api_error.h"
#include "call/call.h"
#include "codec/codec.h"
#include "own_calls/requests.h"

namespace holdfast::write {

namespace quota = admission::quota;

namespace {

// Conflicts come from others writing the same quota concurrently: a controller, another server.
constexpr int kMostCharges = 20;

struct Turn {
  QuotaLedger& ledger;
  std::string ns;
  ~Turn() { ledger.done(ns); }
};

// The charges of a request so far, by quota. A write that loses a conflict is retried, and then charged only for the
// difference.
struct Charges {
  std::shared_ptr<void> hold;
  std::map<std::string, quota::Usage> by_key;
};

// The quota without this request's earlier charge.
Value without_charge(Arena& arena, const Value& counted, const quota::Usage& charged) {
  quota::Usage used = quota::usage_in(*counted.find("status"), "used");
  for (const auto& [name, amount] : charged) {
    const auto found = used.find(name);
    // Usage may have been recalculated in the meantime: do not go below zero.
    if (found != used.end()) found->second = found->second > amount ? found->second - amount : codec::Quantity();
  }
  const std::string_view at[] = {"status", "used"};
  return with_path(arena, counted, at, quota::to_value(arena, used));
}

std::string_view name_for_refusal(const call::Call& call, const Value& object) {
  std::string_view name = object.text_at("metadata", "name");
  if (name.empty()) name = call.info.name;
  if (name.empty()) name = object.text_at("metadata", "generateName");
  return name.empty() ? "Unknown" : name;
}

}  // namespace

std::shared_ptr<void> QuotaLedger::hold(std::string_view ns) {
  const std::lock_guard lock(mutex_);
  ++held_[std::string(ns)];
  return std::shared_ptr<void>(nullptr, [this, name = std::string(ns)](void*) {
    const std::lock_guard unlock(mutex_);
    const auto found = held_.find(name);
    if (--found->second == 0) held_.erase(found);
  });
}

bool QuotaLedger::is_held(std::string_view ns) const {
  const std::lock_guard lock(mutex_);
  return held_.contains(ns);
}

bool QuotaLedger::wait(const std::string& ns, Executor& executor, std::coroutine_handle<> waiter) {
  const std::lock_guard lock(mutex_);
  const auto [found, free] = turns_.try_emplace(ns);
  if (free) return false;
  found->second.waiting.emplace_back(&executor, waiter);
  return true;
}

void QuotaLedger::done(std::string_view ns) {
  const std::lock_guard lock(mutex_);
  const auto found = turns_.find(ns);
  if (found->second.waiting.empty()) {
    turns_.erase(found);
    return;
  }
  const auto [executor, waiter] = found->second.waiting.front();
  found->second.waiting.pop_front();
  executor->post([waiter = waiter] { waiter.resume(); });
}

Task<int> Quotas::store_usage(call::Call& call, const Value& counted) {
  static const types::Resource& quotas = *types::find_resource("", "v1", "resourcequotas");
  const own_calls::Target target = own_calls::object(quotas, call.ns(), counted.text_at("metadata", "name"));
  const Result<own_calls::Answer> answer = co_await own_calls::send(
      {own_, call.request.loop()}, own_calls::Request::update(target.sub("status"), counted, "kube-apiserver"));
  co_return answer ? answer->status : 500;
}

Task<Result<Unit>> Quotas::charge(call::Call& call, AdmissionOperation operation, const Value& object, const Value* old,
                                  bool dry_run) {
  if (call.ns().empty() || !on_) co_return Unit{};
  if (operation != AdmissionOperation::Create && operation != AdmissionOperation::Update) co_return Unit{};
  const types::Resource& resource = *call.served->resource;
  if (!quota::handles(resource, call.info.subresource, operation, object, old)) co_return Unit{};

  resource::Storage& storage = *call.registry->storage_of("", "resourcequotas");
  // With limited resources, a quota that the cache does not have yet must not be missed.
  Result<cache::Snapshot> snapshot =
      limited_.empty() ? storage.cache().snapshot() : co_await storage.cache().consistent(call.executor());
  if (!snapshot) co_return snapshot.take_error();
  cache::ListRequest request;
  request.scope = storage.scope(call.ns());
  std::vector<std::string> keys;
  const cache::ListPage page = snapshot->list(request);
  // A quota that cannot be decoded might have rejected the write.
  if (!page.unreadable.empty()) {
    co_return corrupt_object(storage.key(page.unreadable.front().key), page.unreadable.front().why);
  }
  keys.reserve(page.entries.size());
  for (const cache::EntryRef& entry : page.entries) keys.emplace_back(entry->key());
  const auto refusal = [&](std::string_view why) {
    return forbidden(call.group_resource(), name_for_refusal(call, object), why);
  };
  const auto check_limits = [&](std::span<const Value> quotas) -> Result<Unit> {
    const std::optional<quota::Uncovered> uncovered =
        quota::find_uncovered(resource, operation, object, old, quotas, limited_, call.view.now);
    if (!uncovered) return Unit{};
    return uncovered->by_scope ? untyped(uncovered->why) : refusal(uncovered->why);
  };
  if (keys.empty()) co_return check_limits({});

  if (!dry_run && call.quota_hold == nullptr) {
    call.quota_hold = std::make_shared<Charges>(Charges{ledger_.hold(call.ns()), {}});
  }
  Charges* const charges = static_cast<Charges*>(call.quota_hold.get());  // Null for a dry run.
  co_await ledger_.turn(std::string(call.ns()), call.executor());
  const Turn turn{ledger_, std::string(call.ns())};
  for (int attempt = 0; attempt < kMostCharges; ++attempt) {
    struct Change {
      std::string key;
      Value counted;         // The quota with its new usage ...
      quota::Usage charged;  // ... and this request's share of it.
    };
    std::vector<Change> changed;
    std::vector<Value> quotas;
    std::string exceeded;
    for (const std::string& key : keys) {
      Result<cache::Cache::Latest> latest = co_await storage.cache().latest(key, call.executor());
      if (!latest) co_return latest.take_error();
      if (!latest->entry) continue;
      const store::Blob body = latest->entry->body();
      Result<Value> found = storage.codec().tree(call.arena, call.arena.copy(*body));
      if (!found) co_return found.take_error();
      const auto earlier = charges == nullptr ? decltype(charges->by_key.find(key)){} : charges->by_key.find(key);
      const bool again = charges != nullptr && earlier != charges->by_key.end() && found->has("status");
      const Value before = again ? without_charge(call.arena, *found, earlier->second) : *found;
      quotas.push_back(before);
      quota::Verdict verdict = quota::check(resource, operation, object, old, before, call.view.now);
      if (!verdict.refusal.empty() && !verdict.exceeded) co_return refusal(verdict.refusal);
      if (exceeded.empty()) exceeded = std::move(verdict.refusal);
      if (!verdict.changes && !again) continue;
      quota::Usage charged;
      if (verdict.changes) {
        const quota::Usage used = quota::usage_in(*before.find("status"), "used");
        for (const auto& [name, amount] : verdict.used) {
          const auto was = used.find(name);
          const codec::Quantity more = was == used.end() ? amount : amount - was->second;
          if (!more.is_zero()) charged[name] = more;
        }
      }
      if (again && charged == earlier->second) continue;
      const std::string_view at[] = {"status", "used"};
      const Value counted =
          verdict.changes ? with_path(call.arena, *found, at, quota::to_value(call.arena, verdict.used)) : before;
      changed.push_back({key, counted, std::move(charged)});
    }
    // Later attempts only recheck the quotas that others changed in the meantime.
    if (attempt == 0) {
      if (Result<Unit> covered = check_limits(quotas); !covered) co_return covered;
    }
    if (!exceeded.empty()) co_return refusal(exceeded);
    if (dry_run) co_return Unit{};
    keys.clear();
    for (Change& change : changed) {
      const std::string& key = change.key;
      const int status = co_await store_usage(call, change.counted);
      if (status == 409) keys.push_back(key);
      if (status < 300) charges->by_key[key] = std::move(change.charged);
      if (status >= 300 && status != 409 && status != 404) {
        co_return internal_error("the usage of quota " + key + " could not be stored");
      }
    }
    if (keys.empty()) co_return Unit{};
  }
  co_return modified_conflict({"", "resourcequotas"}, keys.front());
}

}  // namespace holdfast::write
