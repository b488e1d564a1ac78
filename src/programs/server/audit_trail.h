// The audit events of one request in the pipeline.
#pragma once

#include <memory>
#include <optional>

#include "audit/audit.h"
#include "auth/auth.h"
#include "call/call.h"
#include "net/net.h"
#include "server/impersonation.h"

namespace holdfast::server {

// The audit policy and log.
struct Auditor {
  audit::Policy policy;
  std::unique_ptr<audit::Log> log;
};

class AuditTrail {
 public:
  // Null disables auditing; all methods below are then no-ops.
  explicit AuditTrail(const Auditor* auditor) : auditor_(auditor) {}
  AuditTrail(const AuditTrail&) = delete;
  AuditTrail& operator=(const AuditTrail&) = delete;

  // The request was received from `user`. `lasting` is for watches and similar requests, whose start is a separate
  // event.
  void receive(const net::Request& request, std::string_view audit_id, const auth::Attributes& attributes,
               auth::UserRef user, bool lasting);
  // Authentication failed: this is the only event of the request.
  void refuse_unknown(const net::Request& request, std::string_view audit_id, const auth::Attributes& attributes);
  void serve_as(const Impersonated& impersonated);
  void decide(const auth::Decision& decision);
  // The pipeline itself responded with this error.
  void refuse(const Error& error);
  // Where the API records its data; null if the request is not recorded.
  call::Recording* recording() { return wanted_.level == audit::Level::None ? nullptr : &recording_; }
  void complete(const net::Response& response);

 private:
  bool begin(const net::Request& request, std::string_view audit_id, const auth::Attributes& attributes,
             auth::UserRef user);
  void take_notes();
  void write(audit::Stage stage);

  const Auditor* const auditor_;
  audit::Wanted wanted_;
  audit::Event event_;
  call::Recording recording_;
  bool lasting_ = false, started_ = false;
};

}  // namespace holdfast::server
