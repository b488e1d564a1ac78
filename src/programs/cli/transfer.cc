// `holdfast transfer` and `holdfast release`
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/session.h"
#include "cli/terminal.h"

namespace holdfast::cli {
namespace {

constexpr const char* kGroupVersion = "ownership.holdfast.dev/v1";

struct TransferFlags {
  ConnectionFlags connection;
  std::vector<std::string> arguments, paths;
  std::string selector;
  std::string from, from_operation, from_subresource;
  std::string to, to_operation, to_subresource;
  std::string uid, resource_version;
  bool all_namespaces = false, all = false, dry_run = false;
  const CLI::Option* has_from_subresource = nullptr;
  const CLI::Option* has_to_subresource = nullptr;
};

void add_text(Arena& arena, MapBuilder& map, std::string_view key, std::string_view text) {
  if (!text.empty()) map.add(key, Value::string(arena, text));
}

Value manager_value(Arena& arena, const std::string& name, const std::string& operation, const std::string& subresource,
                    bool has_subresource) {
  MapBuilder manager(arena);
  add_text(arena, manager, "manager", name);
  add_text(arena, manager, "operation", operation);
  if (has_subresource) manager.add("subresource", Value::string(arena, subresource));
  return manager.build();
}

Result<Value> targets_of(Arena& arena, const Session& session, const TransferFlags& flags) {
  ListBuilder targets(arena);
  if (flags.arguments.empty()) {
    MapBuilder target(arena);
    add_text(arena, target, "namespace", session.space);
    add_text(arena, target, "selector", flags.selector);
    targets.add(target.build());
    return targets.build();
  }
  Result<std::vector<Target>> found = find_targets(session, flags.arguments);
  if (!found) return found.take_error();
  for (const Target& one : *found) {
    MapBuilder target(arena);
    target.add("apiVersion", Value::string(arena, one.resource.api_version()));
    target.add("kind", Value::string(arena, one.resource.kind));
    if (!flags.all_namespaces) add_text(arena, target, "namespace", space_for(session, one.resource));
    add_text(arena, target, "name", one.name);
    add_text(arena, target, "selector", flags.selector);
    if (!flags.uid.empty() || !flags.resource_version.empty()) {
      MapBuilder preconditions(arena);
      add_text(arena, preconditions, "uid", flags.uid);
      add_text(arena, preconditions, "resourceVersion", flags.resource_version);
      target.add("preconditions", preconditions.build());
    }
    targets.add(target.build());
  }
  return targets.build();
}

// Prints what became of each object, and returns the exit status.
int print_results(const Value& answer, const TransferFlags& flags) {
  int status = 0;
  size_t changed = 0;
  const std::span<const Value> results = answer.items_at("status", "results");
  for (const Value& result : results) {
    std::string shown(result.text_at("target", "kind"));
    shown += " " + std::string(result.text_at("target", "name"));
    if (const std::string_view space = result.text_at("target", "namespace"); !space.empty()) {
      shown = std::string(space) + ": " + shown;
    }
    const std::string_view outcome = result.text_at("outcome");
    if (outcome == "Refused") {
      print_error(shown, ": ", result.text_at("error", "message"), "\n");
      status = 1;
      continue;
    }
    changed += outcome == "Changed";
    if (outcome != "Changed") {
      print(shown, ": ", flags.from, " owns none of these fields\n");
      continue;
    }
    print(shown, ": ", flags.to.empty() ? "released by " + flags.from : flags.from + " -> " + flags.to, "\n");
    for (const Value& path : result.items_at("paths")) print("  ", path.is_string() ? path.as_string() : "", "\n");
  }
  print(std::to_string(changed), " of ", std::to_string(results.size()), " objects ",
        flags.dry_run ? "would change (dry run)" : "changed", "\n");
  return status;
}

int run_transfer(const TransferFlags& flags, const char* kind) {
  if (flags.arguments.empty() && !flags.all) {
    return fail("specify objects (KIND NAME, or KIND), or use --all for everything in the namespace");
  }
  Result<Session> session = open_session(flags.connection);
  if (!session) return fail(session.error().message.c_str());
  Arena arena;
  Result<Value> targets = targets_of(arena, *session, flags);
  if (!targets) return fail_with(*session, targets.error());
  MapBuilder spec(arena);
  spec.add("targets", *targets);
  spec.add("from", manager_value(arena, flags.from, flags.from_operation, flags.from_subresource,
                                 flags.has_from_subresource->count() > 0));
  if (!flags.to.empty()) {
    spec.add("to", manager_value(arena, flags.to, flags.to_operation, flags.to_subresource,
                                 flags.has_to_subresource->count() > 0));
  }
  ListBuilder paths(arena);
  for (const std::string& path : flags.paths) paths.add(Value::string(arena, path));
  if (paths.count() > 0) spec.add("paths", paths.build());
  MapBuilder request(arena);
  request.add("apiVersion", Value::string(kGroupVersion));
  request.add("kind", Value::string(kind));
  request.add("metadata", Value::empty_map());
  request.add("spec", spec.build());
  Result<client::Resource> resource = session->client.find_kind(kGroupVersion, kind).wait();
  if (!resource) {
    if (resource.error().reason != Reason::NotFound) return fail_with(*session, resource.error());
    return fail(
        "the server does not serve ownership.holdfast.dev/v1 (feature gate OwnershipAPI); holdfast migrate works "
        "on any server");
  }
  Result<client::Object> answer =
      session->client.api(*resource)
          .create(request.build(), {.field_manager = "holdfast-transfer", .dry_run = flags.dry_run})
          .wait();
  if (!answer) return fail_with(*session, answer.error());
  return print_results(answer->root(), flags);
}

void add_common(CLI::App& command, TransferFlags& flags) {
  command.add_option("KIND/NAME", flags.arguments, "Objects: KIND NAME..., KIND/NAME..., or KIND for all of a kind");
  command.add_option("--from", flags.from, "Manager that owns the fields now")->required();
  command
      .add_option("--path", flags.paths,
                  "Only these fields and what is below them, such as .spec.replicas or "
                  ".spec.containers[*].image; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--from-operation", flags.from_operation, "Only what it owns by this operation: Apply or Update");
  flags.has_from_subresource =
      command.add_option("--from-subresource", flags.from_subresource,
                         "Only what it owns through this subresource; \"\" for the object itself");
  command.add_option("-l,--selector", flags.selector, "Label selector");
  command.add_flag("--all", flags.all, "All objects in the namespace");
  command.add_flag("-A,--all-namespaces", flags.all_namespaces, "Objects of all namespaces");
  command.add_option("--uid", flags.uid, "Fail unless the object has this UID");
  command.add_option("--resource-version", flags.resource_version, "Fail unless the object has this resourceVersion");
  command.add_flag("--dry-run", flags.dry_run, "Show what would happen; the server stores nothing");
  add_connection_flags(command, flags.connection);
}

}  // namespace

Command add_transfer(CLI::App& app) {
  auto flags = std::make_shared<TransferFlags>();
  CLI::App* c = app.add_subcommand("transfer", "Give fields of one manager to another, without changing values");
  add_common(*c, *flags);
  c->add_option("--to", flags->to, "Manager that owns them afterwards")->required();
  c->add_option("--to-operation", flags->to_operation,
                "Operation by which it owns them, Apply or Update; kept if not set");
  flags->has_to_subresource =
      c->add_option("--to-subresource", flags->to_subresource,
                    "Subresource through which it owns them; \"\" for the object itself; kept if not set");
  c->footer(
      "\nThe server changes each object in one write. It needs ownership.holdfast.dev, and the right to `transfer` "
      "the\n"
      "objects.\n\n"
      "Examples:\n"
      "  holdfast transfer deployment web --from git --to hpa --path .spec.replicas\n"
      "  holdfast transfer deployments -l app=web --from helm --to argocd-controller --to-operation Apply --dry-run\n"
      "  holdfast transfer --all -n shop --from helm --to argocd-controller");
  return [flags] { return run_transfer(*flags, "OwnershipTransfer"); };
}

Command add_release(CLI::App& app) {
  auto flags = std::make_shared<TransferFlags>();
  CLI::App* c = app.add_subcommand("release", "End a manager's ownership of fields, without changing values");
  add_common(*c, *flags);
  c->footer(
      "\nThe server changes each object in one write. It needs ownership.holdfast.dev, and the right to `transfer` "
      "the\n"
      "objects.\n\n"
      "Examples:\n"
      "  holdfast release deployment web --from git --path .spec.replicas\n"
      "  holdfast release configmaps --from old-pipeline --dry-run");
  return [flags] { return run_transfer(*flags, "OwnershipRelease"); };
}

}  // namespace holdfast::cli
