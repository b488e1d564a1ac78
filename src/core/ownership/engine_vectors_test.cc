// Random schemas, objects and sequences of applies and updates, with the results of the Go merge engine.
//
// tests/vectors/ownership/engine.jsonl is a sample printed by generate.go next to it; set ENGINE_VECTORS to check
// another file.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "codec/json.h"
#include "ownership/engine.h"
#include "ownership/smd_schema.h"

namespace holdfast::ownership {
namespace {

struct OneType final : Versions {
  VersionView v1, v2;
  const VersionView* find(std::string_view version) const override {
    return version == "v1" ? &v1 : version == "v2" ? &v2 : nullptr;
  }
  Result<std::optional<Value>> convert(Arena&, const Value& object, const VersionView&,
                                       const VersionView&) const override {
    return std::optional<Value>(object);
  }
};

class Vector {
 public:
  explicit Vector(const std::string& line) : line_(line) {
    Result<Value> root = codec::decode_json(arena_, line_);
    EXPECT_TRUE(root.ok());
    if (root.ok()) root_ = *root;
  }

  // Returns the number of steps checked; stops at the first difference.
  int play() {
    set_schema(*root_.find("schema"));
    int number = 0;
    for (const Value& step : root_.items_at("steps")) {
      SCOPED_TRACE("step " + std::to_string(number));
      if (step.text_at("op") == "schema") {
        set_schema(*step.find("schema"));
      } else {
        run(*versions_.v1.type, step);
      }
      if (testing::Test::HasFailure()) {
        ADD_FAILURE() << codec::encode_json(step) << "\nlive " << codec::encode_json(live_);
        return number;
      }
      ++number;
    }
    return number;
  }

 private:
  void set_schema(const Value& schema) {
    const MergeType& type = types_.of(*SchemaLoader(arena_, schema).named("root"));
    const std::string_view reset[] = {root_.text_at("reset")};
    if (!reset[0].empty()) filter_ = ResetFilter(reset, {});
    versions_.v1 = {"v1", &type, reset[0].empty() ? nullptr : &filter_};
    versions_.v2 = {"v2", &type, nullptr};
  }

  void run(const MergeType& type, const Value& step) {
    const std::string_view op = step.text_at("op");
    const Value& object = *step.find("object");
    const bool update = op == "update";
    const std::string invalid = validate(type, object, update ? Duplicates::Tolerated : Duplicates::Refused);
    // Go walks maps in random order, so it is random which of several undeclared fields ends the walk.
    const std::string_view undeclared = "field not declared in schema";
    const bool random = invalid.find(undeclared) != std::string::npos &&
                        step.text_at("invalid").find(undeclared) != std::string_view::npos;
    if (!random) EXPECT_EQ(lines(invalid), lines(step.text_at("invalid")));
    if (!invalid.empty() || testing::Test::HasFailure()) return;
    EXPECT_EQ(to_fields_v1(to_set(arena_, type, object)), sorted(*step.find("set")));

    const VersionView& version = *versions_.find(step.text_at("version"));
    ManagerEntry self;
    self.manager = step.text_at("manager");
    self.operation = update ? Operation::Update : Operation::Apply;
    self.api_version = version.api_version;
    Engine engine(arena_, versions_, version);
    std::set<std::string> conflicts;
    if (update) {
      // The Go engine skips the updater's own entry; ours also takes the changed fields from it, so they are added
      // back.
      Managed others = managed_;
      Result<Engine::Updated> updated = engine.update(live_, object, others);
      ASSERT_TRUE(updated.ok()) << updated.error().message;
      managed_ = std::move(updated->managed);
      self.fields = updated->gained;
      if (!self.fields.empty()) {
        for (ManagerEntry& entry : managed_) {
          if (!same_manager(entry, self)) continue;
          entry.fields = union_of(arena_, entry.fields, self.fields);
          self.fields = {};
        }
        if (!self.fields.empty()) managed_.push_back(self);
      }
      live_ = object;
    } else {
      Result<Engine::Applied> applied = engine.apply(live_, object, managed_, self, {.force = op == "force"});
      ASSERT_TRUE(applied.ok()) << applied.error().message;
      for (const Conflict& conflict : applied->conflicts) {
        conflict.paths.for_each([&](Path path) { conflicts.insert(name_of(conflict.owner) + " " + to_string(path)); });
      }
      if (conflicts.empty()) {
        EXPECT_EQ(applied->changed, step.find("changed") != nullptr && step.find("changed")->as_bool());
        live_ = applied->object;
        managed_ = std::move(applied->managed);
      }
    }
    std::set<std::string> expected;
    for (const Value& conflict : step.items_at("conflicts")) expected.insert(std::string(conflict.as_string()));
    EXPECT_EQ(conflicts, expected);
    if (!expected.empty() || !conflicts.empty()) return;

    EXPECT_TRUE(equal(live_, *step.find("live"), Numbers::ByValue))
        << codec::encode_json_sorted(live_) << "\ninstead of\n"
        << codec::encode_json_sorted(*step.find("live"));
    std::set<std::string> got, want;
    for (const ManagerEntry& entry : managed_) {
      got.insert(name_of(entry) + " " + std::string(entry.api_version) + " " + to_fields_v1(entry.fields));
    }
    for (const Member& m : step.members_at("owners")) {
      want.insert(std::string(m.key) + " " + std::string(m.value.text_at("version")) + " " +
                  sorted(*m.value.find("set")));
    }
    EXPECT_EQ(got, want);
    for (const Member& m : step.members_at("extracts")) {
      for (const ManagerEntry& entry : managed_) {
        if (name_of(entry) != m.key) continue;
        const Value extracted = extract(arena_, type, live_, leaves(arena_, entry.fields));
        EXPECT_TRUE(equal(extracted, m.value, Numbers::ByValue))
            << m.key << ": " << codec::encode_json(extracted) << " instead of " << codec::encode_json(m.value);
      }
    }
  }

  // Go walks maps in random order, so problems are compared regardless of order.
  static std::multiset<std::string> lines(std::string_view text) {
    std::multiset<std::string> out;
    while (!text.empty()) {
      const size_t end = text.find('\n');
      out.insert(std::string(text.substr(0, end)));
      text = end == std::string_view::npos ? "" : text.substr(end + 1);
    }
    return out;
  }

  // Canonical text of a set that passed through JSON.
  std::string sorted(const Value& fields) { return to_fields_v1(*parse_fields_v1(arena_, fields)); }

  static std::string name_of(const ManagerEntry& entry) {
    std::string name(entry.manager);
    if (entry.operation == Operation::Update) name += "-update-" + std::string(entry.api_version);
    return name;
  }

  const std::string& line_;
  Arena arena_;
  Value root_;
  MergeTypes types_;
  ResetFilter filter_;
  OneType versions_;
  Value live_;
  Managed managed_;
};

TEST(EngineVectors, EveryStepMatchesTheGoEngine) {
  const char* named = std::getenv("ENGINE_VECTORS");
  std::ifstream in(named != nullptr ? named : HOLDFAST_SOURCE_DIR "/tests/vectors/ownership/engine.jsonl");
  ASSERT_TRUE(in.good());
  int steps = 0, number = 0;
  for (std::string line; std::getline(in, line); ++number) {
    SCOPED_TRACE("case " + std::to_string(number));
    steps += Vector(line).play();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(steps, 500);
}

}  // namespace
}  // namespace holdfast::ownership
