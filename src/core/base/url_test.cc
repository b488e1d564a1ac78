#include "base/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast {
namespace {

std::string problems_of(std::string_view url) {
  std::string all;
  for (const UrlProblem& problem : webhook_url_problems(url)) {
    all += (all.empty() ? "" : " | ") + (problem.unparsable ? "unparsable" : problem.part + ": " + problem.why);
  }
  return all;
}

struct UrlCase {
  const char* name;
  const char* url;
  const char* parts;  // scheme user authority host port path query
};

TEST(HttpUrl, IsSplitIntoParts) {
  const UrlCase cases[] = {
      {"explicit port", "https://a:6443", "https||a:6443|a|6443||"},
      {"default port 443", "https://a/", "https||a|a|443|/|"},
      {"default port 80", "http://a", "http||a|a|80||"},
      {"path and query", "https://a/x/y/?b=c/d?e", "https||a|a|443|/x/y/|?b=c/d?e"},
      {"query without a path", "https://a?b", "https||a|a|443||?b"},
      {"fragment is dropped", "https://a/x#y/z?", "https||a|a|443|/x|"},
      {"IPv6 address with a port", "https://[::1]:1", "https||[::1]:1|::1|1||"},
      {"IPv6 address without a port", "https://[::1]/", "https||[::1]|::1|443|/|"},
      {"user and password", "http://u%40x:p@w@proxy:3128", "http|u%40x:p@w|proxy:3128|proxy|3128||"},
      {"@ in the path is not a user", "https://a/b@c", "https||a|a|443|/b@c|"},
  };
  for (const UrlCase& c : cases) {
    const Result<HttpUrl> url = parse_http_url(c.url);
    ASSERT_TRUE(url) << c.name << ": " << url.error().message;
    EXPECT_EQ(std::string(url->tls ? "https" : "http") + "|" + url->user + "|" + url->authority + "|" + url->host +
                  "|" + std::to_string(url->port) + "|" + url->path + "|" + url->query,
              c.parts)
        << c.name;
  }
}

TEST(HttpUrl, InvalidUrlsAreRejected) {
  for (const char* url : {"ftp://a", "a:80", "", "https://", "https:///path", "https://a:port", "https://a:65536",
                          "https://a:", "https://a/\r\nHost: b"}) {
    EXPECT_FALSE(parse_http_url(url)) << url;
  }
  EXPECT_EQ(parse_http_url("https://user:secret@host:port").error().message, "invalid port \":port\" after host");
}

TEST(Proxy, IsChosenByTheEnvironment) {
  struct Case {
    std::string_view server, exceptions, proxy;
  };
  setenv("HTTPS_PROXY", "proxy.example.com:3128", 1);
  setenv("HTTP_PROXY", "http://plain.example.com", 1);
  for (const Case& c : {
           Case{"https://api.example.com", "", "http://proxy.example.com:3128"},
           Case{"http://api.example.com", "", "http://plain.example.com"},
           Case{"https://localhost:6443", "", ""},
           Case{"https://127.0.0.1:6443", "", ""},
           Case{"https://api.example.com", "*", ""},
           Case{"https://api.example.com", "other.org, example.com", ""},
           Case{"https://example.com", "example.com", ""},
           Case{"https://example.com", ".example.com", "http://proxy.example.com:3128"},
           Case{"https://notexample.com", "example.com", "http://proxy.example.com:3128"},
           Case{"https://API.example.com", "api.EXAMPLE.com", ""},
           Case{"https://api.example.com:6443", "api.example.com:443", "http://proxy.example.com:3128"},
           Case{"https://api.example.com:6443", "api.example.com:6443", ""},
           Case{"https://10.1.2.3:6443", "10.0.0.0/8", ""},
           Case{"https://10.1.2.3:6443", "10.1.2.3", ""},
           Case{"https://11.1.2.3:6443", "10.0.0.0/8,10.1.2.3", "http://proxy.example.com:3128"},
           Case{"https://[fd00::1]:6443", "fd00::/8", ""},
           Case{"https://[fe00::1]:6443", "fd00::/8", "http://proxy.example.com:3128"},
       }) {
    setenv("NO_PROXY", std::string(c.exceptions).c_str(), 1);
    EXPECT_EQ(environment_proxy(*parse_http_url(c.server)), c.proxy) << c.server << " " << c.exceptions;
  }
  for (const char* name : {"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"}) unsetenv(name);
}

TEST(WebhookUrl, PlainUrlsAreAccepted) {
  for (const char* url : {"https://host", "https://host:443/path", "https://[::1]:9443/a/b", "https://10.0.0.1/"}) {
    EXPECT_EQ(problems_of(url), "") << url;
  }
}

TEST(Host, HasBracketsOnlyIfItIsAnIpv6Address) {
  EXPECT_EQ(host_port("10.0.0.1", 443), "10.0.0.1:443");
  EXPECT_EQ(host_port("::1", 443), "[::1]:443");
  EXPECT_EQ(without_brackets(with_brackets("::1")), "::1");
  EXPECT_EQ(without_brackets("host"), "host");
}

TEST(WebhookUrl, UnsafeUrlsAreRejected) {
  EXPECT_EQ(problems_of("https://host/\r\nX-Remote-User: admin"), "unparsable");
  EXPECT_EQ(problems_of("https://host:port/"), "unparsable");
  EXPECT_EQ(problems_of("https://good@evil/"), "good: user information is not permitted in the URL");
  EXPECT_EQ(problems_of("https://host/?a=b"), "a=b: query parameters are not permitted in the URL");
  EXPECT_EQ(problems_of("https://host/#f"), "f: fragments are not permitted in the URL");
  EXPECT_THAT(problems_of("http://host/"), testing::StartsWith("http: 'https' is the only allowed URL scheme"));
  EXPECT_THAT(problems_of("https:///path"), testing::StartsWith(": host must be specified"));
  EXPECT_THAT(problems_of("host/path"), testing::HasSubstr("only allowed URL scheme"));
  EXPECT_EQ(problems_of(" https://host/"), "unparsable") << "no scheme, and a path with a colon";
  EXPECT_EQ(problems_of("https://host/%2"), "unparsable");
  EXPECT_EQ(problems_of("https://[::1/"), "unparsable");
  EXPECT_EQ(problems_of("HTTPS://host/%20"), "");
}

}  // namespace
}  // namespace holdfast
