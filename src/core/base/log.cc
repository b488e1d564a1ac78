#include "base/log.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>

#include "base/text.h"

namespace holdfast::log {

namespace {

std::atomic<int> the_verbosity{0};
std::atomic<Format> the_format{Format::Text};

std::string timestamp() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  gmtime_r(&now.tv_sec, &parts);
  char text[40];
  const size_t bytes = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  snprintf(text + bytes, sizeof text - bytes, ".%03ldZ", now.tv_nsec / 1'000'000);
  return text;
}

// Whether there may be characters that a terminal would not show: much of what is logged was written by others.
bool may_be_hidden(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < ' ' || byte >= 0x7f;
  });
}

bool needs_quotes(std::string_view text) {
  return text.empty() || may_be_hidden(text) || text.find_first_of(" \"=") != std::string_view::npos;
}

void write(std::string_view level, std::string_view message, Fields fields) {
  std::string line;
  if (the_format == Format::Json) {
    line = "{\"ts\":\"" + timestamp() + "\",\"level\":\"" + std::string(level) + "\",\"msg\":" + json_quote(message);
    for (const Field& field : fields) line += "," + json_quote(field.key) + ":" + json_quote(field.value);
    line += "}";
  } else {
    line = timestamp() + " " + std::string(level) + " " +
           (may_be_hidden(message) ? go_quote(message) : std::string(message));
    for (const Field& field : fields) {
      line += " ";
      line += field.key;
      line += "=";
      line += needs_quotes(field.value) ? go_quote(field.value) : field.value;
    }
  }
  line += '\n';
  // One write per line: lines of different threads do not mix, and nothing is lost when the process is killed.
  [[maybe_unused]] auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

void configure(int verbosity, Format format) {
  the_verbosity = verbosity;
  the_format = format;
}

bool verbose(int verbosity) { return the_verbosity.load(std::memory_order_relaxed) >= verbosity; }

void info(std::string_view message, Fields fields) { write("INFO", message, fields); }
void warning(std::string_view message, Fields fields) { write("WARN", message, fields); }
void error(std::string_view message, Fields fields) { write("ERROR", message, fields); }

}  // namespace holdfast::log
