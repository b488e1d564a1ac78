// The etcd engine, built as a separate shared library: gRPC is loaded only if etcd is used.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <future>
#include <map>
#include <utility>

#include "store/etcd_client.h"
#include "store/etcd_module.h"
#include "store/etcd_watch.h"
#include "store/rules.h"

namespace holdfast::store::etcd {
namespace {

// etcd's own defaults (--max-request-bytes, --max-txn-ops).
constexpr Limits kLimits{.max_transaction_bytes = 1536 * 1024, .max_operations = 128};

constexpr auto kRange = [](Stubs& stubs, auto... rest) { stubs.kv->async()->Range(rest...); };
constexpr auto kTxn = [](Stubs& stubs, auto... rest) { stubs.kv->async()->Txn(rest...); };
constexpr auto kCompact = [](Stubs& stubs, auto... rest) { stubs.kv->async()->Compact(rest...); };
constexpr auto kGrant = [](Stubs& stubs, auto... rest) { stubs.lease->async()->LeaseGrant(rest...); };

Revision revision_of(const pb::ResponseHeader& header) { return {static_cast<uint64_t>(header.revision())}; }

KeyValue take(pb::KeyValue& from, bool keys_only) {
  KeyValue item;
  item.key = std::move(*from.mutable_key());
  if (!keys_only) item.value = make_blob(std::move(*from.mutable_value()));
  item.created = {static_cast<uint64_t>(from.create_revision())};
  item.modified = {static_cast<uint64_t>(from.mod_revision())};
  item.expires = from.lease() != 0;
  return item;
}

// Leases for TTLs, shared by many keys as in kube-apiserver: a lease lasts a little longer than the TTL and is reused
// while it has at least the TTL left.
class Leases : public std::enable_shared_from_this<Leases> {
 public:
  explicit Leases(std::shared_ptr<Client> client) : client_(std::move(client)) {}

  void with_lease(std::chrono::seconds ttl, Callback<int64_t> done) {
    std::unique_lock lock(mutex_);
    Lease& lease = leases_[ttl.count()];
    auto now = std::chrono::steady_clock::now();
    if (lease.id != 0 && lease.keys < kKeysOfOne && now + ttl <= lease.expires) {
      ++lease.keys;
      int64_t id = lease.id;
      lock.unlock();
      return done(id);
    }
    lease.waiting.push_back(std::move(done));
    if (lease.waiting.size() > 1) return;  // A grant is in progress.
    lock.unlock();
    grant(ttl);
  }

  // The lease expired early, because etcd was restored or the lease was revoked.
  void forget(std::chrono::seconds ttl) {
    std::lock_guard lock(mutex_);
    leases_[ttl.count()].id = 0;
  }

 private:
  static constexpr int kKeysOfOne = 1000;
  struct Lease {
    int64_t id = 0;
    std::chrono::steady_clock::time_point expires;
    int keys = 0;
    std::vector<Callback<int64_t>> waiting;
  };

  void grant(std::chrono::seconds ttl) {
    int64_t slack = std::clamp<int64_t>(ttl.count() / 20, 1, 60);
    pb::LeaseGrantRequest request;
    request.set_ttl(ttl.count() + slack);
    auto asked = std::chrono::steady_clock::now();
    client_->call<pb::LeaseGrantRequest, pb::LeaseGrantResponse>(
        std::move(request), Repeat::Freely, kGrant,
        [self = shared_from_this(), ttl, asked](StoreResult<pb::LeaseGrantResponse*> response) {
          std::vector<Callback<int64_t>> waiting;
          int64_t id = 0;
          {
            std::lock_guard lock(self->mutex_);
            Lease& lease = self->leases_[ttl.count()];
            waiting = std::exchange(lease.waiting, {});
            if (response) {
              id = lease.id = (*response)->id();
              lease.expires = asked + std::chrono::seconds((*response)->ttl());
              lease.keys = static_cast<int>(waiting.size());
            }
          }
          for (auto& done : waiting) {
            if (response) {
              done(id);
            } else {
              done(response.error());
            }
          }
        });
  }

  const std::shared_ptr<Client> client_;
  std::mutex mutex_;
  std::map<int64_t, Lease> leases_;  // By TTL; there are only a few.
};

// Compaction shared by all API servers on one etcd: the version of a key counts the compactions; the server that
// advances it from the version it last saw may compact, up to the revision it saw then.
class Compactor : public std::enable_shared_from_this<Compactor> {
 public:
  static constexpr const char* kKey = "compact_rev_key";

  explicit Compactor(std::shared_ptr<Client> client) : client_(std::move(client)) {}

  void schedule() {
    client_->after(client_->options().compaction_interval, [self = shared_from_this()](bool fired) {
      if (fired) self->run();
    });
  }

 private:
  void run() {
    pb::TxnRequest request;
    pb::Compare& compare = *request.add_compare();
    compare.set_result(pb::Compare::EQUAL);
    compare.set_target(pb::Compare::VERSION);
    compare.set_key(kKey);
    compare.set_version(seen_version_);
    pb::PutRequest& put = *request.add_success()->mutable_request_put();
    put.set_key(kKey);
    put.set_value(std::to_string(seen_revision_));
    request.add_failure()->mutable_request_range()->set_key(kKey);
    client_->call<pb::TxnRequest, pb::TxnResponse>(
        std::move(request), Repeat::IfUnsent, kTxn,
        [self = shared_from_this()](StoreResult<pb::TxnResponse*> response) { self->answered(std::move(response)); });
  }

  void answered(StoreResult<pb::TxnResponse*> response) {
    if (!response) return schedule();  // Another server, or this one next time.
    const pb::TxnResponse& answer = **response;
    int64_t compact_at = 0;
    if (answer.succeeded()) {
      ++seen_version_;
      compact_at = seen_revision_;
    } else if (answer.responses_size() == 1 && answer.responses(0).response_range().kvs_size() == 1) {
      seen_version_ = answer.responses(0).response_range().kvs(0).version();
    } else {
      seen_version_ = 0;
    }
    seen_revision_ = answer.header().revision();
    if (compact_at == 0) return schedule();
    pb::CompactionRequest request;
    request.set_revision(compact_at);
    client_->call<pb::CompactionRequest, pb::CompactionResponse>(
        std::move(request), Repeat::Freely, kCompact,
        [self = shared_from_this()](StoreResult<pb::CompactionResponse*>) { self->schedule(); });
  }

  const std::shared_ptr<Client> client_;
  // Only one run at a time.
  int64_t seen_version_ = 0;
  int64_t seen_revision_ = 0;
};

class EtcdStore final : public Store {
 public:
  explicit EtcdStore(std::shared_ptr<Client> client)
      : client_(std::move(client)), leases_(std::make_shared<Leases>(client_)) {
    if (client_->options().compaction_interval.count() > 0) std::make_shared<Compactor>(client_)->schedule();
  }
  ~EtcdStore() override { client_->close(); }

  void get(std::string key, Callback<Got> done) override {
    pb::RangeRequest request;
    request.set_key(std::move(key));
    client_->call<pb::RangeRequest, pb::RangeResponse>(
        std::move(request), Repeat::Freely, kRange, [done = std::move(done)](StoreResult<pb::RangeResponse*> response) {
          if (!response) return done(response.take_error());
          Got got{std::nullopt, revision_of((*response)->header())};
          if ((*response)->kvs_size() > 0) got.item = take(*(*response)->mutable_kvs(0), false);
          done(std::move(got));
        });
  }

  void range(RangeRequest request, Callback<Page> done) override {
    pb::RangeRequest message;
    message.set_key(range_key(request.prefix, request.from));
    message.set_range_end(range_end(request.prefix));
    message.set_limit(static_cast<int64_t>(request.limit));
    message.set_revision(static_cast<int64_t>(request.at.value));
    message.set_keys_only(request.keys_only);
    client_->call<pb::RangeRequest, pb::RangeResponse>(
        std::move(message), Repeat::Freely, kRange,
        [request = std::move(request), done = std::move(done)](StoreResult<pb::RangeResponse*> response) {
          if (!response) return done(response.take_error());
          Page page;
          page.revision = request.at == Revision{} ? revision_of((*response)->header()) : request.at;
          page.more = (*response)->more();
          if (request.count) page.count = static_cast<uint64_t>((*response)->count());
          page.items.reserve(static_cast<size_t>((*response)->kvs_size()));
          for (pb::KeyValue& item : *(*response)->mutable_kvs()) page.items.push_back(take(item, request.keys_only));
          done(std::move(page));
        });
  }

  void current_revision(Callback<Revision> done) override {
    get("/registry/health", [done = std::move(done)](StoreResult<Got> got) {
      if (!got) return done(got.take_error());
      done(got->revision);
    });
  }

  void write(Transaction transaction, Callback<WriteResult> done) override {
    if (auto wrong = check_transaction(transaction, kLimits)) return done(std::move(*wrong));
    auto pending = std::make_shared<Pending>(Pending{client_, leases_, std::move(transaction), {}, std::move(done)});
    pending->go_on();
  }

  void write_all(std::vector<Transaction> transactions,
                 std::function<void(std::vector<StoreResult<WriteResult>>)> done) override {
    if (transactions.empty()) return done({});
    // etcd batches concurrent requests itself; here we only limit their number.
    struct All {
      std::mutex mutex;
      std::vector<Transaction> transactions;
      std::vector<StoreResult<WriteResult>> results;
      size_t next = 0;
      size_t left = 0;
      std::function<void(std::vector<StoreResult<WriteResult>>)> done;
    };
    constexpr size_t kTogether = 64;
    auto all = std::make_shared<All>();
    all->transactions = std::move(transactions);
    all->results.assign(all->transactions.size(), closed_error());
    all->left = all->transactions.size();
    all->done = std::move(done);
    struct Step {
      static void run(const std::shared_ptr<Client>& client, const std::shared_ptr<Leases>& leases,
                      const std::shared_ptr<All>& all) {
        size_t index = 0;
        {
          std::lock_guard lock(all->mutex);
          if (all->next == all->transactions.size()) return;
          index = all->next++;
        }
        auto answered = [client, leases, all, index](StoreResult<WriteResult> result) {
          bool last = false;
          {
            std::lock_guard lock(all->mutex);
            all->results[index] = std::move(result);
            last = --all->left == 0;
          }
          if (last) return all->done(std::move(all->results));
          run(client, leases, all);
        };
        Transaction& transaction = all->transactions[index];
        if (auto wrong = check_transaction(transaction, kLimits)) return answered(std::move(*wrong));
        std::make_shared<Pending>(Pending{client, leases, std::move(transaction), {}, std::move(answered)})->go_on();
      }
    };
    for (size_t i = 0; i < kTogether; ++i) Step::run(client_, leases_, all);
  }

  std::unique_ptr<Watcher> watch(WatchRequest request) override { return etcd::watch(client_, std::move(request)); }

  void compact(Revision revision, Callback<Unit> done) override {
    pb::CompactionRequest request;
    request.set_revision(static_cast<int64_t>(revision.value));
    client_->call<pb::CompactionRequest, pb::CompactionResponse>(
        std::move(request), Repeat::IfUnsent, kCompact,
        [done = std::move(done)](StoreResult<pb::CompactionResponse*> response) {
          if (!response) return done(response.take_error());
          done(Unit{});
        });
  }

  void status(Callback<Status> done) override {
    // The revision and the last shared compaction come from a linearizable read, the rest from any member.
    get(Compactor::kKey, [client = client_, done = std::move(done)](StoreResult<Got> got) {
      if (!got) return done(got.take_error());
      Status status;
      status.engine = "etcd";
      status.current = got->revision;
      if (got->item) {
        const std::string& text = *got->item->value;
        std::from_chars(text.data(), text.data() + text.size(), status.compacted.value);
      }
      client->query_versions([client, status, done](StoreResult<pb::StatusResponse> response) mutable {
        if (!response) return done(response.take_error());
        status.version = response->version();
        status.db_bytes = static_cast<uint64_t>(response->dbsize());
        status.progress_is_exact = client->progress_exact();
        done(std::move(status));
      });
    });
  }

 private:
  // One transaction in progress: first obtains the leases it needs, then sends the transaction.
  struct Pending : std::enable_shared_from_this<Pending> {
    std::shared_ptr<Client> client;
    std::shared_ptr<Leases> leases;
    Transaction transaction;
    std::map<int64_t, int64_t> granted;  // From TTL to lease.
    Callback<WriteResult> done;
    bool granted_again = false;

    Pending(std::shared_ptr<Client> c, std::shared_ptr<Leases> l, Transaction t, std::map<int64_t, int64_t> g,
            Callback<WriteResult> d)
        : client(std::move(c)),
          leases(std::move(l)),
          transaction(std::move(t)),
          granted(std::move(g)),
          done(std::move(d)) {}

    void go_on() {
      for (const Operation& operation : transaction) {
        if (operation.ttl.count() <= 0 || granted.contains(operation.ttl.count())) continue;
        return leases->with_lease(operation.ttl,
                                  [self = shared_from_this(), ttl = operation.ttl](StoreResult<int64_t> lease) {
                                    if (!lease) return self->done(lease.take_error());
                                    self->granted[ttl.count()] = *lease;
                                    self->go_on();
                                  });
      }
      send();
    }

    void send() {
      pb::TxnRequest request;
      for (const Operation& operation : transaction) {
        pb::Compare& compare = *request.add_compare();
        compare.set_result(pb::Compare::EQUAL);
        compare.set_target(pb::Compare::MOD);
        compare.set_key(operation.key);
        compare.set_mod_revision(static_cast<int64_t>(operation.expected.value));
        request.add_failure()->mutable_request_range()->set_key(operation.key);
        if (operation.kind == Operation::Kind::Delete) {
          request.add_success()->mutable_request_delete_range()->set_key(operation.key);
        } else if (changes(operation)) {
          pb::PutRequest& put = *request.add_success()->mutable_request_put();
          put.set_key(operation.key);
          put.set_value(*operation.value);
          if (operation.ttl.count() > 0) put.set_lease(granted[operation.ttl.count()]);
        }
      }
      client->call<pb::TxnRequest, pb::TxnResponse>(
          std::move(request), Repeat::IfUnsent, kTxn,
          [self = shared_from_this()](StoreResult<pb::TxnResponse*> response) { self->answered(std::move(response)); });
    }

    void answered(StoreResult<pb::TxnResponse*> response) {
      if (!response) {
        const bool lease_gone = response.error().kind == ErrorKind::LeaseGone;
        if (!lease_gone || std::exchange(granted_again, true)) return done(response.take_error());
        for (const auto& [ttl, lease] : std::exchange(granted, {})) leases->forget(std::chrono::seconds(ttl));
        return go_on();
      }
      pb::TxnResponse& answer = **response;
      Revision revision = revision_of(answer.header());
      if (answer.succeeded()) return done(WriteResult(Committed{revision}));
      for (size_t i = 0; i < transaction.size() && i < static_cast<size_t>(answer.responses_size()); ++i) {
        auto& kvs = *answer.mutable_responses(static_cast<int>(i))->mutable_response_range()->mutable_kvs();
        Revision current = kvs.empty() ? Revision{} : Revision{static_cast<uint64_t>(kvs[0].mod_revision())};
        if (fits(transaction[i], current)) continue;
        Conflict conflict{i, std::nullopt, revision};
        if (!kvs.empty()) conflict.current = take(kvs[0], false);
        return done(WriteResult(std::move(conflict)));
      }
      done(StoreError{ErrorKind::Internal, "etcd rejected a transaction although all of its conditions hold"});
    }
  };

  const std::shared_ptr<Client> client_;
  const std::shared_ptr<Leases> leases_;
};

StoreResult<std::unique_ptr<Store>> open(const EtcdOptions& options, const EtcdNotices& notices) {
  StoreResult<std::shared_ptr<Client>> client = Client::make(options, notices);
  if (!client) return client.take_error();
  // Blocks: before etcd responds, no request can be served anyway.
  auto answered = std::make_shared<std::promise<StoreResult<Unit>>>();
  (*client)->query_versions([answered](StoreResult<pb::StatusResponse> response) {
    if (response) return answered->set_value(Unit{});
    answered->set_value(response.take_error());
  });
  StoreResult<Unit> reached = answered->get_future().get();
  if (!reached) {
    (*client)->close();
    StoreError error = reached.take_error();
    if (error.kind == ErrorKind::Timeout) error.kind = ErrorKind::Unavailable;
    return error;
  }
  return std::unique_ptr<Store>(std::make_unique<EtcdStore>(std::move(*client)));
}

}  // namespace
}  // namespace holdfast::store::etcd

extern "C" __attribute__((visibility("default"))) const char* holdfast_etcd_module_version() {
  return holdfast::store::etcd::kModuleVersion;
}

extern "C" __attribute__((visibility("default"))) void holdfast_open_etcd(
    const holdfast::store::EtcdOptions* options, const holdfast::store::EtcdNotices* notices,
    holdfast::store::StoreResult<std::unique_ptr<holdfast::store::Store>>* result) {
  *result = holdfast::store::etcd::open(*options, *notices);
}
