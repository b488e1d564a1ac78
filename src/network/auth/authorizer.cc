#include "auth/auth.h"
#include "base/api_error.h"
#include "base/text.h"

namespace holdfast::auth {

namespace {

// kube-apiserver escapes the whole message, so that browsers do not take it for markup (responsewriters.Forbidden).
std::string html_escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace

Result<Unit> Authorizer::check(const Attributes& attributes) const {
  const Decision decision = authorize(attributes);
  if (decision.allowed()) return Unit{};
  return forbidden_error(attributes, decision.reason);
}

Error forbidden_error(const Attributes& a, std::string_view reason) {
  const std::string suffix = reason.empty() ? std::string() : ": " + std::string(reason);
  const std::string user = go_quote(a.user->name);
  const std::string verb(a.verb);
  if (!a.is_resource) {
    Error error{Reason::Forbidden,
                html_escape("forbidden: User " + user + " cannot " + verb + " path " + go_quote(a.path) + suffix)};
    error.details.emplace();
    return error;
  }
  std::string resource(a.resource);
  if (!a.subresource.empty()) resource += "/" + std::string(a.subresource);
  std::string why =
      "User " + user + " cannot " + verb + " resource " + go_quote(resource) + " in API group " + go_quote(a.group);
  why += a.ns.empty() ? std::string(" at the cluster scope") : " in the namespace " + go_quote(a.ns);
  Error error = forbidden({a.group, a.resource}, a.name, why + suffix);
  error.message = html_escape(error.message);
  return error;
}

}  // namespace holdfast::auth
