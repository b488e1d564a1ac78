// `holdfast api-resources`
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/terminal.h"

namespace holdfast::cli {
namespace {

struct ApiResourcesFlags {
  ConnectionFlags connection;
  std::string output, sort_by, api_group = "*";  // "*": every group.
  std::vector<std::string> verbs, categories;
  std::string namespaced;  // "true", "false", or empty for both.
  bool no_headers = false;
};

bool has_all(const std::vector<std::string>& of, const std::vector<std::string>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const std::string& one) { return std::find(of.begin(), of.end(), one) != of.end(); });
}

int api_resources(const ApiResourcesFlags& flags) {
  Result<Session> session = open_session(flags.connection);
  if (!session) return fail(session.error().message.c_str());
  // Bypasses the discovery cache.
  Result<std::vector<client::ServedResource>> all = session->client.served(std::chrono::seconds(0)).wait();
  if (!all) return fail_with(*session, all.error());
  const std::vector<std::string> verbs = split_commas(flags.verbs), categories = split_commas(flags.categories);
  std::vector<const client::ServedResource*> rows;
  std::set<std::pair<std::string, std::string>> seen;
  for (const client::ServedResource& served : *all) {
    const client::Resource& resource = served.resource;
    // The preferred version comes first in discovery.
    if (served.verbs.empty() || !seen.emplace(resource.group, resource.plural).second) continue;
    if (flags.api_group != "*" && resource.group != flags.api_group) continue;
    if (!flags.namespaced.empty() && resource.namespaced != (flags.namespaced == "true")) continue;
    if (!has_all(served.verbs, verbs) || !has_all(served.categories, categories)) continue;
    rows.push_back(&served);
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const client::ServedResource* a, const client::ServedResource* b) {
    const client::Resource &left = a->resource, &right = b->resource;
    if (flags.sort_by == "name") return left.plural < right.plural;
    if (flags.sort_by == "kind") return left.kind < right.kind;
    return std::tie(left.group, left.plural) < std::tie(right.group, right.plural);
  });
  const bool wide = flags.output == "wide";
  TableWriter table;
  if (!flags.no_headers && flags.output != "name") {
    std::vector<std::string> head = {"NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"};
    if (wide) head.insert(head.end(), {"VERBS", "CATEGORIES"});
    table.add(std::move(head));
  }
  for (const client::ServedResource* served : rows) {
    const client::Resource& resource = served->resource;
    if (flags.output == "name") {
      print(resource.group.empty() ? resource.plural : resource.plural + "." + resource.group, "\n");
      continue;
    }
    std::vector<std::string> row = {resource.plural, join(served->short_names, ","), resource.api_version(),
                                    resource.namespaced ? "true" : "false", resource.kind};
    if (wide) row.insert(row.end(), {join(served->verbs, ","), join(served->categories, ",")});
    table.add(std::move(row));
  }
  print(table.take());
  return 0;
}

}  // namespace

Command add_api_resources(CLI::App& app) {
  auto flags = std::make_shared<ApiResourcesFlags>();
  CLI::App* c = app.add_subcommand("api-resources", "List the resources that the server serves");
  c->add_option("-o,--output", flags->output, "Output format: wide or name")
      ->check(CLI::IsMember({"", "wide", "name"}));
  c->add_option("--api-group", flags->api_group, "Limit to resources in this API group; empty is the core group");
  c->add_flag("--namespaced", flags->namespaced, "Limit to namespaced resources, or with =false to the others");
  c->add_option("--verbs", flags->verbs, "Limit to resources that support these verbs, comma separated")
      ->allow_extra_args(false);
  c->add_option("--categories", flags->categories, "Limit to resources of these categories, comma separated")
      ->allow_extra_args(false);
  c->add_option("--sort-by", flags->sort_by, "name or kind; default: group, then name")
      ->check(CLI::IsMember({"", "name", "kind"}));
  c->add_flag("--no-headers", flags->no_headers, "Leave out column headers");
  add_connection_flags(*c, flags->connection);
  c->footer(
      "\nExamples:\n  holdfast api-resources\n  holdfast api-resources --api-group=apps -o wide\n"
      "  holdfast api-resources --verbs=list --namespaced -o name");
  return [flags] { return api_resources(*flags); };
}

}  // namespace holdfast::cli
