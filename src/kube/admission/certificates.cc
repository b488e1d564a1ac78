// Permissions to approve and sign certificate requests, and restrictions on their content.

#include <algorithm>

#include "admission/plugin.h"
#include "base/base64.h"
#include "base/text.h"

namespace holdfast::admission {
namespace {

bool is_request(const types::Resource& resource) {
  return resource.group == "certificates.k8s.io" && resource.plural == "certificatesigningrequests";
}

// Whether the verb is allowed on the signer's name or on all signers of its domain.
bool may(const Attributes& attributes, std::string_view verb, std::string_view signer) {
  if (attributes.lookup.authorized(verb, "certificates.k8s.io", "signers", signer)) return true;
  const size_t slash = signer.find('/');
  const std::string domain = std::string(signer.substr(0, slash)) + "/*";
  return attributes.lookup.authorized(verb, "certificates.k8s.io", "signers", domain);
}

bool is_approval(const types::Resource& resource, std::string_view subresource, Operation operation) {
  return is_request(resource) && subresource == "approval" && operation == Operation::Update;
}

Result<Unit> check_approval(Attributes& attributes, const Value& request) {
  const std::string_view signer =
      attributes.old != nullptr ? attributes.old->text_at("spec", "signerName") : request.text_at("spec", "signerName");
  if (may(attributes, "approve", signer)) return Unit{};
  return refuse(attributes, request, "user not permitted to approve requests with signerName " + go_quote(signer));
}

bool is_signing(const types::Resource& resource, std::string_view subresource, Operation operation) {
  return is_request(resource) && subresource == "status" && operation == Operation::Update;
}

Result<Unit> check_signing(Attributes& attributes, const Value& request) {
  if (attributes.old == nullptr) return Unit{};
  const Value& old = *attributes.old;
  const Value *now = request.get("status", "conditions"), *was = old.get("status", "conditions");
  const bool same_conditions = (now == nullptr || now->count() == 0) ? (was == nullptr || was->count() == 0)
                                                                     : was != nullptr && equal(*now, *was);
  if (same_conditions && request.text_at("status", "certificate") == old.text_at("status", "certificate"))
    return Unit{};
  const std::string_view signer = old.text_at("spec", "signerName");
  if (may(attributes, "sign", signer)) return Unit{};
  return refuse(attributes, request, "user not permitted to sign requests with signerName " + go_quote(signer));
}

bool is_request_create(const types::Resource& resource, std::string_view subresource, Operation operation) {
  return is_request(resource) && subresource.empty() && operation == Operation::Create;
}

// Whether the subject of a PEM request has this organization (attribute 2.5.4.10).
bool has_organisation(std::string_view pem, std::string_view organisation) {
  const size_t begin = pem.find("-----\n"), end = pem.rfind("\n-----END");
  if (begin == std::string_view::npos || end == std::string_view::npos || end <= begin + 6) return false;
  std::string letters;
  for (const char c : pem.substr(begin + 6, end - begin - 6)) {
    if (c != '\n' && c != '\r') letters += c;
  }
  const std::string der = base64_decode(letters).value_or("");
  constexpr std::string_view kAttribute("\x06\x03\x55\x04\x0a", 5);
  for (size_t at = der.find(kAttribute); at != std::string::npos; at = der.find(kAttribute, at + 1)) {
    const size_t value = at + kAttribute.size();
    if (value + 2 > der.size()) return false;
    const size_t length = static_cast<uint8_t>(der[value + 1]);
    if (length == organisation.size() && der.compare(value + 2, length, organisation) == 0) return true;
  }
  return false;
}

Result<Unit> check_subject(Attributes& attributes, const Value& request) {
  if (request.text_at("spec", "signerName") != "kubernetes.io/kube-apiserver-client") return Unit{};
  const std::string pem = base64_decode(request.text_at("spec", "request")).value_or("");
  if (!has_organisation(pem, "system:masters")) return Unit{};
  return refuse(attributes, request,
                "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed");
}

}  // namespace

const Plugin kCertificateApproval = {.name = "CertificateApproval", .handles = is_approval, .validate = check_approval};
const Plugin kCertificateSigning = {.name = "CertificateSigning", .handles = is_signing, .validate = check_signing};
const Plugin kCertificateSubjectRestriction = {
    .name = "CertificateSubjectRestriction", .handles = is_request_create, .validate = check_subject};

}  // namespace holdfast::admission
