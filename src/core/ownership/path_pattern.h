// Paths as text, with wildcards: they select fields, and everything below them, from field sets.
//
//   .spec.replicas                            a field, as shown in conflicts
//   .spec.ports[port=80,protocol="TCP"].name  in an item of a keyed list, with all its keys
//   .spec.containers[*].image                 in every item
//   .metadata.labels.*                        every member
//
// Names may contain dots, as in conflicts: .metadata.labels.app.kubernetes.io/name.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/error.h"
#include "ownership/field_set.h"

namespace holdfast::ownership {

class PathPattern {
 public:
  // BadRequest names what is wrong.
  static Result<PathPattern> parse(std::string_view text);

  const std::string& text() const { return text_; }

 private:
  explicit PathPattern(std::string_view text) : text_(text) {}
  std::string text_;
};

// The position after the bracket that closes the first one of `text`, which quoted strings may contain; npos if none
// does.
size_t end_of_brackets(std::string_view text);

// What a pattern selects that names something inside an atomic value.
enum class InsideAtomic : uint8_t {
  Nothing,
  WholeValue,  // The value, because it can only be written as a whole.
};
// The members of `set` that any of the patterns selects. Recursive: see run_with_stack_for().
FieldSet selected(Arena& arena, FieldSet set, std::span<const PathPattern> patterns, InsideAtomic inside);

}  // namespace holdfast::ownership
