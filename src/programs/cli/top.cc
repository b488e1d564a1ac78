// `holdfast top ownership`: the size of managedFields.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "cli/commands.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/terminal.h"
#include "codec/codec.h"

namespace holdfast::cli {
namespace {

struct TopFlags {
  ConnectionFlags connection;
  std::vector<std::string> kinds;
  bool all_namespaces = false;
};

struct Cost {
  size_t objects = 0, bytes = 0, managed_bytes = 0;
};

std::string shown_bytes(size_t bytes) {
  constexpr size_t kKibi = 1024;
  if (bytes < 10 * kKibi) return std::to_string(bytes);
  return bytes < 10 * kKibi * kKibi ? std::to_string(bytes / kKibi) + "Ki"
                                    : std::to_string(bytes / kKibi / kKibi) + "Mi";
}
std::string percent(size_t part, size_t whole) {
  return whole == 0 ? "0%" : std::to_string((part * 100 + whole / 2) / whole) + "%";
}

Result<Unit> measure(const Session& session, const Target& target, bool all_namespaces, Cost& cost,
                     std::map<std::string, Cost>& managers) {
  const std::string space = all_namespaces ? "" : space_for(session, target.resource);
  return each_object(session, target, space, "", [&](const Value& object) -> Result<Unit> {
    ++cost.objects;
    cost.bytes += codec::encode_json(object).size();
    const Value* entries = object.get("metadata", "managedFields");
    if (entries == nullptr || !entries->is_list()) return Unit{};
    cost.managed_bytes += codec::encode_json(*entries).size();
    for (const Value& entry : entries->items()) {
      Cost& manager = managers[std::string(entry.text_at("manager"))];
      ++manager.objects;
      manager.managed_bytes += codec::encode_json(entry).size();
    }
    return Unit{};
  });
}

int top_ownership(const TopFlags& flags) {
  Result<Session> session = open_session(flags.connection);
  if (!session) return fail(session.error().message.c_str());
  std::vector<Target> targets;
  if (!flags.kinds.empty()) {
    Result<std::vector<Target>> found = find_targets(*session, flags.kinds);
    if (!found) return fail_with(*session, found.error());
    targets = std::move(*found);
  } else {
    Result<std::vector<client::Resource>> listed = resources_with(*session, {"list"});
    if (!listed) return fail_with(*session, listed.error());
    const bool one_namespace = !flags.connection.space.empty() && !flags.all_namespaces;
    for (const client::Resource& resource : *listed) {
      if (one_namespace && !resource.namespaced) continue;
      // Events are served by two groups.
      if (resource.group != "events.k8s.io") targets.push_back({resource, ""});
    }
  }
  const bool everywhere = flags.all_namespaces || (flags.kinds.empty() && flags.connection.space.empty());
  std::vector<std::pair<std::string, Cost>> resources;
  std::map<std::string, Cost> managers;
  Cost all;
  {
    Progress progress("Reading");
    for (size_t i = 0; i < targets.size(); ++i) {
      progress.show(i + 1, targets.size(), targets[i].resource.plural);
      Cost cost;
      Result<Unit> measured = measure(*session, targets[i], everywhere, cost, managers);
      // Skip resources that we may not list or whose aggregated server does not respond.
      if (!measured && (measured.error().code == 403 || measured.error().code >= 404)) continue;
      if (!measured) return fail_with(*session, measured.error());
      if (cost.objects == 0) continue;
      const client::Resource& resource = targets[i].resource;
      resources.emplace_back(resource.group.empty() ? resource.plural : resource.plural + "." + resource.group, cost);
      all.objects += cost.objects;
      all.bytes += cost.bytes;
      all.managed_bytes += cost.managed_bytes;
    }
  }
  std::sort(resources.begin(), resources.end(),
            [](const auto& a, const auto& b) { return a.second.managed_bytes > b.second.managed_bytes; });
  TableWriter table;
  table.add({"RESOURCE", "OBJECTS", "BYTES", "MANAGEDFIELDS", "SHARE"});
  resources.emplace_back("total", all);
  for (const auto& [name, cost] : resources) {
    table.add({name, std::to_string(cost.objects), shown_bytes(cost.bytes), shown_bytes(cost.managed_bytes),
               percent(cost.managed_bytes, cost.bytes)});
  }
  print(table.take(), "\n");
  std::vector<std::pair<std::string, Cost>> by_manager(managers.begin(), managers.end());
  std::sort(by_manager.begin(), by_manager.end(),
            [](const auto& a, const auto& b) { return a.second.managed_bytes > b.second.managed_bytes; });
  TableWriter owners;
  owners.add({"MANAGER", "ENTRIES", "MANAGEDFIELDS", "SHARE"});
  for (const auto& [name, cost] : by_manager) {
    owners.add({name, std::to_string(cost.objects), shown_bytes(cost.managed_bytes),
                percent(cost.managed_bytes, all.managed_bytes)});
  }
  print(owners.take(), "\n");
  print("A client that opts out of managedFields reads ", percent(all.managed_bytes, all.bytes),
        " less: a full list of these objects takes ", shown_bytes(all.bytes - all.managed_bytes), " instead of ",
        shown_bytes(all.bytes), ".\n");
  return 0;
}

}  // namespace

Command add_top(CLI::App& app) {
  auto flags = std::make_shared<TopFlags>();
  CLI::App* c = app.add_subcommand("top", "Show resource usage");
  CLI::App* ownership = c->add_subcommand("ownership", "Show the size of managedFields, by resource and manager");
  ownership->add_option("KIND", flags->kinds,
                        "Kinds to measure, comma separated; default: all kinds that can be listed");
  ownership->add_flag("-A,--all-namespaces", flags->all_namespaces,
                      "Objects of all namespaces; default unless a KIND or a namespace is given");
  add_connection_flags(*ownership, flags->connection);
  ownership->footer(
      "\nSizes are in bytes of JSON, as received by clients. See docs/opting-out.md for clients that can do without "
      "managedFields.\n\n"
      "Examples:\n  holdfast top ownership\n  holdfast top ownership pods,deployments -A");
  c->require_subcommand(1);
  return [flags] { return top_ownership(*flags); };
}

}  // namespace holdfast::cli
