// What describes the built-in types and their fields: the texts of `kubectl explain`, from the catalog.
//
// They are packed in the binary and unpacked on demand; nothing of them is in memory while nobody holds a Descriptions.
// Column descriptions are not among them: tables need them often, and they are small (Column::description).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "types/types.h"

namespace holdfast::types {

class Descriptions {
 public:
  // Unpacks the texts (half a millisecond, 300 KB), or shares them with those who hold them already. Thread-safe.
  static std::shared_ptr<const Descriptions> get();

  // Empty for types and fields that are not in the catalog, and for inlined fields. Valid as long as this object.
  std::string_view of(const Type& type) const;
  std::string_view of(const Field& field) const;

  Descriptions();  // For get().

 private:
  // The texts of a struct's fields, which follow each other in memory and in `texts_`.
  struct Fields {
    const Field* first;
    size_t count, text;
  };

  std::string plain_;
  std::vector<std::string_view> texts_;  // Of each type of builtin_types(), followed by those of its fields.
  std::vector<size_t> types_;            // The positions of the former.
  std::vector<Fields> fields_;           // By address.
};

// The default that a description names in the form ``Default 1.`` or ``Default `Always`.``, without backquotes; empty
// if it names none in that form.
std::string_view stated_default(std::string_view description);

}  // namespace holdfast::types
