#include "client/pass_on.h"

#include "client/core.h"

namespace holdfast::client {

Task<Result<net::ClientStream>> pass_on(const Client& client, PassedOn request) {
  PreparedRequest sent;
  sent.retry_safe = request.method == "GET";
  sent.method = std::move(request.method);
  sent.target = std::move(request.target);
  sent.accept = std::move(request.accept);
  sent.content_type = std::move(request.content_type);
  sent.body = std::move(request.body);
  sent.streaming = true;
  Result<Answer> answer = co_await Core::send(client.core(), std::move(sent));
  if (!answer) co_return answer.take_error();
  co_return std::move(*answer->stream);
}

}  // namespace holdfast::client
