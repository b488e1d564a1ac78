#include "store/etcd_client.h"

#include <grpc/support/log.h>

#include <fstream>
#include <iterator>
#include <random>

#include "store/rules.h"

namespace holdfast::store::etcd {
namespace {

// etcd returns these before the request reaches the log; the first comes from gRPC if it never had a connection.
bool never_sent(const grpc::Status& status) {
  const std::string& text = status.error_message();
  auto says = [&](std::string_view words) { return text.find(words) != std::string::npos; };
  return status.error_code() == grpc::StatusCode::UNAVAILABLE &&
         (says("failed to connect to all addresses") || says("DNS resolution failed") || says("no leader"));
}

StoreResult<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return StoreError{ErrorKind::Invalid, path + ": cannot be read"};
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// gRPC runs callbacks on threads that it joins with the last channel that used them, even if that channel is destroyed
// on one of these threads, which then waits for itself. One channel that connects nowhere and is never destroyed keeps
// the threads alive.
void prepare_grpc() {
  static std::once_flag once;
  std::call_once(once, [] {
    gpr_set_log_function(
        [](gpr_log_func_args*) {});  // Relevant errors reach us as a status; the rest does not concern users.
    struct Nowhere {
      std::shared_ptr<grpc::Channel> channel =
          grpc::CreateChannel("unix:/nonexistent/holdfast", grpc::InsecureChannelCredentials());
      std::unique_ptr<pb::Maintenance::Stub> stub = pb::Maintenance::NewStub(channel);
      grpc::ClientContext context;
      pb::StatusRequest request;
      pb::StatusResponse response;
    };
    static Nowhere* const nowhere = new Nowhere;
    nowhere->stub->async()->Status(&nowhere->context, &nowhere->request, &nowhere->response, [](grpc::Status) {});
  });
}

}  // namespace

StoreError from_grpc(const grpc::Status& status, Repeat repeat, const std::string& endpoint) {
  const std::string& text = status.error_message();
  auto says = [&](std::string_view words) { return text.find(words) != std::string::npos; };
  // Clients see what etcd itself says; texts of gRPC contain addresses.
  auto error = [&](ErrorKind kind) {
    std::string shown = text.starts_with("etcdserver: ") ? text
                        : kind == ErrorKind::Unavailable ? "etcd is unavailable"
                        : kind == ErrorKind::Timeout     ? "etcdserver: request timed out"
                                                         : "etcd failed";
    return StoreError{kind, "etcd at " + endpoint + ": " + text, std::move(shown)};
  };
  switch (status.error_code()) {
    case grpc::StatusCode::OUT_OF_RANGE:
      if (says("compacted")) return error(ErrorKind::Compacted);
      if (says("future revision")) return error(ErrorKind::FutureRevision);
      return error(ErrorKind::Internal);
    case grpc::StatusCode::INVALID_ARGUMENT:
      return error(says("too large") || says("too many operations") ? ErrorKind::TooLarge : ErrorKind::Invalid);
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return error(says("larger than max") ? ErrorKind::TooLarge : ErrorKind::Unavailable);
    case grpc::StatusCode::UNAVAILABLE:
      return error(repeat == Repeat::Freely || never_sent(status) ? ErrorKind::Unavailable : ErrorKind::Timeout);
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::CANCELLED:
      return error(ErrorKind::Timeout);
    case grpc::StatusCode::NOT_FOUND:
      return error(says("lease not found") ? ErrorKind::LeaseGone : ErrorKind::Internal);
    case grpc::StatusCode::DATA_LOSS:
      return error(ErrorKind::Corrupt);
    default:
      return error(ErrorKind::Internal);
  }
}

bool is_retryable(const grpc::Status& status, Repeat repeat) {
  return repeat == Repeat::Freely ? status.error_code() == grpc::StatusCode::UNAVAILABLE : never_sent(status);
}

std::chrono::milliseconds repeat_delay() {
  // 25 ms plus or minus ten percent, like kube-apiserver.
  thread_local std::minstd_rand random(std::random_device{}());
  return std::chrono::milliseconds(23 + random() % 5);
}

Client::Client(EtcdOptions options, EtcdNotices notices) : options_(std::move(options)), notices_(std::move(notices)) {}

Client::~Client() = default;

StoreResult<std::shared_ptr<Client>> Client::make(EtcdOptions options, EtcdNotices notices) {
  prepare_grpc();
  if (options.endpoints.empty()) return StoreError{ErrorKind::Invalid, "no etcd endpoint was given"};
  auto client = std::shared_ptr<Client>(new Client(std::move(options), std::move(notices)));
  const EtcdOptions& given = client->options_;
  grpc::SslCredentialsOptions tls;
  for (auto [path, into] :
       {std::pair(&given.ca_file, &tls.pem_root_certs), std::pair(&given.cert_file, &tls.pem_cert_chain),
        std::pair(&given.key_file, &tls.pem_private_key)}) {
    if (path->empty()) continue;
    StoreResult<std::string> contents = read_file(*path);
    if (!contents) return contents.take_error();
    *into = std::move(*contents);
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(given.keepalive_time.count()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(given.keepalive_timeout.count()));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // Limits one attempt to connect: a busy etcd takes time to respond, but an unreachable host must leave enough of the
  // request timeout for the next endpoint.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(given.request_timeout.count() / 3));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // Our own retries know which requests may be repeated.
  arguments.SetMaxReceiveMessageSize(-1);
  for (const std::string& url : given.endpoints) {
    auto stubs = std::make_unique<Stubs>();
    stubs->url = url;
    std::string target;
    bool secure = false;
    if (url.starts_with("https://")) {
      target = url.substr(8);
      secure = true;
    } else if (url.starts_with("http://")) {
      target = url.substr(7);
    } else if (url.starts_with("unix://")) {
      target = "unix:" + url.substr(7);
    } else {
      return StoreError{ErrorKind::Invalid, "etcd endpoint " + url + ": must begin with http://, https:// or unix://"};
    }
    while (target.ends_with('/')) target.pop_back();
    stubs->channel = grpc::CreateCustomChannel(
        target, secure ? grpc::SslCredentials(tls) : grpc::InsecureChannelCredentials(), arguments);
    stubs->kv = pb::KV::NewStub(stubs->channel);
    stubs->watch = pb::Watch::NewStub(stubs->channel);
    stubs->lease = pb::Lease::NewStub(stubs->channel);
    stubs->maintenance = pb::Maintenance::NewStub(stubs->channel);
    client->stubs_.push_back(std::move(stubs));
  }
  return client;
}

void Client::failed(size_t endpoint, const std::string& why) {
  const size_t next = (endpoint + 1) % stubs_.size();
  // Only if the endpoint is still current: a hundred calls that fail together switch once.
  size_t current = endpoint;
  if (!endpoint_.compare_exchange_strong(current, next) || next == endpoint) return;
  if (!why.empty() && notices_.failover) notices_.failover(stubs_[endpoint]->url, stubs_[next]->url, why);
}

void Client::note_space(size_t endpoint, const grpc::Status& status) const {
  if (status.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED || !notices_.no_space) return;
  if (status.error_message().find("space exceeded") == std::string::npos) return;
  notices_.no_space(stubs_[endpoint]->url, status.error_message());
}

bool Client::enter(std::shared_ptr<Operation> operation) {
  std::lock_guard lock(mutex_);
  if (closed_) return false;
  operations_.insert(std::move(operation));
  return true;
}

void Client::leave(const std::shared_ptr<Operation>& operation) {
  std::lock_guard lock(mutex_);
  operations_.erase(operation);
  if (operations_.empty()) left_.notify_all();
}

bool Client::closed() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

void Client::close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  std::vector<std::shared_ptr<Operation>> running(operations_.begin(), operations_.end());
  lock.unlock();
  for (const auto& operation : running) operation->cancel();
  running.clear();
  lock.lock();
  left_.wait(lock, [this] { return operations_.empty(); });
}

struct Client::Timer final : Client::Operation {
  void cancel() override { alarm.Cancel(); }
  grpc::Alarm alarm;
};

void Client::after(std::chrono::milliseconds time, std::function<void(bool)> done) {
  auto timer = std::make_shared<Timer>();
  if (!enter(timer)) return done(false);
  // The alarm never releases its callback; the set of operations keeps the timer alive until it has fired.
  timer->alarm.Set(std::chrono::system_clock::now() + time,
                   [self = shared_from_this(), weak = std::weak_ptr(timer), done = std::move(done)](bool fired) {
                     std::shared_ptr<Timer> alive = weak.lock();
                     done(fired);
                     self->leave(alive);
                   });
}

// The first response is passed on; the others only determine whether progress is reliable.
void Client::query_versions(Callback<pb::StatusResponse> done) {
  struct Round {
    std::mutex mutex;
    size_t left;
    bool answered = false;
    bool exact = true;
    Callback<pb::StatusResponse> done;
  };
  struct Asking final : Operation, std::enable_shared_from_this<Asking> {
    void cancel() override { context.TryCancel(); }
    grpc::ClientContext context;
    pb::StatusRequest request;
    pb::StatusResponse response;
  };
  auto round = std::make_shared<Round>();
  round->left = stubs_.size();
  round->done = std::move(done);
  auto finish = [self = shared_from_this(), round](const grpc::Status& status, pb::StatusResponse* response,
                                                   size_t endpoint) {
    Callback<pb::StatusResponse> first;
    bool none = false;
    {
      std::lock_guard lock(round->mutex);
      --round->left;
      if (status.ok()) {
        round->exact = round->exact && etcd_progress_is_exact(response->version());
        // A member that does not respond is checked when it does; until then the others decide.
        self->progress_exact_ = round->exact;
        if (!std::exchange(round->answered, true)) first = std::move(round->done);
      } else if (round->left == 0 && !round->answered) {
        first = std::move(round->done);
        none = true;
      }
    }
    if (!first) return;
    if (none) return first(from_grpc(status, Repeat::Freely, self->stubs(endpoint).url));
    first(std::move(*response));
  };
  for (size_t i = 0; i < stubs_.size(); ++i) {
    auto asking = std::make_shared<Asking>();
    asking->context.set_deadline(std::chrono::system_clock::now() + options_.request_timeout);
    if (!enter(asking)) {
      finish(grpc::Status(grpc::StatusCode::CANCELLED, "the store was closed"), nullptr, i);
      continue;
    }
    stubs_[i]->maintenance->async()->Status(&asking->context, &asking->request, &asking->response,
                                            [self = shared_from_this(), asking, finish, i](grpc::Status status) {
                                              finish(status, &asking->response, i);
                                              self->leave(asking);
                                            });
  }
}

}  // namespace holdfast::store::etcd
