// metadata.managedFields between its forms: entries (as the pool keeps them), trees, and Protobuf bytes.
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

// The list as JSON shows it. Texts are those of the entries; an entry's fields become a Raw leaf (FieldsV1) or base64
// text (FieldsV2). Null when there are no entries: the member is then left out.
Value managed_fields_value(Arena& arena, std::span<const ownership::ManagedEntry> entries);
// The object as stored: without a resourceVersion, its managedFields inside.
Value stored_form(Arena& arena, const Value& object, std::span<const ownership::ManagedEntry> entries);

// The entries of such a list, whatever form its fields have (a tree, Raw, base64). What is not a list, or an item that
// is not a map, is skipped. Strings are in the list or in `arena`.
std::vector<ownership::ManagedEntry> managed_entries(Arena& arena, const Value* list);

// The same entries with their fields in the binary form, where they are sets; strings are in `arena`.
std::vector<ownership::ManagedEntry> as_fields_v2(Arena& arena, std::span<const ownership::ManagedEntry> entries);

// The same list as compact JSON text, and as a CBOR item.
void append_managed_json(std::span<const ownership::ManagedEntry> entries, std::string& out);
void append_managed_cbor(std::span<const ownership::ManagedEntry> entries, std::string& out);

// Field 17 of ObjectMeta for each entry, as generated code writes it.
void append_managed_protobuf(std::span<const ownership::ManagedEntry> entries, std::string& out);

// The owners of many objects, one after the other, without entries in between.
class OwnersRenderer {
 public:
  OwnersRenderer(std::string_view fields_type, ownership::MemberOrder order)
      : fields_type_(fields_type), order_(order) {}
  // As JSON text, as a CBOR item and as Protobuf; empty when there are none. Valid until the next call.
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

// A canonical body (an envelope without managedFields) with these, and with another resourceVersion if one is given
// (empty: none, as the store has it).
std::string join_managed(std::string_view enveloped, std::span<const ownership::ManagedEntry> entries,
                         std::optional<std::string_view> revision = std::nullopt);

}  // namespace holdfast::resource
