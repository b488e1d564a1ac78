// metav1.LabelSelector: validation, matching and its text.

#include <algorithm>

#include "base/strings.h"
#include "codec/json.h"
#include "kinds/hooks.h"

namespace holdfast::kinds {

void validate_label_selector(const Value* selector, const Path& at, FieldErrors& errors) {
  if (selector == nullptr || !selector->is_map()) return;
  validate_labels(selector->find("matchLabels"), at.child("matchLabels"), errors);
  const std::span<const Value> expressions = selector->items_at("matchExpressions");
  for (size_t i = 0; i < expressions.size(); ++i) {
    const Value& expression = expressions[i];
    const Path here = at.item("matchExpressions", i);
    const std::string_view op = expression.text_at("operator");
    const std::span<const Value> values = expression.items_at("values");
    if (op == "In" || op == "NotIn") {
      if (values.empty()) {
        errors.required(here.child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
      }
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (!values.empty()) {
        errors.forbidden(here.child("values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
      }
    } else {
      errors.invalid(here.child("operator"), op, "not a valid selector operator");
    }
    const std::string_view key = expression.text_at("key");
    errors.invalid_each(here.child("key"), key, qualified_name_errors(key));
    for (size_t j = 0; j < values.size(); ++j) {
      if (!values[j].is_string()) continue;
      errors.invalid_each(here.item("values", j), values[j], label_value_errors(values[j].as_string()));
    }
  }
}

bool selects(const Value* selector, const Value* labels) {
  if (selector == nullptr || !selector->is_map()) return false;
  const auto value_of = [&](std::string_view key) { return labels == nullptr ? nullptr : labels->find(key); };
  for (const Member& label : selector->members_at("matchLabels")) {
    const Value* value = value_of(label.key);
    if (value == nullptr || !equal(*value, label.value)) return false;
  }
  for (const Value& expression : selector->items_at("matchExpressions")) {
    const std::string_view op = expression.text_at("operator");
    const Value* value = value_of(expression.text_at("key"));
    const bool there = value != nullptr && value->is_string();
    const bool listed = there && contains_text(expression.items_at("values"), value->as_string());
    const bool holds = op == "In"       ? listed
                       : op == "NotIn"  ? !listed
                       : op == "Exists" ? there
                                        : op == "DoesNotExist" && !there;
    if (!holds) return false;
  }
  return true;
}

namespace {

using KeyedTexts = std::vector<std::pair<std::string_view, std::string>>;

KeyedTexts texts_of(std::span<const Member> labels) {
  KeyedTexts texts;
  for (const Member& label : labels) {
    const std::string_view value = label.value.is_string() ? label.value.as_string() : std::string_view();
    texts.emplace_back(label.key, std::string(label.key) + "=" + std::string(value));
  }
  return texts;
}

std::string joined(KeyedTexts texts) {
  std::stable_sort(texts.begin(), texts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return join(texts, ",", [](const auto& keyed) { return keyed.second; });
}

}  // namespace

std::string selector_text(const Value* selector) {
  if (selector == nullptr) return "";
  KeyedTexts texts = texts_of(selector->members_at("matchLabels"));
  for (const Value& expression : selector->items_at("matchExpressions")) {
    const std::string_view key = expression.text_at("key"), op = expression.text_at("operator");
    std::vector<std::string_view> values;
    for (const Value& value : expression.items_at("values")) {
      values.push_back(value.is_string() ? value.as_string() : std::string_view());
    }
    std::sort(values.begin(), values.end());
    std::string text;
    if (op == "In" || op == "NotIn") {
      text = std::string(key) + (op == "In" ? " in (" : " notin (") + join(values, ",") + ")";
    } else if (op == "Exists" || op == "DoesNotExist") {
      text = (op == "Exists" ? "" : "!") + std::string(key);
    }
    texts.emplace_back(key, std::move(text));
  }
  return joined(std::move(texts));
}

std::string selector_text(std::span<const Member> labels) { return joined(texts_of(labels)); }

Shown shown_sorted(const Value* map) {
  if (map == nullptr || map->is_null()) return Shown(Value::null());
  return Shown::verbatim(codec::encode_json_sorted(*map));
}

Shown shown_selector(const Value* selector) {
  if (selector == nullptr || !selector->is_map()) return Shown::verbatim("null");
  std::string text = "{";
  if (!is_empty(*selector, "matchLabels")) {
    text += "\"matchLabels\":" + codec::encode_json_sorted(*selector->find("matchLabels"));
  }
  if (!is_empty(*selector, "matchExpressions")) {
    if (text.size() > 1) text += ',';
    text += "\"matchExpressions\":[";
    bool first = true;
    for (const Value& expression : selector->items_at("matchExpressions")) {
      if (!first) text += ',';
      first = false;
      text += "{\"key\":" + codec::encode_json_string(expression.text_at("key"));
      text += ",\"operator\":" + codec::encode_json_string(expression.text_at("operator"));
      if (!is_empty(expression, "values")) text += ",\"values\":" + codec::encode_json(*expression.find("values"));
      text += '}';
    }
    text += ']';
  }
  return Shown::verbatim(text + "}");
}

}  // namespace holdfast::kinds
