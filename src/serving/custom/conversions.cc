#include "custom/conversions.h"

#include <algorithm>

#include "base/api_error.h"
#include "base/api_version.h"
#include "base/strings.h"
#include "base/text.h"
#include "codec/codec.h"
#include "kinds/kinds.h"
#include "render/render.h"
#include "resource/object_codec.h"
#include "schema/schema.h"

namespace holdfast::custom {
namespace {

constexpr std::chrono::seconds kTimeout{30};
// Maximum number of objects per call.
constexpr size_t kBatch = 500;
// Size limit of a definition's cache, not counting conversions held by requests in flight.
constexpr size_t kRememberedBytes = 16 << 20;

// Metadata that is hidden from conversion, because it differs between requests, and restored afterwards.
constexpr std::string_view kUnconverted[] = {"resourceVersion", "managedFields"};

Value without_unconverted_metadata(Arena& arena, const Value& object) {
  const Value* metadata = object.find("metadata");
  if (metadata == nullptr || !metadata->is_map()) return object;
  Value bare = *metadata;
  for (const std::string_view key : kUnconverted) {
    if (bare.has(key)) bare = without_member(arena, bare, key);
  }
  return with_member(arena, object, "metadata", bare);
}

Value with_unconverted_metadata(Arena& arena, const Value& object, const Value& original) {
  const Value* from = original.find("metadata");
  const Value* metadata = object.find("metadata");
  if (from == nullptr || metadata == nullptr) return object;
  Value full = *metadata;
  for (const std::string_view key : kUnconverted) {
    if (const Value* value = from->find(key)) full = with_member(arena, full, key, *value);
  }
  return with_member(arena, object, "metadata", full);
}

std::string shown_kind(const types::Resource& resource) {
  return go_kind_text(resource.group, resource.version, resource.kind);
}

// A webhook may change labels and annotations, but no other metadata (restoreObjectMeta).
Result<Value> with_original_metadata(Arena& arena, const Value& original, const Value& converted) {
  const Value* given = converted.find("metadata");
  if (given == nullptr) return untyped("missing metadata in converted object");
  if (!given->is_map()) {
    return untyped("invalid metadata of type " + std::string(codec::go_type(*given)) + " in converted object");
  }
  const Value* kept = original.find("metadata");
  Value metadata = kept == nullptr ? Value::empty_map() : *kept;
  for (const std::string_view field : {"labels", "annotations"}) {
    const Value* value = given->find(field);
    if (value == nullptr || value->is_null()) {
      metadata = without_member(arena, metadata, field);
      continue;
    }
    if (!value->is_map()) {
      return untyped("invalid metadata." + std::string(field) + " of type " + std::string(codec::go_type(*value)) +
                     " in converted object");
    }
    for (const Member& member : value->members()) {
      if (member.value.is_string()) continue;
      return untyped("metadata." + std::string(field) + "[" + std::string(member.key) + "] must be a string, but is " +
                     std::string(codec::go_type(member.value)) + " in converted object");
    }
    const Value* before = metadata.find(field);
    if (before == nullptr || !equal(*before, *value)) {
      kinds::FieldErrors errors;
      if (field == "labels") {
        kinds::validate_labels(value, kinds::Path("metadata").child("labels"), errors);
      } else {
        kinds::validate_annotations(value, kinds::Path("metadata").child("annotation"), errors);
      }
      if (!errors.empty()) return untyped(aggregate_text(errors.all()));
    }
    metadata = with_member(arena, metadata, field, *value);
  }
  return with_member(arena, converted, "metadata", metadata);
}

Result<Unit> check_identity(const Value& original, const Value& converted) {
  struct Same {
    std::string_view key, name;
  };
  for (const auto& [key, name] : {Same{"name", "name"}, Same{"namespace", "namespace"}, Same{"uid", "UID"}}) {
    const std::string_view before = original.text_at("metadata", key), after = converted.text_at("metadata", key);
    if (before == after) continue;
    return untyped("must have the same " + std::string(name) + ": " + std::string(before) +
                   " != " + std::string(after));
  }
  return Unit{};
}

}  // namespace

Conversions::Conversions(std::shared_ptr<const crd::Definition> definition, webhook::Caller& caller)
    : definition_(std::move(definition)), caller_(caller) {
  const Value& conversion = *definition_->conversion_webhook();
  if (const Value* client = conversion.get("webhook", "clientConfig")) client_ = webhook::client_config(*client);
  for (const Value& version : conversion.items_at("webhook", "conversionReviewVersions")) {
    if (!version.is_string() || (version.as_string() != "v1" && version.as_string() != "v1beta1")) continue;
    review_version_ = version.as_string() == "v1" ? webhook::ReviewVersion::V1 : webhook::ReviewVersion::V1beta1;
    break;
  }
}

Result<Value> Conversions::find(Arena& arena, const types::Resource& from, const types::Resource& to,
                                const Value& object, resource::MissingConversions* missing) {
  if (from.version == to.version) return object;
  std::string text = codec::encode_json_sorted(without_unconverted_metadata(arena, object));
  std::string key = std::string(to.version) + "\n" + text;
  Text known;
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(key);
    if (found != known_.end()) known = found->second.lock();
  }
  if (known == nullptr) {
    if (missing != nullptr) {
      static_cast<WantedConversions*>(missing)->all.push_back({this, &from, &to, std::move(key), std::move(text)});
    }
    return untyped("conversion webhook for " + shown_kind(from) + " has not been called yet");
  }
  Result<Value> converted = codec::decode_json(arena, arena.copy(*known));
  if (!converted) return converted;
  return with_unconverted_metadata(arena, *converted, object);
}

void Conversions::remember(const std::string& key, Text text) {
  const std::lock_guard lock(mutex_);
  known_[key] = text;
  recent_bytes_ += text->size() + key.size();
  recent_.push_front({key, std::move(text)});
  while (recent_bytes_ > kRememberedBytes && recent_.size() > 1) {
    recent_bytes_ -= recent_.back().key.size() + recent_.back().text->size();
    recent_.pop_back();
  }
  // Entries held by requests in flight can still be found; expired ones are removed here from time to time.
  if (known_.size() > 2 * recent_.size() + 64) {
    std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
  }
}

Result<std::vector<std::string>> Conversions::read_answer(std::string_view body, std::string_view uid, bool checks,
                                                          const std::vector<WantedConversion>& wanted) const {
  Arena arena;
  const types::Resource& from = *wanted.front().from;
  const types::Resource& to = *wanted.front().to;
  const std::string about = "conversion webhook for " + shown_kind(from);
  const auto failed = [&](std::string_view why) { return untyped(about + " failed: " + std::string(why)); };
  Result<Value> review = codec::decode_json(arena, body);
  if (!review) return failed("couldn't get version/kind; json parse error: " + review.error().message);
  if (checks &&
      (review->text_at("apiVersion") != "apiextensions.k8s.io/v1" || review->text_at("kind") != "ConversionReview")) {
    return failed("expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got " +
                  go_kind_text(review->text_at("apiVersion"), review->text_at("kind")));
  }
  const Value* response = review->find("response");
  if (response == nullptr || !response->is_map()) return failed("no response provided");
  if (const std::string_view said = response->text_at("uid"); checks && said != uid) {
    return failed("expected response.uid=" + go_quote(uid) + ", got " + go_quote(said));
  }
  if (const std::string_view status = response->text_at("result", "status"); status != "Success") {
    const std::string_view message = response->text_at("result", "message");
    return failed(message.empty() ? "response.result.status was '" + std::string(status) + "', not 'Success'"
                                  : std::string(message));
  }
  const std::span<const Value> objects = response->items_at("convertedObjects");
  if (objects.size() != wanted.size()) {
    return untyped(about + " returned " + std::to_string(objects.size()) + " objects, expected " +
                   std::to_string(wanted.size()));
  }
  const crd::Version* target = definition_->find(to.version);
  std::vector<std::string> texts;
  for (size_t i = 0; i < objects.size(); ++i) {
    const bool single = objects.size() == 1;
    const std::string at = " returned invalid " + std::string(single ? "object" : "converted object");
    const std::string at_index = at + " at index " + std::to_string(i);
    const Value& object = objects[i];
    if (const std::string_view got = object.text_at("apiVersion"); got != resource::api_version_of(to)) {
      return untyped(about + at_index + ": invalid groupVersion (expected " + resource::api_version_of(to) +
                     ", received " + std::string(got) + ")");
    }
    if (const std::string_view got = object.text_at("kind"); got != to.kind) {
      return untyped(about + at_index + ": invalid kind (expected " + std::string(to.kind) + ", received " +
                     std::string(got) + ")");
    }
    Result<Value> original = codec::decode_json(arena, wanted[i].object);
    assert(original);
    if (Result<Unit> same = check_identity(*original, object); !same) {
      return untyped(about + (single ? at : at_index) + ": " + same.error().message);
    }
    Result<Value> whole = with_original_metadata(arena, *original, object);
    if (!whole) {
      return untyped(about + " returned invalid metadata" +
                     (single ? std::string() : " in object at index " + std::to_string(i)) + ": " +
                     whole.error().message);
    }
    // Prune fields unknown to the version. Its defaults are applied to requests and stored objects, not to conversions.
    const types::Type& root = target->schema->root();
    Value coerced = schema::prune(arena, root, *whole);
    coerced = schema::drop_nulls(arena, root, coerced);
    texts.push_back(codec::encode_json_sorted(coerced));
  }
  return texts;
}

Task<Result<Unit>> Conversions::convert(net::EventLoop& loop, std::shared_ptr<net::Cancellation> cancellation,
                                        std::vector<WantedConversion> wanted,
                                        std::vector<std::shared_ptr<const void>>& held) {
  if (review_version_ == webhook::ReviewVersion::None) co_return untyped("no supported conversion review versions");
  const bool is_v1 = review_version_ == webhook::ReviewVersion::V1;
  const std::string uid = random_uuid();
  std::string body = R"({"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/)";
  body += is_v1 ? "v1" : "v1beta1";
  body += R"(","request":{"uid":")" + uid + R"(","desiredAPIVersion":")" +
          resource::api_version_of(*wanted.front().to) + R"(","objects":[)";
  for (size_t i = 0; i < wanted.size(); ++i) body += (i == 0 ? "" : ",") + wanted[i].object;
  body += R"(]},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}})";
  body += '\n';
  Result<std::string> answer = co_await caller_.post(loop, client_, std::move(body), kTimeout,
                                                     "kube-apiserver-admission", std::move(cancellation));
  if (!answer) {
    co_return untyped("conversion webhook for " + shown_kind(*wanted.front().from) +
                      " failed: " + answer.error().message);
  }
  Result<std::vector<std::string>> texts = read_answer(*answer, uid, is_v1, wanted);
  if (!texts) co_return texts.take_error();
  for (size_t i = 0; i < wanted.size(); ++i) {
    Text text = std::make_shared<const std::string>(std::move((*texts)[i]));
    held.push_back(text);
    remember(wanted[i].key, std::move(text));
  }
  co_return Unit{};
}

Task<Result<Unit>> convert_wanted(call::Call& call, std::vector<WantedConversion> wanted) {
  while (!wanted.empty()) {
    // A call converts objects of one definition between two versions, without duplicates.
    const WantedConversion first = wanted.front();
    std::vector<WantedConversion> batch, rest;
    for (WantedConversion& one : wanted) {
      const bool fits = one.conversions == first.conversions && one.from == first.from && one.to == first.to;
      const bool repeats = fits && std::any_of(batch.begin(), batch.end(),
                                               [&](const WantedConversion& other) { return other.key == one.key; });
      if (repeats) continue;
      (fits && batch.size() < kBatch ? batch : rest).push_back(std::move(one));
    }
    co_await return_to_loop(call);
    Result<Unit> converted =
        co_await first.conversions->convert(call.request.loop(), call.outgoing(), std::move(batch), call.held);
    if (!converted) co_return converted.take_error();
    wanted = std::move(rest);
  }
  co_return Unit{};
}

Task<Result<Value>> convert_object(call::Call& call, const types::Resource& from, const types::Resource& to,
                                   Value object) {
  co_return co_await with_conversions(call, [&](resource::MissingConversions& missing) {
    return call.served->object_rules->convert(call.arena, from, to, object, &missing);
  });
}

Task<Result<Unit>> convert_for_view(call::Call& call, const std::vector<cache::EntryRef>& entries) {
  if (!call.served->object_rules->converts_by_webhook()) co_return Unit{};
  for (size_t from = 0; from < entries.size(); from += kBatch) {
    const size_t end = std::min(entries.size(), from + kBatch);
    Result<Unit> prepared = co_await with_conversions(call, [&](resource::MissingConversions& missing) {
      for (size_t i = from; i < end; ++i) {
        Arena arena;
        const store::Blob body = entries[i]->body();
        (void)tree_of(arena, call.view, {*body, {}}, &missing);
      }
      return Unit{};
    });
    if (!prepared) co_return prepared;
  }
  co_return Unit{};
}

Task<Result<Unit>> convert_for_view(call::Call& call, std::string_view body) {
  if (!call.served->object_rules->converts_by_webhook()) co_return Unit{};
  co_return co_await with_conversions(call, [&](resource::MissingConversions& missing) {
    Arena arena;
    (void)tree_of(arena, call.view, {body, {}}, &missing);
    return Unit{};
  });
}

Error not_convertible() {
  Error error{Reason::TooManyRequests, "storage is (re)initializing"};
  error.retry_after_seconds = 1;
  return error;
}

}  // namespace holdfast::custom
