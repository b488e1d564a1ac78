// Validation errors by field, in the wording of Kubernetes' field.Error, collected until they are returned.
//
// Paths are chains of stack objects: nothing is formatted before an error is reported.
//
//   void validate(const Value& spec, const Path& at, FieldErrors& errors) {
//     for (size_t i = 0; i < ports.size(); ++i) {
//       const Path port = at.item("ports", i);
//       if (...) errors.invalid(port.child("name"), ports[i].find("name"), "must be no more than 15 characters");
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "value/value.h"

namespace holdfast::types {
struct Type;
}  // namespace holdfast::types

namespace holdfast::kinds {

// One step of a field path. Refers to its parent, so it must not outlive it (the compiler warns).
class Path {
 public:
  explicit constexpr Path(std::string_view name) : name_(name) {}
  // "name", or several steps at once: "spec.template.spec".
  Path child(std::string_view name) const [[clang::lifetimebound]] { return Path(this, Step::Name, name, 0); }
  // name[index]
  Path item(std::string_view name, size_t index) const [[clang::lifetimebound]] {
    return Path(this, Step::Item, name, index);
  }
  // [index], [key]
  Path index(size_t index) const [[clang::lifetimebound]] { return Path(this, Step::Index, {}, index); }
  Path key(std::string_view key) const [[clang::lifetimebound]] { return Path(this, Step::Key, key, 0); }
  std::string text() const;

 private:
  enum class Step : uint8_t { Name, Item, Index, Key };
  constexpr Path(const Path* parent, Step step, std::string_view name, size_t index)
      : parent_(parent), step_(step), name_(name), index_(index) {}
  const Path* parent_ = nullptr;
  Step step_ = Step::Name;
  std::string_view name_;
  size_t index_ = 0;
};

// A value as shown in an error: strings quoted, numbers and booleans bare, everything else as JSON, absent as null.
class Shown {
 public:
  Shown(std::string_view text);
  Shown(const char* text) : Shown(std::string_view(text)) {}
  Shown(const std::string& text) : Shown(std::string_view(text)) {}
  Shown(int64_t number) : text_(std::to_string(number)) {}
  Shown(int number) : Shown(int64_t{number}) {}
  Shown(bool value) : text_(value ? "true" : "false") {}
  Shown(const Value& value);
  // Null means an absent field, except for Go strings that are not pointers: see or_empty.
  Shown(const Value* value) : Shown(value == nullptr ? Value::null() : *value) {}
  // Text that is shown unchanged: the JSON of Go's internal structs.
  static Shown verbatim(std::string text);
  // The string member, "" if it is absent: for fields that are not pointers in Go.
  static Shown or_empty(const Value& object, std::string_view key) { return Shown(object.text_at(key)); }
  // The error does not show the value.
  static Shown nothing();

  const std::string& text() const { return text_; }
  bool shows() const { return shows_; }
  bool is_absent() const { return absent_; }

 private:
  std::string text_;
  bool shows_ = true;
  bool absent_ = false;
};

class FieldErrors {
 public:
  FieldErrors() = default;
  // For an object of `type` decoded from the document `sent`. Typed objects drop empty maps and lists, Go's structs
  // keep them: an absent container that was sent empty is shown as {} or []. Both must outlive the errors.
  FieldErrors(const types::Type* type, const Value& sent) : type_(type), sent_(sent) {}

  bool empty() const { return errors_.empty(); }
  size_t count() const { return errors_.size(); }
  std::span<const Cause> all() const { return errors_; }

  void required(const Path& at, std::string_view detail = {});
  void invalid(const Path& at, const Shown& value, std::string_view detail);
  void not_supported(const Path& at, const Shown& value, std::span<const std::string_view> supported);
  void not_supported(const Path& at, const Shown& value, std::initializer_list<std::string_view> supported) {
    not_supported(at, value, std::span(supported.begin(), supported.size()));
  }
  void duplicate(const Path& at, const Shown& value, std::string_view detail = {});
  void not_found(const Path& at, const Shown& value, std::string_view detail = {});
  void forbidden(const Path& at, std::string_view detail);
  void too_long(const Path& at, int64_t max_bytes);
  void too_long_characters(const Path& at, int64_t max_characters);
  void too_many(const Path& at, int64_t actual, int64_t max_items);
  void type_invalid(const Path& at, const Shown& value, std::string_view detail);
  void internal(const Path& at, std::string_view detail);
  // Like invalid(), once per message. Does not format the value if there are no messages, which is the usual case.
  template <class T>
  void invalid_each(const Path& at, const T& value, std::span<const std::string> messages) {
    if (messages.empty()) return;
    const Shown& shown = value;
    for (const std::string& message : messages) invalid(at, shown, message);
  }
  // required() for an empty text; otherwise invalid_each() with what `errors_of` finds in it.
  void require_valid(const Path& at, std::string_view text, std::vector<std::string> (*errors_of)(std::string_view),
                     std::string_view detail = {});
  void append(FieldErrors&& others);

  // Drops all errors after the first `count`.
  void cut_to(size_t count) { errors_.resize(count); }

  // 422: `Deployment.apps "web" is invalid: [a, b]`, with every error as a cause.
  Error to_error(std::string_view group, std::string_view kind, std::string_view name) const;

 private:
  void add(std::string_view type, std::string_view prose, const Path& at, const Shown* value, std::string_view detail);
  std::string text_of(const Shown& value, std::string_view field) const;

  const types::Type* type_ = nullptr;
  Value sent_;
  std::vector<Cause> errors_;
};

}  // namespace holdfast::kinds
