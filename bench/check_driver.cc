// check_driver CASE COUNT POD: performs one operation COUNT times; bench/check.py counts its instructions. Without
// arguments, prints the names of all cases; with --plan, those of bench/plan.py.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "api/testing.h"
#include "base/files.h"
#include "codec/codec.h"
#include "codec/typed.h"
#include "ownership/ownership.h"
#include "types/types.h"

using namespace holdfast;  // NOLINT

namespace {

constexpr const char* kPods = "/api/v1/namespaces/default/pods";
constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";
constexpr const char* kDeployments = "/apis/apps/v1/namespaces/default/deployments";
constexpr const char* kApply = "application/apply-patch+yaml";
constexpr size_t kListed = 20;

[[noreturn]] void fail(const std::string& why) {
  fprintf(stderr, "check_driver: %s\n", why.c_str());
  exit(1);
}
template <class T>
T must(Result<T> result) {
  if (!result) fail(result.error().message);
  return std::move(*result);
}
std::string number(size_t i) { return std::to_string(i); }

// The exemplar pod, in every encoding.
class Pod {
 public:
  explicit Pod(const std::string& path) {
    json = must(read_file(path));
    tree = must(codec::to_typed(arena, *type, must(codec::decode_json(arena, json))));
    must(codec::encode_enveloped(*type, tree, protobuf));
    cbor = codec::encode_cbor(tree);
  }
  // The body with which a client creates a pod of another name.
  std::string named(const std::string& name) const {
    Arena scratch;
    MapBuilder metadata(scratch), pod(scratch);
    metadata.add("name", Value::string(scratch, name));
    metadata.add("labels", *tree.get("metadata", "labels"));
    pod.add("metadata", metadata.build());
    pod.add("spec", *tree.find("spec"));
    return codec::encode_json(pod.build());
  }

  const types::Type* type = types::find_kind("", "v1", "Pod")->type;
  Arena arena;
  std::string json, protobuf, cbor;
  Value tree;
};

class Server {
 public:
  explicit Server(const Gates& gates = {}) : process_(with(gates)) {}
  void send(std::string method, std::string target, std::string body = {},
            std::string content_type = "application/json", std::string accept = "application/json") {
    net::ClientRequest request;
    request.method = std::move(method);
    request.target = std::move(target);
    request.headers = {{"accept", std::move(accept)}, {"user-agent", "check"}};
    if (!body.empty()) request.headers.emplace_back("content-type", std::move(content_type));
    request.body = std::move(body);
    const net::ClientResponse answer =
        must(block_on(process_.loop(), process_.api().own_calls(process_.loop()).send(std::move(request))));
    if (answer.status >= 300) fail(number(static_cast<size_t>(answer.status)) + ": " + answer.body);
  }
  void add_pods(const Pod& pod, size_t count) {
    for (size_t i = 0; i < count; ++i) send("POST", kPods, pod.named("pod-" + number(i)));
  }

 private:
  static api::Options with(const Gates& gates) {
    api::Options options;
    options.settings.gates = gates;
    return options;
  }
  api::testing::InProcess process_;
};

std::string config_map(size_t value) {
  return R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":")" + number(value) + R"("}})";
}

std::string deployment(const Pod& pod, size_t replicas) {
  Arena arena;
  const std::string spec = codec::encode_json(*pod.tree.find("spec"));
  return R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":)" +
         number(replicas) +
         R"(,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":)" + spec + "}}}";
}

ownership::FieldManager pod_manager(const Pod& pod) {
  ownership::FieldManagerOptions options;
  options.api_version = "v1";
  options.kind = "Pod";
  options.versions.push_back({"v1", &ownership::builtin_merge_types().of(*pod.type)});
  return ownership::FieldManager(std::move(options));
}

using Case = std::function<void(size_t count, const Pod& pod)>;

// Fixed costs (starting a server, its initial objects) cancel out in the difference between two COUNTs.
std::map<std::string, Case> other_cases() {
  return {
      {"codec: JSON of a pod, read",
       [](size_t count, const Pod& pod) {
         for (size_t i = 0; i < count; ++i) {
           Arena arena;
           must(codec::to_typed(arena, *pod.type, must(codec::decode_json(arena, pod.json))));
         }
       }},
      {"codec: JSON of a pod, written",
       [](size_t count, const Pod& pod) {
         for (size_t i = 0; i < count; ++i) codec::encode_json(pod.tree);
       }},
      {"codec: Protobuf of a pod, read",
       [](size_t count, const Pod& pod) {
         for (size_t i = 0; i < count; ++i) {
           Arena arena;
           must(codec::decode_protobuf(arena, *pod.type, must(codec::open_envelope(pod.protobuf)).message));
         }
       }},
      {"codec: Protobuf of a pod, written",
       [](size_t count, const Pod& pod) {
         for (size_t i = 0; i < count; ++i) {
           std::string out;
           must(codec::encode_enveloped(*pod.type, pod.tree, out));
         }
       }},
      {"codec: CBOR of a pod, read",
       [](size_t count, const Pod& pod) {
         for (size_t i = 0; i < count; ++i) {
           Arena arena;
           must(codec::decode_cbor(arena, pod.cbor));
         }
       }},
      {"engine: apply of a pod, unchanged",
       [](size_t count, const Pod& pod) {
         const ownership::FieldManager manager = pod_manager(pod);
         Arena arena;
         const Value config = must(
             codec::decode_json(arena, arena.copy(R"({"apiVersion":"v1","kind":"Pod",)" + pod.named("p").substr(1))));
         const ownership::ApplyResult first = must(manager.apply(arena, {.config = config, .manager = "m", .now = {}}));
         for (size_t i = 0; i < count; ++i) {
           Arena scratch;
           must(manager.apply(
               scratch,
               {.live = &first.object, .live_managed = &first.managed, .config = config, .manager = "m", .now = {}}));
         }
       }},
      {"create a pod",
       [](size_t count, const Pod& pod) {
         Server server;
         server.add_pods(pod, count);
       }},
      {"apply a ConfigMap, changed",
       [](size_t count, const Pod&) {
         Server server;
         for (size_t i = 0; i < count; ++i)
           server.send("PATCH", std::string(kMaps) + "/a?fieldManager=m", config_map(i), kApply);
       }},
      {"apply a ConfigMap, unchanged",
       [](size_t count, const Pod&) {
         Server server;
         for (size_t i = 0; i < count; ++i)
           server.send("PATCH", std::string(kMaps) + "/a?fieldManager=m", config_map(0), kApply);
       }},
      {"apply a Deployment, changed",
       [](size_t count, const Pod& pod) {
         Server server;
         for (size_t i = 0; i < count; ++i) {
           server.send("PATCH", std::string(kDeployments) + "/d?fieldManager=m", deployment(pod, i), kApply);
         }
       }},
      {"update a ConfigMap",
       [](size_t count, const Pod&) {
         Server server;
         server.send("POST", kMaps, config_map(0));
         for (size_t i = 0; i < count; ++i) server.send("PUT", std::string(kMaps) + "/a", config_map(i + 1));
       }},
      {"update a ConfigMap that ten watches see",
       [](size_t count, const Pod&) {
         Server server;
         server.send("POST", kMaps, config_map(0));
         for (size_t i = 0; i < count; ++i) server.send("PUT", std::string(kMaps) + "/a", config_map(i + 1));
         for (int i = 0; i < 10; ++i)
           server.send("GET", std::string(kMaps) + "?watch=1&resourceVersion=1&timeoutSeconds=1");
       }},
  };
}

// GET and LIST in each format: whole, without managedFields, and whole on a server without the opt-out. check.py
// compares them by these names.
void add_reads(std::map<std::string, Case>& all) {
  for (const auto& [format, type] :
       {std::pair("JSON", "application/json"), std::pair("YAML", "application/yaml"),
        std::pair("Protobuf", "application/vnd.kubernetes.protobuf"), std::pair("CBOR", "application/cbor")}) {
    for (const bool list : {false, true}) {
      const auto read = [list](const std::string& accept, const Gates& gates) {
        return [=](size_t count, const Pod& pod) {
          Server server(gates);
          server.add_pods(pod, list ? kListed : 1);
          const std::string path = std::string(kPods) + (list ? "" : "/pod-0");
          for (size_t i = 0; i < count; ++i) server.send("GET", path, "", "", accept);
        };
      };
      const std::string name = (list ? "LIST of 20 pods, " : "GET of a pod, ") + std::string(format);
      all[name] = read(type, {});
      all[name + ", without managedFields"] = read(type + std::string(";drop=metadata.managedFields"), {});
      all[name + ", gate off"] = read(type, Gates().with(Gate::ManagedFieldsOptOut, false));
    }
  }
}

// The mechanisms of the memory plan, each alone and together, as in bench/report.py.
struct Mechanism {
  const char* name;
  std::vector<Gate> gates;
};
const std::vector<Mechanism>& mechanisms() {
  static const std::vector<Mechanism> all = {
      {"nothing", {}},
      {"read-path omission", {Gate::ManagedFieldsOptOut}},
      {"zstd", {Gate::CompressManagedFieldsInCache}},
      {"FieldsV2", {Gate::FieldsV2, Gate::FieldsV2AtRest}},
      {"pool", {Gate::ManagedFieldsPool}},
      {"all",
       {Gate::ManagedFieldsOptOut, Gate::CompressManagedFieldsInCache, Gate::FieldsV2, Gate::FieldsV2AtRest,
        Gate::ManagedFieldsPool}},
  };
  return all;
}
Gates gates_of(const Mechanism& mechanism) {
  Gates gates;
  for (const Gate gate : mechanisms().back().gates) gates = gates.with(gate, false);
  for (const Gate gate : mechanism.gates) gates = gates.with(gate, true);
  return gates;
}

// A ConfigMap whose keys no other object has: their ownership can neither be shared nor compressed well.
std::string random_map(size_t object, size_t value) {
  std::mt19937 random(static_cast<uint32_t>(object));
  std::string data = R"("changes":")" + number(value) + '"';
  for (int key = 0; key < 20; ++key) {
    data += ",\"";
    for (int i = 0; i < 12; ++i) data += static_cast<char>('a' + random() % 26);
    data += R"(":"x")";
  }
  return R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"random-)" + number(object) + R"("},"data":{)" +
         data + "}}";
}

// Writes that change one value, of many objects in turn.
const std::map<std::string, Case>& plan_cases() {
  constexpr const char* kMerge = "application/merge-patch+json";
  static const std::map<std::string, Case> all = [] {
    std::map<std::string, Case> made;
    for (const Mechanism& mechanism : mechanisms()) {
      const Gates gates = gates_of(mechanism);
      const auto add = [&](const std::string& what, auto write) {
        made[what + ": " + mechanism.name] = [gates, write](size_t count, const Pod& pod) {
          Server server(gates);
          server.add_pods(pod, kListed);
          for (size_t i = 0; i < kListed; ++i) {
            server.send("PATCH", std::string(kMaps) + "/random-" + number(i) + "?fieldManager=m", random_map(i, 0),
                        kApply);
          }
          for (size_t i = 0; i < count; ++i) write(server, i % kListed, i + 1);
        };
      };
      const auto annotated = [](size_t object, size_t value) {
        return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"pod-)" + number(object) +
               R"(","annotations":{"bench.example.com/rev":")" + number(value) + R"("}}})";
      };
      add("apply, pods of one app", [annotated](Server& server, size_t object, size_t value) {
        server.send("PATCH", std::string(kPods) + "/pod-" + number(object) + "?fieldManager=m",
                    annotated(object, value), kApply);
      });
      add("patch, pods of one app", [annotated](Server& server, size_t object, size_t value) {
        server.send("PATCH", std::string(kPods) + "/pod-" + number(object) + "?fieldManager=u",
                    annotated(object, value), kMerge);
      });
      add("apply, objects with random keys", [](Server& server, size_t object, size_t value) {
        server.send("PATCH", std::string(kMaps) + "/random-" + number(object) + "?fieldManager=m",
                    random_map(object, value), kApply);
      });
      add("patch, objects with random keys", [](Server& server, size_t object, size_t value) {
        server.send("PATCH", std::string(kMaps) + "/random-" + number(object) + "?fieldManager=u",
                    R"({"data":{"own":")" + number(value) + R"("}})", kMerge);
      });
    }
    return made;
  }();
  return all;
}

const std::map<std::string, Case>& cases() {
  static const std::map<std::string, Case> all = [] {
    std::map<std::string, Case> made = other_cases();
    add_reads(made);
    return made;
  }();
  return all;
}

}  // namespace

int main(int count, char** arguments) {
  const bool plan = count == 2 && std::string_view(arguments[1]) == "--plan";
  if (count == 1 || plan) {
    for (const auto& [name, work] : plan ? plan_cases() : cases()) puts(name.c_str());
    return 0;
  }
  if (count != 4) fail("usage: check_driver [--plan | CASE COUNT POD]");
  const auto planned = plan_cases().find(arguments[1]);
  const auto found = planned == plan_cases().end() ? cases().find(arguments[1]) : planned;
  if (found == cases().end()) fail("no such case: " + std::string(arguments[1]));
  found->second(std::strtoul(arguments[2], nullptr, 10), Pod(arguments[3]));
}
