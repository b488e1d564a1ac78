// `holdfast create -f`
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/manifests.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/terminal.h"

namespace holdfast::cli {
namespace {

struct CreateFlags {
  ConnectionFlags connection;
  ManifestFlags manifests;
  std::string field_manager, dry_run = "none", validate = "strict", output;
};

int create(const CreateFlags& flags) {
  Result<Session> session = open_session(flags.connection, ManagedFields::Dropped);
  if (!session) return fail(session.error().message.c_str());
  Result<std::vector<Manifest>> manifests = read_manifests(flags.manifests);
  if (!manifests) return fail(manifests.error().message.c_str());
  if (manifests->empty()) return fail("no objects passed to create");
  int status = 0;
  for (const Manifest& manifest : *manifests) {
    Result<client::Api<>> api = api_of(*session, manifest);
    if (!api) {
      status = fail_with(*session, api.error());
      continue;
    }
    if (flags.dry_run == "client") {
      print(display_name(api->resource(), manifest.object.name()), " created (dry run)\n");
      continue;
    }
    client::WriteOptions options;
    options.field_manager = manager_for(manifest, flags.field_manager, "holdfast-create");
    options.dry_run = flags.dry_run == "server";
    options.field_validation = field_validation(flags.validate);
    Result<client::Object> made = api->create(manifest.object.root(), options).wait();
    if (!made) {
      status = fail_with(*session, at(manifest, made.take_error()));
      continue;
    }
    const std::string name = display_name(api->resource(), made->name());
    if (flags.output == "name") {
      print(name, "\n");
    } else if (flags.output == "yaml") {
      print(&manifest == &manifests->front() ? "" : "---\n", yaml_text(made->root()));
    } else if (flags.output == "json") {
      print(json_text(made->root()), "\n");
    } else {
      print(name, " created", options.dry_run ? " (server dry run)" : "", "\n");
    }
  }
  return status;
}

}  // namespace

Command add_create(CLI::App& app) {
  auto flags = std::make_shared<CreateFlags>();
  CLI::App* c = app.add_subcommand("create", "Create objects from manifests");
  add_manifest_flags(*c, flags->manifests, "of manifests");
  c->add_option("--field-manager", flags->field_manager,
                "Field manager; default: the one declared in the manifest, else holdfast-create");
  add_write_flags(*c, flags->dry_run, flags->validate);
  c->add_option("-o,--output", flags->output, "Output format: name, yaml or json")
      ->check(CLI::IsMember({"", "name", "yaml", "json"}));
  add_connection_flags(*c, flags->connection);
  c->footer("\nExamples:\n  holdfast create -f pod.yaml\n  holdfast create -f - < pod.yaml");
  return [flags] { return create(*flags); };
}

}  // namespace holdfast::cli
