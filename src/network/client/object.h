// An object returned by a server, with the memory that holds it: immutable, cheap to copy, safe to share.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "codec/codec.h"
#include "value/value.h"

namespace holdfast::client {

// The field that programs opt out of (docs/opting-out.md).
inline constexpr std::string_view kManagedFields = "metadata.managedFields";

using FieldList = std::shared_ptr<const std::vector<std::string>>;

class Object {
 public:
  Object() = default;
  explicit Object(codec::Document document, FieldList dropped = nullptr)
      : document_(std::make_shared<codec::Document>(std::move(document))), dropped_(std::move(dropped)) {}

  explicit operator bool() const { return document_ != nullptr; }
  const Value& root() const {
    static const Value kNull;
    return document_ == nullptr ? kNull : document_->root();
  }
  const Value* operator->() const { return &root(); }

  std::string_view name() const { return root().text_at("metadata", "name"); }
  std::string_view space() const { return root().text_at("metadata", "namespace"); }
  std::string_view uid() const { return root().text_at("metadata", "uid"); }
  std::string_view resource_version() const { return root().text_at("metadata", "resourceVersion"); }
  // "namespace/name", or the name if there is no namespace.
  std::string key() const {
    return space().empty() ? std::string(name()) : std::string(space()) + "/" + std::string(name());
  }
  std::string json() const { return codec::encode_json(root()); }

  // The fields that were left out when the object was read, whether or not it had them; "*" if only some were kept.
  std::span<const std::string> dropped() const {
    return dropped_ == nullptr ? std::span<const std::string>() : std::span<const std::string>(*dropped_);
  }
  // The object as changed by `change`, which returns a value that may refer to its argument. It lacks the same fields.
  Object edited(const std::function<Value(Arena& arena, const Value& root)>& change) const {
    codec::Document document;
    document.set_root(deep_copy(document.arena(), change(document.arena(), root())));
    return Object(std::move(document), dropped_);
  }

 private:
  std::shared_ptr<const codec::Document> document_;
  FieldList dropped_;
};

// Whether a list of dropped fields has more than managedFields: an object without them must not replace the original.
inline bool lacks_more_than_ownership(std::span<const std::string> dropped) {
  for (const std::string& field : dropped) {
    if (field != kManagedFields) return true;
  }
  return false;
}

}  // namespace holdfast::client
