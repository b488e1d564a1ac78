#include "kinds/difference.h"

#include <algorithm>
#include <cstdint>
#include <optional>
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
//
// Its work is cubic in the number of lines. Beyond kSteps, which no text of less than 200 lines needs, it is bounded by
// kStepsPerLine: what has not been compared by then counts as different.
class Matcher {
 public:
  Matcher(const Lines& a, const Lines& b) : a_(a), b_(b), steps_left_(kSteps + kStepsPerLine * (a.size() + b.size())) {
    for (uint32_t j = 0; j < b.size(); ++j) places_[b[j]].push_back(j);
    // Very frequent lines do not start a match, but may continue one.
    if (b.size() >= 200) {
      std::erase_if(places_, [&](const auto& entry) { return entry.second.size() > b.size() / 100 + 1; });
    }
    for (const std::string& line : a) {
      const auto found = places_.find(line);
      places_of_.push_back(found == places_.end() ? nullptr : &found->second);
    }
    for (Runs& runs : runs_) {
      runs.row.resize(b.size());
      runs.length.resize(b.size());
    }
    find();
  }
  const std::vector<Match>& matches() const { return matches_; }

 private:
  static constexpr uint64_t kSteps = 200 * 200 * 200, kStepsPerLine = 100;

  struct Range {
    size_t a_from, a_to, b_from, b_to;
    bool empty() const { return a_from >= a_to || b_from >= b_to; }
  };
  // The length of the run of equal lines that ends at each position of b and at one position of a, the row.
  struct Runs {
    std::vector<uint32_t> row, length;
  };

  void find() {
    // Either a range still to be searched, or a match whose left side has been.
    std::vector<std::pair<Range, std::optional<Match>>> open;
    open.push_back({{0, a_.size(), 0, b_.size()}, {}});
    while (!open.empty()) {
      const auto [range, found] = open.back();
      open.pop_back();
      if (found) {
        add(*found);
        continue;
      }
      if (range.empty()) continue;
      const Match best = longest(range);
      if (best.size == 0) continue;
      open.push_back({{best.a + best.size, range.a_to, best.b + best.size, range.b_to}, {}});
      open.push_back({{}, best});
      open.push_back({{range.a_from, best.a, range.b_from, best.b}, {}});
    }
  }

  void add(const Match& match) {
    if (!matches_.empty() && matches_.back().a + matches_.back().size == match.a &&
        matches_.back().b + matches_.back().size == match.b) {
      matches_.back().size += match.size;
    } else {
      matches_.push_back(match);
    }
  }

  bool spend(uint64_t steps) {
    if (steps_left_ < steps) {
      steps_left_ = 0;
      return false;
    }
    steps_left_ -= steps;
    return true;
  }

  Match longest(const Range& range) {
    Match best{range.a_from, range.b_from, 0};
    ++row_;  // No run continues one of another range.
    for (size_t i = range.a_from; i < range.a_to; ++i) {
      if (!spend(1)) return {};
      ++row_;
      if (places_of_[i] == nullptr) continue;
      const std::vector<uint32_t>& places = *places_of_[i];
      const auto first = std::lower_bound(places.begin(), places.end(), range.b_from);
      const auto last = std::lower_bound(first, places.end(), range.b_to);
      if (!spend(static_cast<uint64_t>(last - first))) return {};
      Runs &here = runs_[row_ % 2], &before = runs_[(row_ - 1) % 2];
      for (auto place = first; place != last; ++place) {
        const uint32_t j = *place;
        const bool continues = j > 0 && before.row[j - 1] == row_ - 1;
        const uint32_t size = (continues ? before.length[j - 1] : 0) + 1;
        here.row[j] = row_;
        here.length[j] = size;
        if (size > best.size) best = {i + 1 - size, j + 1 - size, size};
      }
    }
    while (best.a > range.a_from && best.b > range.b_from && a_[best.a - 1] == b_[best.b - 1]) {
      best = {best.a - 1, best.b - 1, best.size + 1};
    }
    while (best.a + best.size < range.a_to && best.b + best.size < range.b_to &&
           a_[best.a + best.size] == b_[best.b + best.size]) {
      ++best.size;
    }
    return best;
  }

  const Lines &a_, &b_;
  std::unordered_map<std::string_view, std::vector<uint32_t>, KeyHash> places_;  // In b, by line.
  std::vector<const std::vector<uint32_t>*> places_of_;                          // The same by position in a.
  std::vector<Match> matches_;
  uint64_t steps_left_;
  Runs runs_[2];
  uint32_t row_ = 0;  // Counts all rows of all ranges.
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
