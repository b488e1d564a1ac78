// growth: looks for requests whose cost grows faster than their size.
//
//   growth [--seconds N] [--size N] [--only TEXT] [--all] [--verbose]
//
// --all: also what kinds share, for each of them (the templates of workloads: thousands of lists).
//
// Runs the API in this process and sends it requests that contain a list or a map of n items, of 2n and of 4n: for
// every list and map of every built-in kind (the catalog knows them), for custom resources, and for headers and query
// parameters. Items are equal or different, minimal or complete; objects are created, updated with their items in
// another order, applied by two managers, with unset markers in place of their items, printed as Tables and YAML. Users
// who hold n rules write roles of n rules, and n objects are listed with selectors of n values. Of each request it
// measures the size of the response, the bytes allocated by the process, and its CPU time. What grows with n^1.5 or
// faster is reported, and fails.
//
// The first two are exact. CPU time is not: it only counts if it is more than a few milliseconds, and if the least of
// several runs shows the same growth twice. Where it seems to grow but is too short to tell, four times as many items
// are tried.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/testing.h"
#include "base/base64.h"
#include "base/strings.h"
#include "codec/codec.h"
#include "types/types.h"

// --- Counting what is allocated ---

namespace {
std::atomic<uint64_t> allocated_bytes{0};

void* counted(size_t bytes, size_t alignment) {
  allocated_bytes.fetch_add(bytes, std::memory_order_relaxed);
  void* memory = alignment <= alignof(std::max_align_t)
                     ? std::malloc(bytes == 0 ? 1 : bytes)
                     : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

void* operator new(size_t bytes) { return counted(bytes, 0); }
void* operator new[](size_t bytes) { return counted(bytes, 0); }
void* operator new(size_t bytes, std::align_val_t alignment) { return counted(bytes, static_cast<size_t>(alignment)); }
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace holdfast {
namespace {

using api::testing::InProcess;
using types::Field;
using types::Resource;
using types::Shape;
using types::Type;

std::string number(size_t i) { return std::to_string(i); }

// --- What is measured ---

struct Cost {
  double allocated = 0, answered = 0, seconds = 0;
};

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// What is known to grow, and why it is not fixed. These are reported without failing.
struct Known {
  std::string_view part;  // Of the name of the request.
  std::string_view why;
  int status = 0;  // Of the response; 0 for any.
  bool only_cpu = false;
};
constexpr Known kKnown[] = {
    {", update in another order", "the difference of immutable fields is looked for, with at most 8 million steps", 422,
     true},
    {"deep map, list as application/yaml", "each line is indented by the depth of its value"},
    {"deep unset markers, list as application/yaml", "each line is indented by the depth of its value"},
    {"deep map with a leaf in each, list as application/yaml", "each line is indented by the depth of its value"},
};

// A request of a given number of items; the response does not matter, except to prepare further requests.
using Request = std::function<net::ClientRequest(size_t count)>;

struct Options {
  double seconds = 45;
  size_t size = 300;
  std::string only;
  bool all = false, verbose = false;
};

class Search {
 public:
  explicit Search(const Options& options) : options_(options), begin_(cpu_seconds()) {}

  // Where requests go from now on.
  void use(InProcess& server) { server_ = &server; }
  bool over() const { return cpu_seconds() - begin_ > options_.seconds; }
  bool wants(const std::string& name) const {
    return options_.only.empty() || name.find(options_.only) != std::string::npos;
  }
  size_t size() const { return options_.size; }

  Result<net::ClientResponse> send(net::ClientRequest request) {
    request.headers.emplace_back("user-agent", "growth/1");
    if (!request.body.empty() && std::none_of(request.headers.begin(), request.headers.end(),
                                              [](const auto& header) { return header.first == "content-type"; })) {
      request.headers.emplace_back("content-type", "application/json");
    }
    ++requests_;
    return server_->send(std::move(request));
  }
  int status_of(net::ClientRequest request) {
    const Result<net::ClientResponse> response = send(std::move(request));
    return response ? response->status : 0;
  }

  // `undo` runs after each request, unmeasured.
  void measure(const std::string& name, const Request& request, const std::function<void()>& undo = nullptr) {
    if (!wants(name)) return;
    ++measured_;
    const size_t n = options_.size;
    const Cost few = cost(request, n, undo), many = cost(request, 4 * n, undo);
    if (options_.verbose) {
      printf("%-100s %10.0f B %10.0f B answered %7.1f ms, of %d\n", name.c_str(), many.allocated, many.answered,
             many.seconds * 1e3, last_status_);
    }
    std::string found;
    if (grows(few.answered, many.answered, kLeastAnswered)) found += " response";
    if (grows(few.allocated, many.allocated, kLeastAllocated)) found += " memory";
    size_t times = 1;
    if (grows(few.seconds, many.seconds, kLeastSeconds)) {
      if (stays_slow(request, undo, n)) found += " CPU";
    } else if (many.seconds > kSuspectSeconds && many.seconds > kSuspectGrowth * few.seconds) {
      // Too fast to tell with so few items.
      times = 4;
      if (grows(many.seconds, cost(request, 4 * times * n, undo).seconds, kLeastSeconds) &&
          stays_slow(request, undo, times * n)) {
        found += " CPU";
      }
    }
    if (found.empty()) return;
    const Cost middle = cost(request, 2 * n, undo);
    const auto* known = std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& one) {
      return name.find(one.part) != std::string::npos && (one.status == 0 || one.status == last_status_) &&
             (!one.only_cpu || found == " CPU");
    });
    const bool is_known = known != std::end(kKnown);
    printf("%s %s:%s\n", is_known ? "known to grow" : "GROWS", name.c_str(), found.c_str());
    if (is_known) printf("    %s\n", std::string(known->why).c_str());
    std::vector<std::pair<size_t, Cost>> shown = {{n, few}, {2 * n, middle}, {4 * n, many}};
    if (times > 1) shown.emplace_back(4 * times * n, cost(request, 4 * times * n, undo));
    for (const auto& [count, at] : shown) {
      printf("    %6zu items: %12.0f bytes allocated, %10.0f answered, %8.2f ms (%d)\n", count, at.allocated,
             at.answered, at.seconds * 1e3, last_status_);
    }
    fflush(stdout);
    if (!is_known) ++findings_;
  }

  int report() const {
    printf("%zu requests measured, %zu sent, in %.0f CPU seconds; %zu grow\n", measured_, requests_,
           cpu_seconds() - begin_, findings_);
    return findings_ == 0 ? 0 : 1;
  }

 private:
  // Four times as many items may cost eight times as much: n^1.5.
  static constexpr double kMostGrowth = 8;
  static constexpr double kLeastAnswered = 64e3, kLeastAllocated = 3e6, kLeastSeconds = 0.015;
  // What is tried again with more items.
  static constexpr double kSuspectGrowth = 5.5, kSuspectSeconds = 0.001;

  static bool grows(double few, double many, double least) { return many > least && many > kMostGrowth * few; }

  Cost cost(const Request& request, size_t count, const std::function<void()>& undo) {
    net::ClientRequest made = request(count);
    const uint64_t allocated = allocated_bytes.load();
    const double begin = cpu_seconds();
    const Result<net::ClientResponse> response = send(std::move(made));
    Cost cost;
    cost.seconds = cpu_seconds() - begin;
    cost.allocated = static_cast<double>(allocated_bytes.load() - allocated);
    last_status_ = response ? response->status : 0;
    if (response) {
      cost.answered = static_cast<double>(response->body.size());
      for (const auto& [name, value] : response->headers) cost.answered += static_cast<double>(value.size());
    }
    if (undo) undo();
    return cost;
  }

  // The least of several runs, at three sizes.
  bool stays_slow(const Request& request, const std::function<void()>& undo, size_t n) {
    const auto least = [&](size_t count) {
      double seconds = cost(request, count, undo).seconds;
      for (int i = 0; i < 4; ++i) seconds = std::min(seconds, cost(request, count, undo).seconds);
      return seconds;
    };
    const double few = least(n), middle = least(2 * n), many = least(4 * n);
    return grows(few, many, kLeastSeconds) && many > 2.5 * middle && middle > 2 * few;
  }

  const Options options_;
  const double begin_;
  InProcess* server_ = nullptr;
  size_t measured_ = 0, requests_ = 0, findings_ = 0;
  int last_status_ = 0;
};

// --- Values of the catalog's types ---

enum class Fill : uint8_t { Required, Scalars };

// The i-th value of a type. Different numbers make different values.
Value value_of(Arena& arena, const Type& type, const Field* field, size_t i, Fill fill, int depth);

Value struct_of(Arena& arena, const Type& type, size_t i, Fill fill, int depth) {
  MapBuilder map(arena);
  for (const Field* field : type.members) {
    if (!field->exists(nullptr)) continue;
    const Shape shape = field->type->shape;
    const bool scalar = shape != Shape::Struct && shape != Shape::List && shape != Shape::Map && shape != Shape::Any &&
                        shape != Shape::Raw && shape != Shape::Bool;
    // Names and keys are often required without saying so.
    const bool named =
        shape == Shape::String && (field->name == "name" || field->name == "key" || field->name == "uid");
    if (!field->required && !named && (fill != Fill::Scalars || !scalar)) continue;
    if (depth > 6) continue;
    map.add(field->name, value_of(arena, *field->type, field, i, Fill::Required, depth + 1));
  }
  return map.build();
}

Value value_of(Arena& arena, const Type& type, const Field* field, size_t i, Fill fill, int depth) {
  if (field != nullptr && !field->enum_values.empty()) {
    return Value::string(field->enum_values[i % field->enum_values.size()]);
  }
  switch (type.shape) {
    case Shape::Struct:
      return struct_of(arena, type, i, fill, depth);
    case Shape::Bool:
      return Value::boolean(true);
    case Shape::Int32:
    case Shape::Int64:
      if (field != nullptr && field->name.ends_with("ode")) return Value::integer(420);  // Modes of files.
      return Value::integer(static_cast<int64_t>(i % 60000 + 1));
    case Shape::Double:
      return Value::number(static_cast<double>(i) + 0.5);
    case Shape::Quantity:
      return Value::string(arena, number(i % 1000 + 1));
    case Shape::IntOrString:
      return Value::integer(static_cast<int64_t>(i % 60000 + 1));
    case Shape::Bytes:
      return Value::string(arena, base64_encode("x" + number(i)));
    case Shape::Time:
    case Shape::MicroTime: {
      // The higher, the earlier: lists that are sorted by time are in reverse.
      char text[32];
      const size_t minutes = 500'000 - i % 500'000;
      snprintf(text, sizeof text, "20%02zu-%02zu-%02zuT%02zu:%02zu:00%s", 10 + minutes / 60 / 24 / 28 / 12,
               minutes / 60 / 24 / 28 % 12 + 1, minutes / 60 / 24 % 28 + 1, minutes / 60 % 24, minutes % 60,
               type.shape == Shape::Time ? "Z" : ".000000Z");
      return Value::string(arena, text);
    }
    case Shape::Duration:
      return Value::string(arena, number(i % 1000 + 1) + "s");
    case Shape::FieldsV1:
    case Shape::Raw:
      return Value::raw(arena.copy("{\"f:data\":{\"f:x" + number(i) + "\":{}}}"));
    case Shape::List: {
      ListBuilder list(arena);
      list.add(value_of(arena, *type.element, nullptr, i, fill, depth + 1));
      return list.build();
    }
    case Shape::Map: {
      MapBuilder map(arena);
      map.add(arena.copy("k" + number(i)), value_of(arena, *type.element, nullptr, i, fill, depth + 1));
      return map.build();
    }
    case Shape::SchemaOrBool:
    case Shape::SchemaOrArray:
    case Shape::SchemaOrStringArray:
      return Value::empty_map();
    default: {
      const std::string_view name = field == nullptr ? "" : field->name;
      if (name == "apiVersion" || name == "version") return Value::string("v1");
      // Of managers. Only ten that update are kept.
      if (name == "operation") return Value::string(i % 8 == 0 ? "Update" : "Apply");
      if (name == "fieldsType") return Value::string("FieldsV1");
      if (name == "effect") return Value::string("NoSchedule");
      if (name == "operator") return Value::string("Exists");
      if (name == "ip" || name == "podIP")
        return Value::string(arena, "10.0." + number(i / 250 % 250) + "." + number(i % 250 + 1));
      if (name == "mountPath" || name == "devicePath") return Value::string(arena, "/x" + number(i));
      return Value::string(arena, "x" + number(i));
    }
  }
}

// A list or a map of some kind.
struct Place {
  const Resource* resource;
  std::vector<const Field*> path;  // The last one is a list or a map.

  std::string text() const {
    std::string text(resource->kind);
    for (const Field* field : path) text += "." + std::string(field->name);
    return text;
  }
  bool in_status() const { return path.front()->name == "status"; }
};

// Which items a list has.
enum class Items : uint8_t { Same, Different, Interleaved };

Value items_of(Arena& arena, const Field& field, size_t count, Items items, Fill fill, size_t first = 0) {
  const Type& type = *field.type;
  const bool is_map = type.shape == Shape::Map;
  ListBuilder list(arena);
  MapBuilder map(arena);
  for (size_t at = 0; at < count; ++at) {
    // Interleaved: all odd ones before all even ones.
    const size_t i = items == Items::Same ? 0
                     : items == Items::Interleaved
                         ? (2 * at + 1 < count + count % 2 ? 2 * at + 1 : 2 * (at - count / 2))
                         : at;
    const Value item = value_of(arena, *type.element, nullptr, first + i, fill, 0);
    if (is_map) {
      map.add(arena.copy("k" + number(at)), item);
    } else {
      list.add(item);
    }
  }
  return is_map ? map.build() : list.build();
}

// What an apply unsets: items, or a field in each.
enum class Unset : uint8_t { Nothing, Items, Fields };

bool has_items_with_markers(const Type& type) {
  if (type.shape == Shape::Map) return type.map_kind == types::MapKind::Granular;
  return type.list_kind != types::ListKind::Atomic;
}

Value unset_marker(Arena& arena) {
  MapBuilder marker(arena);
  marker.add(ownership::kUnsetKey, Value::string("unset"));
  return marker.build();
}

// The list or map with markers; nullopt if its items have no such fields.
std::optional<Value> with_markers(Arena& arena, const Type& type, const Value& items, Unset unset) {
  const Type& element = *type.element;
  const auto is_key = [&type](std::string_view name) {
    return std::find(type.list_keys.begin(), type.list_keys.end(), name) != type.list_keys.end();
  };
  const Field* field = nullptr;  // The one to unset.
  for (const Field* one : element.members) {
    if (field == nullptr && one->exists(nullptr) && !is_key(one->name)) field = one;
  }
  if (unset == Unset::Fields && field == nullptr) return std::nullopt;
  const auto marked = [&](const Value& item) {
    MapBuilder out(arena);
    for (const std::string_view key : type.list_keys) {
      if (const Value* value = item.find(key)) out.add(key, *value);
    }
    if (type.shape == Shape::List && type.list_kind == types::ListKind::Set) out.add(ownership::kUnsetElement, item);
    if (unset == Unset::Items) {
      out.add(ownership::kUnsetKey, Value::string("unset"));
    } else {
      out.add(field->name, unset_marker(arena));
    }
    return out.build();
  };
  if (type.shape == Shape::List) return with_each_item(arena, items, marked);
  return with_each_member(arena, items,
                          [&](const Member& member) { return std::optional<Value>(marked(member.value)); });
}

// `object` with the value at the place; what is missing on the way is created with what it requires.
Value put(Arena& arena, const Value& object, std::span<const Field* const> path, const Value& value) {
  const Field& field = *path.front();
  if (path.size() == 1) return with_member(arena, object, field.name, value);
  const Type& type = *field.type;
  const Value* found = object.find(field.name);
  const bool is_list = type.shape == Shape::List, is_map = type.shape == Shape::Map;
  const Type& inner = is_list || is_map ? *type.element : type;
  Value below = found == nullptr ? Value::null() : *found;
  std::string_view key = "k0";
  if (is_list) below = found != nullptr && found->count() > 0 ? found->items()[0] : Value::null();
  if (is_map && found != nullptr && found->count() > 0) {
    key = found->members()[0].key;
    below = found->members()[0].value;
  }
  if (!below.is_map()) below = struct_of(arena, inner, 0, Fill::Required, 0);
  below = put(arena, below, path.subspan(1), value);
  if (is_list) {
    ListBuilder list(arena);
    list.add(below);
    below = list.build();
  } else if (is_map) {
    MapBuilder map(arena);
    map.add(key, below);
    below = map.build();
  }
  return with_member(arena, object, field.name, below);
}

// Valid objects for kinds that require more than the catalog says.
std::string_view example_of(std::string_view kind) {
  static const std::map<std::string_view, std::string_view> kExamples = {
#define CONTAINERS R"("containers":[{"name":"c","image":"i"}])"
#define TEMPLATE \
  R"("selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{)" CONTAINERS "}}"
      {"Pod", R"({"spec":{)" CONTAINERS "}}"},
      {"PodTemplate", R"({"template":{"spec":{)" CONTAINERS "}}}"},
      {"Deployment", R"({"spec":{)" TEMPLATE "}}"},
      {"ReplicaSet", R"({"spec":{)" TEMPLATE "}}"},
      {"DaemonSet", R"({"spec":{)" TEMPLATE "}}"},
      {"StatefulSet", R"({"spec":{"serviceName":"s",)" TEMPLATE "}}"},
      {"Job", R"({"spec":{"template":{"spec":{"restartPolicy":"Never",)" CONTAINERS "}}}}"},
      {"CronJob",
       R"({"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never",)" CONTAINERS
       "}}}}}}"},
      {"ReplicationController",
       R"({"spec":{"selector":{"a":"b"},"template":{"metadata":{"labels":{"a":"b"}},"spec":{)" CONTAINERS "}}}}"},
      {"Service", R"({"spec":{"ports":[{"port":80}]}})"},
      {"Ingress", R"({"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}})"},
      {"NetworkPolicy", R"({"spec":{"podSelector":{}}})"},
      {"PersistentVolumeClaim",
       R"({"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1"}}}})"},
      {"PersistentVolume",
       R"({"spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1"},"hostPath":{"path":"/x"}}})"},
      {"StorageClass", R"({"provisioner":"a.b/c"})"},
      {"EndpointSlice", R"({"addressType":"IPv4","endpoints":[]})"},
      {"Endpoints", R"({"subsets":[{"addresses":[{"ip":"10.0.0.1"}],"ports":[{"port":80}]}]})"},
      {"RoleBinding", R"({"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"}})"},
      {"ClusterRoleBinding", R"({"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"}})"},
      {"HorizontalPodAutoscaler",
       R"({"spec":{"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}})"},
      {"PriorityClass", R"({"value":1})"},
      {"RuntimeClass", R"({"handler":"h"})"},
      {"CSIDriver", R"({"spec":{}})"},
      {"ControllerRevision", R"({"revision":1,"data":{"a":1}})"},
      {"PodDisruptionBudget", R"({"spec":{"minAvailable":1,"selector":{"matchLabels":{"a":"b"}}}})"},
      {"CertificateSigningRequest", R"({"spec":{"request":"eA==","signerName":"a.b/c","usages":["client auth"]}})"},
#undef TEMPLATE
#undef CONTAINERS
  };
  const auto found = kExamples.find(kind);
  return found == kExamples.end() ? std::string_view() : found->second;
}

Value base_of(Arena& arena, const Resource& resource) {
  const std::string_view example = example_of(resource.kind);
  Value object =
      example.empty() ? struct_of(arena, *resource.type, 0, Fill::Required, 0) : *codec::decode_json(arena, example);
  Value metadata = *codec::decode_json(arena, R"({"name":"x"})");
  if (resource.namespaced) metadata = with_member(arena, metadata, "namespace", Value::string("default"));
  object = with_member(arena, object, "metadata", metadata);
  const std::string version = resource.group.empty()
                                  ? std::string(resource.version)
                                  : std::string(resource.group) + "/" + std::string(resource.version);
  object = with_member(arena, object, "apiVersion", Value::string(arena, version));
  return with_member(arena, object, "kind", Value::string(resource.kind));
}

std::string collection_path(const Resource& resource) {
  return (resource.group.empty() ? "/api/" : "/apis/" + std::string(resource.group) + "/") +
         std::string(resource.version) + (resource.namespaced ? "/namespaces/default/" : "/") +
         std::string(resource.plural);
}

void collect(const Resource& resource, const Type& type, std::vector<const Field*>& path, std::set<const Field*>& seen,
             std::vector<Place>& out) {
  if (path.size() > 12) return;
  for (const Field* field : type.members) {
    if (!field->exists(nullptr) || !seen.insert(field).second) continue;
    path.push_back(field);
    const Type* below = field->type;
    if (below->shape == Shape::List || below->shape == Shape::Map) {
      out.push_back({&resource, path});
      below = below->element;
    }
    if (below->shape == Shape::Struct) collect(resource, *below, path, seen, out);
    path.pop_back();
  }
}

// Pods first: what other kinds share with them is not tried again.
std::vector<Place> all_places(bool each_kind) {
  std::vector<const Resource*> resources;
  std::set<std::pair<std::string_view, std::string_view>> known;
  for (const Resource& resource : types::builtin_resources()) {
    if (resource.type == nullptr || resource.storage_prefix.empty()) continue;
    if (known.emplace(resource.group, resource.plural).second) resources.push_back(&resource);
  }
  std::stable_sort(resources.begin(), resources.end(),
                   [](const Resource* a, const Resource* b) { return (a->kind == "Pod") > (b->kind == "Pod"); });
  std::vector<Place> places;
  std::set<const Field*> seen;
  for (const Resource* resource : resources) {
    if (each_kind) seen.clear();
    std::vector<const Field*> path;
    collect(*resource, *resource->type, path, seen, places);
  }
  return places;
}

std::vector<std::pair<std::string, std::string>> accepting(std::string type) { return {{"accept", std::move(type)}}; }

constexpr std::string_view kTable = "application/json;as=Table;v=v1;g=meta.k8s.io";

// --- The requests ---

class Objects {
 public:
  explicit Objects(Search& search) : search_(search) {}

  void try_place(const Place& place) {
    for (const Items items : {Items::Same, Items::Different}) {
      for (const Fill fill : {Fill::Required, Fill::Scalars}) try_items(place, items, fill);
    }
  }

 private:
  struct Body {
    const Place& place;
    Items items;
    Fill fill;
    size_t first = 0;
    Unset unset = Unset::Nothing;

    std::string with(size_t count) const {
      Arena arena;
      Value value = items_of(arena, *place.path.back(), count, items, fill, first);
      if (unset != Unset::Nothing) {
        value = with_markers(arena, *place.path.back()->type, value, unset).value_or(value);
      }
      return codec::encode_json(put(arena, base_of(arena, *place.resource), place.path, value));
    }
  };

  void try_items(const Place& place, Items items, Fill fill) {
    const std::string name = place.text() + (items == Items::Same ? ", same" : ", different") +
                             (fill == Fill::Required ? "" : ", complete") + " items";
    if (!search_.wants(name)) return;
    const Resource& resource = *place.resource;
    const std::string all = collection_path(resource), one = all + "/x";
    const Body body{place, items, fill};
    const auto send = [](std::string method, const std::string& path, const std::string& query) {
      return [method = std::move(method), target = path + query](const Body& sent) -> Request {
        return [=](size_t count) {
          return net::ClientRequest{
              .method = method, .target = target, .headers = accepting("application/json"), .body = sent.with(count)};
        };
      };
    };
    constexpr std::string_view kDry = "?dryRun=All";
    if (place.in_status()) {
      if (!create(resource, nullptr)) return;
      search_.measure(name + ", update of the status", send("PUT", one + "/status", std::string(kDry))(body));
      remove(one);
      return;
    }
    search_.measure(name + ", create", send("POST", all, std::string(kDry))(body));
    // The rest needs objects that can be stored, one of each size.
    const std::string small = body.with(search_.size());
    if (!create(resource, &small)) return;
    const auto stored = [&](const Request& request) -> Request {
      return [&, request](size_t count) {
        remove(one);
        const std::string text = body.with(count);
        (void)create(resource, &text);
        return request(count);
      };
    };
    if (items == Items::Different) {
      search_.measure(name + ", update in another order",
                      stored(send("PUT", one, std::string(kDry))({place, Items::Interleaved, fill})));
      search_.measure(name + ", update with other items",
                      stored(send("PUT", one, std::string(kDry))({place, Items::Different, fill, 7})));
    }
    for (const auto& [what, first] : {std::pair<std::string, size_t>{"the same", 0}, {"other", 7}}) {
      const Body sent{place, items, fill, first};
      search_.measure(name + ", apply of " + what + " items", stored([&, sent](size_t count) {
                        return net::ClientRequest{.method = "PATCH",
                                                  .target = one + "?dryRun=All&fieldManager=other",
                                                  .headers = {{"content-type", "application/apply-patch+yaml"}},
                                                  .body = sent.with(count)};
                      }));
    }
    if (items == Items::Different && fill == Fill::Required && has_items_with_markers(*place.path.back()->type)) {
      for (const auto& [what, unset] :
           {std::pair<std::string, Unset>{"items", Unset::Items}, {"fields of items", Unset::Fields}}) {
        const Body sent{place, items, fill, 0, unset};
        search_.measure(name + ", apply that unsets " + what, stored([&, sent](size_t count) {
                          return net::ClientRequest{.method = "PATCH",
                                                    .target = one + "?dryRun=All&fieldManager=other&force=true",
                                                    .headers = {{"content-type", "application/apply-patch+yaml"}},
                                                    .body = sent.with(count)};
                        }));
      }
    }
    for (const std::string& type : {std::string(kTable), std::string("application/yaml")}) {
      search_.measure(name + ", list as " + type, stored([&, type](size_t) {
                        return net::ClientRequest{
                            .method = "GET", .target = all, .headers = accepting(type), .body = {}};
                      }));
    }
    remove(one);
  }

  bool create(const Resource& resource, const std::string* text) {
    Arena arena;
    const std::string made = text != nullptr ? *text : codec::encode_json(base_of(arena, resource));
    const int status =
        search_.status_of({.method = "POST", .target = collection_path(resource), .headers = {}, .body = made});
    return status == 201;
  }
  void remove(const std::string& path) {
    (void)search_.status_of({.method = "DELETE", .target = path + "?gracePeriodSeconds=0", .headers = {}, .body = {}});
    (void)search_.status_of({.method = "PATCH",
                             .target = path,
                             .headers = {{"content-type", "application/merge-patch+json"}},
                             .body = R"({"metadata":{"finalizers":null}})"});
  }

  Search& search_;
};

// Custom resources: shapes that no built-in kind has.
class CustomObjects {
 public:
  explicit CustomObjects(Search& search) : search_(search) {}

  void run() {
    const int made = search_.status_of(
        {.method = "POST",
         .target = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
         .headers = {},
         .body =
             R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.growth.test"},)"
             R"("spec":{"group":"growth.test","names":{"kind":"Thing","plural":"things"},"scope":"Namespaced","versions":)"
             R"([{"name":"v1","served":true,"storage":true,"additionalPrinterColumns":[)"
             R"({"name":"A","type":"string","jsonPath":".spec..*"},{"name":"B","type":"string","jsonPath":".spec..*..*..*..*"},)"
             R"({"name":"C","type":"string","jsonPath":".spec.keyed[?(@.k==\"x1\")]"}],)"
             R"("schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",)"
             R"("x-kubernetes-preserve-unknown-fields":true,"properties":{)"
             R"("keyed":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":)"
             R"({"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"string"}}}},)"
             R"("set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},)"
             R"("list":{"type":"array","items":{"type":"string"}},)"
             R"("numbers":{"type":"array","items":{"type":"integer","minimum":5}},)"
             R"("structs":{"type":"object","additionalProperties":{"type":"object","properties":{"a":{"type":"string",)"
             R"("default":"x"},"s":{"type":"object","properties":{"b":{"type":"string"},"c":{"type":"string",)"
             R"("default":"d"}}}}}},)"
             R"("map":{"type":"object","additionalProperties":{"type":"string"}}}}}}}}]}})"});
    if (made != 201) {
      printf("the definition was rejected with %d\n", made);
      exit(2);
    }
    using Make = std::function<std::string(size_t count, const std::string& value)>;
    const auto list = [](size_t count, const std::function<std::string(size_t)>& item) {
      std::string text;
      for (size_t i = 0; i < count; ++i) text += (i > 0 ? "," : "") + item(i);
      return text;
    };
    const std::vector<std::pair<std::string, Make>> shapes = {
        {"keyed list",
         [&](size_t n, const std::string& v) {
           return R"("keyed":[)" +
                  list(n, [&](size_t i) { return R"({"k":"x)" + number(i) + R"(","v":")" + v + "\"}"; }) + "]";
         }},
        {"keyed list with equal keys",
         [&](size_t n, const std::string& v) {
           return R"("keyed":[)" + list(n, [&](size_t) { return R"({"k":"x","v":")" + v + "\"}"; }) + "]";
         }},
        {"set",
         [&](size_t n, const std::string& v) {
           return R"("set":[)" + list(n, [&](size_t i) { return "\"" + v + number(i) + "\""; }) + "]";
         }},
        {"set with equal items",
         [&](size_t n, const std::string& v) {
           return R"("set":[)" + list(n, [&](size_t) { return "\"" + v + "\""; }) + "]";
         }},
        {"list",
         [&](size_t n, const std::string& v) {
           return R"("list":[)" + list(n, [&](size_t i) { return "\"" + v + number(i) + "\""; }) + "]";
         }},
        {"invalid numbers",
         [&](size_t n, const std::string&) {
           return R"("numbers":[)" + list(n, [&](size_t) { return std::string("1"); }) + "]";
         }},
        {"map",
         [&](size_t n, const std::string& v) {
           return R"("map":{)" + list(n, [&](size_t i) { return "\"x" + number(i) + R"(":")" + v + "\""; }) + "}";
         }},
        {"unknown members",
         [&](size_t n, const std::string& v) {
           return list(n, [&](size_t i) { return "\"x" + number(i) + R"(":")" + v + "\""; });
         }},
        {"unset markers",
         [&](size_t n, const std::string&) {
           return R"("map":{)" +
                  list(n, [&](size_t i) { return "\"x" + number(i) + R"(":{"k8s_io__value":"unset"})"; }) + "}";
         }},
        {"unset markers below a long key",
         [&](size_t n, const std::string&) {
           return "\"" + std::string(8 * n, 'k') + "\":{" +
                  list(n, [&](size_t i) { return "\"x" + number(i) + R"(":{"k8s_io__value":"unset"})"; }) + "}";
         }},
        {"unset markers in structs that do not exist",
         [&](size_t n, const std::string&) {
           return R"("structs":{)" +
                  list(n, [&](size_t i) { return "\"x" + number(i) + R"(":{"s":{"b":{"k8s_io__value":"unset"}}})"; }) +
                  "}";
         }},
        {"unset markers of items",
         [&](size_t n, const std::string&) {
           return R"("keyed":[)" +
                  list(n, [&](size_t i) { return R"({"k":"x)" + number(i) + R"(","k8s_io__value":"unset"})"; }) + "]";
         }},
        {"unset markers of elements",
         [&](size_t n, const std::string&) {
           return R"("set":[)" +
                  list(n, [&](size_t i) { return R"({"k8s_io__value":"unset","value":"v)" + number(i) + "\"}"; }) + "]";
         }},
        {"doubled markers",
         [&](size_t n, const std::string& v) {
           return list(n, [&](size_t i) {
             return "\"x" + number(i) + R"(":{"k8s_io__value":{"k8s_io__value":")" + v + R"("}})";
           });
         }},
        {"deep unset markers",
         [&](size_t n, const std::string&) {
           const size_t depth = std::min<size_t>(n / 2, 900);
           std::string text;
           for (size_t i = 0; i < depth; ++i) text += "\"abcdefgh\":{";
           text += list(n / 2, [&](size_t i) { return "\"x" + number(i) + R"(":{"k8s_io__value":"unset"})"; });
           return text + std::string(depth, '}');
         }},
        // As many levels as leaves in the innermost map: each leaf has a long path.
        {"deep map",
         [&](size_t n, const std::string& v) {
           const size_t depth = std::min<size_t>(n / 2, 900);
           std::string text;
           for (size_t i = 0; i < depth; ++i) text += "\"abcdefgh\":{";
           text += list(n / 2, [&](size_t i) { return "\"x" + number(i) + R"(":")" + v + "\""; });
           return text + std::string(depth, '}');
         }},
        {"deep map with a leaf in each",
         [&](size_t n, const std::string& v) {
           const size_t depth = std::min<size_t>(n / 2, 900);
           std::string text;
           for (size_t i = 0; i < depth; ++i) text += R"("leaf":")" + v + R"(","abcdefgh":{)";
           return text + std::string(depth, '}');
         }},
        {"one long key",
         [&](size_t n, const std::string& v) {
           return "\"" + std::string(8 * n, 'k') + "\":{" +
                  list(n, [&](size_t i) { return "\"x" + number(i) + R"(":")" + v + "\""; }) + "}";
         }},
    };
    for (const auto& [what, make] : shapes) try_shape(what, make);
  }

 private:
  template <class Make>
  void try_shape(const std::string& what, const Make& make) {
    const std::string name = "custom resource, " + what;
    if (!search_.wants(name) || search_.over()) return;
    const std::string all = "/apis/growth.test/v1/namespaces/default/things", one = all + "/x";
    const auto body = [make](size_t count, const std::string& value) {
      return R"({"apiVersion":"growth.test/v1","kind":"Thing","metadata":{"name":"x"},"spec":{)" + make(count, value) +
             "}}";
    };
    const auto json = [&](const std::string& method, const std::string& target, const std::string& value) -> Request {
      return [=](size_t count) {
        return net::ClientRequest{.method = method, .target = target, .headers = {}, .body = body(count, value)};
      };
    };
    const auto apply = [&](const std::string& manager, const std::string& value, const std::string& more) {
      return [=](size_t count) {
        return net::ClientRequest{.method = "PATCH",
                                  .target = one + "?fieldManager=" + manager + more,
                                  .headers = {{"content-type", "application/apply-patch+yaml"}},
                                  .body = body(count, value)};
      };
    };
    const auto stored = [&](const Request& request) -> Request {
      return [&, request](size_t count) {
        (void)search_.status_of({.method = "DELETE", .target = one, .headers = {}, .body = {}});
        (void)search_.send(apply("first", "v", "")(count));
        return request(count);
      };
    };
    search_.measure(name + ", create", json("POST", all + "?dryRun=All", "v"));
    search_.measure(name + ", create, strict", json("POST", all + "?dryRun=All&fieldValidation=Strict", "v"));
    search_.measure(name + ", update", stored(json("PUT", one + "?dryRun=All", "w")));
    search_.measure(name + ", apply of a new object", apply("first", "v", "&dryRun=All"));
    search_.measure(name + ", apply of the same", stored(apply("second", "v", "&dryRun=All")));
    search_.measure(name + ", apply that conflicts", stored(apply("second", "w", "&dryRun=All")));
    search_.measure(name + ", apply by force", stored(apply("second", "w", "&dryRun=All&force=true")));
    for (const std::string& type :
         {std::string("application/json"), std::string(kTable), std::string("application/yaml")}) {
      search_.measure(name + ", list as " + type, stored([&, type](size_t) {
                        return net::ClientRequest{
                            .method = "GET", .target = all, .headers = accepting(type), .body = {}};
                      }));
    }
    (void)search_.status_of({.method = "DELETE", .target = one, .headers = {}, .body = {}});
  }

  Search& search_;
};

// Several objects: users who hold n rules, and selectors of n values for n objects. The objects of each size are in a
// namespace of their own.
class SeveralObjects {
 public:
  explicit SeveralObjects(Search& search) : search_(search) {}

  void run() {
    InProcess server({}, InProcess::Begin::Ready, InProcess::Authorization::Rbac);
    search_.use(server);
    server_ = &server;
    try_permissions();
    try_selectors();
  }

 private:
  using Make = std::function<std::string(size_t count)>;

  static std::string listed(size_t count, const std::function<std::string(size_t)>& item) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += (i > 0 ? "," : "") + item(i);
    return text;
  }
  static std::string rule(const std::string& verbs, const std::string& resources, const std::string& names) {
    return R"({"apiGroups":[""],"verbs":[)" + verbs + R"(],"resources":[)" + resources + R"(],"resourceNames":[)" +
           names + "]}";
  }
  static std::string quoted(const std::string& text) { return '"' + text + '"'; }
  static std::string distinct(size_t count) {
    return listed(count, [](size_t i) { return quoted("t" + number(i)); });
  }
  void must(const std::string& target, const std::string& body) {
    const api::testing::Answer answer = server_->call("POST", target, body);
    if (answer.status == 201) return;
    printf("%s: %d %s\n", target.c_str(), answer.status, answer.body.substr(0, 300).c_str());
    exit(2);
  }

  // The namespace of this name and count, filled by `fill` if it is new.
  std::string space(const std::string& name, size_t count, const std::function<void(const std::string& ns)>& fill) {
    const std::string ns = name + "-" + number(count);
    if (!made_.insert(ns).second) return ns;
    server_->become("root", {"system:masters"});
    must("/api/v1/namespaces", R"({"metadata":{"name":")" + ns + "\"}}");
    fill(ns);
    return ns;
  }

  void try_permissions() {
    const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/";
    const auto each = [](const std::function<std::string(std::string text)>& make) -> Make {
      return [=](size_t n) { return listed(n, [&](size_t i) { return make(quoted("t" + number(i))); }); };
    };
    const std::vector<std::pair<std::string, Make>> forms = {
        {"rules with a name each", each([](const auto& text) { return rule(R"("get")", R"("pods")", text); })},
        {"rules with a verb each", each([](const auto& text) { return rule(text, R"("pods")", ""); })},
        {"rules with a resource each", each([](const auto& text) { return rule(R"("get")", text, ""); })},
        {"a rule with many names", [](size_t n) { return rule(R"("get")", R"("pods")", distinct(n)); }},
        {"a rule with many verbs and resources", [](size_t n) { return rule(distinct(n / 2), distinct(n / 2), ""); }},
        {"a rule with a long verb and many resources",
         [](size_t n) { return rule(quoted(std::string(4 * n, 'v')), distinct(n / 2), ""); }},
    };
    size_t form = 0;
    for (const auto& [what, make] : forms) {
      for (const auto& [held, bindings] :
           {std::pair<std::string, bool>{"held", false}, {"held by many bindings", true}, {"not held", false}}) {
        const std::string name = "RBAC, " + what + ", " + held;
        ++form;
        const bool grants = held != "not held";
        if (!search_.wants(name)) continue;
        const auto review = [](const std::string& ns) {
          return net::ClientRequest{.method = "POST",
                                    .target = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
                                    .headers = accepting("application/json"),
                                    .body = R"({"spec":{"namespace":")" + ns + "\"}}"};
        };
        const auto prepared = [&, make = make, bindings = bindings](size_t count) {
          const std::string ns = space("rbac-" + number(form), count, [&](const std::string& fresh) {
            must(rbac + fresh + "/roles", R"({"metadata":{"name":"held"},"rules":[)" + make(count) + "]}");
            const auto bind = [&](const std::string& binding, const std::string& user) {
              must(rbac + fresh + "/rolebindings",
                   R"({"metadata":{"name":")" + binding +
                       R"("},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"held"},)"
                       R"("subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":")" +
                       user + "\"}]}");
            };
            for (size_t i = 0; grants && i < (bindings ? count : 1); ++i) bind("b" + number(i), "ann");
            bind("last", "bob");
            // Many changes take effect in the background, which is not to be measured: wait for the last one.
            server_->become("bob");
            while (true) {
              Result<net::ClientResponse> seen = search_.send(review(fresh));
              if (!seen || seen->body.find("\"resources\":[\"") != std::string::npos) break;
            }
          });
          server_->become("ann");
          return ns;
        };
        search_.measure(name + ", rules review", [&](size_t count) { return review(prepared(count)); });
        search_.measure(name + ", create", [&, make = make](size_t count) {
          return net::ClientRequest{.method = "POST",
                                    .target = rbac + prepared(count) + "/roles?dryRun=All",
                                    .headers = accepting("application/json"),
                                    .body = R"({"metadata":{"name":"x"},"rules":[)" + make(count) + "]}"};
        });
      }
    }
    server_->become("root", {"system:masters"});
  }

  void try_selectors() {
    const auto values = [](size_t n) { return listed(n, [](size_t i) { return "w" + number(i); }); };
    const std::vector<std::pair<std::string, Make>> selectors = {
        {"a label in many values", [&](size_t n) { return "labelSelector=a%20in%20(" + values(n) + ")"; }},
        {"a label not in many values", [&](size_t n) { return "labelSelector=a%20notin%20(v0," + values(n) + ")"; }},
        {"many labels that do not exist",
         [](size_t n) { return "labelSelector=!a," + listed(n, [](size_t i) { return "!x" + number(i); }); }},
        {"many other names",
         [](size_t n) {
           return "labelSelector=!b&fieldSelector=metadata.namespace!%3Ddefault," +
                  listed(n, [](size_t i) { return "metadata.name!%3Dx" + number(i); }) + "&limit=1";
         }},
    };
    for (const auto& [what, make] : selectors) {
      search_.measure("selector, " + what, [&, make = make](size_t count) {
        const std::string ns = space("selected", count, [&](const std::string& fresh) {
          for (size_t i = 0; i < count; ++i) {
            must("/api/v1/namespaces/" + fresh + "/configmaps",
                 R"({"metadata":{"name":"c)" + number(i) + R"(","labels":{"a":"v)" + number(i) + "\"}}}");
          }
        });
        return net::ClientRequest{.method = "GET",
                                  .target = "/api/v1/namespaces/" + ns + "/configmaps?" + make(count),
                                  .headers = accepting("application/json"),
                                  .body = {}};
      });
    }
  }

  Search& search_;
  InProcess* server_ = nullptr;
  std::set<std::string> made_;
};

// Headers and parameters that repeat one or two tokens.
void try_headers(Search& search) {
  const std::vector<std::string> tokens = {"\"", "\\\"", "\\", ";", ",",   "=", "a",        "/",      "+",
                                           " ",  "-",    "!",  "(", "%01", "<", "*/*;q=1,", "a=\"\";"};
  std::vector<std::string> repeated = tokens;
  for (const std::string& one : tokens) {
    for (const std::string& two : {";", ",", "\"", "a", "="}) {
      if (one != two) repeated.push_back(one + two);
    }
  }
  const std::string path = "/api/v1/namespaces/default/configmaps";
  const auto text = [](const std::string& start, const std::string& token, size_t count) {
    std::string out = start;
    for (size_t i = 0; i < 4 * count; ++i) out += token;
    return out;
  };
  for (const std::string& token : repeated) {
    if (search.over()) return;
    for (const std::string& start : {std::string(), std::string("application/json;a="), std::string("\"")}) {
      for (const std::string& header : {"accept", "content-type", "sec-websocket-protocol", "if-none-match"}) {
        search.measure("header " + header + ": " + start + token + " repeated", [&](size_t count) {
          return net::ClientRequest{
              .method = "GET", .target = path, .headers = {{header, text(start, token, count)}}, .body = {}};
        });
      }
    }
    std::string encoded;
    for (const char c : token) {
      if (c == '%') {
        encoded += c;
        continue;
      }
      append_percent_encoded(encoded, c);
    }
    if (token.starts_with("%01")) encoded = token;
    for (const std::string& parameter :
         {"labelSelector=", "labelSelector=a in (", "fieldSelector=", "fieldSelector=metadata.name=", "continue=",
          "resourceVersion=", "limit=", "dryRun=", "fieldManager=", "fieldValidation=", "propagationPolicy=", ""}) {
      std::string start;
      for (const char c : parameter) start += c == ' ' ? std::string("%20") : std::string(1, c);
      for (const std::string& method : {"GET", "POST", "DELETE"}) {
        search.measure(method + " with the query " + start + token + " repeated", [&](size_t count) {
          return net::ClientRequest{.method = method,
                                    .target = path + "?" + text(start, encoded, count),
                                    .headers = {},
                                    .body = method == "POST" ? R"({"metadata":{"name":"x"}})" : ""};
        });
      }
    }
  }
}

int run(const Options& options) {
  Search search(options);
  SeveralObjects(search).run();
  InProcess server;
  search.use(server);
  CustomObjects(search).run();
  const std::vector<Place> places = all_places(options.all);
  std::set<std::string_view> kinds;
  size_t tried = 0;
  Objects objects(search);
  for (const Place& place : places) {
    if (search.over()) break;
    objects.try_place(place);
    kinds.insert(place.resource->kind);
    ++tried;
  }
  try_headers(search);
  printf("%zu of %zu lists and maps of %zu kinds\n", tried, places.size(), kinds.size());
  return search.report();
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) {
  holdfast::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--all") {
      options.all = true;
    } else if (option == "--verbose") {
      options.verbose = true;
    } else if (i + 1 < argc && option == "--seconds") {
      options.seconds = atof(argv[++i]);
    } else if (i + 1 < argc && option == "--size") {
      options.size = static_cast<size_t>(atoll(argv[++i]));
    } else if (i + 1 < argc && option == "--only") {
      options.only = argv[++i];
    } else {
      fprintf(stderr, "growth [--seconds N] [--size N] [--only TEXT] [--all] [--verbose]\n");
      return 2;
    }
  }
  // A request that grows must not take the machine with it.
  const rlimit limit{size_t{6} << 30, size_t{6} << 30};
  setrlimit(RLIMIT_AS, &limit);
  return holdfast::run(options);
}
