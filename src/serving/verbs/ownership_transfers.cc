#include "verbs/ownership_transfers.h"

#include <algorithm>
#include <set>

#include "base/api_error.h"
#include "base/api_version.h"
#include "ownership/deep.h"
#include "ownership/ownership.h"
#include "ownership/path_pattern.h"
#include "render/status.h"
#include "request/selectors.h"
#include "write/write.h"

namespace holdfast::verbs {
namespace {

using ownership::FieldSet;
using ownership::ManagerEntry;
using ownership::Operation;

constexpr std::string_view kGroup = "ownership.holdfast.dev";
constexpr std::string_view kOperations[] = {"Apply", "Update"};

// Objects are written one after the other, under the deadline of one request.
constexpr size_t kMaxObjects = 1000;
constexpr size_t kMaxTargets = 100, kMaxPaths = 100;
// Paths shown per object.
constexpr size_t kMaxShownPaths = 1000;

// --- What is asked for ---

// What moves, and to whom.
struct Move {
  std::string_view from;
  std::string_view from_operation;                   // Empty for both.
  std::optional<std::string_view> from_subresource;  // nullopt for the object itself and all of its subresources.
  std::vector<ownership::PathPattern> paths;         // Empty for all fields.
  bool releases = false;                             // Nobody gets the fields; the other members are unused.
  std::string_view to;
  std::string_view to_operation;                   // Empty to keep that of each entry.
  std::optional<std::string_view> to_subresource;  // nullopt to keep that of each entry.

  bool takes_from(const ManagerEntry& entry) const {
    return entry.manager == from && (from_operation.empty() || from_operation == name_of(entry.operation)) &&
           (!from_subresource || *from_subresource == entry.subresource);
  }
};

std::optional<std::string_view> optional_text(const Value& map, std::string_view key) {
  const Value* found = map.find(key);
  if (found == nullptr || !found->is_string()) return std::nullopt;
  return found->as_string();
}

const Value& member(const Value& map, std::string_view key) {
  static const Value kNone = Value::empty_map();
  const Value* found = map.find(key);
  return found == nullptr || !found->is_map() ? kNone : *found;
}

Result<Move> read_move(const types::Resource& resource, const Value& spec) {
  Move move;
  const Value& from = member(spec, "from");
  const Value& to = member(spec, "to");
  move.from = from.text_at("manager");
  move.from_operation = from.text_at("operation");
  move.from_subresource = optional_text(from, "subresource");
  move.releases = resource.plural == "ownershipreleases";
  move.to = to.text_at("manager");
  move.to_operation = to.text_at("operation");
  move.to_subresource = optional_text(to, "subresource");
  for (const Value& path : spec.items_at("paths")) {
    if (!path.is_string()) continue;
    Result<ownership::PathPattern> parsed = ownership::PathPattern::parse(path.as_string());
    if (!parsed) return parsed.take_error();
    move.paths.push_back(std::move(*parsed));
  }
  return move;
}

void check_operation(const Value& manager, const std::string& at, std::vector<Cause>& causes) {
  const std::string_view operation = manager.text_at("operation");
  if (operation.empty() || operation == kOperations[0] || operation == kOperations[1]) return;
  causes.push_back(field_not_supported(at + ".operation", operation, kOperations));
}

void check_target(const Value& target, const std::string& at, std::vector<Cause>& causes) {
  const bool named = !target.text_at("name").empty();
  const std::string_view selector = target.text_at("selector");
  if (target.text_at("kind").empty()) {
    if (target.text_at("namespace").empty()) {
      causes.push_back(field_required(at + ".kind", "unless everything in a namespace is meant"));
    }
    if (named) causes.push_back(field_forbidden(at + ".name", "may not be set without a kind"));
  } else if (target.text_at("apiVersion").empty()) {
    causes.push_back(field_required(at + ".apiVersion"));
  }
  if (named && !selector.empty()) {
    causes.push_back(field_forbidden(at + ".selector", "may not be set together with a name"));
  }
  if (Result<std::vector<cache::LabelRequirement>> parsed = request::parse_label_selector(selector); !parsed) {
    causes.push_back(field_invalid_text(at + ".selector", selector, parsed.error().message));
  }
  if (!named && target.has("preconditions")) {
    causes.push_back(field_forbidden(at + ".preconditions", "may only be set for a named object"));
  }
}

// --- Entries ---

// The members of an object's managedFields afterwards, and what has moved.
struct Moved {
  ownership::Managed managed;
  FieldSet fields;
};

Result<Moved> moved(Arena& arena, const ownership::Managed& before, const Move& move, int64_t now) {
  Moved result;
  std::vector<ManagerEntry> arriving;
  for (const ManagerEntry& entry : before) {
    FieldSet going;
    if (move.takes_from(entry)) {
      going = move.paths.empty() ? entry.fields
                                 : selected(arena, entry.fields, move.paths, ownership::InsideAtomic::Nothing);
    }
    ManagerEntry target = entry;
    if (!move.releases) {
      target.manager = move.to;
      if (!move.to_operation.empty()) {
        target.operation = move.to_operation == kOperations[0] ? Operation::Apply : Operation::Update;
      }
      if (move.to_subresource) target.subresource = *move.to_subresource;
    }
    if (going.empty() || (!move.releases && same_manager(entry, target))) {
      result.managed.push_back(entry);
      continue;
    }
    result.fields = union_of(arena, result.fields, going);
    ManagerEntry rest = entry;
    rest.fields = difference(arena, entry.fields, going);
    rest.time = now;
    if (!rest.fields.empty()) result.managed.push_back(rest);
    if (move.releases) continue;
    target.fields = going;
    arriving.push_back(target);
  }
  for (ManagerEntry& entry : arriving) {
    entry.time = now;
    const auto known = std::find_if(result.managed.begin(), result.managed.end(),
                                    [&](const ManagerEntry& other) { return same_manager(entry, other); });
    if (known == result.managed.end()) {
      result.managed.push_back(entry);
      continue;
    }
    if (known->api_version != entry.api_version) {
      return bad_request("the fields of " + std::string(move.from) + " are recorded in " +
                         std::string(entry.api_version) + ", and those of " + std::string(entry.manager) + " in " +
                         std::string(known->api_version) + "; have one of them write the object in the other version");
    }
    known->fields = union_of(arena, known->fields, entry.fields);
    known->time = now;
  }
  sort_managed(result.managed);
  return result;
}

// --- Objects ---

// An object, or a reason why the objects of a kind are left alone.
struct Chosen {
  const resource::Served* served = nullptr;
  std::string ns, name;
  std::string_view uid, resource_version;  // Preconditions; may be empty.
  std::optional<Error> refused;
};

auth::Attributes attributes_of(const call::Call& call, std::string_view verb, const resource::Served& served,
                               std::string_view ns, std::string_view name) {
  return {call.user.get(),
          verb,
          {.group = served.resource->group,
           .version = served.resource->version,
           .resource = served.resource->plural,
           .ns = served.resource->namespaced ? ns : std::string_view(),
           .name = name}};
}

Result<const resource::Served*> find_served(const call::Call& call, const Value& target) {
  const auto [group, version] = split_api_version(target.text_at("apiVersion"));
  const resource::Served* served = call.registry->find_kind(group, version, target.text_at("kind"));
  if (served == nullptr || served->storage == nullptr || !served->has_verb("update")) {
    return bad_request("this server stores no objects of kind " + std::string(target.text_at("kind")) +
                       " in version \"" + std::string(target.text_at("apiVersion")) + "\"");
  }
  return served;
}

// Whether the write would change something. An entry that cannot be decoded counts: the write says so.
bool is_affected(const cache::Entry& entry, const Move& move) {
  Arena arena;
  Result<ownership::Managed> managed = ownership::decode_managed(arena, entry.ownership(), {.fields_v2 = true});
  if (!managed) return false;
  const Result<Moved> after = moved(arena, *managed, move, 0);
  return !after || !after->fields.empty();
}

// Adds the objects of a kind that have fields to move.
Task<Result<Unit>> select(call::Call& call, const resource::Served& served, const Value& target, const Move& move,
                          std::vector<Chosen>& chosen) {
  const std::string_view ns = served.resource->namespaced ? target.text_at("namespace") : std::string_view();
  Result<std::vector<cache::LabelRequirement>> labels = request::parse_label_selector(target.text_at("selector"));
  if (!labels) co_return labels.take_error();
  Result<cache::Snapshot> snapshot = co_await served.storage->cache().consistent(call.executor());
  if (!snapshot) co_return snapshot.take_error();
  constexpr size_t kPage = 500;
  cache::ListRequest request{.scope = served.storage->scope(ns), .selector = {std::move(*labels), {}}, .limit = kPage};
  while (true) {
    const cache::ListPage page = snapshot->list(request);
    for (const cache::EntryRef& entry : page.entries) {
      if (!is_affected(*entry, move)) continue;
      if (chosen.size() == kMaxObjects) {
        co_return bad_request("more than " + std::to_string(kMaxObjects) +
                              " objects are selected; select fewer of them");
      }
      const std::string_view key = entry->key();
      const size_t slash = served.resource->namespaced ? key.find('/') : std::string_view::npos;
      Chosen one{.served = &served};
      if (slash != std::string_view::npos) one.ns = key.substr(0, slash);
      one.name = slash == std::string_view::npos ? key : key.substr(slash + 1);
      chosen.push_back(std::move(one));
    }
    if (!page.more) co_return Unit{};
    request.from = page.next;
  }
}

// Everything in a namespace that the user may list.
Task<Result<Unit>> select_all_kinds(call::Call& call, const Parts& parts, const Value& target, const Move& move,
                                    std::vector<Chosen>& chosen) {
  const std::string_view ns = target.text_at("namespace");
  std::set<const resource::Storage*> seen;  // Versions share their storage.
  for (const resource::Served& served : call.registry->all()) {
    if (!served.resource->namespaced || served.storage == nullptr || !served.enabled || !served.has_verb("update")) {
      continue;
    }
    if (!seen.insert(served.storage).second) continue;
    if (!parts.authorizers.authorize(attributes_of(call, "list", served, ns, "")).allowed()) continue;
    const size_t before = chosen.size();
    Result<Unit> added = co_await select(call, served, target, move, chosen);
    if (!added) co_return added;
    if (chosen.size() == before) continue;
    if (Result<Unit> allowed = parts.authorizers.check(attributes_of(call, "transfer", served, ns, "")); !allowed) {
      chosen.resize(before);
      chosen.push_back(Chosen{.served = &served, .ns = std::string(ns), .refused = allowed.take_error()});
    }
  }
  co_return Unit{};
}

Task<Result<Unit>> choose(call::Call& call, const Parts& parts, const Value& target, const Move& move,
                          std::vector<Chosen>& chosen) {
  if (target.text_at("kind").empty()) co_return co_await select_all_kinds(call, parts, target, move, chosen);
  Result<const resource::Served*> found = find_served(call, target);
  if (!found) co_return found.take_error();
  const resource::Served& served = **found;
  const std::string_view ns = target.text_at("namespace"), name = target.text_at("name");
  if (!name.empty() && served.resource->namespaced && ns.empty()) {
    co_return bad_request("the namespace of " + std::string(served.resource->kind) + " \"" + std::string(name) +
                          "\" is missing");
  }
  for (const std::string_view verb : {std::string_view("transfer"), std::string_view(name.empty() ? "list" : "get")}) {
    Result<Unit> allowed = parts.authorizers.check(attributes_of(call, verb, served, ns, name));
    if (!allowed) co_return allowed;
  }
  if (name.empty()) co_return co_await select(call, served, target, move, chosen);
  chosen.push_back(Chosen{.served = &served,
                          .ns = std::string(served.resource->namespaced ? ns : std::string_view()),
                          .name = std::string(name),
                          .uid = target.text_at("preconditions", "uid"),
                          .resource_version = target.text_at("preconditions", "resourceVersion")});
  co_return Unit{};
}

// --- Writing ---

// What became of one object.
struct Done {
  Value object;  // Null if it was refused before it was read.
  std::string outcome;
  FieldSet fields;
  Revision revision;
};

Task<Result<write::NextObject>> next_of(call::Call& call, write::Writer& writer, const request::WriteOptions& options,
                                        const Chosen& chosen, const Move& move, Done& done,
                                        const write::LiveObject* live) {
  if (!live->managed_problem.empty()) {
    co_return untyped("failed to decode managed fields: " + live->managed_problem);
  }
  const std::string_view revision = chosen.resource_version;
  if (!revision.empty() && revision != std::to_string(live->revision.value)) {
    co_return conflict(call.group_resource(), chosen.name,
                       "Precondition failed: ResourceVersion in precondition: " + std::string(revision) +
                           ", ResourceVersion in object meta: " + std::to_string(live->revision.value));
  }
  Result<Moved> after = internal_error("the object is nested too deeply");
  ownership::run_with_stack_for({&live->object},
                                [&] { after = moved(call.arena, live->managed, move, call.view.now.seconds); });
  if (!after) co_return after.take_error();
  done.fields = after->fields;
  if (after->fields.empty()) co_return write::NextObject{live->object, live->managed};
  co_return co_await writer.mutate(call, write::AdmissionOperation::Update, options,
                                   write::NextObject{live->object, std::move(after->managed)}, live);
}

Value target_value(Arena& arena, const Chosen& chosen) {
  const types::Resource& resource = *chosen.served->resource;
  MapBuilder target(arena);
  target.add("apiVersion", Value::string(arena, api_version_of(resource.group, resource.version)));
  target.add("kind", Value::string(arena, resource.kind));
  if (!chosen.ns.empty()) target.add("namespace", Value::string(arena, chosen.ns));
  if (!chosen.name.empty()) target.add("name", Value::string(arena, chosen.name));
  return target.build();
}

Value refused(Arena& arena, const Chosen& chosen, const Error& error) {
  MapBuilder result(arena);
  result.add("target", target_value(arena, chosen));
  result.add("outcome", Value::string("Refused"));
  result.add("error", render::status_of(arena, error));
  return result.build();
}

Task<Result<Value>> write_one(call::Call& call, const Parts& parts, const Chosen& chosen, const Move& move,
                              bool dry_run) {
  if (chosen.refused) co_return *chosen.refused;
  const types::Resource& resource = *chosen.served->resource;
  request::Target target;
  target.is_resource = true;
  target.verb = request::Verb::Update;
  target.group = resource.group;
  target.version = resource.version;
  target.resource = resource.plural;
  target.ns = chosen.ns;
  target.in_namespace = !chosen.ns.empty();
  target.name = chosen.name;
  call::Call one(call, call.user, *chosen.served, target);
  write::WriteRequest request;
  request.options.field_manager = move.releases ? move.from : move.to;
  request.options.dry_run = dry_run;
  request.keeps_ownership_if_too_large = true;
  if (!chosen.uid.empty()) request.uid = std::string(chosen.uid);
  const request::WriteOptions options = request.options;
  Done done;
  Result<write::Written> written = co_await parts.writer.write_object(
      one, std::move(request),
      [&](const write::LiveObject* live) { return next_of(one, parts.writer, options, chosen, move, done, live); });
  // A large object is handled off the loop, to which the call itself still belongs.
  if (one.left_loop() && !call.left_loop()) co_await return_to_loop(call);
  for (const std::string& warning : one.warnings.texts()) call.warnings.add(warning);
  if (!written) co_return written.take_error();
  Arena& arena = call.arena;
  MapBuilder result(arena);
  result.add("target", target_value(arena, chosen));
  result.add("outcome", Value::string(done.fields.empty() ? "Unchanged" : "Changed"));
  if (const std::string_view uid = written->stored.text_at("metadata", "uid"); !uid.empty()) {
    result.add("uid", Value::string(arena, uid));
  }
  result.add("resourceVersion", Value::string(arena, written->stored.text_at("metadata", "resourceVersion")));
  ListBuilder paths(arena);
  int64_t omitted = 0;
  leaves(one.arena, done.fields).for_each([&](ownership::Path path) {
    if (paths.count() < kMaxShownPaths) {
      paths.add(Value::string(arena, to_string(path, ownership::ShownNumbers::AsRead)));
    } else {
      ++omitted;
    }
  });
  if (paths.count() > 0) result.add("paths", paths.build());
  if (omitted > 0) result.add("omitted", Value::integer(std::min<int64_t>(omitted, INT32_MAX)));
  co_return result.build();
}

}  // namespace

bool is_ownership_transfer(const types::Resource& resource) {
  return resource.group == kGroup &&
         (resource.plural == "ownershiptransfers" || resource.plural == "ownershipreleases");
}

Result<Unit> validate_ownership_transfer(const types::Resource& resource, const Value& spec) {
  std::vector<Cause> causes;
  const std::span<const Value> targets = spec.items_at("targets"), paths = spec.items_at("paths");
  const auto check_count = [&](std::string field, size_t count, size_t most) {
    if (count <= most) return;
    causes.push_back({"FieldValueTooMany",
                      "Too many: " + std::to_string(count) + ": must have at most " + std::to_string(most) + " items",
                      std::move(field)});
  };
  check_count("spec.targets", targets.size(), kMaxTargets);
  check_count("spec.paths", paths.size(), kMaxPaths);
  if (targets.empty()) causes.push_back(field_required("spec.targets"));
  for (size_t i = 0; i < std::min(targets.size(), kMaxTargets); ++i) {
    check_target(targets[i], "spec.targets[" + std::to_string(i) + "]", causes);
  }
  if (spec.text_at("from", "manager").empty()) causes.push_back(field_required("spec.from.manager"));
  check_operation(member(spec, "from"), "spec.from", causes);
  if (resource.plural == "ownershiptransfers") {
    if (spec.text_at("to", "manager").empty()) causes.push_back(field_required("spec.to.manager"));
    check_operation(member(spec, "to"), "spec.to", causes);
  }
  for (size_t i = 0; i < std::min(paths.size(), kMaxPaths); ++i) {
    const std::string_view text = paths[i].is_string() ? paths[i].as_string() : std::string_view();
    if (Result<ownership::PathPattern> parsed = ownership::PathPattern::parse(text); !parsed) {
      causes.push_back(field_invalid_text("spec.paths[" + std::to_string(i) + "]", text, parsed.error().message));
    }
  }
  if (causes.empty()) return Unit{};
  return invalid({kGroup, resource.kind}, "", std::move(causes));
}

Task<Result<Value>> transfer_ownership(call::Call& call, const Parts& parts, const Value& spec, bool dry_run) {
  Arena& arena = call.arena;
  Result<Move> move = read_move(*call.served->resource, spec);
  if (!move) co_return move.take_error();
  std::vector<Chosen> chosen;
  for (const Value& target : spec.items_at("targets")) {
    Result<Unit> added = co_await choose(call, parts, target, *move, chosen);
    if (!added) co_return added.take_error();
  }
  const std::span<const Value> targets = spec.items_at("targets");
  const bool single = targets.size() == 1 && !targets[0].text_at("name").empty();
  ListBuilder results(arena);
  for (const Chosen& one : chosen) {
    Result<Value> result = co_await write_one(call, parts, one, *move, dry_run);
    if (!result && single) co_return result.take_error();
    results.add(result ? *result : refused(arena, one, result.error()));
  }
  MapBuilder status(arena);
  if (results.count() > 0) status.add("results", results.build());
  co_return status.build();
}

}  // namespace holdfast::verbs
