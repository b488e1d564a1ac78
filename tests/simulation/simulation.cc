#include "simulation/simulation.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "api/api.h"
#include "base/strings.h"
#include "base/task_group.h"
#include "codec/codec.h"
#include "net/simulated_time.h"
#include "ownership/ownership.h"
#include "simulation/objects.h"
#include "types/types.h"

namespace holdfast::simulation {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kNamesOfObjects[] = {"a", "b", "c"};
constexpr std::string_view kAppliers[] = {"git", "helm", "operator"};
constexpr std::string_view kUpdaters[] = {"kubectl", "controller"};
constexpr std::string_view kDataKeys[] = {"x", "y", "z"};
constexpr std::string_view kValues[] = {"1", "2", "3"};
constexpr std::string_view kLabels[] = {"p", "q"};
constexpr std::string_view kFinalizer = "finalizers/example.com/f";

// Longer than any simulation takes, faults included.
constexpr std::chrono::minutes kLongest{10};

const ResourceName kConfigMaps{"configmaps", "v1", "ConfigMap", "/api/v1/namespaces/default/configmaps"};
const ResourceName kThings{"things", "example.com/v1", "Thing", "/apis/example.com/v1/namespaces/default/things"};
constexpr std::string_view kDefinition =
    R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.com"},)"
    R"("spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"things","kind":"Thing"},"versions":[)"
    R"({"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"data":)"
    R"({"type":"object","additionalProperties":{"type":"string"}}}}}}]}})";

// Few enough that clients compete for them.
constexpr std::string_view kServiceRange = "10.0.0.0/29";
constexpr uint16_t kFirstPort = 30000, kLastPort = 30005;
constexpr std::string_view kServiceKeys = "/registry/services/specs/default/";
const ResourceName kServices{"services", "v1", "Service", "/api/v1/namespaces/default/services"};

// One API server, with its own connection to the store.
class Server {
 public:
  Server(net::Loops& loops, ownership::Pool& pool, store::MemoryStore& shared, const Clock& clock,
         const call::Settings& settings, uint64_t seed)
      : store(shared, loops.at(0), seed), loop_(loops.at(0)) {
    api::Dependencies needed;
    needed.store = &store;
    needed.loops = &loops;
    needed.background = &loops.at(0);
    needed.pool = &pool;
    needed.metrics = &metrics_;
    needed.clock = &clock;
    api::Options options;
    options.settings = settings;
    options.service_cluster_ip_ranges = {std::string(kServiceRange)};
    options.node_port_first = kFirstPort;
    options.node_port_last = kLastPort;
    options.authorization.modes = {access::Mode::AlwaysAllow};
    options.admission_plugins.disabled = {"ServiceAccount"};  // Nothing creates service accounts here.
    api_ = std::make_unique<api::Api>(needed, std::move(options));
  }

  Task<void> start() {
    api_->start();
    while (!api_->ready()) co_await loop_.sleep_for(milliseconds(1));
  }
  Task<void> close() { return api_->close(loop_); }

  Task<Result<net::ClientResponse>> send(net::ClientRequest request) {
    return net::call_handler(
        loop_, [this](net::Request& asked, net::Response& answer) { return serve(asked, answer); }, std::move(request));
  }

  Task<Result<Unit>> repair_services() { return api_->repair_services(loop_); }

  FaultyStore store;

 private:
  Task<void> serve(net::Request& request, net::Response& response) {
    const request::RequestInfo info(request.method, request.path, request.query);
    co_await api_->handle(info, request, response, user_);
  }

  net::EventLoop& loop_;
  MetricRegistry metrics_;
  const auth::UserRef user_ =
      std::make_shared<const auth::UserInfo>(auth::UserInfo{.name = "alice", .uid = {}, .groups = {}, .extra = {}});
  std::unique_ptr<api::Api> api_;
};

// What all clients share.
struct World {
  World(net::Loops& all_loops, const net::SimulatedTime& simulated, uint64_t seed)
      : loops(all_loops), loop(all_loops.at(0)), time(simulated), store(simulated), random(seed) {}

  double seconds() const { return std::chrono::duration<double>(time.passed()).count(); }
  uint64_t next_order() { return ++order; }

  net::Loops& loops;
  net::EventLoop& loop;
  const net::SimulatedTime& time;
  store::MemoryStore store;
  Random random;
  std::vector<std::unique_ptr<Server>> servers;
  std::vector<ResourceName> resources = {kConfigMaps};
  std::map<std::string, uint64_t> latest;  // The last revision that a client saw, by key.
  bool clients_are_active = true;
  bool faults_are_active = false;
  bool embedded_store = false;
  std::map<std::string, std::set<std::string>> allocations;  // Of the stored Services, by key.

  // Records commits as they happen. Last, as it uses the others.
  uint64_t order = 0;
  History history;
  std::unique_ptr<store::Watcher> recorder;
};

// Whatever several servers do at the same time: no two stored Services have the same IP or port.
void check_allocations(World& world, const store::Event& event) {
  world.allocations.erase(event.key);
  if (event.value == nullptr) return;
  const std::set<std::string> taken = allocations_of_stored(*event.value);
  for (const auto& [other, others] : world.allocations) {
    for (const std::string& allocation : taken) {
      if (!others.contains(allocation)) continue;
      std::string what = allocation + " belongs to " + other + " and, since revision " +
                         std::to_string(event.revision.value) + ", to " + event.key + "; requests for Services so far:";
      for (const Op& op : world.history.ops) {
        if (op.resource == kServices.plural) what += "\n    " + to_string(op);
      }
      world.history.found.push_back(std::move(what));
    }
  }
  world.allocations[event.key] = taken;
}

// Records every version that is stored from now on. The store calls back while it commits.
void record_commits(World& world) {
  world.recorder->next([&world](store::StoreResult<store::WatchBatch> batch) {
    if (!batch) return;  // The end of the simulation.
    for (const store::EventRef& event : batch->events) {
      if (event->key.starts_with(kServiceKeys)) check_allocations(world, *event);
      for (const ResourceName& resource : world.resources) {
        const std::optional<std::string> key = resource.key_of(event->key);
        if (!key) continue;
        Commit commit{world.next_order(), event->revision.value, *key, std::nullopt};
        if (event->value != nullptr) commit.object = object_of_stored(resource, *event->value);
        world.history.commits.push_back(std::move(commit));
      }
    }
    record_commits(world);
  });
}

// --- Requests ---

// Sends a request and records when it began and ended. The op is recorded when it begins, so that one that is never
// answered is known, too; by its place, because others are recorded meanwhile.
class Exchange {
 public:
  Exchange(World& world, Server& server, Op op) : world_(world), server_(server), place_(world.history.ops.size()) {
    op.number = static_cast<int>(place_);
    op.begin = world.next_order();
    op.begin_seconds = world.seconds();
    world.history.ops.push_back(std::move(op));
  }
  Op& op() { return world_.history.ops[place_]; }

  Task<net::ClientResponse> send(net::ClientRequest request) {
    request.headers.emplace_back("user-agent", "simulation/1");
    Result<net::ClientResponse> response = co_await server_.send(std::move(request));
    if (!response) {
      net::ClientResponse none;
      none.body = response.error().message;
      co_return none;
    }
    co_return std::move(*response);
  }
  // Its effect, if any, has happened unless the outcome is unknown.
  void finish(int code, std::string message) {
    Op& ended = op();
    ended.code = code;
    ended.message = std::move(message);
    ended.outcome = code >= 200 && code < 300                                ? Op::Outcome::Ok
                    : code == 0 || code == 408 || code == 429 || code >= 500 ? Op::Outcome::Unknown
                                                                             : Op::Outcome::Refused;
    ended.end_seconds = world_.seconds();
    const uint64_t order = world_.next_order();
    if (ended.outcome != Op::Outcome::Unknown) ended.end = order;
  }

 private:
  World& world_;
  Server& server_;
  const size_t place_;
};

// One client: does one thing after the other.
class Client {
 public:
  Client(World& world, Server& server, std::string name)
      : world_(world), server_(server), name_(std::move(name)), random_(world.random.number()) {}
  virtual ~Client() = default;

 protected:
  Task<void> pause(uint64_t most) { co_await world_.loop.sleep_for(milliseconds(random_.below(most + 1))); }

  Op new_op(const ResourceName& resource, Verb verb) {
    Op op;
    op.who = name_;
    op.resource = resource.plural;
    op.wish.verb = verb;
    return op;
  }

  // Adds what makes the server leave managedFields out, or not. The parameter of the query is for reads only.
  bool choose_owners(const Op& op, std::string& query, net::ClientRequest& request) {
    const bool reads = op.wish.verb >= Verb::Get;
    const uint64_t choice = random_.below(4);
    std::string accept = "application/json";
    if (choice == 0 && reads) query += "&showManagedFields=false";
    if (choice == 1 || (choice == 0 && !reads)) accept += "; drop=metadata.managedFields";
    request.headers.emplace_back("accept", std::move(accept));
    return choice > 1;
  }

  // Reads a list, in pages or at once; returns its place in the history.
  Task<size_t> list(ResourceName resource) {
    Op begun = new_op(resource, Verb::List);
    std::string query;
    if (random_.percent(30)) {
      begun.selector = random_.one_of(kLabels);
      query += "&labelSelector=t%3D" + begun.selector;
    }
    net::ClientRequest request;
    const bool with_owners = choose_owners(begun, query, request);
    const uint64_t known = newest_known(resource);
    const uint64_t choice = random_.below(10);
    if (choice == 0) {
      begun.freshness = Op::Freshness::Any;
      query += "&resourceVersion=0";
    } else if (choice == 1 && known != 0) {
      begun.freshness = Op::Freshness::Any;
      begun.from = known;
      query += "&resourceVersionMatch=NotOlderThan&resourceVersion=" + std::to_string(known);
    } else if (choice == 2 && known != 0) {
      begun.freshness = Op::Freshness::Exact;
      begun.from = known;
      query += "&resourceVersionMatch=Exact&resourceVersion=" + std::to_string(known);
    }
    if (random_.percent(30)) query += "&limit=" + std::to_string(1 + random_.below(2));
    Exchange exchange(world_, server_, std::move(begun));
    const size_t place = world_.history.ops.size() - 1;
    std::string next;
    while (true) {
      net::ClientRequest page = request;
      page.target = resource.path + "?" + query + next;
      const net::ClientResponse response = co_await exchange.send(std::move(page));
      const Parsed parsed(response.body);
      if (response.status != 200) {
        exchange.finish(response.status, parsed.message());
        break;
      }
      Op& op = exchange.op();
      const uint64_t revision = parsed.list_revision();
      if (op.revision != 0 && op.revision != revision) {
        // For the checks: no list is of two revisions.
        op.revision = UINT64_MAX;
      } else {
        op.revision = revision;
      }
      for (Seen& item : parsed.items(resource, with_owners)) op.items.push_back(std::move(item));
      const std::string token = parsed.continue_token();
      if (token.empty()) {
        exchange.finish(200, "");
        break;
      }
      // The first page has said which revision.
      std::string rest;
      for (const std::string_view part : split(query, '&')) {
        if (!part.empty() && !part.starts_with("resourceVersion")) rest += "&" + std::string(part);
      }
      query = rest;
      next = "&continue=" + token;
      co_await pause(20);
    }
    co_return place;
  }

  uint64_t newest_known(const ResourceName& resource) const {
    uint64_t newest = 0;
    for (const auto& [key, revision] : world_.latest) {
      if (key.starts_with(resource.plural + "/")) newest = std::max(newest, revision);
    }
    return newest;
  }

  World& world_;
  Server& server_;
  const std::string name_;
  Random random_;
};

class Writer final : public Client {
 public:
  using Client::Client;

  Task<void> work(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      co_await pause(60);
      const ResourceName resource = random_.one_of(world_.resources);
      const uint64_t choice = random_.below(100);
      if (choice < 8) {
        (void)co_await list(resource);
      } else if (choice < 18) {
        co_await get(resource);
      } else if (choice < 20) {
        co_await delete_all(resource);
      } else {
        co_await write(resource, choice);
      }
    }
  }

 private:
  std::string some_key(const ResourceName& resource) {
    return resource.plural + "/" + std::string(random_.one_of(kNamesOfObjects));
  }

  void saw(const Seen& seen) {
    uint64_t& latest = world_.latest[seen.key];
    latest = std::max(latest, seen.revision);
  }

  Task<void> get(ResourceName resource) {
    Op begun = new_op(resource, Verb::Get);
    begun.key = some_key(resource);
    net::ClientRequest request;
    std::string query;
    const bool with_owners = choose_owners(begun, query, request);
    if (random_.percent(20)) {
      begun.freshness = Op::Freshness::Any;
      query += "&resourceVersion=0";
    }
    request.target = resource.path + resource.name_in(begun.key) + "?" + query;
    Exchange exchange(world_, server_, std::move(begun));
    const net::ClientResponse response = co_await exchange.send(std::move(request));
    const Parsed parsed(response.body);
    if (response.status == 200) {
      exchange.op().seen = parsed.seen(resource, with_owners);
      saw(*exchange.op().seen);
    }
    exchange.finish(response.status, parsed.message());
  }

  Task<void> delete_all(ResourceName resource) {
    Exchange exchange(world_, server_, new_op(resource, Verb::DeleteCollection));
    net::ClientRequest request;
    request.method = "DELETE";
    request.target = resource.path;
    const net::ClientResponse response = co_await exchange.send(std::move(request));
    exchange.finish(response.status, Parsed(response.body).message());
  }

  std::map<std::string, std::optional<std::string>> some_fields(int more_finalizers) {
    std::map<std::string, std::optional<std::string>> fields;
    for (const std::string_view key : kDataKeys) {
      if (random_.percent(50)) fields["data/" + std::string(key)] = std::string(random_.one_of(kValues));
    }
    if (random_.percent(30)) fields["labels/t"] = std::string(random_.one_of(kLabels));
    if (random_.percent(more_finalizers)) fields[std::string(kFinalizer)] = "";
    return fields;
  }

  Task<void> write(ResourceName resource, uint64_t choice) {
    Op begun = new_op(resource, choice < 32   ? Verb::Create
                                : choice < 62 ? Verb::Apply
                                : choice < 80 ? Verb::Patch
                                : choice < 90 ? Verb::Put
                                              : Verb::Delete);
    Wish& wish = begun.wish;
    wish.custom = resource.plural == kThings.plural;
    begun.key = some_key(resource);
    wish.dry_run = random_.percent(5);
    const uint64_t known = world_.latest.contains(begun.key) ? world_.latest[begun.key] : 0;
    std::string content_type = "application/json";
    std::string query;
    switch (wish.verb) {
      case Verb::Create:
        wish.manager = random_.one_of(kUpdaters);
        wish.fields = some_fields(15);
        break;
      case Verb::Apply:
        wish.manager = random_.one_of(kAppliers);
        wish.fields = some_fields(15);
        wish.force = random_.percent(40);
        for (auto& [key, value] : wish.fields) {
          if (key != kFinalizer && random_.percent(10)) value.reset();
        }
        content_type = "application/apply-patch+yaml";
        if (wish.force) query += "&force=true";
        break;
      case Verb::Patch: {
        wish.manager = random_.one_of(kUpdaters);
        const bool strategic = resource.plural == "configmaps" && random_.percent(50);
        content_type = strategic ? "application/strategic-merge-patch+json" : "application/merge-patch+json";
        // A strategic patch does not replace finalizers but adds to them.
        for (auto& [key, value] : some_fields(strategic ? 0 : 20)) {
          wish.fields[key] = random_.percent(30) ? std::nullopt : std::move(value);
        }
        break;
      }
      case Verb::Put:
        wish.manager = random_.one_of(kUpdaters);
        wish.fields = some_fields(15);
        if (known == 0) co_return;
        // Only some kinds can be replaced whatever their version is.
        if (resource.plural != "configmaps" || random_.percent(80)) wish.expected = known;
        break;
      default:
        if (known != 0 && random_.percent(30)) wish.expected = known;
    }
    // A manager is named by the request or declared by the object.
    const bool declares = wish.verb != Verb::Patch && random_.percent(20);
    if (!wish.manager.empty() && !declares) query += "&fieldManager=" + wish.manager;
    if (wish.dry_run) query += "&dryRun=All";
    net::ClientRequest request;
    const bool with_owners = choose_owners(begun, query, request);
    request.method = method_of(wish.verb);
    request.target = resource.path + (wish.verb == Verb::Create ? "" : resource.name_in(begun.key)) + "?" +
                     query.substr(query.empty() ? 0 : 1);
    request.body = body_of(resource, begun.key, wish, declares);
    if (!request.body.empty()) request.headers.emplace_back("content-type", std::move(content_type));
    // Some clients do not wait for long; what they asked for may happen nevertheless.
    if (world_.faults_are_active && random_.percent(5)) request.timeout = milliseconds(1 + random_.below(50));
    Exchange exchange(world_, server_, std::move(begun));
    const net::ClientResponse response = co_await exchange.send(std::move(request));
    const Parsed parsed(response.body);
    Op& op = exchange.op();
    if (response.status >= 200 && response.status < 300) {
      if (parsed.is_status()) {
        op.deleted_uid = parsed.details_uid();
      } else {
        op.seen = parsed.seen(resource, with_owners);
        if (!op.wish.dry_run) saw(*op.seen);
      }
    }
    exchange.finish(response.status, parsed.message());
  }
};

// Creates, changes and deletes Services. Only what they are allocated is checked.
class ServiceClient final : public Client {
 public:
  using Client::Client;

  Task<void> work(uint64_t count, uint64_t longest_pause) {
    for (uint64_t i = 0; i < count; ++i) {
      co_await pause(longest_pause);
      co_await change();
    }
  }

 private:
  Task<void> change() {
    const uint64_t choice = random_.below(10);
    Op begun = new_op(kServices, choice < 5 ? Verb::Create : choice < 7 ? Verb::Patch : Verb::Delete);
    begun.modelled = false;
    const std::string name(random_.one_of(kNamesOfObjects));
    begun.key = kServices.plural + "/" + name;
    const bool node_port = random_.percent(60);
    std::string spec = node_port ? R"("type":"NodePort")" : R"("type":"ClusterIP")";
    if (begun.wish.verb == Verb::Create) {
      std::string port = R"({"port":80)";
      if (node_port && random_.percent(50)) {
        port += ",\"nodePort\":" + std::to_string(kFirstPort + random_.below(kLastPort - kFirstPort + 1));
      }
      if (random_.percent(40)) {
        spec += R"(,"clusterIP":"10.0.0.)" + std::to_string(1 + random_.below(6)) + "\"";
      }
      spec += ",\"ports\":[" + port + "}]";
    }
    net::ClientRequest request;
    request.method = method_of(begun.wish.verb);
    request.target = kServices.path + (begun.wish.verb == Verb::Create ? "" : "/" + name);
    if (begun.wish.verb != Verb::Delete) {
      request.body = R"({"metadata":{"name":")" + name + R"("},"spec":{)" + spec + "}}";
      request.headers.emplace_back(
          "content-type", begun.wish.verb == Verb::Create ? "application/json" : "application/merge-patch+json");
      begun.wish.fields["spec"] = spec;
    }
    if (world_.faults_are_active && random_.percent(5)) request.timeout = milliseconds(1 + random_.below(50));
    Exchange exchange(world_, server_, std::move(begun));
    const net::ClientResponse response = co_await exchange.send(std::move(request));
    exchange.finish(response.status, Parsed(response.body).message());
  }
};

// Lists, then follows all changes, like an informer.
class Follower final : public Client {
 public:
  using Client::Client;

  Task<void> work(ResourceName resource) {
    if (random_.percent(30)) selector_ = random_.one_of(kLabels);
    while (world_.clients_are_active) co_await follow(resource, 1 + random_.below(3), false);
    // Nothing is written any more, and nothing fails: what was missed must come now.
    co_await world_.loop.sleep_for(std::chrono::seconds(15));
    // More than once, because the position may be too old.
    for (int time = 0; time < 3; ++time) co_await follow(resource, 10, true);
  }

 private:
  Task<void> follow(ResourceName resource, uint64_t seconds, bool whole) {
    co_await pause(random_.percent(20) ? 1500 : 50);  // A long one leaves much to catch up with.
    if (position_ == 0 && random_.percent(50)) {
      const Op& read = world_.history.ops[co_await list(resource)];
      // A watch with another selector than the list is none of an informer's.
      if (read.outcome == Op::Outcome::Ok && read.revision != UINT64_MAX) position_ = read.revision;
      if (position_ == 0) co_return;
    }
    Op begun = new_op(resource, Verb::Watch);
    begun.selector = selector_;
    begun.from = position_;
    begun.whole = whole;
    net::ClientRequest request;
    std::string query;
    const bool with_owners = choose_owners(begun, query, request);
    query += "&watch=true&timeoutSeconds=" + std::to_string(seconds);
    if (!selector_.empty()) query += "&labelSelector=t%3D" + selector_;
    if (position_ == 0) {
      begun.initial = true;
      query += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
      if (random_.percent(50)) {
        begun.freshness = Op::Freshness::Any;
        query += "&resourceVersion=0";
      }
    } else {
      query += "&resourceVersion=" + std::to_string(position_);
      if (random_.percent(70)) query += "&allowWatchBookmarks=true";
    }
    request.target = resource.path + "?" + query;
    Exchange exchange(world_, server_, std::move(begun));
    const net::ClientResponse response = co_await exchange.send(std::move(request));
    Op& op = exchange.op();
    int code = response.status;
    std::string message;
    if (code == 200) {
      for (const std::string_view line : split(response.body, '\n')) {
        if (line.empty()) continue;
        const Parsed parsed(line);
        if (parsed.event_type() == "ERROR") {
          code = parsed.error_code();
          message = parsed.error_message();
          break;
        }
        op.events.push_back(parsed.event(resource, with_owners));
        const bool initial = op.initial && position_ == 0 && !op.events.back().initial_end;
        if (!initial) position_ = op.events.back().seen.revision;
      }
    } else {
      message = Parsed(response.body).message();
    }
    if (code == 410) position_ = 0;
    exchange.finish(code, std::move(message));
  }

  std::string selector_;
  uint64_t position_ = 0;  // Everything up to here was received; 0 to begin again.
};

// --- The course of a simulation ---

// Without failures, nothing may take so long that a request gives up: a list of a revision that a cache has not reached
// waits for three seconds.
Faults some_faults(Random& random, bool failures) {
  Faults faults;
  faults.slow = static_cast<int>(random.below(90));
  faults.most_delay = milliseconds(1 + random.below(60));
  faults.slow_watch = static_cast<int>(random.below(80));
  faults.most_watch_delay = milliseconds(1 + random.below(failures && random.percent(20) ? 3000 : 200));
  return faults;
}

void add_failures(const World& world, Faults& faults, Random& random) {
  if (random.percent(40)) faults.unavailable = static_cast<int>(random.below(30));
  // An embedded store knows what it has written.
  if (!world.embedded_store && random.percent(40)) faults.lost_response = static_cast<int>(random.below(30));
  if (random.percent(40)) faults.broken_watch = static_cast<int>(random.below(10));
}

// Changes what goes wrong every now and then, and compacts history.
Task<void> inject(World& world, bool failures) {
  Random random(world.random.number());
  while (world.clients_are_active) {
    for (const std::unique_ptr<Server>& server : world.servers) {
      Faults faults = some_faults(random, failures);
      if (failures) add_failures(world, faults, random);
      server->store.set_faults(faults);
    }
    co_await world.loop.sleep_for(milliseconds(50 + random.below(400)));
    if (!failures || !random.percent(20)) continue;
    world.store.current_revision([&](store::StoreResult<Revision> now) {
      const uint64_t back = random.below(15);
      if (now->value > back) world.store.compact({now->value - back}, [](const store::StoreResult<Unit>&) {});
    });
  }
  for (const std::unique_ptr<Server>& server : world.servers) server->store.set_faults({});
}

// What every server does now and then.
Task<void> repair(World& world, Server& server) {
  Random random(world.random.number());
  while (world.clients_are_active) {
    (void)co_await server.repair_services();
    co_await world.loop.sleep_for(std::chrono::seconds(20 + random.below(20)));
  }
}

Task<void> write_all(World& world, std::vector<Task<void>> writers) {
  co_await when_all(world.loop, std::move(writers));
  world.clients_are_active = false;
}

Task<int> status_of(Server& server, std::string method, std::string target, std::string body) {
  net::ClientRequest request;
  request.method = std::move(method);
  request.target = std::move(target);
  if (!body.empty()) request.headers = {{"content-type", "application/json"}};
  request.body = std::move(body);
  const Result<net::ClientResponse> response = co_await server.send(std::move(request));
  co_return response ? response->status : 0;
}

Task<void> set_up(World& world, bool with_custom_resources) {
  for (const std::unique_ptr<Server>& server : world.servers) co_await server->start();
  Server& first = *world.servers.front();
  const int made = co_await status_of(first, "POST", "/api/v1/namespaces", R"({"metadata":{"name":"default"}})");
  if (made != 201) std::abort();
  if (with_custom_resources) {
    world.resources.push_back(kThings);
    const int defined = co_await status_of(first, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                                           std::string(kDefinition));
    if (defined != 201) std::abort();
  }
  for (const std::unique_ptr<Server>& server : world.servers) {
    for (const ResourceName& resource : world.resources) {
      while (co_await status_of(*server, "GET", resource.path, "") != 200) {
        co_await world.loop.sleep_for(milliseconds(10));
      }
    }
    // Namespaces are looked up in the cache.
    while (co_await status_of(*server, "GET", "/api/v1/namespaces/default?resourceVersion=0", "") != 200) {
      co_await world.loop.sleep_for(milliseconds(10));
    }
  }
}

void give_up(const World& world, uint64_t seed) {
  std::string text = "seed " + std::to_string(seed) + ": it did not end within " + std::to_string(kLongest.count()) +
                     " minutes of simulated time; requests without an answer:\n";
  for (const Op& op : world.history.ops) {
    if (op.end_seconds == 0) text += "    " + to_string(op) + "\n";
  }
  std::fputs(text.c_str(), stderr);
  std::abort();
}

// How servers keep and store objects makes no difference for clients. Several servers agree on what they store.
call::Settings some_settings(Random& random) {
  call::Settings settings;
  settings.embedded_store = random.percent(50);
  for (const Gate gate : {Gate::ManagedFieldsPool, Gate::CompressManagedFieldsInCache, Gate::FieldsV2AtRest}) {
    if (random.percent(20)) settings.gates = settings.gates.with(gate, false);
  }
  if (random.percent(10)) settings.watch_cache = false;
  return settings;
}

Task<Report> simulate(net::Loops& loops, net::SimulatedTime& time, call::Settings settings,
                      std::vector<ownership::Pool*> pools, Plan plan) {
  net::simulate_time(loops.at(0), time);
  World world(loops, time, plan.seed);
  Random random(plan.seed + 1);
  Timer longest(loops.at(0), kLongest, [&] { give_up(world, plan.seed); });
  const bool failures = random.percent(60);
  world.embedded_store = settings.embedded_store;
  // An old etcd: caches cannot know that they are up to date, and read from the store instead.
  if (random.percent(10)) world.store.disable_progress();
  // Only one server may use an embedded store.
  const uint64_t server_count = !settings.embedded_store && random.percent(70) ? pools.size() : 1;
  for (uint64_t i = 0; i < server_count; ++i) {
    world.servers.push_back(std::make_unique<Server>(loops, *pools[i], world.store, time, settings, random.number()));
  }
  co_await set_up(world, random.percent(30));
  world.recorder = world.store.watch({.prefix = "/registry/"});
  record_commits(world);
  for (const std::unique_ptr<Server>& server : world.servers) server->store.set_bug(plan.bug);

  world.faults_are_active = failures;
  std::vector<std::unique_ptr<Writer>> writers;
  std::vector<std::unique_ptr<Follower>> followers;
  std::vector<Task<void>> writing, all;
  const auto name = [](std::string_view kind, size_t number, uint64_t server) {
    return std::string(kind) + " " + std::to_string(number) + " of server " + std::to_string(server);
  };
  const uint64_t count = 2 + random.below(3);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t server = random.below(server_count);
    writers.push_back(std::make_unique<Writer>(world, *world.servers[server], name("client", i, server)));
    writing.push_back(writers.back()->work(8 + random.below(20)));
  }
  // Some for long enough that leaked allocations are found, which takes several repairs.
  std::vector<std::unique_ptr<ServiceClient>> service_clients;
  if (random.percent(30)) {
    const uint64_t longest_pause = random.percent(30) ? 10'000 : 200;
    for (uint64_t i = 0; i < 3; ++i) {
      const uint64_t server = random.below(server_count);
      service_clients.push_back(
          std::make_unique<ServiceClient>(world, *world.servers[server], name("services", i, server)));
      writing.push_back(service_clients.back()->work(10 + random.below(20), longest_pause));
    }
    for (const std::unique_ptr<Server>& server : world.servers) all.push_back(repair(world, *server));
  }
  all.push_back(write_all(world, std::move(writing)));
  all.push_back(inject(world, failures));
  for (const ResourceName& resource : world.resources) {
    for (uint64_t server = 0; server < server_count; ++server) {
      followers.push_back(
          std::make_unique<Follower>(world, *world.servers[server], name("follower", followers.size(), server)));
      all.push_back(followers.back()->work(resource));
    }
  }
  co_await when_all(loops.at(0), std::move(all));
  longest.cancel();

  Report report;
  for (const std::unique_ptr<Server>& server : world.servers) {
    co_await server->close();
    report.failures += server->store.injected();
  }
  // Calls of the store that were given up may still be made.
  co_await world.loop.sleep_for(std::chrono::seconds(1));
  world.recorder.reset();
  world.store.current_revision([&](store::StoreResult<Revision> now) { world.history.last_revision = now->value; });
  world.history.failures = failures;
  report.history = std::move(world.history);
  report.requests = report.history.ops.size();
  report.simulated_seconds = world.seconds();
  world.servers.clear();
  co_return report;
}

}  // namespace

Report run(const Plan& plan) {
  Random random(plan.seed + 2);
  const call::Settings settings = some_settings(random);
  // One for each server. They outlive the thread of the loop, which remembers the resources it has served last.
  ownership::Pool first{settings.gates}, second{settings.gates};
  net::SimulatedTime time;
  net::Loops loops(1);
  return block_on(loops.at(0), simulate(loops, time, settings, {&first, &second}, plan));
}

}  // namespace holdfast::simulation
