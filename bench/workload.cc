#include "workload.h"

#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <random>

#include "codec/codec.h"
#include "ownership/field_set.h"
#include "types/types.h"

namespace holdfast::bench {
namespace {

// Pod-specific text in the template of an app. Each has a fixed length, so that a pod is a copy of the template with
// these places overwritten.
struct Own {
  std::string_view exemplar;  // Text in the exemplar.
  std::string_view holder;    // Text in the template.
};
constexpr Own kOwn[] = {
    {"x7k2p", "x7k2p"},                                                                // Suffix of the name.
    {"0f3f3a52-6b9e-4a51-8f0e-1c2d3e4f5a6b", "0f3f3a52-6b9e-4a51-8f0e-1c2d3e4f5a6b"},  // uid.
    {"10.42.17.203", "10.244.107.183"},
    {"q4n8v", "q4n8v"},  // Volume of the token.
    {"node-eu-west-1b-0173", "worker-0006"},
    {"10.0.17.3", "192.168.108.108"},
    {"c0ffee11d00dfeed000000000000000000000000000000000000000000000007",
     "c0ffee11d00dfeed000000000000000000000000000000000000000000000007"},
    {"91b7e4c25ad03f68be127790c3d5a84f6e20d9137bc4855fa06e31d2c87b9f54",
     "91b7e4c25ad03f68be127790c3d5a84f6e20d9137bc4855fa06e31d2c87b9f54"},
};

std::string hex(std::mt19937_64& random, size_t digits) {
  std::string out;
  while (out.size() < digits) out += "0123456789abcdef"[random() % 16];
  return out;
}
std::string word(std::mt19937_64& random, size_t letters) {
  std::string out;
  while (out.size() < letters) out += "bcdfghjklmnpqrstvwxz2456789"[random() % 27];
  return out;
}

// The pod-specific text that replaces kOwn[which].holder.
std::string own_text(size_t pod, size_t which) {
  std::mt19937_64 random(pod * 16 + which);
  char text[32];
  switch (which) {
    case 0:
    case 3:
      return word(random, 5);
    case 1:
      return hex(random, 8) + "-" + hex(random, 4) + "-4" + hex(random, 3) + "-a" + hex(random, 3) + "-" +
             hex(random, 12);
    case 2:
      std::snprintf(text, sizeof(text), "10.%03zu.%03zu.%03zu", 100 + pod / 22500 % 150, 100 + pod / 150 % 150,
                    100 + pod % 150);
      return text;
    case 4:
    case 5: {
      // A node and its address belong together.
      const size_t node = pod * 2654435761u % 1000;
      if (which == 4) {
        std::snprintf(text, sizeof(text), "worker-%04zu", node);
      } else {
        std::snprintf(text, sizeof(text), "192.168.%03zu.%03zu", 100 + node / 100, 100 + node % 100);
      }
      return text;
    }
    default:
      return hex(random, 64);
  }
}

// Pods of one app are adjacent and named in ascending key order: three characters are a counter, two are random.
constexpr std::string_view kSuffixDigits = "2456789bcdfghjklmnpqrstvwxz";
constexpr size_t kPodsPerApp = kSuffixDigits.size() * kSuffixDigits.size() * kSuffixDigits.size();
std::string suffix(size_t pod, size_t within) {
  const size_t base = kSuffixDigits.size();
  const std::string counted = {kSuffixDigits[within / base / base], kSuffixDigits[within / base % base],
                               kSuffixDigits[within % base]};
  return counted + own_text(pod, 0).substr(3);
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from == to) return;
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

std::vector<size_t> places_of(std::string_view text, std::string_view what) {
  std::vector<size_t> places;
  for (size_t at = 0; (at = text.find(what, at)) != std::string_view::npos; at += what.size()) places.push_back(at);
  return places;
}

// A Protobuf varint of five bytes, which fits the seconds of this century.
std::string seconds_varint(uint64_t seconds) {
  std::string out;
  for (; seconds >= 0x80; seconds >>= 7) out += static_cast<char>(seconds | 0x80);
  out += static_cast<char>(seconds);
  return out;
}

// FieldsV1 as nested maps, for adding entries.
struct Fields : std::map<std::string, Fields> {
  Fields& at_path(std::initializer_list<std::string_view> path) {
    Fields* node = this;
    for (std::string_view name : path) node = &(*node)[std::string(name)];
    return *node;
  }
  void from(const Value& value) {
    if (!value.is_map()) return;
    for (const Member& member : value.members()) (*this)[std::string(member.key)].from(member.value);
  }
  void write(std::string& out) const {
    out += '{';
    for (const auto& [name, below] : *this) {
      if (out.back() != '{') out += ',';
      codec::encode_json_string(name, out);
      out += ':';
      below.write(out);
    }
    out += '}';
  }
  std::string canonical() const {
    std::string text;
    write(text);
    Arena arena;
    return ownership::to_fields_v1(*ownership::parse_fields_v1(arena, text));
  }
};

constexpr const char* kVariables[] = {"DATABASE_URL", "LOG_LEVEL", "HTTP_PROXY", "KAFKA_BROKERS", "S3_BUCKET",
                                      "API_TOKEN",    "WORKERS",   "CACHE_TTL",  "FEATURE_FLAGS", "OTEL_ENDPOINT",
                                      "SENTRY_DSN",   "REGION",    "TENANT",     "QUEUE_NAME",    "MAX_CONNECTIONS"};
constexpr const char* kDomains[] = {"example.com", "internal.corp", "platform.io", "monitoring.dev", "mesh.io"};

}  // namespace

struct Workload::App {
  struct Manager {
    std::string manager, operation, subresource, fields;
    int64_t time;
    std::vector<size_t> ip_places;
  };
  std::string key_stem;  // "namespace/app-hash-".
  std::string stored;    // Template.
  std::vector<size_t> places[std::size(kOwn)];
  struct TimePlace {
    size_t at;
    uint64_t seconds;
  };
  std::vector<TimePlace> times;
  std::vector<Manager> managers;
};

Workload::Workload(Options options) : options_(options) {}
Workload::~Workload() = default;
Workload::Workload(Workload&&) noexcept = default;
Workload& Workload::operator=(Workload&&) noexcept = default;

Result<Workload> Workload::make(const std::string& exemplar, const Options& options) {
  if (options.pods > options.apps * kPodsPerApp) {
    return bad_request(std::to_string(options.apps) + " apps have names for at most " +
                       std::to_string(options.apps * kPodsPerApp) + " pods");
  }
  Result<codec::Document> parsed = codec::parse_yaml(exemplar);
  if (!parsed) return parsed.take_error();
  const std::string pod_json = codec::encode_json(parsed->root());
  const types::Resource* resource = types::find_resource("", "v1", "pods");

  Workload workload(options);
  for (size_t number = 0; number < options.apps; ++number) {
    std::mt19937_64 random(number + 1);
    auto app = std::make_unique<App>();
    char name[32], space[32];
    std::snprintf(name, sizeof(name), "app-%05zu", number);
    std::snprintf(space, sizeof(space), "team-%03zu", number * 100 / options.apps);
    const std::string hash = word(random, 10);
    app->key_stem = std::string(space) + "/" + name + "-" + hash + "-";

    std::string json = pod_json;
    for (const Own& own : kOwn) replace_all(json, own.exemplar, own.holder);
    replace_all(json, "ledger", name);
    replace_all(json, "5f7c9d8b6c", hash);
    replace_all(json, "core-banking", space);
    replace_all(
        json, "6b0f7d0e-52a5-4d0b-9a57-0d7f9f1f0c11",
        hex(random, 8) + "-" + hex(random, 4) + "-4" + hex(random, 3) + "-b" + hex(random, 3) + "-" + hex(random, 12));

    Arena arena;
    Result<Value> tree = codec::decode_json(arena, json);
    if (!tree) return tree.take_error();
    Draft draft(arena, *tree);
    std::vector<Fields> sets;
    for (const Value& entry : tree->items_at("metadata", "managedFields")) {
      Fields fields;
      fields.from(*entry.find("fieldsV1"));
      sets.push_back(std::move(fields));
      app->managers.push_back({std::string(entry.text_at("manager")),
                               std::string(entry.text_at("operation")),
                               std::string(entry.text_at("subresource")),
                               {},
                               parse_rfc3339(entry.text_at("time"))->seconds,
                               {}});
    }

    if (options.mixed) {
      Draft::Node metadata = draft.root().child("metadata");
      const auto add_pairs = [&](std::string_view where, size_t count) {
        for (size_t i = 0; i < count; ++i) {
          const std::string key =
              std::string(kDomains[random() % std::size(kDomains)]) + "/" + word(random, 4 + random() % 12);
          metadata.child(where).set(arena.copy(key), Value::string(arena, word(random, 4 + random() % 40)));
          sets[0].at_path({"f:metadata", "f:" + std::string(where), "f:" + key});
        }
      };
      add_pairs("annotations", random() % 12);
      add_pairs("labels", random() % 8);
      for (Draft::Node container : draft.root().child("spec").list("containers")) {
        const std::string item = "k:{\"name\":\"" + std::string(container.find("name")->as_string()) + "\"}";
        for (size_t i = 0, count = 3 + random() % 20; i < count; ++i) {
          const std::string variable =
              std::string(kVariables[random() % std::size(kVariables)]) + "_" + std::to_string(random() % 1000);
          MapBuilder entry(arena);
          entry.add("name", Value::string(arena, variable));
          entry.add("value", Value::string(arena, word(random, 5 + random() % 50)));
          container.append("env", entry.build());
          Fields& set = sets[0].at_path({"f:spec", "f:containers", item, "f:env", "k:{\"name\":\"" + variable + "\"}"});
          set["."];
          set["f:name"];
          set["f:value"];
        }
      }
      // Up to three additional managers: a deployer, an autoscaler, an injector.
      const size_t more = random() % 4;
      for (size_t i = 0; i < more; ++i) {
        Fields fields;
        static constexpr const char* kNames[] = {"argocd-controller", "vpa-updater", "mesh-injector"};
        if (i == 0) {
          fields.at_path({"f:metadata", "f:labels", "f:app.kubernetes.io/instance"});
          fields.at_path({"f:metadata", "f:annotations", "f:argocd.argoproj.io/tracking-id"});
        } else if (i == 1) {
          for (const char* resource_name : {"f:cpu", "f:memory"}) {
            fields.at_path(
                {"f:spec", "f:containers", "k:{\"name\":\"outbox\"}", "f:resources", "f:requests", resource_name});
          }
        } else {
          fields.at_path({"f:metadata", "f:annotations", "f:mesh.io/status"});
          fields.at_path({"f:metadata", "f:labels", "f:mesh.io/rev"});
        }
        app->managers.push_back(
            {kNames[i], i == 0 ? "Apply" : "Update", {}, fields.canonical(), app->managers[0].time + 5, {}});
      }
    }

    ListBuilder managed(arena);
    for (size_t i = 0; i < app->managers.size(); ++i) {
      App::Manager& manager = app->managers[i];
      if (i < sets.size()) manager.fields = sets[i].canonical();
      manager.ip_places = places_of(manager.fields, kOwn[2].holder);
      MapBuilder entry(arena);
      entry.add("manager", Value::string(manager.manager));
      entry.add("operation", Value::string(manager.operation));
      entry.add("apiVersion", Value::string("v1"));
      entry.add("time", Value::string(arena, format_rfc3339({manager.time, 0})));
      entry.add("fieldsType", Value::string("FieldsV1"));
      entry.add("fieldsV1", Value::raw(manager.fields));
      if (!manager.subresource.empty()) entry.add("subresource", Value::string(manager.subresource));
      managed.add(entry.build());
    }
    draft.root().child("metadata").set("managedFields", managed.build());
    draft.root().child("metadata").set("resourceVersion", Value::string(""));

    Result<Value> typed = codec::to_typed(arena, *resource->type, draft.value());
    if (!typed) return typed.take_error();
    Result<Unit> encoded = codec::encode_enveloped(*resource->type, *typed, app->stored);
    if (!encoded) return encoded.take_error();

    if (options.store_as) app->stored = options.store_as(std::move(app->stored));
    for (size_t i = 0; i < std::size(kOwn); ++i) app->places[i] = places_of(app->stored, kOwn[i].holder);
    // All timestamps of the exemplar are within this minute.
    const int64_t first = parse_rfc3339("2026-01-14T09:13:00Z")->seconds;
    for (int64_t second = first; second < first + 60; ++second) {
      const std::string varint = "\x08" + seconds_varint(static_cast<uint64_t>(second)) + '\x10';
      for (size_t at : places_of(app->stored, varint)) app->times.push_back({at + 1, static_cast<uint64_t>(second)});
    }
    workload.apps_.push_back(std::move(app));
  }
  return workload;
}

size_t Workload::pods() const { return options_.pods; }

namespace {
uint64_t delay_of(size_t pod) { return pod * 7919 % (30 * 86400); }
}  // namespace

std::string Workload::key(size_t i) const {
  const size_t per_app = (options_.pods + options_.apps - 1) / options_.apps;
  return apps_[i / per_app]->key_stem + suffix(i, i % per_app);
}

std::string Workload::stored(size_t i) const {
  const size_t per_app = (options_.pods + options_.apps - 1) / options_.apps;
  const App& app = *apps_[i / per_app];
  std::string bytes = app.stored;
  for (size_t which = 0; which < std::size(kOwn); ++which) {
    const std::string text = which == 0 ? suffix(i, i % per_app) : own_text(i, which);
    for (size_t at : app.places[which]) std::memcpy(bytes.data() + at, text.data(), text.size());
  }
  for (const App::TimePlace& time : app.times) {
    const std::string varint = seconds_varint(time.seconds + delay_of(i));
    std::memcpy(bytes.data() + time.at, varint.data(), varint.size());
  }
  return bytes;
}

std::vector<ownership::ManagedEntry> Workload::managed(size_t i) const {
  thread_local std::vector<std::string> texts;
  const size_t per_app = (options_.pods + options_.apps - 1) / options_.apps;
  const App& app = *apps_[i / per_app];
  texts.assign(app.managers.size(), {});
  std::vector<ownership::ManagedEntry> entries;
  for (size_t m = 0; m < app.managers.size(); ++m) {
    const App::Manager& manager = app.managers[m];
    texts[m] = manager.fields;
    const std::string ip = own_text(i, 2);
    for (size_t at : manager.ip_places) std::memcpy(texts[m].data() + at, ip.data(), ip.size());
    entries.push_back({.manager = manager.manager,
                       .operation = manager.operation,
                       .api_version = "v1",
                       .subresource = manager.subresource,
                       .time = UnixTime{manager.time + static_cast<int64_t>(delay_of(i)), 0},
                       .fields_type = ownership::kFieldsV1,
                       .fields = texts[m]});
  }
  return entries;
}

}  // namespace holdfast::bench
