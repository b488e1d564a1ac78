#include <algorithm>
#include <list>
#include <vector>

#include "base/base64.h"
#include "base/limits.h"
#include "base/strings.h"
#include "base/text.h"
#include "base/url.h"
#include "codec/codec.h"
#include "webhook/webhook.h"

namespace holdfast::webhook {
namespace {

// Maximum number of servers per loop with pooled connections.
constexpr size_t kKeptClients = 64;

// Joins a path like client-go: single slashes, none at the end, dots resolved. envtest writes double slashes.
std::string clean_path(std::string_view path) {
  std::vector<std::string_view> names;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (name == "..") {
      if (!names.empty()) names.pop_back();
    } else if (!name.empty() && name != ".") {
      names.push_back(name);
    }
  }
  std::string clean;
  for (const std::string_view name : names) clean += "/" + std::string(name);
  return clean.empty() ? "/" : clean;
}

std::string_view known_message(int code) {
  switch (code) {
    case 400:
      return "the server rejected our request for an unknown reason";
    case 401:
      return "the server has asked for the client to provide credentials";
    case 404:
      return "the server could not find the requested resource";
    case 405:
      return "the server does not allow this method on the requested resource";
    case 409:
      return "the server reported a conflict";
    case 422:
      return "the server rejected our request due to an error in our request";
    case 429:
      return "the server has received too many requests and has asked us to try again later";
    case 503:
      return "the server is currently unable to handle the request";
    case 504:
      return "the server was unable to return a response in the time allotted, but may still be processing the request";
    default:
      return {};
  }
}

// client-go's message for an unsuccessful response (k8s.io/client-go/rest, NewGenericServerResponse).
std::string failure_text(const net::ClientResponse& response) {
  Arena arena;
  if (Result<Value> status = codec::decode_json(arena, response.body);
      status && status->text_at("kind") == "Status" && !status->text_at("message").empty()) {
    return std::string(status->text_at("message"));
  }
  std::string said = "unknown";
  if (response.header("content-type").starts_with("text/")) {
    if (const std::string_view text = trim(response.body); !text.empty()) said = text;
  }
  const int code = response.status;
  if (code == 403 || code == 406 || code == 415) return said;
  if (const std::string_view message = known_message(code); !message.empty()) return std::string(message);
  if (code >= 500) return "an error on the server (" + go_quote(said) + ") has prevented the request from succeeding";
  return "the server responded with the status code " + std::to_string(code) + " but did not return more information";
}

}  // namespace

ClientConfig client_config(const Value& value) {
  ClientConfig config;
  config.url = value.text_at("url");
  if (const Value* service = value.find("service"); service != nullptr && service->is_map()) {
    config.service = ServiceReference{.ns = std::string(service->text_at("namespace")),
                                      .name = std::string(service->text_at("name")),
                                      .path = std::string(service->text_at("path")),
                                      .port = static_cast<uint16_t>(service->int_at_or(443, "port"))};
  }
  if (std::optional<std::string> pem = base64_decode(value.text_at("caBundle"))) config.ca_pem = std::move(*pem);
  return config;
}

// Used only on its loop's thread. Clients are ordered by most recent use.
struct Caller::PerLoop {
  explicit PerLoop(net::EventLoop& event_loop) : loop(event_loop) {}
  net::EventLoop& loop;
  struct Known {
    std::string key;
    std::shared_ptr<net::Client> client;
  };
  std::list<Known> clients;
};

Caller::Caller(net::Loops& loops, const Services& services) : services_(services) {
  for (size_t i = 0; i < loops.count(); ++i) loops_.push_back(std::make_unique<PerLoop>(loops.at(i)));
}
Caller::~Caller() = default;

std::shared_ptr<net::Client> Caller::client(net::EventLoop& loop, const Address& address, const Trust& trust) {
  const auto mine = std::find_if(loops_.begin(), loops_.end(),
                                 [&](const std::unique_ptr<PerLoop>& candidate) { return &candidate->loop == &loop; });
  assert(mine != loops_.end() && loop.in_thread());
  std::list<PerLoop::Known>& clients = (*mine)->clients;
  std::string key = address.host + "\n" + std::to_string(address.port) + "\n" + trust.server_name + "\n" +
                    (trust.insecure ? "insecure" : trust.ca_pem) + "\n" +
                    (trust.identity == nullptr ? "" : trust.identity->certificate_pem);
  for (auto known = clients.begin(); known != clients.end(); ++known) {
    if (known->key != key) continue;
    clients.splice(clients.begin(), clients, known);
    return clients.front().client;
  }
  net::ClientOptions options;
  options.host = address.host;
  options.port = address.port;
  options.server_name = trust.server_name;
  options.ca_pem = trust.ca_pem;
  options.insecure = trust.insecure;
  if (trust.identity != nullptr) options.identity = *trust.identity;
  clients.push_front({std::move(key), std::make_shared<net::Client>(loop, std::move(options))});
  if (clients.size() > kKeptClients) clients.pop_back();
  return clients.front().client;
}

Task<Result<std::string>> Caller::post(net::EventLoop& loop, ClientConfig config, std::string body,
                                       std::chrono::seconds timeout, std::string_view user_agent,
                                       std::shared_ptr<net::Cancellation> cancellation) {
  const std::string agent(user_agent);
  std::string shown, server_name, host;  // `host` includes the port.
  net::ClientRequest request;
  request.method = "POST";
  request.timeout = timeout;
  request.cancellation = std::move(cancellation);
  request.body = std::move(body);
  Result<Address> address = Address{};
  const std::string query = "?timeout=" + std::to_string(timeout.count()) + "s";
  if (config.service) {
    const ServiceReference& service = *config.service;
    server_name = service.name + "." + service.ns + ".svc";
    host = server_name + ":" + std::to_string(service.port);
    request.target = clean_path(service.path) + query;
    request.headers.emplace_back("Host", host);
    shown = "https://" + host + request.target;
    address = services_.resolve(service.ns, service.name, service.port);
  } else {
    if (config.url.empty()) co_return bad_request("webhook configuration must have either service or URL");
    // Validated when it was written, but possibly by another server.
    if (const std::vector<UrlProblem> problems = webhook_url_problems(config.url); !problems.empty()) {
      co_return bad_request("Unparsable URL: " + problems.front().why);
    }
    const Result<HttpUrl> target = parse_http_url(config.url);
    if (!target) co_return bad_request("Unparsable URL: " + target.error().message);
    server_name = target->host;
    host = host_port(target->host, target->port);
    request.target = clean_path(target->path) + query;
    request.headers.emplace_back("Host", target->authority);
    shown = "https://" + target->authority + request.target;
    address = Address{target->host, target->port};
  }
  const std::string prefix = "Post " + go_quote(shown) + ": ";
  if (!address) co_return Error{address.error().reason, prefix + address.error().message};
  request.headers.emplace_back("User-Agent", agent);
  request.headers.emplace_back("Accept", "application/json, */*");
  request.headers.emplace_back("Content-Type", "application/json");
  request.headers.emplace_back("Accept-Encoding", "gzip");
  ClientCredentials::Shown credentials;
  if (config.credentials != nullptr) {
    Result<ClientCredentials::Shown> found = config.credentials->for_server(host);
    if (!found) co_return found.take_error();
    credentials = std::move(*found);
    for (auto& header : credentials.headers) request.headers.push_back(std::move(header));
  }
  if (!loop.in_thread()) co_await resume_on(loop);
  const std::shared_ptr<net::Client> http =
      client(loop, *address,
             {.server_name = server_name,
              .ca_pem = config.ca_pem,
              .identity = credentials.identity ? &*credentials.identity : nullptr});
  net::CallResult<net::ClientResponse> response = co_await http->fetch(std::move(request), limits::kWebhookAnswerBytes);
  if (!response) co_return Error{response.error().reason, prefix + response.error().message};
  if (response->status == 401 && config.credentials != nullptr) config.credentials->rejected_by(host);
  if (response->status < 200 || response->status > 206) {
    Error error{Reason::InternalError, failure_text(*response)};
    error.code = response->status;
    co_return error;
  }
  co_return std::move(response->body);
}

}  // namespace holdfast::webhook
