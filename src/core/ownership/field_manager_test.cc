#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "base/base64.h"
#include "base/limits.h"
#include "codec/codec.h"
#include "ownership/manager_places.h"
#include "ownership/ownership.h"
#include "schema/schema.h"

namespace holdfast::ownership {
namespace {

class Fields : public testing::Test {
 protected:
  Value yaml(std::string_view text) {
    Result<Value> value = codec::decode_yaml(arena_, arena_.copy(text));
    EXPECT_TRUE(value.ok()) << text;
    return *value;
  }
  Value json(std::string_view text) {
    Result<Value> value = codec::decode_json(arena_, arena_.copy(text));
    EXPECT_TRUE(value.ok());
    return *value;
  }
  Managed managed(std::string_view text) {
    Result<Managed> decoded = decode_managed(arena_, yaml(text));
    EXPECT_TRUE(decoded.ok()) << decoded.error().message;
    return decoded.ok() ? *decoded : Managed();
  }
  std::string error(std::string_view text) {
    const Result<Managed> decoded = decode_managed(arena_, yaml(text));
    return decoded.ok() ? "no error" : decoded.error().message;
  }
  std::string text(const Managed& managed, MemberOrder order = MemberOrder::Canonical) {
    const Value list = encode_managed(arena_, managed, order);
    return list.is_null() ? "nothing" : codec::encode_json(list);
  }

  // A kind with every feature that these tests need.
  FieldManager widgets(std::string_view subresource = {}) {
    schema_ = schema::Schema::build(yaml(R"({type: object, properties: {spec: {type: object, properties: {
        size: {type: integer}, replicas: {type: integer}, opts: {type: object, additionalProperties: {type: string}},
        l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object,
            properties: {k: {type: string}, v: {type: string}, w: {type: string}}}}}},
        deep: {type: object, x-kubernetes-preserve-unknown-fields: true}}})"),
                                    false);
    FieldManagerOptions options;
    options.api_version = "e.com/v1";
    options.kind = "W";
    options.subresource = subresource;
    options.versions.push_back({"e.com/v1", &types_.of(schema_->root())});
    options.unset_markers = true;
    return FieldManager(std::move(options));
  }
  Value widget(std::string_view rest) { return yaml("{apiVersion: e.com/v1, kind: W, " + std::string(rest) + "}"); }

  Arena arena_;
  std::shared_ptr<const schema::Schema> schema_;
  MergeTypes types_;
};

// --- Entries ---

TEST_F(Fields, EntriesAreEncodedLikeKubernetes) {
  EXPECT_EQ(text(managed(R"([{manager: bob, operation: Update, apiVersion: e.com/v1, time: "2026-01-02T03:04:05Z",
                              fieldsType: FieldsV1, fieldsV1: {"f:status": {"f:ready": {}}}, subresource: status}])")),
            R"([{"manager":"bob","operation":"Update","apiVersion":"e.com/v1","time":"2026-01-02T03:04:05Z",)"
            R"("fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:ready":{}}},"subresource":"status"}])");
}

TEST_F(Fields, NoEntriesGiveNoList) {
  EXPECT_EQ(text({}), "nothing");
  EXPECT_TRUE(managed("null").empty());
  EXPECT_TRUE(managed("[]").empty());
}

TEST_F(Fields, EntriesAreSortedByOperationTimeManagerVersionAndSubresource) {
  std::string order;
  Managed all = managed(R"([
    {manager: b, operation: Update, apiVersion: v1, fieldsType: FieldsV1, time: "2026-01-01T00:00:02Z"},
    {manager: z, operation: Update, apiVersion: v1, fieldsType: FieldsV1, time: "2026-01-01T00:00:01Z"},
    {manager: a, operation: Update, apiVersion: v2, fieldsType: FieldsV1, time: "2026-01-01T00:00:02Z"},
    {manager: a, operation: Update, apiVersion: v1, fieldsType: FieldsV1, time: "2026-01-01T00:00:02Z", subresource: s},
    {manager: a, operation: Update, apiVersion: v1, fieldsType: FieldsV1, time: "2026-01-01T00:00:02Z"},
    {manager: q, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, time: "2026-01-01T00:00:09Z"},
    {manager: t, operation: Update, apiVersion: v1, fieldsType: FieldsV1}])");
  sort_managed(all);
  for (const ManagerEntry& entry : all) {
    order += std::string(entry.manager) + std::string(entry.api_version) + std::string(entry.subresource) + " ";
  }
  EXPECT_EQ(order, "qv1 tv1 zv1 av1 av1s av2 bv1 ");
}

TEST_F(Fields, ThousandsOfEntriesAreSortedInTheSameOrder) {
  std::vector<std::string> names;
  for (int i = 0; i < 3000; ++i) names.push_back("m" + std::to_string(10'000 + i));
  Managed all;
  std::mt19937 random(1);
  for (const std::string& name : names) {
    all.push_back({.manager = name,
                   .operation = random() % 2 == 0 ? Operation::Apply : Operation::Update,
                   .api_version = random() % 2 == 0 ? "v1" : "v2",
                   .time = static_cast<int64_t>(random() % 5)});
  }
  std::shuffle(all.begin(), all.end(), random);
  sort_managed(all);
  const auto rank = [](const ManagerEntry& e) { return std::tuple(e.operation, *e.time, e.manager, e.api_version); };
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); }));
  // Entries that compare equal keep their order.
  Managed twins(100, all[0]);
  for (size_t i = 0; i < twins.size(); ++i)
    twins[i].fields = i % 2 == 0 ? FieldSet() : *parse_fields_v1(arena_, R"({"f:a":{}})");
  sort_managed(twins);
  for (size_t i = 0; i < twins.size(); ++i) EXPECT_EQ(twins[i].fields.empty(), i % 2 == 0);
}

TEST_F(Fields, EntriesThatKubernetesRejectsAreInvalid) {
  const std::string longest(128, 'x'), wide = [] {
    std::string text;
    for (int i = 0; i < 128; ++i) text += "é";
    return text;
  }();
  const std::string path(256, 's');
  EXPECT_TRUE(is_valid({.manager = ""}));
  EXPECT_TRUE(is_valid({.manager = "kubectl apply"}));
  EXPECT_TRUE(is_valid({.manager = longest}));
  EXPECT_TRUE(is_valid({.manager = wide}));
  EXPECT_TRUE(is_valid({.manager = "m", .subresource = path}));
  const std::string longer = longest + "x", wider = wide + "é", path_too_long = path + "s";
  EXPECT_FALSE(is_valid({.manager = longer}));
  EXPECT_FALSE(is_valid({.manager = wider}));
  EXPECT_FALSE(is_valid({.manager = "m", .subresource = path_too_long}));
  for (const std::string_view bad : {"a\nb", "\x1b[31m", "\x7f", "\xc2\x9b", "\xe2\x80\xae"}) {
    EXPECT_FALSE(is_valid({.manager = bad})) << bad;
  }
}

TEST_F(Fields, UnreadableEntriesAreRejectedWithKubernetesMessages) {
  EXPECT_EQ(error("[{manager: a, operation: Both, apiVersion: v1, fieldsType: FieldsV1}]"),
            "operation must be `Apply` or `Update`");
  EXPECT_EQ(error("[{manager: a, operation: Apply, fieldsType: FieldsV1}]"), "apiVersion must not be empty");
  EXPECT_EQ(error("[{manager: a, operation: Apply, apiVersion: v1}]"), "missing fieldsType in managed fields entry 0");
  EXPECT_EQ(error("[{manager: a, operation: Apply, apiVersion: v1, fieldsType: FieldsV9}]"),
            "invalid fieldsType \"FieldsV9\" in managed fields entry 0");
  EXPECT_EQ(error("[{manager: a, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {x: {}}}]"),
            "error decoding set: \"x\" is not a path element: it needs at least 2 characters");
}

TEST_F(Fields, BinaryFieldsRequireTheFeatureGate) {
  const FieldSet set = *parse_fields_v1(arena_, R"({"f:spec":{"f:a":{}}})");
  const std::string bytes = to_fields_v2(set);
  std::string encoded(base64_size(bytes.size()), '\0');
  base64_encode(bytes, encoded.data());
  const Value list =
      yaml("[{manager: a, operation: Apply, apiVersion: v1, fieldsType: FieldsV2, fieldsV2: '" + encoded + "'}]");
  EXPECT_FALSE(decode_managed(arena_, list).ok());
  const Result<Managed> read = decode_managed(arena_, list, {.fields_v2 = true});
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE((*read)[0].fields == set);
}

TEST_F(Fields, EntriesSurviveARoundTripThroughThePool) {
  const Managed before = managed(R"([
    {manager: a, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:a": {}}}},
    {manager: b, operation: Update, apiVersion: v1, fieldsType: FieldsV1, time: "2026-01-01T00:00:02Z", subresource: s, fieldsV1: {"f:x": {}}}])");
  Pool pool{Gates()};
  const OwnersRef owners = pool.intern(pool.kind("widgets", MemberOrder::Canonical), entries_of(arena_, before));
  const Result<Managed> after = decode_managed(arena_, owners.view());
  ASSERT_TRUE(after.ok()) << after.error().message;
  EXPECT_TRUE(ownership::equal(*after, before));
}

TEST_F(Fields, EmptyListAndSingleEmptyEntryResetOwnership) {
  EXPECT_TRUE(resets_managed(yaml("[]")));
  EXPECT_TRUE(resets_managed(yaml("[{}]")));
  EXPECT_TRUE(resets_managed(yaml("[{manager: '', time: null}]")));
  EXPECT_FALSE(resets_managed(yaml("null")));
  EXPECT_FALSE(resets_managed(yaml("[{}, {}]")));
  EXPECT_FALSE(resets_managed(yaml("[{fieldsV1: {}}]")));
}

TEST_F(Fields, ManagersAreComparedByIdentity) {
  ManagerEntry entry;
  entry.manager = "m<";
  entry.api_version = "v1";
  EXPECT_EQ(identity_text(entry), R"({"manager":"m\u003c","operation":"Update","apiVersion":"v1"})");
  EXPECT_EQ(manager_text(entry), "\"m<\" using v1");
  entry.operation = Operation::Apply;
  entry.subresource = "status";
  EXPECT_EQ(identity_text(entry), R"({"manager":"m\u003c","operation":"Apply","subresource":"status"})");
  EXPECT_EQ(manager_text(entry), "\"m<\" with subresource \"status\"");
}

TEST_F(Fields, ManagerNameComesFromParameterOrUserAgent) {
  EXPECT_EQ(manager_name("given", "kubectl/v1"), "given");
  EXPECT_EQ(manager_name("", "kubectl/v1.36 (linux)"), "kubectl");
  EXPECT_EQ(manager_name("", "my tool\x01 x"), "my tool x");
  EXPECT_EQ(manager_name("", ""), "unknown");
  EXPECT_EQ(manager_name("", "/1"), "unknown");
  EXPECT_EQ(manager_name("", std::string(200, 'a')), std::string(128, 'a'));
  // Not truncated inside a multi-byte character.
  EXPECT_EQ(manager_name("", std::string(127, 'a') + "ä"), std::string(127, 'a'));
}

TEST_F(Fields, DetectsEntriesThatDifferOnlyInTimes) {
  const Managed a = managed(
      R"([{manager: a, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, time: "2026-01-01T00:00:02Z", fieldsV1: {"f:x": {}}}])");
  Managed b = a;
  EXPECT_FALSE(differ_only_in_times(a, b));
  EXPECT_TRUE(ownership::equal(a, b));
  b[0].time = 7;
  EXPECT_TRUE(differ_only_in_times(a, b));
  EXPECT_FALSE(ownership::equal(a, b));
  b[0].fields = {};
  EXPECT_FALSE(differ_only_in_times(a, b));
  EXPECT_FALSE(differ_only_in_times({}, {}));
}

// --- Reset fields ---

TEST_F(Fields, ResetFilterRemovesPathsAndEverythingBelow) {
  const FieldSet set = *parse_fields_v1(
      arena_, R"({"f:metadata":{"f:labels":{"f:a":{}},"f:name":{}},"f:spec":{".":{},"f:x":{}},"f:status":{}})");
  const std::string_view reset[] = {"spec", "metadata.labels"};
  EXPECT_EQ(to_fields_v1(ResetFilter(reset, {}).apply(arena_, set)), R"({"f:metadata":{"f:name":{}},"f:status":{}})");
  EXPECT_TRUE(ResetFilter().apply(arena_, set).same(set));
}

TEST_F(Fields, KeepOnlyFilterRemovesEverythingElse) {
  const FieldSet set =
      *parse_fields_v1(arena_, R"({"f:metadata":{"f:labels":{}},"f:spec":{".":{},"f:containers":{".":{},
      "k:{\"name\":\"a\"}":{".":{},"f:image":{},"f:resources":{".":{},"f:limits":{}}}},"f:x":{}}})");
  const std::string_view keep[] = {"spec.containers[].resources", "spec.containers[].resizePolicy"};
  EXPECT_EQ(
      to_fields_v1(ResetFilter({}, keep).apply(arena_, set)),
      R"({"f:spec":{".":{},"f:containers":{".":{},"k:{\"name\":\"a\"}":{".":{},"f:resources":{".":{},"f:limits":{}}}}}})");
}

// --- Apply ---

TEST_F(Fields, ApplyRejectsOtherKindsAndVersions) {
  const FieldManager manager = widgets();
  auto message = [&](const Value& config) {
    const Result<ApplyResult> result = manager.apply(arena_, {.config = config, .manager = "m", .now = {1, 0}});
    EXPECT_EQ(result.ok() ? Reason::Unknown : result.error().reason, Reason::BadRequest);
    return result.ok() ? "fine" : result.error().message;
  };
  EXPECT_EQ(message(yaml("{apiVersion: e.com/v2, kind: W}")), "invalid object type: e.com/v2, Kind=W");
  EXPECT_EQ(message(yaml("{apiVersion: v1, kind: Pod}")), "invalid object type: /v1, Kind=Pod");
  EXPECT_EQ(message(yaml("{}")), "invalid object type: /, Kind=");
  EXPECT_EQ(message(widget("metadata: {managedFields: []}")), "metadata.managedFields must be nil");
}

TEST_F(Fields, ApplyAcceptsNullManagedFieldsAndDropsThem) {
  const FieldManager manager = widgets();
  const Value config = widget("metadata: {name: w, managedFields: null}, spec: {size: 1}");
  const Result<ApplyResult> result = manager.apply(arena_, {.config = config, .manager = "m", .now = {1, 0}});
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->object.get("metadata", "managedFields"), nullptr);
  EXPECT_EQ(to_fields_v1(result->managed[0].fields), R"({"f:spec":{"f:size":{}}})");
}

TEST_F(Fields, ApplyKeepsUnreadableManagedFieldsForTheCallerToReject) {
  const FieldManager manager = widgets();
  const Value config = widget("metadata: {name: w, managedFields: [{time: x}]}, spec: {size: 1}");
  const Result<ApplyResult> result = manager.apply(arena_, {.config = config, .manager = "m", .now = {1, 0}});
  ASSERT_TRUE(result.ok()) << result.error().message;
  ASSERT_NE(result->object.get("metadata", "managedFields"), nullptr);
}

TEST_F(Fields, ConflictsAreListedByManager) {
  const FieldManager manager = widgets();
  const Value live = widget("metadata: {name: w, uid: '1'}, spec: {size: 1, opts: {a: x}, l: [{k: p, v: q}]}");
  const Managed owners = managed(R"([
    {manager: carol, operation: Apply, apiVersion: e.com/v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:opts": {"f:a": {}}}}},
    {manager: bob, operation: Update, apiVersion: e.com/v1, fieldsType: FieldsV1,
     fieldsV1: {"f:spec": {"f:size": {}, "f:l": {'k:{"k":"p"}': {"f:v": {}}}}}}])");
  const Value config = widget("metadata: {name: w}, spec: {size: 2, opts: {a: z}, l: [{k: p, v: other}]}");
  const Result<ApplyResult> result =
      manager.apply(arena_, {.live = &live, .live_managed = &owners, .config = config, .manager = "m", .now = {1, 0}});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message,
            "Apply failed with 3 conflicts: conflicts with \"bob\" using e.com/v1:\n"
            "- .spec.size\n"
            "- .spec.l[k=\"p\"].v\n"
            "conflicts with \"carol\":\n"
            "- .spec.opts.a");
  ASSERT_EQ(result.error().causes.size(), 3u);
  EXPECT_EQ(result.error().causes[0],
            (Cause{"FieldManagerConflict", "conflict with \"bob\" using e.com/v1", ".spec.size"}));
}

TEST_F(Fields, ConflictsThatDoNotFitAnAnswerAreCounted) {
  const FieldManager manager = widgets();
  // A configuration of 0.3 MB, whose conflicts would take 2 GB.
  const size_t count = 5000;
  const std::string key(200'000, 'k');
  std::string owned, before, after;
  for (size_t i = 0; i < count; ++i) {
    const std::string separator = i == 0 ? "" : ",", name = "o" + std::to_string(i);
    owned += separator + "\"f:" + name + "\":{}";
    before += separator + "\"" + name + "\":\"x\"";
    after += separator + "\"" + name + "\":\"y\"";
  }
  const auto object = [&](const std::string& metadata, const std::string& members) {
    return json(R"({"apiVersion":"e.com/v1","kind":"W","metadata":)" + metadata + R"(,"deep":{")" + key + R"(":{)" +
                members + "}}}");
  };
  const Value live = object(R"({"name":"w","uid":"1"})", before), config = object(R"({"name":"w"})", after);
  const std::string bob = "bob";
  const Managed owners = {
      {.manager = bob,
       .operation = Operation::Apply,
       .api_version = "e.com/v1",
       .fields = *parse_fields_v1(arena_, arena_.copy(R"({"f:deep":{"f:)" + key + "\":{" + owned + "}}}"))}};
  const Result<ApplyResult> result =
      manager.apply(arena_, {.live = &live, .live_managed = &owners, .config = config, .manager = "m", .now = {1, 0}});
  ASSERT_FALSE(result.ok());
  const Error& error = result.error();
  EXPECT_TRUE(error.message.starts_with("Apply failed with 5000 conflicts: conflicts with \"bob\":\n- .deep.kkk"));
  ASSERT_GE(error.causes.size(), 1u);
  ASSERT_LE(error.causes.size(), 10u);
  EXPECT_TRUE(error.message.ends_with("\nand " + std::to_string(count - error.causes.size()) + " more"));
  EXPECT_LT(error.message.size(), 2 * limits::kReportedBytes);
}

TEST_F(Fields, ProblemsThatDoNotFitAnAnswerAreCounted) {
  const FieldManager manager = widgets();
  const Value two = widget("metadata: {name: w}, spec: {size: x, l: [{k: a}, {k: a}]}");
  Result<ApplyResult> result = manager.apply(arena_, {.config = two, .manager = "m", .now = {1, 0}});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message,
            "failed to create typed patch object (/w; e.com/v1, Kind=W): errors:\n"
            "  .spec.l: duplicate entries for key [k=\"a\"]\n"
            "  .spec.size: expected numeric (int or float), got string");
  std::string opts;
  for (int i = 0; i < 2000; ++i) {
    opts += (i == 0 ? "\"" : ",\"") + std::to_string(i) + std::string(1000, 'k') + "\":{}";
  }
  const Value many =
      json(R"({"apiVersion":"e.com/v1","kind":"W","metadata":{"name":"w"},"spec":{"opts":{)" + opts + "}}}");
  result = manager.apply(arena_, {.config = many, .manager = "m", .now = {1, 0}});
  ASSERT_FALSE(result.ok());
  EXPECT_GT(result.error().message.size(), limits::kReportedBytes);
  EXPECT_LT(result.error().message.size(), limits::kReportedBytes + 100'000);
  EXPECT_TRUE(result.error().message.ends_with(" more"));
}

// The oldest managers of a version become one entry, as in Kubernetes (capmanagers.go), which does it with a map.
TEST_F(Fields, ManyUpdateManagersAreMergedLikeInKubernetes) {
  FieldManager one = widgets();
  FieldManagerOptions options;
  options.api_version = "e.com/v1";
  options.kind = "W";
  options.max_update_managers = 4;
  options.versions = {{"e.com/v1", &types_.of(schema_->root())}, {"e.com/v2", &types_.of(schema_->root())}};
  options.convert = [](Arena& arena, const Value& object, std::string_view, std::string_view to) -> Result<Value> {
    return with_member(arena, object, "apiVersion", Value::string(to));
  };
  const FieldManager manager(std::move(options));
  const Value live = widget("metadata: {name: w, uid: '1'}, spec: {size: 1}");
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    // By identity: version, name; with time and fields.
    struct Entry {
      std::string name, version, fields;
      int64_t time = 0;
    };
    std::map<std::string, Entry> model;
    const size_t count = random() % 12;
    for (size_t i = 0; i < count; ++i) {
      Entry entry;
      entry.name = random() % 6 == 0 ? "ancient-changes" : "m" + std::to_string(random() % 20);
      entry.version = random() % 3 == 0 ? "e.com/v2" : "e.com/v1";
      entry.time = static_cast<int64_t>(random() % 4);
      entry.fields = "f" + std::to_string(i);
      model[R"({"manager":")" + entry.name + R"(","operation":"Update","apiVersion":")" + entry.version + R"("})"] =
          entry;
    }
    std::string list;
    for (const auto& [identity, entry] : model) {
      list += "{manager: " + entry.name + ", operation: Update, apiVersion: " + entry.version +
              ", fieldsType: FieldsV1, time: \"1970-01-01T00:00:0" + std::to_string(entry.time) +
              "Z\", fieldsV1: {\"f:spec\": {\"f:opts\": {\"f:" + entry.fields + "\": {}}}}},";
    }
    std::map<std::string, std::set<std::string>> fields;
    for (const auto& [identity, entry] : model) fields[identity] = {entry.fields};
    std::vector<std::string> updaters;
    for (const auto& [identity, entry] : model) updaters.push_back(identity);
    std::sort(updaters.begin(), updaters.end(), [&](const std::string& a, const std::string& b) {
      return std::pair(model[a].time, a) < std::pair(model[b].time, b);
    });
    std::map<std::string, std::string> firsts;
    size_t left = updaters.size();
    for (const std::string& identity : updaters) {
      if (left <= 4) break;
      const Entry entry = model[identity];
      const std::string bucket =
          R"({"manager":"ancient-changes","operation":"Update","apiVersion":")" + entry.version + R"("})";
      if (!firsts.contains(entry.version)) {
        firsts[entry.version] = identity;
        continue;
      }
      if (!model.contains(bucket)) {
        model[bucket] = {"ancient-changes", entry.version, "", 0};
        fields[bucket] = fields[firsts[entry.version]];
        model.erase(firsts[entry.version]);
      }
      fields[bucket].insert(fields[identity].begin(), fields[identity].end());
      model[bucket].time = entry.time;
      model.erase(identity);
      --left;
    }
    std::set<std::string> want, got;
    for (const auto& [identity, entry] : model) {
      std::string text = identity + std::to_string(entry.time);
      for (const std::string& field : fields[identity]) text += " .spec.opts." + field;
      want.insert(text);
    }
    const Managed before = managed("[" + list + "]");
    for (const ManagerEntry& entry :
         manager.update(arena_, {.live = &live, .live_managed = &before, .object = live, .manager = "x", .now = {9, 0}})
             .managed) {
      std::set<std::string> paths;
      entry.fields.for_each([&](Path path) { paths.insert(to_string(path)); });
      std::string text = identity_text(entry) + std::to_string(entry.time.value_or(0));
      for (const std::string& path : paths) text += " " + path;
      got.insert(text);
    }
    ASSERT_EQ(got, want) << list;
  }
}

TEST_F(Fields, KubectlApplyUpdatesLastAppliedAnnotation) {
  const FieldManager manager = widgets();
  const Value live = widget(
      "metadata: {name: w, uid: '1', annotations: {kubectl.kubernetes.io/last-applied-configuration: '{}', a: b}}, "
      "spec: {size: 1}");
  const Value config = widget("metadata: {name: w, annotations: {a: b}}, spec: {size: 1, opts: {z: <x>}}");
  auto apply = [&](std::string_view who, const Value& object) {
    Result<ApplyResult> result =
        manager.apply(arena_, {.live = &object, .config = config, .manager = who, .now = {1, 0}});
    EXPECT_TRUE(result.ok());
    return std::string(
        result->object.text_at("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"));
  };
  EXPECT_EQ(apply("kubectl", live),
            "{\"apiVersion\":\"e.com/v1\",\"kind\":\"W\",\"metadata\":{\"annotations\":{\"a\":\"b\"},\"name\":\"w\"},"
            "\"spec\":{\"opts\":{\"z\":\"\\u003cx\\u003e\"},\"size\":1}}\n");
  EXPECT_EQ(apply("other", live), "{}");
  // Too large for annotations: the annotation is removed.
  const std::string_view path[] = {"metadata", "annotations", "big"};
  EXPECT_EQ(apply("kubectl", with_path(arena_, live, path, Value::string(arena_, std::string(262100, 'x')))), "");
}

TEST_F(Fields, ApplyUnownedRemovesMarkedFields) {
  const FieldManager manager = widgets();
  const Value object = widget("metadata: {name: w}, spec: {size: 1, opts: {a: x, b: z}, l: [{k: p, v: q}, {k: r}]}");
  const Result<Value> result =
      manager.apply_unowned(arena_, object,
                            widget("spec: {size: {k8s_io__value: unset}, opts: {a: {k8s_io__value: unset}, c: d}, l: "
                                   "[{k: p, k8s_io__value: unset}]}"));
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(
      codec::encode_json_sorted(*result),
      R"({"apiVersion":"e.com/v1","kind":"W","metadata":{"name":"w"},"spec":{"l":[{"k":"r"}],"opts":{"b":"z","c":"d"}}})");
  EXPECT_FALSE(manager.apply_unowned(arena_, object, widget("spec: {l: [{k: p, v: x, k8s_io__value: unset}]}")).ok());
  EXPECT_FALSE(manager.apply_unowned(arena_, object, widget("spec: {nope: 1}")).ok());
}

TEST_F(Fields, TracksObjectsAtTheDecodersDepthLimit) {
  FieldManagerOptions options;
  options.api_version = "e.com/v1";
  options.kind = "W";
  options.versions.push_back({"e.com/v1", &MergeTypes::deduced()});
  options.unset_markers = true;
  const FieldManager manager(std::move(options));
  auto nested = [&](std::string_view inner) {
    std::string text = R"({"apiVersion":"e.com/v1","kind":"W","spec":)";
    constexpr size_t depth = limits::kDecodedDepth - 4;
    for (size_t i = 0; i < depth; ++i) text += "{\"a\":";
    text += inner;
    text += std::string(depth, '}');
    Result<Value> value = codec::decode_json(arena_, arena_.copy(std::string_view(text + "}")));
    EXPECT_TRUE(value.ok());
    return *value;
  };
  const Value first = nested("1"), second = nested("2");
  Result<ApplyResult> created = manager.apply(arena_, {.config = first, .manager = "a", .now = {1, 0}});
  ASSERT_TRUE(created.ok());
  const Result<ApplyResult> conflict = manager.apply(
      arena_,
      {.live = &created->object, .live_managed = &created->managed, .config = second, .manager = "b", .now = {2, 0}});
  ASSERT_FALSE(conflict.ok());
  EXPECT_EQ(conflict.error().causes.size(), 1u);
  const UpdateResult updated = manager.update(
      arena_,
      {.live = &created->object, .live_managed = &created->managed, .object = second, .manager = "c", .now = {3, 0}});
  EXPECT_EQ(updated.problem, "");
  EXPECT_EQ(updated.managed.size(), 2u);
}

// --- Extract ---

TEST_F(Fields, ExtractReturnsTheAppliedConfiguration) {
  const FieldManager manager = widgets();
  const Value mine = widget("metadata: {name: w, labels: {a: b}}, spec: {size: 1, opts: {a: x}, l: [{k: p, v: q}]}");
  Result<ApplyResult> first = manager.apply(arena_, {.config = mine, .manager = "me", .now = {1, 0}});
  ASSERT_TRUE(first.ok());
  const Value theirs = widget("metadata: {name: w}, spec: {replicas: 3, opts: {c: d}, l: [{k: p, w: x}, {k: r}]}");
  Result<ApplyResult> second = manager.apply(
      arena_,
      {.live = &first->object, .live_managed = &first->managed, .config = theirs, .manager = "them", .now = {2, 0}});
  ASSERT_TRUE(second.ok());
  const Result<Value> found = manager.extract(arena_, second->object, second->managed, "me");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(
      codec::encode_json_sorted(*found),
      R"({"apiVersion":"e.com/v1","kind":"W","metadata":{"labels":{"a":"b"}},"spec":{"l":[{"k":"p","v":"q"}],"opts":{"a":"x"},"size":1}})");
  EXPECT_TRUE(manager.extract(arena_, second->object, second->managed, "nobody")->is_null());
  EXPECT_TRUE(manager.extract(arena_, second->object, {}, "me")->is_null());
  EXPECT_TRUE(manager.extract(arena_, second->object, second->managed, "me", "status")->is_null());
}

// --- Scale ---

constexpr ReplicasPath kPaths[] = {{"apps/v1", "spec.replicas"}};

TEST_F(Fields, ScaleEntriesShowOwnersOfReplicas) {
  const Managed parent = managed(R"([
    {manager: a, operation: Apply, apiVersion: apps/v1, fieldsType: FieldsV1, time: "2026-01-01T00:00:02Z", fieldsV1: {"f:spec": {"f:replicas": {}, "f:x": {}}}},
    {manager: b, operation: Update, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:x": {}}}},
    {manager: c, operation: Update, apiVersion: apps/v0, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:replicas": {}}}}])");
  EXPECT_EQ(text(scale_entries(arena_, parent, kPaths)),
            R"([{"manager":"a","operation":"Apply","apiVersion":"autoscaling/v1","time":"2026-01-01T00:00:02Z",)"
            R"("fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}}}])");
}

TEST_F(Fields, ScalingTakesReplicasFromTheParentsOwner) {
  const Managed parent = managed(R"([
    {manager: a, operation: Apply, apiVersion: apps/v1, fieldsType: FieldsV1, time: "2026-01-01T00:00:02Z", fieldsV1: {"f:spec": {"f:replicas": {}, "f:x": {}}}},
    {manager: old, operation: Update, apiVersion: apps/v0, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:x": {}}}}])");
  const Managed scale = managed(R"([
    {manager: hpa, operation: Update, apiVersion: autoscaling/v1, fieldsType: FieldsV1, time: "2026-01-01T00:00:09Z", subresource: scale, fieldsV1: {"f:spec": {"f:replicas": {}}}}])");
  // As in Kubernetes, the new entry has no time, and the entry of a version that is no longer served is dropped.
  EXPECT_EQ(
      text(parent_entries(arena_, parent, scale, "apps/v1", kPaths)),
      R"([{"manager":"a","operation":"Apply","apiVersion":"apps/v1","time":"2026-01-01T00:00:02Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:x":{}}}},)"
      R"({"manager":"hpa","operation":"Update","apiVersion":"apps/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}},"subresource":"scale"}])");
}

TEST_F(Fields, UnchangedScaleKeepsTheAppliersEntry) {
  const Managed parent = managed(R"([
    {manager: a, operation: Apply, apiVersion: apps/v1, fieldsType: FieldsV1, time: "2026-01-01T00:00:02Z", fieldsV1: {"f:spec": {"f:replicas": {}, "f:x": {}}}}])");
  EXPECT_TRUE(ownership::equal(parent_entries(arena_, parent, scale_entries(arena_, parent, kPaths), "apps/v1", kPaths),
                               parent));
}

// --- Built-in kinds ---

FieldManager manager_of(std::string_view group, std::string_view kind) {
  const types::Resource* resource = types::find_kind(group, "v1", kind);
  const std::string api_version = group.empty() ? "v1" : std::string(group) + "/v1";
  FieldManagerOptions options;
  options.api_version = api_version;
  options.kind = kind;
  options.versions.push_back({api_version, &builtin_merge_types().of(*resource->type)});
  options.unset_markers = true;
  return FieldManager(std::move(options));
}

TEST_F(Fields, BuiltInTypesMatchPublishedOpenAPI) {
  const FieldManager manager = manager_of("", "Pod");
  auto owned = [&](std::string_view spec) {
    const Value config = yaml("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: " + std::string(spec) + "}");
    const Result<ApplyResult> result = manager.apply(arena_, {.config = config, .manager = "m", .now = {1, 0}});
    return !result                   ? result.error().message
           : result->managed.empty() ? "nothing"
                                     : to_fields_v1(result->managed[0].fields);
  };
  // List keys that Go always writes default to zero values; the protocol defaults to TCP.
  EXPECT_EQ(owned("{containers: [{image: x, ports: [{containerPort: 80}, {protocol: UDP}]}]}"),
            R"({"f:spec":{"f:containers":{"k:{\"name\":\"\"}":{".":{},"f:image":{},"f:ports":{)"
            R"("k:{\"containerPort\":0,\"protocol\":\"UDP\"}":{".":{},"f:protocol":{}},)"
            R"("k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}})");
  // Quantities and int-or-string ports are scalars; tolerations are atomic.
  EXPECT_EQ(
      owned("{containers: [{name: a, resources: {limits: {cpu: 1}}}], tolerations: [{key: x}], nodeSelector: {a: b}}"),
      R"({"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:resources":{"f:limits":{"f:cpu":{}}}}},"f:nodeSelector":{},"f:tolerations":{}}})");
  EXPECT_EQ(owned("{nope: 1}"),
            "failed to create typed patch object (/p; /v1, Kind=Pod): .spec.nope: field not declared in schema");
}

TEST_F(Fields, UnsetFieldOfBuiltInKindGetsItsDeclaredDefault) {
  const FieldManager manager = manager_of("", "ReplicationController");
  Value live =
      yaml("{apiVersion: v1, kind: ReplicationController, metadata: {name: r, uid: '1'}, spec: {replicas: 3}}");
  Managed owners;
  const Value config = yaml(
      "{apiVersion: v1, kind: ReplicationController, metadata: {name: r}, spec: {replicas: {k8s_io__value: unset}}}");
  auto apply = [&](std::string_view who) {
    Result<ApplyResult> result = manager.apply(
        arena_,
        {.live = &live, .live_managed = &owners, .config = config, .manager = who, .force = true, .now = {1, 0}});
    EXPECT_TRUE(result.ok());
    live = result->object;
    owners = result->managed;
    return result->changed;
  };
  EXPECT_TRUE(apply("a"));
  EXPECT_EQ(live.int_at_or(0, "spec", "replicas"), 1);
  EXPECT_FALSE(apply("a"));
  EXPECT_FALSE(apply("b"));
}

TEST_F(Fields, RawJsonIsAtomic) {
  const FieldManager manager = manager_of("apps", "ControllerRevision");
  const Value config =
      yaml("{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: r}, data: {a: {b: 1}}, revision: 1}");
  Value live = with_member(arena_, config, "data", Value::raw(R"({ "a": {"b":1} })"));
  const std::string_view uid[] = {"metadata", "uid"};
  live = with_path(arena_, live, uid, Value::string("1"));
  const Managed owners = managed(
      R"([{manager: m, operation: Apply, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {}, "f:revision": {}}}])");
  const Result<ApplyResult> result =
      manager.apply(arena_, {.live = &live, .live_managed = &owners, .config = config, .manager = "m", .now = {1, 0}});
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_FALSE(result->changed);
  EXPECT_EQ(to_fields_v1(result->managed[0].fields), R"({"f:data":{},"f:revision":{}})");
}

}  // namespace
}  // namespace holdfast::ownership
