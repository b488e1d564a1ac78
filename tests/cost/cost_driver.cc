// cost_driver CASE SIZE: one piece of work on an input of that size, the worst we know. tests/cost/cost_test.py counts
// its instructions. Without arguments: the names of all cases.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "codec/codec.h"
#include "codec/typed.h"
#include "crd/crd.h"
#include "kinds/kinds.h"
#include "ownership/ownership.h"
#include "patch/patch.h"
#include "rbac/rbac.h"
#include "schema/schema.h"
#include "types/types.h"

using namespace holdfast;  // NOLINT

namespace {

using Work = std::function<void(size_t size)>;

[[noreturn]] void fail(const std::string& why) {
  fprintf(stderr, "%s\n", why.c_str());
  exit(1);
}

// `each` for 0 to count - 1, with commas between.
std::string listed(size_t count, const std::function<std::string(size_t)>& each) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += (i > 0 ? "," : "") + each(i);
  return out;
}
std::string quoted(const std::string& text) { return '"' + text + '"'; }
std::string number(size_t i) { return std::to_string(i); }

std::string distinct_keys(size_t count) {
  return "{" + listed(count, [](size_t i) { return quoted("k" + number(i)) + ":1"; }) + "}";
}

Value json(Arena& arena, const std::string& text, const codec::JsonOptions& options = {}) {
  Result<Value> value = codec::decode_json(arena, arena.copy(text), options);
  if (!value) fail(value.error().message);
  return *value;
}

std::string ports(size_t count, const std::string& prefix) {
  return "{\"spec\":{\"ports\":[" +
         listed(
             count,
             [&](size_t i) { return "{\"name\":" + quoted(prefix + number(i)) + ",\"port\":" + number(i + 1) + "}"; }) +
         "]}}";
}

void strategic(size_t size, const std::string& patch_prefix) {
  Arena arena;
  const types::Resource* services = types::find_kind("", "v1", "Service");
  Result<Value> merged = patch::apply_strategic_patch(arena, json(arena, ports(size, "p")),
                                                      json(arena, ports(size, patch_prefix)), *services->type);
  if (!merged) fail(merged.error().message);
}

rbac::Rule wide_rule(size_t size) {
  rbac::Rule rule;
  for (size_t i = 0; i < size; ++i) {
    rule.verbs.push_back("v" + number(i));
    rule.groups.push_back("g" + number(i));
    rule.resources.push_back("r" + number(i));
    rule.names.push_back("n" + number(i));
  }
  return rule;
}

const std::map<std::string, Work>& cases() {
  static const std::map<std::string, Work> all = {
      {"json, distinct keys",
       [](size_t n) {
         Arena arena;
         json(arena, distinct_keys(n));
       }},
      {"json, one key again and again",
       [](size_t n) {
         Arena arena;
         std::vector<std::string> found;
         json(arena, "{" + listed(n, [](size_t i) { return "\"a\":{\"k" + number(i) + "\":1}"; }) + "}",
              {.duplicates = &found, .unite_repeated_maps = true});
       }},
      {"json, keys given twice below a long path",
       [](size_t n) {
         Arena arena;
         std::vector<std::string> found;
         json(arena,
              "{\"" + std::string(n, 'x') + "\":{" + listed(n, [](size_t) { return "\"b\":{\"a\":1,\"a\":2}"; }) + "}}",
              {.duplicates = &found});
       }},
      {"json, escapes",
       [](size_t n) {
         Arena arena;
         json(arena, "[" + listed(n, [](size_t) { return R"("\u00e4\n\"\\x")"; }) + "]");
       }},
      {"yaml, distinct keys",
       [](size_t n) {
         Arena arena;
         std::string text;
         for (size_t i = 0; i < n; ++i) text += "k" + number(i) + ": 1\n";
         if (!codec::decode_yaml(arena, text)) fail("yaml");
       }},
      {"cbor, distinct keys",
       [](size_t n) {
         Arena arena;
         if (!codec::decode_cbor(arena, codec::encode_cbor(json(arena, distinct_keys(n))))) fail("cbor");
       }},
      {"typed, unknown fields with their errors",
       [](size_t n) {
         Arena arena;
         const types::Resource* pods = types::find_kind("", "v1", "Pod");
         const std::string text = "{\"spec\":" + distinct_keys(n) + "}";
         if (!codec::to_typed(arena, *pods->type, json(arena, text))) fail("typed");
         codec::strict_json_errors(*pods->type, text);
       }},
      {"json patch, additions and tests",
       [](size_t n) {
         Arena arena;
         const std::string patch = "[" +
                                   listed(n,
                                          [](size_t i) {
                                            return "{\"op\":\"add\",\"path\":\"/a/k" + number(i) +
                                                   "\",\"value\":{}},{\"op\":\"test\",\"path\":\"\",\"value\":{}}";
                                          }) +
                                   "]";
         (void)patch::apply_json_patch(arena, json(arena, "{\"a\":" + distinct_keys(n) + "}"), json(arena, patch));
       }},
      {"json patch, moves between deep places",
       [](size_t n) {
         Arena arena;
         std::string deep = "{}", path;
         for (int i = 0; i < 500; ++i) deep = "{\"a\":" + deep + "}", path += "/a";
         const std::string patch =
             "[" +
             listed(n,
                    [&](size_t i) {
                      return i % 2 == 0 ? "{\"op\":\"move\",\"from\":\"/s\",\"path\":\"/d" + path + "/s\"}"
                                        : "{\"op\":\"move\",\"from\":\"/d" + path + "/s\",\"path\":\"/s\"}";
                    }) +
             "]";
         (void)patch::apply_json_patch(arena, json(arena, "{\"s\":" + deep + ",\"d\":" + deep + "}"),
                                       json(arena, patch));
       }},
      {"merge patch",
       [](size_t n) {
         Arena arena;
         if (!patch::apply_merge_patch(arena, json(arena, distinct_keys(n)), json(arena, distinct_keys(n))))
           fail("merge");
       }},
      {"strategic patch, the same items", [](size_t n) { strategic(n, "p"); }},
      {"strategic patch, other items", [](size_t n) { strategic(n, "q"); }},
      {"FieldsV1, values that are maps",
       [](size_t n) {
         Arena arena;
         std::string key;
         codec::encode_json_string("v:" + distinct_keys(n), key);
         if (!ownership::parse_fields_v1(arena, "{" + key + ":{}}")) fail("FieldsV1");
       }},
      {"FieldsV1, values in no order",
       [](size_t n) {
         Arena arena;
         const std::string text =
             "{" +
             listed(
                 n,
                 [&](size_t i) { return "\"v:" + number((i * 7919) % n) + "\":{},\"f:x" + number(n - i) + "\":{}"; }) +
             "}";
         Result<ownership::FieldSet> set = ownership::parse_fields_v1(arena, std::string_view(text));
         if (!set || !ownership::parse_fields_v2(arena, arena.copy(ownership::to_fields_v2(*set)))) fail("FieldsV1");
       }},
      {"pruning, unknown fields below a long key",
       [](size_t n) {
         Arena arena;
         const auto schema = schema::Schema::build(
             json(arena,
                  R"({"type":"object","additionalProperties":{"type":"object","properties":{"a":{"type":"string"}}}})"),
             false);
         std::vector<std::string> unknown;
         schema::prune(arena, schema->root(), json(arena, "{\"" + std::string(n, 'x') + "\":" + distinct_keys(n) + "}"),
                       &unknown);
       }},
      {"RBAC, a rule that is held",
       [](size_t n) {
         if (!rbac::covers({wide_rule(n)}, {wide_rule(n)})) fail("covers");
       }},
      {"RBAC, a rule that is not held",
       [](size_t n) {
         std::vector<rbac::Rule> missing;
         if (rbac::covers({}, {wide_rule(n)}, &missing)) fail("covers");
       }},
  };
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    for (const auto& [name, work] : cases()) puts(name.c_str());
    return 0;
  }
  const auto found = cases().find(argv[1]);
  if (found == cases().end()) fail(std::string("there is no case ") + argv[1]);
  found->second(static_cast<size_t>(atoll(argv[2])));
  return 0;
}
