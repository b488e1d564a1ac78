// LIST: selects the revision and page, then streams the items in constant memory.
#include <algorithm>
#include <iterator>

#include "base/api_error.h"
#include "base/limits.h"
#include "base/text.h"
#include "call/call.h"
#include "call/opt_out.h"
#include "crd/crd.h"
#include "custom/conversions.h"
#include "render/json_indent.h"
#include "request/continue_token.h"
#include "request/selectors.h"
#include "verbs/component_statuses.h"
#include "verbs/each.h"
#include "verbs/reads.h"

namespace holdfast::verbs {
namespace {

// Larger lists are sent in chunks of this size.
constexpr size_t kChunkBytes = 128 << 10;

// The snapshot selected by resourceVersion and resourceVersionMatch, and whether `limit` applies.
struct Chosen {
  cache::Snapshot snapshot;
  bool honours_limit = true;
};

// `single`: one object by name, which is not paged.
Task<Result<Chosen>> choose_snapshot(call::Call& call, const request::ListOptions& options, bool single) {
  cache::Cache& cache = call.storage().cache();
  Result<std::optional<Revision>> revision = parse_revision(options.resource_version);
  if (!revision) co_return bad_request("invalid resource version: " + revision.error().message);
  const Revision asked = revision->value_or(Revision{});
  // A limit without resourceVersionMatch means Exact for compatibility (ShouldDelegateList, ValidateListOptions).
  const bool legacy = options.resource_version_match.empty() && options.limit > 0 && asked.value != 0;
  const bool exact = options.resource_version_match == "Exact" || (legacy && !single);
  // The watch cache does not serve single objects at an exact revision; upstream goes to the store for those.
  const bool from_store = bypasses_watch_cache(call) || (single && (exact || legacy));
  if (!*revision || (from_store && !exact)) {
    Result<cache::Snapshot> snapshot = co_await cache.consistent(call.executor());
    if (!snapshot) co_return snapshot.take_error();
    const Revision current = snapshot->revision();
    if (asked > current) co_return too_large_resource_version(asked.value, current.value, 0);
    co_return Chosen{std::move(*snapshot), true};
  }
  if (asked.value == 0) {
    Result<cache::Snapshot> snapshot = cache.snapshot();
    if (!snapshot) co_return snapshot.take_error();
    co_return Chosen{std::move(*snapshot), false};
  }
  if (from_store) {  // Fails for future revisions instead of waiting.
    Result<Revision> current = co_await cache.store_revision(call.executor());
    if (!current) co_return current.take_error();
    if (asked > *current) co_return too_large_resource_version(asked.value, current->value, 0);
  }
  Result<cache::Snapshot> snapshot =
      exact ? co_await cache.exactly(asked, call.executor()) : co_await cache.at_least(asked, call.executor());
  if (!snapshot) co_return snapshot.take_error();
  co_return Chosen{std::move(*snapshot), true};
}

Task<Result<cache::Snapshot>> continue_snapshot(call::Call& call, const request::ContinueToken& token) {
  cache::Cache& cache = call.storage().cache();
  if (token.revision < 0) co_return co_await cache.consistent(call.executor());
  Result<cache::Snapshot> snapshot =
      co_await cache.exactly(Revision{static_cast<uint64_t>(token.revision)}, call.executor());
  if (!snapshot && snapshot.error().reason == Reason::Expired) {
    Error error = expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list.");
    error.continue_token = request::encode_continue({-1, token.start});
    co_return error;
  }
  co_return snapshot;
}

// A page of objects that match these fields in the requested version, converted in batches until the page is full.
Task<Result<cache::ListPage>> list_converted(call::Call& call, const cache::Snapshot& snapshot,
                                             cache::ListRequest request, const std::vector<ConvertedField>& fields) {
  constexpr uint64_t kAtOnce = 500;
  const uint64_t limit = std::exchange(request.limit, kAtOnce);
  cache::ListPage found;
  while (true) {
    call.held.clear();  // Conversions of the previous batch.
    cache::ListPage part = snapshot.list(request);
    std::move(part.unreadable.begin(), part.unreadable.end(), std::back_inserter(found.unreadable));
    Result<Unit> prepared = co_await custom::convert_for_view(call, part.entries);
    if (!prepared) co_return prepared.take_error();
    for (size_t i = 0; i < part.entries.size(); ++i) {
      if (!has_fields(call, *part.entries[i], fields)) continue;
      found.entries.push_back(part.entries[i]);
      if (found.entries.size() != limit) continue;
      const bool last = i + 1 == part.entries.size();
      found.more = !last || part.more;
      found.next = last ? part.next : std::string(part.entries[i + 1]->key());
      co_return found;
    }
    if (!part.more) co_return found;
    request.from = part.next;
  }
}

// Entries are scattered in memory, so the next ones are prefetched while one is rendered; each step depends on data
// fetched by the previous one.
void fetch_ahead(const std::vector<cache::EntryRef>& entries, size_t at) {
  if (at + 6 < entries.size()) __builtin_prefetch(entries[at + 6].get());
  if (at + 4 < entries.size()) entries[at + 4]->fetch();
  if (at + 2 < entries.size()) entries[at + 2]->ownership().fetch();
}

// Renders a whole list as JSON. The view must be compact JSON.
Result<std::string> render_json(const render::View& view, render::ListHead head,
                                const std::vector<cache::EntryRef>& entries) {
  render::ListRenderer renderer(view, std::move(head), entries.size());
  std::string json;
  renderer.begin(json);
  for (const cache::EntryRef& entry : entries) {
    Result<Unit> added = renderer.item(*entry, json);
    if (!added) return added.take_error();
  }
  renderer.end(json);
  return json;
}

// Renders responses that cannot be streamed: Tables as YAML.
Result<std::string> render_whole(const render::View& view, render::ListHead head,
                                 const std::vector<cache::EntryRef>& entries) {
  render::View plain = view;
  plain.accepted.pretty = false;
  plain.accepted.format = request::Format::Json;
  Result<std::string> json = render_json(plain, std::move(head), entries);
  if (!json) return json;
  Arena arena;
  Result<Value> tree = codec::decode_json(arena, *json);
  if (!tree) return tree.take_error();
  return render::encode_response(*tree, nullptr, view.accepted.format, view.accepted.pretty);
}

// The error for an item that cannot be rendered.
Error item_error(call::Call& call, const cache::Entry& entry, Error error) {
  if (is_readable(call, *entry.body())) return error;
  const cache::Unreadable item{std::string(entry.key()), cache::undecodable(entry.revision(), error.message).message};
  return unreadable_items(call, {&item, 1});
}

// Rows of FlowSchemas are sorted in matching order (printFlowSchemaList); all others keep the list order.
void sort_rows(const call::Call& call, std::vector<cache::EntryRef>& entries) {
  const types::Resource& resource = *call.served->resource;
  if (call.view.accepted.form != request::Form::Table || resource.kind != "FlowSchema" || call.served->custom) return;
  std::vector<std::pair<int64_t, cache::EntryRef>> ranked;
  for (cache::EntryRef& entry : entries) {
    Arena arena;
    const store::Blob body = entry->body();
    Result<Value> tree = call.storage().codec().tree(arena, *body);
    ranked.emplace_back(tree ? tree->int_at_or(0, "spec", "matchingPrecedence") : 0, std::move(entry));
  }
  // Stable, because the entries are already sorted by name.
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < entries.size(); ++i) entries[i] = std::move(ranked[i].second);
}

}  // namespace

Error unreadable_items(const call::Call& call, std::span<const cache::Unreadable> items) {
  std::vector<Cause> causes;
  for (const cache::Unreadable& item : items) {
    causes.push_back(corrupt_item(call.storage().key(item.key), item.why));
    if (causes.size() > limits::kReportedUnreadable) break;
  }
  return unreadable_list(call.group_resource(), std::move(causes));
}

Task<void> stream_list(call::Call& call, Listed listed) {
  co_await return_to_loop(call);
  if (call.view.refusal) co_return respond_error(call, *call.view.refusal);
  if (call.view.accepted.form == request::Form::PartialMetadata) {
    co_return respond_error(
        call, Error{Reason::NotAcceptable, "you requested PartialObjectMetadata, but the requested object is a list (" +
                                               render::go_struct(*call.served->resource->type, "List") + ")"});
  }
  Result<Unit> prepared = co_await custom::convert_for_view(call, listed.entries);
  if (!prepared) co_return respond_error(call, prepared.error());
  sort_rows(call, listed.entries);
  const render::View& view = call.view;
  const request::Format format = view.accepted.format;
  const std::optional<render::View> recorded = recorded_view(call);
  const bool in_one_piece = view.accepted.form == request::Form::Table && format == request::Format::Yaml;
  if (recorded || in_one_piece) {
    size_t bytes = 0;
    for (const cache::EntryRef& entry : listed.entries) bytes += entry->body_bytes();
    if (is_slow_to_render(call, bytes)) co_await leave_loop(call);
  }
  if (recorded) record_response(call, render_json(*recorded, listed.head, listed.entries));
  if (in_one_piece) {
    Result<std::string> whole = render_whole(view, listed.head, listed.entries);
    if (!whole) co_return respond_error(call, whole.error());
    uint64_t left_out = 0;
    for (const cache::EntryRef& entry : listed.entries) left_out += call::field_set_bytes(entry->ownership());
    count_opt_out(call, left_out);
    co_return respond(call, 200, std::move(*whole));
  }
  render::ListRenderer renderer(view, listed.head, listed.entries.size());
  if (renderer.needs_sizes()) {
    for (const cache::EntryRef& entry : listed.entries) {
      Result<Unit> measured = renderer.measure(*entry);
      if (!measured) co_return respond_error(call, item_error(call, *entry, measured.take_error()));
    }
  }
  std::string chunk;
  std::optional<render::JsonIndenter> indenter;
  if (view.accepted.pretty && format == request::Format::Json) indenter.emplace();
  const auto take_chunk = [&] {
    std::string taken = std::exchange(chunk, {});
    chunk.reserve(kChunkBytes + kChunkBytes / 4);  // The last item may exceed the chunk size; avoid a reallocation.
    if (!indenter) return taken;
    std::string indented;
    indented.reserve(taken.size() * 2);
    indenter->add(taken, indented);
    return indented;
  };
  bool started = false;
  uint64_t left_out = 0;
  renderer.begin(chunk);
  for (size_t i = 0; i < listed.entries.size(); ++i) {
    fetch_ahead(listed.entries, i);
    cache::EntryRef entry = std::move(listed.entries[i]);
    if (is_slow_to_render(call, entry->body_bytes())) co_await leave_loop(call);
    Result<Unit> added = renderer.item(*entry, chunk);
    if (!added && !started) co_return respond_error(call, item_error(call, *entry, added.take_error()));
    if (call.left_loop() && !call.request.loop().in_thread()) co_await return_to_loop(call);
    if (!added) co_return call.response.abort();
    if (view.omits_ownership()) left_out += call::field_set_bytes(entry->ownership());
    entry = {};
    if (chunk.size() < kChunkBytes) continue;
    if (!started) {
      started = true;
      for (const std::string& warning : call.warnings.headers()) call.response.add_header("warning", warning);
      call.response.set_header("content-type", media_type(format));
      call.response.set_header("cache-control", "no-cache, private");
      call.response.allow_gzip();
      if (!call.response.start(200)) co_return;
    }
    Result<Unit> written = co_await call.response.write(net::Bytes(take_chunk()));
    if (!written) co_return;
  }
  renderer.end(chunk);
  count_opt_out(call, left_out);
  if (!started) co_return respond(call, 200, take_chunk());
  Result<Unit> written = co_await call.response.write(net::Bytes(take_chunk()));
  if (written) call.response.end();
}

Result<Selection> resolve_selector(const call::Call& call) {
  const Result<request::ListQuery>& decoded = call.request_info.list();
  if (!decoded) return decoded.error();
  const request::ListQuery& query = *decoded;
  Selection selection;
  cache::Selector& selector = selection.stored;
  selector.labels = query.labels;
  Result<Unit> valid = validate(query.options);
  if (!valid) return valid.take_error();
  kinds::SelectableFields selectable = kinds::selectable_fields(*call.served->resource);
  if (call.served->custom) {
    selectable.names = call.storage().codec().field_names();
    selectable.refusal = "field label not supported: %s";
    const std::vector<std::string>& own = call.served->version->selectable_fields;
    for (const request::FieldTerm& term : query.fields) {
      const bool of_another =
          std::find(selectable.names.begin(), selectable.names.end(), term.field) != selectable.names.end() &&
          std::find(own.begin(), own.end(), term.field) == own.end();
      if (of_another) return bad_request("field label not supported: " + std::string(term.field));
    }
  }
  Result<std::vector<cache::FieldRequirement>> fields = resolve_fields(query.fields, selectable);
  if (!fields) return fields.take_error();
  // The cache only has the fields of the stored version.
  const bool converts =
      call.served->object_rules->converts_by_webhook() && call.served->resource != call.served->stored;
  for (cache::FieldRequirement& field : *fields) {
    if (converts && field.field >= 0) {
      const std::string_view path = selectable.names[static_cast<size_t>(field.field)];
      selection.converted.push_back({std::string(path), field.equal, std::move(field.value)});
    } else {
      selector.fields.push_back(std::move(field));
    }
  }
  if (call.info.legacy_watch && !call.info.name.empty()) {
    if (selector.fields.empty()) {
      selector.fields.push_back({cache::FieldRequirement::kName, true, std::string(call.info.name)});
    } else if (request::required_name(selector.fields) != call.info.name) {
      return bad_request("fieldSelector metadata.name doesn't match requested name");
    }
  }
  return selection;
}

bool has_fields(const call::Call& call, const cache::Entry& entry, const std::vector<ConvertedField>& fields) {
  Arena arena;
  const store::Blob body = entry.body();
  Result<Value> tree = call.storage().codec().tree(arena, *body);
  if (!tree) return false;
  const resource::ObjectRules& rules = *call.served->object_rules;
  const types::Resource& from = rules.version_of(*tree, *call.served->stored);
  const Result<Value> object = rules.convert(arena, from, *call.served->resource, *tree, nullptr);
  return object && std::all_of(fields.begin(), fields.end(), [&object](const ConvertedField& field) {
           return (crd::selectable_value(*object, field.path) == field.value) == field.equal;
         });
}

Task<Result<std::vector<cache::EntryRef>>> with_fields(call::Call& call, std::vector<cache::EntryRef> entries,
                                                       const std::vector<ConvertedField>& fields) {
  Result<Unit> prepared = co_await custom::convert_for_view(call, entries);
  if (!prepared) co_return prepared.take_error();
  std::erase_if(entries, [&](const cache::EntryRef& entry) { return !has_fields(call, *entry, fields); });
  co_return std::move(entries);
}

Task<Result<Listed>> list_entries(call::Call& call, const request::ListOptions& options, Selection selection) {
  const std::string scope = call.storage().scope(call.ns());
  cache::ListRequest request;
  request.scope = scope;
  request.selector = std::move(selection.stored);
  cache::Snapshot snapshot;
  std::string page_revision;
  bool honours_limit = true;
  // A single object by name is not paged.
  const bool single = request::required_name(request.selector.fields).has_value() &&
                      (!call.served->resource->namespaced || !call.ns().empty());
  if (!options.continue_token.empty()) {
    Result<request::ContinueToken> token = request::decode_continue(options.continue_token);
    if (!token) co_return token.take_error();
    if (!options.resource_version.empty() && options.resource_version != "0") {
      co_return bad_request("specifying resource version is not allowed when using continue");
    }
    Result<cache::Snapshot> found = co_await continue_snapshot(call, *token);
    if (!found) co_return found.take_error();
    snapshot = std::move(*found);
    honours_limit = options.resource_version != "0" || bypasses_watch_cache(call);
    request.from = scope + token->start;
    page_revision =
        std::to_string(token->revision < 0 ? snapshot.revision().value : static_cast<uint64_t>(token->revision));
  } else {
    Result<Chosen> chosen = co_await choose_snapshot(call, options, single);
    if (!chosen) co_return chosen.take_error();
    snapshot = std::move(chosen->snapshot);
    honours_limit = chosen->honours_limit;
    page_revision = std::to_string(snapshot.revision().value);
  }
  if (honours_limit && !single && options.limit > 0) request.limit = static_cast<uint64_t>(options.limit);

  Result<cache::ListPage> found = selection.converted.empty()
                                      ? Result<cache::ListPage>(snapshot.list(request))
                                      : co_await list_converted(call, snapshot, request, selection.converted);
  if (!found) co_return found.take_error();
  cache::ListPage& page = *found;
  if (!page.unreadable.empty()) co_return unreadable_items(call, page.unreadable);
  Listed listed;
  listed.entries = std::move(page.entries);
  listed.head.resource_version = page_revision;
  if (page.more) {
    listed.head.continue_token =
        request::encode_continue({static_cast<int64_t>(snapshot.revision().value), page.next.substr(scope.size())});
    if (request.selector.empty() && selection.converted.empty())
      listed.head.remaining = static_cast<int64_t>(page.remaining);
  }
  co_return listed;
}

Task<void> serve_list(call::Call& call) {
  Result<Unit> negotiated = negotiate_response(call);
  if (!negotiated) co_return respond_error(call, negotiated.error());
  if (call.served->storage == nullptr) {
    co_await serve_component_statuses(call);
    co_return;
  }
  Result<Selection> selection = resolve_selector(call);
  if (!selection) co_return respond_error(call, selection.error());
  const request::ListOptions& options = call.request_info.list()->options;
  Result<Listed> listed = co_await list_entries(call, options, std::move(*selection));
  if (!listed) co_return respond_error(call, listed.error());
  co_await stream_list(call, std::move(*listed));
}

}  // namespace holdfast::verbs
