// Compact JSON in, indented JSON out, as Go's MarshalIndent writes it: for answers that leave in pieces.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::render {

class JsonIndenter {
 public:
  // The next piece of one document. A piece ends between two tokens; what is between tokens is not kept.
  void add(std::string_view json, std::string& out);

 private:
  void line(std::string& out) const;

  size_t depth_ = 0;
  bool opened_ = false;  // A map or a list has just begun: whether it is empty shows with the next token.
};

}  // namespace holdfast::render
