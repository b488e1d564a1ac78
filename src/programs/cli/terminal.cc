#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"
#include "codec/visible.h"

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
  std::string shown = visible_line(text);
  if (!terminal.colours || shown.empty()) return shown;
  return "\x1b[" + std::string(code) + "m" + shown + "\x1b[0m";
}

enum class Lines : uint8_t { Kept, Joined };

void append_visible(std::string_view text, Lines lines, std::string& out) {
  for (size_t at = 0; at < text.size();) {
    const Rune rune = decode_rune(text, at);
    const bool layout = lines == Lines::Kept && (rune.value == '\n' || rune.value == '\t');
    char escape[16];
    if (!rune.valid) {
      snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned char>(text[at]));
      out += escape;
    } else if (layout || !codec::is_hidden(rune.value)) {
      out += text.substr(at, rune.length);
    } else if (rune.value < 0x80) {
      out += '^';
      out += static_cast<char>(rune.value ^ 0x40);
    } else {
      snprintf(escape, sizeof escape, rune.value < 0x10000 ? "\\u%04x" : "\\U%08x", rune.value);
      out += escape;
    }
    at += rune.length;
  }
}

void write_visible(FILE* file, std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) append_visible(part, Lines::Kept, text);
  fwrite(text.data(), 1, text.size(), file);
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

std::string visible(std::string_view text) {
  std::string out;
  append_visible(text, Lines::Kept, out);
  return out;
}

std::string visible_line(std::string_view text) {
  std::string out;
  append_visible(text, Lines::Joined, out);
  return out;
}

void write_output(std::initializer_list<std::string_view> parts) { write_visible(stdout, parts); }
void write_error(std::initializer_list<std::string_view> parts) { write_visible(stderr, parts); }

void print_styled(std::string_view text) { fwrite(text.data(), 1, text.size(), stdout); }

void print_data(std::string_view text) {
  if (isatty(STDOUT_FILENO) == 1) return write_visible(stdout, {text});
  fwrite(text.data(), 1, text.size(), stdout);
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
  print_error(question);
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
  const std::string text = what_ + " " + std::to_string(done) + "/" + std::to_string(of) + " " + visible_line(now);
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
