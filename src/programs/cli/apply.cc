// `holdfast apply`: Server-Side Apply, with conflicts shown and resolved field by field.
//
//   apply without force --ok--> done
//     | 409
//     +--> each field: take, share, yield     (by flag, or prompted on a terminal)
//            |
//            +--> apply again, forced if fields are taken, provided that the object has not changed
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/strings.h"
#include "cli/apply_set.h"
#include "cli/commands.h"
#include "cli/conflicts.h"
#include "cli/field_owners.h"
#include "cli/field_path.h"
#include "cli/manifests.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/terminal.h"

namespace holdfast::cli {
namespace {

constexpr std::string_view kDefaultManager = "holdfast";

struct ApplyFlags {
  ConnectionFlags connection;
  ManifestFlags manifests;
  std::vector<std::string> force_fields;
  bool force_conflicts = false, show_foreign = false, server_side = true;
  bool prune = false, adopt = false, yes = false;
  std::string field_manager, dry_run = "none", validate = "strict", output, apply_set, subresource;

  std::string done = "serverside-applied";  // What is reported.

  // Suffix of messages in a dry run.
  const char* dry_run_note() const {
    return dry_run == "server" ? " (server dry run)" : dry_run == "client" ? " (dry run)" : "";
  }
};

// The fields that identify an object, as a configuration that applies nothing.
Value identity_of(Arena& arena, const Value& object) {
  MapBuilder metadata(arena), config(arena);
  metadata.add("name", Value::string(object.text_at("metadata", "name")));
  if (const std::string_view space = object.text_at("metadata", "namespace"); !space.empty()) {
    metadata.add("namespace", Value::string(space));
  }
  config.add("apiVersion", Value::string(object.text_at("apiVersion")));
  config.add("kind", Value::string(object.text_at("kind")));
  config.add("metadata", metadata.build());
  return config.build();
}

class Applier {
 public:
  Applier(const ApplyFlags& flags, const Session& session)
      : flags_(flags), session_(session), force_fields_(split_paths(flags.force_fields)) {}

  int run(const std::vector<Manifest>& manifests) {
    int status = 0;
    Progress progress("Applying");
    for (size_t i = 0; i < manifests.size(); ++i) {
      progress.show(i + 1, manifests.size(), manifests[i].where());
      Result<Unit> applied = apply(manifests[i], progress);
      if (applied) continue;
      progress.clear();
      status = fail_with(session_, applied.error());
    }
    progress.clear();
    print_objects();
    return status;
  }

 private:
  Result<Unit> apply(const Manifest& manifest, Progress& progress) {
    Result<client::Api<>> api = api_of(session_, manifest);
    if (!api) return api.take_error();
    const std::string_view declared = manifest.object.root().text_at("metadata", "options", "fieldManager");
    const std::string manager = !flags_.field_manager.empty() ? flags_.field_manager
                                : !declared.empty()           ? std::string(declared)
                                                              : std::string(kDefaultManager);
    client::ApplyOptions options;
    options.field_manager = manager_for(manifest, flags_.field_manager, kDefaultManager);
    options.dry_run = flags_.dry_run == "server";
    options.subresource = flags_.subresource;
    options.field_validation = field_validation(flags_.validate);
    if (flags_.dry_run == "client") {
      progress.clear();
      print(display_name(api->resource(), manifest.object.name()), " ", flags_.done, flags_.dry_run_note(), "\n");
      return Unit{};
    }
    Result<client::Object> applied = api->apply(manifest.object.root(), options).wait();
    std::vector<FieldConflict> overridden;
    // Retry: another writer may interfere, and then the conflicts differ.
    for (int tries = 0; !applied && is_field_conflict(applied.error()) && tries < 5; ++tries) {
      Result<client::Object> live =
          api->get(std::string(manifest.object.name()), {.drop_fields = client::DropFields::kKeep}).wait();
      if (!live) return at(manifest, live.take_error());
      std::vector<FieldConflict> conflicts =
          read_conflicts(applied.error(), manifest.object.root(), live->root(), manager);
      progress.clear();
      Result<Unit> decided = decide(manifest, *api, conflicts);
      if (!decided) return decided.take_error();
      Arena arena;
      Value config = resolved(arena, manifest.object.root(), live->root(), conflicts);
      const bool force = std::any_of(conflicts.begin(), conflicts.end(),
                                     [](const FieldConflict& c) { return c.resolution == Resolution::Take; });
      options.force = force;
      if (force) {
        // Override only what was seen: the server rejects this if the object has changed since.
        constexpr std::string_view kVersion[] = {"metadata", "resourceVersion"};
        config = with_path(arena, config, kVersion, Value::string(arena, live->resource_version()));
      }
      applied = api->apply(config, options).wait();
      if (!applied && force && applied.error().reason == Reason::Conflict) {
        options.force = false;
        applied = api->apply(manifest.object.root(), options).wait();
        continue;
      }
      overridden = std::move(conflicts);
    }
    if (!applied) return at(manifest, applied.take_error());
    progress.clear();
    report(*api, *applied, manager, overridden);
    return Unit{};
  }

  static bool is_field_conflict(const Error& error) {
    return error.reason == Reason::Conflict &&
           std::any_of(error.causes.begin(), error.causes.end(),
                       [](const Cause& cause) { return cause.type == "FieldManagerConflict"; });
  }

  // Decides by the flags, else by prompting.
  Result<Unit> decide(const Manifest& manifest, const client::Api<>& api, std::vector<FieldConflict>& conflicts) {
    size_t open = 0;
    for (FieldConflict& conflict : conflicts) {
      const bool forced = flags_.force_conflicts ||
                          std::any_of(force_fields_.begin(), force_fields_.end(),
                                      [&](const std::string& path) { return is_within(conflict.path, path); });
      if (forced) conflict.resolution = Resolution::Take;
      open += forced ? 0 : 1;
    }
    if (open == 0) return Unit{};
    const std::string name = display_name(api.resource(), manifest.object.name());
    Terminal terminal = Terminal::of_output();
    std::vector<FieldConflict> shown;
    std::copy_if(conflicts.begin(), conflicts.end(), std::back_inserter(shown),
                 [](const FieldConflict& conflict) { return conflict.resolution == Resolution::Open; });
    const std::string heading = name + ": " + std::to_string(open) + (open == 1 ? " field is" : " fields are") +
                                " owned by others\n" + conflict_table(shown, terminal, system_clock().now());
    if (!can_ask()) {
      Error error{Reason::Conflict, heading};
      error.message +=
          "Nothing was changed. To take these fields, use --force-conflicts, or --force-fields PATH,... for some of "
          "them; to give them up, remove them from " +
          manifest.where();
      return error;
    }
    print_error(heading);
    for (FieldConflict& conflict : conflicts) {
      if (conflict.resolution != Resolution::Open) continue;
      const std::string question = conflict.path + ": [t]ake yours, [s]hare the live value, [y]ield, [q]uit? ";
      switch (ask_key(question, "tsyq")) {
        case 't':
          conflict.resolution = Resolution::Take;
          break;
        case 's':
          conflict.resolution = Resolution::Share;
          break;
        case 'y':
          conflict.resolution = Resolution::Yield;
          break;
        default:
          return Error{Reason::Conflict, name + ": not applied"};
      }
    }
    return Unit{};
  }

  void report(const client::Api<>& api, const client::Object& applied, const std::string& manager,
              const std::vector<FieldConflict>& conflicts) {
    const std::string name = display_name(api.resource(), applied.name());
    if (flags_.output == "name") {
      print(name, "\n");
    } else if (!flags_.output.empty()) {
      applied_.push_back(applied);
    } else {
      print(name, " ", flags_.done, flags_.dry_run_note(), "\n");
    }
    fflush(stdout);
    for (const FieldConflict& conflict : conflicts) {
      if (conflict.resolution != Resolution::Take) continue;
      std::vector<std::string> owners;
      owners.reserve(conflict.owners.size());
      for (const FieldConflict::Owner& owner : conflict.owners) {
        owners.push_back(owner.manager + (owner.operation.empty() ? "" : " (" + owner.operation + ")"));
      }
      print_error("  overrode ", conflict.path, " of ", join(owners, ", "), ": ", conflict.live, " -> ", conflict.ours,
                  "\n");
    }
    if (flags_.show_foreign) report_foreign(applied, manager);
  }

  // With -o yaml and -o json: the object, or a List if there are several.
  void print_objects() const {
    if (applied_.empty()) return;
    constexpr std::string_view kManaged[] = {"metadata", "managedFields"};
    Arena arena;
    ListBuilder items(arena);
    for (const client::Object& object : applied_) items.add(without_path(arena, object.root(), kManaged));
    const Value objects = items.build();
    MapBuilder list(arena);
    list.add("apiVersion", Value::string("v1"));
    list.add("items", objects);
    list.add("kind", Value::string("List"));
    list.add("metadata", Value::empty_map());
    const Value shown = applied_.size() == 1 ? objects.items()[0] : list.build();
    print(flags_.output == "yaml" ? yaml_text(shown) : json_text(shown) + "\n");
    fflush(stdout);
  }

  // Reports fields owned only by other managers, which our apply leaves unchanged.
  static void report_foreign(const client::Object& applied, std::string_view manager) {
    Result<FieldOwners> owners = FieldOwners::of(applied.root());
    if (!owners) return;
    owners->for_each([&](ownership::Path path, const OwnedField& field) {
      if (field.owners.empty() || !field.is_leaf()) return;
      std::vector<std::string> others;
      for (const uint32_t position : field.owners) {
        const ownership::ManagerEntry& entry = owners->managers()[position];
        if (entry.manager == manager && entry.operation == ownership::Operation::Apply) return;
        others.push_back(std::string(entry.manager) + " (" + std::string(name_of(entry.operation)) + ")");
      }
      print_error("  foreign ", to_string(path), " of ", join(others, ", "), "\n");
    });
  }

  const ApplyFlags& flags_;
  const Session& session_;
  const std::vector<std::string> force_fields_;
  std::vector<client::Object> applied_;  // Printed at the end.
};

// Deletes the objects unless they have been replaced since they were listed.
int prune(const ApplyFlags& flags, const Session& session, const std::vector<ApplySet::Pruned>& objects) {
  int status = 0;
  Progress progress("Pruning");
  for (size_t i = 0; i < objects.size(); ++i) {
    const auto& [target, space, uid] = objects[i];
    const std::string name = display_name(target.resource, target.name);
    progress.show(i + 1, objects.size(), name);
    if (flags.dry_run != "client") {
      const client::DeleteOptions options{
          .propagation_policy = "Background", .uid = uid, .dry_run = flags.dry_run == "server"};
      Result<client::Object> removed = session.client.api(target.resource, space).remove(target.name, options).wait();
      if (!removed && removed.error().reason != Reason::NotFound) {
        progress.clear();
        status = fail_with(session, removed.error());
        continue;
      }
    }
    progress.clear();
    // With -o yaml and -o json, standard output contains only objects.
    const std::string line =
        name + (flags.output == "name" ? "" : std::string(" pruned") + flags.dry_run_note()) + "\n";
    if (flags.output == "yaml" || flags.output == "json") {
      print_error(line);
    } else {
      print(line);
    }
  }
  return status;
}

// Lists what would be pruned and asks for confirmation. nullopt if the user cancelled the apply.
std::optional<bool> may_prune(const ApplyFlags& flags, const std::vector<ApplySet::Pruned>& objects) {
  if (objects.empty() || flags.yes || flags.dry_run != "none" || !can_ask()) return true;
  print_error("No longer applied, and pruned after the apply:\n");
  for (const auto& [target, space, uid] : objects) {
    print_error("  ", display_name(target.resource, target.name), space.empty() ? "" : (" in namespace " + space),
                "\n");
  }
  switch (ask_key("Prune? [y]es, [n]o: only apply, [q]uit? ", "ynq")) {
    case 'y':
      return true;
    case 'n':
      return false;
    default:
      return std::nullopt;
  }
}

int apply_as_set(const ApplyFlags& flags, const Session& session, const std::vector<Manifest>& manifests) {
  using Adoption = ApplySet::Adoption;
  Result<ApplySet> set = ApplySet::open(session, flags.apply_set, flags.adopt ? Adoption::Allowed : Adoption::Refused);
  if (!set) return fail_with(session, set.error());
  Result<std::vector<Manifest>> members = set->as_members(manifests);
  if (!members) return fail_with(session, members.error());
  Result<Unit> planned = set->plan(manifests);
  if (!planned) return fail_with(session, planned.error());
  for (const std::string& kind : set->unknown_kinds()) {
    print_warning("the apply set contains " + kind + ", which the server does not serve; its objects are not pruned");
  }
  const std::optional<bool> pruning = may_prune(flags, set->to_prune());
  if (!pruning) return fail("nothing was applied");
  const bool asks_server = flags.dry_run != "client", dry_run = flags.dry_run == "server";
  if (asks_server) {
    Result<Unit> begun = set->begin(dry_run);
    if (!begun) return fail_with(session, begun.error());
  }
  if (int status = Applier(flags, session).run(*members); status != 0) {
    if (!set->to_prune().empty()) print_error("Nothing was pruned because not everything was applied\n");
    return status;
  }
  if (!*pruning) return 0;
  if (int status = prune(flags, session, set->to_prune()); status != 0) return status;
  if (!asks_server) return 0;
  Result<Unit> finished = set->finish(dry_run);
  return finished ? 0 : fail_with(session, finished.error());
}

int apply(const ApplyFlags& flags) {
  if (flags.prune && flags.apply_set.empty()) {
    return fail("--prune requires --applyset NAME; members of the set that are no longer applied are deleted");
  }
  if (!flags.apply_set.empty() && !flags.prune) return fail("--applyset requires --prune");
  if (flags.prune && !flags.subresource.empty()) return fail("--prune and --subresource cannot be used together");
  if (flags.adopt && !flags.prune) return fail("--adopt requires --prune and --applyset");
  Result<std::vector<Manifest>> manifests = read_manifests(flags.manifests);
  if (!manifests) return fail(manifests.error().message.c_str());
  if (manifests->empty()) {
    print_error("error: no objects passed to apply\n");
    return 1;
  }
  for (const Manifest& manifest : *manifests) {
    if (!manifest.object.name().empty()) continue;
    return fail(
        (manifest.where() + ": metadata.name is not set; apply requires it (generateName works only with create)")
            .c_str());
  }
  Result<Session> session =
      open_session(flags.connection, flags.show_foreign ? ManagedFields::Kept : ManagedFields::Dropped);
  if (!session) return fail(session.error().message.c_str());
  return flags.prune ? apply_as_set(flags, *session, *manifests) : Applier(flags, *session).run(*manifests);
}

struct UnsetFlags {
  ApplyFlags apply;
  std::vector<std::string> arguments;
};

// KIND NAME PATH... or KIND/NAME PATH...
int unset(UnsetFlags& flags) {
  Result<Session> session = open_session(flags.apply.connection);
  if (!session) return fail(session.error().message.c_str());
  const bool joined = flags.arguments[0].find('/') != std::string::npos;
  const size_t named = joined ? 1 : 2;
  if (flags.arguments.size() <= named)
    return fail("unset: expected KIND NAME PATH...; a path is such as .spec.replicas");
  const std::vector<std::string> words(flags.arguments.begin(),
                                       flags.arguments.begin() + static_cast<ptrdiff_t>(named));
  Result<std::vector<Target>> targets = find_targets(*session, words);
  if (!targets) return fail_with(*session, targets.error());
  if (targets->size() != 1) return fail("unset: expected exactly one object: KIND NAME");
  const Target& target = targets->front();
  const std::string manager =
      flags.apply.field_manager.empty() ? std::string(kDefaultManager) : flags.apply.field_manager;
  Result<client::Object> live =
      session->client.api(target.resource, space_for(*session, target.resource)).get(target.name).wait();
  if (!live) return fail_with(*session, live.error());
  // What the manager applied so far is applied again, so that it keeps all of it.
  const std::optional<std::string> schema = schema_of(*session, target.resource);
  if (!schema) {
    return fail(("the schema of " + target.resource.kind + " cannot be read, so what " + manager +
                 " has applied is not known; use apply with a marker")
                    .c_str());
  }
  Result<std::optional<client::apply::Fields>> applied =
      client::apply::extract({target.resource.api_version(), target.resource.kind, *schema}, *live, manager,
                             flags.apply.subresource, client::apply::IfDropped::Refuse);
  if (!applied) return fail_with(*session, applied.error());
  codec::Document document;
  Value config = *applied ? (**applied).to_value(document.arena()) : identity_of(document.arena(), live->root());
  for (size_t i = named; i < flags.arguments.size(); ++i) {
    Result<Value> marked = with_marker_at(document.arena(), config, live->root(), flags.arguments[i]);
    if (!marked) return fail(marked.error().message.c_str());
    config = *marked;
  }
  document.set_root(config);
  Manifest manifest;
  manifest.source = target.resource.plural + "/" + target.name;
  manifest.object = client::Object(std::move(document));
  flags.apply.done = "unset " + join(std::vector<std::string>(flags.arguments.begin() + static_cast<ptrdiff_t>(named),
                                                              flags.arguments.end()),
                                     " ");
  return Applier(flags.apply, *session).run({manifest});
}

}  // namespace

Command add_unset(CLI::App& app) {
  auto flags = std::make_shared<UnsetFlags>();
  CLI::App* c = app.add_subcommand("unset", "Remove fields from an object, and own their absence");
  c->add_option("OBJECT", flags->arguments,
                "The object, KIND NAME or KIND/NAME, and the paths of fields, such as .spec.replicas")
      ->required();
  c->add_option("--field-manager", flags->apply.field_manager,
                "Field manager that owns the absence; what it has applied before is kept; default: holdfast");
  c->add_flag("--force-conflicts", flags->apply.force_conflicts,
              "Take fields that other managers own, and report each of them");
  c->add_option("--subresource", flags->apply.subresource, "Subresource to apply to, such as status");
  add_write_flags(*c, flags->apply.dry_run, flags->apply.validate);
  c->add_option("-o,--output", flags->apply.output, "Output format: name, yaml or json")
      ->check(CLI::IsMember({"", "name", "yaml", "json"}));
  add_connection_flags(*c, flags->apply.connection);
  c->footer(
      "\nItems of lists are given by their keys, as holdfast blame shows them. Needs a server that supports unset "
      "markers.\n\n"
      "Examples:\n"
      "  holdfast unset deployment web .spec.replicas\n"
      "  holdfast unset deployment/web '.spec.template.spec.containers[name=\"web\"].env[name=\"DEBUG\"]'\n"
      "  holdfast unset configmap settings .data.legacy --field-manager team-a");
  return [flags] { return unset(*flags); };
}

Command add_apply(CLI::App& app) {
  auto flags = std::make_shared<ApplyFlags>();
  CLI::App* c = app.add_subcommand("apply", "Apply manifests: create objects, or change the fields that you own");
  add_manifest_flags(*c, flags->manifests, "of manifests");
  c->add_option(
      "--field-manager", flags->field_manager,
      "Field manager; default: the one declared in the manifest (metadata.options.fieldManager), else holdfast");
  c->add_flag("--force-conflicts", flags->force_conflicts,
              "Take fields that other managers own, and report each of them");
  c->add_option("--force-fields", flags->force_fields,
                "Take only these fields and the fields below them, comma separated, such as .spec.replicas")
      ->allow_extra_args(false);
  c->add_flag("--show-foreign", flags->show_foreign, "List the fields of each object that other managers own");
  c->add_flag("--prune", flags->prune, "Delete members of the apply set that are not among the manifests");
  c->add_option("--applyset", flags->apply_set,
                "Apply set to use: [KIND/]NAME of its parent object, by default a Secret, created if missing");
  c->add_flag("--adopt", flags->adopt,
              "Add objects that already exist to the set, and take over a set managed by another tool");
  c->add_flag("-y,--yes", flags->yes, "Prune without asking for confirmation (scripts are never asked)");
  c->add_flag("--server-side", flags->server_side,
              "Accepted for compatibility with kubectl; every apply is server-side");
  c->add_option("--subresource", flags->subresource, "Subresource to apply to, such as status or scale");
  add_write_flags(*c, flags->dry_run, flags->validate);
  c->add_option("-o,--output", flags->output, "Output format: name, yaml or json")
      ->check(CLI::IsMember({"", "name", "yaml", "json"}));
  add_connection_flags(*c, flags->connection);
  c->footer(
      "\nA conflict is a field that you apply with a different value than its owner. On a terminal, each can be\n"
      "resolved: take the field, share it by applying the live value, or yield it by leaving it out. In scripts, use\n"
      "--force-conflicts or --force-fields. A manifest that declares its own manager is applied as that manager.\n\n"
      "With --prune, everything that is applied becomes a member of an apply set, as with kubectl's --applyset, and\n"
      "members that are no longer applied are deleted. --dry-run=server lists them; on a terminal they are listed and\n"
      "have to be confirmed before anything is applied.\n\n"
      "Examples:\n"
      "  holdfast apply -f web.yaml\n"
      "  holdfast apply -R -f manifests/ --dry-run=server\n"
      "  holdfast apply -f web.yaml --force-fields .spec.replicas\n"
      "  holdfast apply -R -f shop/ --prune --applyset shop --dry-run=server\n"
      "  holdfast apply -k overlays/prod");
  return [flags] { return apply(*flags); };
}

}  // namespace holdfast::cli
