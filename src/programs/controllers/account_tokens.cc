#include "controllers/account_tokens.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/base64.h"
#include "base/log.h"
#include "cache/cache.h"
#include "cache/follower.h"
#include "codec/codec.h"
#include "controllers/objects.h"
#include "resource/resource.h"
#include "value/value.h"

namespace holdfast::controllers {

using own_calls::Answer;
using own_calls::Request;
using own_calls::Target;

namespace {

constexpr std::string_view kType = "kubernetes.io/service-account-token";
constexpr std::string_view kAccountName = "kubernetes.io/service-account.name";
constexpr std::string_view kAccountUid = "kubernetes.io/service-account.uid";

// Index of the type among the selectable fields of Secrets.
size_t type_position() {
  const auto names = kinds::selectable_fields(*types::find_kind("", "v1", "Secret")).names;
  return static_cast<size_t>(std::find(names.begin(), names.end(), "type") - names.begin());
}

}  // namespace

struct AccountTokens::State {
  State(api::Api& served, net::EventLoop& runs_on, const own_calls::OwnCalls& own, Standby& other,
        const tokens::Signer& signs, std::string ca_pem)
      : api(served),
        tasks(runs_on, "service account tokens"),
        calls(own),
        standby(other),
        signer(signs),
        root_ca_pem(std::move(ca_pem)) {}

  api::Api& api;
  TaskGroup tasks;
  const own_calls::OwnCalls& calls;
  Standby& standby;
  const tokens::Signer& signer;
  const std::string root_ca_pem;
  const size_t type_field = type_position();

  // Owned by the loop.
  cache::Follower secrets{tasks}, accounts{tasks};
  std::set<std::string, std::less<>> token_secrets;  // "namespace/name" of token Secrets.
  KeyedQueue<std::string> queue{tasks, [this](std::string key) { return settle(std::move(key)); }, standby.pausing()};

  Task<void> follow_secrets() {
    return secrets.run(*api.cache_of("", "secrets"),
                       {.begin = [this] { token_secrets.clear(); },
                        .see = cache::one_by_one([this](const cache::Delivery& event) { see_secret(event); })});
  }

  void see_secret(const cache::Delivery& event) {
    const std::string key(event.object()->key());
    const bool ours = event.object()->field(type_field) == kType;
    if (event.type == cache::EventType::Deleted || !ours) {
      token_secrets.erase(key);
      return;
    }
    token_secrets.insert(key);
    queue.add(key);
  }

  Task<void> follow_accounts() {
    return accounts.run(*api.cache_of("", "serviceaccounts"),
                        {.see = cache::one_by_one([this](const cache::Delivery& event) { see_account(event); })});
  }

  // The Secrets of an account that was deleted or replaced are in the same namespace.
  void see_account(const cache::Delivery& event) {
    if (event.type != cache::EventType::Deleted) return;
    const std::string scope = std::string(event.object()->namespace_name()) + "/";
    for (auto key = token_secrets.lower_bound(scope); key != token_secrets.end() && key->starts_with(scope); ++key) {
      queue.add(*key);
    }
  }

  // Returns false to retry later. Follows syncSecret in kube-controller-manager's tokens_controller.go.
  Task<bool> settle(std::string key) {
    static const types::Resource& secrets_type = *types::find_resource("", "v1", "secrets");
    const Target target = target_of(secrets_type, key);
    Result<Answer> answer = co_await own_calls::send(calls, Request::get(target));
    if (answer && answer->not_found()) co_return true;
    if (!answer || !answer->succeeded()) co_return false;
    Arena arena;
    Result<Value> secret = answer->object(arena);
    if (!secret) co_return false;
    if (secret->text_at("type") != kType) co_return true;
    const std::string account_name(secret->text_at("metadata", "annotations", kAccountName));
    const std::string_view known_uid = secret->text_at("metadata", "annotations", kAccountUid);

    Result<std::string> uid = co_await account_uid(target.ns, account_name);
    if (!uid) co_return false;
    const bool exists = !uid->empty() && (known_uid.empty() || known_uid == *uid);
    if (!exists) co_return co_await remove(target, *secret);
    co_return co_await fill(arena, target, *secret, {account_name, *uid});
  }

  // Empty if there is no such account, above all because the annotation that names it is not a name.
  Task<Result<std::string>> account_uid(std::string ns, std::string name) {
    static const types::Resource& accounts_type = *types::find_resource("", "v1", "serviceaccounts");
    if (!own_calls::is_path_segment(name)) co_return std::string();
    Result<Answer> found = co_await own_calls::send(calls, Request::get(own_calls::object(accounts_type, ns, name)));
    if (!found) co_return found.take_error();
    if (found->not_found()) co_return std::string();
    if (!found->succeeded()) co_return internal_error("the service account cannot be read");
    Arena arena;
    Result<Value> account = found->object(arena);
    if (!account) co_return account.take_error();
    co_return std::string(account->text_at("metadata", "uid"));
  }

  Task<bool> remove(Target target, const Value& secret) {
    const Result<Answer> answer =
        co_await own_calls::send(calls, Request::remove(target, {.uid = secret.text_at("metadata", "uid")}));
    co_return answer && (answer->succeeded() || answer->not_found() || answer->status == 409);
  }

  Task<bool> fill(Arena& arena, Target target, const Value& secret, tokens::NamedUid account) {
    Draft draft(arena, secret);
    bool changed = false;
    const auto set = [&](Draft::Node map, std::string_view key, const std::string& value) {
      if (map.value().is_map() && map.value().text_at(key) == value) return;
      map.set(key, Value::string(arena, value));
      changed = true;
    };
    if (!root_ca_pem.empty()) set(draft.root().child("data"), "ca.crt", base64_encode(root_ca_pem));
    if (secret.text_at("data", "namespace").empty()) {
      set(draft.root().child("data"), "namespace", base64_encode(target.ns));
    }
    if (secret.text_at("data", "token").empty()) {
      set(draft.root().child("data"), "token",
          base64_encode(signer.sign({.issuer = std::string(tokens::kSecretIssuer),
                                     .ns = target.ns,
                                     .service_account = account,
                                     .secret = tokens::NamedUid{target.name, ""}})));
    }
    set(draft.root().child("metadata").child("annotations"), kAccountName, account.name);
    set(draft.root().child("metadata").child("annotations"), kAccountUid, account.uid);
    if (!changed) co_return true;
    const Result<Answer> answer =
        co_await own_calls::send(calls, Request::update(target, draft.value(), kControllerManager));
    // A conflict or a deletion is followed by an event.
    if (answer && (answer->succeeded() || answer->not_found() || answer->status == 409)) co_return true;
    log::warning("a service account's token could not be stored",
                 {{"secret", target.ns + "/" + target.name}, {"answer", text_of(answer)}});
    co_return answer && answer->status < 500;
  }
};

AccountTokens::AccountTokens(api::Api& api, net::EventLoop& loop, const own_calls::OwnCalls& calls, Standby& standby,
                             const tokens::Signer& signer, std::string root_ca_pem)
    : state_(std::make_unique<State>(api, loop, calls, standby, signer, std::move(root_ca_pem))) {}
AccountTokens::~AccountTokens() = default;

void AccountTokens::start() {
  state_->tasks.post([state = state_.get()] { return state->follow_secrets(); });
  state_->tasks.post([state = state_.get()] { return state->follow_accounts(); });
}

Task<void> AccountTokens::close(Executor& executor) {
  co_await state_->tasks.close(executor, [state = state_.get()] {
    state->secrets.cancel();
    state->accounts.cancel();
  });
}

}  // namespace holdfast::controllers
