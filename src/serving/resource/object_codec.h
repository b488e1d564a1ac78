// Encodes the objects of a resource for the cache and the store, and converts them to trees and back.
//
// The canonical body of a built-in kind is its Protobuf envelope, of a custom resource its JSON; both with
// resourceVersion and without managedFields.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/api_version.h"
#include "base/gates.h"
#include "cache/cache.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::resource {

class ObjectCodec : public cache::Codec {
 public:
  // The stored version. Valid as long as the codec.
  virtual const types::Resource& stored() const = 0;

  // Decodes a canonical body into a tree with apiVersion and kind, without managedFields. Strings point into `body`.
  virtual Result<Value> tree(Arena& arena, std::string_view body) const = 0;
  // Encodes a tree in the stored version as a canonical body, without managedFields. Rejects objects that are nested
  // too deeply, so that everything stored can be decoded again.
  virtual Result<std::string> body_of(Arena& arena, const Value& tree) const = 0;
  // A tree in the stored version as it will be read back: with the defaults of that version, which a request through
  // another version does not store, and without insignificant nulls.
  virtual Value as_read(Arena&, const Value& stored) const { return stored; }
  // The values of field_names() in a tree. Strings are in the tree or in `arena`.
  virtual std::vector<std::string_view> fields_of(Arena& arena, const Value& tree) const = 0;
};

// The stored version of a built-in kind.
const types::Resource& stored_version(const types::Resource& resource);

std::shared_ptr<const ObjectCodec> make_builtin_codec(const types::Resource& stored, const Gates& gates);

// 400 for objects with more than limits::kObjectDepth levels, which body_of() rejects.
Error nested_too_deeply();

// Replaces the resourceVersion of an enveloped object (empty removes it, as in the store).
std::string replace_revision(std::string_view enveloped, std::string_view revision);

// "apps/v1", "v1".
using holdfast::api_version_of;
inline std::string api_version_of(const types::Resource& resource) {
  return api_version_of(resource.group, resource.version);
}

}  // namespace holdfast::resource
