// Distinguishes a torn from a damaged write-ahead log. Private to store.
//
// RocksDB either tolerates damage at the end of a log (and then also drops acknowledged writes after a flipped bit) or
// rejects every torn tail (and then does not start after a power loss). We tell the two apart: a group of writes is one
// record, and a record is only written once the previous one has been synced. So:
//
//   good good BAD                 the last record was possibly never synced: torn, may be cut off
//   good good BAD ... good        a later record exists, so the bad one had been synced: damage, reject
//
// A damaged last record that was acknowledged is detected by the revision in the acknowledgement marker (rocks_db.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::store::rocks {

struct WalScan {
  enum class State : uint8_t { Whole, TornTail, Damaged };
  State state = State::Whole;
  uint64_t good_bytes = 0;    // Where the last whole record ends.
  uint64_t damage_bytes = 0;  // Offset of the first invalid byte.
  std::string what = {};      // What is wrong there.
};

// `contents` is one log file of RocksDB, written without recycling.
WalScan scan_wal(std::string_view contents);

}  // namespace holdfast::store::rocks
