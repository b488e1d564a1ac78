#include "signer/signer.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>

#include "base/base64.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/task_group.h"
#include "base/text.h"
#include "signer/header.h"
#include "signer/messages.h"
#include "signer/rpc.h"

namespace holdfast::signer {
namespace {

using std::chrono::steady_clock;

constexpr double kDurationBounds[] = {.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60};
constexpr int64_t kMinTokenSeconds = 600;
// Longer refresh hints have no use, and could overflow time points.
constexpr std::chrono::hours kLongestRefresh{24 * 365};
// Pauses between connection attempts, so that a signer that starts later is found soon.
constexpr net::Millis kFirstPause{50}, kLongestPause{1000};
// grpc-timeout has at most eight digits.
constexpr net::Millis kLongestTimeout{99'999'999};
// Status and trailers.
constexpr uint32_t kHeaderBytes = 64 << 10;
constexpr size_t kKeysParsedOnTheLoop = 16;
constexpr size_t kSocketPathBytes = 107;  // sun_path without the zero at its end.

double seconds_of(UnixTime time) { return static_cast<double>(time.seconds) + static_cast<double>(time.nanos) / 1e9; }

}  // namespace

Result<Unit> check_endpoint(std::string_view endpoint) {
  const std::string shown =
      "invalid value " + go_quote(endpoint) + " passed for `--service-account-signing-endpoint`, ";
  if (endpoint.size() > kSocketPathBytes) {
    return bad_request(shown + "the path of a socket has at most " + std::to_string(kSocketPathBytes) + " bytes");
  }
  if (!endpoint.starts_with('@')) return Unit{};
  // Words joined by dots (abstractSocketRegex of pkg/controlplane/apiserver/options/validation.go).
  constexpr std::string_view kOfWords = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  const std::vector<std::string_view> words = split(endpoint.substr(1), '.');
  const bool good = std::all_of(words.begin(), words.end(), [&](std::string_view word) {
    return !word.empty() && word.find_first_not_of(kOfWords) == std::string_view::npos;
  });
  if (good) return Unit{};
  return bad_request(shown + "when prefixed with @ must be a valid abstract socket name");
}

namespace {

// A request that waits for keys, until they arrive or it is cancelled.
class Waiter {
 public:
  explicit Waiter(std::function<void(Outcome<Unit>)> done) : done_(std::move(done)) {}
  // Only the first call has an effect. Any thread.
  void finish(const Outcome<Unit>& outcome) {
    std::function<void(Outcome<Unit>)> done;
    {
      const std::lock_guard lock(mutex_);
      done.swap(done_);
    }
    if (done) done(outcome);
  }

 private:
  std::mutex mutex_;
  std::function<void(Outcome<Unit>)> done_;  // Guarded by mutex_.
};

}  // namespace

struct ExternalSigner::State {
  State(net::Loops& loops, Executor& parses_on, MetricRegistry& registry, Options chosen)
      : options(std::move(chosen)),
        background(parses_on),
        loop(loops.at(0)),
        durations(registry.histograms("apiserver_externaljwt_request_duration_seconds",
                                      "Request duration and time for calls to external-jwt-signer", kDurationBounds,
                                      {"method", "code"})),
        fetches(registry.counters("apiserver_externaljwt_fetch_keys_request_total",
                                  "Total attempts at syncing supported JWKs", {"code"})),
        signings(
            registry.counters("apiserver_externaljwt_sign_request_total", "Total attempts at signing JWT", {"code"})),
        tasks(loop, "external signer") {
    for (size_t i = 0; i < loops.count(); ++i) {
      clients.push_back({&loops.at(i), std::make_unique<net::Client>(loops.at(i), client_options())});
    }
    registry.computed("apiserver_externaljwt_fetch_keys_success_timestamp",
                      "Unix Timestamp in seconds of the last successful FetchKeys request", "gauge",
                      [times = times] { return times->fetched.load(); });
    registry.computed("apiserver_externaljwt_fetch_keys_data_timestamp",
                      "Unix Timestamp in seconds of the last successful FetchKeys data_timestamp value returned by the "
                      "external signer",
                      "gauge", [times = times] { return times->data.load(); });
  }

  net::ClientOptions client_options() const {
    net::ClientOptions to;
    to.host = "localhost";
    to.port = 80;
    to.unix_socket = options.endpoint;
    to.tls = false;
    to.http2_prior_knowledge = true;
    to.max_header_bytes = kHeaderBytes;
    return to;
  }

  // Constant after construction.
  const Options options;
  Executor& background;
  net::EventLoop& loop;  // Of FetchKeys and Metadata.
  struct PerLoop {
    net::EventLoop* loop;
    std::unique_ptr<net::Client> client;
  };
  std::vector<PerLoop> clients;
  Family<Histogram>& durations;
  Family<Counter>&fetches, &signings;

  // Any thread.
  struct Times {
    std::atomic<double> fetched{0}, data{0};  // Unix seconds.
  };
  const std::shared_ptr<Times> times = std::make_shared<Times>();  // Of the registry, too.
  std::atomic<std::shared_ptr<const tokens::Verifier>> verifier;
  std::atomic<steady_clock::time_point> refresh_at{};
  std::atomic<int64_t> max_expiration_seconds{0};
  std::atomic<bool> reachable{true};

  std::mutex mutex;
  std::vector<std::shared_ptr<Waiter>> waiting;  // For the FetchKeys in progress. Guarded by mutex, as is `closed`.
  bool closed = false;

  // Owned by `loop`.
  const std::shared_ptr<net::Cancellation> cancellation = std::make_shared<net::Cancellation>();
  std::vector<tokens::PublicKey> keys;  // Those of `verifier`.
  steady_clock::time_point fetch_ended{};
  TaskGroup tasks;

  net::Client& client_of(net::EventLoop& calling) {
    const auto found = std::find_if(clients.begin(), clients.end(),
                                    [&](const PerLoop& candidate) { return candidate.loop == &calling; });
    assert(found != clients.end());
    return *found->client;
  }

  Task<Outcome<std::string>> call(net::EventLoop& on, std::string_view method, std::string message, net::Millis timeout,
                                  std::shared_ptr<net::Cancellation> cancelled_by);
  Task<Outcome<std::string>> exchange(net::EventLoop& on, net::ClientRequest request,
                                      steady_clock::time_point deadline);
  void note_reachable(bool now, std::string_view why);

  // Joins the FetchKeys in progress, or starts one. On the thread of `on`.
  Task<Outcome<Unit>> sync_keys(net::EventLoop& on, std::shared_ptr<net::Cancellation> cancelled_by);
  void join(std::shared_ptr<Waiter> waiter);
  Task<void> fetch();
  Task<Outcome<Unit>> fetch_once();
  void answer_waiting(const Outcome<Unit>& outcome);
  Task<void> refresh();

  Task<Outcome<std::string>> sign(const tokens::Claims& claims, net::EventLoop& on,
                                  std::shared_ptr<net::Cancellation> cancelled_by);
};

// ---------------------------------------------------------------------------------------------------- Calls

Task<Outcome<std::string>> ExternalSigner::State::call(net::EventLoop& on, std::string_view method, std::string message,
                                                       net::Millis timeout,
                                                       std::shared_ptr<net::Cancellation> cancelled_by) {
  const steady_clock::time_point begin = steady_clock::now();
  net::ClientRequest request;
  request.method = "POST";
  request.target = "/v1.ExternalJWTSigner/" + std::string(method);
  request.headers = {{"content-type", "application/grpc"},
                     {"te", "trailers"},
                     {"user-agent", "holdfast"},
                     {"grpc-timeout", std::to_string(std::min(timeout, kLongestTimeout).count()) + "m"}};
  request.body = framed(message);
  request.cancellation = std::move(cancelled_by);
  const std::string target = request.target;
  Outcome<std::string> answer = co_await exchange(on, std::move(request), begin + timeout);
  durations.with({target, answer ? "OK" : answer.error().code})
      .observe(std::chrono::duration<double>(steady_clock::now() - begin).count());
  co_return answer;
}

// Tries again while no connection can be made: the signer may be starting (gRPC's wait-for-ready).
Task<Outcome<std::string>> ExternalSigner::State::exchange(net::EventLoop& on, net::ClientRequest request,
                                                           steady_clock::time_point deadline) {
  net::Millis pause = kFirstPause;
  while (true) {
    const auto left = std::chrono::ceil<net::Millis>(deadline - steady_clock::now());
    request.timeout = std::max(left, net::Millis(1));
    net::CallResult<net::ClientResponse> response = co_await client_of(on).fetch(request, limits::kSignerAnswerBytes);
    if (response) {
      note_reachable(true, "");
      co_return message_of(*response);
    }
    const net::CallError& error = response.error();
    if (request.cancellation != nullptr && request.cancellation->cancelled()) {
      co_return rpc_failure(Code::Canceled, "context canceled");
    }
    if (error.reason == Reason::RequestEntityTooLarge) {
      co_return rpc_failure(Code::ResourceExhausted, "grpc: received message larger than max (" +
                                                         std::to_string(limits::kSignerAnswerBytes) + ")");
    }
    using Progress = net::CallError::Progress;
    if (error.progress != Progress::NotConnected && error.progress != Progress::NotProcessed) {
      if (steady_clock::now() < deadline) co_return rpc_failure(Code::Unavailable, error.message);
      co_return rpc_failure(Code::DeadlineExceeded, "context deadline exceeded");
    }
    note_reachable(false, error.message);
    if (steady_clock::now() + pause >= deadline) {
      co_return rpc_failure(Code::DeadlineExceeded, "latest balancer error: connection error: desc = " +
                                                        go_quote("transport: Error while dialing: " + error.message));
    }
    co_await on.sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
}

void ExternalSigner::State::note_reachable(bool now, std::string_view why) {
  if (reachable.exchange(now) == now) return;
  if (now) {
    log::info("the external signer can be reached", {{"endpoint", options.endpoint}});
  } else {
    log::warning("the external signer cannot be reached: calls wait for it",
                 {{"endpoint", options.endpoint}, {"error", why}});
  }
}

// ---------------------------------------------------------------------------------------------------- Keys

Task<Outcome<Unit>> ExternalSigner::State::sync_keys(net::EventLoop& on,
                                                     std::shared_ptr<net::Cancellation> cancelled_by) {
  std::optional<net::CancellationScope> scope;
  co_return co_await from_callback<Outcome<Unit>>(on, [&](auto done) {
    const auto waiter = std::make_shared<Waiter>(std::move(done));
    scope.emplace(std::move(cancelled_by),
                  [waiter] { waiter->finish(rpc_failure(Code::Canceled, "context canceled")); });
    join(waiter);
  });
}

void ExternalSigner::State::join(std::shared_ptr<Waiter> waiter) {
  {
    const std::lock_guard lock(mutex);
    if (!closed && waiting.size() < limits::kWaitingForKeys) {
      waiting.push_back(std::move(waiter));
      if (waiting.size() == 1) tasks.post([this] { return fetch(); });
      return;
    }
  }
  waiter->finish(unacceptable("too many requests wait for the keys"));
}

Task<void> ExternalSigner::State::fetch() {
  const auto pause = std::chrono::ceil<net::Millis>(fetch_ended + options.fetch_pause - steady_clock::now());
  if (pause.count() > 0) co_await tasks.sleep(pause);
  Outcome<Unit> fetched = co_await fetch_once();
  fetch_ended = steady_clock::now();
  fetches.with({fetched ? "OK" : fetched.error().code}).add();
  if (fetched) times->fetched = seconds_of(system_clock().now());
  answer_waiting(fetched);
}

// As getTokenVerificationKeys of pkg/serviceaccount/externaljwt/plugin/keycache.go.
Task<Outcome<Unit>> ExternalSigner::State::fetch_once() {
  const auto failed = [](Failure why) {
    return in_context("while getting externally supported jwt signing keys", std::move(why));
  };
  Outcome<std::string> answer = co_await call(loop, "FetchKeys", "", options.keys_timeout, cancellation);
  if (!answer) co_return failed(answer.take_error());
  Outcome<FetchedKeys> fetched = decode_fetched_keys(*answer);
  if (!fetched) co_return failed(fetched.take_error());
  if (Outcome<Unit> checked = check_keys(*fetched); !checked) co_return checked.take_error();
  if (fetched->keys != keys) {
    // Hundreds of keys would block the loop. A few are parsed here, because tokens signed with them may arrive at the
    // same moment.
    const bool many = fetched->keys.size() > kKeysParsedOnTheLoop;
    if (many) co_await resume_on(background);
    Result<tokens::Verifier> made = tokens::Verifier::from_keys(options.issuers, fetched->keys);
    if (many) co_await resume_on(loop);
    if (!made) co_return unacceptable("while parsing external public keys: " + made.error().message);
    verifier = std::make_shared<const tokens::Verifier>(std::move(*made));
    keys = std::move(fetched->keys);
  }
  refresh_at = steady_clock::now() +
               std::min<std::chrono::seconds>(std::chrono::seconds(fetched->refresh_hint_seconds), kLongestRefresh);
  times->data = seconds_of(*fetched->data_timestamp);
  co_return Unit{};
}

void ExternalSigner::State::answer_waiting(const Outcome<Unit>& outcome) {
  std::vector<std::shared_ptr<Waiter>> all;
  {
    const std::lock_guard lock(mutex);
    all.swap(waiting);
  }
  for (const std::shared_ptr<Waiter>& waiter : all) waiter->finish(outcome);
}

Task<void> ExternalSigner::State::refresh() {
  net::Millis pause = std::chrono::ceil<net::Millis>(refresh_at.load() - steady_clock::now());
  while (true) {
    co_await tasks.sleep(std::max(pause, net::Millis(0)));
    if (tasks.closing()) co_return;
    Outcome<Unit> fetched = co_await sync_keys(loop, nullptr);
    if (tasks.closing()) co_return;
    if (fetched) {
      pause = std::chrono::ceil<net::Millis>(refresh_at.load() - steady_clock::now());
    } else {
      pause = options.retry_interval;
      log::error("the keys of the external signer cannot be fetched: the previous ones stay in use",
                 {{"error", fetched.error().message}});
    }
  }
}

// ---------------------------------------------------------------------------------------------------- Signing

// As signAndAssembleJWT and validateJWTHeader of pkg/serviceaccount/externaljwt/plugin/plugin.go. The signature is not
// verified here: kube-apiserver also issues tokens whose key it does not know yet.
Task<Outcome<std::string>> ExternalSigner::State::sign(const tokens::Claims& claims, net::EventLoop& on,
                                                       std::shared_ptr<net::Cancellation> cancelled_by) {
  const auto bad_header = [](std::string why) { return unacceptable("while validating header: " + std::move(why)); };
  const std::string payload = base64url_encode(tokens::encode_claims(claims));
  Outcome<std::string> answer =
      co_await call(on, "Sign", encode_sign_request(payload), options.sign_timeout, cancelled_by);
  if (!answer) co_return in_context("while signing jwt", answer.take_error());
  Outcome<SignedParts> parts = decode_signed_parts(*answer);
  if (!parts) co_return in_context("while signing jwt", parts.take_error());
  Result<std::string> key_id = check_header(parts->header);
  if (!key_id) co_return bad_header(key_id.error().message);
  // If the fetch fails, the key stays unknown, which is no reason to reject the token.
  if (!verifier.load()->has_key(*key_id)) (void)co_await sync_keys(on, cancelled_by);
  if (verifier.load()->has_unlisted_key(*key_id)) {
    co_return bad_header("key used for signing JWT (kid: " + *key_id + ") is excluded from OIDC discovery docs");
  }
  if (parts->signature.empty()) co_return unacceptable("empty signature returned");
  if (parts->signature.find_first_of("\r\n") != std::string::npos || !base64url_decode(parts->signature)) {
    co_return unacceptable("the signature returned is not base64url");
  }
  co_return parts->header + "." + payload + "." + parts->signature;
}

// ---------------------------------------------------------------------------------------------------- ExternalSigner

ExternalSigner::ExternalSigner(net::Loops& loops, Executor& background, MetricRegistry& metrics, Options options)
    : state_(std::make_unique<State>(loops, background, metrics, std::move(options))) {}
ExternalSigner::~ExternalSigner() = default;

Task<Result<Unit>> ExternalSigner::start() {
  State& s = *state_;
  const std::string setting_up = "while setting up external-jwt-signer: ";
  if (!s.loop.in_thread()) co_await resume_on(s.loop);
  if (Outcome<Unit> fetched = co_await s.sync_keys(s.loop, nullptr); !fetched) {
    co_return bad_request(setting_up +
                          "while initially filling key cache: while performing initial cache fill: while fetching "
                          "token verification keys: " +
                          fetched.error().message);
  }
  Outcome<std::string> answer = co_await s.call(s.loop, "Metadata", "", s.options.metadata_timeout, s.cancellation);
  if (!answer) co_return bad_request(setting_up + answer.error().message);
  Outcome<int64_t> seconds = decode_metadata(*answer);
  if (!seconds) co_return bad_request(setting_up + seconds.error().message);
  if (*seconds < kMinTokenSeconds) {
    co_return bad_request("max token life supported by external-jwt-signer (" + std::to_string(*seconds) +
                          "s) is less than acceptable (min " + std::to_string(kMinTokenSeconds) + "s)");
  }
  s.max_expiration_seconds = *seconds;
  s.tasks.run(s.refresh());
  co_return Unit{};
}

void ExternalSigner::cancel() {
  state_->loop.post([cancellation = state_->cancellation] { cancellation->cancel(); });
}

std::chrono::seconds ExternalSigner::max_expiration() const {
  return std::chrono::seconds(state_->max_expiration_seconds.load());
}

Task<Result<std::string>> ExternalSigner::sign(tokens::Claims claims, net::EventLoop& loop,
                                               std::shared_ptr<net::Cancellation> cancellation) {
  Outcome<std::string> token = co_await state_->sign(claims, loop, std::move(cancellation));
  state_->signings.with({token ? "OK" : token.error().code}).add();
  if (!token) co_return internal_error(token.error().message);
  co_return std::move(*token);
}

std::shared_ptr<const tokens::Verifier> ExternalSigner::verifier() const { return state_->verifier.load(); }

std::chrono::seconds ExternalSigner::keys_max_age() const {
  const auto left = state_->refresh_at.load() - steady_clock::now();
  return std::max(std::chrono::duration_cast<std::chrono::seconds>(left), std::chrono::seconds(0));
}

Task<void> ExternalSigner::fetch_keys(net::EventLoop& loop, std::shared_ptr<net::Cancellation> cancellation) {
  (void)co_await state_->sync_keys(loop, std::move(cancellation));
}

Task<void> ExternalSigner::close(Executor& executor) {
  co_await state_->tasks.close(executor, [state = state_.get()] {
    {
      const std::lock_guard lock(state->mutex);
      state->closed = true;
    }
    state->cancellation->cancel();
    state->answer_waiting(unacceptable("the server is shutting down"));
  });
}

}  // namespace holdfast::signer
