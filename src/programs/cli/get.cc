// `holdfast get` and `holdfast watch`. Lists are printed page by page; objects are kept only if they have to be sorted.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/field_owners.h"
#include "cli/manifests.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/terminal.h"
#include "codec/codec.h"
#include "table/table.h"

namespace holdfast::cli {
namespace {

struct GetFlags {
  ConnectionFlags connection;
  ManifestFlags manifests;
  std::vector<std::string> arguments, label_columns;
  std::string output, sort_by, selector, field_selector, owned_by, raw, subresource;
  std::string show_managed_fields = "none";
  bool all_namespaces = false, watch = false, watch_only = false, output_watch_events = false;
  bool no_headers = false, show_labels = false, show_kind = false, ignore_not_found = false;
  int64_t chunk_size = 500;
};

enum class Shown : uint8_t { None, AsIs, V1, V2 };

class Getter {
 public:
  Getter(GetFlags& flags, Output output, std::optional<SortOrder> order, Shown managed_fields, Session session)
      : flags_(flags),
        output_(std::move(output)),
        order_(std::move(order)),
        managed_fields_(managed_fields),
        session_(std::move(session)) {}

  int run() {
    if (!flags_.raw.empty()) return print_raw();
    Result<std::vector<Target>> targets = find();
    if (!targets) return fail_with(session_, targets.error());
    const bool one_kind = std::all_of(targets->begin(), targets->end(), [&](const Target& target) {
      return target.resource == targets->front().resource;
    });
    prefix_kind_ = flags_.show_kind || !one_kind;
    if (!one_kind && output_.is_table() && targets->front().name != "") return show_named(*targets);
    single_ = targets->size() == 1 && !targets->front().name.empty();
    if (flags_.watch_only) flags_.watch = true;
    if (flags_.watch && targets->size() > 1) {
      print_error("error: you may only specify a single resource type\n");
      return 1;
    }
    if (!flags_.watch_only) {
      if (order_ && !output_.is_table()) {
        show_sorted_objects(*targets);
      } else {
        for (const Target& target : *targets) {
          if (output_.is_table() ? !show_table(target) : !show_objects(target)) break;
        }
      }
      if (Result<Unit> finished = finish(); !finished) return fail_with(session_, finished.error());
    }
    if (!stopped_ && flags_.watch && status_ == 0) return follow(targets->front());
    if (status_ == 0 && shown_ == 0 && !flags_.ignore_not_found && output_.is_table()) say_nothing_found(*targets);
    return status_;
  }

 private:
  std::string space_of(const Target& target) const {
    if (!target.resource.namespaced || flags_.all_namespaces) return "";
    const auto own = spaces_.find(target.resource.plural + "/" + target.name);
    return own == spaces_.end() ? session_.space : own->second;
  }

  Result<std::vector<Target>> find() {
    if (!flags_.manifests.given()) return find_targets(session_, flags_.arguments);
    Result<std::vector<Manifest>> manifests = read_manifests(flags_.manifests);
    if (!manifests) return manifests.take_error();
    std::vector<Target> targets;
    for (const Manifest& manifest : *manifests) {
      Result<client::Api<>> api = api_of(session_, manifest);
      if (!api) return api.take_error();
      targets.push_back({api->resource(), std::string(manifest.object.name())});
      if (!manifest.object.space().empty()) {
        spaces_[api->resource().plural + "/" + std::string(manifest.object.name())] = manifest.object.space();
      }
    }
    return targets;
  }

  int print_raw() {
    Result<std::string> text = session_.client.get_text(flags_.raw, "application/json").wait();
    if (!text) return fail_with(session_, text.error());
    print_data(*text);
    return 0;
  }

  // Calls `show` for each page of a list, or for the one object. Returns false to stop: the output is closed.
  template <class Show>
  bool each_answer(const Target& target, client::Shape shape, const Show& show) {
    const client::Api<> api = session_.client.api(target.resource, space_of(target));
    if (!target.name.empty()) {
      Result<client::Object> object = api.get(target.name, {.subresource = flags_.subresource, .shape = shape}).wait();
      if (!object) {
        if (object.error().reason == Reason::NotFound && flags_.ignore_not_found) return true;
        status_ = fail_with(session_, object.error());
        return true;  // Continue: the other objects may exist.
      }
      version_ = object->resource_version();
      return show(*object);
    }
    client::ListOptions options{.label_selector = flags_.selector,
                                .field_selector = flags_.field_selector,
                                .limit = flags_.chunk_size,
                                .shape = shape};
    while (true) {
      Result<client::Object> page = api.list(options).wait();
      if (!page && page.error().reason == Reason::Expired && !page.error().continue_token.empty()) {
        // The continue token has expired: read the rest at the current version.
        options.continue_token = page.error().continue_token;
        continue;
      }
      if (!page) {
        status_ = fail_with(session_, page.error());
        return false;
      }
      version_ = page->resource_version();
      options.continue_token = page->root().text_at("metadata", "continue");
      if (!show(*page)) return false;
      if (options.continue_token.empty()) return true;
    }
  }

  bool flush(const std::string& text) {
    if (output_.form == Output::Form::JsonPath) {
      print_data(text);
    } else {
      print(text);
    }
    if (fflush(stdout) == 0) return true;
    stopped_ = true;  // The output is closed.
    return false;
  }

  // --- Tables

  // Objects of several kinds. Shows the kind if more than one is found.
  int show_named(const std::vector<Target>& targets) {
    std::vector<std::pair<const Target*, client::Object>> found;
    bool one_kind = true;
    for (const Target& target : targets) {
      each_answer(target, client::Shape::Table, [&](const client::Object& answer) {
        one_kind = one_kind && (found.empty() || found[0].first->resource == target.resource);
        found.emplace_back(&target, answer);
        return true;
      });
    }
    prefix_kind_ = flags_.show_kind || !one_kind;
    for (const auto& [target, answer] : found) {
      begin_kind(target->resource);
      if (!show_rows(*target, answer.root(), "")) break;
    }
    return status_;
  }

  void begin_kind(const client::Resource& resource) {
    if (!(resource == last_)) {
      writer_ = TableWriter();
      headed_ = false;
      separated_ = shown_ == 0;
    }
    last_ = resource;
  }

  bool show_table(const Target& target) {
    begin_kind(target.resource);
    if (order_) return show_sorted_table(target);
    return each_answer(target, client::Shape::Table,
                       [&](const client::Object& answer) { return show_rows(target, answer.root(), "ADDED"); });
  }

  bool show_sorted_table(const Target& target) {
    std::vector<client::Object> answers;
    if (!each_answer(target, client::Shape::TableOfObjects, [&](const client::Object& answer) {
          answers.push_back(answer);
          return true;
        })) {
      return false;
    }
    if (answers.empty()) return true;
    Arena arena;
    MapBuilder table(arena);
    std::vector<Value> rows;
    std::vector<std::optional<Value>> keys;
    for (const client::Object& answer : answers) {
      const Value part = as_table(arena, answer.root());
      if (&answer == &answers[0]) table.add("columnDefinitions", Value::list(part.items_at("columnDefinitions")));
      for (const Value& row : part.items_at("rows")) {
        rows.push_back(row);
        const Value* object = row.find("object");
        keys.push_back(object == nullptr ? std::nullopt : order_->key_of(*object));
      }
    }
    Result<std::vector<size_t>> sorted = order_->sorted(keys);
    if (!sorted) {
      status_ = fail_with(session_, sorted.error());
      return false;
    }
    ListBuilder ordered(arena);
    for (const size_t position : *sorted) ordered.add(rows[position]);
    table.add("rows", ordered.build());
    return show_rows(target, table.build(), "ADDED");
  }

  // The items of a list, or the object itself.
  template <class Visit>
  static void for_each_item(const Value& answer, const Visit& visit) {
    if (!answer.has("items")) return visit(answer);
    for (const Value& item : answer.items_at("items")) visit(item);
  }

  // For servers without Table support: name and age.
  static Value as_table(Arena& arena, const Value& answer) {
    return answer.text_at("kind") == "Table" || answer.has("rows") ? answer : table_of(arena, answer);
  }

  // A Table, or objects from a server without Table support.
  bool show_rows(const Target& target, const Value& answer, std::string_view event) {
    Arena arena;
    const Value table = as_table(arena, answer);
    const std::span<const Value> columns = table.items_at("columnDefinitions");
    if (!separated_ && !table.items_at("rows").empty()) {
      separated_ = true;
      if (!flush("\n")) return false;  // Between the tables of two kinds.
    }
    // Only the first event of a watch has the column definitions.
    if (!columns.empty()) {
      shown_columns_.clear();
      std::vector<std::string> headers;
      for (size_t i = 0; i < columns.size(); ++i) {
        const bool shown = columns[i].int_at_or(0, "priority") == 0 || output_.form == Output::Form::Wide;
        if (!shown) continue;
        shown_columns_.push_back(i);
        headers.push_back(to_upper(columns[i].text_at("name")));
      }
      add_head(target, std::move(headers), table.items_at("rows").empty());
    }
    for (const Value& row : table.items_at("rows")) {
      const Value* object = row.find("object");
      if (!flags_.owned_by.empty() && (object == nullptr || !has_manager(*object, flags_.owned_by))) continue;
      add_row(target, row, object, event);
      ++shown_;
    }
    return flush(writer_.take());
  }

  void add_head(const Target& target, std::vector<std::string> headers, bool no_rows) {
    if (headed_ || flags_.no_headers || no_rows) return;
    headed_ = true;
    if (flags_.all_namespaces && target.resource.namespaced) headers.insert(headers.begin(), "NAMESPACE");
    if (flags_.output_watch_events) headers.insert(headers.begin(), "EVENT");
    for (const std::string& label : flags_.label_columns) {
      headers.push_back(to_upper(std::string_view(label).substr(label.rfind('/') + 1)));
    }
    if (flags_.show_labels) headers.push_back("LABELS");
    writer_.add(std::move(headers));
  }

  void add_row(const Target& target, const Value& row, const Value* object, std::string_view event) {
    std::vector<std::string> cells;
    if (flags_.output_watch_events) cells.emplace_back(event);
    if (flags_.all_namespaces && target.resource.namespaced) {
      cells.emplace_back(object == nullptr ? "" : object->text_at("metadata", "namespace"));
    }
    const std::span<const Value> values = row.items_at("cells");
    for (size_t i = 0; i < shown_columns_.size(); ++i) {
      std::string text = shown_columns_[i] < values.size() ? cell_text(values[shown_columns_[i]]) : "";
      if (i == 0 && prefix_kind_) text = display_name(target.resource, text);
      cells.push_back(std::move(text));
    }
    const Value* labels = object == nullptr ? nullptr : object->get("metadata", "labels");
    for (const std::string& label : flags_.label_columns) {
      cells.emplace_back(labels == nullptr ? "" : labels->text_at(label));
    }
    if (flags_.show_labels) cells.push_back(labels_text(labels));
    writer_.add(std::move(cells));
  }

  static std::string labels_text(const Value* labels) {
    if (labels == nullptr || labels->count() == 0) return "<none>";
    std::vector<std::string> pairs;
    for (const Member& label : labels->members()) {
      pairs.push_back(std::string(label.key) + "=" +
                      std::string(label.value.is_string() ? label.value.as_string() : ""));
    }
    std::sort(pairs.begin(), pairs.end());
    return join(pairs, ",");
  }

  static Value table_of(Arena& arena, const Value& answer) {
    ListBuilder columns(arena), rows(arena);
    for (const std::string_view name : {"Name", "Age"}) {
      MapBuilder column(arena);
      column.add("name", Value::string(name));
      columns.add(column.build());
    }
    const auto add = [&](const Value& object) {
      ListBuilder cells(arena);
      cells.add(Value::string(object.text_at("metadata", "name")));
      const std::string age = table::age_of(object.text_at("metadata", "creationTimestamp"), system_clock().now());
      cells.add(Value::string(arena, age));
      MapBuilder row(arena);
      row.add("cells", cells.build());
      row.add("object", object);
      rows.add(row.build());
    };
    for_each_item(answer, add);
    MapBuilder table(arena);
    table.add("columnDefinitions", columns.build());
    table.add("rows", rows.build());
    return table.build();
  }

  // --- Objects

  bool show_objects(const Target& target) {
    return each_answer(target, client::Shape::Object, [&](const client::Object& answer) {
      const Value& root = answer.root();
      if (!target.name.empty() || !root.has("items")) return show_object(target, root, "");
      for (const Value& item : root.items_at("items")) {
        if (!show_object(target, item, "")) return false;
      }
      return fflush(stdout) == 0;
    });
  }

  // Sorts objects across kinds, because they are printed as one list.
  void show_sorted_objects(const std::vector<Target>& targets) {
    std::vector<client::Object> answers;  // Owns what `items` points into.
    std::vector<std::pair<const Target*, Value>> items;
    std::vector<std::optional<Value>> keys;
    for (const Target& target : targets) {
      if (!each_answer(target, client::Shape::Object, [&](const client::Object& answer) {
            answers.push_back(answer);
            for_each_item(answer.root(), [&](const Value& item) {
              items.emplace_back(&target, item);
              keys.push_back(order_->key_of(item));
            });
            return true;
          })) {
        return;
      }
    }
    Result<std::vector<size_t>> sorted = order_->sorted(keys);
    if (!sorted) {
      status_ = fail_with(session_, sorted.error());
      return;
    }
    for (const size_t position : *sorted) {
      if (!show_object(*items[position].first, items[position].second, "")) return;
    }
  }

  // Adds the apiVersion and kind that list items omit, and applies --owned-by and --show-managed-fields.
  Result<Value> prepared(Arena& arena, const Target& target, Value object) const {
    if (!object.has("kind")) {
      object = with_member(arena, object, "kind", Value::string(target.resource.kind));
      object = with_member(arena, object, "apiVersion", Value::string(arena, target.resource.api_version()));
    }
    if (!flags_.owned_by.empty()) return owned(arena, target, object);
    constexpr std::string_view kPath[] = {"metadata", "managedFields"};
    switch (managed_fields_) {
      case Shown::None:
        return output_.reads_managed_fields ? object : without_path(arena, object, kPath);
      case Shown::AsIs:
        return object;
      case Shown::V1:
        return with_fields_as(arena, object, FieldsForm::V1);
      case Shown::V2:
        return with_fields_as(arena, object, FieldsForm::V2);
    }
    return object;
  }

  // What the manager applied, as it has to be applied to change nothing; if it applied nothing, or if the schema is not
  // known, the fields that it owns.
  Result<Value> owned(Arena& arena, const Target& target, const Value& object) const {
    const std::string name = target.resource.api_version() + " " + target.resource.kind;
    auto known = schemas_.find(name);
    if (known == schemas_.end()) known = schemas_.emplace(name, schema_of(session_, target.resource)).first;
    if (known->second) {
      codec::Document copy;
      copy.set_root(deep_copy(copy.arena(), object));
      Result<std::optional<client::apply::Fields>> applied =
          client::apply::extract({target.resource.api_version(), target.resource.kind, *known->second},
                                 client::Object(std::move(copy)), flags_.owned_by, flags_.subresource);
      if (!applied) return applied.take_error();
      if (*applied) return (**applied).to_value(arena);
    }
    return owned_part(arena, object, flags_.owned_by);
  }

  bool show_object(const Target& target, const Value& given, std::string_view event) {
    if (!flags_.owned_by.empty() && !has_manager(given, flags_.owned_by)) return true;
    Arena arena;
    Result<Value> object = prepared(arena, target, given);
    if (!object) {
      status_ = fail_with(session_, object.error());
      return false;
    }
    ++shown_;
    const bool alone = single_ || !event.empty();
    switch (output_.form) {
      case Output::Form::Name:
        return flush(display_name(target.resource, object->text_at("metadata", "name")) + "\n");
      case Output::Form::CustomColumns: {
        if (shown_ == 1 && !flags_.no_headers) writer_.add(output_.columns->headers());
        Result<std::vector<std::string>> row = output_.columns->row(*object);
        if (!row) {
          status_ = fail_with(session_, row.error());
          return false;
        }
        writer_.add(std::move(*row));
        return !alone || flush(writer_.take());
      }
      case Output::Form::JsonPath:
        if (!alone) {
          kept_.push_back(deep_copy(kept_arena_, *object));
          return true;
        }
        return print_template(*object);
      case Output::Form::Yaml:
        if (alone) return flush((event.empty() ? "" : "---\n") + yaml_text(*object));
        return flush((shown_ == 1 ? "apiVersion: v1\nitems:\n" : "") + yaml_item(*object));
      case Output::Form::Json:
        if (alone) return flush(json_text(*object) + "\n");
        return flush((shown_ == 1 ? "{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n        " : ",\n        ") +
                     json_text(*object, 8));
      case Output::Form::Table:
      case Output::Form::Wide:
        break;
    }
    return true;
  }

  static std::string yaml_item(const Value& object) {
    Arena arena;
    ListBuilder one(arena);
    one.add(object);
    return yaml_text(one.build());
  }

  bool print_template(const Value& root) {
    Result<std::string> text = output_.json_path->print(root);
    if (text) return flush(*text);
    status_ = fail_with(session_, text.error());
    return false;
  }

  // Prints what follows the last object.
  Result<Unit> finish() {
    if (output_.form == Output::Form::CustomColumns) {
      if (shown_ == 0 && !flags_.no_headers && !single_) writer_.add(output_.columns->headers());
      flush(writer_.take());
    }
    if (single_ || status_ != 0) return Unit{};
    if (output_.form == Output::Form::Yaml) {
      flush(shown_ == 0 ? "apiVersion: v1\nitems: []\nkind: List\nmetadata:\n  resourceVersion: \"\"\n"
                        : "kind: List\nmetadata:\n  resourceVersion: \"\"\n");
    } else if (output_.form == Output::Form::Json) {
      const std::string tail =
          ",\n    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n";
      flush(shown_ == 0 ? "{\n    \"apiVersion\": \"v1\",\n    \"items\": []" + tail : "\n    ]" + tail);
    } else if (output_.form == Output::Form::JsonPath) {
      MapBuilder list(kept_arena_), metadata(kept_arena_);
      metadata.add("resourceVersion", Value::string(""));
      list.add("apiVersion", Value::string("v1"));
      list.add("items", Value::list(kept_arena_.copy(std::span<const Value>(kept_))));
      list.add("kind", Value::string("List"));
      list.add("metadata", metadata.build());
      print_template(list.build());
    }
    return Unit{};
  }

  void say_nothing_found(const std::vector<Target>& targets) const {
    const bool spaced =
        std::any_of(targets.begin(), targets.end(), [](const Target& t) { return t.resource.namespaced; });
    if (spaced && !flags_.all_namespaces) {
      print_error("No resources found in ", session_.space, " namespace.\n");
    } else {
      print_error("No resources found\n");
    }
  }

  // --- Watching

  int follow(const Target& target) {
    const client::Api<> api = session_.client.api(target.resource, space_of(target));
    client::WatchOptions options{.label_selector = flags_.selector, .field_selector = flags_.field_selector};
    if (!target.name.empty()) options.field_selector = "metadata.name=" + target.name;
    options.shape = output_.is_table() ? client::Shape::Table : client::Shape::Object;
    options.resource_version = version_;
    while (true) {
      Result<client::Watch> watch = api.watch(options).wait();
      if (!watch) return fail_with(session_, watch.error());
      while (true) {
        Result<std::optional<client::WatchEvent>> event = watch->next().wait();
        if (!event) {
          if (event.error().code == 410) return fail_with(session_, event.error());
          break;
        }
        if (!*event) break;  // The server closes watches from time to time; resume from the last version.
        if (!show_event(target, **event, options.resource_version)) return status_;
      }
    }
  }

  bool show_event(const Target& target, const client::WatchEvent& event, std::string& version) {
    using Type = client::WatchEvent::Type;
    const Value& object = event.object.root();
    const std::span<const Value> rows = object.items_at("rows");
    const std::string_view own = object.text_at("metadata", "resourceVersion");
    const std::string_view of_row = rows.empty() ? "" : rows[0].text_at("object", "metadata", "resourceVersion");
    if (!own.empty() || !of_row.empty()) version = own.empty() ? of_row : own;
    if (event.type == Type::Bookmark) return true;
    const std::string_view name = event.type == Type::Added      ? "ADDED"
                                  : event.type == Type::Modified ? "MODIFIED"
                                                                 : "DELETED";
    return output_.is_table() ? show_rows(target, object, name) : show_object(target, object, name);
  }

  GetFlags& flags_;
  const Output output_;
  const std::optional<SortOrder> order_;
  const Shown managed_fields_;
  Session session_;
  // By apiVersion and kind; see schema_of.
  mutable std::map<std::string, std::optional<std::string>> schemas_;
  std::map<std::string, std::string> spaces_;  // Namespaces of objects from files, by plural/name.

  bool prefix_kind_ = false, single_ = false, headed_ = false, separated_ = true, stopped_ = false;
  int status_ = 0;
  size_t shown_ = 0;
  client::Resource last_;
  TableWriter writer_;
  std::vector<size_t> shown_columns_;
  std::string version_;  // The version from which a watch continues.
  Arena kept_arena_;     // Objects for a template, which is given all of them at once.
  std::vector<Value> kept_;
};

Result<Shown> parse_shown(const std::string& text) {
  if (text == "none" || text == "false") return Shown::None;
  if (text == "true") return Shown::AsIs;
  if (text == "v1") return Shown::V1;
  if (text == "v2") return Shown::V2;
  return bad_request("--show-managed-fields must be none, v1 or v2, not \"" + text + "\"");
}

// --raw prints a response as it is.
const char* conflict_with_raw(const GetFlags& flags) {
  if (!flags.arguments.empty()) return "arguments may not be passed when --raw is specified";
  if (!flags.output.empty()) return "--raw and --output are mutually exclusive";
  const bool other = flags.manifests.given() || !flags.label_columns.empty() || !flags.sort_by.empty() ||
                     !flags.selector.empty() || !flags.field_selector.empty() || !flags.owned_by.empty() ||
                     !flags.subresource.empty() || flags.show_managed_fields != "none" || flags.all_namespaces ||
                     flags.watch || flags.watch_only || flags.output_watch_events || flags.no_headers ||
                     flags.show_labels || flags.show_kind || flags.ignore_not_found;
  return other ? "--raw prints the response as it is: only connection flags may be combined with it" : nullptr;
}

int get(GetFlags& flags) {
  if (!flags.raw.empty()) {
    if (const char* problem = conflict_with_raw(flags)) return fail(problem);
  }
  Result<Output> output = Output::parse(flags.output);
  if (!output) return fail(output.error().message.c_str());
  Result<Shown> shown = parse_shown(flags.show_managed_fields);
  if (!shown) return fail(shown.error().message.c_str());
  flags.label_columns = split_commas(flags.label_columns);
  std::optional<SortOrder> order;
  if (!flags.sort_by.empty()) {
    Result<SortOrder> parsed = SortOrder::parse(flags.sort_by);
    if (!parsed) return fail(parsed.error().message.c_str());
    order = std::move(*parsed);
  }
  const bool read = *shown != Shown::None || !flags.owned_by.empty() || output->reads_managed_fields ||
                    flags.sort_by.find("managedFields") != std::string::npos;
  Result<Session> session = open_session(flags.connection, read ? ManagedFields::Kept : ManagedFields::Dropped);
  if (!session) return fail(session.error().message.c_str());
  return Getter(flags, std::move(*output), std::move(order), *shown, std::move(*session)).run();
}

void add_get_flags(CLI::App* c, GetFlags& flags) {
  c->add_option("KIND/NAME", flags.arguments, "Objects: KIND[,KIND], KIND NAME..., or KIND/NAME...");
  add_manifest_flags(*c, flags.manifests, "that name the objects");
  c->add_option("-o,--output", flags.output,
                "Output format: wide, yaml, json, name, jsonpath=TEMPLATE, custom-columns=NAME:PATH,...");
  c->add_flag("-A,--all-namespaces", flags.all_namespaces, "Objects of all namespaces");
  c->add_option("-l,--selector", flags.selector, "Label selector");
  c->add_option("--field-selector", flags.field_selector, "Field selector, such as metadata.name=web");
  c->add_option("-L,--label-columns", flags.label_columns, "Labels to show as columns, comma separated")
      ->allow_extra_args(false);
  c->add_option("--sort-by", flags.sort_by,
                "Path of the field to sort by, such as .metadata.creationTimestamp; all objects are read first");
  c->add_flag("--show-labels", flags.show_labels, "Show all labels as the last column");
  c->add_flag("--show-kind", flags.show_kind, "Show the kind before each name");
  c->add_flag("--no-headers", flags.no_headers, "Leave out column headers");
  c->add_flag("--ignore-not-found", flags.ignore_not_found, "Treat objects that do not exist as success");
  c->add_option("--chunk-size", flags.chunk_size, "Objects per request; 0 requests all at once")->capture_default_str();
  c->add_option("--subresource", flags.subresource, "Subresource to read, such as status or scale");
  c->add_flag("--output-watch-events", flags.output_watch_events,
              "Show the type of each watch event as the first column");
  c->add_flag("--show-managed-fields", flags.show_managed_fields,
              "Show managedFields; v1 or v2 converts all of them to that format")
      ->type_name("[=none|v1|v2]");
  c->add_option("--owned-by", flags.owned_by,
                "Show only what this manager applied, ready to be applied again, or else the fields that it owns");
  add_connection_flags(*c, flags.connection);
}

}  // namespace

Command add_get(CLI::App& app) {
  auto flags = std::make_shared<GetFlags>();
  CLI::App* c = app.add_subcommand("get", "Show objects");
  add_get_flags(c, *flags);
  c->add_flag("-w,--watch", flags->watch, "Watch for changes after listing");
  c->add_flag("--watch-only", flags->watch_only, "Watch for changes without listing first");
  c->add_option("--raw", flags->raw, "Path on the server to print the raw response of, such as /version");
  c->footer(
      "\nmetadata.managedFields is omitted unless requested; the server is asked not to send it.\n\n"
      "Examples:\n"
      "  holdfast get pods -A -o wide\n"
      "  holdfast get deployment web -o yaml --show-managed-fields\n"
      "  holdfast get deployment web -o yaml --owned-by alice\n"
      "  holdfast get pods -l app=web -o jsonpath='{range .items[*]}{.metadata.name}{\"\\n\"}{end}'\n"
      "  holdfast get pods --sort-by .metadata.creationTimestamp\n"
      "  holdfast get pods -w");
  return [flags] { return get(*flags); };
}

Command add_watch(CLI::App& app) {
  auto flags = std::make_shared<GetFlags>();
  CLI::App* c = app.add_subcommand("watch", "Watch objects for changes");
  add_get_flags(c, *flags);
  c->footer("\nExamples:\n  holdfast watch pods\n  holdfast watch deployments -A --output-watch-events");
  return [flags] {
    flags->watch = true;
    return get(*flags);
  };
}

}  // namespace holdfast::cli
