// Recordings of a real kube-apiserver (tests/golden/apply), run through the field manager without a server.
//
// Each recorded response is the starting point of the next step: its object and managedFields become the live ones. An
// apply then gets the recorded configuration, an update the recorded result as its new object, and the outcome must be
// the recorded managedFields or the recorded error. Defaulting, validation and everything else a server does to an
// object are not tested here; steps that only a server can answer are skipped and counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "base/api_version.h"
#include "base/files.h"
#include "codec/codec.h"
#include "ownership/ownership.h"
#include "schema/schema.h"
#include "types/types.h"

namespace holdfast::ownership {
namespace {

// What Go prints for an empty value: the fields without omitempty.
Value zero_of(Arena& arena, const types::Type& type) {
  MapBuilder map(arena);
  for (const types::Field* f : type.members) {
    if (f->omit_empty || !f->exists(nullptr)) continue;
    const types::Type& t = *f->type;
    if (f->pointer || t.shape == types::Shape::List || t.shape == types::Shape::Map) {
      map.add(f->name, Value());
      continue;
    }
    switch (t.shape) {
      case types::Shape::Struct: {
        const Value inner = zero_of(arena, t);
        if (!f->omit_zero || inner.count() != 0) map.add(f->name, inner);
        break;
      }
      case types::Shape::String:
      case types::Shape::Duration:
        map.add(f->name, Value::string(""));
        break;
      case types::Shape::Int32:
      case types::Shape::Int64:
      case types::Shape::Double:
      case types::Shape::IntOrString:
        map.add(f->name, Value::integer(0));
        break;
      case types::Shape::Bool:
        map.add(f->name, Value::boolean(false));
        break;
      default:
        map.add(f->name, Value());
    }
  }
  return map.build();
}

struct Custom {
  struct Version {
    std::string name;
    std::shared_ptr<const schema::Schema> schema;
    bool status = false;
  };
  std::string group, kind, plural;
  std::vector<Version> versions;
  std::unique_ptr<MergeTypes> types = std::make_unique<MergeTypes>();
};

struct Target {
  std::string group, version, plural, name, subresource;
  std::map<std::string, std::string> query;
};

std::string unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

Target target_of(std::string_view path) {
  Target t;
  const size_t mark = path.find('?');
  std::string_view query = mark == std::string_view::npos ? "" : path.substr(mark + 1);
  path = path.substr(0, mark);
  while (!query.empty()) {
    const size_t amp = query.find('&');
    const std::string_view pair = query.substr(0, amp);
    const size_t eq = pair.find('=');
    t.query[std::string(pair.substr(0, eq))] = eq == std::string_view::npos ? "" : unescaped(pair.substr(eq + 1));
    query = amp == std::string_view::npos ? "" : query.substr(amp + 1);
  }
  std::vector<std::string> parts;
  std::stringstream in{std::string(path)};
  for (std::string part; std::getline(in, part, '/');) {
    if (!part.empty()) parts.push_back(part);
  }
  if (parts.size() < 3) return t;
  size_t at = 0;
  if (parts[0] == "api") {
    t.version = parts[1];
    at = 2;
  } else {
    t.group = parts[1];
    t.version = parts[2];
    at = 3;
  }
  if (at + 2 < parts.size() && parts[at] == "namespaces" && parts.size() > at + 2 && parts[at + 2] != "status" &&
      parts[at + 2] != "finalize") {
    at += 2;
  }
  auto take = [&](std::string& to) {
    if (at < parts.size()) to = parts[at++];
  };
  take(t.plural);
  take(t.name);
  take(t.subresource);
  return t;
}

std::string api_version(const Target& t) { return api_version_of(t.group, t.version); }

std::vector<std::string_view> resets(const Target& t, bool custom, std::string_view kind) {
  if (t.subresource == "status") {
    if (custom) return {"spec", "metadata"};
    if (kind == "Deployment") return {"spec", "metadata.labels"};
    if (kind == "Pod") return {"spec", "metadata.deletionTimestamp", "metadata.ownerReferences"};
    return {"spec"};
  }
  return {"status"};
}

class Player {
 public:
  explicit Player(const std::filesystem::path& file) : text_(*read_file(file)) {
    Result<Value> root = codec::decode_json(arena_, text_);
    EXPECT_TRUE(root.ok());
    root_ = *root;
  }

  void play() {
    int number = 0;
    for (const Value& step : root_.items_at("steps")) {
      ++number;
      SCOPED_TRACE("step " + std::to_string(number) + " of " + std::string(root_.text_at("name")));
      run(step);
    }
  }
  int checked = 0;
  std::map<std::string, int> passed_over;

 private:
  struct Stored {
    Value object;
    Managed managed;
  };

  void run(const Value& step) {
    const Value& request = *step.find("request");
    const Value& response = *step.find("response");
    const std::string_view method = request.text_at("method");
    const Target t = target_of(request.text_at("path"));
    const Value* body = response.find("body");
    const Value* sent = request.get("body", "json");
    if (sent == nullptr) sent = request.get("body", "cbor");
    Value from_text;
    if (const std::string_view text = request.text_at("body", "text"); sent == nullptr && !text.empty()) {
      // Text that is not YAML is for the server to reject.
      const bool json = request.text_at("headers", "Content-Type") == "application/json";
      Result<Value> read = json ? codec::decode_json(arena_, text) : codec::decode_yaml(arena_, text);
      if (read && read->is_map()) {
        from_text = *read;
        sent = &from_text;
      }
    }
    const int64_t code = response.int_at_or(0, "code");
    if (t.plural == "customresourcedefinitions" && sent != nullptr && code < 300) {
      if (method == "POST" || request.text_at("headers", "Content-Type").starts_with("application/apply")) {
        definitions_[std::string(sent->text_at("metadata", "name"))] = *sent;
        define(*sent);
      } else if (sent->is_map()) {
        Value& definition = definitions_[t.name];
        definition = merge_patched(definition, *sent);
        define(definition);
      } else if (sent->is_list()) {
        Value& definition = definitions_[t.name];
        for (const Value& op : sent->items()) definition = patched(definition, op.text_at("path"), op.find("value"));
        define(definition);
      }
    }
    const bool whole = !step.has("extract") && !step.has("mask") && body != nullptr && body->is_map();
    const bool writes = method == "POST" || method == "PUT" || method == "PATCH";
    const bool dry = t.query.contains("dryRun");
    if (writes && !t.plural.empty()) {
      if (sent == nullptr) {
        pass_over("the body is not JSON");
        if (code < 300 && !dry) unknown_.insert(key_of(t, t.name));
      } else if (body != nullptr || code < 300) {
        const bool listed = step.text_at("extract", "managed") == "metadata.managedFields";
        write(t, request, *sent, whole ? body : nullptr, listed ? response.get("extract", "managed") : nullptr, code);
      }
    }
    // An object in a response is the object as currently stored.
    if (whole && code < 300 && !dry && body->get("metadata", "uid") != nullptr && body->text_at("kind") != "Scale") {
      remember(t, *body);
    }
    if (method == "DELETE") unknown_.insert(key_of(t, t.name));
  }

  std::string key_of(const Target& t, std::string_view name) {
    return t.group + "/" + t.plural + "/" + std::string(name);
  }

  void remember(const Target& t, const Value& body) {
    const std::string key = key_of(t, body.text_at("metadata", "name"));
    unknown_.erase(key);
    Stored& stored = objects_[key];
    stored.object = body;
    stored.managed.clear();
    if (const Value* list = body.get("metadata", "managedFields")) {
      Result<Managed> managed = decode(*list);
      ASSERT_TRUE(managed.ok()) << managed.error().message;
      stored.managed = *managed;
    }
  }

  // Times in recordings are <time:N>: N seconds after 2020, to preserve their order.
  Result<Managed> decode(const Value& list) {
    ListBuilder out(arena_);
    for (const Value& item : list.items()) {
      const std::string_view time = item.text_at("time");
      Value entry = item;
      if (time.starts_with("<time:")) {
        const int64_t n = std::stoll(std::string(time.substr(6)));
        entry = with_member(arena_, item, "time", Value::string(arena_, format_rfc3339({kBase + n, 0})));
      } else if (!time.empty() && !parse_rfc3339(time)) {
        entry = without_member(arena_, item, "time");
      }
      out.add(entry);
    }
    return decode_managed(arena_, out.build());
  }

  void define(const Value& crd) {
    auto custom = std::make_shared<Custom>();
    custom->group = crd.text_at("spec", "group");
    custom->kind = crd.text_at("spec", "names", "kind");
    custom->plural = crd.text_at("spec", "names", "plural");
    const Value* preserve = crd.get("spec", "preserveUnknownFields");
    for (const Value& version : crd.items_at("spec", "versions")) {
      const Value* schema = version.get("schema", "openAPIV3Schema");
      custom->versions.push_back(
          {std::string(version.text_at("name")),
           schema::Schema::build(schema == nullptr ? Value() : *schema,
                                 preserve != nullptr && preserve->is_bool() && preserve->as_bool()),
           version.get("subresources", "status") != nullptr});
    }
    customs_[custom->group + "/" + custom->plural] = custom;
  }

  std::unique_ptr<FieldManager> manager_for(const Target& t) {
    FieldManagerOptions options;
    options.api_version = api_version(t);
    options.subresource = t.subresource;
    if (const auto found = customs_.find(t.group + "/" + t.plural); found != customs_.end()) {
      const std::shared_ptr<Custom> custom = found->second;
      options.kind = custom->kind;
      bool served = false;
      for (const Custom::Version& version : custom->versions) {
        ServedVersion view;
        view.api_version = custom->group + "/" + version.name;
        view.type = &custom->types->of(version.schema->root());
        served |= view.api_version == options.api_version;
        const bool covered = t.subresource == "status" || (view.api_version == options.api_version && version.status);
        if (covered) view.reset = ResetFilter(resets(t, true, custom->kind), {});
        options.versions.push_back(std::move(view));
      }
      if (!served) return nullptr;
      options.convert = [](Arena& arena, const Value& object, std::string_view, std::string_view to) -> Result<Value> {
        return with_member(arena, object, "apiVersion", Value::string(to));
      };
      return std::make_unique<FieldManager>(std::move(options));
    }
    const types::Resource* resource = types::find_resource(t.group, t.version, t.plural);
    if (resource == nullptr || resource->type == nullptr) return nullptr;
    options.kind = resource->kind;
    ServedVersion view;
    view.api_version = options.api_version;
    view.type = &builtin_merge_types().of(*resource->type);
    if (t.subresource == "resize") {
      const std::string_view keep[] = {"spec.containers[].resources", "spec.containers[].resizePolicy",
                                       "spec.initContainers[].resources", "spec.initContainers[].resizePolicy"};
      view.reset = ResetFilter({}, keep);
    } else {
      view.reset = ResetFilter(resets(t, false, resource->kind), {});
    }
    options.versions.push_back(std::move(view));
    options.zero_object = [resource](Arena& arena) { return zero_of(arena, *resource->type); };
    return std::make_unique<FieldManager>(std::move(options));
  }

  void pass_over(const std::string& why) { ++passed_over[why]; }

  // `body` is the recorded response, `managed` the part of it that was recorded separately; either may be missing.
  void write(const Target& t, const Value& recorded, const Value& sent, const Value* body, const Value* managed,
             int64_t code) {
    const std::string_view type = recorded.text_at("headers", "Content-Type");
    const bool apply = type.starts_with("application/apply-patch");
    const std::string name(t.name.empty() ? sent.text_at("metadata", "name") : std::string_view(t.name));
    const std::string key = key_of(t, name);
    if (unknown_.contains(key)) return pass_over("the live object was not recorded");
    // Until a later response shows the object.
    const bool dry = t.query.contains("dryRun");
    if (body == nullptr && code < 300 && !dry) unknown_.insert(key);

    // Scale is a different kind; kinds with several versions need the server's conversion.
    const std::unique_ptr<FieldManager> manager =
        t.subresource == "scale" || t.plural == "horizontalpodautoscalers" ? nullptr : manager_for(t);
    if (manager == nullptr) return pass_over("kind " + t.group + "/" + t.plural + " " + t.subresource);
    const auto found = objects_.find(key);
    const Stored* live = found == objects_.end() ? nullptr : &found->second;
    const std::string_view who =
        arena_.copy(std::string_view(manager_name(t.query.contains("fieldManager") ? t.query.at("fieldManager") : "",
                                                  recorded.text_at("headers", "User-Agent"))));
    static const Value nothing;
    if (managed == nullptr && body != nullptr) managed = body->get("metadata", "managedFields");
    if (managed == nullptr && body != nullptr) managed = &nothing;
    std::optional<Stored> result;
    if (apply) {
      result = check_apply(*manager, t, live, who, sent, body, managed, code);
    } else if (code >= 300) {
      pass_over("an update that failed");
    } else {
      result = check_update(*manager, t, live, who, type, sent, body, managed);
    }
    // If the response is incomplete, continue with our own result, provided that no server would have added to it.
    const bool ours = customs_.contains(t.group + "/" + t.plural) || t.plural == "configmaps";
    if (body == nullptr && result && ours && !dry) {
      const std::string_view uid[] = {"metadata", "uid"};
      result->object = with_path(arena_, defaulted(t, result->object), uid, Value::string("simulated"));
      objects_[key] = *result;
      unknown_.erase(key);
    }
  }

  Value defaulted(const Target& t, const Value& object) {
    const auto custom = customs_.find(t.group + "/" + t.plural);
    if (custom == customs_.end()) return object;
    for (const Custom::Version& version : custom->second->versions) {
      if (version.name == t.version) return schema::apply_defaults(arena_, version.schema->root(), object);
    }
    return object;
  }

  std::optional<Stored> check_apply(const FieldManager& manager, const Target& t, const Stored* live,
                                    std::string_view who, const Value& sent, const Value* body, const Value* managed,
                                    int64_t code) {
    const auto force = t.query.find("force");
    ApplyRequest request{.live = live == nullptr ? nullptr : &live->object,
                         .live_managed = live == nullptr ? nullptr : &live->managed,
                         .config = sent,
                         .manager = who,
                         .force = force != t.query.end() && force->second != "false" && force->second != "0",
                         .now = {kNow, 0}};
    if (live == nullptr && !t.subresource.empty()) {
      pass_over("a subresource of an object that does not exist");
      return std::nullopt;
    }
    Result<ApplyResult> result = manager.apply(arena_, request);
    if (code < 300) {
      EXPECT_TRUE(result.ok()) << result.error().message;
      if (!result) return std::nullopt;
      if (managed != nullptr) expect_managed(result->managed, *managed);
      if (body != nullptr) expect_object(t, result->object, *body);
      return Stored{result->object, result->managed};
    }
    const std::string_view message = body == nullptr ? "" : body->text_at("message");
    const bool ours = message.starts_with("Apply failed with") || message.starts_with("invalid object type") ||
                      message.starts_with("metadata.managedFields must be nil") ||
                      message.starts_with("failed to create typed patch");
    if (!ours) {
      pass_over("rejected by the server: " + std::string(message.substr(0, 40)));
      return std::nullopt;
    }
    EXPECT_FALSE(result.ok()) << message;
    if (result) return std::nullopt;
    ++checked;
    EXPECT_EQ(result.error().message, message);
    if (code == 409) {
      std::set<std::pair<std::string, std::string>> want, got;
      for (const Value& cause : body->items_at("details", "causes")) {
        want.emplace(cause.text_at("message"), cause.text_at("field"));
      }
      for (const Cause& cause : result.error().causes) got.emplace(cause.message, cause.field);
      EXPECT_EQ(got, want);
      EXPECT_EQ(result.error().reason, Reason::Conflict);
    }
    return std::nullopt;
  }

  // For custom resources and ConfigMaps: compares everything but metadata and status, which other writers and the
  // server change.
  void expect_object(const Target& t, const Value& got, const Value& want) {
    const bool custom = customs_.contains(t.group + "/" + t.plural);
    if (!t.subresource.empty() || (!custom && t.plural != "configmaps")) return;
    // Nulls without a type are dropped on every read; a null in a ConfigMap's data becomes "".
    const Value filled = without_nulls(defaulted(t, got));
    for (const Member& m : want.members()) {
      if (m.key == "metadata" || m.key == "status" || (m.key == "data" && has_null(got))) continue;
      const Value* mine = filled.find(m.key);
      EXPECT_TRUE(mine != nullptr && holdfast::equal(*mine, without_nulls(m.value)))
          << m.key << ": " << (mine == nullptr ? "absent" : codec::encode_json(*mine)) << " instead of "
          << codec::encode_json(m.value);
    }
  }

  std::optional<Stored> check_update(const FieldManager& manager, const Target& t, const Stored* live,
                                     std::string_view who, std::string_view type, const Value& sent, const Value* body,
                                     const Value* managed) {
    // Nobody owns the fields that the server itself sets, and the response does not distinguish them.
    static const std::set<std::string> kServerFills = {"services", "persistentvolumeclaims", "namespaces", "jobs"};
    if (kServerFills.contains(t.plural)) {
      pass_over("server fills " + t.plural);
      return std::nullopt;
    }
    const bool replaces = type == "application/json";
    Value object;
    // The server adds only defaults to a custom resource, so the request body is the better source.
    const bool custom = customs_.contains(t.group + "/" + t.plural) && t.subresource.empty();
    if (body != nullptr && !(custom && replaces)) {
      object = *body;
    } else if (replaces) {
      object = defaulted(t, sent);
    } else if (live != nullptr && type.starts_with("application/merge-patch")) {
      object = defaulted(t, merge_patched(live->object, sent));
    } else {
      pass_over("the patched object was not recorded");
      return std::nullopt;
    }
    const std::string_view path[] = {"metadata", "managedFields"};
    object = without_path(arena_, object, path);
    const Value* set = replaces || !sent.is_list() ? sent.get("metadata", "managedFields") : nullptr;
    if (sent.is_list()) {
      for (const Value& op : sent.items()) {
        if (op.text_at("path").starts_with("/metadata/managedFields")) {
          pass_over("the patched list was not recorded");
          return std::nullopt;
        }
      }
    }
    if (set != nullptr && set->is_list()) object = with_path(arena_, object, path, timed(*set));
    UpdateRequest request{.live = live == nullptr ? nullptr : &live->object,
                          .live_managed = live == nullptr ? nullptr : &live->managed,
                          .object = object,
                          .manager = who,
                          .now = {kNow, 0}};
    const UpdateResult result = manager.update(arena_, request);
    EXPECT_EQ(result.problem, "");
    if (managed != nullptr) expect_managed(result.managed, *managed);
    return Stored{result.object, result.managed};
  }

  // A JSON patch's "add", or "remove" if there is no value.
  Value patched(const Value& at, std::string_view path, const Value* value) {
    if (path.empty()) return *value;
    path.remove_prefix(1);
    const size_t slash = path.find('/');
    const std::string_view step = path.substr(0, slash);
    const std::string_view rest = slash == std::string_view::npos ? "" : path.substr(slash);
    if (at.is_list()) {
      ListBuilder out(arena_);
      const size_t wanted = std::stoul(std::string(step));
      for (size_t i = 0; i < at.count(); ++i) {
        out.add(i == wanted ? patched(at.items()[i], rest, value) : at.items()[i]);
      }
      return out.build();
    }
    if (rest.empty() && value == nullptr) return without_member(arena_, at, step);
    const Value* old = at.find(step);
    return with_member(arena_, at, step, patched(old == nullptr ? Value() : *old, rest, value));
  }

  static bool has_null(const Value& v) {
    if (v.is_map())
      return std::any_of(v.members().begin(), v.members().end(), [](const Member& m) { return has_null(m.value); });
    return v.is_null();
  }

  Value without_nulls(const Value& v) {
    if (!v.is_map()) return v;
    MapBuilder out(arena_);
    for (const Member& m : v.members()) {
      if (!m.value.is_null()) out.add(m.key, without_nulls(m.value));
    }
    return out.build();
  }

  Value merge_patched(const Value& object, const Value& patch) {
    if (!patch.is_map()) return patch;
    Value out = object.is_map() ? object : Value::empty_map();
    for (const Member& m : patch.members()) {
      if (m.value.is_null()) {
        out = without_member(arena_, out, m.key);
      } else {
        const Value* old = out.find(m.key);
        out = with_member(arena_, out, m.key, merge_patched(old == nullptr ? Value() : *old, m.value));
      }
    }
    return out;
  }

  Value timed(const Value& list) {
    ListBuilder out(arena_);
    for (const Value& item : list.items()) {
      const std::string_view time = item.text_at("time");
      const bool bad = !time.empty() && !parse_rfc3339(time);
      out.add(bad ? with_member(arena_, item, "time", Value::string("2020-01-01T00:00:00Z")) : item);
    }
    return out.build();
  }

  // Recorded sets have been parsed once, which rounds large integers.
  std::string as_read(FieldSet set) { return to_fields_v1(*parse_fields_v1(arena_, to_fields_v1(set))); }

  void expect_managed(const Managed& got, const Value& list) {
    ++checked;
    Managed want;
    if (list.is_list()) {
      Result<Managed> managed = decode(list);
      ASSERT_TRUE(managed.ok());
      want = *managed;
    }
    auto text = [this](const Managed& managed) {
      std::string out;
      for (const ManagerEntry& entry : managed) {
        out += identity_text(entry) + " " + std::string(entry.api_version) + (entry.time ? " timed " : " timeless ") +
               as_read(entry.fields) + "\n";
      }
      return out;
    };
    EXPECT_EQ(text(got), text(want));
  }

  static constexpr int64_t kBase = 1577836800, kNow = kBase + 1000000;
  std::string text_;
  Arena arena_;
  Value root_;
  std::map<std::string, Stored> objects_;
  std::set<std::string> unknown_;  // Objects whose state was not recorded.
  std::map<std::string, Value> definitions_;
  std::map<std::string, std::shared_ptr<Custom>> customs_;
};

TEST(Golden, RecordedAppliesAndUpdatesGiveRecordedOwnership) {
  const std::filesystem::path folder = std::filesystem::path(HOLDFAST_SOURCE_DIR) / "tests/golden/apply";
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  int checked = 0;
  std::map<std::string, int> passed_over;
  for (const std::filesystem::path& file : files) {
    SCOPED_TRACE(file.filename().string());
    Player player(file);
    player.play();
    checked += player.checked;
    for (const auto& [why, count] : player.passed_over) passed_over[why] += count;
  }
  RecordProperty("checked", checked);
  std::printf("%d recorded writes checked; left to the server's own tests:\n", checked);
  for (const auto& [why, count] : passed_over) std::printf("  %3d %s\n", count, why.c_str());
  EXPECT_GT(checked, 250);
}

}  // namespace
}  // namespace holdfast::ownership
