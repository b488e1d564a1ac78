// Standard output and standard error: what they are, and everything that the commands print.
//
// Much of what is printed was written by others: names, values, managers, messages of servers, files. On a terminal, a
// control character in it could move the cursor, change colours or titles, or reorder the line. All output therefore
// goes through the functions below, which print such characters as visible text. They do so in pipes as well: pagers,
// logs and terminals show it later.
#pragma once

#include <cstddef>
#include <initializer_list>
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

// Characters that are hidden (codec::is_hidden) as text: ^[ for control characters, \u202e for others, and \x9b for
// bytes that are not UTF-8. Newlines and tabs are kept.
std::string visible(std::string_view text);
// The same, with newlines and tabs as text, too: for names and other parts of a line.
std::string visible_line(std::string_view text);

void write_output(std::initializer_list<std::string_view> parts);
void write_error(std::initializer_list<std::string_view> parts);
// Print text made visible.
template <class... Parts>
void print(const Parts&... parts) {
  write_output({std::string_view(parts)...});
}
template <class... Parts>
void print_error(const Parts&... parts) {
  write_error({std::string_view(parts)...});
}
// Prints text with colours. Its parts are either visible already or went through the functions for colours below.
void print_styled(std::string_view text);
// Prints data that was asked for as such (a template's result, a raw response): unchanged, except on a terminal.
void print_data(std::string_view text);

// Width on a terminal, counting each code point as one column.
size_t shown_width(std::string_view text);
// Truncates to `columns` characters, the last of which is "…" if anything was cut off.
std::string shortened(std::string_view text, size_t columns);
std::string padded(std::string_view text, size_t columns);

// The text on one line, visible, in one of a few easily distinguishable colours, selected by `number`.
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
