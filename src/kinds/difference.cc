#include "kinds/difference.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "codec/json.h"

namespace holdfast::kinds {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (true) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string difference(const Value& before, const Value& after) {
  constexpr size_t kContext = 3;
  Arena arena;
  const std::string a_text = codec::encode_json_pretty(before), b_text = codec::encode_json_pretty(after);
  const std::vector<std::string_view> a = lines_of(a_text), b = lines_of(b_text);
  size_t head = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  size_t tail = 0;
  while (tail < a.size() - head && tail < b.size() - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  const size_t first = head > kContext ? head - kContext : 0;
  const size_t a_end = a.size() - tail, b_end = b.size() - tail;
  const size_t after_context = std::min(kContext, tail);
  std::string text = "@@ -" + std::to_string(first + 1) + "," + std::to_string(a_end + after_context - first) + " +" +
                     std::to_string(first + 1) + "," + std::to_string(b_end + after_context - first) + " @@\n";
  const auto add = [&](char mark, std::string_view line) {
    text += mark;
    text += line;
    text += '\n';
  };
  for (size_t i = first; i < head; ++i) add(' ', a[i]);
  for (size_t i = head; i < a_end; ++i) add('-', a[i]);
  for (size_t i = head; i < b_end; ++i) add('+', b[i]);
  for (size_t i = a_end; i < a_end + after_context; ++i) add(' ', a[i]);
  return text;
}

}  // namespace holdfast::kinds
