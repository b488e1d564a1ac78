#include "store/wal_scan.h"

#include <algorithm>
#include <array>
#include <optional>

namespace holdfast::store::rocks {
namespace {

// The log's wire format, which never changes: blocks of 32 KiB; records of crc32c (masked), length, type, payload that
// do not cross blocks; a block's last bytes are zero where no header fits.
constexpr uint64_t kBlockBytes = 32768;
constexpr uint64_t kHeaderBytes = 7;
enum RecordType : uint8_t { kZero = 0, kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4, kLargest = 11 };

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    table[i] = crc;
  }
  return table;
}
constexpr auto kCrcTable = make_crc_table();

uint32_t masked_crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (char c : bytes) crc = crc >> 8 ^ kCrcTable[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

struct Record {
  uint8_t type = kZero;
  uint64_t bytes = 0;  // Including the header.
};

// The whole, checksummed record that begins at `at`, if there is one.
std::optional<Record> record_at(std::string_view contents, uint64_t at) {
  uint64_t block_end = std::min<uint64_t>(contents.size(), (at / kBlockBytes + 1) * kBlockBytes);
  if (at + kHeaderBytes > block_end) return std::nullopt;
  auto byte = [&](uint64_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(contents[at + i])); };
  uint32_t crc = byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
  uint64_t length = byte(4) | byte(5) << 8;
  auto type = static_cast<uint8_t>(byte(6));
  if (type == kZero || type > kLargest || at + kHeaderBytes + length > block_end) return std::nullopt;
  if (masked_crc32c(contents.substr(at + 6, 1 + length)) != crc) return std::nullopt;
  return Record{type, kHeaderBytes + length};
}

bool all_zero(std::string_view bytes) {
  return std::ranges::all_of(bytes, [](char c) { return c == 0; });
}

// Whether a record that begins a write exists anywhere at or after `from`. After damage the record boundaries are
// unknown: every byte is tried.
bool another_write_follows(std::string_view contents, uint64_t from) {
  for (uint64_t at = from; at + kHeaderBytes <= contents.size(); ++at) {
    auto type = static_cast<uint8_t>(contents[at + 6]);
    if ((type == kFull || type == kFirst) && record_at(contents, at)) return true;
  }
  return false;
}

}  // namespace

WalScan scan_wal(std::string_view contents) {
  WalScan scan;
  bool inside = false;  // Between a first and a last record.
  uint64_t at = 0;
  auto bad = [&](std::string what) {
    scan.damage_bytes = at;
    scan.what = std::move(what);
    // The damaged record itself may begin a write: search after its first byte.
    scan.state = another_write_follows(contents, at + 1) ? WalScan::State::Damaged : WalScan::State::TornTail;
    return scan;
  };
  while (at < contents.size()) {
    uint64_t block_left = kBlockBytes - at % kBlockBytes;
    if (block_left < kHeaderBytes) {
      if (!all_zero(contents.substr(at, block_left))) return bad("a block's padding is not zero");
      at = std::min<uint64_t>(at + block_left, contents.size());
      if (!inside) scan.good_bytes = at;
      continue;
    }
    std::optional<Record> record = record_at(contents, at);
    if (!record) {
      if (at + kHeaderBytes > contents.size()) return bad("the log ends inside a record's header");
      return bad("a record's checksum or length is wrong");
    }
    bool begins = record->type == kFull || record->type == kFirst;
    bool continues = record->type == kMiddle || record->type == kLast;
    if (begins && inside) {
      // The previous write has no end although this one was begun after it was synced.
      bad("a part of a write is missing");
      scan.state = WalScan::State::Damaged;
      return scan;
    }
    if (continues && !inside) return bad("a part of a write is missing");
    if (begins || continues) inside = record->type == kFirst || record->type == kMiddle;
    at += record->bytes;
    if (!inside) scan.good_bytes = at;
  }
  if (inside) return bad("the log ends inside a write");
  return scan;
}

}  // namespace holdfast::store::rocks
