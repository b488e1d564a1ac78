// How custom objects are decoded, validated and stored, according to their definition.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "crd/crd.h"
#include "resource/object_codec.h"
#include "resource/object_rules.h"

namespace holdfast::custom {

class Conversions;

// JSON in the store and in the cache, with sorted members as in Kubernetes' unstructured maps.
std::shared_ptr<const resource::ObjectCodec> make_custom_codec(std::shared_ptr<const crd::Definition> definition);

// `conversions` is null if versions differ only in their name (strategy None).
std::shared_ptr<const resource::ObjectRules> custom_rules(std::shared_ptr<const crd::Definition> definition,
                                                          const crd::Version& version,
                                                          std::shared_ptr<Conversions> conversions);

// The equivalent of kinds::rules_of for custom kinds.
kinds::Rules custom_kind_rules(const crd::Version& version);

// Converts a decoded body or patched object to canonical form: pruned, without insignificant nulls, metadata as its Go
// type encodes it. Unknown fields are added to `unknown`: unknown field "spec.x". Errors concern the metadata, with the
// messages of Go's decoder.
Result<Value> normalize_custom(Arena& arena, const crd::Version& version, const Value& object, const Gates& gates,
                               std::vector<std::string>* unknown);

// Same for the metadata only: the result of an apply is neither pruned nor stripped of nulls.
Result<Value> with_typed_metadata(Arena& arena, const crd::Version& version, const Value& object, const Gates& gates);

}  // namespace holdfast::custom
