#include "ownership/path_pattern.h"

#include <optional>
#include <vector>

namespace holdfast::ownership {
namespace {

constexpr std::string_view kAnyItem = "[*]", kAnyMember = ".*";

// Whether a step of a pattern may end before this text.
bool ends_step(std::string_view rest) { return rest.empty() || rest[0] == '.' || rest[0] == '['; }

std::optional<std::string_view> after(std::string_view pattern, std::string_view step) {
  if (!pattern.starts_with(step)) return std::nullopt;
  const std::string_view rest = pattern.substr(step.size());
  return ends_step(rest) ? std::optional(rest) : std::nullopt;
}

// What remains of the pattern below an element that its first step selects.
std::optional<std::string_view> below(std::string_view pattern, const PathElement& element) {
  if (const auto rest = after(pattern, element.is_field() ? kAnyMember : kAnyItem)) return rest;
  if (const auto rest = after(pattern, to_string(element, ShownNumbers::AsRead))) return rest;
  return after(pattern, to_string(element));
}

FieldSet select(Arena& arena, FieldSet set, std::span<const std::string_view> patterns, InsideAtomic inside) {
  SetBuilder builder(arena);
  for (const SetEntry& entry : set.entries()) {
    std::vector<std::string_view> rests;
    bool whole = false;
    for (const std::string_view pattern : patterns) {
      const std::optional<std::string_view> rest = below(pattern, entry.element);
      if (!rest) continue;
      whole = whole || rest->empty();
      rests.push_back(*rest);
    }
    if (rests.empty()) continue;
    if (whole) {
      builder.add(entry.element, entry.member, entry.children());
    } else if (entry.child_count == 0) {
      builder.add(entry.element, entry.member && inside == InsideAtomic::WholeValue, {});
    } else {
      builder.add(entry.element, false, select(arena, entry.children(), rests, inside));
    }
  }
  return builder.close(0);
}

}  // namespace

size_t end_of_brackets(std::string_view text) {
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && text[i] == ']') {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

Result<PathPattern> PathPattern::parse(std::string_view text) {
  const auto refused = [&](std::string_view why) {
    return bad_request("invalid path \"" + std::string(text) + "\": " + std::string(why));
  };
  if (text.size() < 2 || text[0] != '.') return refused("a path begins with a dot and a name, such as .spec.replicas");
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '[') {
      const size_t length = end_of_brackets(text.substr(i));
      if (length == std::string_view::npos) return refused("a bracket is not closed");
      const size_t end = i + length;
      if (end == i + 2) return refused("[] names no item; [*] stands for all of them");
      if (end < text.size() && !ends_step(text.substr(end))) return refused("a dot or a bracket follows an item");
      i = end;
      continue;
    }
    if (text[i] == '.' && (i + 1 == text.size() || text[i + 1] == '.' || text[i + 1] == '[')) {
      return refused("a name is missing after a dot");
    }
    ++i;
  }
  return PathPattern(text);
}

FieldSet selected(Arena& arena, FieldSet set, std::span<const PathPattern> patterns, InsideAtomic inside) {
  std::vector<std::string_view> texts;
  texts.reserve(patterns.size());
  for (const PathPattern& pattern : patterns) texts.emplace_back(pattern.text());
  return select(arena, set, texts, inside);
}

}  // namespace holdfast::ownership
