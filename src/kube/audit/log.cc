#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "audit/audit.h"
#include "base/log.h"

namespace holdfast::audit {
namespace {

int open_file(const std::string& path) { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600); }

// audit.log is rotated to audit-2026-11-15T09-50-46.123.log, like lumberjack does.
struct Name {
  std::filesystem::path folder;
  std::string stem, extension;

  explicit Name(const std::filesystem::path& path)
      : folder(path.parent_path().empty() ? "." : path.parent_path()),
        stem(path.stem().string() + "-"),
        extension(path.extension().string()) {}
  std::filesystem::path at(UnixTime time) const {
    std::string text = format_rfc3339({time.seconds, 0});
    text.pop_back();
    std::replace(text.begin(), text.end(), ':', '-');
    std::string millis = std::to_string(time.nanos / 1'000'000);
    return folder / (stem + text + "." + std::string(3 - std::min<size_t>(3, millis.size()), '0') + millis + extension);
  }
  bool is_backup(const std::string& file) const {
    return file.size() > stem.size() + extension.size() && file.starts_with(stem) && file.ends_with(extension);
  }
};

}  // namespace

Log::Log(LogOptions options, MetricRegistry& metrics)
    : options_(std::move(options)),
      written_(metrics.counters("apiserver_audit_event_total", "Audit events that were written to the log.").with({})),
      dropped_(metrics
                   .counters("apiserver_audit_error_total",
                             "Audit events that were dropped because they could not be written to the log.", {"plugin"})
                   .with({"log"})) {}

Result<std::unique_ptr<Log>> Log::open(LogOptions options, MetricRegistry& metrics) {
  std::unique_ptr<Log> log(new Log(std::move(options), metrics));
  const std::string& path = log->options_.path;
  if (path == "-") {
    log->file_ = STDOUT_FILENO;
  } else {
    log->file_ = open_file(path);
    if (log->file_ < 0) return bad_request("--audit-log-path " + path + ": " + std::strerror(errno));
    struct stat known{};
    if (fstat(log->file_, &known) == 0) log->file_bytes_ = static_cast<uint64_t>(known.st_size);
  }
  return log;
}

Log::~Log() {
  if (file_ >= 0 && options_.path != "-") ::close(file_);
}

void Log::write(std::string line) {
  line += '\n';
  const std::lock_guard lock(mutex_);
  if (options_.path != "-" && file_bytes_ > 0 && file_bytes_ + line.size() > options_.max_bytes) rotate_file();
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t taken = ::write(file_, rest.data(), rest.size());
    if (taken < 0 && errno == EINTR) continue;
    if (taken <= 0) {
      dropped_.add();
      return;
    }
    rest.remove_prefix(static_cast<size_t>(taken));
  }
  file_bytes_ += line.size();
  written_.add();
}

void Log::rotate_file() {
  const std::filesystem::path path(options_.path);
  std::error_code failed;
  std::filesystem::rename(path, Name(path).at(system_clock().now()), failed);
  const int fresh = failed ? -1 : open_file(options_.path);
  if (fresh < 0) {
    log::error("cannot rotate the audit log", {{"path", options_.path}});
    file_bytes_ = 0;  // Do not retry on every line.
    return;
  }
  ::close(file_);
  file_ = fresh;
  file_bytes_ = 0;
  delete_old_backups();
}

void Log::delete_old_backups() const {
  const Name name{std::filesystem::path(options_.path)};
  std::vector<std::filesystem::path> backups;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(name.folder, ignored)) {
    if (name.is_backup(entry.path().filename().string())) backups.push_back(entry.path());
  }
  // The names sort by time.
  std::sort(backups.begin(), backups.end(), std::greater<>());
  const auto oldest = std::filesystem::file_time_type::clock::now() - std::chrono::hours(24) * options_.max_age_days;
  for (size_t i = 0; i < backups.size(); ++i) {
    const bool too_many = options_.max_backups > 0 && i >= options_.max_backups;
    const bool too_old = options_.max_age_days > 0 && std::filesystem::last_write_time(backups[i], ignored) < oldest;
    if (too_many || too_old) std::filesystem::remove(backups[i], ignored);
  }
}

}  // namespace holdfast::audit
