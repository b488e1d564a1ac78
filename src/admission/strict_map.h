// Reads one map of a configuration: every member must be known, and of the form that is asked for. Null means absent,
// as for Go's decoder. Private to the module.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "value/value.h"

namespace holdfast::admission {

class StrictMap {
 public:
  // What is wrong goes to `problems`. `at` is the path of the map; empty: the document itself.
  StrictMap(const Value& map, std::string at, std::vector<std::string>& problems);

  std::string text(std::string_view name);
  std::vector<std::string> texts(std::string_view name);
  StrictMap map(std::string_view name);
  std::vector<StrictMap> maps(std::string_view name);
  const Value* any(std::string_view name);  // Null: absent.

  // Reports the members that nobody asked for. Call it last.
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
