// Conversion of values to plain data and to the output of `holdfast cel --json-lines`.
#include <algorithm>
#include <cmath>

#include "base/base64.h"
#include "base/text.h"
#include "cel/values.h"
#include "codec/codec.h"

namespace holdfast::cel {

namespace {

void quote(std::string_view text, std::string& out) { codec::encode_json_string(text, out); }

void show(const Val& v, std::string& out) {
  Arena arena;
  const auto tagged = [&](std::string_view tag, const std::string& value) {
    out += "{\"" + std::string(tag) + "\":" + value + "}";
  };
  const auto text = [&](std::string_view tag, std::string_view value) {
    std::string quoted;
    quote(value, quoted);
    tagged(tag, quoted);
  };
  switch (v.kind()) {
    case Kind::Null:
      tagged("null", "null");
      return;
    case Kind::Bool:
      tagged("bool", v.as_bool() ? "true" : "false");
      return;
    case Kind::Int:
      tagged("int", std::to_string(v.as_int()));
      return;
    case Kind::Uint:
      tagged("uint", std::to_string(v.as_uint()));
      return;
    case Kind::Double: {
      const double d = v.as_double();
      if (std::isnan(d) || std::isinf(d)) {
        text("double", codec::go_float_text(d));
      } else {
        tagged("double", codec::float_text(d, codec::FloatText::Json));
      }
      return;
    }
    case Kind::String:
      text("string", v.text());
      return;
    case Kind::Bytes:
      text("bytes", base64_encode(v.text()));
      return;
    case Kind::Timestamp:
      text("timestamp", timestamp_text(Rep::seconds(v), Rep::nanos(v), Rep::zone(v)));
      return;
    case Kind::Duration:
      text("duration", duration_seconds_text(v.as_int()));
      return;
    case Kind::Type:
      text("type", v.text());
      return;
    case Kind::Optional:
      if (!v.has_value()) {
        tagged("none", "true");
      } else {
        std::string inner;
        show(Rep::inner(v), inner);
        tagged("some", inner);
      }
      return;
    case Kind::List: {
      out += "{\"list\":[";
      const uint64_t count = list_size(v);
      for (uint64_t i = 0; i < count; ++i) {
        if (i > 0) out += ',';
        show(list_at(arena, v, i), out);
      }
      out += "]}";
      return;
    }
    case Kind::Map: {
      std::vector<std::pair<std::string, std::string>> pairs;
      v.for_each_entry(arena, [&](const Val& key, const Val& value) {
        std::string k, x;
        show(key, k);
        show(value, x);
        pairs.emplace_back(std::move(k), std::move(x));
      });
      std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      out += "{\"map\":[";
      for (size_t i = 0; i < pairs.size(); ++i) {
        out += (i > 0 ? ",[" : "[") + pairs[i].first + "," + pairs[i].second + "]";
      }
      out += "]}";
      return;
    }
    case Kind::Object: {
      if (const std::string problems = v.object_type_errors(); !problems.empty()) {
        text("object", "type mismatch: " + problems);
        return;
      }
      std::string problem;
      const std::optional<Value> value = v.to_value(arena, &problem);
      if (!value) {
        text("object", problem);
      } else {
        std::string json;
        codec::encode_json_sorted(*value, json);
        tagged("object", json);
      }
      return;
    }
    case Kind::JsonPatch: {
      const Val::Patch& patch = v.json_patch();
      std::string inner = "{\"from\":";
      quote(patch.from, inner);
      inner += ",\"op\":";
      quote(patch.op, inner);
      inner += ",\"path\":";
      quote(patch.path, inner);
      if (patch.value != nullptr) {
        inner += ",\"value\":";
        show(*patch.value, inner);
      }
      tagged("jsonpatch", inner + "}");
      return;
    }
    default: {
      std::string name, value;
      quote(v.type_name(), name);
      // Computed quantities have no text in the reference output.
      const bool computed = Rep::is(v, OpaqueKind::Quantity) && Rep::as<QuantityOpaque>(v).computed;
      quote(v.kind() == Kind::Opaque && !computed ? opaque_text(Rep::opaque(v)) : "", value);
      tagged("opaque", "[" + name + "," + value + "]");
    }
  }
}

void type_errors(const Val& v, const std::string& path, std::string& out) {
  Arena arena;
  if (v.kind() == Kind::Object) {
    const ObjectRep& object = Rep::object(v);
    if (object.type_name != path) {
      if (!out.empty()) out += '\n';
      out += "unexpected type name " + go_quote(object.type_name) + ", expected " + go_quote(path) +
             ", which matches field name path from root Object type";
    }
    for (const auto& [name, field] : object.fields) type_errors(field, path + "." + std::string(name), out);
  } else if (v.kind() == Kind::List && !Rep::is_data(v)) {
    const uint64_t count = list_size(v);
    for (uint64_t i = 0; i < count; ++i) type_errors(list_at(arena, v, i), path, out);
  } else if (v.kind() == Kind::Map && !Rep::is_data(v)) {
    v.for_each_entry(arena, [&](const Val&, const Val& value) { type_errors(value, path, out); });
  }
}

}  // namespace

std::string Val::shown() const {
  std::string out;
  show(*this, out);
  return out;
}

std::string Val::object_type_errors() const {
  std::string out;
  type_errors(*this, std::string(type_name()), out);
  return out;
}

std::optional<Value> Val::to_value(Arena& arena, std::string* problem) const {
  const auto fail = [&](std::string message) -> std::optional<Value> {
    if (problem != nullptr) *problem = std::move(message);
    return std::nullopt;
  };
  switch (kind_) {
    case Kind::Null:
      return Value::null();
    case Kind::Bool:
      return Value::boolean(as_bool());
    case Kind::Int:
      return Value::integer(int_);
    case Kind::Uint:
      if (as_uint() > static_cast<uint64_t>(INT64_MAX)) return Value::number(static_cast<double>(as_uint()));
      return Value::integer(int_);
    case Kind::Double:
      return Value::number(as_double());
    case Kind::String:
      return Value::string(text());
    case Kind::Bytes:
      return Value::string(arena, base64_encode(text()));
    case Kind::Timestamp:
      return Value::string(arena, timestamp_text(int_, Rep::nanos(*this), zone_));
    case Kind::Duration:
      return Value::string(arena, duration_seconds_text(int_));
    case Kind::Preserved:
      return *data_;
    case Kind::List: {
      if (form_ == Form::Data) return *data_;
      const uint64_t count = list_size(*this);
      ListBuilder items(arena);
      for (uint64_t i = 0; i < count; ++i) {
        const std::optional<Value> item = list_at(arena, *this, i).to_value(arena, problem);
        if (!item) return std::nullopt;
        items.add(*item);
      }
      return items.build();
    }
    case Kind::Map: {
      if (form_ == Form::Data) return *data_;
      MapBuilder members(arena);
      for (uint64_t i = 0; i < map_->count; ++i) {
        const MapEntry& entry = map_->entries[i];
        if (!entry.key.is_string())
          return fail("map key " + go_quote(go_text(entry.key)) + " is of type " +
                      std::string(go_type_name(entry.key)) + ", not string");
        const std::optional<Value> value = entry.value.to_value(arena, problem);
        if (!value) return std::nullopt;
        members.add(entry.key.text(), *value);
      }
      return members.build();
    }
    case Kind::Object: {
      std::string why;
      std::optional<Value> value = to_json(arena, why);
      return value ? value : fail(std::move(why));
    }
    case Kind::Opaque:
      switch (opaque_->kind) {
        case OpaqueKind::Quantity:
        case OpaqueKind::Ip:
        case OpaqueKind::Cidr:
        case OpaqueKind::Url:
        case OpaqueKind::Semver:
          return Value::string(arena, opaque_text(*opaque_));
        default:
          break;
      }
      [[fallthrough]];
    default:
      return fail("a value of type " + std::string(type_name()) + " has no JSON form");
  }
}

}  // namespace holdfast::cel
