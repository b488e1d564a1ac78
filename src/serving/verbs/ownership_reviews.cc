#include "verbs/ownership_reviews.h"

#include <algorithm>
#include <set>

#include "base/api_error.h"
#include "base/api_version.h"
#include "base/call_limits.h"
#include "base/percent.h"
#include "codec/codec.h"
#include "net/local.h"
#include "own_calls/requests.h"
#include "ownership/field_changes.h"
#include "ownership/ownership.h"
#include "render/status.h"

namespace holdfast::verbs {
namespace {

using ownership::FieldSet;
using ownership::ManagerEntry;
using ownership::Path;
using ownership::PathElement;

// As many as a large release has; each is a request of its own, under the deadline of the whole review.
constexpr size_t kMaxDocuments = 500;
// Entries of each list in a result.
constexpr size_t kMaxEntries = 1000;
// The object may be written between reading it and the dry run.
constexpr int kMaxReads = 10;

constexpr std::string_view kOperations[] = {"Apply", "Create", "Update", "Patch"};
constexpr std::string_view kPatchTypes[] = {"JSON", "Merge", "StrategicMerge"};
constexpr std::string_view kValidations[] = {"Ignore", "Warn", "Strict"};

bool is_one_of(std::string_view text, std::span<const std::string_view> known) {
  return std::find(known.begin(), known.end(), text) != known.end();
}

std::string_view operation_of(const Value& spec) {
  const std::string_view operation = spec.text_at("operation");
  return operation.empty() ? kOperations[0] : operation;
}

void check_document(const Value& document, std::string_view operation, const std::string& at,
                    std::vector<Cause>& causes) {
  if (operation != "Patch") {
    if (!document.has("object")) causes.push_back(field_required(at + ".object"));
    for (const std::string_view key : {"target", "patchType", "patch"}) {
      if (document.has(key)) {
        causes.push_back(field_forbidden(at + "." + std::string(key), "may only be set for the operation Patch"));
      }
    }
    if (operation == "Create" && !document.text_at("subresource").empty()) {
      causes.push_back(field_forbidden(at + ".subresource", "may not be set for the operation Create"));
    }
    return;
  }
  if (document.has("object")) {
    causes.push_back(field_forbidden(at + ".object", "may not be set for the operation Patch"));
  }
  if (document.text_at("target", "kind").empty()) causes.push_back(field_required(at + ".target.kind"));
  if (document.text_at("target", "name").empty()) causes.push_back(field_required(at + ".target.name"));
  if (const std::string_view type = document.text_at("patchType"); !is_one_of(type, kPatchTypes)) {
    causes.push_back(field_not_supported(at + ".patchType", type, kPatchTypes));
  }
  if (document.text_at("patch").empty()) causes.push_back(field_required(at + ".patch"));
}

// --- One write ---

// What a document asks for.
struct Write {
  std::string_view operation, manager, validation, subresource;
  bool force = false;
  std::string_view patch_type;
  std::string body;
  Value document;  // The object or the configuration; null for a patch.
  std::string_view api_version, kind, ns, name;
  const resource::Served* served = nullptr;
};

Result<Write> read_write(call::Call& call, const Value& spec, const Value& document) {
  Write write;
  write.operation = operation_of(spec);
  write.manager = spec.text_at("fieldManager");
  write.validation = spec.text_at("fieldValidation");
  write.subresource = document.text_at("subresource");
  const Value* force = spec.find("force");
  write.force = force != nullptr && force->is_bool() && force->as_bool();
  if (write.operation == "Patch") {
    write.patch_type = document.text_at("patchType");
    write.body = document.text_at("patch");
    write.api_version = document.text_at("target", "apiVersion");
    write.kind = document.text_at("target", "kind");
    write.ns = document.text_at("target", "namespace");
    write.name = document.text_at("target", "name");
  } else {
    write.document = *document.find("object");
    if (write.document.is_raw()) {
      Result<Value> tree = codec::decode_json(call.arena, write.document.raw_json());
      if (!tree) return bad_request("the document cannot be read: " + tree.error().message);
      write.document = *tree;
    }
    if (!write.document.is_map()) return bad_request("the document is not an object");
    write.body = codec::encode_json(write.document);
    write.api_version = write.document.text_at("apiVersion");
    write.kind = write.document.text_at("kind");
    write.ns = write.document.text_at("metadata", "namespace");
    write.name = write.document.text_at("metadata", "name");
  }
  const auto [group, version] = split_api_version(write.api_version);
  write.served = call.registry->find_kind(group, version, write.kind);
  if (write.served == nullptr || write.served->storage == nullptr) {
    return bad_request("this server stores no objects of kind " + std::string(write.kind) + " in version \"" +
                       std::string(write.api_version) + "\"");
  }
  if (!write.served->resource->namespaced) write.ns = {};
  if (write.served->resource->namespaced && write.ns.empty()) return bad_request("the document has no namespace");
  if (write.name.empty() && write.operation != "Create") return bad_request("the document has no name");
  if (!write.subresource.empty() &&
      (write.served->subresource(write.subresource) == nullptr || !kinds::endpoint_of(write.subresource))) {
    return bad_request("writes of the subresource \"" + std::string(write.subresource) + "\" of " +
                       to_string(GroupResource{group, write.served->resource->plural}) + " cannot be reviewed");
  }
  return write;
}

std::string_view verb_of(const Write& write) {
  if (write.operation == "Create") return "create";
  return write.operation == "Update" ? "update" : "patch";
}

// The same rights as for the dry run; and nothing of an existing object is shown to users who may not get it.
Result<Unit> authorize(const call::Call& call, const Parts& parts, const Write& write) {
  const types::Resource& resource = *write.served->resource;
  auth::ResourceAttributes on{.group = resource.group,
                              .version = resource.version,
                              .resource = resource.plural,
                              .subresource = write.subresource,
                              .ns = write.ns,
                              .name = write.operation == "Create" ? std::string_view() : write.name};
  Result<Unit> allowed = parts.authorizers.check(auth::Attributes(call.user.get(), verb_of(write), on));
  if (!allowed || write.operation == "Create") return allowed;
  on.subresource = {};
  return parts.authorizers.check(auth::Attributes(call.user.get(), "get", on));
}

void add_query(std::string& target, std::string_view name, std::string_view value) {
  target += target.find('?') == std::string::npos ? '?' : '&';
  target.append(name).append("=");
  append_percent_encoded(target, value);
}

Result<net::ClientRequest> dry_run_of(const Write& write) {
  own_calls::Target on = write.operation == "Create" ? own_calls::collection(*write.served->resource, write.ns)
                                                     : own_calls::object(*write.served->resource, write.ns, write.name);
  on.subresource = write.subresource;
  Result<std::string> path = own_calls::path_of(on);
  if (!path) return path.take_error();
  net::ClientRequest request;
  request.target = std::move(*path);
  add_query(request.target, "dryRun", "All");
  add_query(request.target, "fieldManager", write.manager);
  add_query(request.target, "fieldValidation", write.validation.empty() ? kValidations[1] : write.validation);
  std::string_view content_type = "application/json";
  request.method = "PATCH";
  if (write.operation == "Apply") {
    if (write.force) add_query(request.target, "force", "true");
    content_type = "application/apply-patch+yaml";
  } else if (write.operation == "Patch") {
    content_type = write.patch_type == "JSON"    ? "application/json-patch+json"
                   : write.patch_type == "Merge" ? "application/merge-patch+json"
                                                 : "application/strategic-merge-patch+json";
  } else {
    request.method = write.operation == "Create" ? "POST" : "PUT";
  }
  request.headers.emplace_back("content-type", content_type);
  request.body = write.body;
  return request;
}

// An answer of the API, decoded. The texts of the tree are in the arena.
struct Answered {
  int code = 0;
  Value body;
  std::vector<std::string> warnings;
};

Task<Result<Answered>> ask(call::Call& call, const Parts& parts, net::ClientRequest request) {
  co_await return_to_loop(call);
  request.headers.emplace_back("accept", "application/json");
  request.timeout = net::Millis(limits::kRequestSeconds * 1000);
  request.cancellation = call.outgoing();
  Result<net::ClientResponse> response = co_await net::call_handler_within(
      call.request.loop(),
      [&parts, user = call.user](net::Request& asked, net::Response& answer) { return parts.own(asked, answer, user); },
      std::move(request), limits::kOwnAnswerBytes);
  if (!response) co_return response.take_error();
  // Large objects are decoded and compared off the loop.
  if (call.left_loop()) {
    co_await resume_on(call.executor());
  } else if (response->body.size() >= call::kLongBytes) {
    co_await leave_loop(call);
  }
  Answered answered;
  answered.code = response->status;
  for (const auto& [name, value] : response->headers) {
    if (name != "warning") continue;
    // 299 - "text"
    const size_t quote = value.find('"');
    Result<Value> text = quote == std::string::npos
                             ? Result<Value>(bad_request("no text"))
                             : codec::decode_json(call.arena, call.arena.copy(value.substr(quote)));
    answered.warnings.emplace_back(text && text->is_string() ? text->as_string() : std::string_view(value));
  }
  Result<Value> body = codec::decode_json(call.arena, call.arena.copy(response->body));
  if (!body) co_return body.take_error();
  answered.body = *body;
  co_return answered;
}

// --- The result ---

Value text_of(Arena& arena, Path path) {
  return Value::string(arena, to_string(path, ownership::ShownNumbers::AsRead));
}

Value owner_value(Arena& arena, const ManagerEntry& entry) {
  MapBuilder owner(arena);
  owner.add("manager", Value::string(arena, entry.manager));
  owner.add("operation", Value::string(name_of(entry.operation)));
  if (!entry.subresource.empty()) owner.add("subresource", Value::string(arena, entry.subresource));
  owner.add("apiVersion", Value::string(arena, entry.api_version));
  if (entry.time) owner.add("since", Value::string(arena, format_rfc3339(UnixTime{*entry.time, 0})));
  return owner.build();
}

// Some fields of a manager.
struct Owned {
  const ManagerEntry* entry = nullptr;
  FieldSet fields;
};

Value owners_of(Arena& arena, const std::vector<Owned>& all, Path path) {
  ListBuilder owners(arena);
  for (const Owned& owned : all) {
    if (owned.fields.has(path)) owners.add(owner_value(arena, *owned.entry));
  }
  return owners.build();
}

FieldSet union_of_all(Arena& arena, const std::vector<Owned>& all) {
  FieldSet fields;
  for (const Owned& owned : all) fields = union_of(arena, fields, owned.fields);
  return fields;
}

// Fields that the server sets on every object.
FieldSet system_fields(Arena& arena) {
  ownership::SetBuilder root(arena), metadata(arena);
  for (const std::string_view name : {"creationTimestamp", "generateName", "generation", "managedFields", "name",
                                      "namespace", "resourceVersion", "selfLink", "uid"}) {
    metadata.add(PathElement::field(name), true, {});
  }
  root.add(PathElement::field("apiVersion"), true, {});
  root.add(PathElement::field("kind"), true, {});
  root.add(PathElement::field("metadata"), false, metadata.close(0));
  return root.close(0);
}

// The lists of a result, which have an end.
class Lists {
 public:
  Lists(Arena& arena, MapBuilder& result) : arena_(arena), result_(result) {}

  // One entry per path of the set.
  template <class Entry>
  void add(std::string_view name, FieldSet set, Entry&& entry) {
    ListBuilder list(arena_);
    set.for_each([&](Path path) {
      if (list.count() < kMaxEntries) {
        list.add(entry(path));
      } else {
        ++omitted_;
      }
    });
    if (list.count() > 0) result_.add(name, list.build());
  }
  void add_paths(std::string_view name, FieldSet set) {
    add(name, set, [&](Path path) { return text_of(arena_, path); });
  }
  void add_taken(std::string_view name, FieldSet set, const std::vector<Owned>& owners) {
    add(name, set, [&](Path path) {
      MapBuilder taken(arena_);
      taken.add("path", text_of(arena_, path));
      taken.add("from", owners_of(arena_, owners, path));
      return taken.build();
    });
  }
  void add_foreign(const std::vector<Owned>& all) {
    ListBuilder list(arena_);
    size_t shown = 0;
    for (const Owned& owned : all) {
      ListBuilder paths(arena_);
      owned.fields.for_each([&](Path path) {
        if (shown < kMaxEntries) {
          paths.add(text_of(arena_, path));
          ++shown;
        } else {
          ++omitted_;
        }
      });
      if (paths.count() == 0) continue;
      MapBuilder one(arena_);
      one.add("owner", owner_value(arena_, *owned.entry));
      one.add("paths", paths.build());
      list.add(one.build());
    }
    if (list.count() > 0) result_.add("foreign", list.build());
  }
  void end() {
    if (omitted_ > 0) result_.add("omitted", Value::integer(std::min<int64_t>(omitted_, INT32_MAX)));
  }

 private:
  Arena& arena_;
  MapBuilder& result_;
  int64_t omitted_ = 0;
};

Value without_managers(Arena& arena, const Value& object) {
  constexpr std::array<std::string_view, 2> kPath = {"metadata", "managedFields"};
  return object.get("metadata", "managedFields") == nullptr ? object : without_path(arena, object, kPath);
}

Result<ownership::Managed> managers_of(Arena& arena, const Value& object) {
  const Value* list = object.get("metadata", "managedFields");
  return ownership::decode_managed(arena, list == nullptr ? Value::null() : *list);
}

const ownership::MergeType& merge_type_of(const Write& write) {
  const ownership::FieldManagerOptions& options = write.served->managers->at(kinds::Endpoint::Main).options();
  for (const ownership::ServedVersion& version : options.versions) {
    if (version.api_version == options.api_version) return *version.type;
  }
  return ownership::MergeTypes::deduced();
}

// A write and what became of it.
struct Reviewed {
  const Write& write;
  Value live;    // Null if the object does not exist.
  Value next;    // Null if the write was refused.
  Value status;  // The error, if it was refused.
  std::vector<std::string> warnings;
};

// The parts of a result, in the order of the type.
class ResultBuilder {
 public:
  ResultBuilder(Arena& arena, const Reviewed& reviewed)
      : arena_(arena),
        reviewed_(reviewed),
        write_(reviewed.write),
        type_(merge_type_of(reviewed.write)),
        lists_(arena, result_) {}

  Result<Value> build() {
    const Value none = Value::empty_map();
    live_ = reviewed_.live.is_null() ? none : without_managers(arena_, reviewed_.live);
    next_ = reviewed_.next.is_null() ? none : without_managers(arena_, reviewed_.next);
    Result<ownership::Managed> before = managers_of(arena_, reviewed_.live.is_null() ? none : reviewed_.live);
    Result<ownership::Managed> after = managers_of(arena_, reviewed_.next.is_null() ? none : reviewed_.next);
    if (!before) return before.take_error();
    if (!after) return after.take_error();
    before_ = std::move(*before);
    after_ = std::move(*after);
    Result<Value> built = internal_error("the object is nested too deeply to be reviewed");
    ownership::run_with_stack_for({&reviewed_.live, &reviewed_.next, &write_.document}, [&] { built = lists(); });
    return built;
  }

 private:
  bool is_mine(const ManagerEntry& entry) const {
    const bool apply = write_.operation == "Apply";
    return entry.manager == write_.manager && entry.subresource == write_.subresource &&
           (entry.operation == ownership::Operation::Apply) == apply &&
           (apply || entry.api_version == write_.api_version);
  }

  Value lists() {
    for (const ManagerEntry& entry : before_) {
      if (is_mine(entry)) mine_before_ = union_of(arena_, mine_before_, entry.fields);
    }
    for (const ManagerEntry& entry : after_) {
      if (is_mine(entry)) mine_ = union_of(arena_, mine_, entry.fields);
    }
    const ownership::FieldChanges changes = ownership::changes_between(arena_, type_, live_, next_);
    add_head(changes);
    if (reviewed_.next.is_null()) {
      add_refused_conflicts();
    } else {
      add_ownership();
      add_values(changes);
    }
    lists_.end();
    return result_.build();
  }

  void add_head(const ownership::FieldChanges& changes) {
    MapBuilder target(arena_);
    target.add("apiVersion", Value::string(arena_, write_.api_version));
    target.add("kind", Value::string(arena_, write_.kind));
    if (!write_.ns.empty()) target.add("namespace", Value::string(arena_, write_.ns));
    std::string_view name = write_.name;
    if (name.empty()) name = reviewed_.next.text_at("metadata", "name");
    if (!name.empty()) target.add("name", Value::string(arena_, name));
    result_.add("target", target.build());
    result_.add("outcome", Value::string(outcome(changes)));
    if (reviewed_.next.is_null()) result_.add("error", reviewed_.status);
    if (reviewed_.warnings.empty()) return;
    ListBuilder warnings(arena_);
    for (const std::string& warning : reviewed_.warnings) warnings.add(Value::string(arena_, warning));
    result_.add("warnings", warnings.build());
  }

  std::string_view outcome(const ownership::FieldChanges& changes) const {
    if (reviewed_.next.is_null()) return conflict_paths().empty() ? "Refused" : "Conflict";
    if (reviewed_.live.is_null()) return "Created";
    const bool same = changes.added.empty() && changes.modified.empty() && changes.removed.empty();
    return same && ownership::equal(before_, after_) ? "Unchanged" : "Changed";
  }

  // The paths that the error of an apply names.
  std::set<std::string_view> conflict_paths() const {
    std::set<std::string_view> paths;
    for (const Value& cause : reviewed_.status.items_at("details", "causes")) {
      if (cause.text_at("reason") == "FieldManagerConflict") paths.insert(cause.text_at("field"));
    }
    return paths;
  }

  // Of an apply that is not forced: fields that others own, at the paths that the error names.
  void add_refused_conflicts() {
    const std::set<std::string_view> paths = conflict_paths();
    if (paths.empty()) return;
    std::vector<Owned> owners;
    for (const ManagerEntry& entry : before_) {
      if (is_mine(entry)) continue;
      FieldSet found;
      entry.fields.for_each([&](Path path) {
        if (paths.contains(to_string(path, ownership::ShownNumbers::AsRead))) {
          found = union_of(arena_, found, single(arena_, path));
        }
      });
      if (!found.empty()) owners.push_back({&entry, found});
    }
    add_conflicts(owners, write_.document);
  }

  void add_conflicts(const std::vector<Owned>& owners, const Value& mine) {
    ownership::FieldValues yours(arena_, type_, mine), live(arena_, type_, live_);
    lists_.add("conflicts", union_of_all(arena_, owners), [&](Path path) {
      MapBuilder conflict(arena_);
      conflict.add("path", text_of(arena_, path));
      const Value* value = yours.at(path);
      if (value != nullptr && !ownership::has_marker(*value)) conflict.add("yours", *value);
      if (const Value* stored = live.at(path)) conflict.add("live", *stored);
      conflict.add("owners", owners_of(arena_, owners, path));
      return conflict.build();
    });
  }

  void add_ownership() {
    std::vector<Owned> lost, with_mine, foreign;
    FieldSet all_lost, all_after = mine_, with_others;
    const FieldSet gained = difference(arena_, mine_, mine_before_);
    for (const ManagerEntry& entry : before_) {
      if (is_mine(entry)) continue;
      FieldSet kept;
      for (const ManagerEntry& other : after_) {
        if (same_manager(entry, other)) kept = union_of(arena_, kept, other.fields);
      }
      const FieldSet gone = leaves(arena_, difference(arena_, entry.fields, kept));
      if (gone.empty()) continue;
      lost.push_back({&entry, gone});
      all_lost = union_of(arena_, all_lost, gone);
    }
    for (const ManagerEntry& entry : after_) {
      if (is_mine(entry)) continue;
      all_after = union_of(arena_, all_after, entry.fields);
      const FieldSet shared = leaves(arena_, intersection(arena_, gained, entry.fields));
      if (!shared.empty()) with_mine.push_back({&entry, shared});
      with_others = union_of(arena_, with_others, shared);
      const FieldSet own = leaves(arena_, difference(arena_, entry.fields, mine_));
      if (!own.empty()) foreign.push_back({&entry, own});
    }
    all_after_ = all_after;
    if (write_.operation == "Apply" && write_.force) add_conflicts(taken_by_me(lost), next_);
    lists_.add_taken("taken", all_lost, lost);
    lists_.add_taken("shared", with_others, with_mine);
    lists_.add_paths("claimed", difference(arena_, difference(arena_, leaves(arena_, gained), with_others), all_lost));
    lists_.add_paths("released", leaves(arena_, difference(arena_, mine_before_, mine_)));
    foreign_ = std::move(foreign);
  }

  std::vector<Owned> taken_by_me(const std::vector<Owned>& lost) {
    std::vector<Owned> taken;
    for (const Owned& owned : lost) {
      const FieldSet fields = intersection(arena_, owned.fields, mine_);
      if (!fields.empty()) taken.push_back({owned.entry, fields});
    }
    return taken;
  }

  void add_values(const ownership::FieldChanges& changes) {
    const FieldSet system = system_fields(arena_);
    const FieldSet present = ownership::fields_of(arena_, type_, next_);
    const FieldSet unset = write_.operation == "Apply" ? ownership::missing_from(arena_, mine_, present) : FieldSet();
    lists_.add_paths("unset", unset);
    const FieldSet added = leaves(arena_, changes.added);
    lists_.add_paths("defaulted", recursive_difference(arena_, difference(arena_, added, all_after_), system));
    if (write_.document.is_map()) {
      const FieldSet sent = ownership::fields_of(arena_, type_, without_markers(write_.document));
      const FieldSet dropped = ownership::missing_from(arena_, sent, present);
      lists_.add_paths("pruned", recursive_difference(arena_, recursive_difference(arena_, dropped, system), unset));
    }
    lists_.add_foreign(foreign_);
    const FieldSet all = union_of(arena_, union_of(arena_, added, leaves(arena_, changes.removed)), changes.modified);
    ownership::FieldValues before(arena_, type_, live_), after(arena_, type_, next_);
    lists_.add("changes", recursive_difference(arena_, all, system), [&](Path path) {
      MapBuilder change(arena_);
      change.add("path", text_of(arena_, path));
      if (const Value* value = before.at(path)) change.add("before", *value);
      if (const Value* value = after.at(path)) change.add("after", *value);
      return change.build();
    });
  }

  // The configuration without the fields that it unsets.
  Value without_markers(const Value& value) {
    if (write_.operation != "Apply" || !ownership::has_marker(value)) return value;
    if (value.is_map()) {
      MapBuilder map(arena_);
      for (const Member& member : value.members()) {
        if (!is_marker(member.value)) map.add(member.key, without_markers(member.value));
      }
      return map.build();
    }
    if (!value.is_list()) return value;
    ListBuilder list(arena_);
    for (const Value& item : value.items()) {
      if (!is_marker(item)) list.add(without_markers(item));
    }
    return list.build();
  }
  static bool is_marker(const Value& value) { return value.is_map() && value.has(ownership::kUnsetKey); }

  Arena& arena_;
  const Reviewed& reviewed_;
  const Write& write_;
  const ownership::MergeType& type_;
  MapBuilder result_{arena_};
  Lists lists_;
  Value live_, next_;
  ownership::Managed before_, after_;
  FieldSet mine_before_, mine_, all_after_;
  std::vector<Owned> foreign_;
};

// A document that cannot be reviewed at all.
Value refused(Arena& arena, const Value& document, const Error& error) {
  const Value* named = document.find("target");
  MapBuilder target(arena);
  if (named != nullptr) {
    for (const Member& member : named->members()) target.add(member.key, member.value);
  } else if (const Value* object = document.find("object"); object != nullptr && object->is_map()) {
    for (const std::string_view key : {"apiVersion", "kind"}) {
      if (const std::string_view text = object->text_at(key); !text.empty()) target.add(key, Value::string(text));
    }
    for (const std::string_view key : {"namespace", "name"}) {
      if (const std::string_view text = object->text_at("metadata", key); !text.empty()) {
        target.add(key, Value::string(text));
      }
    }
  }
  MapBuilder result(arena);
  result.add("target", target.build());
  result.add("outcome", Value::string("Refused"));
  result.add("error", render::status_of(arena, error));
  return result.build();
}

Task<Result<Value>> review(call::Call& call, const Parts& parts, const Value& spec, const Value& document) {
  const Result<Write> write = read_write(call, spec, document);
  if (!write) co_return write.error();
  Result<Unit> allowed = authorize(call, parts, *write);
  if (!allowed) co_return allowed.take_error();
  Reviewed reviewed{*write, {}, {}, {}, {}};
  for (int i = 0; i < kMaxReads; ++i) {
    if (write->operation != "Create") {
      Result<std::string> path =
          own_calls::path_of(own_calls::object(*write->served->resource, write->ns, write->name));
      if (!path) co_return path.take_error();
      net::ClientRequest get;
      get.target = std::move(*path);
      Result<Answered> live = co_await ask(call, parts, std::move(get));
      if (!live) co_return live.take_error();
      reviewed.live = live->code < 300 ? live->body : Value::null();
      if (live->code >= 300 && live->code != 404) {
        reviewed.status = live->body;
        break;
      }
    }
    Result<net::ClientRequest> request = dry_run_of(*write);
    if (!request) co_return request.take_error();
    Result<Answered> answered = co_await ask(call, parts, std::move(*request));
    if (!answered) co_return answered.take_error();
    reviewed.warnings = std::move(answered->warnings);
    const bool refused = answered->code >= 300;
    (refused ? reviewed.status : reviewed.next) = answered->body;
    if (refused || write->operation == "Create") break;
    if (reviewed.live.text_at("metadata", "resourceVersion") == reviewed.next.text_at("metadata", "resourceVersion")) {
      break;
    }
    reviewed.next = Value::null();
    reviewed.status = render::status_of(
        call.arena, modified_conflict({write->served->resource->group, write->served->resource->plural}, write->name));
  }
  co_return ResultBuilder(call.arena, reviewed).build();
}

}  // namespace

bool is_ownership_review(const types::Resource& resource) {
  return resource.group == "ownership.holdfast.dev" && resource.plural == "ownershipreviews";
}

Result<Unit> validate_ownership_review(const Value& spec) {
  std::vector<Cause> causes;
  const std::string_view operation = operation_of(spec);
  if (!is_one_of(operation, kOperations)) {
    causes.push_back(field_not_supported("spec.operation", operation, kOperations));
  }
  if (spec.text_at("fieldManager").empty()) causes.push_back(field_required("spec.fieldManager"));
  if (const Value* force = spec.find("force");
      force != nullptr && force->is_bool() && force->as_bool() && operation != "Apply") {
    causes.push_back(field_forbidden("spec.force", "may only be set for the operation Apply"));
  }
  if (const std::string_view validation = spec.text_at("fieldValidation");
      !validation.empty() && !is_one_of(validation, kValidations)) {
    causes.push_back(field_not_supported("spec.fieldValidation", validation, kValidations));
  }
  const std::span<const Value> documents = spec.items_at("documents");
  if (documents.empty()) causes.push_back(field_required("spec.documents"));
  if (documents.size() > kMaxDocuments) {
    causes.push_back({"FieldValueTooMany",
                      "Too many: " + std::to_string(documents.size()) + ": must have at most " +
                          std::to_string(kMaxDocuments) + " items",
                      "spec.documents"});
  } else {
    for (size_t i = 0; i < documents.size(); ++i) {
      check_document(documents[i], operation, "spec.documents[" + std::to_string(i) + "]", causes);
    }
  }
  if (causes.empty()) return Unit{};
  return invalid({"ownership.holdfast.dev", "OwnershipReview"}, "", std::move(causes));
}

Task<Value> ownership_review_status(call::Call& call, const Parts& parts, const Value& spec) {
  Arena& arena = call.arena;
  ListBuilder results(arena);
  bool all = true;
  for (const Value& document : spec.items_at("documents")) {
    Result<Value> result = co_await review(call, parts, spec, document);
    if (!result) result = refused(arena, document, result.error());
    all = all && !result->has("error");
    results.add(*result);
  }
  MapBuilder status(arena);
  status.add("allowed", Value::boolean(all));
  status.add("results", results.build());
  co_return status.build();
}

}  // namespace holdfast::verbs
