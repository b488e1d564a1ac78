// ConfigMap and Secret.

#include "base/base64.h"
#include "codec/json.h"
#include "kinds/all.h"

namespace holdfast::kinds {
namespace {

constexpr size_t kMaxDataBytes = 1024 * 1024;
constexpr std::string_view kFrozen = "field is immutable when `immutable` is set";

// Bytes that base64 text stands for.
size_t decoded_bytes(std::string_view text) {
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  return text.size() / 4 * 3 - padding;
}

size_t validate_keys(const Value& object, std::string_view member, FieldErrors& errors) {
  size_t bytes = 0;
  const Path at(member);
  for (const Member& entry : object.members_at(member)) {
    errors.invalid_each(at.key(entry.key), entry.key, config_key_errors(entry.key));
    if (member == "data" && object.get("binaryData", entry.key) != nullptr) {
      errors.invalid(at.key(entry.key), entry.key, "duplicate of key present in binaryData");
    }
    if (entry.value.is_string()) bytes += entry.value.count();
  }
  return bytes;
}

bool same_data(const Value& next, const Value& old, std::string_view member) {
  const Value *a = next.find(member), *b = old.find(member);
  return (is_empty(a) && is_empty(b)) || (a != nullptr && b != nullptr && equal(*a, *b));
}

void validate_config_map(Context&, const Value& object, FieldErrors& errors) {
  size_t bytes = validate_keys(object, "data", errors);
  const Path at("binaryData");
  for (const Member& entry : object.members_at("binaryData")) {
    errors.invalid_each(at.key(entry.key), entry.key, config_key_errors(entry.key));
    if (entry.value.is_string()) bytes += decoded_bytes(entry.value.as_string());
  }
  if (bytes > kMaxDataBytes) errors.too_long(Path("[]"), kMaxDataBytes);
}

void validate_frozen(const Value& next, const Value& old, std::initializer_list<std::string_view> members,
                     FieldErrors& errors) {
  if (!is_true(old, "immutable")) return;
  if (!is_true(next, "immutable")) errors.forbidden(Path("immutable"), kFrozen);
  for (const std::string_view member : members) {
    if (!same_data(next, old, member)) errors.forbidden(Path(member), kFrozen);
  }
}

void validate_config_map_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_frozen(next, old, {"data", "binaryData"}, errors);
  validate_config_map(context, next, errors);
}

void default_secret(Arena& arena, const types::Resource&, Draft::Node secret) {
  // stringData is written only: it lands in data and is never seen again.
  if (const Value* given = secret.find("stringData"); given != nullptr) {
    const Value texts = *given;
    secret.remove("stringData");
    if (texts.is_map() && texts.count() > 0) {
      Draft::Node data = secret.child("data");
      for (const Member& entry : texts.members()) {
        data.set(entry.key,
                 Value::string(arena, entry.value.is_string() ? base64_encode(entry.value.as_string()) : ""));
      }
    }
  }
  secret.set_if_zero("type", Value::string("Opaque"));
}

void require_key(const Value& secret, std::string_view key, FieldErrors& errors) {
  const Path data("data");
  if (secret.get("data", key) == nullptr) errors.required(data.key(key));
}

void require_json(const Value& secret, std::string_view key, FieldErrors& errors) {
  const Path data("data");
  const Value* encoded = secret.get("data", key);
  if (encoded == nullptr) return errors.required(data.key(key));
  Arena arena;
  const std::string text = base64_decode(encoded->is_string() ? encoded->as_string() : std::string_view()).value_or("");
  codec::JsonError error;
  codec::JsonOptions options;
  options.error = &error;
  const Result<Value> parsed = codec::decode_json(arena, text, options);
  const auto complain = [&](std::string_view why) { errors.invalid(data.key(key), "<secret contents redacted>", why); };
  if (!parsed) return complain(error.message);
  const Value& value = *parsed;
  if (value.is_map() || value.is_null()) return;
  const std::string_view what = value.is_string() ? "string"
                                : value.is_bool() ? "bool"
                                : value.is_list() ? "array"
                                                  : "number";
  complain("json: cannot unmarshal " + std::string(what) + " into Go value of type map[string]interface {}");
}

void validate_secret(Context&, const Value& secret, FieldErrors& errors) {
  const Path data("data");
  size_t bytes = 0;
  for (const Member& entry : secret.members_at("data")) {
    errors.invalid_each(data.key(entry.key), entry.key, config_key_errors(entry.key));
    if (entry.value.is_string()) bytes += decoded_bytes(entry.value.as_string());
  }
  if (bytes > kMaxDataBytes) errors.too_long(data, kMaxDataBytes);
  const std::string_view type = secret.text_at("type");
  if (type == "kubernetes.io/service-account-token") {
    constexpr std::string_view kAccount = "kubernetes.io/service-account.name";
    const Path annotations("metadata.annotations");
    if (secret.text_at("metadata", "annotations", kAccount).empty()) errors.required(annotations.key(kAccount));
  } else if (type == "kubernetes.io/dockercfg") {
    require_json(secret, ".dockercfg", errors);
  } else if (type == "kubernetes.io/dockerconfigjson") {
    require_json(secret, ".dockerconfigjson", errors);
  } else if (type == "kubernetes.io/basic-auth") {
    if (secret.get("data", "username") == nullptr && secret.get("data", "password") == nullptr) {
      errors.required(data.key("username"));
      errors.required(data.key("password"));
    }
  } else if (type == "kubernetes.io/ssh-auth") {
    if (secret.text_at("data", "ssh-privatekey").empty()) errors.required(data.key("ssh-privatekey"));
  } else if (type == "kubernetes.io/tls") {
    require_key(secret, "tls.crt", errors);
    require_key(secret, "tls.key", errors);
  }
}

void validate_secret_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  if (next.text_at("type") != old.text_at("type")) errors.invalid(Path("type"), next.text_at("type"), kImmutable);
  validate_frozen(next, old, {"data"}, errors);
  validate_secret(context, next, errors);
}

}  // namespace

const Hooks kConfigMapHooks = {
    .update_checks = {.whole = 1}, .validate = validate_config_map, .validate_update = validate_config_map_update};
const Hooks kSecretHooks = {.update_checks = {.whole = 1},
                            .defaults = default_secret,
                            .validate = validate_secret,
                            .validate_update = validate_secret_update};

}  // namespace holdfast::kinds
