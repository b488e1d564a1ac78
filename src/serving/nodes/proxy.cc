// The proxy of nodes, pods and services: any request, and the responses of servers that do not know that they are
// proxied (UpgradeAwareHandler of apimachinery/pkg/util/proxy).
#include <algorithm>

#include "base/api_error.h"
#include "base/strings.h"
#include "base/url.h"
#include "forward/forward.h"
#include "nodes/html_links.h"
#include "nodes/nodes.h"
#include "nodes/opening.h"

namespace holdfast::nodes {
namespace {

// The path of the request up to and including "/proxy", encoded.
std::string own_path(const call::Call& call) {
  std::string_view path = call.request.path;
  if (call.info.has_rest) path.remove_suffix(call.info.rest.size());
  while (path.ends_with('/')) path.remove_suffix(1);
  return escape_path(path);
}

std::string host_of(const Destination& to) {
  const bool usual = to.port == (to.tls ? 443 : 80);
  return usual ? with_brackets(to.host) : host_port(to.host, to.port);
}

// A browser that asks for the root must have the slash in its address, or relative links would lead elsewhere.
void redirect_to_root(call::Call& call) {
  std::string location = own_path(call) + "/";
  if (!call.request.query.empty()) location.append("?").append(call.request.query);
  call.response.set_header("location", location);
  (void)call.response.send(301);
}

bool is_cors_header(std::string_view name) {
  return name == "access-control-allow-credentials" || name == "access-control-allow-headers" ||
         name == "access-control-allow-methods" || name == "access-control-allow-origin";
}

bool is_html(const net::ClientResponse& head) {
  const std::string_view type = head.header("content-type");
  return trim(type.substr(0, type.find(';'))) == "text/html" && head.header("content-encoding").empty();
}

Task<void> send_html(net::Response& response, net::ClientStream& stream, LinkRewriter rewriter) {
  HtmlLinks links(std::move(rewriter));
  while (true) {
    net::CallResult<std::string> piece = co_await stream.read_some();
    if (!piece) co_return response.abort();
    std::string page = piece->empty() ? links.finish() : links.add(*piece);
    Result<Unit> written = co_await response.write(net::Bytes(std::move(page)));
    if (!written) co_return;
    if (piece->empty()) break;
  }
  response.end();
}

Task<void> pass_response(call::Call& call, net::ClientStream& stream, LinkRewriter rewriter) {
  net::ClientResponse head = stream.head();
  std::erase_if(head.headers, [](const auto& header) { return is_cors_header(header.first); });
  bool redirects = false;
  for (auto& [name, value] : head.headers) {
    if (name != "location") continue;
    redirects = true;
    value = rewriter.rewrite(value);
  }
  const bool rewrites = !redirects && is_html(head);
  forward::copy_head(head, call.response);
  if (!start_stream(call, head.status, stream)) co_return;
  if (rewrites) {
    co_await send_html(call.response, stream, std::move(rewriter));
  } else {
    co_await forward::send_rest(call.response, stream);
  }
}

}  // namespace

Task<void> proxy(call::Call& call, const Nodes& nodes, Destination to, std::string path) {
  const std::string_view upgrade = forward::upgrade_of(call.request);
  const bool is_read = call.request.method == "GET" || call.request.method == "HEAD";
  if (upgrade.empty() && path.empty() && is_read) co_return redirect_to_root(call);

  Reservation memory(proxied_bodies());
  net::ClientRequest request;
  if (upgrade.empty()) {
    Result<std::string> body = co_await forward::read_body(call.request, memory);
    if (!body) co_return respond_error(call, body.error());
    request.body = std::move(*body);
  }
  request.method = call.request.method;
  request.upgrade = upgrade;
  request.target = escape_path(path.empty() ? "/" : clean_path(path));
  if (!call.request.query.empty()) request.target.append("?").append(call.request.query);
  request.headers = forward::headers_to_forward(call.request);
  const bool wants_html = call.request.headers.get("accept").find("text/html") != std::string_view::npos;
  std::erase_if(request.headers, [&](const auto& header) {
    // Pages must arrive in the clear for their links to be rewritten.
    return header.first == "expect" || (wants_html && header.first == "accept-encoding");
  });
  request.headers.emplace_back("Host", call.request.authority);
  append_forwarded_for(request.headers, call.request);
  if (upgrade.empty()) {
    const std::string_view escaped = std::string_view(request.target).substr(0, request.target.find('?'));
    request.headers.emplace_back("X-Forwarded-Uri", own_path(call).append(escaped));
  }
  request.cancellation = cancelled_with(call);
  net::CallResult<net::ClientStream> opened = co_await nodes.open(call.request.loop(), to, std::move(request));
  if (!opened && !upgrade.empty()) co_return respond_error(call, upgrade_error(opened.error()));
  if (!opened) {
    co_return respond_error(
        call, Error{Reason::ServiceUnavailable, "error trying to reach service: " + opened.error().message});
  }
  net::ClientStream stream = std::move(*opened);
  const int status = stream.head().status;
  if (upgrade.empty()) {
    LinkRewriter rewriter{own_path(call), host_of(to), std::string(call.request.authority)};
    co_return co_await pass_response(call, stream, std::move(rewriter));
  }
  if (status == 101) co_return co_await pass_upgrade(call, stream);
  if (status < 400) co_return respond_error(call, not_upgraded(status));
  co_await pass_refusal(call, stream);
}

}  // namespace holdfast::nodes
