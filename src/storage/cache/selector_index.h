// A selector with thousands of requirements or values, prepared so that an object is compared with it in a time that
// depends on the object's labels: a request line of a megabyte would otherwise be walked through for every object of a
// list, and, for a watch, at every event under the lock of the cache.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/cache.h"

namespace holdfast::cache {

// Whether the requirements hold, one after the other.
bool labels_hold(const std::vector<LabelRequirement>& requirements, const LabelSet* labels);
bool fields_hold(const std::vector<FieldRequirement>& requirements, const Entry& entry);

class SelectorIndex {
 public:
  // Null if the selector is short: those above are faster then. `selector` must outlive the index.
  static std::unique_ptr<const SelectorIndex> of(const Selector& selector);

  bool labels_hold(const LabelSet* labels) const;
  bool fields_hold(const Entry& entry) const;

 private:
  explicit SelectorIndex(const Selector& selector);

  // Everything that is required of one label or field.
  struct About {
    bool required = false;   // It must be there.
    bool forbidden = false;  // It must not.
    // One of these, if set, and none of those; sorted.
    std::optional<std::vector<std::string_view>> in;
    std::vector<std::string_view> not_in;
    std::vector<const LabelRequirement*> others;  // Comparisons of numbers.

    void require(std::vector<std::string_view> values);
    void sort();
    bool holds(std::string_view value) const;
  };
  std::map<std::string_view, About> labels_;
  size_t required_labels_ = 0;
  std::vector<std::pair<int, About>> fields_;  // There are few fields.
};

}  // namespace holdfast::cache
