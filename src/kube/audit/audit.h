// Auditing: the events of audit.k8s.io/v1, the policy that selects them, and the audit log.
//
// Threading: a Policy is immutable; an Event belongs to its request; a Log may be used from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "auth/auth.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/metrics.h"

namespace holdfast::audit {

enum class Level : uint8_t { None, Metadata, Request, RequestResponse };
enum class Stage : uint8_t { RequestReceived, ResponseStarted, ResponseComplete, Panic };
std::string_view to_string(Level level);
std::string_view to_string(Stage stage);

// What the policy wants logged for a request.
struct Wanted {
  Level level = Level::None;
  std::array<bool, 4> omitted{};  // By stage.
  bool omits_managed_fields = false;

  bool at(Stage stage) const { return level != Level::None && !omitted[static_cast<size_t>(stage)]; }
};

// An audit.k8s.io/v1 Policy: the first matching rule decides; a request that matches no rule is not logged.
class Policy {
 public:
  // YAML or JSON. The error names `source` and the field.
  static Result<Policy> parse(std::string_view text, std::string_view source);

  // `attributes.user` is null if authentication failed.
  Wanted wanted(const auth::Attributes& attributes) const;

 private:
  struct Resources {
    std::string group;
    std::vector<std::string> resources, names;
  };
  struct Rule {
    Wanted wanted;
    std::vector<std::string> users, groups, verbs, namespaces, paths;
    std::vector<Resources> resources;
    bool matches(const auth::Attributes& attributes) const;
  };
  std::vector<Rule> rules_;
};

// One request as logged. Empty members are omitted.
struct Event {
  Level level = Level::Metadata;
  std::string audit_id, request_uri, verb;
  auth::UserRef user;          // Null if authentication failed.
  auth::UserRef impersonated;  // The impersonated user, or null.
  std::string impersonation_constraint;
  std::vector<std::string> source_ips;
  std::string user_agent;
  struct ObjectRef {
    std::string resource, ns, name, uid, api_group, api_version, resource_version, subresource;
  };
  std::optional<ObjectRef> object;
  int code = 0;                                 // Of the response; 0 if there is none yet.
  std::string response_status;                  // JSON of the response if it was a Status, otherwise empty.
  std::string request_object, response_object;  // JSON.
  UnixTime received;
  std::vector<std::pair<std::string, std::string>> annotations;
};

// One line of the log, without the trailing newline.
std::string to_line(const Event& event, Stage stage, UnixTime at);

// Removes managedFields from a JSON object or a list of objects.
std::string without_managed_fields(std::string json);

struct LogOptions {
  std::string path;                   // "-" is standard output.
  uint64_t max_bytes = 100ull << 20;  // The file is rotated before it grows larger.
  uint32_t max_backups = 0;           // Rotated files to keep; 0 keeps all.
  uint32_t max_age_days = 0;          // Maximum age of rotated files; 0 keeps all.
};

// A log file. When write() returns, the line is in the file or counted as dropped: a client that has received its
// response finds the events in the log, and a slow disk delays requests. This is kube-apiserver's default,
// --audit-log-mode=blocking. Thread-safe.
class Log {
 public:
  // The error names the path.
  static Result<std::unique_ptr<Log>> open(LogOptions options, MetricRegistry& metrics);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void write(std::string line);

 private:
  Log(LogOptions options, MetricRegistry& metrics);
  void rotate_file();
  void delete_old_backups() const;

  const LogOptions options_;
  Counter& written_;
  Counter& dropped_;
  std::mutex mutex_;  // Guards the members below.
  int file_ = -1;
  uint64_t file_bytes_ = 0;
};

}  // namespace holdfast::audit
