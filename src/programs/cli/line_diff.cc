#include "cli/line_diff.h"

#include <algorithm>

namespace holdfast::cli {

std::vector<DiffLine> diff_lines(std::span<const std::string> before, std::span<const std::string> after) {
  using Kind = DiffLine::Kind;
  const auto n = static_cast<ptrdiff_t>(before.size()), m = static_cast<ptrdiff_t>(after.size());
  const ptrdiff_t most = n + m;
  // The furthest x on each diagonal (k = x - y), with a copy per number of changes for backtracking.
  std::vector<ptrdiff_t> reach(static_cast<size_t>(2 * most + 2), 0);
  std::vector<std::vector<ptrdiff_t>> history;
  const auto at = [&](std::vector<ptrdiff_t>& v, ptrdiff_t k) -> ptrdiff_t& {
    return v[static_cast<size_t>(k + most)];
  };
  ptrdiff_t changes = 0;
  for (bool found = false; !found; ++changes) {
    history.push_back(reach);
    for (ptrdiff_t k = -changes; k <= changes && !found; k += 2) {
      const bool down = k == -changes || (k != changes && at(reach, k - 1) < at(reach, k + 1));
      ptrdiff_t x = down ? at(reach, k + 1) : at(reach, k - 1) + 1;
      ptrdiff_t y = x - k;
      while (x < n && y < m && before[static_cast<size_t>(x)] == after[static_cast<size_t>(y)]) ++x, ++y;
      at(reach, k) = x;
      found = x >= n && y >= m;
    }
  }
  std::vector<DiffLine> lines;
  ptrdiff_t x = n, y = m;
  const auto add = [&](Kind kind) { lines.push_back({kind, static_cast<size_t>(x), static_cast<size_t>(y)}); };
  for (ptrdiff_t d = changes - 1; d >= 0; --d) {
    std::vector<ptrdiff_t>& v = history[static_cast<size_t>(d)];
    const ptrdiff_t k = x - y;
    const bool down = k == -d || (k != d && at(v, k - 1) < at(v, k + 1));
    const ptrdiff_t from_k = down ? k + 1 : k - 1;
    const ptrdiff_t from_x = d == 0 ? 0 : at(v, from_k), from_y = d == 0 ? 0 : from_x - from_k;
    while (x > from_x && y > from_y) {
      --x, --y;
      add(Kind::Same);
    }
    if (d == 0) break;
    if (down) {
      --y;
      add(Kind::Added);
    } else {
      --x;
      add(Kind::Removed);
    }
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

std::vector<Hunk> hunks(std::span<const DiffLine> lines) {
  constexpr size_t kContext = 3;
  std::vector<Hunk> found;
  for (size_t i = 0; i < lines.size();) {
    if (lines[i].kind == DiffLine::Kind::Same) {
      ++i;
      continue;
    }
    const size_t begin = i > kContext ? i - kContext : 0;
    // Extend the hunk to the last change that is close enough to the previous one.
    size_t last = i;
    for (size_t j = i; j < lines.size() && j <= last + 2 * kContext + 1; ++j) {
      if (lines[j].kind != DiffLine::Kind::Same) last = j;
    }
    const size_t end = std::min(lines.size(), last + kContext + 1);
    size_t old_count = 0, new_count = 0;
    for (const DiffLine& line : lines.subspan(begin, end - begin)) {
      old_count += line.kind != DiffLine::Kind::Added;
      new_count += line.kind != DiffLine::Kind::Removed;
    }
    const auto range = [](size_t start, size_t count) {
      const size_t shown = count == 0 ? start : start + 1;
      return std::to_string(shown) + (count == 1 ? "" : "," + std::to_string(count));
    };
    found.push_back({lines.subspan(begin, end - begin), "@@ -" + range(lines[begin].before, old_count) + " +" +
                                                            range(lines[begin].after, new_count) + " @@"});
    i = end;
  }
  return found;
}

}  // namespace holdfast::cli
