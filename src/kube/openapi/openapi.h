// The OpenAPI documents: v3 (an index and one document per group version) and v2 (a single document), as JSON or
// Protobuf.
//
// Documents are built from the types on request; nothing is cached here. Members are in the order in which Kubernetes
// prints them, maps sorted. A group version's document contains every schema that it refers to.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/gates.h"
#include "schema/schema.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::openapi {

// A served resource. Custom resources come with the source schema of their version from the CustomResourceDefinition
// (openAPIV3Schema; null if there is none).
struct Served {
  const types::Resource* resource = nullptr;
  bool custom = false;
  const schema::Schema* schema = nullptr;
  std::span<const std::string> selectable_fields = {};  // Of a custom resource: "spec.color".
};

// The part of another server's document for a group version that it serves on our behalf.
struct Remote {
  std::string path_prefix;  // "/apis/metrics.k8s.io/v1beta1/": only paths below it are used.
  Value document;           // Its v2 document.
};

struct Source {
  std::span<const Served> resources;  // Built-in resources in the catalog's order, then custom ones.
  Gates gates;
  std::span<const Remote> remotes = {};  // For v2 only: v3 has a document per group version.
};

// The paths of all v3 documents, sorted: "api/v1", "apis/apps", "apis/apps/v1", "version", ...
std::vector<std::string> v3_paths(const Source& source);
// The document at such a path as compact JSON; empty if there is none.
std::string v3_document(const Source& source, std::string_view path);
// A v3 document as Protobuf (gnostic's openapi.v3.Document).
std::string v3_to_protobuf(const Value& document);
// Converts a v2 document to v3.
Value v3_from_v2(Arena& arena, const Value& v2);
// The index; `urls` maps each document's path to its URL.
std::string v3_index(const std::map<std::string, std::string>& urls);

// The v2 document as compact JSON, and as Protobuf (gnostic's openapi.v2.Document).
std::string v2_document(const Source& source);
std::string v2_protobuf(const Source& source);

// Upper-case hex SHA-512 of a document: its hash in the index and its ETag (without quotes).
std::string document_hash(std::string_view bytes);

// The list kind of a custom resource.
std::string list_kind_of(const types::Resource& resource);

// "com.example.v1.Widget": the name of a custom resource's schema.
std::string custom_schema_name(std::string_view group, std::string_view version, std::string_view kind);

}  // namespace holdfast::openapi
