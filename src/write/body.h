// Request bodies as objects: decoded, checked against what the URL says, with what field validation found.
#pragma once

#include <optional>
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

// Why a document that a patch made cannot be read as what is expected, by its kind and apiVersion, in the words of
// Kubernetes' decoder. Empty: it can (a missing kind is taken from the URL, a missing apiVersion is not looked at).
std::string why_another_kind(const Value& tree, const Expected& expected);
// What Go says of a document that is no object at all.
std::string why_no_object(const Value& tree);
// The same for custom resources, which must name their kind; which one is the validation's to tell.
std::string why_no_kind(const Value& tree);

// The object as the type's decoder and encoder would leave it, not defaulted, kind and apiVersion set. Strict findings
// become warnings or the error, as `validation` says. `bytes` must outlive the call's arena.
Result<Value> decode_body(call::Call& call, std::string_view bytes, request::Format format, const Expected& expected,
                          request::FieldValidation validation);

// An empty managedFields list resets ownership, but no typed object keeps an empty list: it is put back here.
Value with_ownership_reset(Arena& arena, const Value& typed, const Value& sent);

// metadata.options (gate DeclarativeFieldManager): taken out of the object, wherever it came from.
struct DeclaredOptions {
  Value object;                              // Without them.
  std::optional<std::string> field_manager;  // Not empty.
};
// 422 for unknown keys and bad values, naming metadata.options[key].
Result<DeclaredOptions> take_declared_options(call::Call& call, const Value& object);
// Who writes: the option, else the query parameter, else the User-Agent. 422 when the first two are both set and
// differ.
Result<std::string> effective_manager(call::Call& call, const request::WriteOptions& options,
                                      const DeclaredOptions& declared, std::string_view object_name);

// The object of a POST or PUT without metadata.options, and the request's options with the manager that counts.
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
