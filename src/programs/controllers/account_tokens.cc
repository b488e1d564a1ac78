#include "controllers/account_tokens.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/base64.h"
#include "base/log.h"
#include "cache/cache.h"
#include "codec/codec.h"
#include "controllers/follow.h"
#include "controllers/keyed_work.h"
#include "controllers/objects.h"
#include "resource/resource.h"
#include "value/value.h"

namespace holdfast::controllers {
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
  State(api::Api& served, net::EventLoop& runs_on, const own_calls::OwnCalls& own, Pause& rests,
        const tokens::Signer& signs, std::string ca_pem)
      : api(served),
        tasks(runs_on, "service account tokens"),
        calls(own),
        pause(rests),
        signer(signs),
        root_ca_pem(std::move(ca_pem)) {}

  api::Api& api;
  TaskGroup tasks;
  const own_calls::OwnCalls& calls;
  Pause& pause;
  const tokens::Signer& signer;
  const std::string root_ca_pem;
  const size_t type_field = type_position();

  // Owned by the loop.
  Followed secrets, accounts;
  std::set<std::string, std::less<>> token_secrets;  // "namespace/name" of token Secrets.
  KeyedWork work{tasks, &pause, [this](std::string key) { return settle(std::move(key)); }};

  Task<void> follow_secrets() {
    return follow(
        tasks, *api.cache_of("", "secrets"), secrets, [this] { token_secrets.clear(); },
        [this](const cache::Delivery& event) {
          if (!event.object()) return;
          const std::string key(event.object()->key());
          const bool ours = event.object()->field(type_field) == kType;
          if (event.type == cache::EventType::Deleted || !ours) {
            token_secrets.erase(key);
            return;
          }
          token_secrets.insert(key);
          work.request(key);
        });
  }

  // The Secrets of an account that was deleted or replaced are in the same namespace.
  Task<void> follow_accounts() {
    return follow(
        tasks, *api.cache_of("", "serviceaccounts"), accounts, [] {},
        [this](const cache::Delivery& event) {
          if (event.type != cache::EventType::Deleted || !event.object()) return;
          const std::string scope = std::string(event.object()->namespace_name()) + "/";
          for (auto key = token_secrets.lower_bound(scope); key != token_secrets.end() && key->starts_with(scope);
               ++key) {
            work.request(*key);
          }
        });
  }

  // Returns false to retry later. Follows syncSecret in kube-controller-manager's tokens_controller.go.
  Task<bool> settle(std::string key) {
    const std::string ns = key.substr(0, key.find('/')), name = key.substr(key.find('/') + 1);
    const std::string root = "/api/v1/namespaces/" + ns, path = root + "/secrets/" + name;
    Result<net::ClientResponse> answer = co_await calls.call("GET", path);
    if (answer && answer->status == 404) co_return true;
    if (!answer || answer->status != 200) co_return false;
    Arena arena;
    Result<Value> secret = codec::decode_json(arena, answer->body);
    if (!secret) co_return false;
    if (secret->text_at("type") != kType) co_return true;
    const std::string account_name(secret->text_at("metadata", "annotations", kAccountName));
    const std::string_view known_uid = secret->text_at("metadata", "annotations", kAccountUid);

    Result<Value> account = Value::null();
    std::string account_body;
    // Anybody can write the annotation: what is not a name must not become another path, or a query.
    if (kinds::path_segment_errors(account_name).empty() && account_name.find_first_of("?#") == std::string::npos) {
      Result<net::ClientResponse> found = co_await calls.call("GET", root + "/serviceaccounts/" + account_name);
      if (!found || (found->status != 200 && found->status != 404)) co_return false;
      account_body = std::move(found->body);
      if (found->status == 200) account = codec::decode_json(arena, account_body);
    }
    if (!account) co_return false;
    const std::string uid(account->is_map() ? account->text_at("metadata", "uid") : std::string_view());
    const bool exists = !account_name.empty() && !uid.empty() && (known_uid.empty() || known_uid == uid);
    if (!exists) co_return co_await remove(path, *secret);
    co_return co_await fill(arena, path, *secret, {ns, {account_name, uid}, name});
  }

  Task<bool> remove(std::string path, const Value& secret) {
    Result<net::ClientResponse> answer =
        co_await calls.call("DELETE", path,
                            R"({"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":)" +
                                codec::encode_json_string(secret.text_at("metadata", "uid")) + "}}",
                            "application/json");
    co_return answer && (answer->status < 300 || answer->status == 404 || answer->status == 409);
  }

  // The content of the token.
  struct Wanted {
    std::string ns;
    tokens::NamedUid account;
    std::string secret;
  };

  Task<bool> fill(Arena& arena, std::string path, const Value& secret, const Wanted& wanted) {
    Draft draft(arena, secret);
    bool changed = false;
    const auto set = [&](Draft::Node map, std::string_view key, const std::string& value) {
      if (map.value().is_map() && map.value().text_at(key) == value) return;
      map.set(key, Value::string(arena, value));
      changed = true;
    };
    if (!root_ca_pem.empty()) set(draft.root().child("data"), "ca.crt", base64_encode(root_ca_pem));
    if (secret.text_at("data", "namespace").empty()) {
      set(draft.root().child("data"), "namespace", base64_encode(wanted.ns));
    }
    if (secret.text_at("data", "token").empty()) {
      set(draft.root().child("data"), "token",
          base64_encode(signer.sign({.issuer = std::string(tokens::kSecretIssuer),
                                     .ns = wanted.ns,
                                     .service_account = wanted.account,
                                     .secret = tokens::NamedUid{wanted.secret, ""}})));
    }
    set(draft.root().child("metadata").child("annotations"), kAccountName, wanted.account.name);
    set(draft.root().child("metadata").child("annotations"), kAccountUid, wanted.account.uid);
    if (!changed) co_return true;
    Result<net::ClientResponse> answer = co_await calls.call("PUT", path + "?fieldManager=kube-controller-manager",
                                                             codec::encode_json(draft.value()), "application/json");
    // A conflict or a deletion is followed by an event.
    if (answer && (answer->status < 300 || answer->status == 404 || answer->status == 409)) co_return true;
    log::warning("a service account's token could not be stored",
                 {{"secret", path}, {"answer", answer ? answer->body : answer.error().message}});
    co_return answer && answer->status < 500;
  }
};

AccountTokens::AccountTokens(api::Api& api, net::EventLoop& loop, const own_calls::OwnCalls& calls, Pause& pause,
                             const tokens::Signer& signer, std::string root_ca_pem)
    : state_(std::make_unique<State>(api, loop, calls, pause, signer, std::move(root_ca_pem))) {}
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
