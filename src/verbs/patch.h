// What patches of objects and of their Scale share.
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
  std::vector<std::string> findings;  // Of field validation, in the patch itself.
  // It may look at or change metadata.managedFields, which are then part of what is patched.
  bool sees_ownership = false;
};
// 400.
Result<DecodedPatch> decode_patch(call::Call& call, request::PatchType type, std::string_view bytes,
                                  request::FieldValidation validation);
Result<Value> apply_patch(Arena& arena, const DecodedPatch& patch, const Value& object, const types::Type& type);
// The patched tree as an object of the type, without metadata.options: the manager that they declare goes to
// `options`. 422 with the field `patch`; `shown` gives what the error prints (shown_in_errors()).
Result<Value> typed_from_patch(call::Call& call, const DecodedPatch& patch, const Value& patched,
                               const std::function<Value()>& shown, const types::Type& type,
                               request::WriteOptions& options);
// What an error shows of a patch to `object`: the patched document, or what is left of a strategic merge patch.
Value shown_in_errors(Arena& arena, const DecodedPatch& patch, const Value& object, const ownership::Managed& managed,
                      bool custom, const types::Type& type);
// The object with its managedFields as a tree that patches can walk.
Value with_visible_ownership(Arena& arena, const Value& object, const ownership::Managed& managed, bool custom);

struct DecodedConfig {
  Value value;
  std::vector<std::string> duplicates;  // YAML keys given twice, as lines.
};
// Options of an apply, whose manager the configuration itself may name. Fills in `config`. 400, 422.
Result<request::WriteOptions> parse_apply_options(call::Call& call, request::PatchType type, std::string_view bytes,
                                                  DecodedConfig& config);
Result<Unit> report_config_findings(call::Call& call, const DecodedConfig& config, request::FieldValidation validation);
// What an apply made, as an object of the type. 500 without a reason, as Kubernetes answers. `live`: what it was made
// from, if that is of the type already.
Result<Value> typed_from_config(call::Call& call, const Value& object, const Value& config, const types::Type& type,
                                const Value* live = nullptr);

Task<Result<write::NextObject>> failed_change(Error error);

}  // namespace holdfast::verbs
