// RPCs to an etcd cluster: endpoints, failover, retries, shutdown. Private to the etcd module.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "etcd.grpc.pb.h"
#include "store/etcd.h"
#include "store/store.h"

namespace holdfast::store::etcd {

namespace pb = ::etcdserverpb;

// Whether a request may be sent again when it is not known to have failed.
enum class Repeat : uint8_t {
  Freely,    // Reads.
  IfUnsent,  // Writes: only if etcd certainly has not seen the request.
};

// Maps a failed call to an error. `repeat` decides whether a broken connection makes the outcome of a write unknown.
StoreError from_grpc(const grpc::Status& status, Repeat repeat, const std::string& endpoint);

struct Stubs {
  std::string url;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<pb::KV::Stub> kv;
  std::unique_ptr<pb::Watch::Stub> watch;
  std::unique_ptr<pb::Lease::Stub> lease;
  std::unique_ptr<pb::Maintenance::Stub> maintenance;
};

class Client : public std::enable_shared_from_this<Client> {
 public:
  static StoreResult<std::shared_ptr<Client>> make(EtcdOptions options, EtcdNotices notices = {});
  ~Client();

  const EtcdOptions& options() const { return options_; }

  // Sends a request to the current endpoint, and to others if that fails, until the request timeout. `start(stubs,
  // context, request, response, done)` is the generated method. `done` receives the response.
  template <class Request, class Response, class Start>
  void call(Request request, Repeat repeat, Start start, std::function<void(StoreResult<Response*>)> done) {
    auto operation = std::make_shared<Call<Request, Response, Start>>(shared_from_this(), std::move(request), repeat,
                                                                      std::move(start), std::move(done));
    operation->deadline = std::chrono::system_clock::now() + options_.request_timeout;
    operation->attempt();
  }

  // Calls back after this time, or earlier with false if the client is closed.
  void after(std::chrono::milliseconds time, std::function<void(bool)> done);

  // The current endpoint; failed() switches to the next one, and reports that unless `why` is empty.
  size_t endpoint() const { return endpoint_.load(); }
  void failed(size_t endpoint, const std::string& why);
  // Reports an error that means that etcd has no space left.
  void note_space(size_t endpoint, const grpc::Status& status) const;
  Stubs& stubs(size_t endpoint) { return *stubs_[endpoint]; }
  size_t endpoints() const { return stubs_.size(); }

  bool progress_exact() const { return progress_exact_; }
  // Asks every endpoint for its version; calls back with the first response, or with the error if there is none.
  void query_versions(Callback<pb::StatusResponse> done);

  // Something to cancel, and to wait for, when the client is closed.
  class Operation {
   public:
    virtual ~Operation() = default;
    virtual void cancel() = 0;
  };
  // False if the client is closed; the operation must then not start.
  bool enter(std::shared_ptr<Operation> operation);
  void leave(const std::shared_ptr<Operation>& operation);
  bool closed() const;
  // Cancels all operations and waits until their callbacks have run.
  void close();

 private:
  template <class Request, class Response, class Start>
  struct Call;
  struct Timer;

  Client(EtcdOptions options, EtcdNotices notices);

  const EtcdOptions options_;
  const EtcdNotices notices_;
  std::vector<std::unique_ptr<Stubs>> stubs_;
  std::atomic<size_t> endpoint_ = 0;
  std::atomic<bool> progress_exact_ = false;

  mutable std::mutex mutex_;
  std::condition_variable left_;
  std::unordered_set<std::shared_ptr<Operation>> operations_;
  bool closed_ = false;
};

// Whether a retry on another endpoint, or on the same one a little later, may succeed.
bool is_retryable(const grpc::Status& status, Repeat repeat);
std::chrono::milliseconds repeat_delay();

template <class Request, class Response, class Start>
struct Client::Call final : Client::Operation, std::enable_shared_from_this<Call<Request, Response, Start>> {
  Call(std::shared_ptr<Client> owner, Request message, Repeat repeats, Start method,
       std::function<void(StoreResult<Response*>)> callback)
      : client(std::move(owner)),
        request(std::move(message)),
        repeat(repeats),
        start(std::move(method)),
        done(std::move(callback)) {}

  void attempt() {
    context = std::make_unique<grpc::ClientContext>();
    // Without it a member that lost its leader would hold the request for seconds.
    context->AddMetadata("hasleader", "true");
    context->set_deadline(deadline);
    if (!client->enter(this->shared_from_this())) {
      return done(StoreError{ErrorKind::Closed, "the store was closed"});
    }
    endpoint = client->endpoint();
    start(client->stubs(endpoint), context.get(), &request, &response,
          [self = this->shared_from_this()](grpc::Status status) { self->answered(status); });
  }

  void answered(const grpc::Status& status) {
    std::shared_ptr<Call> self = this->shared_from_this();
    bool closing = client->closed();
    bool again =
        !closing && is_retryable(status, repeat) && std::chrono::system_clock::now() + repeat_delay() < deadline;
    if (!status.ok() && !closing) {
      if (status.error_code() == grpc::StatusCode::UNAVAILABLE ||
          status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
        client->failed(endpoint, status.error_message());
      }
      client->note_space(endpoint, status);
    }
    if (again) {
      // A separate operation: this one leaves below, possibly after the next has begun.
      auto next = std::make_shared<Call>(client, std::move(request), repeat, std::move(start), std::move(done));
      next->deadline = deadline;
      client->after(repeat_delay(), [next](bool fired) {
        if (fired) return next->attempt();
        next->done(StoreError{ErrorKind::Closed, "the store was closed"});
      });
    } else if (status.ok()) {
      done(&response);
    } else if (closing) {
      done(StoreError{ErrorKind::Closed, "the store was closed"});
    } else {
      done(from_grpc(status, repeat, client->stubs(endpoint).url));
    }
    client->leave(self);
  }

  void cancel() override { context->TryCancel(); }

  std::shared_ptr<Client> client;
  Request request;
  const Repeat repeat;
  Start start;
  std::function<void(StoreResult<Response*>)> done;
  std::chrono::system_clock::time_point deadline;
  std::unique_ptr<grpc::ClientContext> context;
  Response response;
  size_t endpoint = 0;
};

}  // namespace holdfast::store::etcd
