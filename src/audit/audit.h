// Who did what: the events of audit.k8s.io/v1, which of them a policy wants, and the log they go to.
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

// The attributes of a request that a policy looks at.
struct Wanted {
  Level level = Level::None;
  std::array<bool, 4> omitted{};  // By stage.
  bool omits_managed_fields = false;

  bool at(Stage stage) const { return level != Level::None && !omitted[static_cast<size_t>(stage)]; }
};

// An audit.k8s.io/v1 Policy: the first rule that matches decides; none matches: nothing is wanted.
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

// One request as logged. Empty members are left out.
struct Event {
  Level level = Level::Metadata;
  std::string audit_id, request_uri, verb;
  auth::UserRef user;          // Null: not authenticated.
  auth::UserRef impersonated;  // Who the request was served as, when that is another.
  std::string impersonation_constraint;
  std::vector<std::string> source_ips;
  std::string user_agent;
  struct ObjectRef {
    std::string resource, ns, name, uid, api_group, api_version, resource_version, subresource;
  };
  std::optional<ObjectRef> object;
  int code = 0;                                 // Of the response; 0: none yet.
  std::string response_status;                  // JSON of a Status that was the response, or empty.
  std::string request_object, response_object;  // JSON.
  UnixTime received;
  std::vector<std::pair<std::string, std::string>> annotations;
};

// One line of the log, without its end.
std::string to_line(const Event& event, Stage stage, UnixTime at);

// A JSON object, or a list of them, without managedFields.
std::string without_managed_fields(std::string json);

struct LogOptions {
  std::string path;                   // "-": standard output.
  uint64_t max_bytes = 100ull << 20;  // A file that would grow larger is rotated.
  uint32_t max_backups = 0;           // Rotated files to keep; 0: all.
  uint32_t max_age_days = 0;          // The same by age.
};

// A file of lines. A line is in it, or counted as dropped, when write() returns: whoever has the answer to a request
// finds its events in the log, and a slow disk makes requests wait, as with --audit-log-mode=blocking in
// kube-apiserver, whose default it is. Thread-safe.
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
  void put_aside();
  void forget_old() const;

  const LogOptions options_;
  Counter& written_;
  Counter& dropped_;
  std::mutex mutex_;  // Guards what follows.
  int file_ = -1;
  uint64_t file_bytes_ = 0;
};

}  // namespace holdfast::audit
