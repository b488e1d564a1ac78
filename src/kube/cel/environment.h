// The internal state of an Environment. Private to the module.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cel/ast.h"
#include "cel/functions.h"

namespace holdfast::cel {

struct Environment::State {
  Options options;
  std::vector<TypeRef> types;  // Types of the variables.
  std::unordered_map<std::string_view, size_t> by_name;
  std::unordered_set<std::string> dotted_roots;  // First components of dotted names.
  Arena arena{512};

  int find(std::string_view name) const {
    const auto found = by_name.find(name);
    return found == by_name.end() ? -1 : static_cast<int>(found->second);
  }
};

// The name of a chain of selections: "a.b.c". False if `e` is not one.
bool qualified_name(const Expr* e, std::string& out);

// The type denoted by a name ("int", "Object.spec"); null if there is none.
const Type* named_type(TypeMaker& make, std::string_view name, bool mutation);

}  // namespace holdfast::cel
