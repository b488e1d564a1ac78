// Converts metadata.managedFields between its forms: entries (as stored in the pool), trees, and encoded bytes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "codec/message_memo.h"
#include "ownership/pool.h"
#include "value/value.h"

namespace holdfast::resource {

// The list as a tree. Strings are views into the entries; fields become a Raw leaf (FieldsV1) or base64 text
// (FieldsV2). Null if there are no entries: the member is then omitted.
Value managed_fields_value(Arena& arena, std::span<const ownership::ManagedEntry> entries);
// The object as stored: without a resourceVersion, but with its managedFields.
Value stored_form(Arena& arena, const Value& object, std::span<const ownership::ManagedEntry> entries);

// The entries of such a list, in any form of the fields (tree, Raw, base64). A value that is not a list, and items that
// are not maps, are skipped. Strings are in the list or in `arena`.
std::vector<ownership::ManagedEntry> managed_entries(Arena& arena, const Value* list);

// The entries with their fields in binary form (FieldsV2) if they are valid sets; strings are in `arena`.
std::vector<ownership::ManagedEntry> as_fields_v2(Arena& arena, std::span<const ownership::ManagedEntry> entries);

// The list as compact JSON and as a CBOR item.
void append_managed_json(std::span<const ownership::ManagedEntry> entries, std::string& out);
void append_managed_cbor(std::span<const ownership::ManagedEntry> entries, std::string& out);

// Field 17 of ObjectMeta for each entry, as written by Go's generated code.
void append_managed_protobuf(std::span<const ownership::ManagedEntry> entries, std::string& out);

// Renders the managedFields of many objects, one after the other, without intermediate entries.
class OwnersRenderer {
 public:
  OwnersRenderer(std::string_view fields_type, ownership::MemberOrder order)
      : fields_type_(fields_type), order_(order) {}
  // As JSON, a CBOR item and Protobuf; empty if there are none. Valid until the next call.
  std::string_view json(const ownership::Owners& owners);
  std::string_view cbor(const ownership::Owners& owners, codec::MessageMemo& memo);
  std::string_view protobuf(const ownership::Owners& owners);

 private:
  ownership::ManagedEntry shown_entry(const ownership::Owners& owners, size_t i);

  const std::string_view fields_type_;
  const ownership::MemberOrder order_;
  ownership::FieldsReader fields_;
  std::string text_;
};

// Inserts managedFields into a canonical body (an envelope without them), and replaces its resourceVersion if one is
// given (empty removes it, as in the store).
std::string join_managed(std::string_view enveloped, std::span<const ownership::ManagedEntry> entries,
                         std::optional<std::string_view> revision = std::nullopt);

}  // namespace holdfast::resource
