// Values in the store that are in another version than the one in which they would be written today.
#pragma once

#include <string>
#include <string_view>

#include "resource/object_codec.h"

namespace holdfast::resource {

// What a stored value says that it is; empty if it cannot be decoded.
struct StoredType {
  std::string api_version, kind;
};
StoredType stored_type(std::string_view value);

// Implemented by the codecs of all kinds, built-in and custom. Such values are read, and stored again by a write even
// if that changes nothing: like Kubernetes, so that objects can be migrated by writing them back as they are.
class OutdatedValues {
 public:
  virtual bool is_outdated(std::string_view stored) const = 0;
  // False if no such value has been decoded so far: then nothing needs to be examined.
  virtual bool has_read_outdated() const = 0;

 protected:
  ~OutdatedValues() = default;
};
// Null if the codec does not implement it.
const OutdatedValues* outdated_values(const ObjectCodec& codec);

// The version and kind of a value in a version that is no longer served, as "policy/v1beta1 PodDisruptionBudget"; empty
// for all others.
std::string outdated_version(std::string_view value);

}  // namespace holdfast::resource
