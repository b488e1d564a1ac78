#include "nodes/html_links.h"

#include <gtest/gtest.h>

namespace holdfast::nodes {
namespace {

LinkRewriter rewriter() { return {"/api/v1/namespaces/n/pods/p/proxy", "10.0.0.1:80", "api.example.com:6443"}; }

std::string rewritten(std::string_view page, size_t piece) {
  HtmlLinks links(rewriter());
  std::string out;
  for (size_t at = 0; at < page.size(); at += piece) out += links.add(page.substr(at, piece));
  return out + links.finish();
}

TEST(LinkRewriter, OnlyAbsolutePathsOfTheProxiedServerGetThePrefix) {
  struct Case {
    const char *name, *url, *want;
  } constexpr kCases[] = {
      {"an absolute path gets it", "/a/b?c=/d#e", "/api/v1/namespaces/n/pods/p/proxy/a/b?c=/d#e"},
      {"a slash at the end stays", "/a/", "/api/v1/namespaces/n/pods/p/proxy/a/"},
      {"dots are resolved", "/a/../../b", "/api/v1/namespaces/n/pods/p/proxy/b"},
      {"a relative path leads here anyway", "a/b", "a/b"},
      {"a query alone is relative", "?a=/b", "?a=/b"},
      {"the server's own address is replaced", "http://10.0.0.1:80/a", "/api/v1/namespaces/n/pods/p/proxy/a"},
      {"the name of this server stays", "https://api.example.com:6443/a",
       "https://api.example.com:6443/api/v1/namespaces/n/pods/p/proxy/a"},
      {"another server is another server", "http://169.254.169.254/latest", "http://169.254.169.254/latest"},
      {"so is one without a scheme", "//evil.example.com/a", "//evil.example.com/a"},
      {"other schemes are not paths", "mailto:a@example.com", "mailto:a@example.com"},
      {"what has the prefix keeps it", "/api/v1/namespaces/n/pods/p/proxy/a", "/api/v1/namespaces/n/pods/p/proxy/a"},
      {"nothing stays nothing", "", ""},
  };
  for (const Case& c : kCases) EXPECT_EQ(rewriter().rewrite(c.url), c.want) << c.name;
}

TEST(HtmlLinks, RewritesAttributesWithUrlsHoweverThePageArrives) {
  struct Case {
    const char *name, *page, *want;
  } constexpr kCases[] = {
      {"quoted either way or not at all", R"(<a href="/x">1</a><A HREF='/x'>2</A><a href=/x>3</a>)",
       R"(<a href="/P/x">1</a><A HREF='/P/x'>2</A><a href=/P/x>3</a>)"},
      {"among other attributes", R"(<img alt="a > b" src = "/i.png" class=c/>)",
       R"(<img alt="a > b" src = "/P/i.png" class=c/>)"},
      {"attributes that hold no URL stay", R"(<div href="/x" title="/y">)", R"(<div href="/x" title="/y">)"},
      {"references to characters are understood", R"(<a href="/x?a=1&amp;b=2">)", R"(<a href="/P/x?a=1&amp;b=2">)"},
      {"comments stay", R"(<!-- <a href="/x"> --><a href="/y">)", R"(<!-- <a href="/x"> --><a href="/P/y">)"},
      {"scripts stay", R"(<script src="/s.js">if (a<b) "<a href='/x'>"</script><a href="/y">)",
       R"(<script src="/P/s.js">if (a<b) "<a href='/x'>"</script><a href="/P/y">)"},
      {"the text of a page stays", "a < b && c > d <br/> /x", "a < b && c > d <br/> /x"},
      {"a page may end anywhere", R"(<p><a href="/x)", R"(<p><a href="/x)"},
  };
  for (const Case& c : kCases) {
    std::string want = c.want;
    for (size_t at = 0; (at = want.find("/P/", at)) != std::string::npos;) {
      want.replace(at, 2, rewriter().prefix);
      at += rewriter().prefix.size();
    }
    for (const size_t piece : {size_t{1}, size_t{3}, size_t{1000}}) {
      EXPECT_EQ(rewritten(c.page, piece), want) << c.name << ", in pieces of " << piece;
    }
  }
}

TEST(HtmlLinks, ATagWithoutEndIsPassedOn) {
  const std::string page = "<a href=\"" + std::string(1 << 20, 'x');
  HtmlLinks links(rewriter());
  size_t passed = 0;
  for (size_t at = 0; at < page.size(); at += 4096) passed += links.add(std::string_view(page).substr(at, 4096)).size();
  EXPECT_GT(passed, page.size() - (64 << 10));
  EXPECT_EQ(passed + links.finish().size(), page.size());
}

TEST(EscapePath, WritesPathsAsGoDoes) {
  EXPECT_EQ(escape_path("/a b/\xc3\xa4?#%!/~x:@=&+$,;"), "/a%20b/%C3%A4%3F%23%25%21/~x:@=&+$,;");
  EXPECT_EQ(clean_path("/a//./b/../c/"), "/a/c/");
  EXPECT_EQ(clean_path("/../.."), "/");
}

}  // namespace
}  // namespace holdfast::nodes
