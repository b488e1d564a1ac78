// Arbitrary bytes on disk: the readers of logs, records and backups reject them safely, and whatever they accept
// round-trips.
#include <sys/mman.h>
#include <unistd.h>

#include <cassert>
#include <cstdlib>

#include "store/records.h"
#include "store/rocks_format.h"
#include "store/wal_scan.h"

using namespace holdfast::store;

namespace {

void read_backup(std::string_view bytes) {
  int file = ::memfd_create("backup", MFD_CLOEXEC);
  if (::write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
  (void)open_backup("/proc/self/fd/" + std::to_string(file));
  ::close(file);
}

void read_records(std::string_view bytes) {
  using namespace rocks;
  if (auto parsed = parse_version_key(bytes)) assert(version_key(parsed->key, parsed->revision) == bytes);
  if (auto parsed = parse_log_key(bytes)) assert(log_key(*parsed) == bytes);
  if (auto parsed = parse_expiry_key(bytes)) {
    assert(expiry_key(parsed->expiry_ms, parsed->revision, parsed->key) == bytes);
  }
  if (auto parsed = parse_version(bytes)) {
    const std::string written = version_head(*parsed).append(parsed->value);
    auto again = parse_version(written);
    assert(again && again->value == parsed->value && again->created == parsed->created);
  }
  if (auto parsed = parse_log_entry(bytes)) {
    std::string written;
    append_log_entry(written, *parsed);
    auto again = parse_log_entry(written);
    assert(again && again->changes.size() == parsed->changes.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  if (bytes == 0) return 0;
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, bytes - 1);
  switch (data[0] % 4) {
    case 0: {
      rocks::WalScan scan = rocks::scan_wal(rest);
      assert(scan.good_bytes <= rest.size());
      assert(scan.state == rocks::WalScan::State::Whole || scan.good_bytes <= scan.damage_bytes);
      // Truncated at that position, a log is whole.
      assert(rocks::scan_wal(rest.substr(0, scan.good_bytes)).state == rocks::WalScan::State::Whole);
      break;
    }
    case 1:
      read_records(rest);
      break;
    case 2:
      read_backup(rest);
      break;
    default:
      read_backup("holdfast-backup-1\n" + std::string(rest));
      break;
  }
  return 0;
}
