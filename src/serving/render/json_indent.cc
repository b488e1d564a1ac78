#include "render/json_indent.h"

#include <cassert>
#include <cstring>

#include "base/ascii.h"

namespace holdfast::render {
namespace {

// Position after the closing quote of the string that begins at `at`.
size_t string_end(std::string_view json, size_t at) {
  size_t from = at + 1;
  while (true) {
    const void* quote = std::memchr(json.data() + from, '"', json.size() - from);
    if (quote == nullptr) return json.size();  // Not JSON: stored fields are shown as they are found.
    const size_t end = static_cast<const char*>(quote) - json.data();
    size_t backslashes = 0;
    while (json[end - 1 - backslashes] == '\\') ++backslashes;
    if (backslashes % 2 == 0) return end + 1;
    from = end + 1;
  }
}

bool is_word(char c) { return is_digit(c) || is_lower(c) || c == '-' || c == '+' || c == '.' || c == 'E'; }

}  // namespace

void JsonIndenter::line(std::string& out) const {
  out += '\n';
  out.append(2 * depth_, ' ');
}

void JsonIndenter::add(std::string_view json, std::string& out) {
  for (size_t at = 0; at < json.size();) {
    const char c = json[at];
    if (c == '}' || c == ']') {
      if (depth_ > 0) --depth_;
      if (!opened_) line(out);
      opened_ = false;
      out += c;
      ++at;
      continue;
    }
    if (c == ',') {
      out += c;
      line(out);
      ++at;
      continue;
    }
    if (c == ':') {
      out += ": ";
      ++at;
      continue;
    }
    const bool opens = c == '{' || c == '[';
    if (!opens && c != '"' && !is_word(c)) {
      ++at;
      continue;
    }
    if (opened_) line(out);
    opened_ = opens;
    size_t end = at + 1;
    if (opens) {
      ++depth_;
    } else if (c == '"') {
      end = string_end(json, at);
    } else {
      while (end < json.size() && is_word(json[end])) ++end;
    }
    out.append(json, at, end - at);
    at = end;
  }
}

}  // namespace holdfast::render
