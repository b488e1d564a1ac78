// Converts compact JSON to indented JSON as Go's MarshalIndent writes it, for streamed responses.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::render {

class JsonIndenter {
 public:
  // Appends the next chunk of the document. Chunks must end between tokens; whitespace between tokens is dropped.
  void add(std::string_view json, std::string& out);

 private:
  void line(std::string& out) const;

  size_t depth_ = 0;
  bool opened_ = false;  // Just after '{' or '[': the next token decides whether it is empty.
};

}  // namespace holdfast::render
