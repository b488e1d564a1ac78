#include "request/query.h"

#include <algorithm>

#include "base/api_error.h"
#include "base/error_budget.h"
#include "base/go_numbers.h"
#include "base/strings.h"
#include "base/text.h"
#include "net/net.h"

namespace holdfast::request {
namespace {

std::vector<Cause> check_dry_run(const std::vector<std::string>& values) {
  for (const std::string& value : values) {
    if (value == "All") continue;
    std::string shown = "[";
    for (size_t i = 0; i < values.size(); ++i) shown += (i == 0 ? "" : ",") + json_quote(values[i]);
    return {{"FieldValueNotSupported", "Unsupported value: " + shown + "]: supported values: \"All\"", "dryRun"}};
  }
  return {};
}

Error invalid_options(std::string_view kind, std::vector<Cause> causes) {
  return invalid({"meta.k8s.io", kind}, "", std::move(causes));
}

}  // namespace

Query::Query(std::string_view raw) {
  while (!raw.empty()) {
    const size_t ampersand = std::min(raw.find('&'), raw.size());
    const std::string_view pair = raw.substr(0, ampersand);
    raw.remove_prefix(std::min(ampersand + 1, raw.size()));
    if (pair.empty() || pair.find(';') != std::string_view::npos) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    std::optional<std::string> name = net::percent_decode(pair.substr(0, equals), true);
    std::optional<std::string> value = net::percent_decode(pair.substr(std::min(equals + 1, pair.size())), true);
    if (name && value) pairs_.emplace_back(std::move(*name), std::move(*value));
  }
}

const std::string* Query::find(std::string_view name) const {
  for (const auto& [key, value] : pairs_) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::string_view Query::get(std::string_view name) const {
  const std::string* found = find(name);
  return found == nullptr ? std::string_view{} : std::string_view(*found);
}

std::vector<std::string> Query::all(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : pairs_) {
    if (key == name) values.push_back(value);
  }
  return values;
}

bool query_bool(std::string_view text) { return text != "0" && !equals_ignoring_case(text, "false"); }

Result<ListOptions> parse_list_options(const Query& query) {
  ListOptions options;
  if (query.empty()) return options;
  options.label_selector = query.get("labelSelector");
  options.field_selector = query.get("fieldSelector");
  options.resource_version = query.get("resourceVersion");
  options.resource_version_match = query.get("resourceVersionMatch");
  options.continue_token = query.get("continue");
  if (const std::string* text = query.find("watch")) options.watch = query_bool(*text);
  if (const std::string* text = query.find("allowWatchBookmarks")) options.allow_watch_bookmarks = query_bool(*text);
  if (const std::string* text = query.find("sendInitialEvents")) options.send_initial_events = query_bool(*text);
  if (const std::string* text = query.find("timeoutSeconds")) {
    Result<int64_t> seconds = go_parse_int(*text);
    if (!seconds) return seconds.take_error();
    options.timeout_seconds = *seconds;
  }
  if (const std::string* text = query.find("limit")) {
    Result<int64_t> limit = go_parse_int(*text);
    if (!limit) return limit.take_error();
    options.limit = *limit;
  }
  return options;
}

Result<Unit> validate(const ListOptions& options) {
  std::vector<Cause> causes;
  const std::string& match = options.resource_version_match;
  const std::string field = "resourceVersionMatch";
  if (options.watch) {
    // A watch without a resourceVersion implies initial events (SetListOptionsDefaults).
    const bool from_now = options.resource_version.empty() || options.resource_version == "0";
    if (from_now && !options.send_initial_events && match.empty() && !options.continue_token.empty()) {
      causes.push_back(field_forbidden(field, "resourceVersionMatch is forbidden when continue is provided"));
    }
    if (options.send_initial_events && match != "NotOlderThan") {
      causes.push_back(
          field_forbidden(field, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
    }
    if (!match.empty()) {
      if (!options.send_initial_events) {
        causes.push_back(
            field_forbidden(field, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"));
      }
      if (match != "NotOlderThan") {
        static constexpr std::string_view kSupported[] = {"NotOlderThan"};
        causes.push_back(field_not_supported(field, match, kSupported));
      }
      if (!options.continue_token.empty()) {
        causes.push_back(field_forbidden(field, "resourceVersionMatch is forbidden when continue is provided"));
      }
    }
  } else {
    if (!match.empty()) {
      if (options.resource_version.empty()) {
        causes.push_back(
            field_forbidden(field, "resourceVersionMatch is forbidden unless resourceVersion is provided"));
      }
      if (!options.continue_token.empty()) {
        causes.push_back(field_forbidden(field, "resourceVersionMatch is forbidden when continue is provided"));
      }
      if (match != "Exact" && match != "NotOlderThan") {
        static constexpr std::string_view kSupported[] = {"Exact", "NotOlderThan", ""};
        causes.push_back(field_not_supported(field, match, kSupported));
      }
      if (match == "Exact" && options.resource_version == "0") {
        causes.push_back(
            field_forbidden(field, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""));
      }
    }
    if (options.send_initial_events) {
      causes.push_back(field_forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
  }
  if (!causes.empty()) return invalid_options("ListOptions", std::move(causes));
  return Unit{};
}

namespace {

constexpr size_t kMaxManagerLength = 128;

// Causes for the unprintable characters of `name`; `count` is set to the number of characters.
std::vector<Cause> check_printable(std::string_view name, const std::string& field, size_t& count) {
  std::vector<Cause> causes;
  ErrorBudget budget;  // Each cause shows the whole name.
  for (size_t at = 0; at < name.size(); ++count) {
    const Rune rune = decode_rune(name, at);
    if (!is_print(rune.value) && budget.admits()) {
      causes.push_back(field_invalid_text(
          field, name, "invalid character " + go_code_point(rune.value) + " (at position " + std::to_string(at) + ")"));
      budget.took(causes.back());
    }
    at += rune.length;
  }
  if (budget.left_out() > 0) causes.push_back(left_out_cause(budget.left_out()));
  return causes;
}

std::vector<Cause> check_field_manager(std::string_view name) {
  size_t characters = 0;
  std::vector<Cause> causes = check_printable(name, "fieldManager", characters);
  if (name.size() > kMaxManagerLength) causes.insert(causes.begin(), field_too_long("fieldManager", kMaxManagerLength));
  return causes;
}

}  // namespace

std::vector<Cause> check_declared_manager(std::string_view name, const std::string& field) {
  size_t characters = 0;
  std::vector<Cause> causes = check_printable(name, field, characters);
  if (characters > kMaxManagerLength) {
    causes.insert(causes.begin(), {"FieldValueTooLong", "Too long: may not be more than 128 characters", field});
  }
  return causes;
}

Result<WriteOptions> parse_write_options(const Query& query, WriteKind kind, WriteManager manager) {
  WriteOptions options;
  std::vector<Cause> causes;
  options.field_manager = query.get("fieldManager");
  if (const std::string* force = query.find("force")) options.force = query_bool(*force);
  if (kind == WriteKind::Apply) {
    if (options.field_manager.empty() && manager == WriteManager::InQuery)
      causes.push_back(field_required("fieldManager", "is required for apply patch"));
  } else if (kind == WriteKind::Patch && options.force) {
    causes.push_back(field_forbidden("force", "may not be specified for non-apply patch"));
  }
  for (Cause& cause : check_field_manager(options.field_manager)) causes.push_back(std::move(cause));
  const std::vector<std::string> dry_run = query.all("dryRun");
  for (Cause& cause : check_dry_run(dry_run)) causes.push_back(std::move(cause));
  options.dry_run = !dry_run.empty();
  const std::string_view validation = query.get("fieldValidation");
  if (validation == "Ignore") {
    options.field_validation = FieldValidation::Ignore;
  } else if (validation == "Strict") {
    options.field_validation = FieldValidation::Strict;
  } else if (!validation.empty() && validation != "Warn") {
    static constexpr std::string_view kSupported[] = {"", "Ignore", "Strict", "Warn"};
    causes.push_back(field_not_supported("fieldValidation", validation, kSupported));
  }
  if (!causes.empty()) {
    const std::string_view name = kind == WriteKind::Create   ? "CreateOptions"
                                  : kind == WriteKind::Update ? "UpdateOptions"
                                                              : "PatchOptions";
    return invalid_options(name, std::move(causes));
  }
  return options;
}

Result<DeleteOptions> parse_delete_options(const Query& query) {
  DeleteOptions options;
  if (const std::string* text = query.find("gracePeriodSeconds")) {
    Result<int64_t> seconds = go_parse_int(*text);
    if (!seconds) return seconds.take_error();
    options.grace_period_seconds = *seconds;
  }
  if (const std::string* text = query.find("orphanDependents")) options.orphan_dependents = query_bool(*text);
  if (const std::string* text = query.find("propagationPolicy")) options.propagation_policy = *text;
  if (const std::string* text = query.find("uid")) options.uid = *text;
  if (const std::string* text = query.find("resourceVersion")) options.resource_version = *text;
  options.dry_run = query.all("dryRun");
  if (const std::string* text = query.find(kIgnoreStoreReadError)) options.ignore_store_read_error = query_bool(*text);
  return options;
}

Error invalid_delete_options(Cause cause) { return invalid_options("DeleteOptions", {std::move(cause)}); }

Result<Unit> validate(const DeleteOptions& options) {
  std::vector<Cause> causes;
  if (options.propagation_policy) {
    const std::string& policy = *options.propagation_policy;
    if (options.orphan_dependents) {
      causes.push_back(field_invalid_text("propagationPolicy", policy,
                                          "orphanDependents and deletionPropagation cannot be both set"));
    }
    if (policy != "Foreground" && policy != "Background" && policy != "Orphan") {
      static constexpr std::string_view kSupported[] = {"Foreground", "Background", "Orphan", "nil"};
      causes.push_back(field_not_supported("propagationPolicy", policy, kSupported));
    }
  }
  for (Cause& cause : check_dry_run(options.dry_run)) causes.push_back(std::move(cause));
  if (options.ignore_store_read_error) {
    // None of these can be honored for an object that cannot be decoded.
    const auto refuse = [&causes](bool given, std::string_view other) {
      if (!given) return;
      causes.push_back(field_invalid(std::string(kIgnoreStoreReadError), "true",
                                     "cannot be set together with ." + std::string(other)));
    };
    refuse(!options.dry_run.empty(), "dryRun");
    refuse(options.propagation_policy.has_value(), "propagationPolicy");
    refuse(options.orphan_dependents.has_value(), "orphanDependents");
    refuse(options.grace_period_seconds.has_value(), "gracePeriodSeconds");
    refuse(options.uid.has_value() || options.resource_version.has_value(), "preconditions");
  }
  if (!causes.empty()) return invalid_options("DeleteOptions", std::move(causes));
  return Unit{};
}

}  // namespace holdfast::request
