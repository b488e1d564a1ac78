// load_bench KUBECONFIG PHASE [name=value ...]: drives any Kubernetes API server and prints its measurements as one
// JSON object. bench/report.py runs it phase by phase.
//
//   get, create, update, patch, apply, delete   `count` requests by `clients` clients, each for an object of its own
//   list                                        `count` lists, or with limit=N all pages of each, read but not decoded
//   watch                                       `watchers` watches of one collection, and `count` writes to it
//   mixed                                       `informers`, `writers` and `readers` for `seconds`
//
// The file `object` is a template: NAME is replaced by the name of an object, VALUE by the value that a write changes,
// FIELDS by `fields` members of `field_names` names, chosen by the number of the object (all objects have the same
// fields if the two are equal). Objects are named `prefix` plus a number, unless the file `names` lists their paths.
// Given the process ids of the server and its companions (pid=1,2), the output includes their CPU time and memory. It
// always includes the CPU time of the generator, which shows whether that was the bottleneck.
//
// Sends with the transport of the client library (HTTP/2 over TLS) rather than with its verbs, because decoding
// responses is not part of the measurement. The informers of `mixed` are those of the library.
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <latch>
#include <map>
#include <numeric>
#include <random>
#include <thread>

#include "base/files.h"
#include "base/strings.h"
#include "base/url.h"
#include "client/client.h"
#include "client/core.h"
#include "codec/codec.h"
#include "net/net.h"

namespace holdfast::bench {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "load_bench: %s\n", why.c_str());
  std::exit(1);
}

struct Plan {
  std::string phase;
  std::string path = "/api/v1/namespaces/default/configmaps";
  std::string object_file;
  std::string prefix = "load-";
  std::string value = "1";
  std::string manager = "load";
  std::vector<std::string> accepts = {"application/json"};  // Used in turn by clients or watchers.
  std::string query;
  std::vector<pid_t> pids;  // The server, then its companions.
  size_t count = 1000, clients = 32, connections = 0, first = 0, limit = 0;
  size_t fields = 0, field_names = 0;
  std::string names_file;
  size_t objects = 0;  // Requests cycle through this many objects; 0 for one object per request.
  size_t watchers = 100, watchers_per_connection = 100;
  size_t informers = 4, writers = 16, readers = 4;
  uint32_t threads = 1;
  double seconds = 10;
  bool gzip = false;
};

Plan parse_plan(int argc, char** argv) {
  Plan plan;
  plan.phase = argv[2];
  for (int i = 3; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const size_t equals = argument.find('=');
    if (equals == std::string_view::npos) fail("not name=value: " + std::string(argument));
    const std::string_view name = argument.substr(0, equals);
    const std::string value(argument.substr(equals + 1));
    const std::map<std::string_view, std::string*> texts = {
        {"path", &plan.path},   {"object", &plan.object_file}, {"prefix", &plan.prefix}, {"names", &plan.names_file},
        {"value", &plan.value}, {"manager", &plan.manager},    {"query", &plan.query}};
    const std::map<std::string_view, size_t*> numbers = {{"count", &plan.count},
                                                         {"clients", &plan.clients},
                                                         {"connections", &plan.connections},
                                                         {"first", &plan.first},
                                                         {"limit", &plan.limit},
                                                         {"objects", &plan.objects},
                                                         {"fields", &plan.fields},
                                                         {"field_names", &plan.field_names},
                                                         {"watchers", &plan.watchers},
                                                         {"informers", &plan.informers},
                                                         {"writers", &plan.writers},
                                                         {"readers", &plan.readers},
                                                         {"watchers_per_connection", &plan.watchers_per_connection}};
    if (texts.contains(name)) {
      *texts.at(name) = value;
    } else if (numbers.contains(name)) {
      *numbers.at(name) = std::stoul(value);
    } else if (name == "accept") {
      plan.accepts.clear();
      for (const std::string_view accept : split(value, '|')) plan.accepts.emplace_back(accept);
    } else if (name == "pid") {
      for (const std::string_view pid : split(value, ',')) plan.pids.push_back(std::stoi(std::string(pid)));
    } else if (name == "threads") {
      plan.threads = static_cast<uint32_t>(std::stoul(value));
    } else if (name == "seconds") {
      plan.seconds = std::stod(value);
    } else if (name == "gzip") {
      plan.gzip = value == "true";
    } else {
      fail("unknown option " + std::string(name));
    }
  }
  return plan;
}

// ---------------------------------------------------------------------------------------------------- Processes

double cpu_seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// CPU time to the nanosecond, and memory; /proc/PID/stat counts in hundredths of a second.
class Process {
 public:
  explicit Process(pid_t pid) : pid_(pid) {
    if (clock_getcpuclockid(pid, &clock_) != 0) fail("there is no process " + std::to_string(pid));
  }
  // Begins a measurement: the peak is reset if the kernel allows it.
  void begin() {
    std::ofstream("/proc/" + std::to_string(pid_) + "/clear_refs") << "5";
    start_ = cpu_seconds(clock_);
  }
  double used() const { return cpu_seconds(clock_) - start_; }
  // VmRSS or VmHWM, in MB.
  double memory_mb(std::string_view which) const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with(which)) return std::strtod(line.c_str() + which.size() + 1, nullptr) / 1024;
    }
    return 0;
  }

 private:
  pid_t pid_;
  clockid_t clock_{};
  double start_ = 0;
};

// ---------------------------------------------------------------------------------------------------- Tallies

struct Tally {
  std::vector<float> microseconds;  // Latency of each successful request.
  uint64_t bytes = 0;               // Body bytes as received, possibly compressed.
  std::map<std::string, uint64_t> failures;

  void add(Clock::time_point start, size_t body_bytes) {
    microseconds.push_back(static_cast<float>(seconds_since(start) * 1e6));
    bytes += body_bytes;
  }
  void merge(const Tally& other) {
    microseconds.insert(microseconds.end(), other.microseconds.begin(), other.microseconds.end());
    bytes += other.bytes;
    for (const auto& [what, times] : other.failures) failures[what] += times;
  }
};

std::string json_text(std::string_view text) {
  std::string out;
  codec::encode_json_string(text, out);
  return out;
}

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return text;
}

// "operations": ..., without braces.
std::string summary(Tally tally, double seconds) {
  std::vector<float>& times = tally.microseconds;
  std::sort(times.begin(), times.end());
  const auto at = [&](double part) {
    if (times.empty()) return 0.0;
    return static_cast<double>(
        times[std::min(times.size() - 1, static_cast<size_t>(part * static_cast<double>(times.size())))]);
  };
  std::string out = "\"operations\":" + std::to_string(times.size());
  out += ",\"per_second\":" + number(static_cast<double>(times.size()) / seconds);
  for (const auto& [name, part] : {std::pair{"p50", .5}, {"p99", .99}, {"p999", .999}, {"max", 1.0}}) {
    out += ",\"" + std::string(name) + "_us\":" + number(at(part));
  }
  out += ",\"bytes\":" + std::to_string(tally.bytes) + ",\"failures\":{";
  for (const auto& [what, count] : tally.failures) {
    if (out.back() != '{') out += ',';
    out += json_text(what) + ":" + std::to_string(count);
  }
  return out + "}";
}

// ---------------------------------------------------------------------------------------------------- The server

class Target {
 public:
  Target(const std::string& kubeconfig, net::Loops& loops) : loops_(loops) {
    Result<client::Config> config = client::Config::load({.path = kubeconfig, .context = {}});
    if (!config) fail(config.error().message);
    config_ = std::move(*config);
    Result<HttpUrl> url = parse_http_url(config_.server);
    if (!url) fail(url.error().message);
    transport_.host = url->host;
    transport_.port = url->port;
    transport_.tls = url->tls;
    transport_.http2 = true;
    transport_.server_name = config_.tls_server_name;
    transport_.ca_pem = config_.ca_pem;
    transport_.insecure = config_.insecure;
    if (!config_.certificate_pem.empty()) transport_.identity = net::Identity{config_.certificate_pem, config_.key_pem};
  }

  // Opens connections and uses each once, so that handshakes are not measured.
  std::vector<std::unique_ptr<net::Client>> connect(size_t count) {
    std::vector<std::unique_ptr<net::Client>> connections;
    for (size_t i = 0; i < count; ++i) {
      net::EventLoop& loop = loop_of(i);
      connections.push_back(std::make_unique<net::Client>(loop, transport_));
      net::CallResult<net::ClientResponse> answer =
          block_on(loop, connections.back()->fetch(request("GET", "/version", "application/json"), 1 << 20));
      if (!answer) fail(answer.error().message);
    }
    return connections;
  }
  net::EventLoop& loop_of(size_t connection) { return loops_.at(connection % loops_.count()); }

  net::ClientRequest request(std::string method, std::string target, std::string accept) const {
    net::ClientRequest request;
    request.method = std::move(method);
    request.target = std::move(target);
    request.timeout = std::chrono::minutes(2);  // A hanging server counts as a failure.
    request.headers = {{"accept", std::move(accept)}, {"user-agent", "load"}};
    if (!config_.token.empty()) request.headers.emplace_back("authorization", "Bearer " + config_.token);
    return request;
  }
  const client::Config& config() const { return config_; }

 private:
  net::Loops& loops_;
  client::Config config_;
  net::ClientOptions transport_;
};

std::string read_or_fail(const std::string& path) {
  Result<std::string> text = read_file(path);
  if (!text) fail(text.error().message);
  return std::move(*text);
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

constexpr const char* kConfigMap =
    R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"NAME"},"data":{"a":"VALUE","b":"2","c":"3"}})";

// Builds the requests of a phase.
class Requests {
 public:
  Requests(const Target& target, const Plan& plan) : target_(target), plan_(plan) {
    object_ = plan.object_file.empty() ? kConfigMap : read_or_fail(plan.object_file);
    if (plan.names_file.empty()) return;
    std::ifstream names(plan.names_file);
    for (std::string line; std::getline(names, line);) items_.push_back(line);
    if (items_.empty()) fail("no names in " + plan.names_file);
  }

  net::ClientRequest make(std::string_view verb, size_t i, const std::string& value) const {
    const size_t which = plan_.first + (plan_.objects == 0 ? i : i % plan_.objects);
    std::string name = plan_.prefix + std::to_string(which), item = plan_.path + "/" + name;
    if (!items_.empty()) {
      item = items_[which % items_.size()];
      name = item.substr(item.rfind('/') + 1);
    }
    const std::string& accept = plan_.accepts[i % plan_.accepts.size()];
    const std::string query = plan_.query.empty() ? "" : "?" + plan_.query;
    if (verb == "get") return target_.request("GET", item + query, accept);
    if (verb == "delete") return target_.request("DELETE", item + query, accept);
    if (verb == "create")
      return with_body("POST", plan_.path + query, accept, "application/json", body(name, which, value));
    if (verb == "update") return with_body("PUT", item + query, accept, "application/json", body(name, which, value));
    if (verb == "patch") {
      return with_body("PATCH", item + query, accept, "application/merge-patch+json",
                       R"({"metadata":{"annotations":{"load":")" + value + "\"}}}");
    }
    if (verb == "apply") {
      return with_body("PATCH", item + "?force=true&fieldManager=" + plan_.manager, accept,
                       "application/apply-patch+yaml", body(name, which, value));
    }
    fail("unknown phase " + std::string(verb));
  }
  net::ClientRequest list(const std::string& query, const std::string& accept) const {
    net::ClientRequest request = target_.request("GET", plan_.path + (query.empty() ? "" : "?" + query), accept);
    if (plan_.gzip) request.headers.emplace_back("accept-encoding", "gzip");
    return request;
  }

 private:
  std::string body(std::string_view name, size_t which, std::string_view value) const {
    std::string text = object_;
    if (plan_.fields != 0) replace_all(text, "FIELDS", fields_of(which));
    replace_all(text, "NAME", name);
    replace_all(text, "VALUE", value);
    return text;
  }
  // "field0007":"v0007-12", ...: values differ between objects.
  std::string fields_of(size_t which) const {
    std::vector<size_t> numbers(plan_.field_names);
    std::iota(numbers.begin(), numbers.end(), size_t{0});
    std::vector<size_t> chosen;
    std::mt19937_64 random(which);
    std::sample(numbers.begin(), numbers.end(), std::back_inserter(chosen), plan_.fields, random);
    std::string text;
    for (const size_t field : chosen) {
      char member[48];
      std::snprintf(member, sizeof(member), "%s\"f%04zu\":\"v%zu\"", text.empty() ? "" : ",", field,
                    (which + field) % 997);
      text += member;
    }
    return text;
  }
  net::ClientRequest with_body(std::string method, std::string path, const std::string& accept, std::string type,
                               std::string body) const {
    net::ClientRequest request = target_.request(std::move(method), std::move(path), accept);
    request.headers.emplace_back("content-type", std::move(type));
    request.body = std::move(body);
    return request;
  }

  const Target& target_;
  const Plan& plan_;
  std::string object_;
  std::vector<std::string> items_;
};

// Sends one request and adds it to the tally.
Task<void> send_one(net::Client& connection, net::ClientRequest request, Tally& tally) {
  const Clock::time_point start = Clock::now();
  net::CallResult<net::ClientResponse> answer = co_await connection.fetch(std::move(request), size_t{1} << 30);
  if (!answer) {
    ++tally.failures[answer.error().message];
  } else if (answer->status >= 300) {
    ++tally.failures[std::to_string(answer->status)];
  } else {
    tally.add(start, answer->body.size());
  }
}

// Runs tasks on the loops of their connections, and waits for all of them.
class TaskCrew {
 public:
  explicit TaskCrew(size_t size) : left_(static_cast<ptrdiff_t>(size)) {}
  void start(net::EventLoop& loop, std::function<Task<void>()> work) {
    loop.post([this, work = std::move(work)] {
      // The task refers to its function and therefore has to keep it alive.
      auto kept = std::make_shared<std::function<Task<void>()>>(work);
      spawn((*kept)(), [this, kept](std::exception_ptr failure) {
        if (failure) fail("a client failed");
        left_.count_down();
      });
    });
  }
  void wait() { left_.wait(); }

 private:
  std::latch left_;
};

// ---------------------------------------------------------------------------------------------------- Phases

struct Outcome {
  double seconds = 0;
  std::map<std::string, Tally> tallies;     // By verb.
  std::map<std::string, std::string> more;  // Additional members: name, JSON.
};

// Measures what `work` does.
Outcome measure(const Plan& plan, std::vector<Process>& processes, const std::function<void(Outcome&)>& work) {
  Outcome outcome;
  for (Process& process : processes) process.begin();
  const double own = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
  const Clock::time_point start = Clock::now();
  work(outcome);
  if (outcome.seconds == 0) outcome.seconds = seconds_since(start);
  const double own_used = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - own;
  outcome.more["own_cpu_s"] = number(own_used);
  // Close to 1 if the generator was the bottleneck.
  outcome.more["own_share"] = number(own_used / seconds_since(start) / plan.threads);
  for (size_t i = 0; i < processes.size(); ++i) {
    const std::string who = i == 0 ? "server" : "companion";
    outcome.more[who + "_cpu_s"] = number(processes[i].used());
    outcome.more[who + "_peak_mb"] = number(processes[i].memory_mb("VmHWM"));
    outcome.more[who + "_rss_mb"] = number(processes[i].memory_mb("VmRSS"));
  }
  return outcome;
}

Outcome run_requests(Target& target, const Plan& plan, std::vector<Process>& processes) {
  const Requests requests(target, plan);
  // Many clients share a connection, as within one process; at most 32 connections by default.
  const size_t count = plan.connections != 0 ? plan.connections : std::min<size_t>(plan.clients, 32);
  const auto connections = target.connect(count);
  std::vector<Tally> tallies(plan.clients);
  std::atomic<size_t> next{0};
  const auto client = [&](size_t me) -> Task<void> {
    for (size_t i; (i = next++) < plan.count;) {
      co_await send_one(*connections[me % count], requests.make(plan.phase, i, plan.value), tallies[me]);
    }
  };
  Outcome outcome = measure(plan, processes, [&](Outcome&) {
    TaskCrew crew(plan.clients);
    for (size_t me = 0; me < plan.clients; ++me) crew.start(target.loop_of(me % count), [&, me] { return client(me); });
    crew.wait();
  });
  for (const Tally& tally : tallies) outcome.tallies[plan.phase].merge(tally);
  return outcome;
}

// The text after `"name":"`, up to the next quote; empty if absent.
std::string member_text(std::string_view json, std::string_view name) {
  const std::string pattern = "\"" + std::string(name) + "\":\"";
  const size_t at = json.find(pattern);
  if (at == std::string_view::npos) return {};
  const size_t start = at + pattern.size();
  return std::string(json.substr(start, json.find('"', start) - start));
}

Outcome run_lists(Target& target, const Plan& plan, std::vector<Process>& processes) {
  const Requests requests(target, plan);
  const auto connections = target.connect(plan.clients);
  std::vector<Tally> tallies(plan.clients);
  std::string content_type;
  std::atomic<size_t> next{0};
  const auto client = [&](size_t me) -> Task<void> {
    for (size_t i; (i = next++) < plan.count;) {
      std::string more;
      do {
        std::string query = plan.query;
        if (plan.limit != 0) query += (query.empty() ? "" : "&") + ("limit=" + std::to_string(plan.limit));
        if (!more.empty()) query += "&continue=" + client::query_text(more);
        more.clear();
        const Clock::time_point start = Clock::now();
        net::CallResult<net::ClientStream> stream =
            co_await connections[me]->open(requests.list(query, plan.accepts[i % plan.accepts.size()]));
        if (!stream || stream->head().status >= 300) {
          ++tallies[me].failures[stream ? std::to_string(stream->head().status) : stream.error().message];
          break;
        }
        std::string head;  // The metadata of a list comes before its items.
        size_t bytes = 0;
        bool whole = false;
        while (!whole) {
          net::CallResult<std::string> piece = co_await stream->read_some();
          if (!piece) {
            ++tallies[me].failures[piece.error().message];
            break;
          }
          whole = piece->empty();
          bytes += piece->size();
          if (plan.limit != 0 && head.size() < 4096) head += piece->substr(0, 4096);
        }
        if (!whole) break;
        tallies[me].add(start, bytes);
        if (plan.limit != 0) more = member_text(std::string_view(head).substr(0, head.find("\"items\"")), "continue");
        if (me == 0) content_type = stream->head().header("content-type");
      } while (!more.empty());
    }
  };
  Outcome outcome = measure(plan, processes, [&](Outcome&) {
    TaskCrew crew(plan.clients);
    for (size_t me = 0; me < plan.clients; ++me) crew.start(target.loop_of(me), [&, me] { return client(me); });
    crew.wait();
  });
  for (const Tally& tally : tallies) outcome.tallies["list"].merge(tally);
  outcome.more["content_type"] = json_text(content_type);
  return outcome;
}

// Each write puts this and its number into an annotation, so that it can be found in the bytes of any encoding.
constexpr std::string_view kMark = "~#~#";

// Counts marks in a stream that arrives in chunks.
class MarkCounter {
 public:
  // The number of new marks completed by this piece.
  size_t count(std::string_view piece) {
    const size_t before = found_;
    // The end of the previous piece and the beginning of this one.
    const std::string seam = tail_ + std::string(piece.substr(0, kMark.size() - 1));
    if (const size_t at = seam.find(kMark); at != std::string::npos) note(passed_ - tail_.size() + at);
    for (size_t at = 0; at < piece.size();) {
      const void* hit = memmem(piece.data() + at, piece.size() - at, kMark.data(), kMark.size());
      if (hit == nullptr) break;
      at = static_cast<size_t>(static_cast<const char*>(hit) - piece.data());
      note(passed_ + at);
      at += kMark.size();
    }
    const std::string_view end = piece.size() >= kMark.size() - 1 ? piece : std::string_view(seam);
    tail_ = end.substr(end.size() - std::min(end.size(), kMark.size() - 1));
    passed_ += piece.size();
    return found_ - before;
  }
  // Bytes of all events whose marks were found, extrapolated from the distance between marks, because the last event
  // does not end at its mark.
  uint64_t event_bytes() const { return found_ > 1 ? (last_ - first_) * found_ / (found_ - 1) : passed_; }

 private:
  void note(uint64_t offset) {
    if (found_++ == 0) first_ = offset;
    last_ = offset;
  }
  std::string tail_;
  uint64_t passed_ = 0, first_ = 0, last_ = 0;
  size_t found_ = 0;
};

Outcome run_watch(Target& target, const Plan& plan, std::vector<Process>& processes) {
  const Requests requests(target, plan);
  const size_t count = (plan.watchers + plan.watchers_per_connection - 1) / plan.watchers_per_connection;
  const auto connections = target.connect(count);
  const auto writing = target.connect(1);
  net::EventLoop& writing_loop = target.loop_of(0);
  const auto fetch = [&](net::ClientRequest request) {
    net::CallResult<net::ClientResponse> answer =
        block_on(writing_loop, writing[0]->fetch(std::move(request), size_t{1} << 30));
    if (!answer) fail(answer.error().message);
    if (answer->status >= 300) fail(answer->body);
    return answer->body;
  };
  fetch(requests.make("apply", 0, "watched"));
  const std::string version =
      member_text(fetch(target.request("GET", plan.path + "?limit=1", "application/json")), "resourceVersion");

  // When each write was sent. The k-th event of a watcher belongs to the k-th write.
  std::vector<std::atomic<int64_t>> sent_at(plan.count);
  const Clock::time_point origin = Clock::now();
  const auto now_ns = [&] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - origin).count();
  };
  std::vector<Tally> tallies(plan.watchers);
  std::atomic<size_t> open{0}, delivered{0}, ended{0};
  // Written on the watchers' loops; this thread uses it to end the watches if the server stops delivering.
  std::vector<net::ClientStream*> streams(plan.watchers, nullptr);
  const auto watcher = [&](size_t me) -> Task<void> {
    std::string path = plan.path + "?watch=true&timeoutSeconds=3600&resourceVersion=" + version;
    net::ClientRequest request = target.request("GET", std::move(path), plan.accepts[me % plan.accepts.size()]);
    net::CallResult<net::ClientStream> stream =
        co_await connections[me / plan.watchers_per_connection]->open(std::move(request));
    ++open;
    if (!stream || stream->head().status != 200) {
      ++tallies[me].failures[stream ? std::to_string(stream->head().status) : stream.error().message];
      ++ended;
      co_return;
    }
    streams[me] = &*stream;
    MarkCounter marks;
    for (size_t seen = 0; seen < plan.count;) {
      net::CallResult<std::string> piece = co_await stream->read_some();
      if (!piece || piece->empty()) {
        ++tallies[me].failures["the watch ended"];
        ++ended;
        break;
      }
      const int64_t now = now_ns();
      for (size_t fresh = marks.count(*piece); fresh > 0 && seen < plan.count; --fresh, ++seen, ++delivered) {
        tallies[me].microseconds.push_back(static_cast<float>(static_cast<double>(now - sent_at[seen]) / 1e3));
      }
    }
    tallies[me].bytes = marks.event_bytes();
    streams[me] = nullptr;
  };

  TaskCrew crew(plan.watchers);
  for (size_t me = 0; me < plan.watchers; ++me) {
    crew.start(target.loop_of(me / plan.watchers_per_connection), [&, me] { return watcher(me); });
  }
  while (open < plan.watchers) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));

  Tally writes;
  // The writer stays at most this many events ahead of the average watcher: servers close watches that are too slow.
  constexpr size_t kAhead = 20;
  Outcome outcome = measure(plan, processes, [&](Outcome& into) {
    const Clock::time_point start = Clock::now();
    Clock::time_point progress = start;
    size_t last = 0;
    // False once nothing has arrived for a long time.
    const auto moving = [&] {
      if (delivered != last) {
        last = delivered;
        progress = Clock::now();
      }
      return seconds_since(progress) < 30;
    };
    const auto wait_for = [&](size_t events) {
      while (delivered < events * (plan.watchers - ended) && moving()) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    };
    for (size_t i = 0; i < plan.count; ++i) {
      if (i > kAhead) wait_for(i - kAhead);
      sent_at[i] = now_ns();
      block_on(writing_loop,
               send_one(*writing[0], requests.make("patch", 0, std::string(kMark) + std::to_string(i)), writes));
    }
    wait_for(plan.count);
    into.seconds = seconds_since(start);
  });
  // Watchers that are still waiting have missed events.
  for (size_t i = 0; i < count; ++i) {
    block_on(target.loop_of(i), [](std::vector<net::ClientStream*>& all, size_t from, size_t to) -> Task<void> {
      for (size_t me = from; me < to; ++me) {
        if (all[me] != nullptr) all[me]->cancel();
      }
      co_return;
    }(streams, i * plan.watchers_per_connection, std::min(plan.watchers, (i + 1) * plan.watchers_per_connection)));
  }
  crew.wait();
  for (const Tally& tally : tallies) outcome.tallies["deliver"].merge(tally);
  outcome.tallies["write"] = std::move(writes);
  return outcome;
}

// A mix of verbs typical for controllers and users; each writer has its own objects.
Outcome run_mixed(Target& target, const Plan& plan, std::vector<Process>& processes) {
  const Requests requests(target, plan);
  const size_t workers = plan.writers + plan.readers;
  const auto connections = target.connect(workers);
  constexpr size_t kObjectsPerWriter = 50;
  const auto object_of = [&](size_t writer, size_t which) { return writer * kObjectsPerWriter + which; };

  std::vector<std::map<std::string, Tally>> tallies(workers);
  std::atomic<bool> stop{false};
  const auto writer = [&](size_t me) -> Task<void> {
    std::mt19937_64 random(me + 1);
    for (size_t round = 0; !stop; ++round) {
      const size_t object = object_of(me, random() % kObjectsPerWriter);
      const uint64_t dice = random() % 100;
      const std::string fresh = plan.value + "-" + std::to_string(round);
      if (dice < 45) {
        co_await send_one(*connections[me], requests.make("apply", object, fresh), tallies[me]["apply"]);
      } else if (dice < 75) {
        // The second of two equal applies is a no-op.
        co_await send_one(*connections[me], requests.make("apply", object, fresh), tallies[me]["apply"]);
        co_await send_one(*connections[me], requests.make("apply", object, fresh), tallies[me]["no-op apply"]);
      } else if (dice < 90) {
        co_await send_one(*connections[me], requests.make("patch", object, fresh), tallies[me]["patch"]);
      } else {
        co_await send_one(*connections[me], requests.make("delete", object, fresh), tallies[me]["delete"]);
        co_await send_one(*connections[me], requests.make("create", object, fresh), tallies[me]["create"]);
      }
    }
  };
  const auto reader = [&](size_t me) -> Task<void> {
    std::mt19937_64 random(me + 1);
    while (!stop) {
      if (random() % 10 != 0) {
        const size_t object = object_of(random() % plan.writers, random() % kObjectsPerWriter);
        co_await send_one(*connections[me], requests.make("get", object, ""), tallies[me]["get"]);
      } else {
        co_await send_one(*connections[me], requests.list("limit=500", plan.accepts[0]), tallies[me]["list of 500"]);
      }
    }
  };

  {  // Create all objects before the measurement starts.
    TaskCrew crew(plan.writers);
    for (size_t me = 0; me < plan.writers; ++me) {
      const auto fill = [&, me]() -> Task<void> {
        Tally ignored;
        for (size_t i = 0; i < kObjectsPerWriter; ++i) {
          co_await send_one(*connections[me], requests.make("apply", object_of(me, i), plan.value), ignored);
        }
      };
      crew.start(target.loop_of(me), fill);
    }
    crew.wait();
  }
  // "/apis/GROUP/VERSION/..." or "/api/VERSION/...": the resource that the informers follow.
  std::vector<std::string_view> parts;
  for (const std::string_view part : split(plan.path, '/')) {
    if (!part.empty()) parts.push_back(part);
  }
  const bool core_group = parts[0] == "api";
  const client::Resource resource{core_group ? "" : std::string(parts[1]), std::string(parts[core_group ? 1 : 2]),
                                  std::string(parts.back()), "", true};
  std::vector<std::unique_ptr<client::Client>> clients;
  std::vector<std::shared_ptr<client::Informer>> informers;
  std::atomic<uint64_t> events{0};
  for (size_t i = 0; i < plan.informers; ++i) {
    client::Options options;
    options.user_agent = "load-informer-" + std::to_string(i);
    options.encoding = client::Encoding::Json;
    // Half of them opt out of managedFields, as most controllers can.
    if (i % 2 == 1) options.drop_fields = {std::string(client::kManagedFields)};
    Result<client::Client> connected = client::Client::connect(target.loop_of(i), target.config(), std::move(options));
    if (!connected) fail(connected.error().message);
    clients.push_back(std::make_unique<client::Client>(std::move(*connected)));
    informers.push_back(client::Informer::follow(*clients.back(), resource));
    const auto count_it = [&](const client::Stored&) { ++events; };
    informers.back()->add_handlers(
        {count_it, [&](const client::Stored&, const client::Stored&) { ++events; }, count_it});
    Result<Unit> synced = informers.back()->wait_synced().wait();
    if (!synced) fail(synced.error().message);
  }
  events = 0;

  Outcome outcome = measure(plan, processes, [&](Outcome& into) {
    const Clock::time_point start = Clock::now();
    TaskCrew crew(workers);
    for (size_t me = 0; me < workers; ++me) {
      crew.start(target.loop_of(me), [&, me] { return me < plan.writers ? writer(me) : reader(me); });
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(plan.seconds));
    stop = true;
    crew.wait();
    into.seconds = seconds_since(start);
  });
  for (const auto& mine : tallies) {
    for (const auto& [verb, tally] : mine) outcome.tallies[verb].merge(tally);
  }
  // Finally, the informers must agree with the server.
  const auto converged = [&] {
    return std::all_of(informers.begin(), informers.end(), [&](const auto& informer) {
      return informer->status().objects >= plan.writers * kObjectsPerWriter;
    });
  };
  for (int i = 0; i < 1000 && !converged(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  outcome.more["informer_events"] = std::to_string(events);
  outcome.more["informers_converged"] = converged() ? "true" : "false";
  informers.clear();
  clients.clear();
  return outcome;
}

int run(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr,
                 "load_bench KUBECONFIG get|create|update|patch|apply|delete|list|watch|mixed [name=value ...]\n");
    return 2;
  }
  const Plan plan = parse_plan(argc, argv);
  net::Loops loops(plan.threads);
  Target target(argv[1], loops);
  std::vector<Process> processes;
  for (const pid_t pid : plan.pids) processes.emplace_back(pid);
  const Outcome outcome = plan.phase == "list"    ? run_lists(target, plan, processes)
                          : plan.phase == "watch" ? run_watch(target, plan, processes)
                          : plan.phase == "mixed" ? run_mixed(target, plan, processes)
                                                  : run_requests(target, plan, processes);
  std::string out = "{\"phase\":" + json_text(plan.phase) + ",\"seconds\":" + number(outcome.seconds);
  for (const auto& [name, value] : outcome.more) out += ",\"" + name + "\":" + value;
  out += ",\"verbs\":{";
  for (const auto& [verb, tally] : outcome.tallies) {
    if (out.back() != '{') out += ',';
    out += json_text(verb) + ":{" + summary(tally, outcome.seconds) + "}";
  }
  std::printf("%s}}\n", out.c_str());
  return 0;
}

}  // namespace
}  // namespace holdfast::bench

int main(int argc, char** argv) { return holdfast::bench::run(argc, argv); }
