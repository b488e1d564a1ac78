// Compares the results of the kinds with recorded responses of a real kube-apiserver (tests/golden, tests/vectors).

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <regex>

#include "base/api_version.h"
#include "base/files.h"
#include "codec/json.h"
#include "codec/typed.h"
#include "kinds/kinds.h"

namespace holdfast::kinds {
namespace {

const std::filesystem::path kTests = std::filesystem::path(HOLDFAST_SOURCE_DIR) / "tests";

const types::Resource* resource_of(const Value& object) {
  const std::string_view api_version = object.text_at("apiVersion");
  const auto [group, version] = split_api_version(api_version);
  const types::Resource* resource = types::find_kind(group, version, object.text_at("kind"));
  return resource != nullptr && resource->type != nullptr ? resource : nullptr;
}

const types::Resource& stored_of(const types::Resource& resource) {
  if (resource.plural == "events") return *types::find_resource("", "v1", "events");
  if (resource.plural == "horizontalpodautoscalers") {
    return *types::find_resource("autoscaling", "v2", "horizontalpodautoscalers");
  }
  return resource;
}

// --- tests/vectors: every kind as returned by the server ---

class VectorTest : public testing::TestWithParam<std::string> {};

std::vector<std::string> vector_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kTests / "vectors")) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(".json") || name == "index.json" || name.starts_with("table-") || name.starts_with("yaml-")) {
      continue;
    }
    Arena arena;
    const std::string text = *read_file(entry.path());
    const Result<Value> object = codec::decode_json(arena, text);
    if (object && resource_of(*object) != nullptr && object->get("metadata", "uid") != nullptr) {
      names.push_back(name.substr(0, name.size() - 5));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST_P(VectorTest, AReturnedObjectIsAlreadyDefaultedAndValid) {
  Arena arena;
  const std::string text = *read_file(kTests / "vectors" / (GetParam() + ".json"));
  const Value object = *codec::decode_json(arena, text);
  const types::Resource& resource = *resource_of(object);
  Result<Value> typed = codec::to_typed(arena, *resource.type, object);
  ASSERT_TRUE(typed) << typed.error().message;

  Draft draft(arena, *typed);
  set_defaults(arena, resource, draft.root());
  EXPECT_TRUE(equal(draft.value(), *typed)) << codec::encode_json(draft.value()) << "\n" << codec::encode_json(*typed);

  const types::Resource& stored = stored_of(resource);
  const Value before = convert(arena, resource, stored, *typed);
  EXPECT_TRUE(equal(convert(arena, stored, resource, before), *typed))
      << codec::encode_json(convert(arena, stored, resource, before)) << "\n"
      << codec::encode_json(*typed);

  Context context{.arena = arena, .resource = resource, .now = {1700000000, 0}};
  for (const Endpoint endpoint : {Endpoint::Main, Endpoint::Status}) {
    if (endpoint == Endpoint::Status && !rules_of(resource).has_status) continue;
    Draft next(arena, before);
    prepare_for_update(context, endpoint, next.root(), before);
    EXPECT_TRUE(equal(next.value(), before)) << codec::encode_json(next.value()) << "\n" << codec::encode_json(before);
    const Result<Unit> valid = validate_update(context, endpoint, before, before);
    EXPECT_TRUE(valid) << valid.error().message;
  }
}

INSTANTIATE_TEST_SUITE_P(Vectors, VectorTest, testing::ValuesIn(vector_names()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
});

// --- tests/golden: create requests and their responses ---

// Removes members that the server generates, or that another module adds.
Value comparable(Arena& arena, const Value& object) {
  Draft draft(arena, object);
  Draft::Node metadata = draft.root().child("metadata");
  for (const std::string_view key :
       {"uid", "resourceVersion", "creationTimestamp", "managedFields", "name", "namespace", "finalizers"}) {
    metadata.remove(key);
  }
  if (Draft::Node spec = draft.root().existing("spec")) {
    for (const std::string_view key : {"clusterIP", "clusterIPs"}) {
      const Value* ip = spec.find(key);
      if (ip != nullptr && !(ip->is_string() && ip->as_string() == "None")) spec.remove(key);
    }
    for (Draft::Node port : spec.list("ports")) port.remove("nodePort");
    // Added by admission.
    if (object.text_at("kind") == "Pod") spec.remove("tolerations");
    if (object.text_at("kind") == "Node") spec.remove("taints");
  }
  return draft.value();
}

class CreateTest : public testing::TestWithParam<std::string> {};

std::vector<std::string> recordings() {
  std::vector<std::string> files;
  for (const char* topic : {"crud", "patches", "apply"}) {
    const std::filesystem::path folder = kTests / "golden" / topic;
    if (!std::filesystem::exists(folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".json") files.push_back(std::string(topic) + "/" + entry.path().stem().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The created object after the steps of this module, or the error.
Result<Value> create(Arena& arena, const types::Resource& resource, const Value& body, const Value& answer) {
  Result<Value> typed = codec::to_typed(arena, *resource.type, body);
  if (!typed) return typed.take_error();
  Draft draft(arena, *typed);
  Draft::Node object = draft.root();
  set_defaults(arena, resource, object);
  Draft::Node metadata = object.child("metadata");
  metadata.remove("managedFields");
  if (resource.namespaced) metadata.set("namespace", Value::string("g-1"));
  for (const std::string_view key : {"name", "uid", "creationTimestamp"}) {
    const Value* given = answer.get("metadata", key);
    if (given != nullptr) metadata.set(key, *given);
  }
  Context context{.arena = arena, .resource = resource, .now = {1700000000, 0}};
  if (resource.plural == "services") {
    Result<ServiceClaims> claims = claims_of_create(context, object);
    if (!claims) return claims.take_error();
    std::vector<std::string> ips(claims->ips.size(), "10.0.0.7");
    std::vector<int32_t> ports;
    for (size_t i = 0; i < claims->ports.size(); ++i) ports.push_back(30000 + static_cast<int32_t>(i));
    fill_claims(arena, object, *claims, ips, ports);
  }
  prepare_for_create(context, object);
  const Value result = draft.value();
  if (Result<Unit> valid = validate_create(context, result); !valid) return valid.take_error();
  return result;
}

TEST_P(CreateTest, CreateGivesTheRecordedResult) {
  Arena arena;
  // Generated by each run: its id, and the letters of generated names.
  std::string text =
      std::regex_replace(*read_file(kTests / "golden" / (GetParam() + ".json")), std::regex("\\$\\{id\\}"), "x1");
  text = std::regex_replace(text, std::regex("<gen:[0-9]+>"), "bcdfg");
  const Value golden = *codec::decode_json(arena, text);
  for (const Value& step : golden.items_at("steps")) {
    const Value* request = step.find("request");
    const Value* body = request == nullptr ? nullptr : request->get("body", "json");
    const Value* answer = step.get("response", "body");
    const std::string_view path = request == nullptr ? "" : request->text_at("path");
    if (body == nullptr || answer == nullptr || request->text_at("method") != "POST" ||
        step.find("extract") != nullptr) {
      continue;
    }
    const types::Resource* resource = resource_of(*body);
    const int64_t code = step.int_at_or(0, "response", "code");
    const bool created = code == 201 && answer->text_at("kind") == body->text_at("kind");
    const bool refused = code == 422 && !answer->text_at("message").starts_with("CreateOptions");
    if (resource == nullptr || (!created && !refused) || resource->type == nullptr) continue;
    if (path.find(resource->plural) == std::string_view::npos) continue;
    if (body->text_at("kind").ends_with("Review")) continue;
    SCOPED_TRACE(std::string(path));
    const Result<Value> result = create(arena, *resource, *body, *answer);
    if (refused) {
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().message, answer->text_at("message"));
      continue;
    }
    ASSERT_TRUE(result) << result.error().message;
    Draft shown(arena, *result);
    const Value mine = comparable(arena, shown.value()), theirs = comparable(arena, *answer);
    EXPECT_TRUE(equal(mine, theirs)) << codec::encode_json_sorted(mine) << "\n" << codec::encode_json_sorted(theirs);
  }
}

INSTANTIATE_TEST_SUITE_P(Recordings, CreateTest, testing::ValuesIn(recordings()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
});

}  // namespace
}  // namespace holdfast::kinds
