// Calls a handler without a connection: a normal Stream, and an owner that collects the response.
#include "base/strings.h"
#include "net/stream.h"

namespace holdfast::net {

namespace {

class LocalCall final : public detail::StreamOwner {
 public:
  LocalCall(EventLoop& loop, const ClientRequest& request) : stream_(loop, *this, options()) {
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
        call.stream_.start_handler(handler, [&call = call](std::exception_ptr failure) { call.failure_ = failure; });
      }
      void await_resume() const {
        if (call.failure_) std::rethrow_exception(call.failure_);
      }
    };
    return Awaiter{*this, handler};
  }

  bool well_formed() const { return well_formed_; }
  ClientResponse take() { return std::move(response_); }

  void head_ready(detail::Stream&) override {
    response_.status = stream_.status;
    for (const Header& header : stream_.headers) response_.headers.emplace_back(header.name, header.value);
  }
  void output_ready(detail::Stream&) override {
    for (std::string_view part; !(part = stream_.next_output()).empty();) {
      response_.body += part;
      stream_.output_taken(part.size());
    }
  }
  void input_taken(detail::Stream&, size_t) override {}
  void input_wanted(detail::Stream&) override {}
  void abort(detail::Stream&) override { response_.status = 500; }
  void close_after(detail::Stream&) override {}
  void trust(detail::Stream&) override {}
  void handler_ended(detail::Stream&) override { stream_.loop.state().resume_soon(caller_); }

 private:
  static const ServerOptions& options() {
    static const ServerOptions kOptions;
    return kOptions;
  }

  detail::Stream stream_;
  ClientResponse response_;
  std::coroutine_handle<> caller_;
  std::exception_ptr failure_;
  bool well_formed_ = false;
};

}  // namespace

Task<Result<ClientResponse>> call_handler(EventLoop& loop, Handler handler, ClientRequest request) {
  if (!loop.in_thread()) co_await resume_on(loop);
  LocalCall call(loop, request);
  if (!call.well_formed()) co_return bad_request("\"" + request.target + "\" is not a request target");
  co_await call.run(handler);
  co_return call.take();
}

}  // namespace holdfast::net
