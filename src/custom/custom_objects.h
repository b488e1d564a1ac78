// Custom resources on their way through the API: bodies, rules and stored form, all by their definition.
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

// JSON in the store and in the cache, members sorted as Kubernetes prints plain maps.
std::shared_ptr<const resource::ObjectCodec> make_custom_codec(std::shared_ptr<const crd::Definition> definition);

// `conversions` is null where versions differ in their name alone.
std::shared_ptr<const resource::ObjectRules> custom_rules(std::shared_ptr<const crd::Definition> definition,
                                                          const crd::Version& version,
                                                          std::shared_ptr<Conversions> conversions);

// What kinds::rules_of says of a built-in kind.
kinds::Rules custom_kind_rules(const crd::Version& version);

// A decoded body or patched object in canonical form: pruned, without meaningless nulls, metadata as its type leaves
// it. What the schema does not know goes to `unknown`: unknown field "spec.x". An error is one of the metadata's, in
// the words of Go's decoder.
Result<Value> normalize_custom(Arena& arena, const crd::Version& version, const Value& object, const Gates& gates,
                               std::vector<std::string>* unknown);

// Only the metadata: what apply made is neither pruned nor freed of nulls.
Result<Value> with_typed_metadata(Arena& arena, const crd::Version& version, const Value& object, const Gates& gates);

}  // namespace holdfast::custom
