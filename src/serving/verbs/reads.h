// Shared by the read verbs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/cache.h"
#include "call/call.h"

namespace holdfast::verbs {

// Parses the resourceVersion of a query; nullopt if unset. Untyped error with the message of Kubernetes' versioner.
Result<std::optional<Revision>> parse_revision(std::string_view text);

// Whether the resource behaves as in Kubernetes without a watch cache: reads are as fresh as the store, a limit always
// applies, and a future revision fails immediately. True for events, and for everything with --watch-cache=false.
bool bypasses_watch_cache(const call::Call& call);

// Reads one object: as fresh as the store if `revision` is unset, otherwise at least that revision (0 for any).
Task<Result<cache::EntryRef>> read_entry(call::Call& call, std::string_view name, std::optional<Revision> revision);

// Converts the error for an object that cannot be decoded to that of a read; returns other errors unchanged.
Error as_read_error(const call::Call& call, std::string_view name, Error error);

// Whether a canonical body can be decoded. Values of the embedded store that are copied into the cache
// (docs/formats/at_rest.md) are decoded only when first needed.
bool is_readable(call::Call& call, std::string_view body);

// Whether rendering this many bytes of objects in the requested form would block the loop for too long.
bool is_slow_to_render(const call::Call& call, size_t bytes);

// A requirement on a field in the requested version, for kinds converted by a webhook.
struct ConvertedField {
  std::string path;  // "spec.color"
  bool equal = true;
  std::string value;
};

// The selector of a list or watch: the part evaluated by the cache, and the part evaluated on converted objects.
struct Selection {
  cache::Selector stored;
  std::vector<ConvertedField> converted;
};

// The selector of the call's list or watch, after validating the combination of its options. 422 for invalid
// combinations, 400 for options that cannot be decoded and for fields that the resource does not support.
Result<Selection> resolve_selector(const call::Call& call);

// Whether the object matches these fields. It must have been converted before: see custom::convert_for_view.
bool has_fields(const call::Call& call, const cache::Entry& entry, const std::vector<ConvertedField>& fields);
// Converts the entries and returns those that match.
Task<Result<std::vector<cache::EntryRef>>> with_fields(call::Call& call, std::vector<cache::EntryRef> entries,
                                                       const std::vector<ConvertedField>& fields);

// The error for a list that contains objects that cannot be decoded.
Error unreadable_items(const call::Call& call, std::span<const cache::Unreadable> items);

// The selected entries of a list, and its metadata.
struct Listed {
  std::vector<cache::EntryRef> entries;
  render::ListHead head;
};
Task<Result<Listed>> list_entries(call::Call& call, const request::ListOptions& options, Selection selection);
// Sends the response, in chunks if it is large.
Task<void> stream_list(call::Call& call, Listed listed);

}  // namespace holdfast::verbs
