// Request bodies as objects: decoded, checked against what the URL says, with what field validation found.
#pragma once

#include <string>
#include <string_view>

#include "call/call.h"
#include "request/query.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::write {

// What a body must be: the resource's kind, or its subresource's.
struct Expected {
  std::string_view group, version, kind;
  const types::Type* type = nullptr;
};
Expected expected_of(const resource::Served& served);
Expected expected_of(const call::Call& call);  // Of the subresource, if the call has one of a kind of its own.

// Errors of Kubernetes' decoders about the kind of a document, as texts. Empty: there is none.
//
// The document is not an object.
std::string why_no_object(const Value& tree);
// kind or apiVersion is not a string, or apiVersion is not a group and a version.
std::string why_unreadable_kind(const Value& tree);
// What a patch produced is not of the kind that is expected. A missing kind is taken from the URL, a missing apiVersion
// is not looked at.
std::string why_patched_to_another_kind(Arena& arena, const Value& tree, const Expected& expected);
// A custom object does not name its kind. Whether it is the right one is checked by validation.
std::string why_no_kind(const Value& tree);
// No such kind is known, whether that is so or not.
std::string why_unregistered(const Value& tree);

// The object as the type's decoder and encoder would leave it, not defaulted, kind and apiVersion set, without
// metadata.options (see take_declared_manager). Strict findings become warnings or the error, as
// `options.field_validation` says. `bytes` must outlive the call's arena.
Result<Value> decode_body(call::Call& call, std::string_view bytes, request::Format format, const Expected& expected,
                          request::WriteOptions& options);

// An empty managedFields list resets ownership, but no typed object keeps an empty list: it is put back here.
Value with_ownership_reset(Arena& arena, const Value& typed, const Value& sent);

// The object without metadata.options (gate DeclarativeFieldManager). A manager that it declares there becomes
// `options.field_manager`. 422 for unknown keys, bad values, and a manager other than the query parameter's, naming
// metadata.options[key]. Every object that a client sends passes here, whatever its verb and subresource: in
// decode_body(), as the result of a patch, or as an apply configuration.
Result<Value> take_declared_manager(call::Call& call, const Value& object, request::WriteOptions& options);
// Whether there is something in metadata.options that take_declared_manager() would use or refuse.
bool declares_manager(const call::Call& call, const Value& object);
// The object without metadata.options, whatever they say: for what admission returns, which names no manager. Warns
// about those that `culprit` (a webhook, policies) has added.
Value without_declared_options(call::Call& call, const Value& object, std::string_view culprit);

// Who owns what this request writes: the manager that it names, else what its User-Agent says.
std::string manager_of(const call::Call& call, const request::WriteOptions& options);

// The object of a POST or PUT, and the request's options with the manager that it names.
struct WriteBody {
  Value object;
  request::WriteOptions options;
};
Result<WriteBody> read_write_body(call::Call& call, request::WriteKind kind, std::string_view bytes,
                                  request::Format format);

// --- Checks of names and namespaces, in the words of the API's handlers ---

// The request's namespace, or nothing where the object's differs (400). Cluster-scoped objects lose theirs.
Result<Value> with_request_namespace(call::Call& call, const Value& object);
// PUT and PATCH: the object's name must be the URL's. 400.
Result<Unit> check_name(const call::Call& call, const Value& object);

// Owner references that repeat: kept once, with a warning.
Value without_repeated_owners(call::Call& call, const Value& object, bool after_admission);

}  // namespace holdfast::write
