// Differences of two texts, line by line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

struct DiffLine {
  enum class Kind : uint8_t { Same, Removed, Added } kind = Kind::Same;
  size_t before = 0, after = 0;  // Positions: in the old text unless Added, in the new one unless Removed.
};
// A minimal diff (Myers). Time is proportional to the length of the texts times the number of changed lines.
std::vector<DiffLine> diff_lines(std::span<const std::string> before, std::span<const std::string> after);

// Groups of changes with up to three lines around them, as in `diff -u`.
struct Hunk {
  std::span<const DiffLine> lines;
  std::string heading;  // "@@ -1,7 +1,6 @@"
};
std::vector<Hunk> hunks(std::span<const DiffLine> lines);

}  // namespace holdfast::cli
