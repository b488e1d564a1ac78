// Responses: format negotiation, headers, errors.
#include "base/text.h"
#include "call/call.h"
#include "codec/codec.h"
#include "render/status.h"

namespace holdfast::call {
namespace {

const types::Type& status_type() {
  static const types::Type& type = *types::find_type("meta/v1.Status");
  return type;
}

void add_common_headers(net::Response& response, std::string_view content_type) {
  response.set_header("content-type", content_type);
  if (response.header("cache-control").empty()) response.set_header("cache-control", "no-cache, private");
}

void send_error_as(const request::Accepted& accepted, net::Response& response, const Error& error,
                   std::string_view reason = {}) {
  Arena arena;
  Result<std::string> body = render::encode_response(render::status_of(arena, error, reason), &status_type(),
                                                     accepted.format, accepted.pretty);
  request::Format format = accepted.format;
  if (!body) {
    // The text cannot be encoded as YAML: send the encoding failure as the Status instead.
    body = render::encode_response(render::status_of(arena, untyped(body.error().message)), &status_type(),
                                   request::Format::Json, false);
    format = request::Format::Json;
  }
  add_common_headers(response, media_type(format));
  if (error.retry_after_seconds > 0) response.set_header("retry-after", std::to_string(error.retry_after_seconds));
  (void)response.send(render::http_code(error), net::Body(std::move(*body)));
}

}  // namespace

request::NegotiationInput negotiation_input(const net::Request& request, const request::Query& query,
                                            request::AcceptRule rule) {
  request::NegotiationInput input;
  input.rule = rule;
  input.accept = request.headers.get("accept");
  input.user_agent = request.headers.get("user-agent");
  input.pretty = query.get("pretty");
  input.has_show_managed_fields = query.has("showManagedFields");
  input.show_managed_fields = query.get("showManagedFields");
  return input;
}

Result<Unit> negotiate_response(Call& call) {
  request::Offer offer;
  offer.protobuf_objects = !call.served->custom;
  offer.table = !call.served->resource->columns.empty() &&
                (call.subresource == nullptr || call.subresource->kind == "Scale" || call.subresource->kind.empty() ||
                 call.subresource->kind == call.served->resource->kind);
  offer.reads = call.info.verb == request::Verb::Get || call.info.verb == request::Verb::List ||
                call.info.verb == request::Verb::Watch;
  Result<request::Accepted> accepted =
      negotiate(negotiation_input(call.request, call.query, call.settings.accept_rule), offer, call.settings.gates);
  if (!accepted) return accepted.take_error();

  render::IncludeObject include = render::IncludeObject::Metadata;
  std::optional<Error> refusal;
  if (accepted->form == request::Form::Table) {
    const std::string_view text = call.query.get("includeObject");
    if (text == "None") {
      include = render::IncludeObject::None;
    } else if (text == "Object") {
      include = render::IncludeObject::Object;
    } else if (!text.empty() && text != "Metadata") {
      refusal = bad_request("Unable to convert to Table as requested: includeObject: Invalid value: " + go_quote(text) +
                            ": must be 'Metadata', 'Object', 'None', or empty");
    }
  }
  call.view = render::make_view(*call.served, *accepted, include, call.clock.now(), call.settings.gates);
  call.view.refusal = std::move(refusal);
  if (!call.view.drop.empty()) {
    call.warnings.add("this response is partial: fields were dropped as requested; do not write it back");
  }
  return Unit{};
}

const std::shared_ptr<net::Cancellation>& Call::outgoing() const {
  if (outgoing_ == nullptr) {
    outgoing_ = std::make_shared<net::Cancellation>();
    response.on_interrupt([outgoing = outgoing_](net::Interrupt why) {
      if (why == net::Interrupt::PeerGone) outgoing->cancel();
    });
  }
  return outgoing_;
}

Task<Result<std::string>> read_body(Call& call) {
  Result<std::string> body = co_await call.request.read_body(call.settings.max_body_bytes);
  if (!body && body.error().reason == Reason::RequestEntityTooLarge) {
    co_return Error{Reason::RequestEntityTooLarge,
                    "Request entity too large: limit is " + std::to_string(call.settings.max_body_bytes)};
  }
  if (body && body->size() >= kLongBytes) co_await leave_loop(call);
  co_return body;
}

Task<void> leave_loop(Call& call) {
  if (call.background == nullptr) co_return;
  call.off_loop_ = true;
  co_await resume_on(*call.background);
}

Task<void> return_to_loop(Call& call) {
  if (!call.request.loop().in_thread()) co_await resume_on(call.request.loop());
}

Task<void> finish(Call& call) {
  call.off_loop_ = false;
  co_await return_to_loop(call);
  if (call.answer_) std::exchange(call.answer_, nullptr)();
}

void respond(Call& call, int code, net::Body body, std::string_view content_type) {
  if (!call.request.loop().in_thread()) {
    call.answer_ = [&call, code, body = std::make_shared<net::Body>(std::move(body)),
                    type = std::string(content_type)] { respond(call, code, std::move(*body), type); };
    return;
  }
  for (const std::string& warning : call.warnings.headers()) call.response.add_header("warning", warning);
  add_common_headers(call.response, content_type);
  record_response(call, content_type, body);
  call.response.allow_gzip();
  (void)call.response.send(code, std::move(body));
}

void respond(Call& call, int code, std::string body) {
  respond(call, code, net::Body(std::move(body)), media_type(call.view.accepted.format));
}

void respond_error(Call& call, const Error& error) {
  if (!call.request.loop().in_thread()) {
    call.answer_ = [&call, error] { respond_error(call, error); };
    return;
  }
  record_error(call, error);
  for (const std::string& warning : call.warnings.headers()) call.response.add_header("warning", warning);
  const request::NegotiationInput input = negotiation_input(call.request, call.query, call.settings.accept_rule);
  send_error_as(negotiate_error(input, call.settings.gates), call.response, error,
                error.reason == Reason::Unknown ? std::string_view(call.reason) : std::string_view());
}

void respond_tree(Call& call, int code, const Value& tree, const types::Type& type) {
  Result<std::string> body = render_tree(call.view, call.arena, tree, type);
  if (!body) return respond_error(call, body.error());
  if (const std::optional<render::View> view = recorded_view(call)) {
    record_response(call, render_tree(*view, call.arena, tree, type));
  }
  respond(call, code, std::move(*body));
}

void respond_status(Call& call, int code, const Value& status) {
  const request::Accepted& accepted = call.view.accepted;
  Result<std::string> body = render::encode_response(status, &status_type(), accepted.format, accepted.pretty);
  if (!body) return respond_error(call, body.error());
  record_status(call, status);
  respond(call, code, std::move(*body));
}

std::string status_json(const Error& error) {
  Arena arena;
  return codec::encode_json(render::status_of(arena, error));
}

void send_error(const request::RequestInfo& info, const net::Request& request, net::Response& response,
                const Error& error, const Gates& gates, request::AcceptRule rule) {
  send_error_as(negotiate_error(negotiation_input(request, info.query(), rule), gates), response, error);
}

}  // namespace holdfast::call
