#include "cli/print.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "base/files.h"
#include "base/strings.h"
#include "cli/terminal.h"
#include "codec/codec.h"
#include "codec/quantity.h"
#include "codec/visible.h"
#include "table/table.h"

namespace holdfast::cli {

std::string TableWriter::take() {
  constexpr size_t kMinWidth = 6, kPadding = 3;  // As configured by kubectl.
  for (std::vector<std::string>& row : rows_) {
    for (std::string& cell : row) cell = visible_line(cell);
    if (widths_.size() < row.size()) widths_.resize(row.size(), kMinWidth);
    for (size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], shown_width(row[i]) + kPadding);
  }
  std::string out;
  for (const std::vector<std::string>& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) out += i + 1 < row.size() ? padded(row[i], widths_[i]) : row[i];
    out += '\n';
  }
  rows_.clear();
  return out;
}

std::string cell_text(const Value& cell) {
  if (cell.is_null()) return "";
  if (!cell.is_string()) return codec::encode_json(cell);
  const std::string_view text = cell.as_string();
  const size_t end = text.find_first_of("\f\n\r");
  const std::string out = visible_line(text.substr(0, end));
  return end == std::string_view::npos ? out : out + "...";
}

namespace {

void append_json(const Value& value, size_t indent, std::string& out) {
  if (value.is_map() && value.count() > 0) {
    std::vector<const Member*> members;
    for (const Member& member : value.members()) members.push_back(&member);
    std::sort(members.begin(), members.end(), [](const Member* a, const Member* b) { return a->key < b->key; });
    out += "{\n";
    for (size_t i = 0; i < members.size(); ++i) {
      out.append(indent + 4, ' ');
      codec::encode_json_string(members[i]->key, out);
      out += ": ";
      append_json(members[i]->value, indent + 4, out);
      out += i + 1 < members.size() ? ",\n" : "\n";
    }
    out.append(indent, ' ');
    out += '}';
  } else if (value.is_list() && value.count() > 0) {
    out += "[\n";
    for (size_t i = 0; i < value.count(); ++i) {
      out.append(indent + 4, ' ');
      append_json(value.items()[i], indent + 4, out);
      out += i + 1 < value.count() ? ",\n" : "\n";
    }
    out.append(indent, ' ');
    out += ']';
  } else {
    codec::encode_json(value, out);
  }
}

// Scalars as Go prints them; lists and maps as JSON.
std::string plain_text(const Value& value) {
  return value.is_string() ? std::string(value.as_string()) : codec::encode_json(value);
}

// As Go's fmt prints decoded JSON: [a b], map[k:v].
std::string go_text(const Value& value) {
  if (value.is_null()) return "<nil>";
  std::string text;
  if (value.is_list()) {
    for (const Value& item : value.items()) text += (text.empty() ? "" : " ") + go_text(item);
    return "[" + text + "]";
  }
  if (value.is_map()) {
    std::vector<const Member*> members;
    for (const Member& member : value.members()) members.push_back(&member);
    std::sort(members.begin(), members.end(), [](const Member* a, const Member* b) { return a->key < b->key; });
    for (const Member* member : members) {
      text += (text.empty() ? "" : " ") + std::string(member->key) + ":" + go_text(member->value);
    }
    return "map[" + text + "]";
  }
  return plain_text(value);
}

class TemplateParser {
 public:
  explicit TemplateParser(std::string_view text) : text_(text) {}

  // Parses up to the end, or to the {end} of a range.
  Result<std::vector<JsonPathTemplate::Node>> parse(bool in_range) {
    using Node = JsonPathTemplate::Node;
    std::vector<Node> nodes;
    while (at_ < text_.size()) {
      const size_t open = text_.find('{', at_);
      if (open != at_) nodes.push_back({Node::Kind::Text, std::string(text_.substr(at_, open - at_)), {}});
      if (open == std::string_view::npos) {
        at_ = text_.size();
        break;
      }
      Result<std::string_view> inside = block(open);
      if (!inside) return inside.take_error();
      const std::string_view action = trim(*inside);
      if (action == "end") {
        if (!in_range) return bad_request("not in range, nothing to end");
        return nodes;
      }
      if (action.starts_with("range ")) {
        Node range{Node::Kind::Range, std::string(trim(action.substr(6))), {}};
        Result<std::vector<Node>> body = parse(true);
        if (!body) return body.take_error();
        range.body = std::move(*body);
        if (Result<Unit> valid = table::check_json_path(range.text); !valid) return valid.take_error();
        nodes.push_back(std::move(range));
      } else if (action.starts_with('"') || action.starts_with('\'')) {
        nodes.push_back({Node::Kind::Text, unquoted(action), {}});
      } else {
        const std::string path(action.starts_with("@") ? action.substr(1) : action);
        if (Result<Unit> valid = table::check_json_path(path); !valid) return valid.take_error();
        nodes.push_back({Node::Kind::Path, path, {}});
      }
    }
    if (in_range) return bad_request("unterminated range: {end} is missing");
    return nodes;
  }

 private:
  // The text between the braces; quotes and nested brackets may contain braces.
  Result<std::string_view> block(size_t open) {
    char quote = 0;
    for (size_t i = open + 1; i < text_.size(); ++i) {
      const char c = text_[i];
      if (quote != 0) {
        if (c == '\\') ++i;
        if (c == quote) quote = 0;
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == '}') {
        at_ = i + 1;
        return text_.substr(open + 1, i - open - 1);
      }
    }
    return bad_request("unclosed action");
  }

  static std::string unquoted(std::string_view text) {
    std::string out;
    for (size_t i = 1; i + 1 < text.size(); ++i) {
      char c = text[i];
      if (c == '\\' && i + 2 < text.size()) {
        c = text[++i];
        c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
      }
      out += c;
    }
    return out;
  }

  std::string_view text_;
  size_t at_ = 0;
};

Result<Unit> print_nodes(const std::vector<JsonPathTemplate::Node>& nodes, const Value& root, const Value& current,
                         std::string& out) {
  using Kind = JsonPathTemplate::Node::Kind;
  for (const JsonPathTemplate::Node& node : nodes) {
    if (node.kind == Kind::Text) {
      out += node.text;
      continue;
    }
    std::vector<Value> found;
    const Value& from = node.text.starts_with('$') ? root : current;
    if (!table::evaluate_json_path(node.text, from, found)) {
      return bad_request("error executing jsonpath \"" + node.text + "\": array index out of bounds");
    }
    if (node.kind == Kind::Path) {
      // Several results are separated by spaces; null prints nothing.
      std::string text;
      for (size_t i = 0; i < found.size(); ++i) {
        if (i > 0) text += ' ';
        if (!found[i].is_null()) text += plain_text(found[i]);
      }
      out += text;
      continue;
    }
    for (const Value& item : found) {
      Result<Unit> printed = print_nodes(node.body, root, item, out);
      if (!printed) return printed;
    }
  }
  return Unit{};
}

// Whether the value at a path of an object, of a List, or of an item may contain managedFields: unless it is below
// another field of the object, or below another field of its metadata.
bool may_read_ownership(std::string_view path) {
  if (path.find("managedFields") != std::string_view::npos || path.find("..") != std::string_view::npos) return true;
  if (path.starts_with('$') || path.starts_with('@')) path.remove_prefix(1);
  if (path.starts_with(".items[")) path.remove_prefix(std::min(path.find(']'), path.size() - 1) + 1);
  if (!path.starts_with('.') || path.size() == 1) return true;
  path.remove_prefix(1);
  const std::string_view field = path.substr(0, path.find_first_of(".["));
  if (field == "items" || field == "*" || field.empty()) return true;
  if (field != "metadata") return false;
  path.remove_prefix(field.size());
  return !path.starts_with('.') || path.size() == 1 || path[1] == '*' || path[1] == '[';
}

bool any_reads_ownership(const std::vector<JsonPathTemplate::Node>& nodes) {
  using Kind = JsonPathTemplate::Node::Kind;
  return std::any_of(nodes.begin(), nodes.end(), [](const JsonPathTemplate::Node& node) {
    // What a range yields is printed by its body.
    return (node.kind == Kind::Path && may_read_ownership(node.text)) ||
           (node.kind == Kind::Range && (any_reads_ownership(node.body) || node.text.find("..") != std::string::npos ||
                                         node.text.find("managedFields") != std::string::npos));
  });
}

Result<std::string> file_text(std::string_view path) {
  Result<std::string> text = read_file(std::string(path));
  if (!text) return bad_request("error reading template " + std::string(path));
  return text;
}

}  // namespace

std::string json_text(const Value& value, size_t indent) {
  std::string out;
  append_json(value, indent, out);
  return codec::visible_json(std::move(out));
}

std::string yaml_text(const Value& value) {
  std::string out;
  if (!codec::encode_visible_yaml(value, out)) out = json_text(value) + "\n";
  return out;
}

Result<JsonPathTemplate> JsonPathTemplate::parse(std::string_view text) {
  JsonPathTemplate parsed;
  // kubectl's relaxed form: a bare path.
  const std::string whole =
      text.find('{') == std::string_view::npos ? "{" + std::string(text) + "}" : std::string(text);
  Result<std::vector<Node>> nodes = TemplateParser(whole).parse(false);
  if (!nodes) return bad_request("error parsing jsonpath " + std::string(text) + ", " + nodes.error().message);
  parsed.nodes_ = std::move(*nodes);
  return parsed;
}

bool JsonPathTemplate::reads_managed_fields() const { return any_reads_ownership(nodes_); }

Result<std::string> JsonPathTemplate::print(const Value& root) const {
  std::string out;
  Result<Unit> printed = print_nodes(nodes_, root, root, out);
  if (!printed) return printed.take_error();
  return out;
}

Result<CustomColumns> CustomColumns::parse(std::string_view text) {
  CustomColumns columns;
  if (text.empty()) return bad_request("custom-columns format specified but no custom columns given");
  for (const std::string_view part : split(text, ',')) {
    const size_t colon = part.find(':');
    if (colon == std::string_view::npos || colon + 1 == part.size()) {
      return bad_request("unexpected custom-columns spec: " + std::string(part) +
                         ", expected <header>:<json-path-expr>");
    }
    const std::string path(part.substr(colon + 1));
    if (Result<Unit> valid = table::check_json_path(path); !valid) return valid.take_error();
    columns.headers_.emplace_back(part.substr(0, colon));
    columns.paths_.push_back(path);
  }
  return columns;
}

bool CustomColumns::reads_managed_fields() const {
  return std::any_of(paths_.begin(), paths_.end(), [](const std::string& path) { return may_read_ownership(path); });
}

Result<std::vector<std::string>> CustomColumns::row(const Value& object) const {
  std::vector<std::string> cells;
  for (const std::string& path : paths_) {
    std::vector<Value> found;
    if (!table::evaluate_json_path(path, object, found))
      return bad_request("error executing jsonpath \"" + path + "\"");
    std::string text;
    for (const Value& value : found) {
      if (!text.empty()) text += ',';
      text += value.is_null() ? "<none>" : go_text(value);
    }
    cells.push_back(found.empty() ? "<none>" : text);
  }
  return cells;
}

Result<SortOrder> SortOrder::parse(std::string_view text) {
  SortOrder order;
  if (text.starts_with('{') && text.ends_with('}')) text = text.substr(1, text.size() - 2);
  order.path_ = (text.starts_with('.') ? "" : ".") + std::string(text);
  if (Result<Unit> valid = table::check_json_path(order.path_); !valid) {
    return bad_request("--sort-by: " + valid.error().message);
  }
  return order;
}

std::optional<Value> SortOrder::key_of(const Value& object) const {
  std::vector<Value> found;
  if (!table::evaluate_json_path(path_, object, found) || found.empty() || found[0].is_null()) return std::nullopt;
  return found[0];
}

Result<std::vector<size_t>> SortOrder::sorted(std::span<const std::optional<Value>> keys) const {
  std::vector<size_t> positions(keys.size());
  std::iota(positions.begin(), positions.end(), size_t{0});
  if (keys.size() < 2) return positions;
  std::vector<std::optional<codec::Quantity>> amounts(keys.size());  // Set for strings that are quantities.
  size_t texts = 0, numbers = 0, quantities = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!keys[i]) continue;
    if (keys[i]->is_string()) {
      ++texts;
      if (Result<codec::Quantity> quantity = codec::Quantity::parse(keys[i]->as_string())) {
        amounts[i] = std::move(*quantity);
        ++quantities;
      }
    } else if (keys[i]->is_number()) {
      ++numbers;
    } else {
      return bad_request("--sort-by: the value at " + path_ + " is neither a string nor a number");
    }
  }
  if (texts + numbers == 0) {
    return bad_request("couldn't find any field with path \"{" + path_ + "}\" in the list of objects");
  }
  if (texts > 0 && numbers > 0)
    return bad_request("--sort-by: some objects have a string at " + path_ + ", others a number");
  std::stable_sort(positions.begin(), positions.end(), [&](size_t a, size_t b) {
    if (!keys[a] || !keys[b]) return !keys[a] && keys[b];
    if (numbers > 0) return keys[a]->number_value() < keys[b]->number_value();
    if (quantities == texts) return *amounts[a] < *amounts[b];
    return keys[a]->as_string() < keys[b]->as_string();
  });
  return positions;
}

Result<Output> Output::parse(const std::string& text) {
  Output output;
  const size_t equals = text.find('=');
  const std::string form = text.substr(0, equals);
  std::string rest = equals == std::string::npos ? "" : text.substr(equals + 1);
  if (form.ends_with("-file")) {
    Result<std::string> content = file_text(rest);
    if (!content) return content.take_error();
    rest = std::move(*content);
  }
  if (text.empty()) return output;
  if (text == "wide") {
    output.form = Form::Wide;
  } else if (text == "yaml") {
    output.form = Form::Yaml;
  } else if (text == "json") {
    output.form = Form::Json;
  } else if (text == "name") {
    output.form = Form::Name;
  } else if (form == "jsonpath" || form == "jsonpath-file") {
    if (rest.empty()) return bad_request("template format specified but no template given");
    Result<JsonPathTemplate> parsed = JsonPathTemplate::parse(rest);
    if (!parsed) return parsed.take_error();
    output.form = Form::JsonPath;
    output.json_path = std::make_shared<JsonPathTemplate>(std::move(*parsed));
  } else if (form == "custom-columns" || form == "custom-columns-file") {
    if (form == "custom-columns-file") {
      // Two lines: headers and paths, separated by spaces.
      std::istringstream lines(rest);
      std::string headers, paths, header, path;
      std::getline(lines, headers);
      std::getline(lines, paths);
      std::istringstream names(headers), expressions(paths);
      rest.clear();
      while (names >> header && expressions >> path) rest += (rest.empty() ? "" : ",") + header + ":" + path;
    }
    Result<CustomColumns> parsed = CustomColumns::parse(rest);
    if (!parsed) return parsed.take_error();
    output.form = Form::CustomColumns;
    output.columns = std::make_shared<CustomColumns>(std::move(*parsed));
  } else if (form.starts_with("go-template")) {
    return bad_request("-o " + form + " is not supported: Go templates require Go. Use -o jsonpath=... or kubectl");
  } else {
    return bad_request("unable to match a printer suitable for the output format \"" + text +
                       "\", allowed formats are: "
                       "custom-columns,custom-columns-file,json,jsonpath,jsonpath-file,name,wide,yaml");
  }
  if (output.json_path) output.reads_managed_fields = output.json_path->reads_managed_fields();
  if (output.columns) output.reads_managed_fields = output.columns->reads_managed_fields();
  return output;
}

}  // namespace holdfast::cli
