// The resource verbs.
#include "base/strings.h"
#include "client/core.h"
#include "codec/typed.h"
#include "codec/visible.h"
#include "ownership/ownership.h"

namespace holdfast::client {

namespace {

// Uses Protobuf if the client asked for it and all of the object fits its type: unknown fields are left to the server
// to report.
bool set_protobuf_body(PreparedRequest& sent, const Value& value, const Resource& resource) {
  const types::Resource* kind = types::find_kind(resource.group, resource.version, resource.kind);
  if (kind == nullptr || kind->type == nullptr || value.text_at("kind") != resource.kind ||
      value.text_at("apiVersion") != resource.api_version()) {
    return false;
  }
  // An empty managedFields list, which gives up ownership, cannot be expressed in Protobuf.
  if (const Value* managed = value.get("metadata", "managedFields"); managed != nullptr && managed->count() == 0) {
    return false;
  }
  static const Gates kAll;
  Arena arena;
  codec::TypedReport report;
  Result<Value> typed = codec::to_typed(arena, *kind->type, value, {.gates = &kAll}, &report);
  if (!typed || report.has_unknown || !codec::encode_enveloped(*kind->type, *typed, sent.body)) return false;
  sent.content_type = "application/vnd.kubernetes.protobuf";
  return true;
}

void set_body(PreparedRequest& sent, const Value& value, const Core& core) {
  const bool cbor = core.cbor_bodies;
  sent.content_type = cbor ? "application/cbor" : "application/json";
  sent.body = cbor ? codec::encode_cbor(value) : codec::encode_json(value);
}

void set_object_body(PreparedRequest& sent, const Value& value, const Resource& resource, const Core& core) {
  if (core.options.encoding == Encoding::Protobuf && set_protobuf_body(sent, value, resource)) return;
  set_body(sent, value, core);
}

void add_write_options(std::string& target, const Options& client, std::string_view field_manager, bool dry_run,
                       std::string_view field_validation) {
  add_query(target, "fieldManager", field_manager.empty() ? client.field_manager : field_manager);
  if (dry_run) add_query(target, "dryRun", "All");
  add_query(target, "fieldValidation", field_validation);
}

void add_list_options(std::string& target, const ListOptions& options) {
  add_query(target, "labelSelector", options.label_selector);
  add_query(target, "fieldSelector", options.field_selector);
  if (options.limit > 0) add_query(target, "limit", std::to_string(options.limit));
  add_query(target, "continue", options.continue_token);
  add_query(target, "resourceVersion", options.resource_version);
  add_query(target, "resourceVersionMatch", options.resource_version_match);
  add_shape(target, options.shape);
}

std::string delete_body(const DeleteOptions& options) {
  Arena arena;
  MapBuilder body(arena);
  body.add("kind", Value::string("DeleteOptions"));
  body.add("apiVersion", Value::string("v1"));
  if (options.grace_period_seconds) body.add("gracePeriodSeconds", Value::integer(*options.grace_period_seconds));
  if (!options.propagation_policy.empty()) body.add("propagationPolicy", Value::string(options.propagation_policy));
  if (!options.uid.empty() || !options.resource_version.empty()) {
    MapBuilder preconditions(arena);
    if (!options.uid.empty()) preconditions.add("uid", Value::string(options.uid));
    if (!options.resource_version.empty()) {
      preconditions.add("resourceVersion", Value::string(options.resource_version));
    }
    body.add("preconditions", preconditions.build());
  }
  if (options.dry_run) {
    ListBuilder all(arena);
    all.add(Value::string("All"));
    body.add("dryRun", all.build());
  }
  return codec::encode_json(body.build());
}

// Fails without sending anything.
Task<Result<Object>> refuse(Error error) { co_return error; }
Task<Result<std::vector<Object>>> refuse_pages(Error error) { co_return error; }
Task<Result<Watch>> refuse_watch(Error error) { co_return error; }

Task<Result<std::vector<Object>>> all_pages(std::shared_ptr<Core> core, PreparedRequest first, ListOptions options) {
  const Core::Use use(core);
  std::vector<Object> pages;
  bool restarted = false;
  while (true) {
    PreparedRequest sent = first;
    add_list_options(sent.target, options);
    Result<Object> page = co_await Core::send_for_object(core, std::move(sent));
    if (!page && page.error().code == 410 && !options.continue_token.empty() && !restarted) {
      // The old state expired between pages: fetch all pages again, from one state.
      restarted = true;
      pages.clear();
      options.continue_token.clear();
      continue;
    }
    if (!page) co_return page.take_error();
    options.continue_token = page->root().text_at("metadata", "continue");
    // The continue token implies the first page's version.
    options.resource_version.clear();
    options.resource_version_match.clear();
    pages.push_back(std::move(*page));
    if (options.continue_token.empty()) co_return pages;
  }
}

Task<Result<Object>> apply_with_markers(std::shared_ptr<Core> core, PreparedRequest sent,
                                        Task<Result<bool>> understood) {
  Result<bool> yes = co_await understood;
  if (!yes) co_return yes.take_error();
  if (!*yes) {
    co_return bad_request("the server does not support unset markers: it would store them as data or reject them");
  }
  co_return co_await Core::send_for_object(core, std::move(sent));
}

// A manifest may declare its field manager (docs/declared-manager.md). Only some servers read that; all servers take
// the name as a parameter, to the same effect, so it is sent there and taken out of the object. Options with other keys
// are left to the server to refuse. BadRequest if the call names another manager.
template <class Options>
Result<Value> without_declared_manager(Arena& arena, const Value& object, Options& options) {
  const std::string_view declared = object.text_at("metadata", "options", "fieldManager");
  if (declared.empty() || object.get("metadata", "options")->count() != 1) return object;
  if (!options.field_manager.empty() && options.field_manager != declared) {
    return bad_request("metadata.options[fieldManager] is \"" + std::string(declared) +
                       "\", but the field manager of the request is \"" + options.field_manager + "\"");
  }
  options.field_manager = declared;
  constexpr std::string_view kPath[] = {"metadata", "options"};
  return without_path(arena, object, kPath);
}

template <class Options>
PreparedRequest write_request(const Core& core, const Resource& resource, std::string method, std::string_view space,
                              std::string_view name, std::string_view subresource, const Options& options) {
  PreparedRequest sent;
  sent.method = std::move(method);
  sent.target = core.path(resource, space, name, subresource);
  add_write_options(sent.target, core.options, options.field_manager, options.dry_run, options.field_validation);
  return sent;
}

bool is_table(Shape shape) { return shape == Shape::Table || shape == Shape::TableOfObjects; }

// Sends the request for an object or a list, without the fields that the call's options choose.
Call<Result<Object>> sent_for_object(const std::shared_ptr<Core>& core, const Resource& resource, PreparedRequest sent,
                                     const DropFields& choice, Core::Asked asked = Core::Asked::Object,
                                     Shape shape = Shape::Object) {
  Result<SharedDrops> drops = core->drops_of(choice);
  if (!drops) return {core->loop, refuse(drops.take_error())};
  sent.accept = Core::accept(resource, **drops, core->options.encoding, shape, asked);
  sent.drops = *drops;
  sent.answered = is_table(shape) ? Answered::Table : asked == Core::Asked::List ? Answered::List : Answered::Object;
  return {core->loop, Core::send_for_object(core, std::move(sent))};
}

// The namespace of an API, or else that of the object.
std::string_view space_of(const std::string& space, const Value& object) {
  return space.empty() ? object.text_at("metadata", "namespace") : std::string_view(space);
}

}  // namespace

Task<Result<bool>> fetch_marker_support(std::shared_ptr<Core> core, Resource resource);

void add_shape(std::string& target, Shape shape) {
  if (shape == Shape::TableOfObjects) add_query(target, "includeObject", "Object");
}

ApiBase::ApiBase(std::shared_ptr<Core> core, Resource resource, std::string space)
    : core_(std::move(core)), resource_(std::move(resource)), space_(std::move(space)) {}

Call<Result<Object>> ApiBase::get(std::string name, GetOptions options) const {
  PreparedRequest sent;
  sent.target = core_->path(resource_, space_, name, options.subresource);
  add_query(sent.target, "resourceVersion", options.resource_version);
  add_shape(sent.target, options.shape);
  if (name.empty()) return {core_->loop, refuse(bad_request("resource name may not be empty"))};
  return sent_for_object(core_, resource_, std::move(sent), options.drop_fields, Core::Asked::Object, options.shape);
}

Call<Result<Object>> ApiBase::list(ListOptions options) const {
  PreparedRequest sent;
  sent.target = core_->path(resource_, space_);
  add_list_options(sent.target, options);
  return sent_for_object(core_, resource_, std::move(sent), options.drop_fields, Core::Asked::List, options.shape);
}

Call<Result<std::vector<Object>>> ApiBase::list_all(ListOptions options) const {
  PreparedRequest sent;
  Result<SharedDrops> drops = core_->drops_of(options.drop_fields);
  if (!drops) return {core_->loop, refuse_pages(drops.take_error())};
  sent.target = core_->path(resource_, space_);
  sent.accept = Core::accept(resource_, **drops, core_->options.encoding, options.shape, Core::Asked::List);
  sent.drops = *drops;
  sent.answered = is_table(options.shape) ? Answered::Table : Answered::List;
  if (options.limit == 0) options.limit = 500;
  return {core_->loop, all_pages(core_, std::move(sent), std::move(options))};
}

Call<Result<Watch>> ApiBase::watch(WatchOptions options) const {
  Result<SharedDrops> drops = core_->drops_of(options.drop_fields);
  if (!drops) return {core_->loop, refuse_watch(drops.take_error())};
  return {core_->loop, open_watch(core_, resource_, space_, std::move(options), *drops, core_->options.encoding)};
}

Call<Result<Object>> ApiBase::create_value(const Value& given, const WriteOptions& asked) const {
  Arena arena;
  WriteOptions options = asked;
  const Result<Value> prepared = without_declared_manager(arena, given, options);
  if (!prepared) return {core_->loop, refuse(prepared.error())};
  const Value& object = *prepared;
  PreparedRequest sent = write_request(*core_, resource_, "POST", space_of(space_, object), {}, {}, options);
  set_object_body(sent, object, resource_, *core_);
  sent.retry_safe = false;
  return sent_for_object(core_, resource_, std::move(sent), options.drop_fields);
}

Call<Result<Object>> ApiBase::create_at_value(std::string name, const Value& body, const WriteOptions& options) const {
  PreparedRequest sent = write_request(*core_, resource_, "POST", space_, name, options.subresource, options);
  Result<SharedDrops> drops = core_->drops_of(options.drop_fields);
  if (!drops) return {core_->loop, refuse(drops.take_error())};
  sent.accept = accept_header({"application/json"}, **drops);
  sent.drops = *drops;
  sent.content_type = "application/json";
  sent.body = codec::encode_json(body);
  sent.retry_safe = false;
  return {core_->loop, Core::send_for_object(core_, std::move(sent))};
}

Call<Result<Object>> ApiBase::update_value(const Value& given, const WriteOptions& asked,
                                           std::optional<std::span<const std::string>> dropped) const {
  Arena arena;
  WriteOptions options = asked;
  const Result<Value> prepared = without_declared_manager(arena, given, options);
  if (!prepared) return {core_->loop, refuse(prepared.error())};
  const Value& object = *prepared;
  const std::string_view name = object.text_at("metadata", "name");
  if (!dropped && options.drop_fields.inherits()) dropped = *core_->drops->fields;
  if (dropped && lacks_more_than_ownership(*dropped)) {
    return {core_->loop, refuse(bad_request(std::string(name) + " was read without " + join(*dropped, ", ") +
                                            ", which an update would delete; read it with drop_fields = "
                                            "DropFields::kKeep, or use a patch or an apply"))};
  }
  if (name.empty()) return {core_->loop, refuse(bad_request("metadata.name is required for an update"))};
  PreparedRequest sent =
      write_request(*core_, resource_, "PUT", space_of(space_, object), name, options.subresource, options);
  set_object_body(sent, object, resource_, *core_);
  sent.retry_safe = false;  // A retry could conflict with the version written by the first attempt.
  return sent_for_object(core_, resource_, std::move(sent), options.drop_fields);
}

Call<Result<Object>> ApiBase::apply_value(const Value& given, const ApplyOptions& asked) const {
  Arena arena;
  ApplyOptions options = asked;
  const Result<Value> prepared = without_declared_manager(arena, given, options);
  if (!prepared) return {core_->loop, refuse(prepared.error())};
  const Value& config = *prepared;
  const std::string_view name = config.text_at("metadata", "name");
  if (name.empty()) return {core_->loop, refuse(bad_request("metadata.name is required for an apply"))};
  PreparedRequest sent =
      write_request(*core_, resource_, "PATCH", space_of(space_, config), name, options.subresource, options);
  if (options.force) add_query(sent.target, "force", "true");
  set_body(sent, config, *core_);
  // Servers read apply configurations as YAML, which refuses some characters that JSON leaves raw, and folds others.
  if (sent.content_type == "application/json") sent.body = codec::visible_json(std::move(sent.body));
  sent.content_type =
      sent.content_type == "application/cbor" ? "application/apply-patch+cbor" : "application/apply-patch+yaml";
  Result<SharedDrops> drops = core_->drops_of(options.drop_fields);
  if (!drops) return {core_->loop, refuse(drops.take_error())};
  sent.accept = Core::accept(resource_, **drops, core_->options.encoding, Shape::Object, Core::Asked::Object);
  sent.drops = *drops;
  if (ownership::has_marker(config)) {
    return {core_->loop, apply_with_markers(core_, std::move(sent), fetch_marker_support(core_, resource_))};
  }
  return {core_->loop, Core::send_for_object(core_, std::move(sent))};
}

Call<Result<Object>> ApiBase::patch(std::string name, Patch type, std::string_view body, WriteOptions options) const {
  PreparedRequest sent = write_request(*core_, resource_, "PATCH", space_, name, options.subresource, options);
  sent.content_type = type == Patch::Json    ? "application/json-patch+json"
                      : type == Patch::Merge ? "application/merge-patch+json"
                                             : "application/strategic-merge-patch+json";
  sent.body = body;
  sent.retry_safe = false;
  return sent_for_object(core_, resource_, std::move(sent), options.drop_fields);
}

Call<Result<Object>> ApiBase::remove(std::string name, DeleteOptions options) const {
  if (name.empty()) return {core_->loop, refuse(bad_request("resource name may not be empty"))};
  PreparedRequest sent;
  sent.method = "DELETE";
  sent.target = core_->path(resource_, space_, name);
  sent.content_type = "application/json";
  sent.body = delete_body(options);
  sent.retry_safe = false;
  return sent_for_object(core_, resource_, std::move(sent), options.drop_fields);
}

Call<Result<Object>> ApiBase::remove_all(ListOptions which, DeleteOptions options) const {
  PreparedRequest sent;
  sent.method = "DELETE";
  sent.target = core_->path(resource_, space_);
  add_list_options(sent.target, which);
  sent.content_type = "application/json";
  sent.body = delete_body(options);
  sent.retry_safe = false;
  return sent_for_object(core_, resource_, std::move(sent), options.drop_fields, Core::Asked::List);
}

}  // namespace holdfast::client
