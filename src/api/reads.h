// What the reading verbs share.
#pragma once

#include <optional>
#include <string_view>

#include "api/call.h"
#include "cache/cache.h"

namespace holdfast::api {

// A resourceVersion of a query; nothing when it is unset. An untyped error in the words of Kubernetes' versioner.
Result<std::optional<Revision>> parse_revision(std::string_view text);

// One object: as fresh as the store when `revision` is unset, at least that fresh otherwise (0: whatever there is).
Task<Result<cache::EntryRef>> read_entry(Call& call, std::string_view name, std::optional<Revision> revision);

// labelSelector and fieldSelector, and whether the options go together, in upstream's order: what cannot be read, what
// does not fit, what cannot be selected. 400, 422.
Result<cache::Selector> parse_selector(const Call& call, const ListOptions& options);

// The entries that a list asks for, and its metadata.
struct Listed {
  std::vector<cache::EntryRef> entries;
  ListHead head;
};
Task<Result<Listed>> list_entries(Call& call, ListOptions options, cache::Selector selector);
// Answers with them, in pieces when they are many.
Task<void> stream_list(Call& call, Listed listed);

}  // namespace holdfast::api
