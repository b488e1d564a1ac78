#include "base/warnings.h"

#include <optional>

#include "base/text.h"

namespace holdfast {
namespace {

// Quoted for the header; nullopt if the text has control characters or is not UTF-8.
std::optional<std::string> header_of(std::string_view text) {
  std::string out = "299 - \"";
  for (size_t at = 0; at < text.size();) {
    const Rune rune = decode_rune(text, at);
    if (!rune.valid || rune.value < 0x20 || (rune.value >= 0x7f && rune.value < 0xa0)) return std::nullopt;
    if (rune.value == '"' || rune.value == '\\') out += '\\';
    out += text.substr(at, rune.length);
    at += rune.length;
  }
  out += '"';
  return out;
}

struct Cut {
  std::string_view text;
  size_t runes;
};
Cut cut(std::string_view text, size_t max_runes) {
  size_t at = 0, runes = 0;
  while (at < text.size() && runes < max_runes) {
    at += decode_rune(text, at).length;
    ++runes;
  }
  return {text.substr(0, at), runes};
}

}  // namespace

void Warnings::add(std::string_view text) {
  if (full() || text.empty()) return;
  const Cut shown = cut(text, kCutRunes);
  if (!header_of(shown.text)) return;  // Never shown, truncated or not.
  if (!known_.insert(KeyHash{}(text)).second) return;
  texts_.emplace_back(cut(text, kMaxRunes + 1).text);  // A rune too many is enough to see that it does not fit.
  shown_runes_ += shown.runes;
}

std::vector<std::string> Warnings::headers() const {
  size_t total = 0;
  for (const std::string& text : texts_) {
    if (header_of(text)) total += cut(text, text.size()).runes;
  }
  const bool cutting = total > kMaxRunes;
  std::vector<std::string> headers;
  size_t written = 0;
  for (const std::string& text : texts_) {
    if (cutting && written >= kMaxRunes) break;
    const Cut shown = cut(text, cutting ? kCutRunes : text.size());
    std::optional<std::string> header = header_of(shown.text);
    if (!header) continue;
    written += shown.runes;
    headers.push_back(std::move(*header));
  }
  return headers;
}

}  // namespace holdfast
