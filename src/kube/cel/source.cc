#include <algorithm>

#include "base/text.h"
#include "cel/ast.h"

namespace holdfast::cel {

Source::Source(std::string_view text) : text_(text) {
  for (size_t at = 0; at < text_.size();) {
    if (static_cast<unsigned char>(text_[at]) < 0x80) {
      if (text_[at] == '\n') {
        line_starts_.push_back(code_points_ + 1);
        line_start_bytes_.push_back(static_cast<uint32_t>(at + 1));
      }
      ++at;
    } else {
      at += decode_rune(text_, at).length;
    }
    ++code_points_;
  }
}

Source::Location Source::location(int32_t offset) const {
  if (text_.empty()) return {1, -1};  // Upstream's lines of an empty text begin after it.
  const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const auto line = static_cast<int32_t>(next - line_starts_.begin());
  return {line + 1, line == 0 ? offset : offset - line_starts_[line - 1]};
}

std::string Source::display(Location at, std::string_view message) const {
  constexpr size_t kMaxSnippetBytes = 16384;
  std::string out =
      "ERROR: <input>:" + std::to_string(at.line) + ":" + std::to_string(at.column + 1) + ": " + std::string(message);
  if (at.line < 1 || at.line > static_cast<int32_t>(line_starts_.size()) + 1 || text_.empty()) return out;
  const size_t start = at.line == 1 ? 0 : line_start_bytes_[at.line - 2];
  const size_t end =
      at.line <= static_cast<int32_t>(line_start_bytes_.size()) ? line_start_bytes_[at.line - 1] - 1 : text_.size();
  std::string line;  // Each invalid UTF-8 byte becomes one replacement character.
  for (size_t i = start; i < end;) {
    const Rune rune = decode_rune(text_, i);
    append_utf8(line, rune.value == '\t' ? ' ' : rune.value);
    i += rune.length;
  }
  if (line.size() > kMaxSnippetBytes) return out;
  out += "\n | " + line + "\n | ";
  size_t byte = 0;
  for (int32_t i = 0; i < at.column && byte < line.size(); ++i) {
    const size_t length = decode_rune(line, byte).length;
    out += length > 1 ? "\xef\xbc\x8e" : ".";  // U+FF0E is as wide as the character above it.
    byte += length;
  }
  out += byte < line.size() && decode_rune(line, byte).length > 1 ? "\xef\xbc\xbe" : "^";
  return out;
}

std::string Issues::text() const {
  std::vector<const Issue*> sorted;
  sorted.reserve(issues_.size());
  for (const Issue& issue : issues_) sorted.push_back(&issue);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Issue* a, const Issue* b) {
    return a->at.line != b->at.line ? a->at.line < b->at.line : a->at.column < b->at.column;
  });
  std::string out;
  for (const Issue* issue : sorted) {
    if (!out.empty()) out += '\n';
    out += source_.display(issue->at, issue->message);
  }
  if (count_ > kMaxReported) out += "\n" + std::to_string(count_ - kMaxReported) + " more errors were truncated";
  return out;
}

}  // namespace holdfast::cel
