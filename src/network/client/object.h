// An object returned by a server, with the memory that holds it: immutable, cheap to copy, safe to share.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "codec/codec.h"
#include "value/value.h"

namespace holdfast::client {

class Object {
 public:
  Object() = default;
  explicit Object(codec::Document document) : document_(std::make_shared<codec::Document>(std::move(document))) {}

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

 private:
  std::shared_ptr<const codec::Document> document_;
};

}  // namespace holdfast::client
