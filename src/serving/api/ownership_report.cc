#include "api/ownership_report.h"

#include <algorithm>
#include <map>

#include "base/api_error.h"
#include "base/strings.h"
#include "cache/cache.h"

namespace holdfast::api {
namespace {

struct Cost {
  uint64_t objects = 0;
  uint64_t bytes = 0;      // In memory.
  uint64_t raw_bytes = 0;  // As FieldsV1.

  void add(const ownership::Owners& owners) {
    ++objects;
    bytes += owners.kept_bytes();
    for (size_t i = 0; i < owners.count(); ++i) raw_bytes += owners.fields_v1_bytes(i);
  }
};

std::vector<cache::EntryRef> entries_of(resource::Storage& storage) {
  Result<cache::Snapshot> snapshot = storage.cache().snapshot();
  if (!snapshot) return {};
  return snapshot->list({.scope = ""}).entries;
}

// By name: "pods", "deployments.apps". Versions share a storage, which is listed once.
std::map<std::string, resource::Storage*> storages(const resource::Registry::Snapshot& registry) {
  std::map<const resource::Storage*, bool> seen;
  std::map<std::string, resource::Storage*> out;
  for (const resource::Served& served : registry.all()) {
    if (served.storage == nullptr || !seen.emplace(served.storage, true).second) continue;
    out.emplace(to_string(GroupResource{served.resource->group, served.resource->plural}), served.storage);
  }
  return out;
}

std::map<std::string, Cost> costs(const resource::Registry& served_now) {
  std::map<std::string, Cost> out;
  const resource::Registry::SnapshotRef registry = served_now.snapshot();
  for (const auto& [name, storage] : storages(*registry)) {
    Cost& cost = out[name];
    for (const cache::EntryRef& entry : entries_of(*storage)) cost.add(entry->ownership());
  }
  return out;
}

void cell(std::string& line, std::string_view text, size_t width) {
  line += text;
  line.append(text.size() < width ? width - text.size() : 1, ' ');
}

std::string line_of(std::initializer_list<std::pair<std::string_view, size_t>> cells) {
  std::string line;
  for (const auto& [text, width] : cells) cell(line, text, width);
  while (line.ends_with(' ')) line.pop_back();
  return line + "\n";
}

constexpr size_t kNameWidth = 48, kNumberWidth = 12;

std::string resources_page(const resource::Registry& served_now) {
  std::string page = line_of(
      {{"RESOURCE", kNameWidth}, {"OBJECTS", kNumberWidth}, {"BYTES", kNumberWidth}, {"FIELDSV1", kNumberWidth}});
  for (const auto& [name, cost] : costs(served_now)) {
    if (cost.objects == 0) continue;
    page += line_of({{name, kNameWidth},
                     {std::to_string(cost.objects), kNumberWidth},
                     {std::to_string(cost.bytes), kNumberWidth},
                     {std::to_string(cost.raw_bytes), kNumberWidth}});
  }
  return page;
}

std::string objects_page(resource::Storage& storage, size_t limit) {
  struct Line {
    cache::EntryRef entry;
    Cost cost;
  };
  std::vector<Line> lines;
  for (cache::EntryRef& entry : entries_of(storage)) {
    Cost cost;
    cost.add(entry->ownership());
    lines.push_back({std::move(entry), cost});
  }
  const size_t shown = std::min(limit, lines.size());
  std::partial_sort(lines.begin(), lines.begin() + static_cast<ptrdiff_t>(shown), lines.end(),
                    [](const Line& a, const Line& b) { return a.cost.bytes > b.cost.bytes; });
  std::string page = line_of(
      {{"OBJECT", kNameWidth}, {"MANAGERS", kNumberWidth}, {"BYTES", kNumberWidth}, {"FIELDSV1", kNumberWidth}});
  for (size_t i = 0; i < shown; ++i) {
    page += line_of({{lines[i].entry->key(), kNameWidth},
                     {std::to_string(lines[i].entry->ownership().count()), kNumberWidth},
                     {std::to_string(lines[i].cost.bytes), kNumberWidth},
                     {std::to_string(lines[i].cost.raw_bytes), kNumberWidth}});
  }
  return page;
}

}  // namespace

OwnershipReport::OwnershipReport(MetricRegistry& metrics, const resource::Registry& registry, ownership::Pool& pool)
    : registry_(registry),
      pool_(pool),
      bytes_(
          metrics.gauges("holdfast_ownership_bytes", "What managedFields take in memory, by resource.", {"resource"})),
      raw_bytes_(metrics.gauges("holdfast_ownership_raw_bytes",
                                "What their field sets would take as FieldsV1, by resource.", {"resource"})) {}

void OwnershipReport::refresh_metrics() {
  uint64_t attributed = 0, attributed_raw = 0;
  for (const auto& [name, cost] : costs(registry_)) {
    bytes_.with({name}).set(static_cast<int64_t>(cost.bytes));
    raw_bytes_.with({name}).set(static_cast<int64_t>(cost.raw_bytes));
    attributed += cost.bytes;
    attributed_raw += cost.raw_bytes;
  }
  // Shared tables, names, dictionaries and strings, and the history of changed and deleted objects.
  const ownership::PoolUsage usage = pool_.usage();
  const auto rest = [](uint64_t all, uint64_t known) { return static_cast<int64_t>(all > known ? all - known : 0); };
  bytes_.with({""}).set(rest(usage.total_bytes(), attributed));
  raw_bytes_.with({""}).set(rest(usage.fields_v1_bytes, attributed_raw));
}

Result<std::string> OwnershipReport::page(const request::Query& query) const {
  const std::string wanted(query.get("resource"));
  size_t limit = 50;
  if (const std::string* text = query.find("limit")) {
    const std::optional<size_t> given = parse_number<size_t>(*text);
    if (!given) return bad_request("limit is not a number: " + *text);
    limit = *given;
  }
  if (wanted.empty()) return resources_page(registry_);
  const resource::Registry::SnapshotRef registry = registry_.snapshot();
  const std::map<std::string, resource::Storage*> known = storages(*registry);
  const auto found = known.find(wanted);
  if (found == known.end()) return bad_request("no resource " + wanted + " is served; write PLURAL or PLURAL.GROUP");
  return objects_page(*found->second, limit);
}

}  // namespace holdfast::api
