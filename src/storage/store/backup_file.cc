// A backup: a header line, then frames, the last of which contains the number of records (docs/formats/store.md).
//
//   "holdfast-backup-1\n", or "holdfast-backup-2\n" if there is an attachment
//   frame: 4 bytes length, 8 bytes xxh3 of what follows, little-endian; then zstd of
//     0x01 record*          record: varint key length, key, varint created, varint modified, varint expiry + 1,
//                           varint value length, value
//     0x03 bytes                               the attachment, only after the records
//     0x02 varint revision, varint records     the end
#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include <cstring>
#include <filesystem>

#include "base/files.h"
#include "base/hash.h"
#include "base/varint.h"
#include "store/embedded.h"
#include "store/records.h"

namespace holdfast::store {
namespace {

constexpr std::string_view kMagic = "holdfast-backup-1\n", kMagicWithAttachment = "holdfast-backup-2\n";
static_assert(kMagic.size() == kMagicWithAttachment.size());
constexpr size_t kFrameBytes = 1 << 20;
constexpr size_t kLargestFrameBytes = 64 << 20;
constexpr size_t kFrameHeaderBytes = 12;
constexpr char kRecords = 1;
constexpr char kEnd = 2;
constexpr char kAttachment = 3;

StoreError failed(const std::string& path) { return {ErrorKind::Unavailable, path + ": " + std::strerror(errno)}; }
StoreError damaged(const std::string& path, uint64_t at, const char* what) {
  return {ErrorKind::Corrupt, path + " at byte " + std::to_string(at) + ": " + what};
}

class BackupSink final : public Sink {
 public:
  BackupSink(std::string path, std::string attachment, int file)
      : path_(std::move(path)), attachment_(std::move(attachment)), file_(file) {
    frame_.push_back(kRecords);
  }
  ~BackupSink() override {
    if (!finished_) ::unlink(partial().c_str());
  }

  static std::string partial_of(const std::string& path) { return path + ".partial"; }

  StoreResult<Unit> start() { return write(attachment_.empty() ? kMagic : kMagicWithAttachment); }

  StoreResult<Unit> put(const Record& record) override {
    put_varint(frame_, record.key.size());
    frame_.append(record.key);
    put_varint(frame_, record.created.value);
    put_varint(frame_, record.modified.value);
    put_varint(frame_, static_cast<uint64_t>(record.expiry_ms + 1));
    put_varint(frame_, record.value.size());
    frame_.append(record.value);
    ++records_;
    if (frame_.size() < kFrameBytes) return Unit{};
    return write_frame(kRecords);
  }

  StoreResult<Unit> finish(Revision revision) override {
    StoreResult<Unit> written = write_frame(attachment_.empty() ? kEnd : kAttachment);
    if (!written) return written;
    if (!attachment_.empty()) {
      frame_ += attachment_;
      written = write_frame(kEnd);
      if (!written) return written;
    }
    put_varint(frame_, revision.value);
    put_varint(frame_, records_);
    written = write_frame(kEnd);
    if (!written) return written;
    if (::fsync(file_.get()) != 0 || ::rename(partial().c_str(), path_.c_str()) != 0) return failed(path_);
    finished_ = true;
    const Descriptor folder(
        ::open(std::filesystem::absolute(path_).parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (::fsync(folder.get()) != 0) return failed(path_);
    return Unit{};
  }

 private:
  std::string partial() const { return partial_of(path_); }

  // Writes the pending records, and begins a frame of this kind.
  StoreResult<Unit> write_frame(char next) {
    std::string packed(ZSTD_compressBound(frame_.size()), '\0');
    size_t bytes = ZSTD_compress(packed.data(), packed.size(), frame_.data(), frame_.size(), 1);
    if (ZSTD_isError(bytes)) return StoreError{ErrorKind::Internal, path_ + ": " + ZSTD_getErrorName(bytes)};
    packed.resize(bytes);
    frame_.assign(1, next);
    std::string header;
    put_little_endian(header, packed.size(), 4);
    put_little_endian(header, hash_bytes(packed), 8);
    StoreResult<Unit> written = write(header);
    if (!written) return written;
    return write(packed);
  }

  StoreResult<Unit> write(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
      if (count < 0) return failed(partial());
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return Unit{};
  }

  const std::string path_, attachment_;
  Descriptor file_;
  std::string frame_;
  uint64_t records_ = 0;
  bool finished_ = false;
};

class BackupSource final : public Source {
 public:
  BackupSource(std::string path, int file) : path_(std::move(path)), file_(file) {}

  // Verifies every frame first: a restore that cannot complete should not start.
  StoreResult<Unit> verify() {
    return walk([](const Record&) { return StoreResult<Unit>(Unit{}); });
  }

  Revision revision() const override { return revision_; }
  const std::string& attachment() const { return attachment_; }

  StoreResult<Unit> walk(const std::function<StoreResult<Unit>(const Record&)>& take) override {
    at_ = 0;
    std::string magic(kMagic.size(), '\0');
    if (!read(magic) || (magic != kMagic && magic != kMagicWithAttachment))
      return damaged(path_, 0, "this is not a backup of a Holdfast store");
    uint64_t records = 0;
    while (true) {
      uint64_t frame_at = at_;
      StoreResult<std::string> frame = read_frame();
      if (!frame) return frame.take_error();
      ByteReader reader(*frame);
      uint8_t kind = reader.byte();
      if (kind == kEnd) {
        revision_ = {reader.varint()};
        if (reader.varint() != records || !reader.ok()) return damaged(path_, frame_at, "records are missing");
        return Unit{};
      }
      if (kind == kAttachment) {
        attachment_ = reader.rest();
        continue;
      }
      while (reader.ok() && !reader.rest().empty()) {
        Record record;
        record.key = reader.bytes(reader.varint());
        record.created = {reader.varint()};
        record.modified = {reader.varint()};
        record.expiry_ms = static_cast<int64_t>(reader.varint()) - 1;
        record.value = reader.bytes(reader.varint());
        if (!reader.ok() || record.key.empty()) return damaged(path_, frame_at, "a record cannot be read");
        ++records;
        StoreResult<Unit> taken = take(record);
        if (!taken) return taken;
      }
      if (!reader.ok() || kind != kRecords) return damaged(path_, frame_at, "a frame cannot be read");
    }
  }

 private:
  bool read(std::string& into) {
    size_t have = 0;
    while (have < into.size()) {
      ssize_t count = ::pread(file_.get(), into.data() + have, into.size() - have, static_cast<off_t>(at_ + have));
      if (count <= 0) return false;
      have += static_cast<size_t>(count);
    }
    at_ += have;
    return true;
  }

  StoreResult<std::string> read_frame() {
    uint64_t frame_at = at_;
    std::string header(kFrameHeaderBytes, '\0');
    if (!read(header)) return damaged(path_, frame_at, "the backup ends too early");
    uint64_t length = read_little_endian(header, 4);
    uint64_t hash = read_little_endian(std::string_view(header).substr(4), 8);
    if (length > kLargestFrameBytes) return damaged(path_, frame_at, "a frame's length is wrong");
    std::string packed(length, '\0');
    if (!read(packed)) return damaged(path_, frame_at, "the backup ends too early");
    if (hash_bytes(packed) != hash) return damaged(path_, frame_at, "a frame's checksum is wrong");
    unsigned long long bytes = ZSTD_getFrameContentSize(packed.data(), packed.size());
    if (bytes > kLargestFrameBytes) return damaged(path_, frame_at, "a frame cannot be read");
    std::string frame(bytes, '\0');
    size_t unpacked = ZSTD_decompress(frame.data(), frame.size(), packed.data(), packed.size());
    if (ZSTD_isError(unpacked) || unpacked != frame.size()) return damaged(path_, frame_at, "a frame cannot be read");
    return frame;
  }

  const std::string path_;
  Descriptor file_;
  uint64_t at_ = 0;
  Revision revision_;
  std::string attachment_;
};

}  // namespace

StoreResult<std::unique_ptr<Sink>> make_backup(const std::string& path, std::string attachment) {
  if (std::filesystem::exists(path)) return StoreError{ErrorKind::Invalid, path + " exists already"};
  std::string partial = BackupSink::partial_of(path);
  int file = ::open(partial.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) return failed(partial);
  auto sink = std::make_unique<BackupSink>(path, std::move(attachment), file);
  StoreResult<Unit> started = sink->start();
  if (!started) return started.take_error();
  return std::unique_ptr<Sink>(std::move(sink));
}

namespace {

StoreResult<std::unique_ptr<BackupSource>> open_verified(const std::string& path) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return failed(path);
  auto source = std::make_unique<BackupSource>(path, file);
  StoreResult<Unit> verified = source->verify();
  if (!verified) return verified.take_error();
  return source;
}

}  // namespace

StoreResult<std::unique_ptr<Source>> open_backup(const std::string& path) {
  StoreResult<std::unique_ptr<BackupSource>> source = open_verified(path);
  if (!source) return source.take_error();
  return std::unique_ptr<Source>(std::move(*source));
}

StoreResult<std::string> read_attachment(const BackupFile& backup) {
  StoreResult<std::unique_ptr<BackupSource>> source = open_verified(backup.path);
  if (!source) return source.take_error();
  return (*source)->attachment();
}

}  // namespace holdfast::store
