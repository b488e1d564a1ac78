// `holdfast blame`: an object as YAML, with the owners of the field on each line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cli/field_owners.h"
#include "cli/terminal.h"

namespace holdfast::cli {

struct BlameOptions {
  std::string owner;             // Show only fields owned by this manager; all if empty.
  std::optional<int64_t> since;  // Show only fields written since then, in seconds since 1970.
  UnixTime now;                  // For the ages shown on a terminal.
  // See FieldOwners::of.
  const ownership::MergeType* custom_type = nullptr;
};

// In a pipe: YAML, always valid, with comments that name the owners. On a terminal: the owners to the left of each
// line, each in its own colour.
Result<std::string> blame_text(const Value& object, const BlameOptions& options, const Terminal& terminal);
// {"managers": [...], "fields": [{"path", "value", "owners": [positions], "state"}]}
Result<std::string> blame_json(const Value& object, const BlameOptions& options);

// The lines of the YAML and their owners: "alice (Apply, 2026-01-02T03:04:05Z)".
struct BlamedLine {
  std::string text, owners;
};
Result<std::vector<BlamedLine>> blamed_lines(const Value& object);

// "90m", "3d", or an RFC 3339 time, as seconds since 1970.
Result<int64_t> parse_since(std::string_view text, UnixTime now);

// Keys of a map in the order in which the YAML encoder writes them.
std::vector<uint32_t> yaml_order(const Value& map);

}  // namespace holdfast::cli
