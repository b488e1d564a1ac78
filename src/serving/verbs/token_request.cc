// POST serviceaccounts/NAME/token: issues a signed token for the account, valid for a limited time and only while the
// account and the object it is bound to exist.
#include <algorithm>

#include "base/api_error.h"
#include "base/api_version.h"
#include "base/strings.h"
#include "call/call.h"
#include "verbs/subresources.h"
#include "write/body.h"
#include "write/write.h"

namespace holdfast::verbs {
namespace {

constexpr int64_t kMinSeconds = 600, kMaxSeconds = int64_t{1} << 32;
// The lifetime requested by pods' token volumes. With extends_expiration, such a token is valid for
// extended_expiration, so that a client which never rereads its file keeps working; the warnafter claim says when it
// should have.
constexpr int64_t kUsualPodSeconds = 3607;

constexpr GroupKind kTokenRequest{"authentication.k8s.io", "TokenRequest"};

Task<Result<std::optional<Value>>> read_object(call::Call& call, std::string_view plural, std::string_view ns,
                                               std::string_view name) {
  resource::Storage* storage = call.registry->storage_of("", plural);
  Result<cache::Cache::Latest> latest = co_await storage->cache().latest(storage->short_key(ns, name), call.executor());
  if (!latest) co_return latest.take_error();
  if (!latest->entry) co_return std::optional<Value>();
  const store::Blob body = latest->entry->body();
  Result<Value> tree = storage->codec().tree(call.arena, call.arena.copy(*body));
  if (!tree) co_return tree.take_error();
  co_return std::optional<Value>(*tree);
}

tokens::NamedUid named(const Value& object) {
  return {std::string(object.text_at("metadata", "name")), std::string(object.text_at("metadata", "uid"))};
}

Result<Unit> validate_expiration(const Value& spec) {
  const int64_t seconds = spec.int_at_or(0, "expirationSeconds");
  std::vector<Cause> causes;
  auto refuse = [&](std::string_view why) {
    causes.push_back(field_invalid("spec.expirationSeconds", std::to_string(seconds), why));
  };
  if (seconds < kMinSeconds) refuse("may not specify a duration less than 10 minutes");
  if (seconds > kMaxSeconds) refuse("may not specify a duration larger than 2^32 seconds");
  if (causes.empty()) return Unit{};
  return invalid(kTokenRequest, "", std::move(causes));
}

// Adds the object that the token is bound to to its claims.
Task<Result<Unit>> bind_token(call::Call& call, const Value& reference, tokens::Claims& claims) {
  const std::string_view kind = reference.text_at("kind"), api_version = reference.text_at("apiVersion");
  const std::string_view name = reference.text_at("name");
  const bool core = api_version.find('/') == std::string_view::npos;
  std::string_view plural;
  if (core && kind == "Pod") plural = "pods";
  if (core && kind == "Node") plural = "nodes";
  if (core && kind == "Secret") plural = "secrets";
  if (plural.empty()) {
    co_return bad_request("cannot bind token to object of type " + go_kind_text(api_version, kind));
  }
  if (name.empty()) co_return bad_request("Name parameter required.");
  Result<std::optional<Value>> read =
      co_await read_object(call, plural, plural == "nodes" ? std::string_view() : call.ns(), name);
  if (!read) co_return read.take_error();
  if (!*read) co_return not_found({"", plural}, name);
  const Value& object = **read;
  if (kind == "Pod") {
    if (object.text_at("spec", "serviceAccountName") != call.info.name) {
      co_return bad_request("cannot bind token for serviceaccount \"" + std::string(call.info.name) +
                            "\" to pod running with different serviceaccount name.");
    }
    claims.pod = named(object);
    if (const std::string_view node = object.text_at("spec", "nodeName"); !node.empty()) {
      Result<std::optional<Value>> found = co_await read_object(call, "nodes", "", node);
      if (!found) co_return found.take_error();
      claims.node = *found ? named(**found) : tokens::NamedUid{std::string(node), ""};
    }
  } else {
    (kind == "Node" ? claims.node : claims.secret) = named(object);
  }
  const std::string_view wanted = reference.text_at("uid");
  if (!wanted.empty() && wanted != object.text_at("metadata", "uid")) {
    co_return conflict({"", kind}, name,
                       "the UID in the bound object reference (" + std::string(wanted) +
                           ") does not match the UID in record. The object might have been deleted and then recreated");
  }
  co_return Unit{};
}

// Fills in unset fields of the request. 422; 404 and 409 for the account.
Task<Result<Value>> complete_request(call::Call& call, const TokenIssuer& issuer, const Value& asked) {
  const std::string_view name = asked.text_at("metadata", "name");
  if (!name.empty() && name != call.info.name) {
    co_return invalid(kTokenRequest, call.info.name,
                      {field_invalid_text("metadata.name", name, "must match the service account name if specified")});
  }
  Result<std::optional<Value>> account = co_await read_object(call, "serviceaccounts", call.ns(), call.info.name);
  if (!account) co_return account.take_error();
  if (!*account) co_return not_found(call.group_resource(), call.info.name);
  const std::string_view uid = (*account)->text_at("metadata", "uid");
  if (const std::string_view wanted = asked.text_at("metadata", "uid"); !wanted.empty() && wanted != uid) {
    co_return conflict({kTokenRequest.group, kTokenRequest.kind}, call.info.name,
                       "the UID in the token request (" + std::string(wanted) +
                           ") does not match the UID of the service account (" + std::string(uid) + ")");
  }
  Draft draft(call.arena, asked);
  Draft::Node metadata = draft.root().child("metadata");
  metadata.set("name", Value::string(call.info.name));
  metadata.set("namespace", Value::string(call.ns()));
  metadata.set("uid", Value::string(uid));
  metadata.set("creationTimestamp", Value::string(call.arena, format_rfc3339(call.view.now)));
  if (draft.value().items_at("spec", "audiences").empty()) {
    ListBuilder audiences(call.arena);
    for (const std::string& audience : issuer.audiences) audiences.add(Value::string(audience));
    draft.root().child("spec").set("audiences", audiences.build());
  }
  draft.root().set("status", Value::empty_map());
  co_return draft.value();
}

Task<Result<std::string>> sign(call::Call& call, const TokenIssuer& issuer, tokens::Claims claims) {
  if (const auto* key = std::get_if<tokens::Signer>(&issuer.signer)) co_return key->sign(claims);
  co_await return_to_loop(call);
  co_return co_await std::get<signer::ExternalSigner*>(issuer.signer)
      ->sign(std::move(claims), call.request.loop(), call.outgoing());
}

Result<Value> with_default_expiration(call::Call& call, const Value& asked) {
  Draft draft(call.arena, asked);
  draft.root().child("spec").set_default("expirationSeconds", Value::integer(3600));
  return draft.value();
}

}  // namespace

Task<void> serve_token_request(call::Call& call, write::Writer& writer, const TokenIssuer* issuer,
                               const std::string& bytes, request::Format format) {
  if (issuer == nullptr) co_return respond_error(call, method_not_supported(call.group_resource(), "create"));
  const Result<write::WriteBody> body = write::read_placed_body(call, request::WriteKind::Create, bytes, format);
  if (!body) co_return respond_error(call, body.error());
  Result<Value> asked = with_default_expiration(call, body->object);
  if (!asked) co_return respond_error(call, asked.error());

  record_request(call, *asked);
  const std::string manager = write::manager_of(call, body->options);
  ownership::UpdateResult owned = call.served->managers->token_request().update(
      call.arena, {.object = *asked, .manager = manager, .now = call.view.now});
  Result<write::NextObject> next =
      co_await writer.mutate(call, write::AdmissionOperation::Create, body->options,
                             write::NextObject{owned.object, std::move(owned.managed)}, nullptr);
  if (!next) co_return respond_error(call, next.error());
  Result<Value> complete = co_await complete_request(call, *issuer, next->object);
  if (!complete) co_return respond_error(call, complete.error());
  Value request = *complete;
  Result<Unit> valid = validate_expiration(*request.find("spec"));
  if (!valid) co_return respond_error(call, valid.error());
  Result<Unit> admitted =
      co_await writer.validate(call, write::AdmissionOperation::Create, body->options, request, *next, nullptr);
  if (!admitted) co_return respond_error(call, admitted.error());

  tokens::Claims claims;
  claims.issuer = issuer->issuer;
  claims.ns = call.ns();
  claims.service_account = named(request);
  claims.id = random_uuid();
  claims.issued = claims.not_before = call.view.now.seconds;
  bool for_this_server = true;
  for (const Value& audience : request.items_at("spec", "audiences")) {
    claims.audiences.emplace_back(audience.as_string());
    for_this_server = for_this_server && std::find(issuer->audiences.begin(), issuer->audiences.end(),
                                                   audience.as_string()) != issuer->audiences.end();
  }
  if (const Value* reference = request.get("spec", "boundObjectRef"); reference != nullptr && reference->is_map()) {
    Result<Unit> bound = co_await bind_token(call, *reference, claims);
    if (!bound) co_return respond_error(call, bound.error());
  }
  int64_t seconds = request.int_at_or(0, "spec", "expirationSeconds");
  if (const int64_t most = issuer->max_expiration.count(); most > 0 && seconds > most) {
    call.warnings.add("requested expiration of " + std::to_string(seconds) + " seconds shortened to " +
                      std::to_string(most) + " seconds");
    seconds = most;
    const std::string_view at[] = {"spec", "expirationSeconds"};
    request = with_path(call.arena, request, at, Value::integer(seconds));
  }
  claims.expires = claims.issued + seconds;
  if (issuer->extends_expiration && claims.pod && seconds == kUsualPodSeconds && for_this_server) {
    claims.warn_after = claims.expires;
    claims.expires = claims.issued + issuer->extended_expiration.count();
  }
  Result<std::string> token = co_await sign(call, *issuer, claims);
  if (!token) co_return respond_error(call, internal("failed to generate token: " + token.error().message));
  record_annotation(call, "authentication.kubernetes.io/issued-credential-id", "JTI=" + claims.id);
  MapBuilder status(call.arena);
  status.add("token", Value::string(call.arena, *token));
  status.add("expirationTimestamp", Value::string(call.arena, format_rfc3339({call.view.now.seconds + seconds, 0})));
  respond_unstored(call, with_member(call.arena, request, "status", status.build()), next->managed,
                   *write::expected_of(call).type);
}

}  // namespace holdfast::verbs
