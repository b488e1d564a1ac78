// An external signer of service account tokens (KEP-740): a program on the same machine that keeps the private keys and
// is called by gRPC over a Unix socket (ExternalJWTSigner of k8s.io/externaljwt/apis/v1).
//
//   TokenRequest ---- claims ----> sign() --------- Sign --------> the signer
//   bearer token ---- key id ----> verifier()                        |
//                                     ^----------- FetchKeys --------+
//                          at the start, every refresh_hint_seconds, and for a key id that is not known
//
// Guarantees:
//   * Every call has a deadline, and nothing blocks a thread: calls are made on the event loops by net's HTTP/2 client,
//     many keys are parsed in the background.
//   * A signer that is not there is waited for until the deadline of the call, as by kube-apiserver.
//   * What the signer answers is checked before it is used. Keys that cannot be used change nothing: the previous ones
//     stay valid. A token is given out only with a header that names an algorithm and a key, not one that is excluded
//     from OIDC discovery.
//   * Asking for a key id that nobody has leads to at most one FetchKeys at a time and ten in a second, whoever asks.
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
  std::vector<std::string> issuers;  // As of tokens::Verifier.

  // Of a Sign. Less than a request may take, so that its client learns what it waited for.
  std::chrono::milliseconds sign_timeout{54'000};
  // As in kube-apiserver: of every FetchKeys, and so how long the start waits for the signer; of the Metadata after it.
  std::chrono::milliseconds keys_timeout{60'000};
  std::chrono::milliseconds metadata_timeout{10'000};
  // As there: when the keys could not be fetched, the next attempt is made after this.
  std::chrono::milliseconds retry_interval{10'000};
  // Between two FetchKeys: anybody can send tokens with invented key ids.
  std::chrono::milliseconds fetch_pause{100};
};

// BadRequest, in kube-apiserver's words, if this cannot be an endpoint.
Result<Unit> check_endpoint(std::string_view endpoint);

class ExternalSigner {
 public:
  ExternalSigner(net::Loops& loops, Executor& background, MetricRegistry& metrics, Options options);
  ~ExternalSigner();
  ExternalSigner(const ExternalSigner&) = delete;
  ExternalSigner& operator=(const ExternalSigner&) = delete;

  // Fetches keys and metadata, waiting for the signer; once, before everything below. Any thread; resumes on the first
  // loop. The error is kube-apiserver's: "while setting up external-jwt-signer: ..."
  Task<Result<Unit>> start();
  // Makes start() fail soon. Any thread.
  void cancel();

  // The longest lifetime of a token that the signer supports. At least ten minutes.
  std::chrono::seconds max_expiration() const;

  // A token with these claims. On the thread of `loop`, where it resumes. The error is what kube-apiserver says after
  // "failed to generate token: ". It may be cancelled.
  Task<Result<std::string>> sign(tokens::Claims claims, net::EventLoop& loop,
                                 std::shared_ptr<net::Cancellation> cancellation);

  // The keys as last fetched; never null after start(). Any thread.
  std::shared_ptr<const tokens::Verifier> verifier() const;
  // How long others may keep these keys before they ask again. Any thread.
  std::chrono::seconds keys_max_age() const;
  // Fetches the keys now, and resumes when that has succeeded, failed, or been cancelled. On the thread of `loop`.
  Task<void> fetch_keys(net::EventLoop& loop, std::shared_ptr<net::Cancellation> cancellation);

  // Ends what is in progress. Once; start() has ended.
  Task<void> close(Executor& executor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::signer
