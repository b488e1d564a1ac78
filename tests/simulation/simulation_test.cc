// Whether the checks of a simulation notice what they are for: histories that were changed afterwards, servers on
// stores that break their promises; and whether a seed always leads to the same history.
#include "simulation/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace holdfast::simulation {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kSeeds = 12;

const std::vector<History>& histories() {
  static const std::vector<History> kHistories = [] {
    std::vector<History> all;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) all.push_back(run({.seed = seed}).history);
    return all;
  }();
  return kHistories;
}

TEST(Simulation, FindsNoProblems) {
  for (const History& history : histories()) EXPECT_THAT(problems(history), IsEmpty());
}

TEST(Simulation, IsTheSameForTheSameSeed) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    EXPECT_EQ(transcript(histories()[seed - 1]), transcript(run({.seed = seed}).history));
  }
  EXPECT_NE(transcript(histories()[0]), transcript(histories()[1]));
}

// --- Histories that were changed ---

struct Doctored {
  std::string_view name;
  std::string_view problem;  // Part of what is reported.
  // Changes the history; false if it contains nothing suitable.
  std::function<bool(History&)> change;
};

bool change_first(History& history, const std::function<bool(Op&)>& change) {
  return std::any_of(history.ops.begin(), history.ops.end(), [&](Op& op) { return op.modelled && change(op); });
}
// Changes the events of the first watch of which more than `count` are no bookmarks, after its initial events.
bool change_watch(History& history, size_t count, const std::function<void(std::vector<WatchEvent>&)>& change) {
  return change_first(history, [&](Op& op) {
    if (op.wish.verb != Verb::Watch || op.initial || op.events.size() < count) return false;
    const auto bookmark = [](const WatchEvent& event) { return event.type == "BOOKMARK"; };
    if (std::any_of(op.events.begin(), op.events.begin() + static_cast<std::ptrdiff_t>(count), bookmark)) return false;
    change(op.events);
    return true;
  });
}
bool is_acknowledged_change(const Op& op) {
  return op.outcome == Op::Outcome::Ok && op.seen && !op.wish.dry_run && op.wish.verb <= Verb::Put;
}

const Doctored kDoctored[] = {
    {"an event is left out", "where",
     [](History& history) { return change_watch(history, 2, [](auto& events) { events.erase(events.begin()); }); }},
    {"an event is sent twice", "sent",
     [](History& history) {
       return change_watch(history, 1, [](auto& events) { events.insert(events.begin(), events.front()); });
     }},
    {"two events are swapped", "where",
     [](History& history) { return change_watch(history, 2, [](auto& events) { std::swap(events[0], events[1]); }); }},
    {"the last event of a watch never comes", "did not send",
     [](History& history) {
       for (Op& op : history.ops) {
         if (op.wish.verb != Verb::Watch || op.events.empty() || op.events.back().type == "BOOKMARK") continue;
         // It was not to wait for everything, and received it nevertheless.
         const bool whole = std::exchange(op.whole, true);
         if (problems(history).empty()) {
           op.events.pop_back();
           return true;
         }
         op.whole = whole;
       }
       return false;
     }},
    {"a bookmark comes before an event that it includes", "",
     [](History& history) {
       return change_watch(history, 1, [](auto& events) {
         WatchEvent bookmark;
         bookmark.type = "BOOKMARK";
         bookmark.seen.revision = events.front().seen.revision;
         events.insert(events.begin(), bookmark);
       });
     }},
    {"an event has the type of another", "where",
     [](History& history) {
       return change_watch(history, 1, [](auto& events) {
         events.front().type = events.front().type == "ADDED" ? "MODIFIED" : "ADDED";
       });
     }},
    {"an event shows another owner", "was stored as",
     [](History& history) {
       return change_first(history, [](Op& op) {
         for (WatchEvent& event : op.events) {
           if (op.wish.verb != Verb::Watch || event.type == "BOOKMARK" || !event.seen.with_owners) continue;
           event.seen.object.owners["somebody Apply"].insert("data/x");
           return true;
         }
         return false;
       });
     }},
    {"managedFields are sent to a client that opted out", "",
     [](History& history) {
       return change_first(history, [](Op& op) {
         if (op.wish.verb != Verb::Get || op.outcome != Op::Outcome::Ok) return false;
         op.seen->object.fields["managedFields"] = "although they were not asked for";
         return true;
       });
     }},
    {"a read returns what was replaced before it began", "not the latest version",
     [](History& history) {
       for (size_t i = 1; i < history.commits.size(); ++i) {
         const Commit& old = history.commits[i - 1];
         for (Op& op : history.ops) {
           if (op.wish.verb != Verb::Get || op.outcome != Op::Outcome::Ok || op.key != old.key || !old.object) continue;
           if (op.freshness != Op::Freshness::Newest || op.seen->revision <= old.revision) continue;
           const bool replaced = std::any_of(history.commits.begin(), history.commits.end(), [&](const Commit& later) {
             return later.key == old.key && later.revision > old.revision && later.order < op.begin;
           });
           if (!replaced) continue;
           op.seen->revision = old.revision;
           op.seen->object = *old.object;
           return true;
         }
       }
       return false;
     }},
    {"an object is missing in a list", "is missing",
     [](History& history) {
       return change_first(history, [](Op& op) {
         if (op.wish.verb != Verb::List || op.outcome != Op::Outcome::Ok || op.items.empty()) return false;
         op.items.pop_back();
         return true;
       });
     }},
    {"a list contains an object that is gone", "should not be there",
     [](History& history) {
       return change_first(history, [](Op& op) {
         if (op.wish.verb != Verb::List || op.outcome != Op::Outcome::Ok) return false;
         op.items.push_back({op.resource + "/gone", 1, {}, false});
         return true;
       });
     }},
    {"a list is older than an acknowledged write", "lacks what was stored",
     [](History& history) {
       for (Op& op : history.ops) {
         if (op.wish.verb != Verb::List || op.outcome != Op::Outcome::Ok || op.freshness != Op::Freshness::Newest)
           continue;
         const bool written = std::any_of(history.commits.begin(), history.commits.end(), [&](const Commit& commit) {
           return commit.order < op.begin && commit.key.starts_with(op.resource + "/");
         });
         if (!written) continue;
         op.revision = history.commits.front().revision - 1;
         op.items.clear();
         return true;
       }
       return false;
     }},
    {"an acknowledged write was not stored", "",
     [](History& history) {
       for (const Op& op : history.ops) {
         if (!is_acknowledged_change(op)) continue;
         const size_t before = history.commits.size();
         std::erase_if(history.commits, [&](const Commit& commit) {
           return commit.key == op.key && commit.revision == op.seen->revision;
         });
         if (history.commits.size() < before) return true;
       }
       return false;
     }},
    {"a version is stored that nobody asked for", "no request makes",
     [](History& history) {
       if (history.commits.empty()) return false;
       Commit extra = history.commits.back();
       extra.order = history.ops.back().begin;
       ++extra.revision;
       history.last_revision = std::max(history.last_revision, extra.revision);
       if (!extra.object) extra.object.emplace();
       extra.object->fields["data/x"] = "nobody";
       history.commits.push_back(extra);
       return true;
     }},
    {"a write took a field from its owner without force", "no request makes",
     [](History& history) {
       for (Op& op : history.ops) {
         if (!is_acknowledged_change(op) || op.wish.verb != Verb::Apply) continue;
         for (Commit& commit : history.commits) {
           if (commit.key != op.key || commit.revision != op.seen->revision || commit.object->owners.size() < 2)
             continue;
           // Everything belongs to the applier now.
           std::erase_if(commit.object->owners,
                         [&](const auto& owner) { return owner.first != op.wish.manager + " Apply"; });
           return true;
         }
       }
       return false;
     }},
    {"a request is refused for no reason", "nothing explains",
     [](History& history) {
       return change_first(history, [&history](Op& op) {
         if (op.wish.verb != Verb::Patch || op.outcome != Op::Outcome::Ok || op.wish.dry_run) return false;
         const bool stored = std::any_of(history.commits.begin(), history.commits.end(), [&](const Commit& commit) {
           return commit.key == op.key && commit.order > op.begin && commit.order < op.end;
         });
         if (stored) return false;
         op.outcome = Op::Outcome::Refused;
         op.code = 409;
         return true;
       });
     }},
    {"a request fails although the store does not", "failed although",
     [](History& history) {
       if (history.failures) return false;
       return change_first(history, [](Op& op) {
         op.outcome = Op::Outcome::Unknown;
         return true;
       });
     }},
};

TEST(SimulationChecks, NoticeWhatWasChangedInAHistory) {
  for (const Doctored& doctored : kDoctored) {
    size_t changed = 0;
    for (size_t i = 0; i < histories().size(); ++i) {
      History history = histories()[i];
      if (!doctored.change(history)) continue;
      ++changed;
      const std::vector<std::string> found = problems(history);
      ASSERT_FALSE(found.empty()) << doctored.name << ", seed " << i + 1;
      std::string all;
      for (const std::string& problem : found) all += problem + "\n";
      EXPECT_THAT(all, HasSubstr(std::string(doctored.problem))) << doctored.name << ", seed " << i + 1;
    }
    EXPECT_GT(changed, 0u) << doctored.name;
  }
}

// --- Stores that break their promises ---

TEST(SimulationChecks, NoticeBrokenStores) {
  for (const Bug bug : {Bug::SkipsEvents, Bug::ForgetsWrites, Bug::ReadsOldValues}) {
    bool noticed = false;
    for (uint64_t seed = 1; seed <= 20 && !noticed; ++seed) {
      noticed = !problems(run({.seed = seed, .bug = bug}).history).empty();
    }
    EXPECT_TRUE(noticed) << static_cast<int>(bug);
  }
}

// --- The model ---

struct ModelCase {
  std::string_view name;
  Wish wish;
  std::string_view want;  // As in a transcript: fields, then owners; or the refusal.
};

std::string shown(const Effect& effect) {
  if (!effect.refused.empty()) return "refused " + std::to_string(*effect.refused.begin());
  if (effect.removed) return "removed";
  Commit commit;
  commit.key = "k";
  commit.object = effect.object;
  const std::string text = to_string(commit);
  return text.substr(text.find('{'));
}

TEST(SimulationModel, SaysWhatAWriteDoes) {
  Object live;
  live.fields = {{"data/x", "1"}, {"data/y", "1"}};
  live.owners = {{"git Apply", {"data/x"}}, {"kubectl Update", {"data/y"}}};
  const ModelCase cases[] = {
      {"an apply of the same value shares the field",
       {.verb = Verb::Apply, .manager = "helm", .fields = {{"data/x", "1"}}},
       "{data/x=1 data/y=1} git Apply:data/x helm Apply:data/x kubectl Update:data/y"},
      {"an apply of another value is refused",
       {.verb = Verb::Apply, .manager = "helm", .fields = {{"data/x", "2"}}},
       "refused 409"},
      {"a forced apply takes the field",
       {.verb = Verb::Apply, .manager = "helm", .fields = {{"data/x", "2"}}, .force = true},
       "{data/x=2 data/y=1} helm Apply:data/x kubectl Update:data/y"},
      {"an apply removes what nobody else owns",
       {.verb = Verb::Apply, .manager = "git", .fields = {{"data/z", "3"}}},
       "{data/y=1 data/z=3} git Apply:data/z kubectl Update:data/y"},
      {"an update takes what it changes",
       {.verb = Verb::Patch, .manager = "controller", .fields = {{"data/x", "2"}, {"data/y", std::nullopt}}},
       "{data/x=2} controller Update:data/x"},
      {"an update that depends on another version is refused",
       {.verb = Verb::Put, .manager = "kubectl", .fields = {}, .expected = 4},
       "refused 409"},
      {"a deletion removes an object without finalizers", {.verb = Verb::Delete}, "removed"},
  };
  for (const ModelCase& each : cases) EXPECT_EQ(shown(effect_of(each.wish, live, 5)), each.want) << each.name;
}

TEST(SimulationModel, FinalizersDelayDeletions) {
  Object live;
  live.fields = {{"finalizers/example.com/f", ""}};
  const Effect marked = effect_of({.verb = Verb::Delete}, live, 5);
  EXPECT_TRUE(marked.object.deleting);
  EXPECT_FALSE(marked.removed);
  Object held = marked.object;
  const Wish release{.verb = Verb::Patch, .manager = "kubectl", .fields = {{"finalizers/example.com/f", std::nullopt}}};
  EXPECT_TRUE(effect_of(release, held, 6).removed);
  const Wish add{.verb = Verb::Patch, .manager = "kubectl", .fields = {{"finalizers/example.com/g", ""}}};
  EXPECT_THAT(effect_of(add, held, 6).refused, ::testing::ElementsAre(422));
}

}  // namespace
}  // namespace holdfast::simulation
