#include "net/net.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace holdfast::net {
namespace {

using namespace std::chrono_literals;

Task<void> hello(Request& request, Response& response) {
  response.add_header("content-type", "text/plain");
  (void)response.send(200, Body("hello " + std::string(request.path) + "?" + std::string(request.query)));
  co_return;
}

// Sends `text` to the server and returns all it answers until it closes.
std::string exchange(uint16_t port, std::string_view text) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  std::string answer;
  char buffer[4096];
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;) answer.append(buffer, n);
  close(fd);
  return answer;
}

TEST(Net, AnswersAnHttp1Request) {
  Loops loops(2);
  Server server(loops, {}, hello);
  ASSERT_TRUE(server.start());
  const std::string answer = exchange(server.port(), "GET /a%20b?x=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n")) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\nhello /a b?x=1")) << answer;
  server.stop(1s);
}

}  // namespace
}  // namespace holdfast::net
