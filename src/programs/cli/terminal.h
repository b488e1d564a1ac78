// Properties of standard output: a terminal with a width and colours, or a pipe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::cli {

struct Terminal {
  bool interactive = false;  // Standard output is a terminal.
  bool colours = false;      // Interactive, and neither NO_COLOR nor TERM=dumb disables colours.
  size_t columns = 80;

  // The current state of standard output.
  static Terminal of_output();
};

// Width on a terminal, counting each code point as one column.
size_t shown_width(std::string_view text);
// Truncates to `columns` characters, the last of which is "…" if anything was cut off.
std::string shortened(std::string_view text, size_t columns);
std::string padded(std::string_view text, size_t columns);

// In one of a few easily distinguishable colours, selected by `number`.
std::string coloured(const Terminal& terminal, std::string_view text, size_t number);
std::string dimmed(const Terminal& terminal, std::string_view text);
std::string added(const Terminal& terminal, std::string_view text);    // Green.
std::string removed(const Terminal& terminal, std::string_view text);  // Red.

// Asks on the controlling terminal and returns the first key pressed that is in `keys`; 0 if there is no terminal.
char ask_key(std::string_view question, std::string_view keys);
// Whether the user can be prompted: standard input and standard error are terminals.
bool can_ask();

// A progress line on standard error that is overwritten as work proceeds. Prints nothing if that is not a terminal.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();  // Clears the line.
  void show(size_t done, size_t of, std::string_view now);
  void clear();

 private:
  std::string what_;
  bool terminal_, shown_ = false;
};

}  // namespace holdfast::cli
