// What the reading verbs share.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/cache.h"
#include "call/call.h"

namespace holdfast::verbs {

// A resourceVersion of a query; nothing when it is unset. An untyped error in the words of Kubernetes' versioner.
Result<std::optional<Revision>> parse_revision(std::string_view text);

// Whether a resource is read as Kubernetes reads what it has no watch cache for: every read is as fresh as the store, a
// limit always counts, and a future revision is an error at once. Events always, everything with --watch-cache=false.
bool reads_like_the_store(const call::Call& call);

// One object: as fresh as the store when `revision` is unset, at least that fresh otherwise (0: whatever there is).
Task<Result<cache::EntryRef>> read_entry(call::Call& call, std::string_view name, std::optional<Revision> revision);

// What a read of one object says when its stored value cannot be decoded; other errors as they are.
Error as_read_error(const call::Call& call, std::string_view name, Error error);

// Whether a canonical body can be decoded. Values of the embedded store that enter the cache by copying
// (docs/formats/at_rest.md) have not been decoded before they are first needed.
bool is_readable(call::Call& call, std::string_view body);

// Whether rendering so many bytes of objects in the form that was asked for keeps others on the loop waiting.
bool is_long_to_show(const call::Call& call, size_t bytes);

// A field that an object has in the requested version, where a webhook makes that version.
struct ConvertedField {
  std::string path;  // "spec.color"
  bool equal = true;
  std::string value;
};

// What a list or a watch selects: by what the cache has, and by what is known once the objects are converted.
struct Selection {
  cache::Selector stored;
  std::vector<ConvertedField> converted;
};

// What a list selects, once its options are known to be valid together. 422 for options that are not, 400 for fields
// that the resource does not select by.
Result<Selection> resolve_selector(const call::Call& call, const request::ListQuery& query);

// Whether the object has these fields. It must have been converted: see custom::prepare_to_show.
bool has_fields(const call::Call& call, const cache::Entry& entry, const std::vector<ConvertedField>& fields);
// Those that do, after they were converted.
Task<Result<std::vector<cache::EntryRef>>> with_fields(call::Call& call, std::vector<cache::EntryRef> entries,
                                                       const std::vector<ConvertedField>& fields);

// What a list says that has objects in it whose stored values cannot be decoded.
Error unreadable_items(const call::Call& call, std::span<const cache::Unreadable> items);

// The entries that a list asks for, and its metadata.
struct Listed {
  std::vector<cache::EntryRef> entries;
  render::ListHead head;
};
Task<Result<Listed>> list_entries(call::Call& call, const request::ListOptions& options, Selection selection);
// Answers with them, in pieces when they are many.
Task<void> stream_list(call::Call& call, Listed listed);

}  // namespace holdfast::verbs
