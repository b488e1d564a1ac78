// `holdfast describe`: an object of any kind, its field managers and its events.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/field_owners.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/terminal.h"
#include "table/table.h"

namespace holdfast::cli {
namespace {

struct DescribeFlags {
  ConnectionFlags connection;
  std::vector<std::string> arguments;
  std::string selector;
  bool all_namespaces = false, show_events = true;
};

std::string pairs_text(const Value* map) {
  if (map == nullptr || map->count() == 0) return "<none>";
  std::string out;
  for (const Member& member : map->members()) {
    if (!out.empty()) out += "\n              ";
    out += std::string(member.key) + "=" + cell_text(member.value);
  }
  return out;
}

std::string heading(const Value& object) {
  std::string out;
  const auto line = [&](std::string name, const std::string& value) {
    name += ':';
    name.resize(14, ' ');
    out += name + value + "\n";
  };
  line("Name", std::string(object.text_at("metadata", "name")));
  if (const std::string_view space = object.text_at("metadata", "namespace"); !space.empty()) {
    line("Namespace", std::string(space));
  }
  line("Labels", pairs_text(object.get("metadata", "labels")));
  line("Annotations", pairs_text(object.get("metadata", "annotations")));
  line("API Version", std::string(object.text_at("apiVersion")));
  line("Kind", std::string(object.text_at("kind")));
  line("Created", std::string(object.text_at("metadata", "creationTimestamp")));
  for (const Value& owner : object.items_at("metadata", "ownerReferences")) {
    line("Controlled By", std::string(owner.text_at("kind")) + "/" + std::string(owner.text_at("name")));
  }
  return out;
}

std::string managers_table(const Value& object, UnixTime now) {
  const Result<FieldOwners> owners = FieldOwners::of(object);
  if (!owners || owners->managers().empty()) return "Managers:     <none>\n";
  TableWriter table;
  table.add({"  Manager", "Operation", "Subresource", "Fields", "Age"});
  for (const ownership::ManagerEntry& entry : owners->managers()) {
    table.add({"  " + std::string(entry.manager), std::string(name_of(entry.operation)), std::string(entry.subresource),
               std::to_string(entry.fields.size()),
               entry.time ? table::age_text(now.seconds - *entry.time) : "<unknown>"});
  }
  return "Managers:\n" + table.take();
}

Result<std::string> events_table(const Session& session, const Value& object, UnixTime now) {
  const std::string_view own = object.text_at("metadata", "namespace");
  const client::Api<> events = session.client.api(client::builtin("v1", "Event"), own.empty() ? "default" : own);
  const std::string selector = "involvedObject.uid=" + std::string(object.text_at("metadata", "uid"));
  Result<std::vector<client::Object>> pages = events.list_all({.field_selector = selector}).wait();
  if (!pages) return pages.take_error();
  TableWriter table;
  table.add({"  Type", "Reason", "Age", "From", "Message"});
  size_t count = 0;
  for (const client::Object& page : *pages) {
    for (const Value& event : page.root().items_at("items")) {
      ++count;
      std::string_view time = event.text_at("lastTimestamp");
      if (time.empty()) time = event.text_at("eventTime");
      if (time.empty()) time = event.text_at("metadata", "creationTimestamp");
      std::string_view from = event.text_at("source", "component");
      if (from.empty()) from = event.text_at("reportingComponent");
      table.add({"  " + std::string(event.text_at("type")), std::string(event.text_at("reason")),
                 table::age_of(time, now), std::string(from), cell_text(Value::string(event.text_at("message")))});
    }
  }
  return count == 0 ? std::string("Events:       <none>\n") : "Events:\n" + table.take();
}

Result<Unit> print_one(const Session& session, const Value& object, bool show_events, bool first) {
  const UnixTime now = system_clock().now();
  std::string out = first ? "" : "\n\n";
  out += heading(object);
  // The kind-specific fields as YAML.
  Arena arena;
  MapBuilder rest(arena);
  for (const Member& member : object.members()) {
    if (member.key != "metadata" && member.key != "apiVersion" && member.key != "kind")
      rest.add(member.key, member.value);
  }
  if (rest.count() > 0) out += yaml_text(rest.build());
  out += managers_table(object, now);
  if (show_events) {
    Result<std::string> events = events_table(session, object, now);
    if (!events) return events.take_error();
    out += *events;
  }
  print(out);
  return Unit{};
}

int describe(const DescribeFlags& flags) {
  Result<Session> session = open_session(flags.connection);
  if (!session) return fail(session.error().message.c_str());
  Result<std::vector<Target>> targets = find_targets(*session, flags.arguments);
  if (!targets) return fail_with(*session, targets.error());
  size_t shown = 0;
  for (const Target& target : *targets) {
    const std::string space = flags.all_namespaces ? "" : space_for(*session, target.resource);
    Result<Unit> printed = each_object(*session, target, space, flags.selector, [&](const Value& object) {
      return print_one(*session, object, flags.show_events, shown++ == 0);
    });
    if (!printed) return fail_with(*session, printed.error());
  }
  if (shown == 0) print_error("No resources found in ", session->space, " namespace.\n");
  return 0;
}

}  // namespace

Command add_describe(CLI::App& app) {
  auto flags = std::make_shared<DescribeFlags>();
  CLI::App* c = app.add_subcommand("describe", "Show an object, its managers and its events");
  c->add_option("KIND/NAME", flags->arguments, "Objects: KIND, KIND NAME..., or KIND/NAME...")->required();
  c->add_option("-l,--selector", flags->selector, "Label selector for objects of a kind");
  c->add_flag("-A,--all-namespaces", flags->all_namespaces, "Objects of all namespaces");
  c->add_flag("--show-events,!--no-events", flags->show_events, "Show events of the object (default)");
  add_connection_flags(*c, flags->connection);
  c->footer("\nExamples:\n  holdfast describe pod web\n  holdfast describe deployments -l app=web");
  return [flags] { return describe(*flags); };
}

}  // namespace holdfast::cli
