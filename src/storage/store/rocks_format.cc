#include "store/rocks_format.h"

#include "base/varint.h"

namespace holdfast::store::rocks {
namespace {

constexpr uint8_t kDeleted = 1;
constexpr uint8_t kExpires = 2;
constexpr size_t kRevisionBytes = 8;

}  // namespace

std::string version_key(std::string_view key, Revision revision) {
  std::string out;
  out.reserve(key.size() + 2 + kRevisionBytes);
  out.push_back('d');
  out.append(key);
  out.push_back('\0');
  put_big_endian(out, ~revision.value);
  return out;
}

std::string log_key(Revision revision) {
  std::string out = "l";
  put_big_endian(out, revision.value);
  return out;
}

std::string expiry_key(int64_t expiry_ms, Revision revision, std::string_view key) {
  std::string out = "e";
  put_big_endian(out, static_cast<uint64_t>(expiry_ms));
  put_big_endian(out, revision.value);
  out.append(key);
  return out;
}

std::optional<VersionKey> parse_version_key(std::string_view bytes) {
  if (bytes.size() < 3 + kRevisionBytes || bytes.front() != 'd') return std::nullopt;
  size_t end = bytes.size() - kRevisionBytes - 1;
  if (bytes[end] != '\0') return std::nullopt;
  return VersionKey{bytes.substr(1, end - 1), {~read_big_endian(bytes.substr(end + 1))}};
}

std::optional<Revision> parse_log_key(std::string_view bytes) {
  if (bytes.size() != 1 + kRevisionBytes || bytes.front() != 'l') return std::nullopt;
  return Revision{read_big_endian(bytes.substr(1))};
}

std::optional<ExpiryKey> parse_expiry_key(std::string_view bytes) {
  ByteReader reader(bytes);
  if (reader.byte() != 'e') return std::nullopt;
  ExpiryKey parsed;
  parsed.expiry_ms = static_cast<int64_t>(reader.u64());
  parsed.revision = {reader.u64()};
  parsed.key = reader.rest();
  if (!reader.ok() || parsed.key.empty()) return std::nullopt;
  return parsed;
}

std::string version_head(const Version& version) {
  std::string out;
  out.push_back(static_cast<char>((version.deleted ? kDeleted : 0) | (version.expiry_ms ? kExpires : 0)));
  put_varint(out, version.created.value);
  if (version.expiry_ms) put_big_endian(out, static_cast<uint64_t>(version.expiry_ms));
  return out;
}

std::optional<Version> parse_version(std::string_view bytes) {
  ByteReader reader(bytes);
  uint8_t flags = reader.byte();
  Version version;
  version.deleted = flags & kDeleted;
  version.created = {reader.varint()};
  if (flags & kExpires) version.expiry_ms = static_cast<int64_t>(reader.u64());
  version.value = reader.rest();
  if (!reader.ok() || flags > (kDeleted | kExpires)) return std::nullopt;
  return version;
}

void append_log_entry(std::string& out, const LogEntry& entry) {
  put_big_endian(out, static_cast<uint64_t>(entry.time_ms));
  for (const Change& change : entry.changes) {
    out.push_back(static_cast<char>(change.type));
    put_varint(out, change.previous.value);
    put_varint(out, change.created.value);
    put_varint(out, change.key.size());
    out.append(change.key);
  }
}

std::optional<LogEntry> parse_log_entry(std::string_view bytes) {
  ByteReader reader(bytes);
  LogEntry entry;
  entry.time_ms = static_cast<int64_t>(reader.u64());
  while (reader.ok() && !reader.rest().empty()) {
    Change change;
    uint8_t type = reader.byte();
    if (type > static_cast<uint8_t>(Event::Type::Deleted)) return std::nullopt;
    change.type = static_cast<Event::Type>(type);
    change.previous = {reader.varint()};
    change.created = {reader.varint()};
    change.key = reader.bytes(reader.varint());
    if (change.key.empty()) return std::nullopt;
    entry.changes.push_back(change);
  }
  if (!reader.ok() || entry.changes.empty()) return std::nullopt;
  return entry;
}

std::string encode_revision(Revision revision) {
  std::string out;
  put_big_endian(out, revision.value);
  return out;
}

std::optional<Revision> parse_revision(std::string_view bytes) {
  if (bytes.size() != kRevisionBytes) return std::nullopt;
  return Revision{read_big_endian(bytes)};
}

}  // namespace holdfast::store::rocks
