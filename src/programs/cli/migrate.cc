#include "cli/migrate.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>

#include "base/files.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "cli/terminal.h"
#include "codec/codec.h"

namespace holdfast::cli {

namespace {

using ownership::FieldSet;
using ownership::ManagerEntry;
using ownership::Operation;

// Manager names of client-side kubectl apply, which recorded its state in an annotation.
constexpr std::string_view kClientSideManagers[] = {"kubectl-client-side-apply", "kubectl"};

constexpr std::string_view kLastAppliedPointer =
    "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";

FieldSet last_applied_path(Arena& arena) {
  using ownership::PathElement;
  const PathElement path[] = {PathElement::field("metadata"), PathElement::field("annotations"),
                              PathElement::field(kLastApplied)};
  return single(arena, path);
}

std::vector<std::string> paths_of(FieldSet set) {
  std::vector<std::string> paths;
  set.for_each([&](ownership::Path path) { paths.push_back(to_string(path)); });
  return paths;
}

Value operation(Arena& arena, std::string_view op, std::string_view path, const Value* value) {
  MapBuilder map(arena);
  map.add("op", Value::string(op));
  map.add("path", Value::string(arena, path));
  if (value != nullptr) map.add("value", *value);
  return map.build();
}

}  // namespace

Result<Migration> plan_migration(Arena& arena, const Value& object, const MigrationRequest& request) {
  Migration plan;
  const Value* list = object.get("metadata", "managedFields");
  Result<ownership::Managed> managed =
      ownership::decode_managed(arena, list == nullptr ? Value() : *list, {.fields_v2 = true});
  if (!managed) return managed.take_error();
  const auto is_target = [&](const ManagerEntry& entry) {
    return entry.manager == request.to && entry.operation == Operation::Apply && entry.subresource.empty();
  };
  ManagerEntry target;
  target.manager = arena.copy(request.to);
  target.operation = Operation::Apply;
  FieldSet before, by_apply;  // Fields of the target; fields that any manager owns by Apply.
  for (const ManagerEntry& entry : *managed) {
    if (entry.operation == Operation::Apply) by_apply = union_of(arena, by_apply, entry.fields);
    if (!is_target(entry)) continue;
    target = entry;
    before = entry.fields;
  }
  for (const ManagerEntry& entry : *managed) {
    if (is_target(entry)) continue;
    const bool folded = entry.subresource.empty() &&
                        std::find(request.from.begin(), request.from.end(), entry.manager) != request.from.end();
    if (!folded) {
      plan.managers.push_back(entry);
      continue;
    }
    if (target.api_version.empty()) target.api_version = entry.api_version;
    if (target.api_version != entry.api_version) {
      return bad_request("entries of " + std::string(target.api_version) + " and " + std::string(entry.api_version) +
                         " cannot be merged; have " + std::string(entry.manager) + " write the object once in " +
                         std::string(target.api_version));
    }
    plan.sources.push_back(std::string(entry.manager) + " (" + std::string(name_of(entry.operation)) + ")");
    target.fields = union_of(arena, target.fields, entry.fields);
    if (entry.time && (!target.time || *target.time < *entry.time)) target.time = entry.time;
  }
  if (request.drop_last_applied) {
    const FieldSet annotation = last_applied_path(arena);
    target.fields = difference(arena, target.fields, annotation);
    const Value* annotations = object.get("metadata", "annotations");
    plan.drops_annotation = annotations != nullptr && annotations->has(kLastApplied);
    for (ManagerEntry& entry : plan.managers) {
      if (plan.drops_annotation) entry.fields = difference(arena, entry.fields, annotation);
    }
  }
  if (plan.sources.empty() && before.empty()) target.fields = FieldSet();
  if (!target.fields.empty()) plan.managers.push_back(target);
  std::erase_if(plan.managers, [](const ManagerEntry& entry) { return entry.fields.empty(); });
  const FieldSet moved = difference(arena, target.fields, before);
  plan.moved = paths_of(leaves(arena, moved));
  plan.stuck = paths_of(leaves(arena, difference(arena, moved, by_apply)));
  return plan;
}

std::string migration_patch(Arena& arena, const Value& object, const Migration& migration) {
  ListBuilder patch(arena);
  const Value version = Value::string(object.text_at("metadata", "resourceVersion"));
  patch.add(operation(arena, "test", "/metadata/resourceVersion", &version));
  const Value managed = encode_managed(arena, migration.managers);
  const Value entries = managed.is_null() ? Value::empty_list() : managed;
  patch.add(operation(arena, object.get("metadata", "managedFields") == nullptr ? "add" : "replace",
                      "/metadata/managedFields", &entries));
  if (migration.drops_annotation) {
    patch.add(operation(arena, "remove", kLastAppliedPointer, nullptr));
  }
  return codec::encode_json(patch.build());
}

namespace {

struct MigrateFlags {
  ConnectionFlags connection;
  std::vector<std::string> arguments, from;
  std::string to, selector, undo_file, undo;
  bool client_side = false, all_namespaces = false, all = false, dry_run = false, force = false;
};

class Migrator {
 public:
  Migrator(const MigrateFlags& flags, Session session) : flags_(flags), session_(std::move(session)) {
    request_.from = split_commas(flags.from);
    request_.to = flags.to;
    if (flags.client_side) {
      request_.drop_last_applied = true;
      if (request_.from.empty()) {
        for (const std::string_view name : kClientSideManagers) request_.from.emplace_back(name);
      }
      if (request_.to.empty()) request_.to = "kubectl";
    }
  }

  int run() {
    if (request_.from.empty() || request_.to.empty()) {
      return fail("migrate: specify --from MANAGER and --to MANAGER, or use --client-side");
    }
    Result<std::vector<Target>> targets = find();
    if (!targets) return fail_with(session_, targets.error());
    for (const Target& target : *targets) {
      Result<Unit> done = migrate_target(target);
      if (!done) {
        status_ = fail_with(session_, done.error());
        break;
      }
    }
    progress_.clear();
    print(std::to_string(changed_), " of ", std::to_string(seen_), " objects ",
          flags_.dry_run ? "would change (dry run)" : "changed", "\n");
    return finish_undo();
  }

 private:
  // Without kinds, everything in the namespace that can be listed and patched.
  Result<std::vector<Target>> find() const {
    if (!flags_.arguments.empty()) return find_targets(session_, flags_.arguments);
    if (!flags_.all) return bad_request("specify objects (KIND NAME), or use --all for everything in the namespace");
    Result<std::vector<client::Resource>> resources = resources_with(session_, {"list", "patch"});
    if (!resources) return resources.take_error();
    std::vector<Target> targets;
    for (const client::Resource& resource : *resources) {
      if (resource.namespaced) targets.push_back({resource, ""});
    }
    return targets;
  }

  Result<Unit> migrate_target(const Target& target) {
    const std::string space = flags_.all_namespaces ? "" : space_for(session_, target.resource);
    return each_object(session_, target, space, flags_.selector,
                       [&](const Value& object) { return migrate_object(target.resource, object); });
  }

  Result<Unit> migrate_object(const client::Resource& resource, const Value& object) {
    const std::string name(object.text_at("metadata", "name"));
    const std::string shown = display_name(resource, name);
    ++seen_;
    progress_.show(changed_, seen_, shown);
    Arena arena;
    Result<Migration> plan = plan_migration(arena, object, request_);
    if (!plan) {
      progress_.clear();
      print_error(shown, ": ", plan.error().message, "\n");
      status_ = 1;
      return Unit{};
    }
    if (plan->empty()) return Unit{};
    const client::Api<> api = session_.client.api(resource, object.text_at("metadata", "namespace"));
    client::WriteOptions options{.field_manager = "holdfast-migrate", .dry_run = flags_.dry_run};
    // In a dry run the server does everything except storing the result.
    Result<client::Object> written =
        api.patch(name, client::Patch::Json, migration_patch(arena, object, *plan), options).wait();
    if (!written) return written.take_error();
    ++changed_;
    progress_.clear();
    print(shown, ": ", std::to_string(plan->moved.size()), " fields of ", join(plan->sources, ", "), " now owned by ",
          request_.to, " (Apply)\n");
    for (const std::string& path : plan->moved) {
      const bool stuck = std::find(plan->stuck.begin(), plan->stuck.end(), path) != plan->stuck.end();
      print("  ", path, stuck ? "  (stuck: no apply could remove it)" : "", "\n");
    }
    if (plan->drops_annotation) print("  the annotation ", kLastApplied, " is removed\n");
    if (!flags_.dry_run) remember(resource, object, *written);
    return Unit{};
  }

  // Records the previous state and the new version: undo applies only to that version.
  void remember(const client::Resource& resource, const Value& before, const client::Object& after) {
    Arena arena;
    MapBuilder entry(arena);
    entry.add("apiVersion", Value::string(arena, resource.api_version()));
    entry.add("kind", Value::string(resource.kind));
    entry.add("namespace", Value::string(before.text_at("metadata", "namespace")));
    entry.add("name", Value::string(before.text_at("metadata", "name")));
    entry.add("uid", Value::string(before.text_at("metadata", "uid")));
    entry.add("resourceVersion", Value::string(after.resource_version()));
    if (const Value* managed = before.get("metadata", "managedFields")) entry.add("managedFields", *managed);
    const std::string_view annotation = before.text_at("metadata", "annotations", kLastApplied);
    if (!annotation.empty()) entry.add("lastApplied", Value::string(annotation));
    undo_ += codec::encode_json(entry.build()) + "\n";
  }

  int finish_undo() {
    if (undo_.empty()) return status_;
    const std::string path = flags_.undo_file.empty() ? "holdfast-migrate-undo.jsonl" : flags_.undo_file;
    Result<Unit> written = replace_file(path, undo_, Readers::Owner);
    if (!written) return fail(written.error().message.c_str());
    print("To undo: holdfast migrate --undo ", path, "\n");
    return status_;
  }

  const MigrateFlags& flags_;
  Session session_;
  MigrationRequest request_;
  Progress progress_{"Migrated"};
  size_t seen_ = 0, changed_ = 0;
  std::string undo_;
  int status_ = 0;
};

Result<Unit> take_back(const Session& session, const Value& entry, const MigrateFlags& flags) {
  Result<client::Resource> resource =
      session.client.find_kind(std::string(entry.text_at("apiVersion")), std::string(entry.text_at("kind"))).wait();
  if (!resource) return resource.take_error();
  const client::Api<> api = session.client.api(*resource, entry.text_at("namespace"));
  const std::string name(entry.text_at("name"));
  Result<client::Object> live = api.get(name).wait();
  if (!live) return live.take_error();
  if (live->uid() != entry.text_at("uid"))
    return bad_request("the object has been replaced by another of the same name");
  if (live->resource_version() != entry.text_at("resourceVersion") && !flags.force) {
    return bad_request("the object has been written since; --force restores the previous ownership anyway");
  }
  Arena arena;
  client::WriteOptions options{.field_manager = "holdfast-migrate", .dry_run = flags.dry_run};
  const auto guarded = [&] {
    ListBuilder patch(arena);
    const Value version = Value::string(arena, live->resource_version());
    patch.add(operation(arena, "test", "/metadata/resourceVersion", &version));
    return patch;
  };
  if (const Value* annotation = entry.find("lastApplied"); annotation != nullptr && !flags.dry_run) {
    // First, because this write temporarily makes us the owner.
    ListBuilder patch = guarded();
    if (live->root().get("metadata", "annotations") == nullptr) {
      const Value none = Value::empty_map();
      patch.add(operation(arena, "add", "/metadata/annotations", &none));
    }
    patch.add(operation(arena, "add", kLastAppliedPointer, annotation));
    Result<client::Object> annotated =
        api.patch(name, client::Patch::Json, codec::encode_json(patch.build()), options).wait();
    if (!annotated) return annotated.take_error();
    live = std::move(annotated);
  }
  ListBuilder patch = guarded();
  const Value* managed = entry.find("managedFields");
  const Value entries = managed == nullptr ? Value::empty_list() : *managed;
  patch.add(operation(arena, live->root().get("metadata", "managedFields") == nullptr ? "add" : "replace",
                      "/metadata/managedFields", &entries));
  Result<client::Object> written =
      api.patch(name, client::Patch::Json, codec::encode_json(patch.build()), options).wait();
  if (!written) return written.take_error();
  print(display_name(*resource, name), ": as it was", flags.dry_run ? " (dry run)" : "", "\n");
  return Unit{};
}

int undo(const MigrateFlags& flags) {
  std::ifstream file(flags.undo);
  if (!file) return fail((flags.undo + ": cannot be read").c_str());
  Result<Session> session = open_session(flags.connection);
  if (!session) return fail(session.error().message.c_str());
  int status = 0;
  size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    Result<codec::Document> entry = codec::parse_json(line);
    const std::string where = flags.undo + ":" + std::to_string(number);
    if (!entry) return fail((where + ": " + entry.error().message).c_str());
    Result<Unit> done = take_back(*session, entry->root(), flags);
    if (done) continue;
    print_error(where, ": ", entry->root().text_at("kind"), " ", entry->root().text_at("name"), ": ",
                done.error().message, "\n");
    status = 1;
  }
  return status;
}

}  // namespace

Command add_migrate(CLI::App& app) {
  auto flags = std::make_shared<MigrateFlags>();
  CLI::App* c = app.add_subcommand("migrate", "Move the ownership of fields from one manager to another");
  c->add_option("KIND/NAME", flags->arguments, "Objects: KIND NAME..., KIND/NAME..., or KIND for all of a kind");
  c->add_option("--from", flags->from, "Managers whose Apply and Update entries are merged, comma separated")
      ->allow_extra_args(false);
  c->add_option("--to", flags->to, "Manager that owns their fields afterwards, in an Apply entry");
  c->add_flag("--client-side", flags->client_side,
              "From kubectl's client-side apply to server-side: --from kubectl-client-side-apply,kubectl --to kubectl, "
              "without the last-applied annotation");
  c->add_option("-l,--selector", flags->selector, "Label selector");
  c->add_flag("--all", flags->all, "All objects in the namespace");
  c->add_flag("-A,--all-namespaces", flags->all_namespaces, "Objects of all namespaces");
  c->add_flag("--dry-run", flags->dry_run,
              "Show what would happen; the server checks the changes but does not store them");
  c->add_option("--undo-file", flags->undo_file, "File to write for --undo")
      ->default_str("holdfast-migrate-undo.jsonl");
  c->add_option("--undo", flags->undo, "Undo the migration that wrote this file");
  c->add_flag("--force", flags->force, "With --undo: also restore objects that have been written since");
  add_connection_flags(*c, flags->connection);
  c->footer(
      "\nValues do not change, only their owners; entries of subresources are kept. A field is stuck if no apply\n"
      "could have removed it, because only an Update entry owned it.\n\n"
      "Examples:\n"
      "  holdfast migrate deployment web --client-side --dry-run\n"
      "  holdfast migrate --all -n shop --from helm --to argocd-controller\n"
      "  holdfast migrate --undo holdfast-migrate-undo.jsonl");
  return [flags] {
    if (!flags->undo.empty()) return undo(*flags);
    Result<Session> session = open_session(flags->connection);
    if (!session) return fail(session.error().message.c_str());
    return Migrator(*flags, std::move(*session)).run();
  };
}

}  // namespace holdfast::cli
