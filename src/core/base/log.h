// Structured log lines on standard error: time, level, message, key=value.
//
//   log::info("listening", {{"address", "127.0.0.1:6443"}});
//   2026-01-02T03:04:05.678Z INFO listening address=127.0.0.1:6443
//
// Verbosity as in Kubernetes: 0 what an operator must see, 2 changes of state, 4 every request, 6 and up bodies and
// details. Threading: any thread; lines do not interleave.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

namespace holdfast::log {

struct Field {
  std::string_view key;
  std::string value;
  Field(std::string_view k, std::string_view v) : key(k), value(v) {}
  Field(std::string_view k, const char* v) : key(k), value(v) {}
  template <std::integral T>
  Field(std::string_view k, T v) : key(k), value(std::to_string(v)) {}
};
using Fields = std::initializer_list<Field>;

// Format of the lines. Set once during startup.
enum class Format : unsigned char { Text, Json };
void configure(int verbosity, Format format);

// Check this before building expensive fields.
bool verbose(int verbosity);

void info(std::string_view message, Fields fields = {});
void warning(std::string_view message, Fields fields = {});
void error(std::string_view message, Fields fields = {});

}  // namespace holdfast::log
