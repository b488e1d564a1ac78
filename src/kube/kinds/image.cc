// Image references, as far as the default pull policy needs them: is the tag "latest"?
//
//   reference = [domain "/"] component {"/" component} [":" tag] ["@" digest]

#include <algorithm>

#include "base/ascii.h"
#include "base/strings.h"
#include "kinds/pod.h"

namespace holdfast::kinds {
namespace {

bool is_lower_hex(char c) { return is_hex(c) && !is_upper(c); }
bool is_word(char c) { return is_alnum(c) || c == '_'; }

// Lower-case letters and digits, separated by one '.', one or two '_', or any number of '-'.
bool is_component(std::string_view text) {
  size_t i = 0;
  while (true) {
    const size_t start = i;
    while (i < text.size() && is_lower_alnum(text[i])) ++i;
    if (i == start) return false;
    if (i == text.size()) return true;
    if (text[i] == '-') {
      while (i < text.size() && text[i] == '-') ++i;
    } else if (text[i] == '.') {
      ++i;
    } else if (text[i] == '_') {
      ++i;
      if (i < text.size() && text[i] == '_') ++i;
    } else {
      return false;
    }
  }
}

bool is_domain(std::string_view text) {
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos || end == 1) return false;
    const std::string_view port = text.substr(end + 1);
    return port.empty() || (port.size() > 1 && port[0] == ':' && std::all_of(port.begin() + 1, port.end(), is_digit));
  }
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    const std::string_view port = text.substr(colon + 1);
    if (port.empty() || !std::all_of(port.begin(), port.end(), is_digit)) return false;
  }
  for (const std::string_view part : split(text.substr(0, colon), '.')) {
    if (part.empty() || part.front() == '-' || part.back() == '-') return false;
    if (!std::all_of(part.begin(), part.end(), [](char c) { return is_alnum(c) || c == '-'; })) return false;
  }
  return true;
}

bool is_tag(std::string_view text) {
  return !text.empty() && text.size() <= 128 && is_word(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_word(c) || c == '.' || c == '-'; });
}

bool is_digest(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == 0 || colon == std::string_view::npos) return false;
  const std::string_view algorithm = text.substr(0, colon), hex = text.substr(colon + 1);
  if (!std::all_of(hex.begin(), hex.end(), is_hex)) return false;
  if (algorithm == "sha256") return hex.size() == 64 && std::all_of(hex.begin(), hex.end(), is_lower_hex);
  if (algorithm == "sha384") return hex.size() == 96 && std::all_of(hex.begin(), hex.end(), is_lower_hex);
  return algorithm == "sha512" && hex.size() == 128 && std::all_of(hex.begin(), hex.end(), is_lower_hex);
}

}  // namespace

bool image_is_latest(std::string_view image) {
  if (image.size() == 64 && std::all_of(image.begin(), image.end(), is_lower_hex))
    return false;  // An image ID, not a reference.
  std::string_view rest = image;
  const size_t slash = rest.find('/');
  std::string_view domain;
  if (slash != std::string_view::npos) {
    const std::string_view first = rest.substr(0, slash);
    const bool has_upper = std::any_of(first.begin(), first.end(), is_upper);
    if (first.find_first_of(".:") != std::string_view::npos || first == "localhost" || has_upper) {
      domain = first;
      rest.remove_prefix(slash + 1);
    }
  }
  const size_t at = rest.find('@');
  const std::string_view digest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  const std::string_view named = rest.substr(0, at);
  const size_t colon = named.find(':');
  const std::string_view tag = colon == std::string_view::npos ? std::string_view() : named.substr(colon + 1);
  std::string_view path = named.substr(0, colon);
  // A text that is not a reference has no tag.
  if (!domain.empty() && !is_domain(domain)) return false;
  if (at != std::string_view::npos && !is_digest(digest)) return false;
  if (colon != std::string_view::npos && !is_tag(tag)) return false;
  constexpr std::string_view kOfficial = "library/";  // The namespace of one-component names on Docker Hub.
  const bool docker = domain.empty() || domain == "docker.io" || domain == "index.docker.io";
  const bool official = docker && path.find('/') == std::string_view::npos;
  if (path.size() + (official ? kOfficial.size() : 0) > 255) return false;
  while (true) {
    const size_t next = path.find('/');
    if (!is_component(path.substr(0, next))) return false;
    if (next == std::string_view::npos) break;
    path.remove_prefix(next + 1);
  }
  return tag.empty() ? digest.empty() : tag == "latest";
}

}  // namespace holdfast::kinds
