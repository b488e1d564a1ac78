// CertificateSigningRequest.

#include <algorithm>
#include <optional>

#include "base/base64.h"
#include "base/strings.h"
#include "base/text.h"
#include "kinds/all.h"
#include "kinds/difference.h"
#include "kinds/names.h"

namespace holdfast::kinds {
namespace {

// --- Strategy ---

void create_request(Context& context, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  for (const std::string_view key : {"username", "uid", "groups", "extra"}) spec.remove(key);
  if (context.caller != nullptr) {
    const Caller& caller = *context.caller;
    if (!caller.name.empty()) spec.set("username", Value::string(context.arena, caller.name));
    if (!caller.uid.empty()) spec.set("uid", Value::string(context.arena, caller.uid));
    if (!caller.groups.empty()) {
      ListBuilder groups(context.arena);
      for (const std::string_view group : caller.groups) groups.add(Value::string(context.arena, group));
      spec.set("groups", groups.build());
    }
    if (caller.extra.is_map() && caller.extra.count() > 0) spec.set("extra", deep_copy(context.arena, caller.extra));
  }
}

void update_request(Context&, Draft::Node next, const Value& old) { restore(next, old, "spec"); }

void fill_times(Context& context, Draft::Node next, const Value& old) {
  const Value now = time_value(context.arena, context.now);
  for (Draft::Node condition : next.child("status").list("conditions")) {
    condition.set_default("lastUpdateTime", now);
    if (is_set(condition.value(), "lastTransitionTime")) continue;
    Value moved = now;
    for (const Value& before : old.items_at("status", "conditions")) {
      if (before.text_at("type") == condition.value().text_at("type") &&
          before.text_at("status") == condition.value().text_at("status") && is_set(before, "lastTransitionTime")) {
        moved = *before.find("lastTransitionTime");
        break;
      }
    }
    condition.set("lastTransitionTime", moved);
  }
}

std::vector<Value> conditions_of(const Value& request, std::string_view type) {
  std::vector<Value> found;
  for (const Value& condition : request.items_at("status", "conditions")) {
    if (condition.text_at("type") == type) found.push_back(condition);
  }
  return found;
}

// This endpoint cannot change approvals: if their number is unchanged, the old ones are kept.
void update_request_status(Context& context, Draft::Node next, const Value& old) {
  for (const std::string_view type : {"Approved", "Denied"}) {
    const std::vector<Value> before = conditions_of(old, type);
    if (before.size() != conditions_of(next.value(), type).size()) continue;
    size_t i = 0;
    for (Draft::Node condition : next.child("status").list("conditions")) {
      if (condition.value().text_at("type") == type) condition.assign(before[i++]);
    }
  }
  fill_times(context, next, old);
}

void update_request_approval(Context& context, Endpoint, Draft::Node next, const Value& old) {
  fill_times(context, next, old);
  const Value conditions = sub(next.value(), "status", "conditions");
  restore(next, old, "spec");
  restore(next, old, "status");
  Draft::Node status = next.child("status");
  status.remove("conditions");
  if (!conditions.is_null()) status.set("conditions", conditions);
}

// --- Validation ---

constexpr std::string_view kUsages[] = {"any",
                                        "cert sign",
                                        "client auth",
                                        "code signing",
                                        "content commitment",
                                        "crl sign",
                                        "data encipherment",
                                        "decipher only",
                                        "digital signature",
                                        "email protection",
                                        "encipher only",
                                        "ipsec end system",
                                        "ipsec tunnel",
                                        "ipsec user",
                                        "key agreement",
                                        "key encipherment",
                                        "microsoft sgc",
                                        "netscape sgc",
                                        "ocsp signing",
                                        "s/mime",
                                        "server auth",
                                        "signing",
                                        "timestamping"};

struct PemBlock {
  std::string_view type;
  bool has_headers = false;
  std::string bytes;
};

// Returns the next block and removes it from `rest`; text between blocks is skipped.
std::optional<PemBlock> next_pem_block(std::string_view& rest) {
  constexpr std::string_view kBegin = "-----BEGIN ", kEnd = "-----END ", kDashes = "-----";
  for (size_t start = rest.find(kBegin); start != std::string_view::npos; start = rest.find(kBegin)) {
    rest.remove_prefix(start + kBegin.size());
    const size_t line = rest.find('\n'), dashes = rest.find(kDashes);
    if (dashes == std::string_view::npos || dashes > line) continue;
    PemBlock block{.type = rest.substr(0, dashes)};
    const std::string end = std::string(kEnd).append(block.type).append(kDashes);
    const size_t stop = rest.find(end, dashes);
    if (stop == std::string_view::npos) continue;
    std::string_view body = rest.substr(dashes + kDashes.size(), stop - dashes - kDashes.size());
    if (const size_t colon = body.rfind(':'); colon != std::string_view::npos) {
      block.has_headers = true;
      body.remove_prefix(std::min(body.find('\n', colon), body.size()));
    }
    std::string letters;
    for (const char c : body) {
      if (c != '\n' && c != '\r' && c != ' ' && c != '\t') letters += c;
    }
    const std::optional<std::string> bytes = base64_decode(letters);
    rest.remove_prefix(stop + end.size());
    if (!bytes) continue;
    block.bytes = *bytes;
    return block;
  }
  return std::nullopt;
}

// A DER sequence that spans all bytes.
bool is_der_sequence(std::string_view bytes) {
  if (bytes.size() < 2 || static_cast<uint8_t>(bytes[0]) != 0x30) return false;
  const auto first = static_cast<uint8_t>(bytes[1]);
  if (first < 0x80) return bytes.size() == 2u + first;
  const size_t digits = first & 0x7f;
  if (digits == 0 || digits > 4 || bytes.size() < 2 + digits) return false;
  size_t length = 0;
  for (size_t i = 0; i < digits; ++i) length = length << 8 | static_cast<uint8_t>(bytes[2 + i]);
  return bytes.size() == 2 + digits + length;
}

std::string request_error(const Value& spec) {
  const std::string pem = base64_decode(spec.text_at("request")).value_or("");
  std::string_view rest = pem;
  const std::optional<PemBlock> block = next_pem_block(rest);
  if (!block || block->type != "CERTIFICATE REQUEST") return "PEM block type must be CERTIFICATE REQUEST";
  if (!is_der_sequence(block->bytes)) return "asn1: structure error: malformed certificate request";
  return {};
}

// Empty if valid. `certificate` is in its stored form: base64 of PEM.
std::string certificate_error(std::string_view certificate) {
  if (certificate.empty()) return {};
  const std::string pem = base64_decode(certificate).value_or("");
  std::string_view rest = pem;
  bool has_block = false;
  while (const std::optional<PemBlock> block = next_pem_block(rest)) {
    if (block->type != "CERTIFICATE") return "only CERTIFICATE PEM blocks are allowed, found " + go_quote(block->type);
    if (block->has_headers) return "no PEM block headers are permitted";
    has_block = true;
    if (block->bytes.empty()) return "found CERTIFICATE PEM block containing 0 certificates";
    if (!is_der_sequence(block->bytes)) return "x509: malformed certificate";
  }
  return has_block ? std::string() : "must contain at least one CERTIFICATE PEM block";
}

// Reports all problems of the first invalid part of `text` between dots.
void validate_parts(std::string_view text, Messages (*errors_of)(std::string_view), const Path& at,
                    FieldErrors& errors) {
  for (const std::string_view part : split(text, '.')) {
    const Messages wrong = errors_of(part);
    for (const std::string& message : wrong) {
      errors.invalid(at, text, "validating label " + go_quote(part) + ": " + message);
    }
    if (!wrong.empty()) return;
  }
}

// ValidateSignerName in pkg/apis/core/validation/names.go.
void validate_signer(std::string_view name, const Path& at, FieldErrors& errors) {
  constexpr int64_t kLongestDomain = 253, kLongestName = kLongestDomain + 1 + 253 + 1 + 63;
  if (name.empty()) return errors.required(at);
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos || name.find('/', slash + 1) != std::string_view::npos) {
    return errors.invalid(at, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'");
  }
  const std::string_view domain = name.substr(0, slash), path = name.substr(slash + 1);
  if (std::ssize(domain) > kLongestDomain) errors.too_long(at, kLongestDomain);
  validate_parts(domain, dns_label_errors, at, errors);
  if (domain.find('.') == std::string_view::npos) {
    errors.invalid(at, domain, "should be a domain with at least two segments separated by dots");
  }
  validate_parts(path, dns_subdomain_errors, at, errors);
  if (std::ssize(name) > kLongestName) errors.too_long(at, kLongestName);
}

void validate_conditions_of(const Value& request, FieldErrors& errors) {
  const Path at("status.conditions");
  const std::span<const Value> conditions = request.items_at("status", "conditions");
  bool approved = false, denied = false;
  Names known;
  for (size_t i = 0; i < conditions.size(); ++i) {
    const Path here = at.index(i);
    const std::string_view type = conditions[i].text_at("type"), status = conditions[i].text_at("status");
    if (type.empty()) errors.required(here.child("type"));
    const bool only_true = type == "Approved" || type == "Denied" || type == "Failed";
    if (status.empty()) {
      errors.required(here.child("status"));
    } else if (only_true) {
      validate_enum(conditions[i], "status", {"True"}, here, errors);
    } else {
      validate_enum(conditions[i], "status", {"False", "True", "Unknown"}, here, errors);
    }
    approved = approved || type == "Approved";
    denied = denied || type == "Denied";
    if ((type == "Approved" && denied) || (type == "Denied" && approved)) {
      errors.invalid(at, type, "Approved and Denied conditions are mutually exclusive");
    }
    if (!known.add(type)) errors.duplicate(here.child("type"), type);
  }
}

void validate_request(Context&, const Value& request, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = sub(request, "spec");
  const std::string wrong = request_error(spec);
  if (!wrong.empty()) errors.invalid(at.child("request"), spec.find("request"), wrong);
  const std::span<const Value> usages = spec.items_at("usages");
  if (usages.empty()) errors.required(at.child("usages"));
  for (size_t i = 0; i < usages.size(); ++i) {
    if (!contains(kUsages, usages[i].as_string())) errors.not_supported(at.item("usages", i), usages[i], kUsages);
  }
  Names seen;
  for (size_t i = 0; i < usages.size(); ++i) {
    if (!seen.add(usages[i].as_string())) errors.duplicate(at.item("usages", i), usages[i]);
  }
  const std::string_view signer = spec.text_at("signerName");
  if (signer == "kubernetes.io/legacy-unknown") {
    errors.invalid(at.child("signerName"), signer, "the legacy signerName is not allowed via this API version");
  } else {
    validate_signer(signer, at.child("signerName"), errors);
  }
  if (is_set(spec, "expirationSeconds") && spec.int_at_or(0, "expirationSeconds") < 600) {
    errors.invalid(at.child("expirationSeconds"), spec.find("expirationSeconds"),
                   "may not specify a duration less than 600 seconds (10 minutes)");
  }
  validate_conditions_of(request, errors);
}

void validate_any_update(Context& context, Endpoint endpoint, const Value& next, const Value& old,
                         FieldErrors& errors) {
  validate_request(context, next, errors);
  const Path conditions("status.conditions"), certificate("status.certificate");
  const std::string_view now_issued = next.text_at("status", "certificate"),
                         was_issued = old.text_at("status", "certificate");
  if (now_issued != was_issued && certificate_error(was_issued).empty()) {
    const std::string wrong = certificate_error(now_issued);
    if (!wrong.empty()) errors.invalid(certificate, "<certificate data>", wrong);
  }
  for (const std::string_view type : {"Approved", "Denied", "Failed"}) {
    if (conditions_of(next, type).size() < conditions_of(old, type).size()) {
      errors.forbidden(conditions, "updates may not remove a condition of type " + go_quote(type));
    }
  }
  if (endpoint != Endpoint::Approval) {
    const types::Field* list =
        types::find_member(type_named("certificates/v1.CertificateSigningRequestStatus"), "conditions");
    for (const std::string_view type : {"Approved", "Denied"}) {
      const std::vector<Value> now = conditions_of(next, type), was = conditions_of(old, type);
      if (now.size() > was.size()) {
        errors.forbidden(conditions, "updates may not add a condition of type " + go_quote(type));
      } else if (now.size() == was.size() && !std::equal(now.begin(), now.end(), was.begin(),
                                                         [](const Value& a, const Value& b) { return equal(a, b); })) {
        errors.forbidden(conditions, "updates may not modify a condition of type " + go_quote(type) + "\n" +
                                         difference(*list->type, Value::list(was), Value::list(now)));
      }
    }
  }
  if (now_issued != was_issued) {
    if (endpoint != Endpoint::Status) {
      errors.forbidden(certificate, "updates may not set certificate content");
    } else if (!was_issued.empty()) {
      errors.forbidden(certificate, "updates may not modify existing certificate content");
    }
  }
}

void validate_request_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_any_update(context, Endpoint::Main, next, old, errors);
}
void validate_request_status(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_any_update(context, Endpoint::Status, next, old, errors);
}

}  // namespace

const Hooks kCertificateSigningRequestHooks = {.name = name_is_anything,
                                               .update_checks = {.whole = 1},
                                               .status_checks = {.whole = 1},
                                               .create = create_request,
                                               .update = update_request,
                                               .update_status = update_request_status,
                                               .update_other = update_request_approval,
                                               .validate = validate_request,
                                               .validate_update = validate_request_update,
                                               .validate_status = validate_request_status,
                                               .validate_other = validate_any_update};

}  // namespace holdfast::kinds
