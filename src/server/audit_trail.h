// One request in the pipeline, as recorded in the audit log.
#pragma once

#include <memory>
#include <optional>

#include "audit/audit.h"
#include "auth/auth.h"
#include "call/call.h"
#include "net/net.h"
#include "server/impersonation.h"

namespace holdfast::server {

// What is recorded, and where.
struct Auditor {
  audit::Policy policy;
  std::unique_ptr<audit::Log> log;
};

class AuditTrail {
 public:
  // Null: nothing is recorded; then every step below does nothing.
  explicit AuditTrail(const Auditor* auditor) : auditor_(auditor) {}
  AuditTrail(const AuditTrail&) = delete;
  AuditTrail& operator=(const AuditTrail&) = delete;

  // The request was received from `user`. `lasting`: a watch or similar request, whose start is a separate event.
  void receive(const net::Request& request, std::string_view audit_id, const auth::Attributes& attributes,
               auth::UserRef user, bool lasting);
  // Authentication failed: the only event of this request.
  void refuse_unknown(const net::Request& request, std::string_view audit_id, const auth::Attributes& attributes);
  void serve_as(const Impersonated& impersonated);
  void decide(const auth::Decision& decision);
  // The pipeline itself answered with this error.
  void refuse(const Error& error);
  // Where the API records its notes; null: not recorded.
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
