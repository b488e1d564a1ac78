// metadata.managedFields, decoded: who owns which fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "ownership/field_set.h"
#include "ownership/pool.h"
#include "value/value.h"

namespace holdfast::ownership {

enum class Operation : uint8_t { Apply, Update };
std::string_view name_of(Operation operation);  // As on the wire.

// One manager's entry. Texts and fields are views into the data that it was decoded from, or into the request's arena.
struct ManagerEntry {
  std::string_view manager;
  Operation operation = Operation::Update;
  std::string_view api_version;
  std::string_view subresource;
  std::optional<int64_t> time;  // Seconds since 1970. Not all entries have one.
  FieldSet fields;
};
using Managed = std::vector<ManagerEntry>;

// Whether two entries belong to the same manager: same name, operation and subresource, and for updates the same
// version.
bool same_manager(const ManagerEntry& a, const ManagerEntry& b);
// The text by which Kubernetes identifies managers and sorts conflicts:
// {"manager":"m","operation":"Update","apiVersion":"v1"}
std::string identity_text(const ManagerEntry& entry);
// As named in error messages: "m" with subresource "status" using v1
std::string manager_text(const ManagerEntry& entry);

struct ManagedOptions {
  bool fields_v2 = false;  // Feature gate FieldsV2: entries in the binary form are accepted.
};
// Decodes the list found in an object; null or absent means no entries. BadRequest with Kubernetes' message if an entry
// cannot be parsed. If a manager has two entries, the later one wins.
Result<Managed> decode_managed(Arena& arena, const Value& list, const ManagedOptions& options = {});

// The same from the pool, without converting to text. Fails where decode_managed of the list would fail.
Result<Managed> decode_managed(Arena& arena, const Owners& owners, const ManagedOptions& options = {});
// For Pool::intern: fields as FieldsV2 when `fields_v2`, else as FieldsV1 text, both in `arena`.
std::vector<ManagedEntry> entries_of(Arena& arena, const Managed& managed, bool fields_v2 = true);

// Sorts in the order in which Kubernetes writes them: operation, time, manager, version, subresource.
void sort_managed(Managed& managed);
// The list for an object: sorted, with fieldsV1 as raw JSON. Null if there are no entries (the key is omitted then).
Value encode_managed(Arena& arena, Managed managed, MemberOrder order = MemberOrder::Canonical);

// Whether a list sent by a client resets ownership: [] or [{}].
bool resets_managed(const Value& list);

// The manager name for a request other than apply: the parameter, else the user agent up to the first '/', printable
// characters only, at most 128 bytes. "unknown" if nothing is left.
std::string manager_name(std::string_view field_manager, std::string_view user_agent);

}  // namespace holdfast::ownership
