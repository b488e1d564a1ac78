#include "console/console.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mutex>

#include "base/strings.h"
#include "console/forward.h"
#include "console/page.h"

namespace holdfast::console {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Answer {
  int status = 0;
  std::string head, body;
  // The value of a header, whose name is in lower case; empty if absent.
  std::string header(const std::string& name) const {
    const size_t at = to_lower(head).find("\r\n" + name + ": ");
    if (at == std::string::npos) return "";
    const size_t begin = at + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

// Sends exactly these headers and reads until the server closes.
Answer send_raw(uint16_t port, const std::string& method, const std::string& target, const Headers& headers,
                const std::string& body = "") {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  std::string text = method + " " + target + " HTTP/1.1\r\nConnection: close\r\n";
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  if (!body.empty() || method != "GET") text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  text += "\r\n" + body;
  EXPECT_EQ(send(fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  std::string received;
  char piece[4096];
  for (ssize_t got = 0; (got = read(fd, piece, sizeof piece)) > 0;) received.append(piece, static_cast<size_t>(got));
  close(fd);
  Answer answer;
  const size_t end = received.find("\r\n\r\n");
  if (end == std::string::npos || received.size() < 12) return answer;
  answer.status = std::atoi(received.c_str() + 9);
  answer.head = received.substr(0, end + 2);
  answer.body = received.substr(end + 4);
  return answer;
}

// A console in front of an API server that records what reaches it.
class ConsoleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    upstream_ = std::make_unique<net::Server>(
        upstream_loops_, net::ServerOptions{},
        [this](net::Request& request, net::Response& response) { return api_server(request, response); });
    ASSERT_TRUE(upstream_->start());
    client::Config config;
    config.server = "http://127.0.0.1:" + std::to_string(upstream_->port()) + "/base";
    config.token = "secret-of-the-kubeconfig";
    client::Options client_options;
    client_options.retry.max_attempts = 1;
    Result<client::Client> connected = client::Client::connect(loops_.at(0), config, client_options);
    ASSERT_TRUE(connected) << connected.error().message;
    client_.emplace(std::move(*connected));
    Options options;
    options.server_url = config.server;
    options.tools.emplace("shout", [](std::string_view body) -> Result<std::string> {
      if (body.empty()) return bad_request("nothing to <b>shout</b>");
      return "\"" + std::string(body) + "!\"";
    });
    console_ = std::make_unique<Console>(loops_, *client_, std::move(options));
    ASSERT_TRUE(console_->start());
    const std::string url = console_->url();
    host_ = "127.0.0.1:" + std::to_string(console_->port());
    origin_ = "http://" + host_;
    ASSERT_THAT(url, StartsWith(origin_ + "/"));
    prefix_ = url.substr(origin_.size(), url.find('#') - origin_.size());
    token_ = url.substr(url.find("#token=") + 7);
  }

  Task<void> api_server(net::Request& request, net::Response& response) {
    Result<std::string> body = co_await request.read_body(1 << 20);
    {
      const std::lock_guard lock(mutex_);
      std::string line = std::string(request.method) + " " + std::string(request.target);
      for (const net::Header& header : request.headers.items()) {
        line += "\n" + std::string(header.name) + ": " + std::string(header.value);
      }
      reached_.push_back(line + "\n\n" + (body ? *body : ""));
    }
    response.add_header("content-type", "application/json");
    response.add_header("set-cookie", "from=the-api-server");
    response.add_header("access-control-allow-origin", "*");
    if (request.path == "/base/api/v1/namespaces/a/pods") {
      (void)response.start(200);
      (void)co_await response.write(net::Bytes(std::string("{\"type\":\"ADDED\"}\n")));
      (void)co_await response.write(net::Bytes(std::string("{\"type\":\"DELETED\"}\n")));
      response.end();
      co_return;
    }
    const bool forbidden = request.path == "/base/api/v1/nodes";
    (void)response.send(
        forbidden ? 403 : 200,
        net::Body(std::string(forbidden ? R"({"kind":"Status","status":"Failure","message":"no <script>"})"
                                        : R"({"kind":"Any"})")));
  }

  std::vector<std::string> reached() {
    const std::lock_guard lock(mutex_);
    return reached_;
  }

  // The headers of a fetch() by the page.
  Headers own(const Headers& more = {}) const {
    Headers headers = {
        {"Host", host_}, {"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Mode", "cors"}, {"Sec-Fetch-Dest", "empty"}};
    if (!cookie_.empty()) headers.emplace_back("Cookie", cookie_);
    headers.insert(headers.end(), more.begin(), more.end());
    return headers;
  }
  static Headers with(Headers headers, const std::string& name, const std::string& value) {
    std::erase_if(headers, [&](const auto& header) { return header.first == name; });
    if (!value.empty()) headers.emplace_back(name, value);
    return headers;
  }
  Answer send(const std::string& method, const std::string& rest, const Headers& headers,
              const std::string& body = "") {
    return send_raw(console_->port(), method, prefix_ + rest, headers, body);
  }
  void sign_in() {
    const Answer answer = send("POST", "session", own({{"Origin", origin_}}), token_);
    ASSERT_EQ(answer.status, 200) << answer.body;
    const std::string set = answer.header("set-cookie");
    EXPECT_THAT(set, HasSubstr("; HttpOnly"));
    EXPECT_THAT(set, HasSubstr("; SameSite=Strict"));
    EXPECT_THAT(set, HasSubstr("; Path=" + prefix_));
    cookie_ = set.substr(0, set.find(';'));
  }

  net::Loops upstream_loops_{1}, loops_{1};
  std::mutex mutex_;
  std::vector<std::string> reached_;
  std::unique_ptr<net::Server> upstream_;
  std::optional<client::Client> client_;
  std::unique_ptr<Console> console_;
  std::string host_, origin_, prefix_, token_, cookie_;
};

TEST_F(ConsoleTest, ThePageIsServedWithAPolicyThatAllowsNoOtherCode) {
  const Answer page = send("GET", "", {{"Host", host_}, {"Sec-Fetch-Site", "none"}, {"Sec-Fetch-Mode", "navigate"}});
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, HasSubstr("<title>Holdfast console</title>"));
  const std::string policy = page.header("content-security-policy");
  EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(policy, HasSubstr("require-trusted-types-for 'script'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  EXPECT_THAT(policy, Not(HasSubstr("http")));
  EXPECT_EQ(page.header("x-content-type-options"), "nosniff");
  EXPECT_EQ(page.header("referrer-policy"), "no-referrer");
  EXPECT_EQ(page.header("cross-origin-resource-policy"), "same-origin");
}

TEST_F(ConsoleTest, NothingIsServedToAnotherHost) {
  for (const char* host :
       {"attacker.example", "attacker.example:80", "localhost", "127.0.0.1", "127.0.0.1:1", "[::1]:80", ""}) {
    for (const std::string& path :
         {std::string("/"), prefix_, prefix_ + "main.js", prefix_ + "about", prefix_ + "api/api"}) {
      const Answer answer = send_raw(console_->port(), "GET", path, with(own(), "Host", host));
      EXPECT_TRUE(answer.status == 421 || answer.status == 400) << host << " " << path << " " << answer.status;
      EXPECT_THAT(answer.body, Not(HasSubstr(prefix_)));
    }
  }
  EXPECT_THAT(reached(), IsEmpty());
}

TEST_F(ConsoleTest, AnAbsoluteTargetDoesNotReplaceTheHost) {
  sign_in();
  const Answer answer = send_raw(console_->port(), "GET", "http://attacker.example" + prefix_ + "about", own());
  EXPECT_NE(answer.status, 200);
}

TEST_F(ConsoleTest, TheTokenIsValidOnce) {
  sign_in();
  const Answer again = send("POST", "session", with(own({{"Origin", origin_}}), "Cookie", ""), token_);
  EXPECT_EQ(again.status, 401);
  EXPECT_EQ(again.header("set-cookie"), "");
}

TEST_F(ConsoleTest, AWrongTokenSetsNoCookieAndLeavesTheRightOneValid) {
  for (const std::string& wrong : {std::string(), std::string(token_.size(), '0'), token_ + "0", token_.substr(1)}) {
    const Answer answer = send("POST", "session", own({{"Origin", origin_}}), wrong);
    EXPECT_EQ(answer.status, 401);
    EXPECT_EQ(answer.header("set-cookie"), "");
  }
  sign_in();
}

TEST_F(ConsoleTest, TheTokenIsNotTakenFromOtherSitesNorFromAGet) {
  EXPECT_EQ(send("POST", "session", own({{"Origin", "http://attacker.example"}}), token_).status, 403);
  EXPECT_EQ(send("POST", "session", own(), token_).status, 403);
  EXPECT_EQ(send("GET", "session?token=" + token_, own({{"Origin", origin_}})).status, 405);
  EXPECT_EQ(send("GET", "?token=" + token_, own()).header("set-cookie"), "");
  sign_in();
}

TEST_F(ConsoleTest, DataNeedsTheCookieOfThisStart) {
  EXPECT_EQ(send("GET", "about", own()).status, 401);
  sign_in();
  EXPECT_EQ(send("GET", "about", own()).status, 200);
  EXPECT_EQ(send("GET", "api/api/v1/nodes", own()).status, 403);
  const std::string good = cookie_;
  for (const std::string& wrong :
       {good.substr(0, good.size() - 1), good + "0", "other" + good, std::string("holdfast-console=x")}) {
    cookie_ = wrong;
    EXPECT_EQ(send("GET", "about", own()).status, 401) << wrong;
  }
  cookie_ = "a=b; " + good + "; c=d";
  EXPECT_EQ(send("GET", "about", own()).status, 200);
}

struct Attack {
  const char* name;
  std::string method, header, value;
};

TEST_F(ConsoleTest, OtherSitesGetNeitherDataNorEffects) {
  sign_in();
  const Attack attacks[] = {
      {"fetch from another site", "GET", "Sec-Fetch-Site", "cross-site"},
      {"fetch from another port of this host", "GET", "Sec-Fetch-Site", "same-site"},
      {"opened in a window", "GET", "Sec-Fetch-Site", "none"},
      {"no Fetch Metadata", "GET", "Sec-Fetch-Site", ""},
      {"embedded as an image", "GET", "Sec-Fetch-Dest", "image"},
      {"embedded as a script", "GET", "Sec-Fetch-Dest", "script"},
      {"opened as a document", "GET", "Sec-Fetch-Dest", "document"},
      {"in a frame", "GET", "Sec-Fetch-Dest", "iframe"},
      {"no destination", "GET", "Sec-Fetch-Dest", ""},
      {"a WebSocket", "GET", "Sec-Fetch-Dest", "websocket"},
      {"another origin", "GET", "Origin", "http://attacker.example"},
      {"a form of another site", "POST", "Sec-Fetch-Site", "cross-site"},
      {"a form of another port", "POST", "Sec-Fetch-Site", "same-site"},
      {"a post of another origin", "POST", "Origin", "http://127.0.0.1:1"},
      {"a post of a sandboxed frame", "POST", "Origin", "null"},
      {"a post without an origin", "POST", "Origin", ""},
      {"a post without Fetch Metadata", "POST", "Sec-Fetch-Site", ""},
      {"an apply of another origin", "PATCH", "Origin", "https://" + host_},
      {"an apply without an origin", "PATCH", "Origin", ""},
      {"an apply without the cookie", "PATCH", "Cookie", ""},
  };
  for (const Attack& attack : attacks) {
    SCOPED_TRACE(attack.name);
    Headers headers = own();
    if (attack.method != "GET") headers.emplace_back("Origin", origin_);
    if (attack.method == "PATCH") headers.emplace_back("Content-Type", "application/apply-patch+yaml");
    headers = with(headers, attack.header, attack.value);
    const std::string path = attack.method == "POST" ? "tools/shout" : "api/api/v1/namespaces/a/configmaps/b";
    const Answer answer = send(attack.method, path, headers, attack.method == "GET" ? "" : "{}");
    EXPECT_TRUE(answer.status == 403 || answer.status == 401) << answer.status;
    EXPECT_EQ(answer.header("access-control-allow-origin"), "");
  }
  EXPECT_THAT(reached(), IsEmpty());
}

TEST_F(ConsoleTest, RepeatedHeadersDoNotHideOneAnother) {
  sign_in();
  EXPECT_EQ(send("GET", "about", own({{"Sec-Fetch-Site", "cross-site"}})).status, 400);
  EXPECT_EQ(send("POST", "tools/shout", own({{"Origin", origin_}, {"Origin", "http://attacker.example"}}), "a").status,
            400);
  EXPECT_NE(send("GET", "about", own({{"Host", "attacker.example"}})).status, 200);
}

TEST_F(ConsoleTest, PageFilesCannotBeEmbeddedByOtherSites) {
  for (const char* dest : {"script", "iframe", "style", "image"}) {
    EXPECT_EQ(send("GET", "main.js",
                   {{"Host", host_},
                    {"Sec-Fetch-Site", "cross-site"},
                    {"Sec-Fetch-Mode", "no-cors"},
                    {"Sec-Fetch-Dest", dest}})
                  .status,
              403);
  }
  // A link may open it.
  EXPECT_EQ(send("GET", "",
                 {{"Host", host_},
                  {"Sec-Fetch-Site", "cross-site"},
                  {"Sec-Fetch-Mode", "navigate"},
                  {"Sec-Fetch-Dest", "document"}})
                .status,
            200);
}

TEST_F(ConsoleTest, RequestsCarryTheCredentialsOfTheKubeconfigAndNothingOfTheBrowser) {
  sign_in();
  const Answer answer = send("GET", "api/api/v1/namespaces/a/pods?limit=5&continue=x%2Fy",
                             own({{"Authorization", "Bearer mine"},
                                  {"Impersonate-User", "root"},
                                  {"X-Remote-User", "root"},
                                  {"Accept", "application/json;as=Table"}}));
  EXPECT_EQ(answer.status, 200);
  ASSERT_EQ(reached().size(), 1);
  const std::string call = reached()[0];
  EXPECT_THAT(call, StartsWith("GET /base/api/v1/namespaces/a/pods?limit=5&continue=x%2Fy\n"));
  EXPECT_THAT(call, HasSubstr("authorization: Bearer secret-of-the-kubeconfig"));
  EXPECT_THAT(call, HasSubstr("accept: application/json;as=Table"));
  for (const char* leaked : {"Bearer mine", "impersonate", "x-remote", "cookie", "sec-fetch", "origin"}) {
    EXPECT_THAT(call, Not(HasSubstr(leaked)));
  }
}

TEST_F(ConsoleTest, ResponsesKeepStatusAndContentButNoHeadersThatAct) {
  sign_in();
  const Answer answer = send("GET", "api/api/v1/nodes", own());
  EXPECT_EQ(answer.status, 403);
  EXPECT_EQ(answer.header("content-type"), "application/json");
  EXPECT_THAT(answer.body, HasSubstr("no \\u003cscript\\u003e"));
  EXPECT_EQ(answer.header("set-cookie"), "");
  EXPECT_EQ(answer.header("access-control-allow-origin"), "");
  EXPECT_EQ(send("GET", "api/api/v1/pods", own()).header("set-cookie"), "");
  EXPECT_EQ(answer.header("x-content-type-options"), "nosniff");
  EXPECT_THAT(answer.header("content-security-policy"), HasSubstr("sandbox"));
  EXPECT_EQ(answer.header("cache-control"), "no-store");
}

TEST_F(ConsoleTest, AnApplyReachesTheServerWithItsBody) {
  sign_in();
  const Answer answer =
      send("PATCH", "api/api/v1/namespaces/a/configmaps/b?fieldManager=me",
           own({{"Origin", origin_}, {"Content-Type", "application/apply-patch+yaml"}}), "{\"data\":{}}");
  EXPECT_EQ(answer.status, 200);
  ASSERT_EQ(reached().size(), 1);
  EXPECT_THAT(reached()[0], StartsWith("PATCH /base/api/v1/namespaces/a/configmaps/b?fieldManager=me\n"));
  EXPECT_THAT(reached()[0], HasSubstr("\n\n{\"data\":{}}"));
}

TEST_F(ConsoleTest, AnUnreachableServerIsAnErrorThatSaysSo) {
  sign_in();
  upstream_->stop(net::Millis(0));
  const Answer answer = send("GET", "api/api/v1/pods", own());
  EXPECT_EQ(answer.status, 502);
  EXPECT_THAT(answer.body, HasSubstr("ConsoleUnreachable"));
}

TEST_F(ConsoleTest, ToolsRunOnPostOnlyAndTheirErrorsAreJson) {
  sign_in();
  EXPECT_EQ(send("POST", "tools/shout", own({{"Origin", origin_}}), "hey").body, "\"hey!\"");
  const Answer failed = send("POST", "tools/shout", own({{"Origin", origin_}}));
  EXPECT_EQ(failed.status, 400);
  EXPECT_EQ(failed.header("content-type"), "application/json");
  EXPECT_THAT(failed.body, Not(HasSubstr("<b>")));
  EXPECT_EQ(send("GET", "tools/shout", own()).status, 405);
  EXPECT_EQ(send("POST", "tools/other", own({{"Origin", origin_}})).status, 404);
}

TEST(Calls, OnlyReadsAppliesAndSelfReviewsPass) {
  for (const char* path : {"/version", "/api", "/apis", "/api/v1", "/apis/apps/v1", "/openapi/v3/apis/apps/v1",
                           "/api/v1/pods", "/api/v1/namespaces/a", "/api/v1/namespaces/a/pods/b", "/api/v1/nodes/n",
                           "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode"}) {
    EXPECT_FALSE(check_call("GET", path, "")) << path;
  }
  for (const char* path :
       {"/api/v1/namespaces/a/pods/b/exec", "/api/v1/namespaces/a/pods/b/log", "/api/v1/nodes/n/proxy",
        "/api/v1/nodes/n/proxy/run", "/api/v1/namespaces/a/services/s/proxy/x", "/metrics", "/", "/debug/pprof",
        "/api/v1/namespaces/a/pods/b%2Fexec", "/api/v1/pods/../nodes", "/api/v1/pods/%2e%2e/nodes", "//api",
        "/api/v1/pods/", "/api/v1/pods/%zz", "/healthz", "/logs/x", "/openapi/v2", "api/v1/pods"}) {
    EXPECT_TRUE(check_call("GET", path, "")) << path;
  }
  const char* const kApply = "application/apply-patch+yaml";
  EXPECT_FALSE(check_call("PATCH", "/api/v1/namespaces/a/pods/b", kApply));
  EXPECT_TRUE(check_call("PATCH", "/api/v1/namespaces/a/pods/b/status", kApply));
  EXPECT_TRUE(check_call("PATCH", "/api/v1/namespaces/a/pods", kApply));
  EXPECT_TRUE(check_call("PATCH", "/api/v1/namespaces/a/pods/b", "application/merge-patch+json"));
  EXPECT_FALSE(check_call("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "application/json"));
  EXPECT_TRUE(check_call("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "text/plain"));
  EXPECT_TRUE(check_call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", "application/json"));
  EXPECT_TRUE(check_call("POST", "/api/v1/namespaces/a/pods", "application/json"));
  for (const char* method : {"PUT", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE"}) {
    EXPECT_TRUE(check_call(method, "/api/v1/namespaces/a/pods/b", kApply)) << method;
  }
}

TEST(Page, IsSmallAndNamesOnlyFilesThatExist) {
  const PageFile* const page = find_page_file("");
  ASSERT_NE(page, nullptr);
  const Result<std::string> html = net::gunzip(page->gzip, 1 << 20);
  ASSERT_TRUE(html);
  EXPECT_THAT(*html, Not(HasSubstr("<style")));
  EXPECT_THAT(*html, Not(HasSubstr(" style=")));
  EXPECT_THAT(*html, Not(HasSubstr("http")));
  size_t bytes = page->gzip.size();
  for (const char* name : {"main.js", "style.css", "icon.svg", "dom.js", "api.js", "owners.js", "managers.js",
                           "windowed.js", "yaml.js", "history.js", "objects.js", "object.js", "apply.js", "whole.js"}) {
    const PageFile* const file = find_page_file(name);
    ASSERT_NE(file, nullptr) << name;
    bytes += file->gzip.size();
  }
  EXPECT_LT(bytes, 300 << 10);
  EXPECT_EQ(find_page_file("../console.h"), nullptr);
  EXPECT_EQ(find_page_file("pack.py"), nullptr);
}

}  // namespace
}  // namespace holdfast::console
