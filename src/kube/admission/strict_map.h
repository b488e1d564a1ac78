// Strictly decodes one map of a configuration: every member must be known and of the expected type. As in Go's decoder,
// null means absent. Private to the module.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "value/value.h"

namespace holdfast::admission {

class StrictMap {
 public:
  // Errors are added to `problems`. `at` is the path of the map; empty for the document itself.
  StrictMap(const Value& map, std::string at, std::vector<std::string>& problems);

  std::string text(std::string_view name);
  std::vector<std::string> texts(std::string_view name);
  std::optional<int64_t> number(std::string_view name);
  // A map from any names to strings.
  std::map<std::string, std::string, std::less<>> texts_by_name(std::string_view name);
  StrictMap map(std::string_view name);
  std::vector<StrictMap> maps(std::string_view name);
  const Value* any(std::string_view name);  // Null if absent.

  // Reports the members that were not read. Call last.
  void finish();

 private:
  std::string path_of(std::string_view name) const;
  void complain(const std::string& path, std::string_view wanted);

  Value map_;
  std::string at_;
  std::vector<std::string>* problems_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace holdfast::admission
