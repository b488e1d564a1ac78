// Input: method, path and query, separated by newlines. Never crashes, and everything authorization sees is part of the
// input.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "request/request.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t first = std::min(text.find('\n'), text.size());
  const size_t second = std::min(text.find('\n', first + 1), text.size());
  const std::string_view method = text.substr(0, first);
  const std::string_view path = first < text.size() ? text.substr(first + 1, second - first - 1) : std::string_view();
  const std::string_view query = second < text.size() ? text.substr(second + 1) : std::string_view();
  const holdfast::request::RequestInfo info(method, path, query);
  if (info.target().resource.size() > path.size() || info.name().size() > text.size()) std::abort();
  return 0;
}
