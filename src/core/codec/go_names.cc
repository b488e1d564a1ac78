#include "codec/go_names.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "codec/text.h"

namespace holdfast::codec {
namespace {

void append_go(std::string& out, const Value& v, bool syntax) {
  switch (v.kind()) {
    case Value::Kind::Null:
      out += syntax ? "interface {}(nil)" : "<nil>";
      return;
    case Value::Kind::Bool:
      out += v.as_bool() ? "true" : "false";
      return;
    case Value::Kind::Int:
      out += std::to_string(v.as_int());
      return;
    case Value::Kind::Double:
      out += go_float_text(v.as_double());
      return;
    case Value::Kind::String:
      out += syntax ? go_quote(v.as_string()) : std::string(v.as_string());
      return;
    case Value::Kind::Raw:
      out += v.raw_json();
      return;
    case Value::Kind::List: {
      out += syntax ? "[]interface {}{" : "[";
      bool first = true;
      for (const Value& item : v.items()) {
        if (!first) out += syntax ? ", " : " ";
        first = false;
        append_go(out, item, syntax);
      }
      out += syntax ? '}' : ']';
      return;
    }
    case Value::Kind::Map: {
      std::vector<const Member*> members;
      for (const Member& m : v.members()) members.push_back(&m);
      std::sort(members.begin(), members.end(), [](const Member* a, const Member* b) { return a->key < b->key; });
      out += syntax ? "map[string]interface {}{" : "map[";
      bool first = true;
      for (const Member* m : members) {
        if (!first) out += syntax ? ", " : " ";
        first = false;
        out += syntax ? go_quote(m->key) : std::string(m->key);
        out += ':';
        append_go(out, m->value, syntax);
      }
      out += syntax ? '}' : ']';
      return;
    }
  }
}

}  // namespace

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

std::string go_text(const Value& value) {
  std::string out;
  append_go(out, value, false);
  return out;
}

std::string go_syntax(const Value& value) {
  std::string out;
  append_go(out, value, true);
  return out;
}

}  // namespace holdfast::codec
