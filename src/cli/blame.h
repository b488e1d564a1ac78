// `holdfast blame`: an object as YAML, each line with the owners of what it says.
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
  std::string owner;             // Only what this manager owns; empty: everything.
  std::optional<int64_t> since;  // Only what was written since then, in seconds since 1970.
  UnixTime now;                  // For ages on a terminal.
  // See FieldOwners::of.
  const ownership::MergeType* custom_type = nullptr;
};

// In a pipe: YAML, valid whatever the object holds, with comments that name the owners. On a terminal: the owners left
// of each line, a colour each.
Result<std::string> blame_text(const Value& object, const BlameOptions& options, const Terminal& terminal);
// {"managers": [...], "fields": [{"path", "value", "owners": [positions], "state"}]}
Result<std::string> blame_json(const Value& object, const BlameOptions& options);

// The lines of the YAML, and who owns what each says: "alice (Apply, 2026-01-02T03:04:05Z)".
struct BlamedLine {
  std::string text, owners;
};
Result<std::vector<BlamedLine>> blamed_lines(const Value& object);

// "90m", "3d", or an RFC 3339 time, as seconds since 1970.
Result<int64_t> parse_since(std::string_view text, UnixTime now);

// Keys of a map in the order in which YAML is written.
std::vector<uint32_t> yaml_order(const Value& map);

}  // namespace holdfast::cli
