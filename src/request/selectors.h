// Label and field selectors as text, parsed into what the cache matches with.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cache/cache.h"
#include "kinds/kinds.h"

namespace holdfast::request {

// "a=b,c in (d,e),!f". 400 in Kubernetes' words.
Result<std::vector<cache::LabelRequirement>> parse_label_selector(std::string_view text);
// The selector written out again, requirements by key, as Kubernetes prints it in Scale and authorization.
std::string label_selector_text(const std::vector<cache::LabelRequirement>& requirements);

// "metadata.name=a,spec.nodeName!=b" parsed: 400 if it is invalid.
struct FieldTerm {
  std::string_view field;  // Of the text.
  bool equal;
  std::string value;
};
Result<std::vector<FieldTerm>> parse_field_terms(std::string_view text);
// 400 for fields that a resource does not select by.
Result<std::vector<cache::FieldRequirement>> resolve_fields(const std::vector<FieldTerm>& terms,
                                                            const kinds::SelectableFields& fields);

// The value of metadata.name that a field selector demands, if it demands one.
std::optional<std::string> name_demanded(const std::vector<cache::FieldRequirement>& fields);

}  // namespace holdfast::request
