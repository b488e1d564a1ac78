// Calls a handler without a connection: a normal Stream, and an owner that collects the response.
#include "net/local.h"

#include "base/strings.h"
#include "net/stream.h"

namespace holdfast::net {

namespace {

class LocalCall final : public detail::StreamOwner {
 public:
  LocalCall(EventLoop& loop, const ClientRequest& request, size_t body_limit_bytes)
      : timeout_(request.timeout),
        body_limit_bytes_(body_limit_bytes),
        stream_(loop, *this, options()),
        deadline_(loop),
        overflow_(loop),
        cancelled_(request.cancellation, [this] { end({Reason::ServiceUnavailable, "the request was cancelled"}); }) {
    static const Peer kPeer{.connection_id = 0, .address = "@", .tls = false, .certificate = std::nullopt, .memo = {}};
    Request& r = stream_.request;
    r.peer = &kPeer;
    r.method = stream_.arena.copy(request.method);
    well_formed_ = detail::parse_target(stream_, stream_.arena.copy(request.target));
    for (const auto& [name, value] : request.headers) {
      r.headers.add({stream_.arena.copy(to_lower(name)), stream_.arena.copy(value)});
    }
    stream_.input = request.body;
    stream_.content_length = request.body.size();
    stream_.input_ended = true;
  }

  // co_await call.run(handler)
  auto run(const Handler& handler) {
    struct Awaiter {
      LocalCall& call;
      const Handler& handler;
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<> h) {
        call.caller_ = h;
        if (call.timeout_.count() > 0) call.deadline_.start(call.timeout_, [&call = call] { call.time_out(); });
        call.stream_.start_handler(handler, [&call = call](std::exception_ptr failure) { call.failure_ = failure; });
      }
      void await_resume() const {
        if (call.failure_) std::rethrow_exception(call.failure_);
      }
    };
    return Awaiter{*this, handler};
  }

  bool well_formed() const { return well_formed_; }
  bool failed() const { return failed_.has_value(); }  // Cancelled before it began, or while it ran.
  Result<ClientResponse> take() {
    if (failed_) return std::move(*failed_);
    return std::move(response_);
  }

  void head_ready(detail::Stream&) override {
    response_.status = stream_.status;
    for (const Header& header : stream_.headers) response_.headers.emplace_back(header.name, header.value);
  }
  void output_ready(detail::Stream&) override {
    for (std::string_view part; !(part = stream_.next_output()).empty();) {
      if (!failed_ && part.size() > body_limit_bytes_ - response_.body.size()) {
        failed_ = Error{Reason::RequestEntityTooLarge,
                        "the response is larger than the limit of " + std::to_string(body_limit_bytes_) + " bytes"};
        response_.body = {};
        // Not at once: this may be called from within the stream.
        overflow_.start(Millis(0), [this] { stream_.lost(); });
      }
      if (!failed_) response_.body += part;
      stream_.output_taken(part.size());
    }
  }
  void input_taken(detail::Stream&, size_t) override {}
  void input_wanted(detail::Stream&) override {}
  void abort(detail::Stream&) override { response_.status = 500; }
  void close_after(detail::Stream&) override {}
  void trust(detail::Stream&) override {}
  void handler_ended(detail::Stream&) override {
    deadline_.cancel();
    stream_.loop.state().resume_soon(caller_);
  }

 private:
  // A response that is already complete stays valid.
  void end(Error why) {
    if (stream_.ended || failed_) return;
    failed_ = std::move(why);
    stream_.lost();
  }
  void time_out() { end({Reason::Timeout, "no complete response within " + std::to_string(timeout_.count()) + " ms"}); }

  static const ServerOptions& options() {
    static const ServerOptions kOptions;
    return kOptions;
  }

  const Millis timeout_;
  size_t body_limit_bytes_;
  std::optional<Error> failed_;
  detail::Stream stream_;
  Timer deadline_, overflow_;
  CancellationScope cancelled_;  // Uses the stream.
  ClientResponse response_;
  std::coroutine_handle<> caller_;
  std::exception_ptr failure_;
  bool well_formed_ = false;
};

}  // namespace

Task<Result<ClientResponse>> call_handler(EventLoop& loop, Handler handler, ClientRequest request) {
  return call_handler_within(loop, std::move(handler), std::move(request), SIZE_MAX);
}

Task<Result<ClientResponse>> call_handler_within(EventLoop& loop, Handler handler, ClientRequest request,
                                                 size_t body_limit_bytes) {
  if (!loop.in_thread()) co_await resume_on(loop);
  LocalCall call(loop, request, body_limit_bytes);
  if (!call.well_formed()) co_return bad_request("\"" + request.target + "\" is not a request target");
  if (!call.failed()) co_await call.run(handler);
  co_return call.take();
}

}  // namespace holdfast::net
