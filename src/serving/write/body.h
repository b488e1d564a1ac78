// Decodes request bodies into objects, checks them against the URL, and reports field validation errors.
#pragma once

#include <string>
#include <string_view>

#include "call/call.h"
#include "request/query.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::write {

// The expected kind of a body: that of the resource, or of its subresource.
struct Expected {
  std::string_view group, version, kind;
  const types::Type* type = nullptr;
};
Expected expected_of(const resource::Served& served);
Expected expected_of(const call::Call& call);  // Of the subresource, if it has its own kind.

// Messages of Kubernetes' decoders about the kind of a document; empty if there is no error.
//
// The document is not an object.
std::string not_an_object_error(const Value& tree);
// kind or apiVersion is not a string, or apiVersion is not a group and a version.
std::string type_meta_error(const Value& tree);
// The result of a patch is not of the expected kind. A missing kind is taken from the URL; a missing apiVersion is
// ignored.
std::string changed_kind_error(Arena& arena, const Value& tree, const Expected& expected);
// A custom object does not specify its kind. Whether it is the right one is checked by validation.
std::string missing_kind_error(const Value& tree);
// The kind is not registered; does not check whether it actually is.
std::string unregistered_kind_error(const Value& tree);

// The object as decoded and encoded by its type, not defaulted, with kind and apiVersion set, and without
// metadata.options (see take_declared_manager). Field validation errors become warnings or an error according to
// `options.field_validation`. `bytes` must outlive the call's arena.
Result<Value> decode_body(call::Call& call, std::string_view bytes, request::Format format, const Expected& expected,
                          request::WriteOptions& options);

// The first value of a tree of this type, outside of lists, maps and structs, for which the test holds; null if none.
using ScalarTest = bool (*)(types::Shape shape, const Value& scalar);
const Value* find_scalar(const types::Type& type, const Value& value, ScalarTest test);

// An empty managedFields list resets ownership, but typed objects drop empty lists: restores it.
Value with_ownership_reset(Arena& arena, const Value& typed, const Value& sent);

// The object without metadata.options (gate DeclarativeFieldManager). A manager declared there becomes
// `options.field_manager`. 422, naming metadata.options[key], for unknown keys, bad values, and a manager that differs
// from the query parameter. Applied to every object a client sends, for any verb and subresource: in decode_body(), to
// the result of a patch, or to an apply configuration.
Result<Value> take_declared_manager(call::Call& call, const Value& object, request::WriteOptions& options);
// Whether metadata.options contains anything that take_declared_manager() would use or reject.
bool declares_manager(const call::Call& call, const Value& object);
// The object with metadata.options dropped, for the result of admission, which must not declare a manager. Warns about
// options added by `culprit` (a webhook, policies).
Value without_declared_options(call::Call& call, const Value& object, std::string_view culprit);

// The field manager of this request: the one it specifies, or else one derived from its User-Agent.
std::string manager_of(const call::Call& call, const request::WriteOptions& options);

// The object of a POST or PUT, and the request's options including the manager it declares.
struct WriteBody {
  Value object;
  request::WriteOptions options;
};
Result<WriteBody> read_write_body(call::Call& call, request::WriteKind kind, std::string_view bytes,
                                  request::Format format);
// The same, with the object in the namespace of the request (see with_request_namespace).
Result<WriteBody> read_placed_body(call::Call& call, request::WriteKind kind, std::string_view bytes,
                                   request::Format format);

// --- Checks of names and namespaces, with the messages of the API's handlers ---

// The object with the request's namespace; 400 if it has a different one. Removed from cluster-scoped objects.
Result<Value> with_request_namespace(call::Call& call, const Value& object);
// PUT and PATCH: the object's name must match the URL. 400.
Result<Unit> check_name(const call::Call& call, const Value& object);

// Removes duplicate owner references, with a warning.
Value without_duplicate_owners(call::Call& call, const Value& object, bool after_admission);

}  // namespace holdfast::write
