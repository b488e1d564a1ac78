#include "client/core.h"

#include <algorithm>
#include <cstdlib>

#include "base/api_version.h"
#include "base/ascii.h"
#include "base/base64.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/thread_pool.h"
#include "base/url.h"
#include "codec/visible.h"

namespace holdfast::client {

namespace {

// Exec plugins and file reads block, so they run on a separate thread.
ThreadPool& waiting_threads() {
  static ThreadPool pool(2);
  return pool;
}

// Warning: 299 - "text": a quoted string of RFC 9110.
void report_warnings(const net::ClientResponse& response, const std::function<void(std::string_view)>& tell) {
  for (const auto& [name, value] : response.headers) {
    if (name != "warning" || !value.starts_with("299 ")) continue;
    const size_t open = value.find('"');
    if (open == std::string::npos) continue;
    std::string text;
    for (size_t i = open + 1; i < value.size() && value[i] != '"'; ++i) {
      if (value[i] == '\\' && i + 1 < value.size()) ++i;
      text += value[i];
    }
    tell(text);
  }
}

// Retry-After in seconds; nullopt if absent or a date, which API servers do not send.
std::optional<int64_t> retry_after(const net::ClientResponse& response) {
  const std::optional<int64_t> seconds = parse_number<int64_t>(response.header("retry-after"));
  return seconds && *seconds >= 0 ? seconds : std::nullopt;
}

}  // namespace

bool opt_out_gate(const std::optional<bool>& given) {
  if (given) return *given;
  if (const char* text = std::getenv("KUBE_FEATURE_ManagedFieldsOptOutClient"); text != nullptr) {
    if (const std::optional<bool> value = parse_bool(text)) return *value;
    log::warning("ignoring environment variable: must be a boolean, such as true, false, 1 or 0",
                 {{"name", "KUBE_FEATURE_ManagedFieldsOptOutClient"}, {"value", text}});
  }
  return Gates().on(Gate::ManagedFieldsOptOutClient);
}

Drops::Drops(std::vector<std::string> names)
    : fields(std::make_shared<const std::vector<std::string>>(std::move(names))) {
  bool ownership = false;
  for (const std::string& field : *fields) {
    parameter += (parameter.empty() ? ";drop=" : "+") + field;
    ownership = ownership || field == kManagedFields;
    object.add(field);
    list.add("items." + field);
    table.add("rows.object." + field);
  }
  if (lacks_more_than_ownership(*fields)) {
    second_parameter = ownership ? ";drop=" + std::string(kManagedFields) : std::string();
  }
}

const std::shared_ptr<const Drops>& Drops::none() {
  static const std::shared_ptr<const Drops> kNone = std::make_shared<const Drops>();
  return kNone;
}

Result<Unit> check_fields(const std::vector<std::string>& fields) {
  static constexpr std::string_view kIdentity[] = {
      "apiVersion",  "kind", "metadata", "metadata.name", "metadata.namespace", "metadata.resourceVersion",
      "metadata.uid"};
  for (const std::string& field : fields) {
    const std::vector<std::string_view> parts = split(field, '.');
    const bool path = std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
      return !part.empty() && std::all_of(part.begin(), part.end(),
                                          [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '$'; });
    });
    if (!path) return bad_request("drop_fields: \"" + field + "\" is not a path of field names, such as spec.template");
    if (std::find(std::begin(kIdentity), std::end(kIdentity), field) != std::end(kIdentity)) {
      return bad_request("drop_fields: " + field + " identifies the object and cannot be left out");
    }
  }
  return Unit{};
}

Result<SharedDrops> Core::drops_of(const DropFields& choice) const {
  if (choice.inherits()) return drops;
  if (choice.fields().empty() || !opt_out_gate(options.opt_out_gate)) return Drops::none();
  if (Result<Unit> valid = check_fields(choice.fields()); !valid) return valid.take_error();
  return std::make_shared<const Drops>(choice.fields());
}

Result<ServerUrl> parse_server(std::string_view url) {
  // Like client-go, a host without a scheme means http.
  const std::string full = (url.find("://") == std::string_view::npos ? "http://" : "") + std::string(url);
  Result<HttpUrl> parsed = parse_http_url(full);
  if (!parsed) return bad_request("server: " + parsed.error().message);
  ServerUrl server{std::move(*parsed), {}};
  server.prefix = server.at.path;
  while (server.prefix.ends_with('/')) server.prefix.pop_back();
  return server;
}

Result<Unit> route_to(const HttpUrl& url, const std::string& proxy_url, net::ClientOptions& options) {
  options.host = url.host;
  options.port = url.port;
  options.tls = url.tls;
  const std::string named = proxy_url.empty() ? environment_proxy(url) : proxy_url;
  if (named.empty()) return Unit{};
  const Result<HttpUrl> proxy = parse_http_url(named);
  if (!proxy) return bad_request("proxy: " + proxy.error().message);
  if (proxy->tls) return bad_request("proxy " + proxy->authority + ": only http:// proxies are supported");
  options.proxy_host = proxy->host;
  options.proxy_port = proxy->port;
  if (const std::optional<std::string> login = net::percent_decode(proxy->user); login && !login->empty()) {
    options.proxy_authorization = "Basic " + base64_encode(*login);
  }
  return Unit{};
}

Core::Core(net::EventLoop& event_loop, Config the_config, Options the_options)
    : loop(event_loop),
      config(std::move(the_config)),
      options(std::move(the_options)),
      drops(opt_out_gate(options.opt_out_gate) ? std::make_shared<const Drops>(options.drop_fields) : Drops::none()),
      tasks(loop, "client"),
      tokens_(options.max_calls_per_second * 10),
      refilled_(std::chrono::steady_clock::now()) {
  cbor_bodies = options.encoding == Encoding::Cbor;
}

Core::Use::Use(std::shared_ptr<Core> the_core) : core(std::move(the_core)) {
  std::lock_guard lock(core->mutex_);
  ++core->uses_;
}
Core::Use::~Use() {
  std::lock_guard lock(core->mutex_);
  if (--core->uses_ == 0) core->idle_.notify_all();
}

uint64_t Core::on_close(std::function<void()> callback) {
  std::lock_guard lock(mutex_);
  close_callbacks_.emplace(next_close_id_, std::move(callback));
  return next_close_id_++;
}

void Core::forget_close(uint64_t id) {
  std::lock_guard lock(mutex_);
  close_callbacks_.erase(id);
}

Task<void> Core::drop_transport(std::shared_ptr<Core> core) {
  core->transport_.reset();
  co_await resume_on(core->loop);
}

void Core::close() {
  const auto interrupt = [self = shared_from_this()] {
    self->closing = true;
    std::map<uint64_t, std::function<void()>> callbacks;
    {
      std::lock_guard lock(self->mutex_);
      callbacks = self->close_callbacks_;
    }
    for (const auto& [id, callback] : callbacks) callback();
  };
  block_on(loop, tasks.close(loop, interrupt));
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return uses_ == 0; });
  lock.unlock();
  // The connection is closed on its own thread, after everything posted before.
  block_on(loop, drop_transport(shared_from_this()));
}

double Core::jitter(double around) { return around * std::uniform_real_distribution<>(0.75, 1.25)(random_); }

Result<Unit> Core::make_transport() {
  net::ClientOptions to;
  Result<Unit> routed = route_to(url.at, config.proxy_url, to);
  if (!routed) return routed;
  to.http2 = true;
  to.server_name = config.tls_server_name;
  to.ca_pem = config.ca_pem;
  to.insecure = config.insecure;
  to.identity = credentials_->identity;
  transport_ = std::make_shared<net::Client>(loop, std::move(to));
  return Unit{};
}

Task<Result<Unit>> Core::refresh_credentials(bool refused) {
  const std::shared_ptr<Core> self = shared_from_this();
  struct Refreshed {
    Core& core;
    bool await_ready() const noexcept { return !core.refreshing_; }
    void await_suspend(std::coroutine_handle<> h) { core.waiting_for_credentials_.push_back(h); }
    void await_resume() const noexcept {}
  };
  const uint64_t held = credentials_generation_;
  while (refreshing_) co_await Refreshed{*this};
  // Another call may already have refreshed them.
  if (refused && credentials_generation_ != held) co_return Unit{};
  const auto now = std::chrono::steady_clock::now();
  if (!refused && credentials_ && (!credentials_->stale_at || now < *credentials_->stale_at)) co_return Unit{};

  struct Turn {
    Core& core;
    explicit Turn(Core& c) : core(c) { core.refreshing_ = true; }
    ~Turn() {
      core.refreshing_ = false;
      for (const std::coroutine_handle<> h : std::exchange(core.waiting_for_credentials_, {})) {
        core.loop.post([h] { h.resume(); });
      }
    }
  } turn(*this);
  Result<Credentials> read = read_credentials(config);
  if (!read) co_return read.take_error();
  Credentials fresh = std::move(*read);
  if (fresh.authorization.empty() && config.exec) {
    Result<Credentials> said = co_await from_callback<Result<Credentials>>(loop, [self](auto done) {
      waiting_threads().post([self, done]() mutable { done(run_exec_plugin(*self->config.exec, self->config)); });
    });
    if (!said) co_return said.take_error();
    if (!said->identity) said->identity = fresh.identity;
    fresh = std::move(*said);
  }
  const bool same_identity =
      credentials_ && credentials_->identity.has_value() == fresh.identity.has_value() &&
      (!fresh.identity || fresh.identity->certificate_pem == credentials_->identity->certificate_pem);
  credentials_ = std::move(fresh);
  ++credentials_generation_;
  if (transport_ && same_identity) co_return Unit{};
  co_return make_transport();
}

Task<void> Core::wait_for_turn() {
  if (options.max_calls_per_second <= 0) co_return;
  while (true) {
    const auto now = std::chrono::steady_clock::now();
    const double passed = std::chrono::duration<double>(now - refilled_).count();
    refilled_ = now;
    tokens_ = std::min(options.max_calls_per_second * 10, tokens_ + passed * options.max_calls_per_second);
    if (tokens_ >= 1 || closing) break;
    co_await tasks.sleep(net::Millis(static_cast<int64_t>((1 - tokens_) / options.max_calls_per_second * 1000) + 1));
  }
  tokens_ -= 1;
}

void Core::add_headers(const PreparedRequest& sent, net::ClientRequest& request) const {
  auto& headers = request.headers;
  if (!sent.accept.empty()) headers.emplace_back("accept", sent.accept);
  headers.emplace_back("user-agent", options.user_agent);
  if (!sent.content_type.empty()) headers.emplace_back("content-type", sent.content_type);
  if (!sent.if_none_match.empty()) headers.emplace_back("if-none-match", sent.if_none_match);
  add_credentials(*credentials_, config.impersonate, headers);
}

Task<Result<Answer>> Core::send(std::shared_ptr<Core> core, PreparedRequest sent) {
  const Use use(core);
  Core& me = *core;
  if (!me.loop.in_thread()) co_await resume_on(me.loop);
  bool refused = false;
  for (int attempt = 1;; ++attempt) {
    if (me.closing) co_return Error{Reason::ServiceUnavailable, "the client was closed"};
    Result<Unit> known = co_await me.refresh_credentials(false);
    if (!known) co_return known.take_error();
    co_await me.wait_for_turn();

    net::ClientRequest request;
    request.method = sent.method;
    request.target = me.url.prefix + sent.target;
    request.body = sent.body;
    request.timeout = me.options.timeout;
    me.add_headers(sent, request);
    const std::shared_ptr<net::Client> transport = me.transport_;
    Answer answer;
    std::optional<net::CallError> failure;
    if (sent.streaming) {
      net::CallResult<net::ClientStream> opened = co_await transport->open(std::move(request));
      if (!opened) {
        failure = opened.take_error();
      } else {
        answer.stream.emplace(std::move(*opened));
        answer.response = answer.stream->head();
        while (answer.response.status >= 300) {  // The body of an error is read here.
          net::CallResult<std::string> piece = co_await answer.stream->read_some();
          if (!piece || piece->empty() || answer.response.body.size() > (1 << 20)) break;
          answer.response.body += *piece;
        }
      }
    } else {
      net::CallResult<net::ClientResponse> fetched =
          co_await transport->fetch(std::move(request), me.options.max_answer_bytes);
      if (!fetched) {
        failure = fetched.take_error();
      } else {
        answer.response = std::move(*fetched);
      }
    }

    const bool last = attempt >= me.options.retry.max_attempts;
    double delay_ms = std::min<double>(static_cast<double>(me.options.retry.max_delay.count()),
                                       static_cast<double>(me.options.retry.first_delay.count()) *
                                           static_cast<double>(int64_t{1} << std::min(attempt - 1, 20)));
    if (failure) {
      // Without a connection, nothing reached the server.
      const bool never_left = failure->progress == net::CallError::Progress::NotConnected;
      const bool again = failure->reason == Reason::ServiceUnavailable && (never_left || sent.retry_safe);
      if (last || !again || me.closing) co_return std::move(*failure);
    } else {
      const int status = answer.response.status;
      if (me.options.on_warning) report_warnings(answer.response, me.options.on_warning);
      if (status < 300 || status == 304) co_return answer;
      const bool renewable = me.config.exec || !me.config.token_file.empty() || !me.config.certificate_file.empty();
      if (status == 401 && !refused && renewable) {
        // The token or certificate may have expired: retry once with a new one.
        refused = true;
        Result<Unit> renewed = co_await me.refresh_credentials(true);
        if (!renewed) co_return renewed.take_error();
        continue;
      }
      const std::optional<int64_t> wait = retry_after(answer.response);
      if (last || !wait || (status != 429 && status < 500)) co_return error_of(answer.response);
      delay_ms = std::max(delay_ms, static_cast<double>(*wait) * 1000);
    }
    answer.stream.reset();
    co_await me.tasks.sleep(net::Millis(static_cast<int64_t>(me.jitter(delay_ms))));
  }
}

Task<Result<Object>> Core::send_for_object(std::shared_ptr<Core> core, PreparedRequest sent) {
  const Use use(core);
  Result<Answer> answer = co_await send(core, sent);
  if (!answer && answer.error().code == 415 && sent.content_type.ends_with("cbor")) {
    // Like client-go, use JSON from now on if the server does not support CBOR.
    core->cbor_bodies = false;
    Arena arena;
    Result<Value> body = codec::decode_cbor(arena, sent.body);
    if (!body) co_return body.take_error();
    sent.body = codec::visible_json(codec::encode_json(*body));
    sent.content_type = sent.content_type == "application/cbor" ? "application/json" : "application/apply-patch+yaml";
    answer = co_await send(core, sent);
  }
  if (!answer) co_return answer.take_error();
  const Encoding encoding = encoding_of(answer->response.header("content-type"));
  co_return decode_answer(encoding, std::move(answer->response.body), *sent.drops, sent.answered);
}

std::string Core::accept(const Resource& resource, const Drops& without, Encoding encoding, Shape shape, Asked asked) {
  std::vector<std::string> types;
  if (shape == Shape::Table || shape == Shape::TableOfObjects) {
    // Table cells are text: other encodings save nothing.
    types = {"application/json;as=Table;v=v1;g=meta.k8s.io", "application/json"};
  } else if (shape == Shape::Metadata) {
    const std::string as =
        std::string(";as=PartialObjectMetadata") + (asked == Asked::List ? "List" : "") + ";g=meta.k8s.io;v=v1";
    if (encoding == Encoding::Cbor) types.push_back("application/cbor" + as);
    types.push_back("application/json" + as);
    types.emplace_back("application/json");
  } else {
    const bool built_in = types::find_kind(resource.group, resource.version, resource.kind) != nullptr;
    if (encoding == Encoding::Cbor) types.emplace_back("application/cbor");
    if (built_in && (encoding == Encoding::Best || encoding == Encoding::Protobuf)) {
      types.emplace_back("application/vnd.kubernetes.protobuf");
    }
    types.emplace_back("application/json");
  }
  return accept_header(types, without);
}

std::string accept_header(const std::vector<std::string>& types, const Drops& without) {
  std::string text;
  const auto add = [&](const std::string& parameter) {
    for (const std::string& type : types) text += (text.empty() ? "" : ",") + type + parameter;
  };
  add(without.parameter);
  if (without.second_parameter) add(*without.second_parameter);
  return text;
}

std::string Core::path(const Resource& resource, std::string_view space, std::string_view name,
                       std::string_view subresource) const {
  std::string text = api_path(resource.group, resource.version);
  if (resource.namespaced && !space.empty()) text += "/namespaces/" + query_text(space);
  text += "/" + resource.plural;
  if (!name.empty()) text += "/" + query_text(name);
  if (!subresource.empty()) text += "/" + std::string(subresource);
  return text;
}

std::string query_text(std::string_view value) {
  std::string text;
  for (const char c : value) {
    const bool plain = is_alnum(c) || c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      text += c;
    } else {
      append_percent_encoded(text, c);
    }
  }
  return text;
}

void add_query(std::string& target, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  target += target.find('?') == std::string::npos ? '?' : '&';
  target += name;
  target += '=';
  target += query_text(value);
}

}  // namespace holdfast::client
