#include "cli/blame.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "base/api_version.h"
#include "base/clock.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/manifests.h"
#include "cli/session.h"
#include "codec/codec.h"
#include "codec/visible.h"
#include "schema/schema.h"
#include "table/table.h"
#include "types/types.h"

namespace holdfast::cli {

namespace {

using ownership::ManagerEntry;

struct Line {
  std::string text;
  const OwnedField* field = nullptr;  // Null in the middle of a value, where comments are not allowed.
};

bool matches(const BlameOptions& options, const FieldOwners& owners, const OwnedField& field) {
  if (options.owner.empty() && !options.since) return true;
  return std::any_of(field.owners.begin(), field.owners.end(), [&](uint32_t position) {
    const ManagerEntry& entry = owners.managers()[position];
    return (options.owner.empty() || entry.manager == options.owner) &&
           (!options.since || (entry.time && *entry.time >= *options.since));
  });
}

// What an owned field that does not exist is called. Only an apply can unset a field. Others own it because something,
// such as admission, took out what they had written.
std::string_view absence(const FieldOwners& owners, const OwnedField& field) {
  const bool applied = std::any_of(field.owners.begin(), field.owners.end(), [&](uint32_t position) {
    return owners.managers()[position].operation == ownership::Operation::Apply;
  });
  return applied ? "unset" : "taken out";
}

// Keeps only matching fields and their parents.
bool keep_matching(const BlameOptions& options, const FieldOwners& owners, OwnedField& field) {
  const bool whole = matches(options, owners, field);
  field.hides_children =
      std::erase_if(field.children, [&](OwnedField& child) { return !keep_matching(options, owners, child); }) > 0;
  return whole || !field.children.empty();
}

// Encodes the value inside as many maps as its indentation requires, because the encoder folds long strings by column.
// A list in a map is not indented.
std::string yaml_at(const Value& value, size_t indent) {
  Arena arena;
  Value outer = value;
  const size_t maps = indent / 2 + (value.is_list() ? 1 : 0);
  for (size_t i = 0; i < maps; ++i) {
    MapBuilder map(arena);
    map.add("k", outer);
    outer = map.build();
  }
  std::string text;
  if (!codec::encode_visible_yaml(outer, text)) {
    // Raw JSON that cannot be read. JSON is valid YAML.
    return std::string(indent, ' ') + codec::visible_json(codec::encode_json(value)) + "\n";
  }
  for (size_t i = 0; i < maps; ++i) text.erase(0, text.find('\n') + 1);
  return text;
}

class Renderer {
 public:
  Renderer(const FieldOwners& owners, std::vector<Line>& lines) : owners_(owners), lines_(lines) {}

  void members(const OwnedField& map, size_t indent, std::string first_prefix) {
    std::vector<const OwnedField*> existing, missing;
    for (const OwnedField& child : map.children) (child.value != nullptr ? existing : missing).push_back(&child);
    for (const OwnedField* child : sorted(existing)) {
      member(*child, indent, first_prefix);
      first_prefix.clear();
    }
    for (const OwnedField* child : missing) absent(*child, indent, "");
  }

 private:
  // In the order of the YAML encoder.
  static std::vector<const OwnedField*> sorted(const std::vector<const OwnedField*>& fields) {
    Arena arena;
    MapBuilder keys(arena);
    for (const OwnedField* field : fields) keys.add(field->element.name(), Value::null());
    std::vector<const OwnedField*> ordered;
    for (const uint32_t position : yaml_order(keys.build())) ordered.push_back(fields[position]);
    return ordered;
  }

  void member(const OwnedField& field, size_t indent, const std::string& prefix) {
    Arena arena;
    MapBuilder one(arena);
    const bool inner = shows_children(field);
    one.add(field.element.name(), inner ? Value::string("") : shown_value(field));
    std::string text = yaml_at(one.build(), indent);
    if (!inner) {
      add(text, field, indent, prefix);
      return;
    }
    text.resize(text.rfind(" \"\""));
    add(text + "\n", field, indent, prefix);
    if (field.value->is_list()) {
      items(field, indent);
    } else {
      members(field, indent + 2, "");
    }
  }

  void items(const OwnedField& list, size_t indent) {
    for (const OwnedField& child : list.children) {
      if (child.value == nullptr) {
        absent(child, indent, "- ");
        continue;
      }
      item(child, indent, "");
    }
  }

  // `prefix`: the part of the line already written by enclosing lists.
  void item(const OwnedField& field, size_t indent, const std::string& prefix) {
    const std::string dash = prefix.empty() ? std::string(indent, ' ') + "- " : prefix + "- ";
    if (!shows_children(field)) {
      Arena arena;
      ListBuilder one(arena);
      one.add(shown_value(field));
      add(yaml_at(one.build(), indent), field, indent, prefix);
      return;
    }
    if (field.value->is_map()) {
      if (!dash_shares_line(field)) {
        // The owners of the item itself get their own line.
        lines_.push_back({dash.substr(0, dash.size() - 1), &field});
        members(field, indent + 2, "");
      } else {
        members(field, indent + 2, dash);
      }
      return;
    }
    lines_.push_back({dash.substr(0, dash.size() - 1), &field});
    items(field, indent + 2);
  }

  // Whether the dash can share the line of the first member: one exists, and the item has no owners beyond those of one
  // of its members, such as its key.
  static bool dash_shares_line(const OwnedField& field) {
    bool exists = false, told = field.owners.empty();
    for (const OwnedField& child : field.children) {
      if (child.value == nullptr) continue;
      exists = true;
      told = told || child.owners == field.owners;
    }
    return exists && told;
  }

  static bool shows_children(const OwnedField& field) {
    return !field.children.empty() && (field.value->is_map() || field.value->is_list()) && field.value->count() > 0;
  }

  // The value shown next to the name, without filtered children.
  static Value shown_value(const OwnedField& field) {
    if (!field.hides_children) return *field.value;
    return field.value->is_list() ? Value::empty_list() : Value::empty_map();
  }

  // A field that is owned but does not exist is always shown as a comment.
  void absent(const OwnedField& field, size_t indent, const std::string& path) {
    std::string name = field.element.is_field() ? std::string(field.element.name()) : to_string(field.element);
    const bool nested = path != "" && path != "- " && field.element.is_field();
    const std::string text = path + (nested ? "." : "") + name;
    if (!field.owners.empty()) {
      lines_.push_back(
          {std::string(indent, ' ') + "# " + visible_line(text) + ": " + std::string(absence(owners_, field)), &field});
    }
    for (const OwnedField& child : field.children) absent(child, indent, text);
  }

  // The lines of one value. A comment may follow the header of a block scalar, or the end of any other value.
  void add(const std::string& text, const OwnedField& field, size_t indent, const std::string& prefix) {
    std::vector<std::string_view> parts = split(std::string_view(text).substr(0, text.size() - 1), '\n');
    size_t noted = parts.size() - 1;
    for (const std::string_view marker : {": |", ": >", "- |", "- >"}) {
      const size_t at = parts[0].rfind(marker);
      if (at != std::string_view::npos && at + marker.size() + 3 >= parts[0].size()) noted = 0;
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      std::string line(parts[i]);
      if (i == 0 && !prefix.empty()) line = prefix + line.substr(std::min(indent, line.size()));
      lines_.push_back({std::move(line), i == noted ? &field : nullptr});
    }
    // There may be owned fields below a value that is empty or not a map.
    if (!shows_children(field)) {
      for (const OwnedField& child : field.children) {
        if (child.value == nullptr) absent(child, indent + 2, "");
      }
    }
  }

  const FieldOwners& owners_;
  std::vector<Line>& lines_;
};

bool is_default(const OwnedField& field) {
  return field.value != nullptr && field.owners.empty() && !field.server_managed && field.is_leaf();
}

std::string comment_of(const FieldOwners& owners, const OwnedField& field) {
  if (is_default(field)) return "unowned";
  std::string text;
  for (const uint32_t position : field.owners) {
    const ManagerEntry& entry = owners.managers()[position];
    if (!text.empty()) text += ", ";
    text += std::string(entry.manager) + " (" + std::string(name_of(entry.operation));
    if (!entry.subresource.empty()) text += ", " + std::string(entry.subresource);
    if (entry.time) text += ", " + format_rfc3339({*entry.time, 0});
    text += ")";
  }
  return text;
}

std::string as_yaml(const FieldOwners& owners, const std::vector<Line>& lines) {
  constexpr size_t kLastColumn = 60;  // Comments of longer lines follow directly.
  size_t column = 0;
  for (const Line& line : lines) {
    const size_t width = shown_width(line.text);
    if (width <= kLastColumn) column = std::max(column, width);
  }
  std::string out;
  for (const Line& line : lines) {
    const std::string comment = line.field == nullptr ? "" : comment_of(owners, *line.field);
    out += comment.empty() ? line.text : padded(line.text, column) + "  # " + visible_line(comment);
    out += '\n';
  }
  return out;
}

std::string label_of(const FieldOwners& owners, const OwnedField& field, const BlameOptions& options, bool wide) {
  if (is_default(field)) return "-";
  std::string text;
  for (const uint32_t position : field.owners) {
    const ManagerEntry& entry = owners.managers()[position];
    if (!text.empty()) text += ", ";
    text += std::string(entry.manager) + " " + std::string(name_of(entry.operation));
    if (!entry.subresource.empty()) text += "/" + std::string(entry.subresource);
    if (entry.time) {
      text += " " + (wide ? format_rfc3339({*entry.time, 0}) : table::age_text(options.now.seconds - *entry.time));
    }
  }
  return visible_line(text);
}

std::string as_columns(const FieldOwners& owners, const std::vector<Line>& lines, const BlameOptions& options,
                       const Terminal& terminal) {
  const bool wide = terminal.columns >= 120;
  size_t width = 0;
  std::vector<std::string> labels;
  for (const Line& line : lines) {
    labels.push_back(line.field == nullptr ? "" : label_of(owners, *line.field, options, wide));
    width = std::max(width, shown_width(labels.back()));
  }
  width = std::min(width, terminal.columns * 2 / 5);
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string label = padded(shortened(labels[i], width), width);
    const OwnedField* field = lines[i].field;
    const bool owned = field != nullptr && !field->owners.empty();
    // All entries of a manager share one colour.
    size_t colour = 0;
    if (owned) {
      const std::string_view name = owners.managers()[field->owners[0]].manager;
      std::vector<std::string_view> names;
      for (const ManagerEntry& entry : owners.managers()) {
        if (std::find(names.begin(), names.end(), entry.manager) == names.end()) names.push_back(entry.manager);
      }
      colour = static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    }
    out += owned ? coloured(terminal, label, colour) : dimmed(terminal, label);
    out += " │ " + lines[i].text + "\n";
  }
  return out;
}

}  // namespace

std::vector<uint32_t> yaml_order(const Value& map) {
  // The encoder's order, taken from its output for a map with the same keys and their positions as values.
  Arena arena;
  MapBuilder numbered(arena);
  for (uint32_t i = 0; i < map.count(); ++i) numbered.add(map.members()[i].key, Value::integer(i));
  std::string text;
  std::vector<uint32_t> order;
  if (codec::encode_visible_yaml(numbered.build(), text)) {
    for (const std::string_view line : split(text, '\n')) {
      const size_t at = line.rfind(": ");
      if (at == std::string_view::npos) continue;
      if (const std::optional<uint32_t> position = parse_number<uint32_t>(line.substr(at + 2))) {
        order.push_back(*position);
      }
    }
  }
  if (order.size() != map.count()) {  // A key so long that it is on a line of its own.
    order.clear();
    for (uint32_t i = 0; i < map.count(); ++i) order.push_back(i);
  }
  return order;
}

Result<int64_t> parse_since(std::string_view text, UnixTime now) {
  if (const std::optional<UnixTime> time = parse_rfc3339(text)) return time->seconds;
  if (text.ends_with('d')) {
    const std::optional<int64_t> days = parse_number<int64_t>(text.substr(0, text.size() - 1));
    if (days) return now.seconds - *days * 86400;
  }
  const Result<int64_t> nanos = parse_go_duration(text);
  if (!nanos) return bad_request("expected a duration such as 90m or 3d, or a time such as 2026-01-02T03:04:05Z");
  return now.seconds - *nanos / 1'000'000'000;
}

Result<std::string> blame_text(const Value& object, const BlameOptions& options, const Terminal& terminal) {
  Result<FieldOwners> owners = FieldOwners::of(object, options.custom_type);
  if (!owners) return owners.take_error();
  OwnedField root = owners->root();
  keep_matching(options, *owners, root);
  std::vector<Line> lines;
  Renderer(*owners, lines).members(root, 0, "");
  return terminal.interactive ? as_columns(*owners, lines, options, terminal) : as_yaml(*owners, lines);
}

Result<std::vector<BlamedLine>> blamed_lines(const Value& object) {
  Result<FieldOwners> owners = FieldOwners::of(object);
  if (!owners) return owners.take_error();
  std::vector<Line> lines;
  Renderer(*owners, lines).members(owners->root(), 0, "");
  std::vector<BlamedLine> blamed;
  for (Line& line : lines) {
    std::string who = line.field == nullptr || line.field->owners.empty() ? "" : comment_of(*owners, *line.field);
    blamed.push_back({std::move(line.text), visible_line(who)});
  }
  return blamed;
}

Result<std::string> blame_json(const Value& object, const BlameOptions& options) {
  Result<FieldOwners> owners = FieldOwners::of(object, options.custom_type);
  if (!owners) return owners.take_error();
  Arena arena;
  ListBuilder managers(arena), fields(arena);
  for (const ManagerEntry& entry : owners->managers()) {
    MapBuilder manager(arena);
    manager.add("manager", Value::string(entry.manager));
    manager.add("operation", Value::string(name_of(entry.operation)));
    manager.add("apiVersion", Value::string(entry.api_version));
    if (!entry.subresource.empty()) manager.add("subresource", Value::string(entry.subresource));
    if (entry.time) manager.add("time", Value::string(arena, format_rfc3339({*entry.time, 0})));
    managers.add(manager.build());
  }
  owners->for_each([&](ownership::Path path, const OwnedField& field) {
    // Maps and lists without an owner of their own add nothing to their children.
    if (field.owners.empty() && !field.is_leaf()) return;
    if (field.owners.empty() && field.value == nullptr) return;
    if (!matches(options, *owners, field)) return;
    MapBuilder entry(arena);
    entry.add("path", Value::string(arena, to_string(path)));
    if (field.value != nullptr && field.is_leaf()) entry.add("value", *field.value);
    ListBuilder positions(arena);
    for (const uint32_t position : field.owners) positions.add(Value::integer(position));
    entry.add("owners", positions.build());
    entry.add("state", Value::string(field.value == nullptr     ? absence(*owners, field)
                                     : field.owners.size() > 1  ? "shared"
                                     : field.owners.size() == 1 ? "owned"
                                     : field.server_managed     ? "server"
                                                                : "unowned"));
    fields.add(entry.build());
  });
  MapBuilder root(arena);
  root.add("apiVersion", Value::string(object.text_at("apiVersion")));
  root.add("kind", Value::string(object.text_at("kind")));
  if (!object.text_at("metadata", "namespace").empty()) {
    root.add("namespace", Value::string(object.text_at("metadata", "namespace")));
  }
  root.add("name", Value::string(object.text_at("metadata", "name")));
  root.add("managers", managers.build());
  root.add("fields", fields.build());
  return codec::visible_json(codec::encode_json_pretty(root.build())) + "\n";
}

namespace {

struct BlameFlags {
  ConnectionFlags connection;
  ManifestFlags manifests;
  std::vector<std::string> arguments;
  std::vector<std::string> crds;
  std::string owner, since, output, selector;
  bool all_namespaces = false;
};

// How custom resources merge, as specified by their CRDs.
class CustomTypes {
 public:
  void learn(const Value& definition) {
    const std::string group(definition.text_at("spec", "group")), kind(definition.text_at("spec", "names", "kind"));
    for (const Value& version : definition.items_at("spec", "versions")) {
      const Value* written = version.get("schema", "openAPIV3Schema");
      if (written == nullptr) continue;
      Known known{schema::Schema::build(*written, false), std::make_unique<ownership::MergeTypes>(), nullptr};
      known.type = &known.types->of(known.schema->root());
      known_.insert_or_assign({group + "/" + std::string(version.text_at("name")), kind}, std::move(known));
    }
  }

  // Reads the CRD from the server. Does nothing if there is none, or if reading it is forbidden.
  void learn(const Session& session, const client::Resource& resource) {
    if (knows(resource.api_version(), resource.kind)) return;
    const client::Resource definitions = client::builtin("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    Result<client::Object> definition =
        session.client.api(definitions).get(resource.plural + "." + resource.group).wait();
    if (definition) learn(definition->root());
  }

  // Whether the merge type of a kind is known: it is built in or was learned.
  bool knows(std::string_view api_version, std::string_view kind) const {
    if (known_.contains({std::string(api_version), std::string(kind)})) return true;
    const auto [group, version] = split_api_version(api_version);
    return types::find_kind(group, version, kind) != nullptr;
  }

  const ownership::MergeType* of(const Value& object) const {
    const auto found = known_.find({std::string(object.text_at("apiVersion")), std::string(object.text_at("kind"))});
    return found == known_.end() ? nullptr : found->second.type;
  }

 private:
  struct Known {
    std::shared_ptr<const schema::Schema> schema;
    std::unique_ptr<ownership::MergeTypes> types;
    const ownership::MergeType* type;
  };
  std::map<std::pair<std::string, std::string>, Known> known_;  // By apiVersion and kind.
};

int print_blame(const std::vector<client::Object>& objects, const CustomTypes& types, const BlameFlags& flags) {
  BlameOptions options;
  options.owner = flags.owner;
  options.now = system_clock().now();
  if (!flags.since.empty()) {
    const Result<int64_t> since = parse_since(flags.since, options.now);
    if (!since) return fail(("--since: " + since.error().message).c_str());
    options.since = *since;
  }
  const Terminal terminal = Terminal::of_output();
  for (size_t i = 0; i < objects.size(); ++i) {
    const Value& object = objects[i].root();
    options.custom_type = types.of(object);
    Result<std::string> text =
        flags.output == "json" ? blame_json(object, options) : blame_text(object, options, terminal);
    if (!text) return fail(("managedFields of " + objects[i].key() + ": " + text.error().message).c_str());
    if (flags.output != "json" && i > 0) print("---\n");
    if (flags.output == "json" && objects.size() > 1) {
      text->pop_back();
      *text = (i == 0 ? "[" : "") + *text + (i + 1 < objects.size() ? ",\n" : "]\n");
    }
    print_styled(*text);
  }
  return 0;
}

// CRDs come from --crds, from the manifests, or from a server. An object can be shown without its CRD, so a slow or
// unreachable server is not waited for.
Result<Unit> learn_types(const std::vector<Manifest>& manifests, const BlameFlags& flags, CustomTypes& types) {
  if (!flags.crds.empty()) {
    Result<std::vector<Manifest>> definitions =
        read_manifests({.files = flags.crds, .kustomization = {}, .recursive = true});
    if (!definitions) return definitions.take_error();
    for (const Manifest& one : *definitions) types.learn(one.object.root());
  }
  for (const Manifest& one : manifests) {
    if (one.kind() == "CustomResourceDefinition") types.learn(one.object.root());
  }
  const auto unknown = [&](const Manifest& one) { return !types.knows(one.api_version(), one.kind()); };
  if (std::none_of(manifests.begin(), manifests.end(), unknown)) return Unit{};
  ConnectionFlags connection = flags.connection;
  if (connection.request_timeout == "0") connection.request_timeout = "2s";
  Result<Session> session = open_session(connection);
  if (!session) return Unit{};
  for (const Manifest& one : manifests) {
    if (!unknown(one)) continue;
    Result<client::Api<>> api = api_of(*session, one);
    if (api) types.learn(*session, api->resource());
    if (!api && api.error().code == 0 && api.error().reason == Reason::ServiceUnavailable) break;
  }
  return Unit{};
}

int blame(const BlameFlags& flags) {
  std::vector<client::Object> objects;
  CustomTypes types;
  if (flags.manifests.given()) {
    if (!flags.arguments.empty()) return fail("specify either files (-f) or KIND NAME");
    Result<std::vector<Manifest>> manifests = read_manifests(flags.manifests);
    if (!manifests) return fail(manifests.error().message.c_str());
    if (Result<Unit> learnt = learn_types(*manifests, flags, types); !learnt) {
      return fail(("--crds: " + learnt.error().message).c_str());
    }
    for (Manifest& manifest : *manifests) objects.push_back(std::move(manifest.object));
    return print_blame(objects, types, flags);
  }
  Result<Session> session = open_session(flags.connection);
  if (!session) return fail(session.error().message.c_str());
  Result<std::vector<Target>> targets = find_targets(*session, flags.arguments);
  if (!targets) return fail_with(*session, targets.error());
  for (const Target& target : *targets) {
    types.learn(*session, target.resource);
    const std::string space = flags.all_namespaces ? "" : space_for(*session, target.resource);
    Result<Unit> read = each_object(*session, target, space, flags.selector, [&](const Value& object) -> Result<Unit> {
      codec::Document document;
      document.set_root(deep_copy(document.arena(), object));
      objects.emplace_back(std::move(document));
      return Unit{};
    });
    if (!read) return fail_with(*session, read.error());
  }
  return print_blame(objects, types, flags);
}

}  // namespace

Command add_blame(CLI::App& app) {
  auto flags = std::make_shared<BlameFlags>();
  CLI::App* c = app.add_subcommand("blame", "Show who owns each field of an object");
  c->add_option("KIND/NAME", flags->arguments, "Objects: KIND NAME..., KIND/NAME..., or KIND for all of a kind");
  add_manifest_flags(*c, flags->manifests, "of objects with managedFields, instead of a server");
  c->add_option(
       "--crds", flags->crds,
       "With -f: file or directory of CustomResourceDefinitions that define how lists of custom resources merge; "
       "default: those among the manifests, then the server's; may be repeated")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
  c->add_option("--owner", flags->owner, "Show only fields that this manager owns");
  c->add_option("--since", flags->since, "Show only fields written since then: a duration (90m, 3d) or a time");
  c->add_option("-l,--selector", flags->selector, "Label selector for objects of a kind");
  c->add_flag("-A,--all-namespaces", flags->all_namespaces, "Objects of all namespaces");
  c->add_option("-o,--output", flags->output, "Output format: yaml or json")
      ->default_str("yaml")
      ->check(CLI::IsMember({"yaml", "json"}));
  add_connection_flags(*c, flags->connection);
  c->footer(
      "\nExamples:\n"
      "  holdfast blame deployment web\n"
      "  holdfast blame deployment web --owner kubectl\n"
      "  holdfast blame pods -A --since 1h\n"
      "  kubectl get deployment web -o yaml --show-managed-fields | holdfast blame -f -\n\n"
      "On a terminal, owners are shown to the left of each line: manager, operation, subresource and age; \"-\" marks\n"
      "fields that nobody owns, set by defaults or by the server. In a pipe, the output is YAML with the owners as\n"
      "comments. Fields that are owned but do not exist are shown as comments. Installed as kubectl-blame, it runs as\n"
      "kubectl blame.");
  return [flags] { return blame(*flags); };
}

}  // namespace holdfast::cli
