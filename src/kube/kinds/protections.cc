// FieldProtection, a kind of Holdfast.

#include "kinds/all.h"
#include "kinds/hooks.h"
#include "ownership/path_pattern.h"

namespace holdfast::kinds {
namespace {

// Each of these is compared with every write to the resources; an operator needs few.
constexpr int64_t kMaxItems = 100;

void default_protection(Arena&, const types::Resource&, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  if (spec.value().text_at("action").empty()) spec.set("action", Value::string("Deny"));
}

void validate_count(const Value& holder, std::string_view key, const Path& at, FieldErrors& errors) {
  const auto count = static_cast<int64_t>(holder.items_at(key).size());
  if (count > kMaxItems) errors.too_many(at.child(key), count, kMaxItems);
}

// Every item is a text that is not empty.
void validate_texts(const Value& holder, std::string_view key, const Path& at, FieldErrors& errors) {
  validate_count(holder, key, at, errors);
  const std::span<const Value> items = holder.items_at(key);
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].as_string().empty()) errors.required(at.item(key, i));
  }
}

void validate_resources(const Value& spec, const Path& at, FieldErrors& errors) {
  const std::span<const Value> resources = spec.items_at("resources");
  if (resources.empty()) errors.required(at.child("resources"));
  validate_count(spec, "resources", at, errors);
  for (size_t i = 0; i < resources.size(); ++i) {
    const Path item = at.item("resources", i);
    if (resources[i].items_at("apiGroups").empty()) {
      errors.required(item.child("apiGroups"), "must name at least one group; \"\" is the core group");
    }
    validate_count(resources[i], "apiGroups", item, errors);
    if (resources[i].items_at("resources").empty()) errors.required(item.child("resources"));
    validate_texts(resources[i], "resources", item, errors);
    const std::span<const Value> plurals = resources[i].items_at("resources");
    for (size_t j = 0; j < plurals.size(); ++j) {
      if (plurals[j].as_string().find('/') != std::string_view::npos) {
        errors.invalid(item.item("resources", j), plurals[j], "must not name a subresource: all of them are covered");
      }
    }
  }
}

void validate_allowed(const Value& spec, const Path& at, FieldErrors& errors) {
  validate_count(spec, "allowed", at, errors);
  const std::span<const Value> allowed = spec.items_at("allowed");
  for (size_t i = 0; i < allowed.size(); ++i) {
    const Path item = at.item("allowed", i);
    bool any = false;
    for (const std::string_view key : {"managers", "users", "groups", "serviceAccounts"}) {
      validate_texts(allowed[i], key, item, errors);
      any = any || !allowed[i].items_at(key).empty();
    }
    if (!any) errors.required(item, "must have managers, users, groups or serviceAccounts");
    const std::span<const Value> accounts = allowed[i].items_at("serviceAccounts");
    for (size_t j = 0; j < accounts.size(); ++j) {
      const std::string_view text = accounts[j].as_string();
      const size_t slash = text.find('/');
      const bool good = slash != std::string_view::npos && dns_label_errors(text.substr(0, slash)).empty() &&
                        dns_subdomain_errors(text.substr(slash + 1)).empty();
      if (!text.empty() && !good) {
        errors.invalid(item.item("serviceAccounts", j), accounts[j], "must be a namespace and a name: web/deployer");
      }
    }
  }
}

void validate_protection(Context&, const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = sub(object, "spec");
  validate_resources(spec, at, errors);
  validate_texts(spec, "namespaces", at, errors);
  validate_texts(spec, "paths", at, errors);
  validate_texts(spec, "managers", at, errors);
  validate_allowed(spec, at, errors);
  if (is_set(spec, "objectSelector")) {
    validate_label_selector(spec.find("objectSelector"), at.child("objectSelector"), errors);
  }
  const std::span<const Value> paths = spec.items_at("paths");
  for (size_t i = 0; i < paths.size(); ++i) {
    const Result<ownership::PathPattern> parsed = ownership::PathPattern::parse(paths[i].as_string());
    if (!parsed && !paths[i].as_string().empty()) errors.invalid(at.item("paths", i), paths[i], parsed.error().message);
  }
  if (paths.empty() && spec.items_at("managers").empty() && !is_true(spec, "force") && !is_true(spec, "deletion")) {
    errors.required(at.child("paths"), "unless managers, force or deletion is set");
  }
  validate_enum(spec, "action", {"Deny", "Warn", "Audit"}, at, errors);
}

}  // namespace

const Hooks kFieldProtectionHooks = {
    .generation = Generation::Spec, .defaults = default_protection, .validate = validate_protection};

}  // namespace holdfast::kinds
