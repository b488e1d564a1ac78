#include "server/audit_trail.h"

#include <algorithm>

#include "base/clock.h"
#include "base/strings.h"
#include "base/url.h"

namespace holdfast::server {
namespace {

// The forwarded client and proxies according to the request's headers, then the address of the connection itself.
std::vector<std::string> source_ips(const net::Request& request) {
  std::vector<std::string> addresses;
  auto add = [&](std::string_view address) {
    if (is_ip_address(address)) addresses.emplace_back(address);
  };
  for (const std::string_view one : split(request.headers.get("x-forwarded-for"), ',')) add(trim(one));
  if (const std::string_view real = trim(request.headers.get("x-real-ip"));
      std::find(addresses.begin(), addresses.end(), real) == addresses.end()) {
    add(real);
  }
  const std::string_view with_port = request.peer->address;
  const std::string_view peer = without_brackets(with_port.substr(0, with_port.rfind(':')));
  if (addresses.empty() || addresses.back() != peer) add(peer);
  return addresses;
}

std::string credentials_tried(const net::Request& request) {
  std::string tried;
  auto add = [&](std::string_view method) { tried.append(tried.empty() ? "" : ", ").append(method); };
  const std::string_view header = request.headers.get("authorization");
  if (header.starts_with("Basic ")) add("basic");
  if (header.starts_with("Bearer ")) add("bearer");
  if (request.peer->certificate) add("x509");
  return tried.empty() ? "Authentication failed, no credentials provided"
                       : "Authentication failed, attempted: " + tried;
}

std::string json_text(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    json += c;
  }
  return json + "\"";
}

}  // namespace

bool AuditTrail::begin(const net::Request& request, std::string_view audit_id, const auth::Attributes& attributes,
                       auth::UserRef user) {
  if (auditor_ == nullptr) return false;
  wanted_ = auditor_->policy.wanted(attributes);
  if (wanted_.level == audit::Level::None) return false;
  event_.level = wanted_.level;
  event_.audit_id = audit_id;
  event_.request_uri = request.target;
  event_.verb = attributes.verb;
  event_.user = std::move(user);
  event_.source_ips = source_ips(request);
  event_.user_agent = request.headers.get("user-agent");
  if (attributes.is_resource) {
    event_.object = audit::Event::ObjectRef{.resource = std::string(attributes.resource),
                                            .ns = std::string(attributes.ns),
                                            .name = std::string(attributes.name),
                                            .uid = {},
                                            .api_group = std::string(attributes.group),
                                            .api_version = std::string(attributes.version),
                                            .resource_version = {},
                                            .subresource = std::string(attributes.subresource)};
  }
  event_.received = system_clock().now();
  return true;
}

void AuditTrail::receive(const net::Request& request, std::string_view audit_id, const auth::Attributes& attributes,
                         auth::UserRef user, bool lasting) {
  if (!begin(request, audit_id, attributes, std::move(user))) return;
  lasting_ = lasting;
  recording_.wants_request = wanted_.level >= audit::Level::Request;
  recording_.wants_response = wanted_.level == audit::Level::RequestResponse && !lasting;
  recording_.on_stream = [this](int code) {
    event_.code = code;
    started_ = true;
    write(audit::Stage::ResponseStarted);
  };
  write(audit::Stage::RequestReceived);
}

void AuditTrail::refuse_unknown(const net::Request& request, std::string_view audit_id,
                                const auth::Attributes& attributes) {
  if (!begin(request, audit_id, attributes, nullptr)) return;
  event_.code = 401;
  event_.response_status =
      R"({"status":"Failure","reason":"Unauthorized","message":)" + json_text(credentials_tried(request)) + "}";
  write(audit::Stage::ResponseStarted);
  wanted_.level = audit::Level::None;
}

void AuditTrail::serve_as(const Impersonated& impersonated) {
  event_.impersonated = impersonated.user;
  event_.impersonation_constraint = impersonated.constraint;
}

void AuditTrail::decide(const auth::Decision& decision) {
  if (recording() == nullptr) return;
  event_.annotations.emplace_back("authorization.k8s.io/decision", decision.allowed() ? "allow" : "forbid");
  event_.annotations.emplace_back("authorization.k8s.io/reason", decision.reason);
}

void AuditTrail::refuse(const Error& error) {
  if (recording() != nullptr) recording_.status = call::status_json(error);
}

void AuditTrail::take_notes() {
  event_.response_status = recording_.status;
  event_.request_object = recording_.request;
  event_.response_object = recording_.response;
  for (const auto& [key, value] : recording_.annotations) event_.annotations.emplace_back(key, value);
  recording_.annotations.clear();
  if (wanted_.omits_managed_fields) {
    if (!event_.request_object.empty()) {
      event_.request_object = audit::without_managed_fields(std::move(event_.request_object));
    }
    if (!event_.response_object.empty()) {
      event_.response_object = audit::without_managed_fields(std::move(event_.response_object));
    }
  }
  if (!event_.object) return;
  auto fill = [](std::string& into, const std::string& from) {
    if (into.empty()) into = from;
  };
  fill(event_.object->ns, recording_.ns);
  fill(event_.object->name, recording_.name);
  fill(event_.object->uid, recording_.uid);
  fill(event_.object->resource_version, recording_.resource_version);
}

void AuditTrail::complete(const net::Response& response) {
  if (recording() == nullptr) return;
  event_.code = response.status();
  take_notes();
  if (lasting_ && !started_) write(audit::Stage::ResponseStarted);
  write(audit::Stage::ResponseComplete);
}

void AuditTrail::write(audit::Stage stage) {
  if (wanted_.at(stage)) auditor_->log->write(audit::to_line(event_, stage, system_clock().now()));
}

}  // namespace holdfast::server
