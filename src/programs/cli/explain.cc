// `holdfast explain`: the fields of a kind, from the server's OpenAPI v3 documents, in the layout of kubectl explain.
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

namespace holdfast::cli {
namespace {

struct ExplainFlags {
  ConnectionFlags connection;
  std::string path, api_version;
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

class Explainer {
 public:
  explicit Explainer(const Value& document) : document_(document) {}

  // The text below the header; empty if the schema has no such field.
  std::string explain(const Value& schema, std::span<const std::string_view> fields, bool recursive) {
    const Value& here = resolved(schema);
    if (fields.empty()) {
      std::string text = description(here);
      std::string out = "DESCRIPTION:\n" + indented(wrapped(text.empty() ? "<empty>" : text, 76), 4) + "\n";
      std::set<std::string_view> seen;
      const std::string list = field_list(here, 1, recursive, seen);
      return list.empty() ? out : out + "FIELDS:\n" + list;
    }
    if (const Value* property = here.get("properties", fields[0])) {
      std::string out;
      if (fields.size() == 1) {
        out = "FIELD: " + std::string(fields[0]) + " <" + type_of(*property) + ">\n" + long_enum(*property) + "\n\n";
      }
      const std::string below = explain(*property, fields.subspan(1), recursive);
      return below.empty() ? "" : out + below;
    }
    for (const std::string_view inner : {"items", "additionalProperties"}) {
      const Value* found = here.find(inner);
      if (found != nullptr && found->is_map()) return explain(*found, fields, recursive);
    }
    for (const Value& part : here.items_at("allOf")) {
      std::string out = explain(part, fields, recursive);
      if (!out.empty()) return out;
    }
    return "";
  }

 private:
  const Value& resolved(const Value& schema) const {
    const std::string_view ref = schema.text_at("$ref");
    const Value* found = ref.empty() ? nullptr : document_.get("components", "schemas", ref.substr(ref.rfind('/') + 1));
    return found == nullptr ? schema : *found;
  }

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
  std::string field_list(const Value& schema, size_t level, bool recursive, std::set<std::string_view> seen) const {
    const std::string_view ref = schema.text_at("$ref");
    if (!ref.empty() && !seen.insert(ref).second) return "";
    const Value& here = resolved(schema);
    std::string out;
    std::vector<const Member*> members;
    for (const Member& member : here.members_at("properties")) members.push_back(&member);
    std::sort(members.begin(), members.end(), [](const Member* a, const Member* b) { return a->key < b->key; });
    const std::span<const Value> required = here.items_at("required");
    for (const Member* member : members) {
      const size_t indent = level * 2;
      out += std::string(indent, ' ') + std::string(member->key) + "\t<" + type_of(member->value) + ">";
      const bool needed = std::any_of(required.begin(), required.end(), [&](const Value& name) {
        return name.is_string() && name.as_string() == member->key;
      });
      if (needed) out += " -required-";
      out += short_enum(member->value, indent) + "\n";
      if (recursive) {
        out += field_list(member->value, level + 1, true, seen);
        continue;
      }
      const std::string_view text = member->value.text_at("description");
      out += indented(wrapped(text.empty() ? "<no description>" : text, 78 - indent), indent + 2) + "\n\n";
    }
    for (const Value& part : here.items_at("allOf")) out += field_list(part, level, recursive, seen);
    for (const std::string_view inner : {"items", "additionalProperties"}) {
      const Value* found = here.find(inner);
      if (found != nullptr && found->is_map()) out += field_list(*found, level, recursive, seen);
    }
    return out;
  }

  const Value& document_;
};

const Value* schema_of(const Value& document, const client::Resource& resource) {
  for (const Member& schema : document.members_at("components", "schemas")) {
    for (const Value& kind : schema.value.items_at("x-kubernetes-group-version-kind")) {
      if (kind.text_at("group") == resource.group && kind.text_at("version") == resource.version &&
          kind.text_at("kind") == resource.kind) {
        return &schema.value;
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
  const Value* schema = schema_of(document->root(), *resource);
  if (schema == nullptr) return fail((resource->kind + " is not in the server's OpenAPI documents").c_str());
  const std::string body = Explainer(document->root()).explain(*schema, fields, flags.recursive);
  if (!resource->group.empty()) printf("GROUP:      %s\n", resource->group.c_str());
  printf("KIND:       %s\nVERSION:    %s\n\n", resource->kind.c_str(), resource->version.c_str());
  if (body.empty()) {
    fflush(stdout);
    fprintf(stderr, "error: field \"%s\" does not exist\n", std::string(fields.back()).c_str());
    return 1;
  }
  printf("%s\n", body.c_str());
  return 0;
}

}  // namespace

Command add_explain(CLI::App& app) {
  auto flags = std::make_shared<ExplainFlags>();
  CLI::App* c = app.add_subcommand("explain", "Describe the fields of a kind");
  c->add_option("KIND.FIELD", flags->path, "Kind, and the path of a field: pods.spec.containers")->required();
  c->add_flag("--recursive", flags->recursive, "List all fields below, without descriptions");
  c->add_option("--api-version", flags->api_version, "Version of the kind, such as apps/v1");
  add_connection_flags(*c, flags->connection);
  c->footer("\nExamples:\n  holdfast explain pods.spec.containers\n  holdfast explain deployment --recursive");
  return [flags] { return explain(*flags); };
}

}  // namespace holdfast::cli
