// What standard output is: a terminal with a width and colours, or a pipe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::cli {

struct Terminal {
  bool interactive = false;  // Standard output is a terminal.
  bool colours = false;      // As well, and neither NO_COLOR nor TERM=dumb asks for none.
  size_t columns = 80;

  // How standard output is now.
  static Terminal of_output();
};

// Characters that a terminal shows for it: each code point counts as one.
size_t shown_width(std::string_view text);
// At most `columns` characters, the last one "…" where something was cut off.
std::string shortened(std::string_view text, size_t columns);
std::string padded(std::string_view text, size_t columns);

// In one of a few well distinguishable colours; `number` chooses.
std::string coloured(const Terminal& terminal, std::string_view text, size_t number);
std::string dimmed(const Terminal& terminal, std::string_view text);
std::string added(const Terminal& terminal, std::string_view text);    // Green.
std::string removed(const Terminal& terminal, std::string_view text);  // Red.

// Asks on the controlling terminal and returns the first key of `keys` that is pressed; 0 when there is no terminal.
char ask_key(std::string_view question, std::string_view keys);
// Whether questions can be asked: standard input and error are a terminal.
bool can_ask();

// One line on a terminal's standard error that is overwritten as work proceeds; nothing where that is not a terminal.
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
