#include "cache/selector_index.h"

#include <algorithm>
#include <iterator>

#include "base/ascii.h"
#include "cache/bodies.h"

namespace holdfast::cache {
namespace {

using Operator = LabelRequirement::Operator;

// Selectors with fewer requirements and values than this are not worth an index.
constexpr size_t kMany = 32;

// Decimal, like Go's ParseInt.
std::optional<int64_t> parse_integer(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (text.empty()) return std::nullopt;
  int64_t n = 0;
  for (char c : text) {
    if (!is_digit(c)) return std::nullopt;
    if (__builtin_mul_overflow(n, 10, &n) || __builtin_sub_overflow(n, c - '0', &n)) return std::nullopt;
  }
  if (negative) return n;
  if (n == INT64_MIN) return std::nullopt;
  return -n;
}

bool compares(const LabelRequirement& requirement, std::string_view value) {
  if (requirement.values.size() != 1) return false;
  const std::optional<int64_t> mine = parse_integer(value), bound = parse_integer(requirement.values[0]);
  if (!mine || !bound) return false;
  return requirement.op == Operator::Greater ? *mine > *bound : *mine < *bound;
}

bool holds(const LabelRequirement& requirement, const LabelSet* labels) {
  const std::optional<std::string_view> value = find_label(labels, requirement.key);
  const auto among = [&] {
    return std::find(requirement.values.begin(), requirement.values.end(), *value) != requirement.values.end();
  };
  switch (requirement.op) {
    case Operator::Exists:
      return value.has_value();
    case Operator::Absent:
      return !value;
    case Operator::In:
      return value && among();
    case Operator::NotIn:
      return !value || !among();
    case Operator::Greater:
    case Operator::Less:
      return value && compares(requirement, *value);
  }
  return false;
}

std::string_view value_of(const Entry& entry, int field) {
  if (field == FieldRequirement::kName) return entry.name();
  if (field == FieldRequirement::kNamespace) return entry.namespace_name();
  return entry.field(static_cast<size_t>(field));
}

std::vector<std::string_view> sorted(std::vector<std::string_view> values) {
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace

bool labels_hold(const std::vector<LabelRequirement>& requirements, const LabelSet* labels) {
  return std::all_of(requirements.begin(), requirements.end(),
                     [labels](const LabelRequirement& r) { return holds(r, labels); });
}

bool fields_hold(const std::vector<FieldRequirement>& requirements, const Entry& entry) {
  return std::all_of(requirements.begin(), requirements.end(),
                     [&entry](const FieldRequirement& r) { return (value_of(entry, r.field) == r.value) == r.equal; });
}

std::unique_ptr<const SelectorIndex> SelectorIndex::of(const Selector& selector) {
  size_t count = selector.labels.size() + selector.fields.size();
  for (const LabelRequirement& requirement : selector.labels) count += requirement.values.size();
  if (count < kMany) return nullptr;
  return std::unique_ptr<const SelectorIndex>(new SelectorIndex(selector));
}

SelectorIndex::SelectorIndex(const Selector& selector) {
  for (const LabelRequirement& requirement : selector.labels) {
    About& about = labels_[requirement.key];
    std::vector<std::string_view> values(requirement.values.begin(), requirement.values.end());
    switch (requirement.op) {
      case Operator::Exists:
        about.required = true;
        break;
      case Operator::Absent:
        about.forbidden = true;
        break;
      case Operator::In:
        about.required = true;
        about.require(std::move(values));
        break;
      case Operator::NotIn:
        about.not_in.insert(about.not_in.end(), values.begin(), values.end());
        break;
      case Operator::Greater:
      case Operator::Less:
        about.required = true;
        about.others.push_back(&requirement);
        break;
    }
  }
  for (auto& [key, about] : labels_) {
    about.sort();
    required_labels_ += about.required ? 1 : 0;
  }
  for (const FieldRequirement& requirement : selector.fields) {
    auto found = std::find_if(fields_.begin(), fields_.end(),
                              [&requirement](const auto& one) { return one.first == requirement.field; });
    if (found == fields_.end()) found = fields_.insert(fields_.end(), {requirement.field, About()});
    if (requirement.equal) {
      found->second.require({requirement.value});
    } else {
      found->second.not_in.push_back(requirement.value);
    }
  }
  for (auto& [field, about] : fields_) about.sort();
}

void SelectorIndex::About::require(std::vector<std::string_view> values) {
  values = sorted(std::move(values));
  if (!in) {
    in = std::move(values);
    return;
  }
  std::vector<std::string_view> both;
  std::set_intersection(in->begin(), in->end(), values.begin(), values.end(), std::back_inserter(both));
  in = std::move(both);
}

void SelectorIndex::About::sort() { not_in = sorted(std::move(not_in)); }

bool SelectorIndex::About::holds(std::string_view value) const {
  return (!in || std::binary_search(in->begin(), in->end(), value)) &&
         !std::binary_search(not_in.begin(), not_in.end(), value) &&
         std::all_of(others.begin(), others.end(), [value](const LabelRequirement* r) { return compares(*r, value); });
}

bool SelectorIndex::labels_hold(const LabelSet* labels) const {
  size_t required = 0;
  bool all = true;
  for_each_label(labels, [&](std::string_view key, std::string_view value) {
    const auto found = labels_.find(key);
    if (found == labels_.end()) return;
    required += found->second.required ? 1 : 0;
    all = all && !found->second.forbidden && found->second.holds(value);
  });
  return all && required == required_labels_;
}

bool SelectorIndex::fields_hold(const Entry& entry) const {
  return std::all_of(fields_.begin(), fields_.end(),
                     [&entry](const auto& one) { return one.second.holds(value_of(entry, one.first)); });
}

}  // namespace holdfast::cache
