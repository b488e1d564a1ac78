// ConfigMap and Secret.

#include <optional>

#include "base/base64.h"
#include "base/strings.h"
#include "codec/json.h"
#include "kinds/all.h"

namespace holdfast::kinds {
namespace {

constexpr size_t kMaxDataBytes = 1024 * 1024;
constexpr std::string_view kFrozen = "field is immutable when `immutable` is set";

// Number of bytes that base64 text decodes to.
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
  // stringData is write-only: it is moved to data.
  if (const Value* given = secret.find("stringData"); given != nullptr) {
    const Value texts = *given;
    secret.remove("stringData");
    if (texts.is_map() && texts.count() > 0) {
      const auto encoded = [&](const Value& text) {
        return Value::string(arena, text.is_string() ? base64_encode(text.as_string()) : "");
      };
      const Value& data = sub(secret.value(), "data");
      MapBuilder merged(arena);
      for (const Member& entry : data.is_map() ? data.members() : std::span<const Member>{}) {
        const Value* text = texts.find(entry.key);
        merged.add(entry.key, text == nullptr ? entry.value : encoded(*text));
      }
      for (const Member& entry : texts.members()) {
        if (!data.is_map() || !data.has(entry.key)) merged.add(entry.key, encoded(entry.value));
      }
      secret.set("data", merged.build());
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

// --- Validation of TLS secrets, as far as their PEM blocks allow ---

struct PemBlock {
  std::string_view type;
  std::string der;
};

// The next block whose lines are base64; everything else is skipped.
std::optional<PemBlock> next_block(std::string_view& text) {
  constexpr std::string_view kBegin = "-----BEGIN ", kEnd = "-----END ", kDashes = "-----";
  while (true) {
    const size_t begin = text.find(kBegin);
    if (begin == std::string_view::npos) return std::nullopt;
    text.remove_prefix(begin + kBegin.size());
    const size_t dashes = text.find(kDashes);
    if (dashes == std::string_view::npos) return std::nullopt;
    const std::string_view type = text.substr(0, dashes);
    const std::string_view inside = text.substr(dashes + kDashes.size());
    const size_t end = inside.find(std::string(kEnd) + std::string(type) + std::string(kDashes));
    if (type.find('\n') != std::string_view::npos || end == std::string_view::npos) continue;
    std::string lines;
    for (const char c : inside.substr(0, end)) {
      if (c != '\n' && c != '\r' && c != ' ' && c != '\t') lines += c;
    }
    std::optional<std::string> der = base64_decode(lines);
    if (!der) continue;
    text = inside.substr(end + kEnd.size() + type.size() + kDashes.size());
    return PemBlock{type, std::move(*der)};
  }
}

std::string bracketed(const std::vector<std::string_view>& types) { return "[" + join(types, " ") + "]"; }

// Go's tls.X509KeyPair, up to the certificate's first byte: does not check whether the key matches.
std::string why_no_key_pair(std::string_view certificates, std::string_view keys) {
  std::vector<std::string_view> skipped;
  std::optional<PemBlock> certificate;
  while (!certificate) {
    std::optional<PemBlock> block = next_block(certificates);
    if (!block) break;
    if (block->type == "CERTIFICATE") {
      certificate = std::move(block);
    } else {
      skipped.push_back(block->type);
    }
  }
  if (!certificate) {
    if (skipped.empty()) return "tls: failed to find any PEM data in certificate input";
    if (skipped.size() == 1 && skipped[0].ends_with("PRIVATE KEY")) {
      return "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs "
             "may have been switched";
    }
    return "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the "
           "following types: " +
           bracketed(skipped);
  }
  skipped.clear();
  while (true) {
    const std::optional<PemBlock> block = next_block(keys);
    if (block && (block->type == "PRIVATE KEY" || block->type.ends_with(" PRIVATE KEY"))) break;
    if (block) {
      skipped.push_back(block->type);
      continue;
    }
    if (skipped.empty()) return "tls: failed to find any PEM data in key input";
    if (skipped.size() == 1 && skipped[0] == "CERTIFICATE") {
      return "tls: found a certificate rather than a key in the PEM for the private key";
    }
    return "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks "
           "of "
           "the following types: " +
           bracketed(skipped);
  }
  constexpr char kSequence = 0x30;
  if (certificate->der.empty() || certificate->der.front() != kSequence) return "x509: malformed certificate";
  return {};
}

void warn_secret(Context&, const Value& secret, const Value*, Warnings& texts) {
  if (secret.text_at("type") != "kubernetes.io/tls") return;
  const std::optional<std::string> certificates = base64_decode(secret.text_at("data", "tls.crt"));
  const std::optional<std::string> keys = base64_decode(secret.text_at("data", "tls.key"));
  if (!certificates || !keys) return;
  texts.add(why_no_key_pair(*certificates, *keys));
}

}  // namespace

const Hooks kConfigMapHooks = {.update_checks = {.whole = 1, .compares_first = true},
                               .validate = validate_config_map,
                               .validate_update = validate_config_map_update};
const Hooks kSecretHooks = {.update_checks = {.whole = 1, .compares_first = true},
                            .defaults = default_secret,
                            .validate = validate_secret,
                            .validate_update = validate_secret_update,
                            .warn = warn_secret};

}  // namespace holdfast::kinds
