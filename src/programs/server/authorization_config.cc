#include "server/authorization_config.h"

#include <algorithm>
#include <set>

#include "base/api_error.h"
#include "base/strings.h"
#include "base/text.h"
#include "codec/codec.h"
#include "kinds/kinds.h"

namespace holdfast::server {
namespace {

constexpr std::string_view kGroup = "apiserver.config.k8s.io/";
constexpr std::string_view kVersions[] = {"v1", "v1beta1", "v1alpha1"};
constexpr std::string_view kTypes[] = {"ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"};
constexpr std::string_view kWebhook = "Webhook";

Error not_loaded(std::string_view why) {
  return bad_request("failed to load AuthorizationConfiguration from file: " + std::string(why));
}

// With the message of Go's JSON decoder.
Error wrong_type(const Value& found, std::string_view field, std::string_view wanted) {
  return not_loaded("json: cannot unmarshal " + std::string(codec::json_kind(found)) + " into Go struct field " +
                    std::string(field) + " of type " + std::string(wanted));
}

// Strictly decodes one authorizer. `webhook` is not examined: such an authorizer is rejected in any case.
Result<Unit> check_authorizer(const Value& authorizer, const std::string& at, const std::string& version,
                              std::vector<std::string>& findings) {
  if (authorizer.is_null()) return Unit{};
  if (!authorizer.is_map()) {
    return wrong_type(authorizer, "AuthorizationConfiguration.authorizers", version + ".AuthorizerConfiguration");
  }
  for (const Member& member : authorizer.members()) {
    const bool text = member.key == "type" || member.key == "name";
    if (text && !member.value.is_string() && !member.value.is_null()) {
      return wrong_type(member.value, "AuthorizerConfiguration.authorizers." + std::string(member.key), "string");
    }
    if (member.key == "webhook" && !member.value.is_map() && !member.value.is_null()) {
      return wrong_type(member.value, "AuthorizerConfiguration.authorizers.webhook", version + ".WebhookConfiguration");
    }
    if (!text && member.key != "webhook") {
      findings.push_back("unknown field " + go_quote(at + "." + std::string(member.key)));
    }
  }
  return Unit{};
}

Result<Value> decode(Arena& arena, std::string_view text) {
  if (text.empty()) return Value::empty_map();
  std::vector<std::string> repeated;
  Result<Value> tree = codec::decode_yaml(arena, text, {.duplicates = &repeated});
  if (!tree) return not_loaded("couldn't get version/kind; json parse error: " + tree.error().message);
  const std::string_view kind = tree->text_at("kind"), api_version = tree->text_at("apiVersion");
  if (kind.empty()) return not_loaded("Object 'Kind' is missing in '" + std::string(text) + "'");
  if (api_version.empty()) return not_loaded("Object 'apiVersion' is missing in '" + std::string(text) + "'");
  const std::string_view version = api_version.substr(std::min(kGroup.size(), api_version.size()));
  if (kind != "AuthorizationConfiguration" || !api_version.starts_with(kGroup) ||
      std::find(std::begin(kVersions), std::end(kVersions), version) == std::end(kVersions)) {
    return not_loaded("no kind " + go_quote(kind) + " is registered for version " + go_quote(api_version) +
                      " in scheme \"pkg/runtime/scheme.go:111\"");
  }
  std::vector<std::string> findings;
  if (!repeated.empty()) findings.push_back("yaml: unmarshal errors:\n  " + join(repeated, "\n  "));
  for (const Member& member : tree->members()) {
    if (member.key == "kind" || member.key == "apiVersion") continue;
    if (member.key != "authorizers") {
      findings.push_back("unknown field " + go_quote(member.key));
      continue;
    }
    if (!member.value.is_list() && !member.value.is_null()) {
      return wrong_type(member.value, "AuthorizationConfiguration.authorizers",
                        "[]" + std::string(version) + ".AuthorizerConfiguration");
    }
    size_t index = 0;
    for (const Value& authorizer : tree->items_at("authorizers")) {
      const std::string at = "authorizers[" + std::to_string(index++) + "]";
      Result<Unit> checked = check_authorizer(authorizer, at, std::string(version), findings);
      if (!checked) return checked.take_error();
    }
  }
  if (!findings.empty()) return not_loaded("strict decoding error: " + join(findings, ", "));
  return tree;
}

// Like ValidateAuthorizationConfiguration in k8s.io/apiserver.
std::vector<std::string> validate(const Value& config) {
  std::vector<std::string> errors;
  const auto add = [&errors](const Cause& cause) { errors.push_back(cause.field + ": " + cause.message); };
  const auto duplicate = [](std::string field, std::string_view text) {
    return Cause{"FieldValueDuplicate", "Duplicate value: " + go_quote(text), std::move(field)};
  };
  const std::span<const Value> authorizers = config.items_at("authorizers");
  if (authorizers.empty()) add(field_required("authorizers", "at least one authorization mode must be defined"));
  std::set<std::string_view> types, names;
  for (size_t i = 0; i < authorizers.size(); ++i) {
    const std::string at = "authorizers[" + std::to_string(i) + "]";
    const std::string_view type = authorizers[i].text_at("type"), name = authorizers[i].text_at("name");
    if (type.empty()) {
      add(field_required(at + ".type"));
      continue;
    }
    if (std::find(std::begin(kTypes), std::end(kTypes), type) == std::end(kTypes)) {
      add(field_not_supported(at + ".type", type, kTypes));
      continue;
    }
    if (!types.insert(type).second && type != kWebhook) {
      add(duplicate(at + ".type", type));
      continue;
    }
    if (name.empty()) {
      add(field_required(at + ".name"));
    } else if (!names.insert(name).second) {
      add(duplicate(at + ".name", name));
    } else if (const std::vector<std::string> wrong = kinds::dns_subdomain_errors(name); !wrong.empty()) {
      add(field_invalid_text(at + ".name", name, "authorizer name is invalid: " + join(wrong, ", ")));
    }
    const Value* webhook = authorizers[i].find("webhook");
    const bool has_webhook = webhook != nullptr && !webhook->is_null();
    if (type == kWebhook && !has_webhook) add(field_required(at + ".webhook", "required when type=Webhook"));
    if (type != kWebhook && has_webhook) {
      add(field_invalid_text(at + ".webhook", "non-null", "may only be specified when type=Webhook"));
    }
  }
  return errors;
}

}  // namespace

Result<std::vector<std::string>> parse_authorization_config(std::string_view text) {
  Arena arena;
  Result<Value> config = decode(arena, text);
  if (!config) return config.take_error();
  if (const std::vector<std::string> errors = validate(*config); !errors.empty()) {
    return bad_request(aggregate_text(errors));
  }
  std::vector<std::string> types, misnamed;
  for (const Value& authorizer : config->items_at("authorizers")) {
    const std::string type(authorizer.text_at("type"));
    // Authorizers that can exist only once must have the name that --authorization-mode would give them.
    const std::string expected = to_lower(type);
    if (type != kWebhook && authorizer.text_at("name") != expected) {
      misnamed.push_back("expected name " + expected + " for authorizer " + type + " instead of " +
                         std::string(authorizer.text_at("name")));
    }
    types.push_back(type);
  }
  if (!misnamed.empty()) return bad_request(aggregate_text(misnamed));
  return types;
}

}  // namespace holdfast::server
