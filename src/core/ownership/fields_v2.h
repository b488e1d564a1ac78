// FieldsV2: a field set in a compact binary form. docs/formats/fieldsv2.md describes every byte and walks through an
// example.
//
// Lossless with respect to FieldsV1, and canonical: equal sets have equal bytes. Parsed in one forward pass and built
// without sorting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/error.h"
#include "ownership/field_set.h"

namespace holdfast::ownership {

enum class FieldsV2Layout : uint8_t {
  Plain = 1,       // Every name is written out.
  NameTable = 2,   // A name that occurred before, or is in the fixed table, is a number.
  CodedNames = 3,  // Other names are written in a prefix code. We write this layout and read all of them.
};

void append_fields_v2(std::string& out, FieldSet set, FieldsV2Layout layout = FieldsV2Layout::CodedNames);
std::string to_fields_v2(FieldSet set, FieldsV2Layout layout = FieldsV2Layout::CodedNames);

// Parses any layout. Texts point into `bytes`, which must outlive the set. The error names the byte: truncated data, a
// length or count beyond the end, elements out of order, an unknown version, type or name, trailing bytes.
Result<FieldSet> parse_fields_v2(Arena& arena, std::string_view bytes);

// The length of a set's FieldsV1 text, computed from the bytes written by append_fields_v2 at a fraction of the cost of
// converting it. Empty if the bytes were not written that way or if the set contains something unusual.
std::optional<size_t> measure_fields_v2(std::string_view bytes);

// Appends the FieldsV1 text, in canonical order, of a set written by append_fields_v2. Needs no intermediate tree
// unless the set contains something unusual.
void append_fields_v1_of(std::string_view fields_v2, std::string& out);

}  // namespace holdfast::ownership
