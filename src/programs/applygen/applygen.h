// Generates header-only C++ apply configurations: type-safe builders with with_x() and unset_x() for every field.
//
// The input is the catalog of built-in kinds, the OpenAPI v3 documents of a server, or CustomResourceDefinitions. Each
// becomes a Model, and a Model becomes one header per group and version.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "value/value.h"

namespace holdfast::applygen {

struct Field;

// The type of a field, item or map value.
struct Shape {
  enum class Kind : uint8_t { Bool, Int32, Int64, Double, Text, Bytes, IntOrString, Any, Struct, List, Map };
  Kind kind = Kind::Any;
  std::string package, name;           // Struct: where it is defined. An empty package means this header.
  std::vector<Shape> element;          // List and Map: exactly one.
  std::vector<std::string> list_keys;  // Keyed lists.
};

struct Field {
  std::string json_name;
  Shape shape;
  std::string default_text;  // C++ literal of the declared default of a list key; empty if there is none.
  std::string description;   // Becomes a comment.
};

struct Struct {
  std::string name;
  std::vector<Field> fields;
  std::string description;  // Becomes a comment.

  // Kinds only.
  std::string group, version, plural;  // `name` is the kind.
  bool is_kind = false;
  bool namespaced = true;
  std::string crd_schema;  // openAPIV3Schema as JSON; empty for built-in kinds.
};

// One header: namespace, and structs in any order.
struct Package {
  std::string name;  // "apps_v1": the namespace and the file name.
  std::vector<Struct> structs;
};

// All built-in kinds.
std::vector<Package> packages_of_catalog();
// One served version per package. BadRequest if the document is not a CustomResourceDefinition.
Result<std::vector<Package>> packages_of_crd(const Value& definition);
// A document of /openapi/v3/apis/GROUP/VERSION. Types of built-in packages are referenced, not repeated.
Result<std::vector<Package>> packages_of_openapi(const Value& document);

// The header's text, formatted. `include_prefix` precedes the client's headers and those of other packages: "" inside
// this repository, "holdfast/" with the installed library.
std::string header_of(const Package& package, std::string_view include_prefix);

// "clusterIPs" -> "cluster_ips"
std::string snake_case(std::string_view json_name);

}  // namespace holdfast::applygen
