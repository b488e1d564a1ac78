// check_driver CASE COUNT POD: performs one operation COUNT times; bench/check.py counts its instructions. Without
// arguments, prints the names of all cases.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

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
  if (count == 1) {
    for (const auto& [name, work] : cases()) puts(name.c_str());
    return 0;
  }
  const auto found = count == 4 ? cases().find(arguments[1]) : cases().end();
  if (found == cases().end()) fail("usage: check_driver [CASE COUNT POD]");
  found->second(std::strtoul(arguments[2], nullptr, 10), Pod(arguments[3]));
}
