// pool_bench POD [pods]: bytes of ownership of 100,000 pods by representation, and how fast FieldsV1 and FieldsV2 are
// read and written; then the same for objects that are not pods.
#include <malloc.h>
#include <snappy.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <random>
#include <set>

#include "base/files.h"
#include "base/packing.h"
#include "base/process.h"
#include "ownership/fields_v2.h"
#include "ownership/pool.h"
#include "workload.h"

namespace holdfast::bench {
namespace {

using namespace ownership;

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void row(const char* form, double bytes, size_t pods, const char* note = "") {
  std::printf("  %-44s %10.1f MB %8.0f bytes/pod  %s\n", form, bytes / 1e6, bytes / static_cast<double>(pods), note);
}

void forms(const Workload& workload) {
  uint64_t v1 = 0, zstd = 0, snappy_bytes = 0, v2 = 0, plain = 0, v2_zstd = 0;
  // Sample one in ten: objects resemble their neighbours, and compressing all of them only takes longer.
  constexpr size_t kStep = 10;
  for (size_t i = 0; i < workload.pods(); i += kStep) {
    for (const ManagedEntry& entry : workload.managed(i)) {
      Arena arena;
      const std::string_view text = *entry.fields;
      const FieldSet set = *parse_fields_v1(arena, text);
      const std::string binary = to_fields_v2(set);
      std::string snapped;
      snappy::Compress(text.data(), text.size(), &snapped);
      const auto packed = [](std::string_view bytes) {
        const std::string_view result = pack_without_dictionary(bytes);
        return result.empty() ? bytes.size() : result.size();
      };
      v1 += text.size();
      zstd += packed(text);
      snappy_bytes += snapped.size();
      v2 += binary.size();
      plain += to_fields_v2(set, FieldsV2Layout::Plain).size();
      v2_zstd += packed(binary);
    }
  }
  const auto scaled = [](uint64_t bytes) { return static_cast<double>(bytes * kStep); };
  const size_t pods = workload.pods();
  row("FieldsV1 text", scaled(v1), pods);
  row("FieldsV1 + snappy", scaled(snappy_bytes), pods);
  row("FieldsV1 + zstd", scaled(zstd), pods);
  row("FieldsV2 without a name table (version 1)", scaled(plain), pods);
  row("FieldsV2", scaled(v2), pods);
  row("FieldsV2 + zstd", scaled(v2_zstd), pods);
}

void pool(const char* name, const Workload& workload, const Gates& gates, double goal_mb) {
  const uint64_t before = resident_bytes();
  Pool pool(gates);
  const Pool::Kind kind = pool.kind("pods", MemberOrder::Canonical);
  std::vector<OwnersRef> owners;
  owners.reserve(workload.pods());
  const double seconds = seconds_of([&] {
    for (size_t i = 0; i < workload.pods(); ++i) owners.push_back(pool.intern(kind, workload.managed(i)));
  });
  const PoolUsage usage = pool.usage();
  const uint64_t resident = resident_bytes() - before;
  char note[160];
  std::snprintf(note, sizeof(note), "%s",
                goal_mb == 0                                                ? ""
                : static_cast<double>(usage.total_bytes()) <= goal_mb * 1e6 ? "(goal met)"
                                                                            : "(GOAL MISSED)");
  row(name, static_cast<double>(usage.total_bytes()), workload.pods(), note);
  std::printf(
      "      RSS grew %.1f MB; sets %llu, packed %llu, sharing %.1fx; owners %.1f, sets %.1f, tables %.1f, "
      "dictionaries "
      "%.2f, managers %.2f, hot texts %.2f MB; %.1f us an object\n",
      static_cast<double>(resident) / 1e6, static_cast<unsigned long long>(usage.sets),
      static_cast<unsigned long long>(usage.packed_sets), usage.sharing_factor(),
      static_cast<double>(usage.owner_bytes) / 1e6, static_cast<double>(usage.kept_bytes) / 1e6,
      static_cast<double>(usage.table_bytes) / 1e6, static_cast<double>(usage.dictionary_bytes) / 1e6,
      static_cast<double>(usage.manager_bytes) / 1e6, static_cast<double>(usage.hot_text_bytes) / 1e6,
      seconds * 1e6 / static_cast<double>(workload.pods()));
  owners.clear();
  owners.shrink_to_fit();
  malloc_trim(0);
}

void workload_table(const char* title, const Workload& workload, double goal_mb) {
  std::printf("%s\n", title);
  forms(workload);
  const Gates gates;
  pool("interned sets", workload, gates.with(Gate::CompressManagedFieldsInCache, false), 0);
  pool("dictionary alone", workload, gates.with(Gate::ManagedFieldsPool, false), 0);
  pool("interned sets + dictionary", workload, gates, goal_mb);
}

void speed(const Workload& workload) {
  std::printf("one set, microseconds (best of 5)   bytes    of V1   write   read\n");
  size_t number = 0;
  for (const ManagedEntry& entry : workload.managed(0)) {
    Arena keep;
    const std::string text(*entry.fields);
    const FieldSet set = *parse_fields_v1(keep, text);
    const std::string binary = to_fields_v2(set);
    const auto best = [](const std::function<void()>& work) {
      double least = 1e9;
      for (int round = 0; round < 5; ++round) {
        least = std::min(least, seconds_of([&] {
                                  for (int i = 0; i < 2000; ++i) work();
                                }) / 2000 *
                                    1e6);
      }
      return least;
    };
    std::string out;
    out.reserve(2 * text.size());
    const double write1 = best([&] {
      out.clear();
      append_fields_v1(out, set);
    });
    const double write2 = best([&] {
      out.clear();
      append_fields_v2(out, set);
    });
    Arena arena(1 << 16);
    const double read1 = best([&] {
      Arena a(1 << 16);
      (void)parse_fields_v1(a, text);
    });
    const double read2 = best([&] {
      Arena a(1 << 16);
      (void)parse_fields_v2(a, binary);
    });
    std::printf("  manager %zu  FieldsV1              %6zu    100%%  %6.2f %6.2f\n", number, text.size(), write1,
                read1);
    std::printf("             FieldsV2              %6zu    %3.0f%%  %6.2f %6.2f  (%.1fx, %.1fx)\n", binary.size(),
                100.0 * static_cast<double>(binary.size()) / static_cast<double>(text.size()), write2, read2,
                write1 / write2, read1 / read2);
    ++number;
  }
}

// Objects that are not pods: names that are not in the table, few of them shared.
struct Sets {
  const char* title;
  std::vector<std::string> texts;  // FieldsV1, one per object.
};

std::string fields_of(std::string_view parent, std::set<std::string> names) {
  std::string text = "{\"f:" + std::string(parent) + "\":{";
  for (const std::string& name : names) text += (text.back() == '{' ? "\"f:" : ",\"f:") + name + "\":{}";
  return text + "}}";
}

std::vector<Sets> other_workloads(size_t objects) {
  static constexpr std::string_view kWords[] = {
      "database", "connection", "timeout", "retries",   "logging",   "verbosity", "cache",     "eviction", "strategy",
      "maximum",  "endpoint",   "secret",  "replicas",  "placement", "topology",  "rollout",   "canary",   "weight",
      "storage",  "snapshot",   "policy",  "retention", "schedule",  "window",    "threshold", "metrics",  "tracing"};
  std::mt19937 random(1);
  const auto word = [&] { return std::string(kWords[random() % std::size(kWords)]); };
  const auto camel = [&] {
    std::string name = word();
    for (int i = 0; i < 2; ++i) {
      std::string next = word();
      next[0] = static_cast<char>(next[0] - 32);
      name += next;
    }
    return name;
  };
  std::vector<std::string> schema;
  for (int i = 0; i < 146; ++i) schema.push_back(camel());
  Sets config_maps{"ConfigMaps of 50 keys of their own", {}}, customs{"custom resources with 40 of 146 fields", {}},
      random_names{"ConfigMaps of 20 random names", {}}, mixed{"all of them in turn", {}};
  for (size_t i = 0; i < objects; ++i) {
    std::set<std::string> keys, fields, noise;
    while (keys.size() < 50) keys.insert(word() + "." + word() + "-" + std::to_string(random() % 1000));
    while (fields.size() < 40) fields.insert(schema[random() % schema.size()]);
    while (noise.size() < 20) {
      std::string name;
      for (int c = 0; c < 16; ++c) name += "abcdefghijklmnopqrstuvwxyz0123456789"[random() % 36];
      noise.insert(name);
    }
    config_maps.texts.push_back(fields_of("data", keys));
    customs.texts.push_back(fields_of("spec", fields));
    random_names.texts.push_back(fields_of("data", noise));
    const Sets* all[] = {&config_maps, &customs, &random_names};
    mixed.texts.push_back(all[i % 3]->texts.back());
  }
  return {config_maps, customs, random_names, mixed};
}

// Size, and microseconds to compress and to restore one set.
void compare_forms(const Sets& sets) {
  std::printf("%s\n  form                            bytes/object   of V1   pack us   read us\n", sets.title);
  Arena keep;
  std::vector<FieldSet> parsed;
  std::vector<std::string> binary;
  uint64_t v1 = 0;
  for (const std::string& text : sets.texts) {
    parsed.push_back(*parse_fields_v1(keep, text));
    binary.push_back(to_fields_v2(parsed.back()));
    v1 += text.size();
  }
  const size_t count = sets.texts.size();
  const auto line = [&](const char* form, const std::function<std::string(size_t)>& pack,
                        const std::function<void(size_t, const std::string&)>& unpack) {
    std::vector<std::string> packed(count);
    const double packing = seconds_of([&] {
      for (size_t i = 0; i < count; ++i) packed[i] = pack(i);
    });
    const double reading = seconds_of([&] {
      for (size_t i = 0; i < count; ++i) unpack(i, packed[i]);
    });
    uint64_t bytes = 0;
    for (const std::string& one : packed) bytes += one.size();
    const auto each = [&](double seconds) { return seconds * 1e6 / static_cast<double>(count); };
    std::printf("  %-30s %12.0f   %4.0f%%  %8.2f  %8.2f\n", form,
                static_cast<double>(bytes) / static_cast<double>(count),
                100.0 * static_cast<double>(bytes) / static_cast<double>(v1), each(packing), each(reading));
  };
  std::string scratch;
  const auto into = [&](size_t bytes) {
    scratch.resize(bytes);
    return scratch.data();
  };
  line(
      "FieldsV1 + snappy",
      [&](size_t i) {
        std::string out;
        snappy::Compress(sets.texts[i].data(), sets.texts[i].size(), &out);
        return out;
      },
      [&](size_t, const std::string& packed) { snappy::Uncompress(packed.data(), packed.size(), &scratch); });
  line(
      "FieldsV1 + zstd",
      [&](size_t i) {
        const std::string_view packed = pack_without_dictionary(sets.texts[i]);
        return std::string(packed.empty() ? std::string_view(sets.texts[i]) : packed);
      },
      [&](size_t i, const std::string& packed) {
        (void)unpack_alone(packed, into(sets.texts[i].size()), sets.texts[i].size());
      });
  line(
      "FieldsV2", [&](size_t i) { return to_fields_v2(parsed[i]); },
      [&](size_t, const std::string& packed) {
        Arena arena;
        (void)parse_fields_v2(arena, packed);
      });
  const std::vector<std::string_view> samples(binary.begin(), binary.begin() + std::min<size_t>(128, count));
  if (const auto dictionary = Dictionary::train(samples, PoolOptions{}.dictionary_bytes)) {
    line(
        "FieldsV2 + zstd, dictionary",
        [&](size_t i) {
          const std::string_view packed = dictionary->pack(binary[i]);
          return std::string(packed.empty() ? std::string_view(binary[i]) : packed);
        },
        [&](size_t i, const std::string& packed) {
          if (packed.size() < binary[i].size()) {
            (void)dictionary->unpack(packed, into(binary[i].size()), binary[i].size());
          }
        });
  }
}

int run(const char* path, size_t pods) {
  const Result<std::string> pod = read_file(path);
  if (!pod) {
    std::fprintf(stderr, "pool_bench: %s\n", pod.error().message.c_str());
    return 1;
  }
  Result<Workload> same = Workload::make(*pod, {.pods = pods, .apps = 200});
  if (!same) {
    std::fprintf(stderr, "pool_bench: %s: %s\n", path, same.error().message.c_str());
    return 1;
  }
  speed(*same);
  workload_table("pods of 200 apps from one exemplar: goal 15 MB", *same, 15);
  Result<Workload> mixed = Workload::make(*pod, {.pods = pods, .apps = 2000, .mixed = true});
  workload_table("mixed pods of 2,000 apps: goal 40 MB", *mixed, 40);
  for (const Sets& sets : other_workloads(std::min<size_t>(pods, 2000))) compare_forms(sets);
  return 0;
}

}  // namespace
}  // namespace holdfast::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "pool_bench POD [pods]\n");
    return 2;
  }
  return holdfast::bench::run(argv[1], argc > 2 ? std::stoul(argv[2]) : 100000);
}
