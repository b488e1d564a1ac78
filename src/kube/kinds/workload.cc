#include "kinds/workload.h"

#include "base/strings.h"
#include "codec/quantity.h"

namespace holdfast::kinds {

void validate_int_or_percent(const Value& value, const Path& at, FieldErrors& errors) {
  if (value.is_string()) return errors.invalid_each(at, value, percent_errors(value.as_string()));
  const int64_t number = value.is_int() ? value.as_int() : 0;
  if (number < 0) errors.invalid(at, number, kNegative);
}

void validate_at_most_100_percent(const Value& value, const Path& at, FieldErrors& errors) {
  if (!value.is_string() || !percent_errors(value.as_string()).empty()) return;
  if (int_or_percent(value) > 100) errors.invalid(at, value, "must not be greater than 100%");
}

int64_t int_or_percent(const Value& value) {
  if (value.is_int()) return value.as_int();
  if (!value.is_string()) return 0;
  std::string_view text = value.as_string();
  if (text.ends_with('%')) text.remove_suffix(1);
  // Go's Atoi: all digits, with or without a sign, or nothing.
  if (text.starts_with('+')) text.remove_prefix(1);
  return parse_number<int64_t>(text).value_or(0);
}

void validate_selector(const Value& spec, std::string_view kind, const Path& at, FieldErrors& errors, bool& valid) {
  const Path here = at.child("selector");
  valid = true;
  if (!is_set(spec, "selector")) return errors.required(here);
  const Value& selector = sub(spec, "selector");
  const size_t before = errors.count();
  validate_label_selector(&selector, here, errors);
  valid = errors.count() == before;
  if (is_empty(selector, "matchLabels") && is_empty(selector, "matchExpressions")) {
    errors.invalid(here, shown_selector(&selector), "empty selector is invalid for " + std::string(kind));
  }
}

void validate_lasting_template(Context& context, const Value& pod_template, std::string_view kind, const Path& at,
                               FieldErrors& errors) {
  PodOptions options;
  options.allow_privileged = context.allow_privileged;
  validate_pod_template(pod_template, options, at, errors);
  validate_long_running(pod_template, kind, at, errors);
}

void validate_long_running(const Value& pod_template, std::string_view kind, const Path& at, FieldErrors& errors) {
  if (pod_template.text_at("spec", "restartPolicy") != "Always") {
    errors.not_supported(at.child("spec.restartPolicy"), pod_template.text_at("spec", "restartPolicy"), {"Always"});
  }
  if (is_set(sub(pod_template, "spec"), "activeDeadlineSeconds")) {
    errors.forbidden(at.child("spec.activeDeadlineSeconds"),
                     "activeDeadlineSeconds in " + std::string(kind) + " is not Supported");
  }
}

void validate_selected(const Value& spec, const Path& at, FieldErrors& errors) {
  const Value* labels = spec.get("template", "metadata", "labels");
  // A missing selector selects nothing.
  if (selects(spec.find("selector"), labels)) return;
  errors.invalid(at.child("template.metadata.labels"), shown_sorted(labels),
                 "`selector` does not match template `labels`");
}

void validate_replica_template(Context& context, const Value& spec, std::string_view kind, const Path& at,
                               FieldErrors& errors) {
  validate_selected(spec, at, errors);
  validate_lasting_template(context, sub(spec, "template"), kind, at.child("template"), errors);
}

void validate_selector_unchanged(const Value& next, const Value& old, FieldErrors& errors) {
  const Value *now = next.get("spec", "selector"), *before = old.get("spec", "selector");
  if (semantic_equal(type_named("meta/v1.LabelSelector"), now, before)) return;
  errors.invalid(Path("spec.selector"), shown_selector(now), kImmutable);
}

void validate_counters(const Value& status, std::initializer_list<std::string_view> counters, const Path& at,
                       FieldErrors& errors) {
  for (const std::string_view counter : counters) validate_non_negative(status, counter, at, errors);
}

void validate_at_most(const Value& status, std::string_view counter, std::string_view limit, std::string_view text,
                      const Path& at, FieldErrors& errors) {
  const int64_t number = status.int_at_or(0, counter);
  if (number > status.int_at_or(0, limit)) errors.invalid(at.child(counter), number, text);
}

void validate_collisions(const Value& next, const Value& old, FieldErrors& errors) {
  if (!is_set(sub(old, "status"), "collisionCount")) return;
  const int64_t now = next.int_at_or(0, "status", "collisionCount");
  if (now < old.int_at_or(0, "status", "collisionCount")) {
    errors.invalid(Path("status.collisionCount"), now, "cannot be decremented");
  }
}

}  // namespace holdfast::kinds
