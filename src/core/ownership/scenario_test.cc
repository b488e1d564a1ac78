// Scenarios of many steps, in tests/scenario/ownership. Anyone who knows kubectl can write one:
//
//   story: what the scenario shows
//   given: the properties of spec in a CRD's schema (or `schema:` for those of the whole object)
//   gates: [unset]                                      off unless named
//   versions: {v2: {size: count}}                       further versions, with the fields of spec that are renamed
//   steps:
//   - apply: {as: alice, spec: {...}}                   also: force, version, subresource, metadata, status
//   - update: {as: bob, spec: {...}}                    a PUT; creates the object if there is none
//   - patch: {as: bob, spec: {...}}                     a JSON merge patch
//   - inject: {spec: {...}}                             a JSON merge patch that nobody owns, as by admission
//   - given: {...}                                      the schema changes
//   - gone: v1                                          a version is no longer served
//   - wait: 5                                           seconds pass (in addition to one per step)
//     conflicts: ['"alice": .spec.size']                the step fails with exactly these conflicts
//     fails: text                                       the step fails with an error containing this
//     changed: false                                    the step changes nothing in the object
//     spec: {...}                                       spec afterwards (null if absent)
//     owners: {alice: [.spec.size], bob update: [...]}  all owners afterwards
//
// Owners are identified by manager, "update" if not applied, /subresource, @version if not v1.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/files.h"
#include "codec/codec.h"
#include "ownership/ownership.h"
#include "schema/schema.h"

namespace holdfast::ownership {
namespace {

class Story {
 public:
  explicit Story(std::string_view text) {
    Result<Value> root = codec::decode_yaml(arena_, text);
    EXPECT_TRUE(root.ok()) << root.error().message << "\n" << text;
    if (root.ok()) root_ = *root;
  }

  std::string name() const { return std::string(root_.text_at("story")); }

  void play() {
    names_["v1"] = {};
    for (const Member& version : root_.members_at("versions")) {
      std::map<std::string, std::string>& names = names_[std::string(version.key)];
      for (const Member& field : version.value.members()) names[std::string(field.key)] = field.value.as_string();
    }
    if (const Value* given = root_.find("given")) set_spec_schema(*given);
    if (const Value* schema = root_.find("schema")) set_schema(*schema);
    for (const Value& gate : root_.items_at("gates")) gates_.insert(std::string(gate.as_string()));
    int number = 0;
    for (const Value& step : root_.items_at("steps")) {
      SCOPED_TRACE("step " + std::to_string(++number));
      ++now_;
      run(step);
      if (testing::Test::HasFatalFailure()) return;
    }
  }

 private:
  // --- Types ---
  void set_spec_schema(const Value& properties) {
    MapBuilder spec(arena_), all(arena_);
    spec.add("type", Value::string("object"));
    spec.add("properties", properties);
    all.add("spec", spec.build());
    MapBuilder status(arena_);
    status.add("type", Value::string("object"));
    status.add("x-kubernetes-preserve-unknown-fields", Value::boolean(true));
    all.add("status", status.build());
    set_schema(all.build());
  }

  void set_schema(const Value& properties) {
    MapBuilder root(arena_);
    root.add("type", Value::string("object"));
    root.add("properties", properties);
    written_ = root.build();
    schemas_.clear();
    types_ = std::make_unique<MergeTypes>();
    for (const auto& [version, names] : names_) {
      Value schema = written_;
      for (const auto& [from, to] : names) {
        const std::string_view at[] = {"properties", "spec", "properties"};
        const Value* fields = schema.get("properties", "spec", "properties");
        MapBuilder renamed(arena_);
        for (const Member& m : fields->members()) {
          renamed.add(m.key == from ? arena_.copy(std::string_view(to)) : m.key, m.value);
        }
        schema = with_path(arena_, schema, at, renamed.build());
      }
      schemas_[version] = schema::Schema::build(schema, false);
    }
  }

  std::string api_version(const std::string& version) const { return "example.com/" + version; }

  FieldManager manager(const std::string& version, std::string_view subresource) {
    FieldManagerOptions options;
    options.api_version = api_version(version);
    options.kind = "Widget";
    options.subresource = subresource;
    for (const auto& [name, schema] : schemas_) {
      ServedVersion served;
      served.api_version = api_version(name);
      served.type = &types_->of(schema->root());
      const std::string_view main[] = {"status"}, status[] = {"spec", "metadata"};
      served.reset = subresource == "status" ? ResetFilter(status, {}) : ResetFilter(main, {});
      options.versions.push_back(std::move(served));
    }
    options.convert = [this](Arena& arena, const Value& object, std::string_view from, std::string_view to) {
      return Result<Value>(convert(arena, object, from, to));
    };
    options.unset_markers = gates_.contains("unset");
    options.retain_all_managers = gates_.contains("retain");
    const schema::Schema* own = schemas_.at(version).get();
    options.declared_defaults = [own](Arena& arena, const Value& object) {
      return schema::apply_defaults(arena, own->root(), object);
    };
    return FieldManager(std::move(options));
  }

  Value convert(Arena& arena, const Value& object, std::string_view from, std::string_view to) {
    const std::string source(from.substr(from.find('/') + 1)), target(to.substr(to.find('/') + 1));
    Value out = with_member(arena, object, "apiVersion", Value::string(arena, to));
    const Value* spec = object.find("spec");
    if (spec == nullptr || !spec->is_map()) return out;
    MapBuilder renamed(arena);
    for (const Member& m : spec->members()) {
      std::string key(m.key);
      for (const auto& [hub, there] : names_[source]) {
        if (there == key) {
          key = hub;
          break;
        }
      }
      if (const auto there = names_[target].find(key); there != names_[target].end()) key = there->second;
      renamed.add(arena.copy(std::string_view(key)), m.value);
    }
    return with_member(arena, out, "spec", renamed.build());
  }

  // --- Steps ---
  void run(const Value& step) {
    if (const Value* given = step.find("given")) return set_spec_schema(*given);
    if (step.has("gone")) {
      schemas_.erase(std::string(step.text_at("gone")));
      return;
    }
    if (const Value* gates = step.find("gates")) {
      gates_.clear();
      for (const Value& gate : gates->items()) gates_.insert(std::string(gate.as_string()));
      return;
    }
    now_ += step.int_at_or(0, "wait");
    std::string failure;
    std::set<std::string> conflicts;
    bool changed = true;
    if (const Value* what = step.find("inject")) {
      live_ = merge_patched(*live_, *what);
      live_ = schema::apply_defaults(arena_, schemas_.at("v1")->root(), *live_);
    }
    for (const char* verb : {"apply", "update", "patch"}) {
      if (const Value* what = step.find(verb)) changed = write(verb, *what, failure, conflicts);
    }
    std::set<std::string> expected;
    for (const Value& conflict : step.items_at("conflicts")) expected.insert(std::string(conflict.as_string()));
    EXPECT_EQ(conflicts, expected);
    if (step.has("fails")) {
      EXPECT_NE(failure.find(step.text_at("fails")), std::string::npos)
          << "it says: " << failure << "\ninstead of: " << step.text_at("fails");
      EXPECT_NE(failure, "");
    } else if (expected.empty()) {
      EXPECT_EQ(failure, "");
    }
    if (const Value* wanted = step.find("changed")) EXPECT_EQ(changed, wanted->as_bool());
    if (const Value* spec = step.find("spec")) {
      const Value* is = live_ ? live_->find("spec") : nullptr;
      EXPECT_TRUE(equal(is == nullptr ? Value() : *is, *spec, Numbers::ByValue))
          << "spec is " << (is == nullptr ? "absent" : codec::encode_json(*is)) << "\ninstead of "
          << codec::encode_json(*spec);
    }
    if (const Value* owners = step.find("owners")) expect_owners(*owners);
    if (const Value* times = step.find("times")) {
      for (const Member& m : times->members()) {
        for (const ManagerEntry& entry : managed_) {
          if (title(entry) != m.key) continue;
          EXPECT_EQ(entry.time ? std::to_string(*entry.time - kStart) : "none",
                    m.value.is_int() ? std::to_string(m.value.as_int()) : std::string(m.value.as_string()))
              << m.key;
        }
      }
    }
  }

  // An object with the members that every step's may have.
  Value object_of(const Value& what, const std::string& version) {
    MapBuilder object(arena_);
    object.add("apiVersion", Value::string(arena_, api_version(version)));
    object.add("kind", Value::string("Widget"));
    const Value* metadata = what.find("metadata");
    object.add("metadata", with_member(arena_, metadata == nullptr ? Value() : *metadata, "name", Value::string("w")));
    for (const char* member : {"spec", "status"}) {
      if (const Value* value = what.find(member)) object.add(member, *value);
    }
    return object.build();
  }

  bool write(std::string_view verb, const Value& what, std::string& failure, std::set<std::string>& conflicts) {
    const std::string version = what.has("version") ? std::string(what.text_at("version")) : "v1";
    const FieldManager fields = manager(version, what.text_at("subresource"));
    const Value object = object_of(what, version);
    std::optional<Value> live;
    if (live_) live = convert(arena_, *live_, live_->text_at("apiVersion"), api_version(version));
    const Value* force = what.find("force");
    Value next;
    Managed managed;
    if (verb == "apply") {
      ApplyRequest request{.live = live ? &*live : nullptr,
                           .live_managed = live ? &managed_ : nullptr,
                           .config = object,
                           .manager = what.text_at("as"),
                           .force = force != nullptr && force->as_bool(),
                           .now = {kStart + now_, 0}};
      Result<ApplyResult> result = fields.apply(arena_, request);
      if (!result) {
        failure = result.error().message;
        for (const Cause& cause : result.error().causes) {
          conflicts.insert(cause.message.substr(std::string_view("conflict with ").size()) + ": " + cause.field);
        }
        return false;
      }
      next = result->object;
      managed = result->managed;
    } else {
      Value wanted = object;
      if (verb == "patch") wanted = merge_patched(live ? *live : Value(), object);
      if (const Value* sent = what.find("managedFields")) {
        const std::string_view at[] = {"metadata", "managedFields"};
        wanted = with_path(arena_, wanted, at, *sent);
      }
      wanted = schema::apply_defaults(arena_, schemas_.at(version)->root(), wanted);
      UpdateRequest request{.live = live ? &*live : nullptr,
                            .live_managed = live ? &managed_ : nullptr,
                            .object = wanted,
                            .manager = what.text_at("as"),
                            .now = {kStart + now_, 0}};
      const UpdateResult result = fields.update(arena_, request);
      failure = result.problem;
      next = result.object;
      managed = result.managed;
    }
    // As a server does it: defaults, a uid, and each subresource writes its own part.
    next = schema::apply_defaults(arena_, schemas_.at(version)->root(), next);
    const std::string_view uid[] = {"metadata", "uid"};
    next = with_path(arena_, next, uid, Value::string("1"));
    const bool changed = !live || !equal(next, *live, Numbers::ByValue);
    live_ = next;
    managed_ = managed;
    return changed;
  }

  Value merge_patched(const Value& object, const Value& patch) {
    if (!patch.is_map()) return patch;
    Value out = object.is_map() ? object : Value::empty_map();
    for (const Member& m : patch.members()) {
      const Value* old = out.find(m.key);
      out = m.value.is_null()
                ? without_member(arena_, out, m.key)
                : with_member(arena_, out, m.key, merge_patched(old == nullptr ? Value() : *old, m.value));
    }
    return out;
  }

  // --- Owners ---
  static std::string title(const ManagerEntry& entry) {
    std::string out(entry.manager);
    if (entry.operation == Operation::Update) out += " update";
    if (!entry.subresource.empty()) out += "/" + std::string(entry.subresource);
    if (entry.api_version != "example.com/v1") out += "@" + std::string(entry.api_version.substr(12));
    return out;
  }

  void expect_owners(const Value& owners) {
    std::map<std::string, std::set<std::string>> got, want;
    for (const ManagerEntry& entry : managed_) {
      std::set<std::string>& paths = got[title(entry)];
      entry.fields.for_each([&](Path path) { paths.insert(to_string(path)); });
    }
    for (const Member& m : owners.members()) {
      std::set<std::string>& paths = want[std::string(m.key)];
      if (m.value.is_list()) {
        for (const Value& path : m.value.items()) paths.insert(std::string(path.as_string()));
      }
    }
    EXPECT_EQ(got, want);
  }

  static constexpr int64_t kStart = 1'700'000'000;
  Arena arena_;
  Value root_, written_;
  std::map<std::string, std::map<std::string, std::string>> names_;  // Version -> field here -> field there.
  std::map<std::string, std::shared_ptr<const schema::Schema>> schemas_;
  std::unique_ptr<MergeTypes> types_;
  std::set<std::string> gates_;
  std::optional<Value> live_;
  Managed managed_;
  int64_t now_ = 0;
};

class Scenario : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Scenario, StepsHaveTheExpectedResults) {
  const std::string text = *read_file(GetParam());
  const auto documents = codec::split_documents(text);
  ASSERT_TRUE(documents.ok());
  ASSERT_FALSE(documents->empty());
  for (const std::string_view document : *documents) {
    Story story(document);
    SCOPED_TRACE(story.name());
    ASSERT_NE(story.name(), "") << document;
    story.play();
  }
}

std::vector<std::filesystem::path> files() {
  std::vector<std::filesystem::path> out;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(HOLDFAST_SOURCE_DIR) / "tests/scenario/ownership")) {
    if (entry.path().extension() == ".yaml") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

INSTANTIATE_TEST_SUITE_P(Ownership, Scenario, testing::ValuesIn(files()),
                         [](const auto& info) { return info.param.stem().string(); });

}  // namespace
}  // namespace holdfast::ownership
