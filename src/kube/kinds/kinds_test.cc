#include "kinds/kinds.h"

#include <algorithm>
#include <random>
#include <set>

#include "base/strings.h"
#include "base/text.h"
#include "codec/json.h"
#include "codec/typed.h"
#include "kinds/difference.h"
#include "kinds/testing.h"

namespace holdfast::kinds {
namespace {

Value merged(Arena& arena, const Value& to, const Value& patch) {
  if (!patch.is_map()) return patch;
  Value result = to.is_map() ? to : Value::empty_map();
  for (const Member& member : patch.members()) {
    const Value* before = result.find(member.key);
    result = member.value.is_null()
                 ? without_member(arena, result, member.key)
                 : with_member(arena, result, member.key,
                               merged(arena, before == nullptr ? Value::null() : *before, member.value));
  }
  return result;
}

bool includes(const Value& got, const Value& want) {
  if (!want.is_map()) return equal(got, want);
  for (const Member& member : want.members()) {
    const Value* found = got.find(member.key);
    if (member.value.is_null() ? found != nullptr : found == nullptr || !includes(*found, member.value)) return false;
  }
  return true;
}

Value defaulted(Arena& arena, const types::Resource& resource, const Value& object) {
  Result<Value> typed = codec::to_typed(arena, *resource.type, object);
  EXPECT_TRUE(typed) << typed.error().message;
  Draft draft(arena, *typed);
  set_defaults(arena, resource, draft.root());
  return draft.value();
}

}  // namespace

TEST_P(KindTest, BehavesLikeKubernetes) {
  const Case& c = GetParam();
  Arena arena;
  const types::Resource* resource = types::find_resource(c.group, "v1", c.plural);
  if (resource == nullptr) resource = types::find_resource(c.group, "v2", c.plural);
  ASSERT_NE(resource, nullptr);
  const std::string frame = R"({"kind":")" + std::string(resource->kind) + R"(","apiVersion":")" +
                            (*c.group == 0 ? "" : std::string(c.group) + "/") + std::string(resource->version) +
                            R"(","metadata":{"name":"x","uid":"u-1","resourceVersion":"7",)"
                            R"("creationTimestamp":"2026-01-01T00:00:00Z")" +
                            (resource->namespaced ? R"(,"namespace":"ns")" : "") + "}}";
  const Value sent = merged(arena, *codec::decode_json(arena, frame), *codec::decode_json(arena, c.object));
  const std::string_view families[] = {"IPv4"};
  const Caller caller{.name = "alice", .uid = "", .groups = {}, .extra = {}};
  Context context{.arena = arena,
                  .resource = *resource,
                  .now = {1767225600, 0},
                  .caller = &caller,
                  .service_ip_families = families,
                  .sent = sent};
  Draft draft(arena, defaulted(arena, *resource, sent));
  Result<Unit> valid = Unit{};
  if (resource->plural == "services") {
    Result<ServiceClaims> claims = claims_of_create(context, draft.root());
    if (claims) {
      const std::vector<std::string> ips(claims->ips.size(), "10.0.0.9");
      std::vector<int32_t> ports;
      for (size_t i = 0; i < claims->ports.size(); ++i) ports.push_back(30100 + static_cast<int32_t>(i));
      fill_claims(arena, draft.root(), *claims, ips, ports);
    } else {
      valid = claims.take_error();
    }
  }
  prepare_for_create(context, draft.root());
  Value result = draft.value();
  if (valid) valid = validate_create(context, result);
  if (c.update != nullptr) {
    ASSERT_TRUE(valid) << valid.error().message;
    const Value old = c.stored == nullptr ? result : merged(arena, result, *codec::decode_json(arena, c.stored));
    Draft next(arena, defaulted(arena, *resource, merged(arena, old, *codec::decode_json(arena, c.update))));
    if (resource->plural == "services" && c.endpoint == Endpoint::Main) {
      ASSERT_TRUE(claims_of_update(context, next.root(), old));
    }
    prepare_for_update(context, c.endpoint, next.root(), old);
    result = next.value();
    valid = validate_update(context, c.endpoint, result, old);
  }
  if (c.error != nullptr) {
    ASSERT_FALSE(valid);
    const std::string& message = valid.error().message;
    const size_t at = message.find(" is invalid: ");
    ASSERT_NE(at, std::string::npos) << message;
    EXPECT_EQ(message.substr(at + 13), c.error);
    return;
  }
  ASSERT_TRUE(valid) << valid.error().message;
  if (c.want != nullptr) {
    EXPECT_TRUE(includes(result, *codec::decode_json(arena, c.want))) << codec::encode_json(result);
  }
}

namespace {

TEST(KindsTest, GeneratedNamesAreTruncatedAndGetFiveLetters) {
  EXPECT_EQ(generate_name("web-", 0), "web-bbbbb");
  EXPECT_EQ(generate_name(std::string(70, 'a'), 1).size(), 63u);
}

TEST(KindsTest, OnlyScheduledPodsHaveAGracePeriod) {
  Arena arena;
  const Rules& pods = rules_of("", "pods");
  const Value waiting = *codec::decode_json(arena, R"({"spec":{"terminationGracePeriodSeconds":30}})");
  const Value running = *codec::decode_json(
      arena, R"({"spec":{"nodeName":"n","terminationGracePeriodSeconds":30},"status":{"phase":"Running"}})");
  EXPECT_EQ(grace_period(pods, waiting, std::nullopt), 0);
  EXPECT_EQ(grace_period(pods, running, std::nullopt), 30);
  EXPECT_EQ(grace_period(pods, running, 5), 5);
  EXPECT_EQ(grace_period(pods, running, -1), 1);
}

TEST(KindsTest, APodIsBoundOnlyOnce) {
  Arena arena;
  const types::Resource& pods = *types::find_resource("", "v1", "pods");
  Context context{.arena = arena, .resource = pods, .now = {1767225600, 0}};
  Draft draft(arena, *codec::decode_json(arena, R"({"metadata":{"name":"p"},"spec":{},"status":{"phase":"Pending"}})"));
  const Value binding =
      *codec::decode_json(arena, R"({"metadata":{"name":"p","annotations":{"a":"b"}},"target":{"name":"n"}})");
  ASSERT_TRUE(bind_pod(context, draft.root(), binding));
  EXPECT_EQ(draft.value().text_at("spec", "nodeName"), "n");
  EXPECT_EQ(draft.value().text_at("metadata", "annotations", "a"), "b");
  EXPECT_EQ(draft.value().items_at("status", "conditions")[0].text_at("type"), "PodScheduled");
  const Result<Unit> again = bind_pod(context, draft.root(), binding);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().message,
            R"(Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n")");
}

TEST(KindsTest, AnEmptyMapIsShownAsItWasSent) {
  Arena arena;
  const types::Resource& sets = *types::find_resource("apps", "v1", "daemonsets");
  const auto message_for = [&](std::string_view labels) {
    const std::string text = R"({"kind":"DaemonSet","apiVersion":"apps/v1","metadata":{"name":"x","namespace":"ns"},)"
                             R"("spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{)" +
                             std::string(labels) + R"(},"spec":{"containers":[{"name":"c","image":"i"}]}}}})";
    const Value sent = *codec::decode_json(arena, arena.copy(text));
    Context context{.arena = arena, .resource = sets, .now = {1767225600, 0}, .sent = sent};
    Draft draft(arena, defaulted(arena, sets, sent));
    prepare_for_create(context, draft.root());
    const Result<Unit> valid = validate_create(context, draft.value());
    return valid ? std::string() : valid.error().causes.at(0).message + "\n" + valid.error().message;
  };
  const auto expected = [](std::string_view shown) {
    const std::string message =
        "Invalid value: " + std::string(shown) + ": `selector` does not match template `labels`";
    return message + "\n" + R"(DaemonSet.apps "x" is invalid: spec.template.metadata.labels: )" + message;
  };
  EXPECT_EQ(message_for(R"("labels":{})"), expected("{}"));
  EXPECT_EQ(message_for(R"("labels":null)"), expected("null"));
  EXPECT_EQ(message_for(""), expected("null"));
}

// --- The difference shown for a field that must not change ---

Value with_args(Arena& arena, std::span<const std::string> args) {
  ListBuilder list(arena);
  for (const std::string& arg : args) list.add(Value::string(arena, arg));
  MapBuilder container(arena);
  container.add("name", Value::string("c"));
  container.add("args", list.build());
  ListBuilder containers(arena);
  containers.add(container.build());
  MapBuilder spec(arena);
  spec.add("containers", containers.build());
  return spec.build();
}

std::string args_difference(std::span<const std::string> before, std::span<const std::string> after) {
  Arena arena;
  const types::Type& type = *types::find_type("core/v1.PodSpec");
  return difference(type, with_args(arena, before), with_args(arena, after));
}

// What `before` becomes by a unified diff: its hunks have only lines that are in the text, in order.
bool explains(const std::string& diff, std::span<const std::string> before, std::span<const std::string> after) {
  std::multiset<std::string> removed, added;
  for (const std::string_view line : split(diff, '\n')) {
    if (line.empty() || line.starts_with("@@")) continue;
    std::string_view text = trim(line.substr(1));
    if (text.ends_with(',')) text.remove_suffix(1);
    if (!text.starts_with("\"x")) continue;
    if (line[0] == '-') removed.emplace(text);
    if (line[0] == '+') added.emplace(text);
  }
  std::multiset<std::string> lines;
  for (const std::string& arg : before) lines.insert(go_quote(arg));
  for (const std::string& line : removed) {
    const auto found = lines.find(line);
    if (found == lines.end()) return false;
    lines.erase(found);
  }
  lines.insert(added.begin(), added.end());
  std::multiset<std::string> want;
  for (const std::string& arg : after) want.insert(go_quote(arg));
  return lines == want;
}

TEST(DifferenceTest, ShowsWhatWasRemovedAndAdded) {
  const std::string before[] = {"x1", "x2", "x3"}, after[] = {"x1", "x3", "x4"};
  const std::string diff = args_difference(before, after);
  EXPECT_NE(diff.find("-    \"x2\",\n"), std::string::npos) << diff;
  EXPECT_NE(diff.find("+    \"x4\"\n"), std::string::npos) << diff;
}

TEST(DifferenceTest, OfManyInterleavedLinesIsFoundWithBoundedWork) {
  std::mt19937 random(1);
  for (const size_t count : {10u, 300u, 20'000u}) {
    std::vector<std::string> before, after;
    for (size_t i = 0; i < count; ++i) before.push_back("x" + std::to_string(i));
    for (size_t i = 1; i < count; i += 2) after.push_back(before[i]);
    for (size_t i = 0; i < count; i += 2) after.push_back(before[i]);
    EXPECT_TRUE(explains(args_difference(before, after), before, after)) << count;
    std::shuffle(after.begin(), after.end(), random);
    EXPECT_TRUE(explains(args_difference(before, after), before, after)) << count;
  }
}

// kube-apiserver reports each error as two causes; the message contains it once.
TEST(KindsTest, LabelsOfAStatefulSetTemplateAreValidatedTwice) {
  Arena arena;
  const types::Resource* resource = types::find_resource("apps", "v1", "statefulsets");
  const Value sent = *codec::decode_json(
      arena,
      R"({"kind":"StatefulSet","apiVersion":"apps/v1","metadata":{"name":"x","namespace":"ns"},"spec":)"
      R"({"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b","c":"d!"}},)" POD_SPEC "}}}");
  Context context{.arena = arena, .resource = *resource, .sent = sent};
  const Result<Unit> valid = validate_create(context, defaulted(arena, *resource, sent));
  ASSERT_FALSE(valid);
  ASSERT_EQ(valid.error().causes.size(), 2u);
  for (const Cause& cause : valid.error().causes) EXPECT_EQ(cause.field, "spec.template.labels");
}

TEST(KindsTest, ResetFieldsDependOnTheEndpoint) {
  const types::Resource& deployments = *types::find_resource("apps", "v1", "deployments");
  EXPECT_EQ(reset_fields(deployments, Endpoint::Main).reset[0], "status");
  EXPECT_EQ(reset_fields(deployments, Endpoint::Status).reset.size(), 2u);
  const types::Resource& pods = *types::find_resource("", "v1", "pods");
  EXPECT_TRUE(reset_fields(pods, Endpoint::EphemeralContainers).reset.empty());
}

}  // namespace
}  // namespace holdfast::kinds
