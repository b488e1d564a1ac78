#include "kinds/difference.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "kinds/field_errors.h"
#include "kinds/internal.h"

namespace holdfast::kinds {
namespace {

using Lines = std::vector<std::string>;

// Like Go's json.MarshalIndent with one space per level.
void print(const Value& value, size_t depth, std::string line, std::string_view end, Lines& lines) {
  const bool list = value.is_list();
  if ((!list && !value.is_map()) || value.count() == 0) {
    lines.push_back(line + Shown(value).text() + std::string(end));
    return;
  }
  lines.push_back(line + (list ? '[' : '{'));
  const std::string indent(depth + 1, ' ');
  size_t left = value.count();
  if (list) {
    for (const Value& item : value.items()) print(item, depth + 1, indent, --left > 0 ? "," : "", lines);
  } else {
    for (const Member& member : value.members()) {
      print(member.value, depth + 1, indent + Shown(member.key).text() + ": ", --left > 0 ? "," : "", lines);
    }
  }
  lines.push_back(std::string(depth, ' ') + (list ? ']' : '}') + std::string(end));
}

struct Match {
  size_t a = 0, b = 0, size = 0;
};

// The matches found by difflib's SequenceMatcher: the longest run first, then those to its left and right.
class Matcher {
 public:
  Matcher(const Lines& a, const Lines& b) : a_(a), b_(b) {
    for (size_t j = 0; j < b.size(); ++j) places_[b[j]].push_back(j);
    // Very frequent lines do not start a match, but may continue one.
    if (b.size() >= 200) {
      std::erase_if(places_, [&](const auto& entry) { return entry.second.size() > b.size() / 100 + 1; });
    }
    find(0, a.size(), 0, b.size());
  }
  const std::vector<Match>& matches() const { return matches_; }

 private:
  void find(size_t a_from, size_t a_to, size_t b_from, size_t b_to) {
    const Match best = longest(a_from, a_to, b_from, b_to);
    if (best.size == 0) return;
    if (a_from < best.a && b_from < best.b) find(a_from, best.a, b_from, best.b);
    if (!matches_.empty() && matches_.back().a + matches_.back().size == best.a &&
        matches_.back().b + matches_.back().size == best.b) {
      matches_.back().size += best.size;
    } else {
      matches_.push_back(best);
    }
    const size_t a_next = best.a + best.size, b_next = best.b + best.size;
    if (a_next < a_to && b_next < b_to) find(a_next, a_to, b_next, b_to);
  }

  Match longest(size_t a_from, size_t a_to, size_t b_from, size_t b_to) const {
    Match best{a_from, b_from, 0};
    std::unordered_map<size_t, size_t> ending, next;  // Length of the run ending at each position of b.
    for (size_t i = a_from; i < a_to; ++i) {
      next.clear();
      if (const auto found = places_.find(a_[i]); found != places_.end()) {
        for (const size_t j : found->second) {
          if (j < b_from) continue;
          if (j >= b_to) break;
          const auto before = j == 0 ? ending.end() : ending.find(j - 1);
          const size_t size = (before == ending.end() ? 0 : before->second) + 1;
          next[j] = size;
          if (size > best.size) best = {i + 1 - size, j + 1 - size, size};
        }
      }
      std::swap(ending, next);
    }
    while (best.a > a_from && best.b > b_from && a_[best.a - 1] == b_[best.b - 1]) {
      best = {best.a - 1, best.b - 1, best.size + 1};
    }
    while (best.a + best.size < a_to && best.b + best.size < b_to && a_[best.a + best.size] == b_[best.b + best.size]) {
      ++best.size;
    }
    return best;
  }

  const Lines &a_, &b_;
  std::unordered_map<std::string_view, std::vector<size_t>, KeyHash> places_;
  std::vector<Match> matches_;
};

struct Change {
  size_t a_from, a_to, b_from, b_to;
};

std::string range_text(size_t from, size_t to) {
  const size_t length = to - from;
  if (length == 1) return std::to_string(from + 1);
  return std::to_string(length == 0 ? from : from + 1) + "," + std::to_string(length);
}

}  // namespace

std::string difference(const types::Type& type, const Value& before, const Value& after) {
  constexpr size_t kContext = 3;
  Arena arena;
  Lines a, b;
  print(internal_form(arena, type, &before), 0, "", "", a);
  print(internal_form(arena, type, &after), 0, "", "", b);
  const Matcher matcher(a, b);

  std::vector<Change> changes;
  size_t a_at = 0, b_at = 0;
  const auto change_until = [&](size_t a_to, size_t b_to) {
    if (a_at < a_to || b_at < b_to) changes.push_back({a_at, a_to, b_at, b_to});
  };
  for (const Match& match : matcher.matches()) {
    change_until(match.a, match.b);
    a_at = match.a + match.size;
    b_at = match.b + match.size;
  }
  change_until(a.size(), b.size());

  std::string text;
  const auto add = [&](char mark, const Lines& lines, size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) text += mark + lines[i] + "\n";
  };
  for (size_t first = 0; first < changes.size();) {
    size_t last = first;
    // Changes whose context overlaps share a hunk.
    while (last + 1 < changes.size() && changes[last + 1].a_from - changes[last].a_to <= 2 * kContext) ++last;
    const size_t lead = std::min(kContext, changes[first].a_from);
    const size_t trail = std::min(kContext, a.size() - changes[last].a_to);
    text += "@@ -" + range_text(changes[first].a_from - lead, changes[last].a_to + trail) + " +" +
            range_text(changes[first].b_from - lead, changes[last].b_to + trail) + " @@\n";
    size_t from = changes[first].a_from - lead;
    for (; first <= last; ++first) {
      add(' ', a, from, changes[first].a_from);
      add('-', a, changes[first].a_from, changes[first].a_to);
      add('+', b, changes[first].b_from, changes[first].b_to);
      from = changes[first].a_to;
    }
    add(' ', a, from, from + trail);
  }
  return text;
}

}  // namespace holdfast::kinds
