// `holdfast explain`: the fields of a kind, from the server's OpenAPI v3 documents, in the layout of kubectl explain
// with two more columns: how apply merges each field, and what becomes of it when an apply unsets it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

#include "base/api_version.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "cli/terminal.h"
#include "codec/codec.h"
#include "types/descriptions.h"

namespace holdfast::cli {
namespace {

struct ExplainFlags {
  ConnectionFlags connection;
  std::string path, api_version;
  std::string output = "columns";
  bool recursive = false;
};

std::string indented(std::string_view text, size_t amount) {
  const std::string pad(amount, ' ');
  std::string out = pad;
  for (const char c : text) {
    out += c;
    if (c == '\n') out += pad;
  }
  return out;
}

// Wraps lines at spaces, keeping existing line breaks.
std::string wrapped(std::string_view text, size_t width) {
  std::string out;
  size_t column = 0;
  std::string_view blanks;
  while (!text.empty()) {
    if (text[0] == '\n') {
      out += '\n';
      column = 0;
      blanks = {};
      text.remove_prefix(1);
      continue;
    }
    const size_t blank_count = std::min(text.find_first_not_of(" \t"), text.size());
    blanks = text.substr(0, blank_count);
    text.remove_prefix(blank_count);
    const std::string_view word = text.substr(0, text.find_first_of(" \t\n"));
    text.remove_prefix(word.size());
    if (word.empty()) continue;
    if (column > 0 && column + blanks.size() + shown_width(word) > width) {
      out += '\n';
      column = 0;
    } else {
      out += blanks;
      column += blanks.size();
    }
    out += word;
    column += shown_width(word);
  }
  return out;
}

// Where a schema occurs in an object.
struct Place {
  enum class Level : uint8_t { Object, Metadata, Below };
  Level level = Level::Object;
  std::string_view name;             // Of the schema, if it is one of the document's.
  std::span<const Value> keys = {};  // Of the keyed list that it is an item of.
  bool in_atomic = false;            // Inside something that has one owner.
};

// A field in a list of fields.
struct Row {
  std::string text, merge, unset;
  std::string below;  // Its values and its description: whole lines.
};

class Explainer {
 public:
  Explainer(const Value& document, bool columns) : document_(document), columns_(columns) {}

  // The text below the header; empty if the schema has no such field.
  std::string explain(const Value& schema, Place place, std::span<const std::string_view> fields, bool recursive) {
    const Value& here = resolved(schema, place);
    if (fields.empty()) {
      std::string text = description(here);
      std::string out = "DESCRIPTION:\n" + indented(wrapped(text.empty() ? "<empty>" : text, 76), 4) + "\n";
      std::set<std::string_view> seen;
      std::vector<Row> rows;
      add_fields(here, place, 1, recursive, seen, rows);
      return rows.empty() ? out : out + list_of(rows);
    }
    if (const Value* property = here.get("properties", fields[0])) {
      std::string out;
      if (fields.size() == 1) {
        out = "FIELD: " + std::string(fields[0]) + " <" + type_of(*property) + ">\n";
        if (columns_) {
          out += "MERGE: " + merge_of(*property, place) + "\n";
          out += "UNSET: " + unset_of(fields[0], *property, place, is_required(here, fields[0])) + "\n";
        }
        out += long_enum(*property) + "\n\n";
      }
      const std::string inner = explain(*property, inside(place, fields[0], *property), fields.subspan(1), recursive);
      return inner.empty() ? "" : out + inner;
    }
    for (const std::string_view inner : {"items", "additionalProperties"}) {
      const Value* found = here.find(inner);
      if (found != nullptr && found->is_map()) return explain(*found, place, fields, recursive);
    }
    for (const Value& part : here.items_at("allOf")) {
      std::string out = explain(part, place, fields, recursive);
      if (!out.empty()) return out;
    }
    return "";
  }

 private:
  const Value& resolved(const Value& schema) const {
    Place place;
    return resolved(schema, place);
  }
  const Value& resolved(const Value& schema, Place& place) const {
    const std::string_view ref = schema.text_at("$ref");
    if (ref.empty()) return schema;
    const std::string_view name = ref.substr(ref.rfind('/') + 1);
    const Value* found = document_.get("components", "schemas", name);
    if (found == nullptr) return schema;
    place.name = name;
    return *found;
  }

  // --- How a field merges ---

  // Where the schema itself is, behind references, which are in an allOf if there is something next to them.
  const Value& behind(const Value& schema) const {
    const Value& here = resolved(schema);
    const std::span<const Value> parts = here.items_at("allOf");
    return parts.size() == 1 && !here.has("properties") ? resolved(parts[0]) : here;
  }

  std::string merge_of(const Value& property, const Place& place) const {
    if (place.in_atomic) return "in atomic";
    const Value& here = behind(property);
    if (property.has("items")) {
      const std::string_view kind = property.text_at("x-kubernetes-list-type");
      if (kind == "set") return "set";
      if (kind != "map") return "atomic";
      std::string keys;
      for (const Value& key : property.items_at("x-kubernetes-list-map-keys")) {
        if (key.is_string()) (keys += keys.empty() ? "" : ", ") += key.as_string();
      }
      return "keyed by " + keys;
    }
    if (here.text_at("type") != "object") return "value";
    std::string_view kind = property.text_at("x-kubernetes-map-type");
    if (kind.empty()) kind = here.text_at("x-kubernetes-map-type");
    if (kind == "atomic") return "atomic";
    return here.has("properties") ? "by field" : "by key";
  }

  // What becomes of a field that an apply unsets.
  std::string unset_of(std::string_view name, const Value& property, const Place& place, bool required) const {
    if (place.in_atomic) return "-";
    if (is_fixed(name, place)) return "refused";
    for (const Value& key : place.keys) {
      if (key.is_string() && key.as_string() == name) return "key";
    }
    std::string stated;  // A default of a built-in kind that is not in the document.
    if (const types::Type* type = place.name.empty() ? nullptr : types::find_type_by_openapi_name(place.name)) {
      if (const types::Field* field = types::find_member(*type, name)) {
        stated = types::stated_default(descriptions_->of(*field));
        // Lists that are always written become null, which validation may accept.
        if (stated.empty() && required && field->type->shape == types::Shape::List) return "empty";
      }
    }
    if (!stated.empty()) return "default " + stated;
    const Value* declared = property.find("default");
    if (declared != nullptr && declared->is_map() && declared->count() == 0) return "defaults";
    const bool no_text = declared != nullptr && declared->is_string() && declared->as_string().empty();
    if (required && (declared == nullptr || no_text)) return "required";
    if (declared == nullptr) return "removed";
    return "default " +
           (declared->is_string() && !no_text ? std::string(declared->as_string()) : codec::encode_json(*declared));
  }

  // Fields that identify the object, or that only the server sets (docs/unsetting-fields.md).
  static bool is_fixed(std::string_view name, const Place& place) {
    static constexpr std::string_view kOfObject[] = {"apiVersion", "kind", "metadata"};
    static constexpr std::string_view kOfMetadata[] = {"name",
                                                       "namespace",
                                                       "managedFields",
                                                       "uid",
                                                       "resourceVersion",
                                                       "generation",
                                                       "creationTimestamp",
                                                       "deletionTimestamp",
                                                       "deletionGracePeriodSeconds",
                                                       "selfLink"};
    const auto is_in = [&](std::span<const std::string_view> names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    if (place.level == Place::Level::Object) return is_in(kOfObject);
    return place.level == Place::Level::Metadata && is_in(kOfMetadata);
  }

  // The place of what is in a field: for a list or map, of its elements.
  Place inside(const Place& place, std::string_view name, const Value& property) const {
    Place made;
    const bool metadata = place.level == Place::Level::Object && name == "metadata";
    made.level = metadata ? Place::Level::Metadata : Place::Level::Below;
    const std::string merge = merge_of(property, place);
    made.in_atomic = merge == "atomic" || merge == "in atomic";
    for (const std::string_view inner : {"items", "additionalProperties"}) {
      const Value* element = property.find(inner);
      made.in_atomic |= element != nullptr && behind(*element).text_at("x-kubernetes-map-type") == "atomic";
    }
    if (property.text_at("x-kubernetes-list-type") == "map")
      made.keys = property.items_at("x-kubernetes-list-map-keys");
    return made;
  }

  static bool is_required(const Value& schema, std::string_view name) {
    const std::span<const Value> required = schema.items_at("required");
    return std::any_of(required.begin(), required.end(),
                       [&](const Value& one) { return one.is_string() && one.as_string() == name; });
  }

  // --- Texts ---

  // Its own description, followed by those of allOf, items and additionalProperties.
  std::string description(const Value& schema) const {
    const Value& here = resolved(schema);
    std::string text(here.text_at("description"));
    if (!text.empty()) text += "\n";
    for (const Value& part : here.items_at("allOf")) text += description(part);
    for (const std::string_view inner : {"items", "additionalProperties"}) {
      const Value* found = here.find(inner);
      if (found != nullptr && found->is_map()) text += description(*found);
    }
    return text;
  }

  std::string type_of(const Value& schema) const {
    if (const Value* items = schema.find("items")) return "[]" + type_of(*items);
    const Value* values = schema.find("additionalProperties");
    if (values != nullptr && values->is_map()) return "map[string]" + type_of(*values);
    const std::span<const Value> parts = schema.items_at("allOf");
    if (parts.size() == 1 && !schema.has("properties")) return type_of(parts[0]);
    if (const std::string_view ref = schema.text_at("$ref"); !ref.empty()) {
      const std::string_view type = resolved(schema).text_at("type");
      if (!type.empty() && type != "object") return std::string(type);
      const std::string_view name = ref.substr(ref.rfind('/') + 1);
      return std::string(name.substr(name.rfind('.') + 1));
    }
    const std::string_view type = schema.text_at("type");
    return type.empty() || type == "object" ? "Object" : std::string(type);
  }

  static std::string enum_text(const Value& value) {
    if (!value.is_string()) return codec::encode_json(value);
    return value.as_string().empty() ? "\"\"" : std::string(value.as_string());
  }

  static std::string long_enum(const Value& schema) {
    std::string out;
    for (const Value& value : schema.items_at("enum"))
      out += (out.empty() ? "ENUM:\n    " : "\n    ") + enum_text(value);
    return out;
  }

  static std::string short_enum(const Value& schema, size_t indent) {
    constexpr size_t kShown = 4;
    std::string out;
    const std::span<const Value> values = schema.items_at("enum");
    for (size_t i = 0; i < values.size(); ++i) {
      if (i == kShown) return out + ", ....";
      out += (i == 0 ? "\n" + std::string(indent, ' ') + "enum: " : ", ") + enum_text(values[i]);
    }
    return out;
  }

  // `seen`: references on the current path; recursion ends at a schema that contains itself.
  void add_fields(const Value& schema, Place place, size_t level, bool recursive, std::set<std::string_view> seen,
                  std::vector<Row>& rows) const {
    const std::string_view ref = schema.text_at("$ref");
    if (!ref.empty() && !seen.insert(ref).second) return;
    const Value& here = resolved(schema, place);
    std::vector<const Member*> members;
    for (const Member& member : here.members_at("properties")) members.push_back(&member);
    std::sort(members.begin(), members.end(), [](const Member* a, const Member* b) { return a->key < b->key; });
    for (const Member* member : members) {
      const size_t indent = level * 2;
      const bool needed = is_required(here, member->key);
      Row row;
      row.text = std::string(indent, ' ') + std::string(member->key) + (columns_ ? " <" : "\t<") +
                 type_of(member->value) + ">" + (needed ? " -required-" : "");
      if (columns_) {
        row.merge = merge_of(member->value, place);
        row.unset = unset_of(member->key, member->value, place, needed);
      }
      row.below = short_enum(member->value, indent) + "\n";
      if (!recursive) {
        const std::string_view text = member->value.text_at("description");
        row.below += indented(wrapped(text.empty() ? "<no description>" : text, 78 - indent), indent + 2) + "\n\n";
      }
      rows.push_back(std::move(row));
      if (recursive) add_fields(member->value, inside(place, member->key, member->value), level + 1, true, seen, rows);
    }
    for (const Value& part : here.items_at("allOf")) add_fields(part, place, level, recursive, seen, rows);
    for (const std::string_view inner : {"items", "additionalProperties"}) {
      const Value* found = here.find(inner);
      if (found != nullptr && found->is_map()) add_fields(*found, place, level, recursive, seen, rows);
    }
  }

  std::string list_of(const std::vector<Row>& rows) const {
    std::string out = "FIELDS:";
    if (!columns_) {
      out += '\n';
      for (const Row& row : rows) out += row.text + row.below;
      return out;
    }
    constexpr size_t kWidest = 60;  // Longer texts push the columns of their own line to the right.
    size_t texts = 0, merges = 0;
    for (const Row& row : rows) {
      texts = std::max(texts, std::min(shown_width(row.text), kWidest));
      merges = std::max(merges, shown_width(row.merge));
    }
    const auto line = [&](std::string_view text, std::string_view merge, std::string_view unset) {
      return padded(text, texts) + "  " + padded(merge, merges) + "  " + std::string(unset);
    };
    out = line(out, "MERGE", "UNSET") + "\n";
    for (const Row& row : rows) out += line(row.text, row.merge, row.unset) + row.below;
    return out;
  }

  const Value& document_;
  const bool columns_;
  const std::shared_ptr<const types::Descriptions> descriptions_ = types::Descriptions::get();
};

const Member* schema_of(const Value& document, const client::Resource& resource) {
  for (const Member& schema : document.members_at("components", "schemas")) {
    for (const Value& kind : schema.value.items_at("x-kubernetes-group-version-kind")) {
      if (kind.text_at("group") == resource.group && kind.text_at("version") == resource.version &&
          kind.text_at("kind") == resource.kind) {
        return &schema;
      }
    }
  }
  return nullptr;
}

int explain(const ExplainFlags& flags) {
  Result<Session> session = open_session(flags.connection);
  if (!session) return fail(session.error().message.c_str());
  // Everything after the first dot is a field path; the resource cannot be qualified with its group.
  const std::vector<std::string_view> parts = split(flags.path, '.');
  Result<client::Resource> resource = session->client.find(std::string(parts[0])).wait();
  std::vector<std::string_view> fields(parts.begin() + 1, parts.end());
  if (resource && !flags.api_version.empty())
    resource = session->client.find_kind(flags.api_version, resource->kind).wait();
  if (!resource) return fail_with(*session, resource.error());
  std::erase(fields, "");
  const std::string target = "/openapi/v3" + api_path(resource->group, resource->version);
  Result<std::string> text = session->client.get_text(target, "application/json").wait();
  if (!text) return fail_with(*session, text.error());
  Result<codec::Document> document = codec::parse_json(std::move(*text));
  if (!document) return fail_with(*session, document.error());
  const Member* schema = schema_of(document->root(), *resource);
  if (schema == nullptr) return fail((resource->kind + " is not in the server's OpenAPI documents").c_str());
  const Place place{.name = schema->key};
  const std::string body =
      Explainer(document->root(), flags.output == "columns").explain(schema->value, place, fields, flags.recursive);
  if (!resource->group.empty()) print("GROUP:      ", resource->group, "\n");
  print("KIND:       ", resource->kind, "\nVERSION:    ", resource->version, "\n\n");
  if (body.empty()) {
    fflush(stdout);
    print_error("error: field \"", fields.back(), "\" does not exist\n");
    return 1;
  }
  print(body, "\n");
  return 0;
}

}  // namespace

Command add_explain(CLI::App& app) {
  auto flags = std::make_shared<ExplainFlags>();
  CLI::App* c = app.add_subcommand("explain", "Describe the fields of a kind");
  c->add_option("KIND.FIELD", flags->path, "Kind, and the path of a field: pods.spec.containers")->required();
  c->add_flag("--recursive", flags->recursive, "List all fields below, without descriptions");
  c->add_option("-o,--output", flags->output,
                "columns: with columns for how a field merges and what unsetting does; plaintext: as kubectl")
      ->check(CLI::IsMember({"columns", "plaintext"}))
      ->capture_default_str();
  c->add_option("--api-version", flags->api_version, "Version of the kind, such as apps/v1");
  add_connection_flags(*c, flags->connection);
  c->footer("\nExamples:\n  holdfast explain pods.spec.containers\n  holdfast explain deployment --recursive");
  return [flags] { return explain(*flags); };
}

}  // namespace holdfast::cli
