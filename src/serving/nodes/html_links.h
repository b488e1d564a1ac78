// Links in HTML pages that come through the proxy. Private to the module.
//
// Pages are rewritten as they pass, so a page of any size needs only the memory of one tag.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::nodes {

// How the URLs of a proxied server are rewritten, so that they lead through this server
// (rewriteURL of apimachinery/pkg/util/proxy/transport.go).
struct LinkRewriter {
  std::string prefix;        // Path of the proxied server here: /api/v1/namespaces/n/pods/p/proxy
  std::string server_host;   // Of the proxied server: 10.0.0.1:80
  std::string request_host;  // As the client names this server.

  // Absolute paths get the prefix; relative ones, and URLs of other servers, stay as they are.
  std::string rewrite(std::string_view url) const;
};

// Rewrites the URLs in the attributes of tags. Everything else is left as it is, byte for byte.
class HtmlLinks {
 public:
  explicit HtmlLinks(LinkRewriter rewriter) : rewriter_(std::move(rewriter)) {}

  // What can be passed on of the page so far.
  std::string add(std::string_view bytes);
  // The rest of a page that has ended.
  std::string finish() { return std::exchange(input_, {}); }

 private:
  // A longer tag is not rewritten.
  static constexpr size_t kMaxTagBytes = 64 << 10;

  // Takes the beginning of `rest`, of which nothing is taken if more has to arrive first.
  size_t take(std::string_view rest, std::string& out);
  size_t take_markup(std::string_view rest, std::string& out);
  size_t take_tag(std::string_view rest, std::string& out);

  const LinkRewriter rewriter_;
  std::string input_;
  std::string raw_until_;  // The end of the raw text that the page is in: "-->", "</script", or ">" of a long tag.
};

// A path as Go's URL.EscapedPath() writes it.
std::string escape_path(std::string_view path);
// Go's path.Clean() for a path that begins with a slash, with the slash at its end kept.
std::string clean_path(std::string_view path);

}  // namespace holdfast::nodes
