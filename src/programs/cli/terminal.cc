#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"

namespace holdfast::cli {

namespace {

size_t columns_of(int file) {
  winsize size{};
  if (ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = getenv("COLUMNS");
  const int number = columns == nullptr ? 0 : atoi(columns);
  return number > 0 ? static_cast<size_t>(number) : 80;
}

std::string with_code(const Terminal& terminal, std::string_view text, std::string_view code) {
  if (!terminal.colours || text.empty()) return std::string(text);
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

}  // namespace

Terminal Terminal::of_output() {
  Terminal terminal;
  terminal.interactive = isatty(STDOUT_FILENO) == 1;
  const char* kind = getenv("TERM");
  const char* none = getenv("NO_COLOR");
  terminal.colours =
      terminal.interactive && (none == nullptr || *none == 0) && (kind == nullptr || std::string_view(kind) != "dumb");
  terminal.columns = columns_of(STDOUT_FILENO);
  return terminal;
}

size_t shown_width(std::string_view text) { return count_characters(text); }

std::string shortened(std::string_view text, size_t columns) {
  if (shown_width(text) <= columns || columns == 0) return std::string(text);
  size_t count = 0, at = 0;
  while (at < text.size()) {
    if (!continues_character(text[at]) && ++count == columns) break;
    ++at;
  }
  return std::string(text.substr(0, at)) + "…";
}

std::string padded(std::string_view text, size_t columns) {
  const size_t width = shown_width(text);
  return std::string(text) + std::string(width < columns ? columns - width : 0, ' ');
}

std::string coloured(const Terminal& terminal, std::string_view text, size_t number) {
  constexpr std::array<std::string_view, 6> kColours = {"36", "33", "35", "32", "34", "31"};
  return with_code(terminal, text, kColours[number % kColours.size()]);
}
std::string dimmed(const Terminal& terminal, std::string_view text) { return with_code(terminal, text, "2"); }
std::string added(const Terminal& terminal, std::string_view text) { return with_code(terminal, text, "32"); }
std::string removed(const Terminal& terminal, std::string_view text) { return with_code(terminal, text, "31"); }

bool can_ask() { return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1; }

char ask_key(std::string_view question, std::string_view keys) {
  if (!can_ask()) return 0;
  termios before{};
  if (tcgetattr(STDIN_FILENO, &before) != 0) return 0;
  termios raw = before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  fprintf(stderr, "%.*s", static_cast<int>(question.size()), question.data());
  fflush(stderr);
  char key = 0;
  while (read(STDIN_FILENO, &key, 1) == 1) {
    if (keys.find(key) != std::string_view::npos) break;
    key = 0;
  }
  tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
  if (key != 0) fprintf(stderr, "%c\n", key);
  return key;
}

Progress::Progress(std::string what) : what_(std::move(what)), terminal_(isatty(STDERR_FILENO) == 1) {}
Progress::~Progress() { clear(); }

void Progress::show(size_t done, size_t of, std::string_view now) {
  if (!terminal_) return;
  const std::string text = what_ + " " + std::to_string(done) + "/" + std::to_string(of) + " " + std::string(now);
  const std::string line = shortened(text, columns_of(STDERR_FILENO) - 1);
  fprintf(stderr, "\r\x1b[K%s", line.c_str());
  fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  fprintf(stderr, "\r\x1b[K");
  fflush(stderr);
  shown_ = false;
}

}  // namespace holdfast::cli
