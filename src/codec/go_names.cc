#include "codec/go_names.h"

namespace holdfast::codec {

std::string_view json_kind(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::Null:
      return "null";
    case Value::Kind::Bool:
      return "bool";
    case Value::Kind::Int:
    case Value::Kind::Double:
      return "number";
    case Value::Kind::String:
      return "string";
    case Value::Kind::List:
      return "array";
    default:
      return "object";
  }
}

std::string_view go_type(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::Null:
      return "<nil>";
    case Value::Kind::Bool:
      return "bool";
    case Value::Kind::Int:
      return "int64";
    case Value::Kind::Double:
      return "float64";
    case Value::Kind::String:
      return "string";
    case Value::Kind::List:
      return "[]interface {}";
    default:
      return "map[string]interface {}";
  }
}

std::string_view go_kind(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::Bool:
      return "bool";
    case Value::Kind::Int:
      return "int64";
    case Value::Kind::Double:
      return "float64";
    case Value::Kind::String:
      return "string";
    case Value::Kind::List:
      return "slice";
    default:
      return "map";
  }
}

}  // namespace holdfast::codec
