#include "cli/etcd_stand_in.h"

#include <signal.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/arena.h"
#include "base/strings.h"
#include "base/task_group.h"
#include "base/url.h"
#include "cli/commands.h"
#include "codec/codec.h"
#include "net/net.h"
#include "value/value.h"

namespace holdfast::cli {
namespace {

// etcd has no such path, so only a stand-in answers it.
constexpr std::string_view kStorePath = "/holdfast/store";

constexpr const char* kUsage = R"(Usage:

  etcd [flags]
    Stands in for etcd beside a kube-apiserver made by `holdfast envtest-assets`, which uses its embedded store.

Flags:
  --data-dir 'default.etcd'
    Directory of that kube-apiserver's store.
  --listen-client-urls 'http://localhost:2379'
    URLs to answer /health on.
  --unsafe-no-fsync 'false'
    Acknowledge writes before they are on disk.

Every other flag of etcd is accepted and has no effect.
)";

struct Flags {
  std::string data_dir = "default.etcd";
  std::string client_urls = "http://127.0.0.1:2379";
  bool fsync = true;
};

Flags parse(const std::vector<std::string>& arguments) {
  Flags flags;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const size_t equals = argument.find('=');
    // Go's flag package, and therefore etcd, accepts one dash or two.
    const std::string name = (argument.starts_with("--") ? "" : "-") + argument.substr(0, equals);
    auto value = [&] {
      if (equals != std::string::npos) return argument.substr(equals + 1);
      const bool next = i + 1 < arguments.size() && !arguments[i + 1].starts_with("-");
      return next ? arguments[++i] : std::string();
    };
    if (name == "--data-dir") flags.data_dir = value();
    if (name == "--listen-client-urls") flags.client_urls = value();
    if (name == "--unsafe-no-fsync") flags.fsync = value() == "false";
  }
  return flags;
}

// "http://127.0.0.1:2379" -> "127.0.0.1:2379"; empty for anything else.
std::string address_of(const std::string& url) {
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) return {};
  std::string address = url.substr(kScheme.size());
  if (const size_t slash = address.find('/'); slash != std::string::npos) address.resize(slash);
  if (address.starts_with("localhost:")) address.replace(0, 9, "127.0.0.1");
  return address;
}

net::Handler answers(const Flags& flags) {
  std::error_code failed;
  const std::filesystem::path absolute = std::filesystem::absolute(flags.data_dir, failed);
  const std::string where = "{\"dataDir\":" + codec::encode_json_string(absolute.string()) +
                            ",\"fsync\":" + (flags.fsync ? "true" : "false") + "}";
  return [where](net::Request& request, net::Response& response) -> Task<void> {
    response.add_header("content-type", "application/json");
    if (request.path == "/health" || request.path == "/livez" || request.path == "/readyz") {
      (void)response.send(200, net::Body(std::string(R"({"health":"true","reason":""})")));
    } else if (request.path == kStorePath) {
      (void)response.send(200, net::Body(where));
    } else if (request.path == "/version") {
      (void)response.send(200,
                          net::Body(std::string(R"({"etcdserver":"3.6.0","etcdcluster":"3.6.0","storage":"3.6.0"})")));
    } else {
      (void)response.send(404, net::Body(std::string("404 page not found\n")));
    }
    co_return;
  };
}

}  // namespace

int run_etcd(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--help" || argument == "-h") {
      fputs(kUsage, stdout);
      return 0;
    }
    if (argument == "--version") {
      puts("etcd Version: 3.6.0 (a stand-in by Holdfast)");
      return 0;
    }
  }
  umask(0077);
  const Flags flags = parse(arguments);
  std::error_code failed;
  std::filesystem::create_directories(flags.data_dir, failed);
  if (failed) return fail(("--data-dir " + flags.data_dir + ": " + failed.message()).c_str());

  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGTERM, SIGINT}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  net::Loops loops(1);
  std::vector<std::unique_ptr<net::Server>> servers;
  for (const std::string_view given : split(flags.client_urls, ',')) {
    const std::string url(given);
    net::ServerOptions options;
    options.listen = address_of(url);
    if (options.listen.empty()) return fail(("--listen-client-urls " + url + ": only http URLs can be served").c_str());
    servers.push_back(std::make_unique<net::Server>(loops, std::move(options), answers(flags)));
    if (Result<Unit> started = servers.back()->start(); !started) return fail(started.error().message.c_str());
  }
  int signal = 0;
  sigwait(&signals, &signal);
  for (auto& server : servers) server->stop(net::Millis(0));
  return 0;
}

std::optional<StandIn> find_stand_in(const std::string& url) {
  const std::string address = address_of(url);
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  net::ClientOptions options;
  options.host = without_brackets(std::string_view(address).substr(0, colon));
  options.port = static_cast<uint16_t>(std::atoi(address.c_str() + colon + 1));
  options.tls = false;
  options.connect_timeout = net::Millis(2000);

  net::Loops loops(1);
  {
    net::Client client(loops.at(0), std::move(options));
    net::ClientRequest request;
    request.target = std::string(kStorePath);
    request.timeout = net::Millis(2000);
    const net::CallResult<net::ClientResponse> response =
        block_on(loops.at(0), client.fetch(std::move(request), 1 << 16));
    const std::string text = response && response->status == 200 ? response->body : std::string();
    Arena arena;
    Result<Value> found = codec::decode_json(arena, text);
    if (!found || found->text_at("dataDir").empty()) return std::nullopt;
    const Value* fsync = found->find("fsync");
    return StandIn{std::string(found->text_at("dataDir")), fsync == nullptr || !fsync->is_bool() || fsync->as_bool()};
  }
}

}  // namespace holdfast::cli
