// FieldsV2: a field set as compact binary. docs/formats/fieldsv2.md describes every byte and walks through an example.
//
// Lossless with FieldsV1, and canonical: equal sets have equal bytes. Read in one pass without looking back, built
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
  NameTable = 2,   // A name that occurred before, or that every table begins with, is a number.
  CodedNames = 3,  // And others are spelled in a code of few bits. What we write; the others are read.
};

void append_fields_v2(std::string& out, FieldSet set, FieldsV2Layout layout = FieldsV2Layout::CodedNames);
std::string to_fields_v2(FieldSet set, FieldsV2Layout layout = FieldsV2Layout::CodedNames);

// Any layout. Texts point into `bytes`, which must live as long as the set. The error names the byte: truncated,
// a length or count beyond the end, elements out of order, an unknown version, type or name, what follows the set.
Result<FieldSet> parse_fields_v2(Arena& arena, std::string_view bytes);

// How long the FieldsV1 text of a set is, where `bytes` are those that append_fields_v2 writes for it: a fraction of
// the cost of reading and writing it to find out. Nothing where they are not, or where something in the set is unusual.
std::optional<size_t> measure_fields_v2(std::string_view bytes);

// Appends the FieldsV1 text, in canonical order, of a set that append_fields_v2 wrote: no tree in between, where
// nothing in it is unusual.
void append_fields_v1_of(std::string_view fields_v2, std::string& out);

}  // namespace holdfast::ownership
