#include "kinds/field_errors.h"

#include <algorithm>

#include "base/api_error.h"
#include "base/strings.h"
#include "base/text.h"
#include "codec/json.h"
#include "types/types.h"

namespace holdfast::kinds {
namespace {

const Value* item_at(const Value& list, std::string_view index_text) {
  const std::optional<size_t> index = parse_number<size_t>(index_text);
  return index && *index < list.items().size() ? &list.items()[*index] : nullptr;
}

// The value of a document at a field path such as spec.containers[0].resources; null unless the type has a map or a
// list there.
const Value* container_at(const types::Type& type, const Value& document, std::string_view field) {
  const types::Type* type_here = &type;
  const Value* here = &document;
  while (!field.empty() && here != nullptr && type_here != nullptr) {
    if (field.front() == '.') field.remove_prefix(1);
    if (field.starts_with('[')) {
      const size_t end = field.find(']');
      if (end == std::string_view::npos) return nullptr;
      const std::string_view step = field.substr(1, end - 1);
      field.remove_prefix(end + 1);
      if (here->is_list()) {
        here = item_at(*here, step);
      } else {
        here = here->is_map() ? here->find(step) : nullptr;
      }
      type_here = type_here->element;
      continue;
    }
    const size_t end = std::min(field.find_first_of(".["), field.size());
    const std::string_view step = field.substr(0, end);
    here = here->is_map() ? here->find(step) : nullptr;
    const types::Field* member =
        type_here->shape == types::Shape::Struct ? types::find_member(*type_here, step) : nullptr;
    type_here = member == nullptr ? nullptr : member->type;
    field.remove_prefix(end);
  }
  if (type_here == nullptr) return nullptr;
  return type_here->shape == types::Shape::Map || type_here->shape == types::Shape::List ? here : nullptr;
}

}  // namespace

std::string Path::text() const {
  std::string text = parent_ == nullptr ? std::string() : parent_->text();
  switch (step_) {
    case Step::Name:
      if (!text.empty()) text += '.';
      text += name_;
      break;
    case Step::Item:
      if (!text.empty()) text += '.';
      text += name_;
      [[fallthrough]];
    case Step::Index:
      text += '[' + std::to_string(index_) + ']';
      break;
    case Step::Key:
      text += '[';
      text += name_;
      text += ']';
      break;
  }
  return text;
}

Shown::Shown(std::string_view text) : text_(go_quote(text)) {}

Shown::Shown(const Value& value)
    : text_(value.is_string() ? go_quote(value.as_string()) : codec::encode_json(value)), absent_(value.is_null()) {}

Shown Shown::verbatim(std::string text) {
  Shown shown(true);
  shown.text_ = std::move(text);
  return shown;
}

Shown Shown::nothing() {
  Shown shown(true);
  shown.shows_ = false;
  return shown;
}

void FieldErrors::add(std::string_view type, std::string_view prose, const Path& at, const Shown* value,
                      std::string_view detail) {
  std::string field = at.text();
  std::string message(prose);
  if (value != nullptr && value->shows()) message += ": " + text_of(*value, field);
  if (!detail.empty()) {
    message += ": ";
    message += detail;
  }
  errors_.push_back({std::string(type), std::move(message), std::move(field)});
}

std::string FieldErrors::text_of(const Shown& value, std::string_view field) const {
  const Value* sent = value.is_absent() && type_ != nullptr ? container_at(*type_, sent_, field) : nullptr;
  if (sent == nullptr || !(sent->is_map() || sent->is_list()) || sent->count() > 0) return value.text();
  return sent->is_map() ? "{}" : "[]";
}

void FieldErrors::required(const Path& at, std::string_view detail) {
  add("FieldValueRequired", "Required value", at, nullptr, detail);
}
void FieldErrors::invalid(const Path& at, const Shown& value, std::string_view detail) {
  add("FieldValueInvalid", "Invalid value", at, &value, detail);
}
void FieldErrors::not_supported(const Path& at, const Shown& value, std::span<const std::string_view> supported) {
  std::string detail;
  for (const std::string_view one : supported) detail += (detail.empty() ? "supported values: " : ", ") + go_quote(one);
  add("FieldValueNotSupported", "Unsupported value", at, &value, detail);
}
void FieldErrors::duplicate(const Path& at, const Shown& value, std::string_view detail) {
  add("FieldValueDuplicate", "Duplicate value", at, &value, detail);
}
void FieldErrors::not_found(const Path& at, const Shown& value, std::string_view detail) {
  add("FieldValueNotFound", "Not found", at, &value, detail);
}
void FieldErrors::forbidden(const Path& at, std::string_view detail) {
  add("FieldValueForbidden", "Forbidden", at, nullptr, detail);
}
void FieldErrors::too_long(const Path& at, int64_t max_bytes) {
  add("FieldValueTooLong", "Too long", at, nullptr,
      "may not be more than " + std::to_string(max_bytes) + (max_bytes == 1 ? " byte" : " bytes"));
}
void FieldErrors::too_long_characters(const Path& at, int64_t max_characters) {
  add("FieldValueTooLong", "Too long", at, nullptr,
      "may not be more than " + std::to_string(max_characters) + (max_characters == 1 ? " character" : " characters"));
}
void FieldErrors::too_many(const Path& at, int64_t actual, int64_t max_items) {
  const Shown shown(actual);
  add("FieldValueTooMany", "Too many", at, &shown,
      "must have at most " + std::to_string(max_items) + (max_items == 1 ? " item" : " items"));
}
void FieldErrors::type_invalid(const Path& at, const Shown& value, std::string_view detail) {
  add("FieldValueTypeInvalid", "Invalid value", at, &value, detail);
}
void FieldErrors::internal(const Path& at, std::string_view detail) {
  add("InternalError", "Internal error", at, nullptr, detail);
}
void FieldErrors::require_valid(const Path& at, std::string_view text,
                                std::vector<std::string> (*errors_of)(std::string_view), std::string_view detail) {
  if (text.empty()) return required(at, detail);
  invalid_each(at, text, errors_of(text));
}

void FieldErrors::append(FieldErrors&& others) {
  for (Cause& cause : others.errors_) errors_.push_back(std::move(cause));
}

Error FieldErrors::to_error(std::string_view group, std::string_view kind, std::string_view name) const {
  return holdfast::invalid(GroupKind{group, kind}, name, errors_);
}

}  // namespace holdfast::kinds
