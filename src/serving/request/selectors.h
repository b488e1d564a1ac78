// Parses label and field selectors into the requirements matched by the cache.
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

// "a=b,c in (d,e),!f". 400 with Kubernetes' message.
Result<std::vector<cache::LabelRequirement>> parse_label_selector(std::string_view text);
// The selector as text, requirements sorted by key, as Kubernetes prints it in Scale and authorization.
std::string label_selector_text(const std::vector<cache::LabelRequirement>& requirements);

// A term of "metadata.name=a,spec.nodeName!=b". 400 if the text is invalid.
struct FieldTerm {
  std::string_view field;  // View into the text.
  bool equal;
  std::string value;
};
Result<std::vector<FieldTerm>> parse_field_terms(std::string_view text);
// The spec.nodeName that the first term for it requires; empty if none does.
std::string_view required_node(const std::vector<FieldTerm>& terms);
// 400 for fields that the resource does not support.
Result<std::vector<cache::FieldRequirement>> resolve_fields(const std::vector<FieldTerm>& terms,
                                                            const kinds::SelectableFields& fields);

// The metadata.name required by a field selector, if any.
std::optional<std::string> required_name(const std::vector<cache::FieldRequirement>& fields);

}  // namespace holdfast::request
