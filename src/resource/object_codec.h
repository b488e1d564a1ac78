// How the objects of a resource are encoded in the cache and in the store, and converted to trees and back.
//
// The canonical body of a built-in kind is its Protobuf envelope, of a custom resource its JSON; both with
// resourceVersion and without managedFields.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/gates.h"
#include "cache/cache.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::resource {

class ObjectCodec : public cache::Codec {
 public:
  // The version that is stored. Lives as long as the codec.
  virtual const types::Resource& stored() const = 0;

  // A canonical body as a tree with apiVersion and kind, without managedFields. Texts point into `body`.
  virtual Result<Value> tree(Arena& arena, std::string_view body) const = 0;
  // A tree in the stored version as a canonical body; managedFields in it are left out. Refuses what is nested too
  // deeply: whatever is stored can be read again.
  virtual Result<std::string> body_of(Arena& arena, const Value& tree) const = 0;
  // A tree in the stored version as it will be read back: with the defaults of that version, which a request through
  // another version does not store, and without nulls that mean nothing.
  virtual Value as_read(Arena&, const Value& stored) const { return stored; }
  // The values of field_names() in a tree. Strings are in it or in `arena`.
  virtual std::vector<std::string_view> fields_of(Arena& arena, const Value& tree) const = 0;
};

// The stored version of a built-in kind.
const types::Resource& stored_version(const types::Resource& resource);

std::shared_ptr<const ObjectCodec> make_builtin_codec(const types::Resource& stored, const Gates& gates);

// 400: of an object of more than limits::kObjectDepth levels, which body_of() does not take.
Error nested_too_deeply();

// An enveloped object with another resourceVersion (empty: none, as the store has it).
std::string replace_revision(std::string_view enveloped, std::string_view revision);

// "apps/v1", "v1".
std::string api_version_of(std::string_view group, std::string_view version);
inline std::string api_version_of(const types::Resource& resource) {
  return api_version_of(resource.group, resource.version);
}

}  // namespace holdfast::resource
