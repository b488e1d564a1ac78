// The OpenAPI documents: v3 (an index and a document for each group-version) and v2 (one document); JSON or Protobuf.
//
// Everything is built from the types on request; nothing is cached here. Members are in the order Kubernetes
// prints them, maps sorted. A document of a group-version holds every schema that it refers to.
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

// A served resource. Custom ones bring the schema of their version as their CustomResourceDefinition writes it
// (openAPIV3Schema; null when there is none).
struct Served {
  const types::Resource* resource = nullptr;
  bool custom = false;
  const schema::Schema* schema = nullptr;
  std::span<const std::string> selectable_fields = {};  // Of a custom one: "spec.color".
};

// What another server publishes of a group version that it serves for us.
struct Remote {
  std::string path_prefix;  // "/apis/metrics.k8s.io/v1beta1/": only paths below it are taken.
  Value document;           // Its v2 document.
};

struct Source {
  std::span<const Served> resources;  // Built-in ones in the catalog's order, then custom ones.
  Gates gates;
  std::span<const Remote> remotes = {};  // In v2 alone: v3 has a document for each group version.
};

// "api/v1", "apis/apps", "apis/apps/v1", "version", ...: the documents of v3, sorted.
std::vector<std::string> v3_paths(const Source& source);
// The document at such a path as compact JSON; empty when there is none.
std::string v3_document(const Source& source, std::string_view path);
// A document of v3 as Protobuf (gnostic's openapi.v3.Document).
std::string v3_to_protobuf(const Value& document);
// A v2 document, as v3 says the same.
Value v3_from_v2(Arena& arena, const Value& v2);
// The index, given where each document is, by its path.
std::string v3_index(const std::map<std::string, std::string>& urls);

// The whole of v2 as compact JSON, and the same as Protobuf (gnostic's openapi.v2.Document).
std::string v2_document(const Source& source);
std::string v2_protobuf(const Source& source);

// Upper-case hex of the SHA-512 of a document: its hash in the index and its ETag (without quotes).
std::string document_hash(std::string_view bytes);

// The kind of a list of a custom resource's objects.
std::string list_kind_of(const types::Resource& resource);

// "com.example.v1.Widget": the name of a custom resource's schema.
std::string custom_schema_name(std::string_view group, std::string_view version, std::string_view kind);

}  // namespace holdfast::openapi
