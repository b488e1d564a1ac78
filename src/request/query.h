// Query parameters and the options they make, parsed and checked as Kubernetes does.
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

// The decoded parameters of a request, in order, as Go's url.Values has them: names are case-sensitive, a pair that
// cannot be decoded or that holds a semicolon is dropped. As in Kubernetes' option decoding the first value of a name
// counts, except where all() is used. Only RequestInfo makes one.
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

// A bool as Kubernetes' query decoder reads it: "0" and "false" in any case are false, anything else, also "", is true.
bool query_bool(std::string_view text);
// Go's strconv.ParseInt and ParseUint in base 10, with their error texts.
Result<int64_t> go_parse_int(std::string_view text);
Result<uint64_t> go_parse_uint(std::string_view text);

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
// 400 for what cannot be parsed.
Result<ListOptions> parse_list_options(const Query& query);
// 422 for what does not fit together.
Result<Unit> validate(const ListOptions& options);

enum class FieldValidation : uint8_t { Ignore, Warn, Strict };

// CreateOptions, UpdateOptions and PatchOptions are these.
struct WriteOptions {
  bool dry_run = false;
  std::string field_manager;
  FieldValidation field_validation = FieldValidation::Warn;
  std::optional<bool> force;  // Apply patches only.
};
enum class WriteKind : uint8_t { Create, Update, Patch, Apply };
// An apply needs a manager; its configuration may name it instead of the query.
enum class WriteManager : uint8_t { InQuery, GivenElsewhere };
// 422 naming the options' kind.
Result<WriteOptions> parse_write_options(const Query& query, WriteKind kind,
                                         WriteManager manager = WriteManager::InQuery);

// Causes for the name of a field manager in metadata.options, found at `field`: more than 128 characters, or some that
// are not printable. The query parameter is checked as Kubernetes does it, which counts bytes.
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
// From the query: used only when the request has no body. 400.
Result<DeleteOptions> parse_delete_options(const Query& query);
// 422.
Result<Unit> validate(const DeleteOptions& options);
// 422 with this cause alone.
Error invalid_delete_options(Cause cause);

}  // namespace holdfast::request
