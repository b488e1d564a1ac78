#include "flow/flow.h"

#include <gtest/gtest.h>

namespace holdfast::flow {
namespace {

// Trees built by hand: this module does not decode.
struct Trees {
  Arena arena;
  Value text(std::string_view t) { return Value::string(arena, t); }
  Value list(std::initializer_list<Value> items) {
    ListBuilder builder(arena);
    for (const Value& item : items) builder.add(item);
    return builder.build();
  }
  Value map(std::initializer_list<Member> members) {
    MapBuilder builder(arena);
    for (const Member& member : members) builder.add(member.key, member.value);
    return builder.build();
  }
  Value all() { return list({text("*")}); }
  Value schema(std::string_view name, int64_t precedence, std::string_view level, Value subject,
               std::string_view distinguisher) {
    const Value resource = map({{"verbs", all()},
                                {"apiGroups", all()},
                                {"resources", all()},
                                {"clusterScope", Value::boolean(true)},
                                {"namespaces", all()}});
    const Value path = map({{"verbs", all()}, {"nonResourceURLs", list({text("/healthz"), text("/x/*")})}});
    const Value rule =
        map({{"subjects", list({subject})}, {"resourceRules", list({resource})}, {"nonResourceRules", list({path})}});
    return map({{"metadata", map({{"name", text(name)}, {"uid", text(name)}})},
                {"spec", map({{"matchingPrecedence", Value::integer(precedence)},
                              {"priorityLevelConfiguration", map({{"name", text(level)}})},
                              {"distinguisherMethod", map({{"type", text(distinguisher)}})},
                              {"rules", list({rule})}})}});
  }
  Value group(std::string_view name) { return map({{"kind", text("Group")}, {"group", map({{"name", text(name)}})}}); }
  Value level(std::string_view name, int64_t shares, std::string_view response, int64_t queues, int64_t length) {
    const Value queuing = map({{"queues", Value::integer(queues)},
                               {"handSize", Value::integer(1)},
                               {"queueLengthLimit", Value::integer(length)}});
    return map({{"metadata", map({{"name", text(name)}, {"uid", text(name)}})},
                {"spec",
                 map({{"type", text("Limited")},
                      {"limited", map({{"nominalConcurrencyShares", Value::integer(shares)},
                                       {"borrowingLimitPercent", Value::integer(0)},
                                       {"limitResponse", map({{"type", text(response)}, {"queuing", queuing}})}})}})}});
  }
};

// Runs posted work only when told to.
struct Queue final : Executor {
  std::deque<std::function<void()>> work;
  void post(std::function<void()> one) override { work.push_back(std::move(one)); }
  void run() {
    while (!work.empty()) {
      auto one = std::move(work.front());
      work.pop_front();
      one();
    }
  }
};

struct Bench {
  Trees trees;
  Queue loop;
  MetricRegistry metrics;
  std::shared_ptr<const Schemas> schemas;
  std::unique_ptr<Dispatcher> dispatcher;
  std::vector<std::function<void()>> timers;
  std::vector<std::string> log;
  std::map<std::string, Dispatcher::Seat> seats;

  explicit Bench(std::string_view response, int64_t length = 2, int64_t total = 1) {
    schemas = Schemas::build({trees.schema("all", 100, "work", trees.group("*"), "ByUser")},
                             {trees.level("work", 1, response, 2, length)});
    dispatcher = std::make_unique<Dispatcher>(DispatcherOptions{.seats = total}, metrics);
    dispatcher->configure(*schemas);
  }
  Task<void> ask(std::string user, std::string name, int64_t width) {
    const auth::UserInfo info{.name = std::move(user), .groups = {"g"}};
    const auth::Attributes attributes(&info, "get", auth::ResourceAttributes{});
    Dispatcher::Entry entry = co_await dispatcher->enter(
        *schemas->classify(attributes), width, loop,
        [this](std::chrono::milliseconds, std::function<void()> work) { timers.push_back(std::move(work)); });
    log.push_back(name + (entry.refused.empty() ? "" : ": " + entry.refused));
    if (entry.refused.empty()) seats[name] = std::move(entry.seat);
  }
  void start(std::string user, std::string name, int64_t width = 1) {
    spawn(ask(std::move(user), std::move(name), width), [](std::exception_ptr) {});
  }
  void end(const std::string& name) {
    seats.erase(name);
    loop.run();
  }
};

TEST(FlowTest, TheFirstMatchingSchemaClassifiesTheRequest) {
  Trees trees;
  const auto schemas = Schemas::build({trees.schema("late", 200, "work", trees.group("*"), ""),
                                       trees.schema("early", 100, "work", trees.group("ops"), "ByNamespace"),
                                       trees.schema("lost", 1, "gone", trees.group("*"), "")},
                                      {trees.level("work", 1, "Reject", 1, 1)});
  const auth::UserInfo ann{.name = "ann", .groups = {"ops"}}, bob{.name = "bob", .groups = {"devs"}};
  auth::Attributes attributes(&ann, "get", {.ns = "prod"});
  EXPECT_EQ(schemas->classify(attributes)->schema, "early");
  EXPECT_EQ(schemas->classify(attributes)->distinguisher, "prod");
  attributes.user = &bob;
  EXPECT_EQ(schemas->classify(attributes)->schema, "late");
  EXPECT_TRUE(schemas->classify({&bob, "get", "/x/y"}));
  EXPECT_FALSE(schemas->classify({&bob, "get", "/healthzz"}));
}

TEST(FlowTest, FlowsAreServedRoundRobinWhateverTheirQueueLength) {
  Bench bench("Queue");
  bench.start("ann", "a1");
  bench.start("ann", "a2");
  bench.start("ann", "a3");
  bench.start("bob", "b1");
  bench.end("a1");
  bench.end("a2");
  bench.end("b1");
  bench.end("a3");
  EXPECT_EQ(bench.log, (std::vector<std::string>{"a1", "a2", "b1", "a3"}));
}

TEST(FlowTest, RequestsWithoutASeatAreRejectedWithTheReason) {
  Bench queued("Queue");
  for (const char* name : {"a1", "a2", "a3", "a4"}) queued.start("ann", name);
  EXPECT_EQ(queued.log, (std::vector<std::string>{"a1", "a4: queue-full"}));
  for (const std::function<void()>& timer : queued.timers) timer();
  queued.loop.run();
  EXPECT_EQ(queued.log, (std::vector<std::string>{"a1", "a4: queue-full", "a2: time-out", "a3: time-out"}));
  // No request is waiting, so the next one gets the seat.
  queued.end("a1");
  queued.start("ann", "a5");
  EXPECT_EQ(queued.log.back(), "a5");

  Bench rejecting("Reject");
  rejecting.start("ann", "a1");
  rejecting.start("bob", "b1");
  EXPECT_EQ(rejecting.log, (std::vector<std::string>{"a1", "b1: concurrency-limit"}));
}

TEST(FlowTest, AWideRequestWaitsForAllItsSeatsAndIsNotOvertaken) {
  Bench bench("Queue", 4, 10);
  bench.start("ann", "narrow", 1);
  bench.start("ann", "wide", 10);
  bench.start("bob", "late", 1);
  EXPECT_EQ(bench.log, (std::vector<std::string>{"narrow"}));
  bench.end("narrow");
  EXPECT_EQ(bench.log, (std::vector<std::string>{"narrow", "wide"}));
  bench.end("wide");
  EXPECT_EQ(bench.log, (std::vector<std::string>{"narrow", "wide", "late"}));
  // Wider than the level: served when no other request is running.
  bench.start("bob", "wider", 50);
  bench.end("late");
  EXPECT_EQ(bench.log.back(), "wider");
}

}  // namespace
}  // namespace holdfast::flow
