// Upper bounds on the resources that a client or the store can make the server use: in one place, so that a reader sees
// what limits what, and `tests/security_test.py` can check that each of them is enforced.
//
// Limits that operators can set are flags (`docs/security.md`); these are fixed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace holdfast::limits {

// --- Nesting of maps and lists ---

// Anything that is decoded: JSON, YAML, CBOR. Code that walks a tree recurses, and must fit the stack of every thread.
// Kubernetes accepts 10,000 levels; real objects do not reach 100.
inline constexpr uint32_t kDecodedDepth = 1024;
// An object without its managedFields. The difference to kDecodedDepth leaves room for the path to FieldsV1 inside an
// object, so that whatever was stored can be read back with its managedFields.
inline constexpr uint32_t kObjectDepth = 1000;
// A field set, FieldsV1 and FieldsV2 alike: as deep as an object.
inline constexpr uint32_t kFieldSetDepth = kObjectDepth;
// Nested Protobuf messages.
inline constexpr uint32_t kProtobufDepth = 500;

// --- Requests ---

// Request body, the same as in Kubernetes; 413 beyond.
inline constexpr size_t kBodyBytes = 3 << 20;
// Request line and headers together; 431 beyond.
inline constexpr size_t kHeaderBytes = 1 << 20;
// Open streams per HTTP/2 connection, and streams it may reset in excess of those that completed.
inline constexpr uint32_t kStreams = 100;
inline constexpr uint32_t kStreamResets = 1000;

// --- Time, in seconds ---

inline constexpr uint32_t kHandshakeSeconds = 10;
inline constexpr uint32_t kHeaderSeconds = 32;
inline constexpr uint32_t kIdleSeconds = 90;
// A peer that neither reads nor sends when it should.
inline constexpr uint32_t kStalledSeconds = 60;
// A request other than a watch, unless it asks for less.
inline constexpr uint32_t kRequestSeconds = 60;

// --- Documents ---

// Bytes of tree that merging duplicate members may copy, per byte of the document that contains them.
inline constexpr size_t kRepeatedBytesPerByte = 64;

// Paths of unknown fields in one response: there may be many, and each may be long.
inline constexpr size_t kReportedBytes = 1 << 20;
// Undecodable objects named in the error of one list, the same as in Kubernetes.
inline constexpr size_t kReportedUnreadable = 100;

// Items of a CBOR list and members of a CBOR map, the same as in Kubernetes; other formats are limited by their bytes.
inline constexpr uint64_t kCborItems = 2147483647;
inline constexpr uint64_t kCborMembers = 2097152;

// --- Responses of other servers ---

// A ConversionReview contains whole pages of objects.
inline constexpr size_t kWebhookAnswerBytes = 64 << 20;
// A message of an external signer, as grpc-go has it: some thousand keys.
inline constexpr size_t kSignerAnswerBytes = 4 << 20;
// Discovery and OpenAPI documents of an aggregated server.
inline constexpr size_t kAggregatedDocumentBytes = 16 << 20;
// A body forwarded to an aggregated server, which has its own limits.
inline constexpr size_t kProxiedBodyBytes = 16 << 20;

// --- Memory ---

// The trees and texts of one request, and of all requests together. A request above the first fails with 413, above the
// second with 429.
inline constexpr size_t kRequestBytes = size_t{512} << 20;
inline constexpr size_t kAllRequestsBytes = size_t{2} << 30;

// --- Credentials ---

// A bearer token; checked before any of it is decoded.
inline constexpr size_t kTokenBytes = 16 << 10;
// Requests that wait for an external signer's keys, because their token names one that is not known. To further ones it
// stays unknown.
inline constexpr size_t kWaitingForKeys = 1000;

// --- Metrics ---

// Series per metric. The rest are counted under "other".
inline constexpr size_t kMetricSeries = 10'000;

// --- RBAC ---

// Combinations of a rule's verbs, groups, resources and names that are checked when a user writes a role. A role with
// more is treated as granting permissions that the user does not have.
inline constexpr size_t kRuleCombinations = 1 << 20;
// Missing rules listed in one response.
inline constexpr size_t kMissingRules = 1000;

// --- Patches ---

// Operations per JSON patch, the same as in Kubernetes.
inline constexpr size_t kJsonPatchOperations = 10000;
// What the `copy` operations of one JSON patch may add in total, so that they cannot double a document repeatedly.
inline constexpr size_t kJsonPatchCopiedBytes = 3 << 20;

}  // namespace holdfast::limits
