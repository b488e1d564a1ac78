// Throughput of the codecs in MB/s: codec_bench POD, where POD is a pod as YAML or JSON.
//
// Each row runs on one pod that stays in the CPU's caches, and on many distinct ones that do not. A row says whether
// bytes are counted as read or written, and how FieldsV1 is handled. memcpy and simdjson's DOM on the same bytes are
// listed for comparison, since machines differ.
#include <simdjson.h>

#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "base/files.h"
#include "codec/codec.h"

namespace holdfast::codec {
namespace {

constexpr size_t kDistinct = 20000;
constexpr double kSecondsPerRow = 0.4;

// This thread's CPU time, since the machine may be shared.
double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// The pods, and their other encodings for rows that read those.
struct Bodies {
  std::vector<std::string> json;
  std::vector<std::string> protobuf;  // In its envelope.
  std::vector<std::string> cbor;
  std::vector<std::string> yaml;
};

// `work` processes body `i` and returns the number of bytes to count. The best of several rounds.
double megabytes_per_second(size_t bodies, const std::function<size_t(size_t)>& work) {
  double best = 0;
  const double end = now() + kSecondsPerRow;
  do {
    const size_t calls = bodies == 1 ? 64 : bodies;
    size_t bytes = 0;
    const double start = now();
    for (size_t i = 0; i < calls; ++i) bytes += work(bodies == 1 ? 0 : i);
    best = std::max(best, static_cast<double>(bytes) / (now() - start) / 1e6);
  } while (now() < end);
  return best;
}

void row(const char* name, const char* counts, const std::function<size_t(size_t)>& work, size_t distinct = kDistinct) {
  const double hot = megabytes_per_second(1, work);
  const double cold = megabytes_per_second(distinct, work);
  std::printf("%-46s %-7s %9.0f %9.0f\n", name, counts, hot, cold);
  std::fflush(stdout);
}

// Same length, different identity.
std::string distinct_pod(const std::string& pod, size_t number) {
  std::string copy = pod;
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08zx", number);
  const size_t uid = copy.find("\"uid\":\"");
  if (uid != std::string::npos) copy.replace(uid + 7, 8, digits);
  const size_t name = copy.find("\"name\":\"");
  if (name != std::string::npos) copy.replace(name + 8, 8, digits);
  return copy;
}

int run(const char* path) {
  const Result<std::string> text = read_file(path);
  const Result<Document> pod = parse_yaml(text ? *text : "");
  if (!text || !pod) {
    std::fprintf(stderr, "codec_bench: cannot read %s\n", path);
    return 1;
  }
  Bodies bodies;
  const std::string json = encode_json(pod->root());
  for (size_t i = 0; i < kDistinct; ++i) bodies.json.push_back(distinct_pod(json, i));
  const types::Type& type = *types::find_type("core/v1.Pod");
  for (const std::string& body : bodies.json) {
    Arena fresh(64 << 10);
    const Result<Value> typed = to_typed(fresh, type, *decode_json(fresh, body), {.json_source = body});
    bodies.protobuf.emplace_back();
    if (!typed || !encode_enveloped(type, *typed, bodies.protobuf.back())) return 1;
  }
  constexpr size_t kFewer = 2000;  // For the slower formats.
  for (size_t i = 0; i < kFewer; ++i) {
    bodies.cbor.push_back(encode_cbor(parse_json(bodies.json[i])->root()));
    bodies.yaml.emplace_back();
    if (!encode_yaml(parse_json(bodies.json[i])->root(), bodies.yaml.back())) return 1;
  }
  std::printf(
      "%s: %zu bytes of JSON, %zu of Protobuf, %zu of CBOR, %zu of YAML; MB/s on one pod and over %zu (CBOR, YAML: "
      "%zu)\n",
      path, json.size(), bodies.protobuf[0].size(), bodies.cbor[0].size(), bodies.yaml[0].size(), kDistinct, kFewer);
  std::printf("%-46s %-7s %9s %9s\n", "", "MB of", "hot", "distinct");

  std::string out;
  Arena arena;
  std::vector<char> copy(json.size() + 64);
  row("memcpy of the JSON", "input", [&](size_t i) {
    std::memcpy(copy.data(), bodies.json[i].data(), bodies.json[i].size());
    asm volatile("" : : "r"(copy.data()) : "memory");
    return bodies.json[i].size();
  });
  simdjson::dom::parser dom;
  row("simdjson: JSON -> its own DOM", "input", [&](size_t i) {
    if (dom.parse(bodies.json[i]).error()) std::abort();
    return bodies.json[i].size();
  });
  row("JSON -> tree, FieldsV1 parsed", "input", [&](size_t i) {
    Arena fresh(64 << 10);
    if (!decode_json(fresh, bodies.json[i])) std::abort();
    return bodies.json[i].size();
  });
  const FieldPaths fields = FieldPaths::of({"metadata.managedFields.fieldsV1"});
  row("JSON -> tree, FieldsV1 carried", "input", [&](size_t i) {
    Arena fresh(64 << 10);
    if (!decode_json(fresh, bodies.json[i], {.raw = &fields})) std::abort();
    return bodies.json[i].size();
  });
  std::vector<Document> trees;
  for (size_t i = 0; i < kFewer; ++i) trees.push_back(*parse_json(bodies.json[i]));
  row(
      "tree -> JSON", "output",
      [&](size_t i) {
        out.clear();
        encode_json(trees[i].root(), out);
        return out.size();
      },
      kFewer);
  row(
      "tree -> JSON pretty", "output",
      [&](size_t i) {
        out.clear();
        encode_json_pretty(trees[i].root(), out);
        return out.size();
      },
      kFewer);
  row("JSON -> JSON pretty", "output", [&](size_t i) {
    out.clear();
    if (!json_to_pretty_json(bodies.json[i], {}, out)) std::abort();
    return out.size();
  });
  const Shape bare{.drop = &managed_fields_paths()};
  row("JSON -> JSON without managedFields", "input", [&](size_t i) {
    out.clear();
    if (!json_to_json(bodies.json[i], bare, out)) std::abort();
    return bodies.json[i].size();
  });
  row("JSON -> JSON, metadata only, without them", "input", [&](size_t i) {
    out.clear();
    if (!json_to_json(bodies.json[i], {.drop = bare.drop, .metadata_only = true}, out)) std::abort();
    return bodies.json[i].size();
  });
  row("JSON -> CBOR", "input", [&](size_t i) {
    out.clear();
    if (!json_to_cbor(bodies.json[i], {}, out)) std::abort();
    return bodies.json[i].size();
  });
  row("JSON -> CBOR without managedFields", "input", [&](size_t i) {
    out.clear();
    if (!json_to_cbor(bodies.json[i], bare, out)) std::abort();
    return bodies.json[i].size();
  });
  row("Protobuf -> tree, FieldsV1 carried", "input", [&](size_t i) {
    Arena fresh(64 << 10);
    const ProtobufEnvelope object = *open_envelope(bodies.protobuf[i]);
    if (!decode_protobuf(fresh, type, object.message, object.type)) std::abort();
    return bodies.protobuf[i].size();
  });
  row("Protobuf -> JSON, FieldsV1 checked and copied", "output", [&](size_t i) {
    out.clear();
    const ProtobufEnvelope object = *open_envelope(bodies.protobuf[i]);
    if (!protobuf_to_json(type, object.message, object.type, {}, out)) std::abort();
    return out.size();
  });
  row("Protobuf -> JSON without managedFields", "output", [&](size_t i) {
    out.clear();
    const ProtobufEnvelope object = *open_envelope(bodies.protobuf[i]);
    if (!protobuf_to_json(type, object.message, object.type, bare, out)) std::abort();
    return out.size();
  });
  row("Protobuf -> CBOR, FieldsV1 parsed", "output", [&](size_t i) {
    out.clear();
    const ProtobufEnvelope object = *open_envelope(bodies.protobuf[i]);
    if (!protobuf_to_cbor(type, object.message, object.type, {}, out)) std::abort();
    return out.size();
  });
  row("Protobuf -> CBOR without managedFields", "output", [&](size_t i) {
    out.clear();
    const ProtobufEnvelope object = *open_envelope(bodies.protobuf[i]);
    if (!protobuf_to_cbor(type, object.message, object.type, bare, out)) std::abort();
    return out.size();
  });
  row("Protobuf -> Protobuf without managedFields", "input", [&](size_t i) {
    out.clear();
    if (!change_enveloped_metadata(bodies.protobuf[i], {.drop_managed_fields = true}, out)) std::abort();
    return bodies.protobuf[i].size();
  });
  row("Protobuf -> Protobuf, metadata only", "input", [&](size_t i) {
    out.clear();
    if (!change_enveloped_metadata(bodies.protobuf[i], {.metadata_only = true}, out)) std::abort();
    return bodies.protobuf[i].size();
  });
  std::vector<Value> typed;
  for (size_t i = 0; i < kFewer; ++i) typed.push_back(*to_typed(arena, type, trees[i].root()));
  row(
      "tree -> Protobuf", "output",
      [&](size_t i) {
        out.clear();
        if (!encode_enveloped(type, typed[i], out)) std::abort();
        return out.size();
      },
      kFewer);
  row(
      "tree -> typed tree", "JSON",
      [&](size_t i) {
        Arena fresh(64 << 10);
        if (!to_typed(fresh, type, trees[i].root())) std::abort();
        return bodies.json[i].size();
      },
      kFewer);
  row(
      "CBOR -> tree", "input",
      [&](size_t i) {
        Arena fresh(64 << 10);
        if (!decode_cbor(fresh, bodies.cbor[i])) std::abort();
        return bodies.cbor[i].size();
      },
      kFewer);
  row(
      "tree -> CBOR", "output",
      [&](size_t i) {
        out.clear();
        encode_cbor(trees[i].root(), out);
        return out.size();
      },
      kFewer);
  row(
      "YAML -> tree", "input",
      [&](size_t i) {
        Arena fresh(64 << 10);
        if (!decode_yaml(fresh, bodies.yaml[i])) std::abort();
        return bodies.yaml[i].size();
      },
      kFewer);
  row(
      "JSON as YAML (an apply body) -> tree", "input",
      [&](size_t i) {
        Arena fresh(64 << 10);
        if (!decode_yaml(fresh, bodies.json[i])) std::abort();
        return bodies.json[i].size();
      },
      kFewer);
  row(
      "tree -> YAML", "output",
      [&](size_t i) {
        out.clear();
        if (!encode_yaml(trees[i].root(), out)) std::abort();
        return out.size();
      },
      kFewer);
  return 0;
}

}  // namespace
}  // namespace holdfast::codec

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: codec_bench POD\n");
    return 1;
  }
  return holdfast::codec::run(argv[1]);
}
