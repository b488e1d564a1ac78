// The layout of the embedded store's records in RocksDB (docs/formats/store.md). Private to store.
//
//   d <key> 00 <~revision>         one version of a key, the newest first
//       -> flags, varint created, [expiry: 8 bytes of unix milliseconds], value
//   l <revision>                   the log: the changes of one transaction
//       -> 8 bytes of unix milliseconds, then for each change:
//          type, varint previous revision, varint created, varint key length, key
//   e <expiry> <revision> <key>    keys with a TTL, the first to expire first -> the TTL: 8 bytes of milliseconds
//   m compacted                    -> the revision before which history was compacted
//   m format                       -> kFormat
//
// Integers in keys are big-endian, so that byte order is numeric order; keys contain no NUL, so that versions of "a"
// sort before those of "a/b". Every d and l record is written once and never overwritten, which lets compaction use
// SingleDelete.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.h"

namespace holdfast::store::rocks {

inline constexpr std::string_view kFormat = "holdfast-store-1";
inline constexpr std::string_view kFormatKey = "mformat";
inline constexpr std::string_view kCompactedKey = "mcompacted";

std::string version_key(std::string_view key, Revision revision);
std::string log_key(Revision revision);
std::string expiry_key(int64_t expiry_ms, Revision revision, std::string_view key);

struct VersionKey {
  std::string_view key;
  Revision revision;
};
std::optional<VersionKey> parse_version_key(std::string_view bytes);
std::optional<Revision> parse_log_key(std::string_view bytes);
struct ExpiryKey {
  int64_t expiry_ms = 0;
  Revision revision;
  std::string_view key;
};
std::optional<ExpiryKey> parse_expiry_key(std::string_view bytes);

struct Version {
  bool deleted = false;
  Revision created;
  int64_t expiry_ms = 0;  // 0 if it does not expire.
  std::string_view value = {};
};
// The bytes before the value, so that the value itself need not be copied.
std::string version_head(const Version& version);
std::optional<Version> parse_version(std::string_view bytes);

struct Change {
  Event::Type type = Event::Type::Created;
  Revision previous;
  Revision created;
  std::string_view key;
};
struct LogEntry {
  int64_t time_ms = 0;
  std::vector<Change> changes;
};
void append_log_entry(std::string& out, const LogEntry& entry);
std::optional<LogEntry> parse_log_entry(std::string_view bytes);

std::string encode_revision(Revision revision);
std::optional<Revision> parse_revision(std::string_view bytes);

}  // namespace holdfast::store::rocks
