#include "discovery/discovery.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "base/api_version.h"
#include "base/base64.h"
#include "base/strings.h"
#include "codec/codec.h"

namespace holdfast::discovery {
namespace {

struct Version {
  std::string_view name;
  bool custom = false;
  std::vector<const types::Resource*> resources = {};
};

struct Group {
  std::string_view name;
  bool custom = false;
  std::vector<Version> versions;
};

bool is_builtin_group(std::string_view name) {
  const auto all = types::builtin_resources();
  return std::any_of(all.begin(), all.end(),
                     [name](const types::Resource& resource) { return resource.group == name; });
}
bool is_builtin_version(std::string_view group, std::string_view version) {
  const auto all = types::builtin_resources();
  return std::any_of(all.begin(), all.end(), [&](const types::Resource& resource) {
    return resource.group == group && resource.version == version;
  });
}

constexpr std::string_view kOwnershipGroup = "ownership.holdfast.dev";

// Built-in groups keep the catalog's order; custom ones follow by name, with versions by priority. Custom versions of a
// built-in group have a higher priority than its own.
std::vector<Group> collect(Resources resources) {
  std::vector<Group> groups;
  for (const types::Resource* resource : resources) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.name == resource->group; });
    if (group == groups.end()) {
      groups.push_back({resource->group, !is_builtin_group(resource->group), {}});
      group = groups.end() - 1;
    }
    auto version = std::find_if(group->versions.begin(), group->versions.end(),
                                [&](const Version& v) { return v.name == resource->version; });
    if (version == group->versions.end()) {
      group->versions.push_back(
          {resource->version, group->custom || !is_builtin_version(group->name, resource->version)});
      version = group->versions.end() - 1;
    }
    version->resources.push_back(resource);
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    if (a.custom != b.custom) return b.custom;
    return a.custom && a.name < b.name;
  });
  for (Group& group : groups) {
    std::stable_sort(group.versions.begin(), group.versions.end(), [](const Version& a, const Version& b) {
      if (a.custom != b.custom) return a.custom;
      return a.custom && version_precedes(a.name, b.name);
    });
    for (Version& version : group.versions) {
      if (!version.custom) continue;
      std::stable_sort(version.resources.begin(), version.resources.end(),
                       [](const types::Resource* a, const types::Resource* b) { return a->plural < b->plural; });
    }
  }
  return groups;
}

Value strings(Arena& arena, std::span<const std::string_view> texts) {
  ListBuilder list(arena);
  for (std::string_view text : texts) list.add(Value::string(text));
  return list.build();
}

Value version_entry(Arena& arena, std::string_view group, std::string_view version) {
  MapBuilder entry(arena);
  entry.add("groupVersion", Value::string(arena, api_version_of(group, version)));
  entry.add("version", Value::string(version));
  return entry.build();
}

void add_group_members(Arena& arena, const Group& group, MapBuilder& document) {
  document.add("name", Value::string(group.name));
  ListBuilder versions(arena);
  for (const Version& version : group.versions) versions.add(version_entry(arena, group.name, version.name));
  document.add("versions", versions.build());
  document.add("preferredVersion", version_entry(arena, group.name, group.versions.front().name));
}

Value resource_entry(Arena& arena, const types::Resource& resource) {
  MapBuilder entry(arena);
  entry.add("name", Value::string(resource.plural));
  entry.add("singularName", Value::string(resource.singular));
  entry.add("namespaced", Value::boolean(resource.namespaced));
  entry.add("kind", Value::string(resource.kind));
  entry.add("verbs", strings(arena, resource.verbs));
  if (!resource.short_names.empty()) entry.add("shortNames", strings(arena, resource.short_names));
  if (!resource.categories.empty()) entry.add("categories", strings(arena, resource.categories));
  if (const std::string hash = storage_version_hash(resource); !hash.empty())
    entry.add("storageVersionHash", Value::string(arena, hash));
  return entry.build();
}

Value subresource_entry(Arena& arena, const types::Resource& resource, const types::Subresource& subresource) {
  MapBuilder entry(arena);
  entry.add("name", Value::string(arena, std::string(resource.plural) + "/" + std::string(subresource.name)));
  entry.add("singularName", Value::string(""));
  entry.add("namespaced", Value::boolean(resource.namespaced));
  if (!subresource.version.empty()) {
    if (!subresource.group.empty()) entry.add("group", Value::string(subresource.group));
    entry.add("version", Value::string(subresource.version));
  }
  entry.add("kind", Value::string(subresource.kind));
  entry.add("verbs", strings(arena, subresource.verbs));
  return entry.build();
}

Value kind_entry(Arena& arena, std::string_view group, std::string_view version, std::string_view kind) {
  MapBuilder entry(arena);
  entry.add("group", Value::string(group));
  entry.add("version", Value::string(version));
  entry.add("kind", Value::string(kind));
  return entry.build();
}

Value aggregated_resource(Arena& arena, const types::Resource& resource, bool custom) {
  // Built-in resources omit the group and version if they are their own; custom ones include them.
  const std::string_view own_group = custom ? resource.group : "", own_version = custom ? resource.version : "";
  MapBuilder entry(arena);
  entry.add("resource", Value::string(resource.plural));
  entry.add("responseKind", kind_entry(arena, own_group, own_version, resource.kind));
  entry.add("scope", Value::string(resource.namespaced ? "Namespaced" : "Cluster"));
  entry.add("singularResource", Value::string(resource.singular));
  entry.add("verbs", strings(arena, resource.verbs));
  if (!resource.short_names.empty()) entry.add("shortNames", strings(arena, resource.short_names));
  if (!resource.categories.empty()) entry.add("categories", strings(arena, resource.categories));
  if (!resource.subresources.empty()) {
    ListBuilder list(arena);
    for (const types::Subresource& subresource : resource.subresources) {
      const bool foreign = !subresource.version.empty();
      MapBuilder item(arena);
      item.add("subresource", Value::string(subresource.name));
      item.add("responseKind", kind_entry(arena, foreign ? subresource.group : own_group,
                                          foreign ? subresource.version : own_version, subresource.kind));
      item.add("verbs", strings(arena, subresource.verbs));
      list.add(item.build());
    }
    entry.add("subresources", list.build());
  }
  return entry.build();
}

// v3beta2 -> {3, 1 (beta), 2}; empty for names that are not Kubernetes versions.
struct ParsedVersion {
  int64_t major, stage, minor;  // Stage: 2 stable, 1 beta, 0 alpha.
};

std::optional<ParsedVersion> parse_version(std::string_view text) {
  auto number = [&text](int64_t& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc() || end == text.data() || text.front() == '0' || text.front() == '-') return false;
    text.remove_prefix(end - text.data());
    return true;
  };
  ParsedVersion version{0, 2, 0};
  if (!text.starts_with("v")) return {};
  text.remove_prefix(1);
  if (text.empty() || !number(version.major)) return {};
  if (text.empty()) return version;
  if (text.starts_with("alpha")) {
    version.stage = 0;
    text.remove_prefix(5);
  } else if (text.starts_with("beta")) {
    version.stage = 1;
    text.remove_prefix(4);
  } else {
    return {};
  }
  if (text.empty() || !number(version.minor) || !text.empty()) return {};
  return version;
}

}  // namespace

bool version_precedes(std::string_view a, std::string_view b) {
  const auto va = parse_version(a), vb = parse_version(b);
  if (va.has_value() != vb.has_value()) return va.has_value();
  if (!va) return a < b;
  if (va->stage != vb->stage) return va->stage > vb->stage;
  if (va->major != vb->major) return va->major > vb->major;
  return va->minor > vb->minor;
}

Value core_versions(Arena& arena, std::string_view server_address) {
  MapBuilder address(arena);
  address.add("clientCIDR", Value::string("0.0.0.0/0"));
  address.add("serverAddress", Value::string(arena, server_address));
  ListBuilder addresses(arena);
  addresses.add(address.build());
  ListBuilder versions(arena);
  versions.add(Value::string("v1"));
  MapBuilder document(arena);
  document.add("kind", Value::string("APIVersions"));
  document.add("versions", versions.build());
  document.add("serverAddressByClientCIDRs", addresses.build());
  return document.build();
}

Value group_list(Arena& arena, Resources resources) {
  ListBuilder list(arena);
  for (const Group& group : collect(resources)) {
    if (group.name.empty()) continue;
    MapBuilder entry(arena);
    add_group_members(arena, group, entry);
    list.add(entry.build());
  }
  MapBuilder document(arena);
  document.add("kind", Value::string("APIGroupList"));
  document.add("apiVersion", Value::string("v1"));
  document.add("groups", list.build());
  return document.build();
}

Value group(Arena& arena, Resources resources, std::string_view name) {
  for (const Group& group : collect(resources)) {
    if (group.name != name || name.empty()) continue;
    MapBuilder document(arena);
    document.add("kind", Value::string("APIGroup"));
    document.add("apiVersion", Value::string("v1"));
    add_group_members(arena, group, document);
    return document.build();
  }
  return Value::null();
}

Value resource_list(Arena& arena, Resources resources, std::string_view group, std::string_view version) {
  for (const Group& candidate : collect(resources)) {
    if (candidate.name != group) continue;
    for (const Version& served : candidate.versions) {
      if (served.name != version) continue;
      // The paths of a built-in group serve built-in versions only.
      if (served.custom && !candidate.custom) return Value::null();
      ListBuilder list(arena);
      for (const types::Resource* resource : served.resources) {
        list.add(resource_entry(arena, *resource));
        for (const types::Subresource& subresource : resource->subresources)
          list.add(subresource_entry(arena, *resource, subresource));
      }
      MapBuilder document(arena);
      document.add("kind", Value::string("APIResourceList"));
      if (!group.empty()) document.add("apiVersion", Value::string("v1"));
      document.add("groupVersion", Value::string(arena, api_version_of(group, version)));
      document.add("resources", list.build());
      return document.build();
    }
  }
  return Value::null();
}

Value aggregated(Arena& arena, Resources resources, Part part) {
  ListBuilder items(arena);
  for (const Group& group : collect(resources)) {
    if (group.name.empty() != (part == Part::Core)) continue;
    MapBuilder metadata(arena);
    if (!group.name.empty()) metadata.add("name", Value::string(group.name));
    ListBuilder versions(arena);
    for (const Version& version : group.versions) {
      ListBuilder list(arena);
      for (const types::Resource* resource : version.resources)
        list.add(aggregated_resource(arena, *resource, version.custom));
      MapBuilder entry(arena);
      entry.add("version", Value::string(version.name));
      entry.add("resources", list.build());
      entry.add("freshness", Value::string("Current"));
      versions.add(entry.build());
    }
    MapBuilder item(arena);
    item.add("metadata", metadata.build());
    item.add("versions", versions.build());
    items.add(item.build());
  }
  MapBuilder document(arena);
  document.add("kind", Value::string("APIGroupDiscoveryList"));
  document.add("apiVersion", Value::string("apidiscovery.k8s.io/v2"));
  document.add("metadata", Value::empty_map());
  document.add("items", items.build());
  return document.build();
}

std::string aggregated_etag(const Value& document) {
  Arena arena;
  MapBuilder hashed(arena);
  for (const Member& member : document.members()) {
    if (member.key != "kind" && member.key != "apiVersion") hashed.add(member.key, member.value);
  }
  const std::string json = codec::encode_json(hashed.build());
  std::array<unsigned char, SHA512_DIGEST_LENGTH> digest;
  SHA512(reinterpret_cast<const unsigned char*>(json.data()), json.size(), digest.data());
  return '"' + to_upper(to_hex({reinterpret_cast<const char*>(digest.data()), digest.size()})) + '"';
}

bool exists(const types::Resource& resource, const Gates& gates) {
  return resource.group != kOwnershipGroup || gates.on(Gate::OwnershipAPI);
}

std::string storage_version_hash(const types::Resource& resource) {
  if (resource.storage_prefix.empty()) return "";
  const std::string text = std::string(resource.storage_group) + "/" + std::string(resource.storage_version) + "/" +
                           std::string(resource.kind);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  constexpr size_t kHashedBytes = 8;
  return base64_encode({reinterpret_cast<const char*>(digest.data()), kHashedBytes});
}

}  // namespace holdfast::discovery
