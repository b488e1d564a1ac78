// Generates header-only C++ apply configurations: type-safe builders with with_x() and unset_x() for every field.
//
// The input is the catalog of built-in kinds, the OpenAPI v3 documents of a server, or CustomResourceDefinitions. All
// kinds of one group and version become one Package, and a Package becomes one header.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "value/value.h"

namespace holdfast::applygen {

struct Field;

// The type of a field, item or map value.
struct Shape {
  enum class Kind : uint8_t { Bool, Int32, Int64, Double, Text, Bytes, IntOrString, Any, Struct, List, Map };
  Kind kind = Kind::Any;
  std::string package, name;   // Struct: where it is defined. An empty package means this header.
  std::vector<Shape> element;  // List and Map: exactly one.
  struct Key {
    std::string json_name;
    Kind kind = Kind::Text;
    std::string default_text;  // C++ literal of the declared default; empty if there is none.
  };
  std::vector<Key> list_keys;  // Keyed lists.
};

struct Field {
  std::string json_name;
  Shape shape;
  std::string description;  // Becomes a comment.
};

struct Struct {
  std::string name;  // Of the class; unique in its package.
  std::vector<Field> fields;
  std::string description;  // Becomes a comment.

  // Kinds only.
  std::string group, version, kind, plural;
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

// The kinds of any number of documents. Errors are BadRequest and name the kind.
class Documents {
 public:
  // The served versions. Fails if the document is not a CustomResourceDefinition.
  Result<Unit> add_crd(const Value& definition);
  // A document of /openapi/v3/apis/GROUP/VERSION. Types of built-in packages are referenced, not repeated.
  Result<Unit> add_openapi(const Value& document);

  // A package is named after the first label of its group, like built-in ones: example_v1. After the whole group if
  // that name belongs to a built-in group, or to another group among the documents: core_x_io_v1.
  Result<std::vector<Package>> packages() const;

 private:
  // One kind in one version.
  struct Source {
    std::string group, version, kind, plural;
    bool namespaced = true;
    const Value* schema = nullptr;
    const Value* document = nullptr;  // Where references are resolved; null for a CustomResourceDefinition.
    std::string reference = {};       // The name of the schema in the document.
  };
  Result<Unit> add(Source source);

  Arena arena_;
  std::deque<Value> values_;
  std::vector<Source> sources_;
};

// The header's text, formatted. `include_prefix` precedes the client's headers and those of other packages: "" inside
// this repository, "holdfast/" with the installed library.
std::string header_of(const Package& package, std::string_view include_prefix);

// "clusterIPs" -> "cluster_ips"
std::string snake_case(std::string_view json_name);

}  // namespace holdfast::applygen
