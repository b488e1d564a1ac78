// Private to the module: shared by the printers of all kinds.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "table/table.h"

namespace holdfast::table {

// A row under construction.
class Row {
 public:
  Row(Arena& arena, const Value& object, UnixTime now) : arena_(arena), object_(object), now_(now), cells_(arena) {}

  void text(std::string_view text) { cells_.add(Value::string(arena_, text)); }
  // `text`, or `otherwise` if it is empty.
  void text_or(std::string_view text, std::string_view otherwise) { this->text(text.empty() ? otherwise : text); }
  void integer(int64_t number) { cells_.add(Value::integer(number)); }
  void boolean(bool b) { cells_.add(Value::boolean(b)); }
  void add(Value cell) { cells_.add(cell); }
  void name() { text(object_.text_at("metadata", "name")); }
  void age() { text(age_of(object_.text_at("metadata", "creationTimestamp"), now_)); }

  const Value& object() const { return object_; }
  UnixTime now() const { return now_; }
  Arena& arena() { return arena_; }
  Value build() { return cells_.build(); }

 private:
  Arena& arena_;
  const Value& object_;
  UnixTime now_;
  ListBuilder cells_;
};

using Printer = void (*)(Row&);

// Null if the kind has no printer. HPA v1 and v2, and events of both groups, are distinguished by group and version.
Printer workload_printer(std::string_view kind);
Printer core_printer(std::string_view kind);
Printer cluster_printer(std::string_view kind);

// Text helpers.
std::string join_strings(std::span<const Value> strings, std::string_view separator);
std::string map_text(std::span<const Member> members);  // "a=1,b=2" sorted; empty if there are none.
std::string container_names(const Value* pod_spec);
std::string container_images(const Value* pod_spec);
void containers(Row& row, const Value* pod_spec);  // Both the names and the images.
std::string_view or_none(std::string_view text);   // "<none>" if empty.
bool bool_at(const Value& object, std::string_view a, std::string_view b);
std::string int_or_string_text(const Value& value);

}  // namespace holdfast::table
