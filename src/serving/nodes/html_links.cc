#include "nodes/html_links.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/ascii.h"
#include "base/strings.h"
#include "base/text.h"
#include "base/url.h"

namespace holdfast::nodes {
namespace {

struct Links {
  std::string_view tag, attribute;
};
// The attributes that hold a URL, as in Kubernetes.
constexpr Links kLinks[] = {
    {"a", "href"},          {"applet", "codebase"}, {"area", "href"},       {"audio", "src"},
    {"base", "href"},       {"blockquote", "cite"}, {"body", "background"}, {"button", "formaction"},
    {"command", "icon"},    {"del", "cite"},        {"embed", "src"},       {"form", "action"},
    {"frame", "longdesc"},  {"frame", "src"},       {"head", "profile"},    {"html", "manifest"},
    {"iframe", "longdesc"}, {"iframe", "src"},      {"img", "longdesc"},    {"img", "src"},
    {"img", "usemap"},      {"input", "src"},       {"input", "usemap"},    {"input", "formaction"},
    {"ins", "cite"},        {"link", "href"},       {"object", "classid"},  {"object", "codebase"},
    {"object", "data"},     {"object", "usemap"},   {"q", "cite"},          {"script", "src"},
    {"source", "src"},      {"video", "poster"},    {"video", "src"},
};

// Elements whose content is text, whatever it looks like.
constexpr std::string_view kRawText[] = {"iframe", "noembed",  "noframes", "noscript", "script",
                                         "style",  "textarea", "title",    "xmp"};

bool is_link(std::string_view tag, std::string_view attribute) {
  return std::any_of(std::begin(kLinks), std::end(kLinks),
                     [&](const Links& link) { return link.tag == tag && link.attribute == attribute; });
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

// The character references that occur in URLs.
std::string unescape(std::string_view text) {
  constexpr std::pair<std::string_view, char> kNames[] = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  std::string plain;
  while (!text.empty()) {
    const size_t end = text[0] == '&' ? text.substr(0, 12).find(';') : std::string_view::npos;
    const std::string_view name = end == std::string_view::npos ? std::string_view() : text.substr(1, end - 1);
    std::optional<uint32_t> code;
    if (name.starts_with("#x") || name.starts_with("#X")) {
      code = parse_number<uint32_t>(name.substr(2), 16);
    } else if (name.starts_with("#")) {
      code = parse_number<uint32_t>(name.substr(1));
    } else {
      for (const auto& [known, character] : kNames) {
        if (name == known) code = static_cast<uint8_t>(character);
      }
    }
    if (code && *code > 0 && *code <= 0x10ffff) {
      append_utf8(plain, *code);
      text.remove_prefix(end + 1);
    } else {
      plain += text[0];
      text.remove_prefix(1);
    }
  }
  return plain;
}

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
}

// One past the ">" that ends the tag, outside quoted values; npos if it has not arrived.
size_t end_of_tag(std::string_view rest) {
  char quote = 0;
  bool in_value = false;  // Right after "=", where a quote begins a value.
  for (size_t i = 1; i < rest.size(); ++i) {
    const char c = rest[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '>') {
      return i + 1;
    } else if (in_value && (c == '"' || c == '\'')) {
      quote = c;
      in_value = false;
    } else if (c == '=') {
      in_value = true;
    } else if (!is_space(c)) {
      in_value = false;
    }
  }
  return std::string_view::npos;
}

std::string_view take_while(std::string_view& rest, bool (*wanted)(char)) {
  const std::string_view taken = rest.substr(0, std::find_if_not(rest.begin(), rest.end(), wanted) - rest.begin());
  rest.remove_prefix(taken.size());
  return taken;
}

// The end of `text` may be the beginning of `end`: how much of it, at most.
size_t possible_end(std::string_view text, std::string_view end) {
  for (size_t count = std::min(text.size(), end.size() - 1); count > 0; --count) {
    if (equals_ignoring_case(text.substr(text.size() - count), end.substr(0, count))) return count;
  }
  return 0;
}

size_t find_ignoring_case(std::string_view text, std::string_view wanted) {
  const auto found = std::search(text.begin(), text.end(), wanted.begin(), wanted.end(),
                                 [](char a, char b) { return to_lower(a) == to_lower(b); });
  return found == text.end() ? std::string_view::npos : static_cast<size_t>(found - text.begin());
}

}  // namespace

std::string escape_path(std::string_view path) {
  constexpr std::string_view kPlain = "-_.~$&+,/:;=@";
  std::string escaped;
  for (const char c : path) {
    if (is_alnum(c) || kPlain.find(c) != std::string_view::npos) {
      escaped += c;
    } else {
      append_percent_encoded(escaped, c);
    }
  }
  return escaped;
}

std::string clean_path(std::string_view path) {
  std::vector<std::string_view> names;
  for (const std::string_view name : split(path, '/')) {
    if (name == "..") {
      if (!names.empty()) names.pop_back();
    } else if (!name.empty() && name != ".") {
      names.push_back(name);
    }
  }
  std::string clean;
  for (const std::string_view name : names) clean.append("/").append(name);
  if (clean.empty() || path.ends_with('/')) clean += '/';
  return clean;
}

std::string LinkRewriter::rewrite(std::string_view url) const {
  std::string_view rest = url;
  const size_t end_of_scheme = rest.find_first_of(":/?#");
  if (end_of_scheme != std::string_view::npos && rest[end_of_scheme] == ':') rest.remove_prefix(end_of_scheme + 1);
  std::string_view host;
  if (rest.starts_with("//")) {
    rest.remove_prefix(2);
    host = rest.substr(0, rest.find_first_of("/?#"));
    rest.remove_prefix(host.size());
  }
  const size_t end_of_path = std::min(rest.find_first_of("?#"), rest.size());
  const std::string_view path = rest.substr(0, end_of_path), more = rest.substr(end_of_path);
  const bool elsewhere = !host.empty() && host != server_host && host != request_host;
  if (elsewhere || !path.starts_with('/')) return std::string(url);
  // A URL that names this server keeps doing so.
  std::string rewritten;
  if (!host.empty() && host == request_host) rewritten = url.substr(0, url.size() - rest.size());
  if (path.starts_with(prefix)) return rewritten.append(rest);
  return rewritten.append(prefix).append(clean_path(path)).append(more);
}

std::string HtmlLinks::add(std::string_view bytes) {
  input_ += bytes;
  std::string out;
  size_t taken = 0;
  while (const size_t more = take(std::string_view(input_).substr(taken), out)) taken += more;
  input_.erase(0, taken);
  return out;
}

size_t HtmlLinks::take(std::string_view rest, std::string& out) {
  if (rest.empty()) return 0;
  if (!raw_until_.empty()) {
    const size_t end = find_ignoring_case(rest, raw_until_);
    const size_t count = end == std::string_view::npos ? rest.size() - possible_end(rest, raw_until_) : end;
    out += rest.substr(0, count);
    if (end == std::string_view::npos) return count;
    out += rest.substr(end, raw_until_.size());
    const size_t taken = count + raw_until_.size();
    raw_until_.clear();
    return taken;
  }
  if (rest[0] == '<') return take_markup(rest, out);
  const size_t count = std::min(rest.find('<'), rest.size());
  out += rest.substr(0, count);
  return count;
}

// Something that begins with "<".
size_t HtmlLinks::take_markup(std::string_view rest, std::string& out) {
  constexpr std::string_view kComment = "<!--";
  if (rest.size() < 2) return 0;
  if (is_letter(rest[1])) return take_tag(rest, out);
  if (rest.size() < kComment.size() && kComment.starts_with(rest)) return 0;
  size_t count = 1;
  if (rest.starts_with(kComment)) {
    count = kComment.size();
    raw_until_ = "-->";
  } else if (rest[1] == '!' || rest[1] == '/' || rest[1] == '?') {
    raw_until_ = ">";
  }
  out += rest.substr(0, count);
  return count;
}

size_t HtmlLinks::take_tag(std::string_view rest, std::string& out) {
  const size_t end = end_of_tag(rest);
  if (end == std::string_view::npos) {
    if (rest.size() < kMaxTagBytes) return 0;
    raw_until_ = ">";
    out += '<';
    return 1;
  }
  std::string_view inside = rest.substr(1, end - 2);
  const std::string_view shown_name = take_while(inside, [](char c) { return !is_space(c) && c != '/'; });
  const std::string name = to_lower(shown_name);
  out.append("<").append(shown_name);
  while (!inside.empty()) {
    out += take_while(inside, [](char c) { return is_space(c) || c == '/'; });
    const std::string_view attribute = take_while(inside, [](char c) { return !is_space(c) && c != '/' && c != '='; });
    out += attribute;
    std::string_view after = inside;
    (void)take_while(after, is_space);
    if (!after.starts_with('=')) {
      if (attribute.empty() && !inside.empty() && !is_space(inside[0]) && inside[0] != '/') {
        out += inside[0];
        inside.remove_prefix(1);
      }
      continue;
    }
    after.remove_prefix(1);
    (void)take_while(after, is_space);
    out += inside.substr(0, inside.size() - after.size());
    inside = after;
    const char quote = !inside.empty() && (inside[0] == '"' || inside[0] == '\'') ? inside[0] : '\0';
    std::string_view value;
    if (quote != 0) {
      inside.remove_prefix(1);
      value = inside.substr(0, inside.find(quote));
      inside.remove_prefix(std::min(value.size() + 1, inside.size()));
    } else {
      value = take_while(inside, [](char c) { return !is_space(c); });
    }
    const std::string shown_quote(quote != 0 ? 1 : 0, quote);
    const std::string url = unescape(value);
    const std::string rewritten = is_link(name, to_lower(attribute)) ? rewriter_.rewrite(url) : url;
    out += shown_quote;
    if (rewritten == url) {
      out += value;
    } else {
      append_escaped(out, rewritten);
    }
    out += shown_quote;
  }
  out += '>';
  if (std::find(std::begin(kRawText), std::end(kRawText), name) != std::end(kRawText)) raw_until_ = "</" + name;
  return end;
}

}  // namespace holdfast::nodes
