// Objects as kubectl prints them: aligned tables, YAML, JSON, names, JSONPath templates and columns of the user's own.
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

// Rows of cells, aligned as Go's tabwriter does it for kubectl: each column three blanks wider than its widest cell.
// What was printed once never becomes narrower.
class TableWriter {
 public:
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // The rows added since, as text.
  std::string take();

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> widths_;
};

// A cell of a Table: in one line, without control characters.
std::string cell_text(const Value& cell);

// With sorted members and four blanks of indentation, as kubectl -o json.
std::string json_text(const Value& value, size_t indent = 0);
std::string yaml_text(const Value& value);

// {range .items[*]}{.metadata.name}{"\n"}{end}: client-go's templates.
class JsonPathTemplate {
 public:
  static Result<JsonPathTemplate> parse(std::string_view text);
  // Missing members are nothing, as with kubectl get. BadRequest: an index out of bounds.
  Result<std::string> print(const Value& root) const;

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

 private:
  std::vector<std::string> headers_, paths_;
};

// --sort-by: objects in the order of what a path leads to.
class SortOrder {
 public:
  // {.metadata.name}, .metadata.name or metadata.name
  static Result<SortOrder> parse(std::string_view text);
  // What the object is sorted by; nothing where it has no such field.
  std::optional<Value> key_of(const Value& object) const;
  // Positions in ascending order: numbers by value, texts by amount if all are quantities, else byte by byte; those
  // without a key first, equal ones as they were. A single one needs no key. BadRequest: none has a key, or keys that
  // cannot be compared.
  Result<std::vector<size_t>> sorted(std::span<const std::optional<Value>> keys) const;

 private:
  std::string path_;
};

// What -o says.
struct Output {
  enum class Form : uint8_t { Table, Wide, Yaml, Json, Name, JsonPath, CustomColumns };
  Form form = Form::Table;
  std::shared_ptr<const JsonPathTemplate> json_path;
  std::shared_ptr<const CustomColumns> columns;
  bool reads_managed_fields = false;  // The template or the columns look at them.

  // kubectl's: wide, yaml, json, name, jsonpath=..., jsonpath-file=..., custom-columns=..., custom-columns-file=...
  static Result<Output> parse(const std::string& text);
  bool is_table() const { return form == Form::Table || form == Form::Wide; }
};

}  // namespace holdfast::cli
