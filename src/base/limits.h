// Upper bounds on what a client or the store can make the server use: in one place, so that a reader sees what limits
// what, and `tests/security_test.py` can check that every one of them is enforced.
//
// Limits that operators can set are flags (`docs/security.md`); these are the fixed ones.
#pragma once

#include <cstddef>
#include <cstdint>

namespace holdfast::limits {

// --- Nesting: maps and lists inside each other ---

// Of anything that is decoded: JSON, YAML, CBOR. Code that walks a tree recurses, and must fit every thread's stack.
// Kubernetes reads 10,000 levels; no real object has 100.
inline constexpr uint32_t kDecodedDepth = 1024;
// Of an object without its managedFields. The difference to kDecodedDepth is the way to FieldsV1 inside an object, so
// that whatever was stored can be read back with its managedFields in it.
inline constexpr uint32_t kObjectDepth = 1000;
// Of a field set, FieldsV1 and FieldsV2 alike: an object's own.
inline constexpr uint32_t kFieldSetDepth = kObjectDepth;
// Of Protobuf messages inside each other.
inline constexpr uint32_t kProtobufDepth = 500;

// --- Requests ---

// A body, as Kubernetes has it: 413 beyond.
inline constexpr size_t kBodyBytes = 3 << 20;
// Request line and headers together: 431 beyond.
inline constexpr size_t kHeaderBytes = 1 << 20;
// Streams that one HTTP/2 connection has open, and those that it may reset beyond the ones that ended well.
inline constexpr uint32_t kStreams = 100;
inline constexpr uint32_t kStreamResets = 1000;

// --- Time, in seconds ---

inline constexpr uint32_t kHandshakeSeconds = 10;
inline constexpr uint32_t kHeaderSeconds = 32;
inline constexpr uint32_t kIdleSeconds = 90;
// A peer that neither reads nor sends what it is expected to.
inline constexpr uint32_t kStalledSeconds = 60;
// A request that is not a watch, unless it asks for less.
inline constexpr uint32_t kRequestSeconds = 60;

// --- Documents ---

// What merging members given twice may copy, in bytes of the tree, for each byte of the document that has them.
inline constexpr size_t kRepeatedBytesPerByte = 64;

// Paths of unknown fields in one response: each may be long, and there may be many.
inline constexpr size_t kReportedBytes = 1 << 20;
// Undecodable objects that the error of one list names, as in Kubernetes.
inline constexpr size_t kReportedUnreadable = 100;

// Items of a CBOR list and members of a CBOR map, as in Kubernetes; other formats are limited by their bytes.
inline constexpr uint64_t kCborItems = 2147483647;
inline constexpr uint64_t kCborMembers = 2097152;

// --- Responses of other servers ---

// A ConversionReview holds whole pages of objects.
inline constexpr size_t kWebhookAnswerBytes = 64 << 20;
// Discovery and OpenAPI documents of an aggregated server.
inline constexpr size_t kAggregatedDocumentBytes = 16 << 20;
// A body on its way to an aggregated server, which has limits of its own.
inline constexpr size_t kProxiedBodyBytes = 16 << 20;

// --- Memory ---

// The trees and texts of one request, and of all requests together. Over the first a request is answered 413, over the
// second 429.
inline constexpr size_t kRequestBytes = size_t{512} << 20;
inline constexpr size_t kAllRequestsBytes = size_t{2} << 30;

// --- Credentials ---

// A bearer token, looked at before anything of it is decoded.
inline constexpr size_t kTokenBytes = 16 << 10;

// --- Metrics ---

// Series of one metric. Whatever exceeds them is counted under "other".
inline constexpr size_t kMetricSeries = 10'000;

// --- RBAC ---

// Combinations of a rule's verbs, groups, resources and names that are checked when somebody writes a role. A role with
// more of them counts as one that grants more than its writer has.
inline constexpr size_t kRuleCombinations = 1 << 20;
// Missing rules that one response names.
inline constexpr size_t kMissingRules = 1000;

// --- Patches ---

// Operations of one JSON patch, as Kubernetes has it.
inline constexpr size_t kJsonPatchOperations = 10000;
// What the `copy` operations of one JSON patch may add in total, so that it cannot double a document again and again.
inline constexpr size_t kJsonPatchCopiedBytes = 3 << 20;

}  // namespace holdfast::limits
