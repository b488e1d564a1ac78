// An external signer of service account tokens (KEP-740): a program on the same machine that keeps the private keys and
// is called by gRPC over a Unix socket (ExternalJWTSigner of k8s.io/externaljwt/apis/v1).
//
//   TokenRequest ---- claims ----> sign() --------- Sign --------> the signer
//   bearer token ---- key id ----> verifier()                        |
//                                     ^----------- FetchKeys --------+
//                          at start, every refresh_hint_seconds, and for unknown key ids
//
// Guarantees:
//   * Every call has a deadline, and nothing blocks a thread: calls are made on the event loops by net's HTTP/2 client,
//     many keys are parsed in the background.
//   * Calls wait until their deadline for a signer that is not running yet, as in kube-apiserver.
//   * Responses are checked before they are used. Unusable keys change nothing: the previous ones stay valid. A token
//     is issued only if its header names an algorithm and a key, and that key is not excluded from OIDC discovery.
//   * Unknown key ids cause at most one FetchKeys at a time, and ten per second, however many requests name them.
//
// The metrics are kube-apiserver's: apiserver_externaljwt_*.
//
// Threading: as each function says. Lifetime: close() before it is destroyed; the loops outlive it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/metrics.h"
#include "base/task.h"
#include "net/net.h"
#include "tokens/tokens.h"

namespace holdfast::signer {

struct Options {
  std::string endpoint;              // The path of the socket, or "@name" of an abstract one.
  std::vector<std::string> issuers;  // See tokens::Verifier.

  // For Sign. Shorter than the timeout of a request, so that the client learns what the request was waiting for.
  std::chrono::milliseconds sign_timeout{54'000};
  // As in kube-apiserver: for each FetchKeys, which is also how long the server waits for the signer at start, and for
  // the Metadata call after it.
  std::chrono::milliseconds keys_timeout{60'000};
  std::chrono::milliseconds metadata_timeout{10'000};
  // As in kube-apiserver: the time between a failed FetchKeys and the next attempt.
  std::chrono::milliseconds retry_interval{10'000};
  // The minimum time between two FetchKeys: anybody can send tokens with invented key ids.
  std::chrono::milliseconds fetch_pause{100};
};

// BadRequest, worded as in kube-apiserver, if the endpoint is invalid.
Result<Unit> check_endpoint(std::string_view endpoint);

class ExternalSigner {
 public:
  ExternalSigner(net::Loops& loops, Executor& background, MetricRegistry& metrics, Options options);
  ~ExternalSigner();
  ExternalSigner(const ExternalSigner&) = delete;
  ExternalSigner& operator=(const ExternalSigner&) = delete;

  // Fetches keys and metadata, waiting for the signer. Call it once, before anything below. Any thread; resumes on the
  // first loop. The error is worded as in kube-apiserver: "while setting up external-jwt-signer: ..."
  Task<Result<Unit>> start();
  // Makes start() fail soon. Any thread.
  void cancel();

  // The longest lifetime of a token that the signer supports. At least ten minutes.
  std::chrono::seconds max_expiration() const;

  // A token with these claims. Called and resumed on the thread of `loop`; can be cancelled. The error is what
  // kube-apiserver appends to "failed to generate token: ".
  Task<Result<std::string>> sign(tokens::Claims claims, net::EventLoop& loop,
                                 std::shared_ptr<net::Cancellation> cancellation);

  // The keys as last fetched; never null after start(). Any thread.
  std::shared_ptr<const tokens::Verifier> verifier() const;
  // How long clients may cache these keys. Any thread.
  std::chrono::seconds keys_max_age() const;
  // Fetches the keys now; resumes after success, failure or cancellation. On the thread of `loop`.
  Task<void> fetch_keys(net::EventLoop& loop, std::shared_ptr<net::Cancellation> cancellation);

  // Ends all calls in progress. Call it once, after start() has returned.
  Task<void> close(Executor& executor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::signer
