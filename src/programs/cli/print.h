// Objects as kubectl prints them: aligned tables, YAML, JSON, names, JSONPath templates and custom columns.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "value/value.h"

namespace holdfast::cli {

// Rows of cells, aligned like kubectl's use of Go's tabwriter: each column three spaces wider than its widest cell.
// Columns never become narrower from one take() to the next. Hidden characters of cells are shown as text.
class TableWriter {
 public:
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // The rows added since the last call, as text.
  std::string take();

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> widths_;
};

// A cell of a Table on one line, cut where kubectl cuts it.
std::string cell_text(const Value& cell);

// With sorted members and an indentation of four spaces, as kubectl -o json. Hidden characters are escaped, in YAML too
// (codec/visible.h): what is printed reads back to the same value.
std::string json_text(const Value& value, size_t indent = 0);
std::string yaml_text(const Value& value);

// {range .items[*]}{.metadata.name}{"\n"}{end}: client-go's templates.
class JsonPathTemplate {
 public:
  static Result<JsonPathTemplate> parse(std::string_view text);
  // Missing members print nothing, as with kubectl get. BadRequest if an index is out of bounds.
  Result<std::string> print(const Value& root) const;
  // Whether it may print metadata.managedFields.
  bool reads_managed_fields() const;

  struct Node {
    enum class Kind : uint8_t { Text, Path, Range } kind = Kind::Text;
    std::string text;  // The path, or the text.
    std::vector<Node> body;
  };

 private:
  std::vector<Node> nodes_;
};

// NAME:.metadata.name,IMAGE:.spec.containers[*].image
class CustomColumns {
 public:
  static Result<CustomColumns> parse(std::string_view text);
  const std::vector<std::string>& headers() const { return headers_; }
  Result<std::vector<std::string>> row(const Value& object) const;
  bool reads_managed_fields() const;

 private:
  std::vector<std::string> headers_, paths_;
};

// --sort-by: orders objects by the value at a path.
class SortOrder {
 public:
  // {.metadata.name}, .metadata.name or metadata.name
  static Result<SortOrder> parse(std::string_view text);
  // The sort key of an object; nullopt if it has no such field.
  std::optional<Value> key_of(const Value& object) const;
  // Positions in ascending order of their keys: numbers by value; strings as quantities if all of them are, otherwise
  // bytewise; objects without a key first. The sort is stable. A single object needs no key. BadRequest if no object
  // has a key, or keys cannot be compared.
  Result<std::vector<size_t>> sorted(std::span<const std::optional<Value>> keys) const;

 private:
  std::string path_;
};

// The output format given by -o.
struct Output {
  enum class Form : uint8_t { Table, Wide, Yaml, Json, Name, JsonPath, CustomColumns };
  Form form = Form::Table;
  std::shared_ptr<const JsonPathTemplate> json_path;
  std::shared_ptr<const CustomColumns> columns;
  bool reads_managed_fields = false;  // The template or the columns may show managedFields, as in kubectl.

  // kubectl's: wide, yaml, json, name, jsonpath=..., jsonpath-file=..., custom-columns=..., custom-columns-file=...
  static Result<Output> parse(const std::string& text);
  bool is_table() const { return form == Form::Table || form == Form::Wide; }
};

}  // namespace holdfast::cli
