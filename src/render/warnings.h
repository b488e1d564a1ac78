// Warning headers of an answer: each text once, cut when there is too much of it, as Kubernetes does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::render {

class Warnings {
 public:
  void add(std::string_view text);
  bool empty() const { return texts_.empty(); }
  // Values of Warning headers: 299 - "text".
  std::vector<std::string> headers() const;

 private:
  std::vector<std::string> texts_;
};

}  // namespace holdfast::render
