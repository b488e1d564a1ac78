// Query parameters and the options built from them, parsed and validated as in Kubernetes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace holdfast::request {

class RequestInfo;

// The decoded parameters of a request, in order, with the semantics of Go's url.Values: names are case-sensitive; pairs
// that cannot be decoded or contain a semicolon are dropped. As in Kubernetes' option decoding, the first value of a
// name wins, except where all() is used. Only created by RequestInfo.
class Query {
 public:
  const std::string* find(std::string_view name) const;
  std::string_view get(std::string_view name) const;
  std::vector<std::string> all(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  bool empty() const { return pairs_.empty(); }

 private:
  friend class RequestInfo;
  explicit Query(std::string_view raw);

  std::vector<std::pair<std::string, std::string>> pairs_;
};

// A bool as parsed by Kubernetes' query decoder: "0" and "false" in any case are false; anything else, including "", is
// true.
bool query_bool(std::string_view text);

struct ListOptions {
  std::string label_selector, field_selector;
  std::string resource_version, resource_version_match;
  std::string continue_token;
  int64_t limit = 0;
  bool watch = false;
  bool allow_watch_bookmarks = false;
  std::optional<bool> send_initial_events;
  std::optional<int64_t> timeout_seconds;
};
// 400 for unparsable values.
Result<ListOptions> parse_list_options(const Query& query);
// 422 for invalid combinations.
Result<Unit> validate(const ListOptions& options);

enum class FieldValidation : uint8_t { Ignore, Warn, Strict };

// Shared by CreateOptions, UpdateOptions and PatchOptions.
struct WriteOptions {
  bool dry_run = false;
  std::string field_manager;
  FieldValidation field_validation = FieldValidation::Warn;
  std::optional<bool> force;  // Apply patches only.
};
enum class WriteKind : uint8_t { Create, Update, Patch, Apply };
// An apply requires a field manager, which its configuration may specify instead of the query.
enum class WriteManager : uint8_t { InQuery, GivenElsewhere };
// 422 naming the kind of the options.
Result<WriteOptions> parse_write_options(const Query& query, WriteKind kind,
                                         WriteManager manager = WriteManager::InQuery);

// Validates a field manager name in metadata.options, at path `field`: at most 128 characters, all printable. The query
// parameter is validated as in Kubernetes, which counts bytes.
std::vector<Cause> check_declared_manager(std::string_view name, const std::string& field);

inline constexpr std::string_view kIgnoreStoreReadError = "ignoreStoreReadErrorWithClusterBreakingPotential";

struct DeleteOptions {
  std::optional<int64_t> grace_period_seconds;
  std::optional<std::string> uid, resource_version;  // Preconditions.
  std::optional<bool> orphan_dependents;
  std::optional<std::string> propagation_policy;
  std::vector<std::string> dry_run;
  bool ignore_store_read_error = false;  // ignoreStoreReadErrorWithClusterBreakingPotential.
  bool is_dry_run() const { return !dry_run.empty(); }
};
// From the query; only used if the request has no body. 400.
Result<DeleteOptions> parse_delete_options(const Query& query);
// 422.
Result<Unit> validate(const DeleteOptions& options);
// 422 with a single cause.
Error invalid_delete_options(Cause cause);

}  // namespace holdfast::request
