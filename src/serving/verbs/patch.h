// Shared by patches of objects and of their Scale.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "write/write.h"

namespace holdfast::verbs {

struct DecodedPatch {
  request::PatchType type = request::PatchType::Merge;
  Value value;
  std::vector<std::string> findings;  // Field validation errors in the patch itself.
  // The patch may read or change metadata.managedFields, so they must be part of the patched document.
  bool accesses_managed_fields = false;
};
// 400.
Result<DecodedPatch> decode_patch(call::Call& call, request::PatchType type, std::string_view bytes,
                                  request::FieldValidation validation);
Result<Value> apply_patch(Arena& arena, const DecodedPatch& patch, const Value& object, const types::Type& type);
// Converts the patched tree to an object of the type. metadata.options is removed, and the manager it declares is
// stored in `options`. 422 for the field `patch`; `shown` returns the value to print in the error (shown_in_errors()).
Result<Value> typed_from_patch(call::Call& call, const DecodedPatch& patch, const Value& patched,
                               const std::function<Value()>& shown, const types::Type& type,
                               request::WriteOptions& options);
// The value to print in errors about a patch of `object`: the patched document, or the rest of a strategic merge patch.
Value shown_in_errors(Arena& arena, const DecodedPatch& patch, const Value& object, const ownership::Managed& managed,
                      bool custom, const types::Type& type);
// The object with its managedFields expanded to a tree that patches can access.
Value with_visible_ownership(Arena& arena, const Value& object, const ownership::Managed& managed, bool custom);

struct DecodedConfig {
  Value value;
  std::vector<std::string> duplicates;  // One line per duplicate YAML key.
};
// The options of an apply, whose manager may be declared by the configuration itself. Fills in `config`. 400, 422.
Result<request::WriteOptions> parse_apply_options(call::Call& call, request::PatchType type, std::string_view bytes,
                                                  DecodedConfig& config);
Result<Unit> report_config_findings(call::Call& call, const DecodedConfig& config, request::FieldValidation validation);
// Converts the result of an apply to an object of the type. Like Kubernetes, 500 without a reason. `live` is the object
// it was built from, if that is already of the type.
Result<Value> typed_from_config(call::Call& call, const Value& object, const Value& config, const types::Type& type,
                                const Value* live = nullptr);

Task<Result<write::NextObject>> failed_change(Error error);

}  // namespace holdfast::verbs
