// libraries_bench http|log|metrics [count]: compares our own code with the library that could replace it, in one
// process under the same load. See docs/decisions/0004-own-event-loop-log-and-metrics.md.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "base/log.h"
#include "base/metrics.h"
#include "base/process.h"
#include "net/net.h"

namespace holdfast::bench {
namespace {

using Clock = std::chrono::steady_clock;

double thread_cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// --- HTTP/1.1: one event loop, keep-alive GETs from eight blocking clients ---

const std::string kBody(1024, 'x');

// Sends the requests of one client sequentially. Returns the CPU seconds used by the client.
double request_loop(uint16_t port, size_t count) {
  const double before = thread_cpu_seconds();
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) std::abort();
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  constexpr std::string_view kRequest =
      "GET /api/v1/namespaces/default/configmaps/one HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n"
      "User-Agent: bench\r\n\r\n";
  std::string received;
  char buffer[8192];
  for (size_t i = 0; i < count; ++i) {
    if (write(fd, kRequest.data(), kRequest.size()) != static_cast<ssize_t>(kRequest.size())) std::abort();
    received.clear();
    size_t head = std::string::npos;
    while (head == std::string::npos || received.size() < head + 4 + kBody.size()) {
      const ssize_t n = read(fd, buffer, sizeof buffer);
      if (n <= 0) std::abort();
      received.append(buffer, static_cast<size_t>(n));
      if (head == std::string::npos) head = received.find("\r\n\r\n");
    }
  }
  close(fd);
  return thread_cpu_seconds() - before;
}

void measure_http(const char* name, uint16_t port, size_t count) {
  constexpr size_t kClients = 8;
  request_loop(port, count / 100);
  std::vector<double> client_cpu(kClients);
  std::vector<std::thread> clients;
  const double cpu = cpu_seconds();
  const auto start = Clock::now();
  for (size_t i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] { client_cpu[i] = request_loop(port, count / kClients); });
  }
  for (std::thread& client : clients) client.join();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  double server_cpu = cpu_seconds() - cpu;
  for (const double used : client_cpu) server_cpu -= used;
  std::printf("%-24s %10.0f requests/s %8.2f us CPU per request\n", name, static_cast<double>(count) / seconds,
              server_cpu * 1e6 / static_cast<double>(count));
}

void own_http(size_t count) {
  net::Loops loops(1);
  net::Server server(loops, {}, [](net::Request&, net::Response& response) -> Task<void> {
    response.add_header("content-type", "application/json");
    (void)response.send(200, net::Body(std::string(kBody)));
    co_return;
  });
  if (Result<Unit> started = server.start(); !started) std::abort();
  measure_http("net::Server", server.port(), count);
  server.stop(net::Millis(0));
}

boost::asio::awaitable<void> serve_connection(boost::asio::ip::tcp::socket socket) {
  namespace http = boost::beast::http;
  boost::beast::flat_buffer buffer;
  try {
    while (true) {
      http::request<http::string_body> request;
      co_await http::async_read(socket, buffer, request, boost::asio::use_awaitable);
      http::response<http::string_body> response(http::status::ok, request.version());
      response.set(http::field::content_type, "application/json");
      response.keep_alive(request.keep_alive());
      response.body() = kBody;
      response.prepare_payload();
      co_await http::async_write(socket, response, boost::asio::use_awaitable);
    }
  } catch (const boost::system::system_error&) {  // The client has closed the connection.
  }
}

boost::asio::awaitable<void> accept_connections(boost::asio::ip::tcp::acceptor& acceptor) {
  while (true) {
    boost::asio::ip::tcp::socket socket = co_await acceptor.async_accept(boost::asio::use_awaitable);
    socket.set_option(boost::asio::ip::tcp::no_delay(true));
    boost::asio::co_spawn(acceptor.get_executor(), serve_connection(std::move(socket)), boost::asio::detached);
  }
}

void beast_http(size_t count) {
  boost::asio::io_context context(1);
  boost::asio::ip::tcp::acceptor acceptor(context, {boost::asio::ip::make_address("127.0.0.1"), 0});
  boost::asio::co_spawn(context, accept_connections(acceptor), boost::asio::detached);
  std::thread loop([&] { context.run(); });
  measure_http("Boost.Asio and Beast", acceptor.local_endpoint().port(), count);
  context.stop();
  loop.join();
}

// --- Log lines and metrics: nanoseconds per operation ---

void measure(const char* name, size_t count, const std::function<void(size_t)>& work) {
  work(0);
  const double cpu = cpu_seconds();
  for (size_t i = 0; i < count; ++i) work(i);
  std::printf("%-44s %8.0f ns CPU\n", name, (cpu_seconds() - cpu) * 1e9 / static_cast<double>(count));
}

void log_lines(size_t count) {
  const int null = open("/dev/null", O_WRONLY);
  dup2(null, STDERR_FILENO);
  measure("log::info, message and 4 fields", count, [](size_t i) {
    log::info("request",
              {{"verb", "GET"}, {"uri", "/api/v1/namespaces/default/configmaps/one"}, {"code", 200}, {"us", i}});
  });
  auto logger = spdlog::stderr_logger_mt("bench");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v");
  measure("spdlog, the same line", count, [&](size_t i) {
    logger->info("request verb={} uri={} code={} us={}", "GET", "/api/v1/namespaces/default/configmaps/one", 200, i);
  });
  const bool before = log::verbose(4);
  measure("log::verbose, disabled", count * 10, [&](size_t) {
    if (log::verbose(4) != before) std::abort();
  });
}

void metrics(size_t count) {
  static constexpr double kBounds[] = {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2, 3, 5, 10, 30, 60};
  MetricRegistry registry;
  auto& total = registry.counters("requests_total", "Requests.", {"verb", "resource", "code"});
  auto& durations = registry.histograms("request_seconds", "Durations.", kBounds, {"verb", "resource"});
  measure("Family::with and Counter::add", count, [&](size_t) { total.with({"GET", "configmaps", "200"}).add(); });
  Counter& counter = total.with({"GET", "configmaps", "200"});
  measure("Counter::add", count, [&](size_t) { counter.add(); });
  Histogram& histogram = durations.with({"GET", "configmaps"});
  measure("Histogram::observe", count, [&](size_t i) { histogram.observe(static_cast<double>(i % 100) / 50); });

  prometheus::Registry other;
  auto& other_total = prometheus::BuildCounter().Name("requests_total").Help("Requests.").Register(other);
  auto& other_durations = prometheus::BuildHistogram().Name("request_seconds").Help("Durations.").Register(other);
  measure("prometheus-cpp, Family::Add and Increment", count / 10 + 1,
          [&](size_t) { other_total.Add({{"verb", "GET"}, {"resource", "configmaps"}, {"code", "200"}}).Increment(); });
  prometheus::Counter& other_counter = other_total.Add({{"verb", "GET"}, {"resource", "configmaps"}, {"code", "200"}});
  measure("prometheus-cpp, Counter::Increment", count, [&](size_t) { other_counter.Increment(); });
  prometheus::Histogram& other_histogram =
      other_durations.Add({{"verb", "GET"}, {"resource", "configmaps"}},
                          prometheus::Histogram::BucketBoundaries(std::begin(kBounds), std::end(kBounds)));
  measure("prometheus-cpp, Histogram::Observe", count,
          [&](size_t i) { other_histogram.Observe(static_cast<double>(i % 100) / 50); });

  for (int i = 0; i < 500; ++i) {
    const std::string resource = "kind" + std::to_string(i);
    total.with({"GET", resource, "200"}).add();
    durations.with({"GET", resource}).observe(0.1);
    other_total.Add({{"verb", "GET"}, {"resource", resource}, {"code", "200"}}).Increment();
    other_durations
        .Add({{"verb", "GET"}, {"resource", resource}},
             prometheus::Histogram::BucketBoundaries(std::begin(kBounds), std::end(kBounds)))
        .Observe(0.1);
  }
  measure("render 500 counters and histograms", 50, [&](size_t) {
    if (registry.render().empty()) std::abort();
  });
  const prometheus::TextSerializer serializer;
  measure("prometheus-cpp, serialize the same", 50, [&](size_t) {
    if (serializer.Serialize(other.Collect()).empty()) std::abort();
  });
}

}  // namespace
}  // namespace holdfast::bench

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const size_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 200'000;
  if (what == "http") {
    holdfast::bench::own_http(count);
    holdfast::bench::beast_http(count);
  } else if (what == "log") {
    holdfast::bench::log_lines(count);
  } else if (what == "metrics") {
    holdfast::bench::metrics(count);
  } else {
    std::fprintf(stderr, "usage: libraries_bench http|log|metrics [count]\n");
    return 2;
  }
  return 0;
}
