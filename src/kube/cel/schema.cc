// Schemas as declared types, escaping of names, and data typed by a schema.
#include <algorithm>

#include "base/ascii.h"
#include "base/base64.h"
#include "base/clock.h"
#include "cel/times.h"
#include "cel/types.h"
#include "cel/values.h"
#include "codec/codec.h"

namespace holdfast::cel {
namespace {

constexpr std::string_view kReservedNames[] = {
    "true", "false",  "null", "in",   "as",      "break",     "const",  "continue", "else", "for",  "function",
    "if",   "import", "let",  "loop", "package", "namespace", "return", "var",      "void", "while"};

bool is_reserved(std::string_view name) {
  return std::find(std::begin(kReservedNames), std::end(kReservedNames), name) != std::end(kReservedNames);
}
bool is_plain(char c) { return is_alnum(c) || c == '_'; }

}  // namespace

std::optional<std::string> escape_name(std::string_view property) {
  if (property.empty() || is_digit(property[0])) return std::nullopt;
  if (is_reserved(property)) return "__" + std::string(property) + "__";
  std::string out;
  for (size_t i = 0; i < property.size(); ++i) {
    const char c = property[i];
    if (c == '_' && i + 1 < property.size() && property[i + 1] == '_') {
      out += "__underscores__";
      ++i;
    } else if (c == '.') {
      out += "__dot__";
    } else if (c == '-') {
      out += "__dash__";
    } else if (c == '/') {
      out += "__slash__";
    } else if (is_plain(c)) {
      out += c;
    } else {
      return std::nullopt;
    }
  }
  return out;
}

std::optional<std::string> unescape_name(std::string_view name) {
  if (name.find("__") == std::string_view::npos) return std::string(name);
  std::string out;
  for (size_t i = 0; i < name.size();) {
    // __word__, where the word has no underscores.
    if (name.substr(i).starts_with("__")) {
      size_t end = i + 2;
      while (end < name.size() && name[end] != '_') ++end;
      if (end > i + 2 && name.substr(end).starts_with("__")) {
        const std::string_view word = name.substr(i + 2, end - i - 2);
        if (word == "underscores")
          out += "__";
        else if (word == "dot")
          out += '.';
        else if (word == "dash")
          out += '-';
        else if (word == "slash")
          out += '/';
        else if (is_reserved(word) && word.size() + 4 == name.size())
          out += word;
        else
          return std::nullopt;
        i = end + 2;
        continue;
      }
    }
    out += name[i++];
  }
  return out;
}

const Decl* Decl::find(std::string_view property) const {
  const auto at = std::lower_bound(fields.begin(), fields.end(), property,
                                   [](const DeclField& field, std::string_view name) { return field.property < name; });
  return at != fields.end() && at->property == property ? at->decl : nullptr;
}
const Decl* Decl::find_escaped(std::string_view name) const {
  for (const DeclField& field : fields) {
    if (field.name == name) return field.decl->visible ? field.decl : nullptr;
  }
  return nullptr;
}

// --- Building -------------------------------------------------------------------------------------------------------

class SchemaBuilder {
 public:
  static std::shared_ptr<const SchemaTypes> build(const Value& schema, bool resource_root) {
    std::shared_ptr<SchemaTypes> types(new SchemaTypes());
    SchemaBuilder builder(types->arena_);
    const Value* kept = types->arena_.make<Value>(deep_copy(types->arena_, schema));
    Decl* root = builder.decl(*kept, resource_root);
    builder.assign_types(*root, "selfType");
    types->root_ = root;
    return types;
  }

 private:
  explicit SchemaBuilder(Arena& arena) : arena_(arena), make_(arena) {}

  static bool flag(const Value& schema, std::string_view key) {
    const Value* value = schema.find(key);
    return value != nullptr && value->is_bool() && value->as_bool();
  }
  static std::optional<int64_t> limit(const Value& schema, std::string_view key) {
    const Value* value = schema.find(key);
    if (value == nullptr || !value->is_number()) return std::nullopt;
    const int64_t number = value->is_int() ? value->as_int() : static_cast<int64_t>(value->as_double());
    return std::max<int64_t>(number, 0);
  }

  Decl* decl(const Value& schema, bool resource_root) {
    Decl* d = arena_.make<Decl>();
    d->schema = &schema;
    d->schema_type = schema.text_at("type");
    d->nullable = flag(schema, "nullable");
    d->preserve_unknown = flag(schema, "x-kubernetes-preserve-unknown-fields");
    d->embedded_resource = flag(schema, "x-kubernetes-embedded-resource");
    if (flag(schema, "x-kubernetes-int-or-string")) {
      d->kind = Decl::Kind::IntOrString;
      d->visible = true;
      d->min_serialized_bytes = 1;
      const auto longest = limit(schema, "maxLength");
      d->max_elements = longest ? *longest * 4 : kMaxRequestBytes - 2;
      return d;
    }
    if (d->schema_type == "array") {
      list(*d, schema);
    } else if (d->schema_type == "object") {
      object(*d, schema, resource_root);
    } else if (d->schema_type == "string") {
      text(*d, schema);
    } else if (d->schema_type == "boolean") {
      scalar(*d, Decl::Kind::Boolean, 4);
    } else if (d->schema_type == "number") {
      scalar(*d, Decl::Kind::Number, 1);
    } else if (d->schema_type == "integer") {
      scalar(*d, Decl::Kind::Integer, 1);
    }
    return d;
  }

  static void scalar(Decl& d, Decl::Kind kind, int64_t bytes) {
    d.kind = kind;
    d.visible = true;
    d.min_serialized_bytes = bytes;
  }

  void list(Decl& d, const Value& schema) {
    d.kind = Decl::Kind::List;
    d.min_serialized_bytes = 2;
    const std::string_view kind = schema.text_at("x-kubernetes-list-type");
    d.list_kind = kind == "map"      ? Decl::ListKind::Keyed
                  : kind == "set"    ? Decl::ListKind::Set
                  : kind == "atomic" ? Decl::ListKind::Atomic
                                     : Decl::ListKind::Plain;
    std::vector<std::string_view> keys;
    for (const Value& key : schema.items_at("x-kubernetes-list-map-keys")) {
      if (key.is_string()) keys.push_back(key.as_string());
    }
    d.list_keys = arena_.copy(std::span<const std::string_view>(keys));
    const Value* items = schema.find("items");
    if (items == nullptr || !items->is_map()) return;
    d.element = decl(*items, flag(*items, "x-kubernetes-embedded-resource"));
    d.visible = d.element->visible;
    if (!d.visible) return;
    const auto most = limit(schema, "maxItems");
    d.max_elements = most ? *most : (kMaxRequestBytes - 2) / (d.element->min_serialized_bytes + 1);
  }

  void object(Decl& d, const Value& schema, bool resource_root) {
    d.min_serialized_bytes = 2;
    d.map_correlates = true;
    const Value* additional = schema.find("additionalProperties");
    const Value* properties = schema.find("properties");
    d.has_properties = resource_root || d.embedded_resource ||
                       (properties != nullptr && properties->is_map() && properties->count() > 0);
    if (additional != nullptr && additional->is_map()) {
      Decl* element = decl(*additional, flag(*additional, "x-kubernetes-embedded-resource"));
      d.element = element;
      if (!d.has_properties) {
        d.kind = Decl::Kind::Map;
        d.visible = element->visible;
        if (!d.visible) return;
        const auto most = limit(schema, "maxProperties");
        d.max_elements = most ? *most : (kMaxRequestBytes - 2) / (element->min_serialized_bytes + 6);
        return;
      }
    }
    d.kind = Decl::Kind::Object;
    d.visible = true;
    std::vector<DeclField> fields;
    if (properties != nullptr && properties->is_map()) {
      for (const Member& member : properties->members()) {
        if (resource_root && (member.key == "apiVersion" || member.key == "kind" || member.key == "metadata")) continue;
        fields.push_back({member.key, {}, decl(member.value, flag(member.value, "x-kubernetes-embedded-resource"))});
      }
    }
    if (resource_root) {
      Decl* name = arena_.make<Decl>();
      name->schema_type = "string";
      name->kind = Decl::Kind::String;
      name->visible = true;
      name->min_serialized_bytes = 2;
      name->max_elements = kMaxRequestBytes - 2;
      name->schema = arena_.make<Value>(Value::empty_map());
      Decl* metadata = arena_.make<Decl>();
      metadata->schema_type = "object";
      metadata->kind = Decl::Kind::Object;
      metadata->visible = metadata->has_properties = true;
      metadata->min_serialized_bytes = 2;
      metadata->schema = name->schema;
      const DeclField names[] = {{"generateName", "generateName", name}, {"name", "name", name}};
      metadata->fields = arena_.copy(std::span<const DeclField>(names));
      fields.push_back({"apiVersion", "apiVersion", name});
      fields.push_back({"kind", "kind", name});
      fields.push_back({"metadata", "metadata", metadata});
    }
    const auto required = schema.items_at("required");
    for (DeclField& field : fields) {
      if (const std::optional<std::string> escaped = escape_name(field.property))
        field.name = *escaped == field.property ? field.property : arena_.copy(*escaped);
      const bool is_required = std::any_of(required.begin(), required.end(), [&](const Value& name) {
        return name.is_string() && name.as_string() == field.property;
      });
      const Value* fallback = field.decl->schema->find("default");
      if (field.decl->visible && is_required && (fallback == nullptr || fallback->is_null()))
        d.min_serialized_bytes += static_cast<int64_t>(field.property.size()) + field.decl->min_serialized_bytes + 4;
    }
    std::sort(fields.begin(), fields.end(),
              [](const DeclField& a, const DeclField& b) { return a.property < b.property; });
    d.fields = arena_.copy(std::span<const DeclField>(fields));
  }

  void text(Decl& d, const Value& schema) {
    const std::string_view format = schema.text_at("format");
    const auto longest = limit(schema, "maxLength");
    constexpr int64_t kAnyLength = kMaxRequestBytes - 2;
    if (format == "byte") {
      scalar(d, Decl::Kind::Bytes, 2);
      d.max_elements = longest.value_or(kAnyLength);
    } else if (format == "duration") {
      scalar(d, Decl::Kind::Duration, 3);
      d.max_elements = 32;
    } else if (format == "date") {
      scalar(d, Decl::Kind::Date, 12);
      d.max_elements = 12;
    } else if (format == "date-time") {
      scalar(d, Decl::Kind::DateTime, 21);
      d.max_elements = 32;
    } else {
      scalar(d, Decl::Kind::String, 2);
      const auto allowed = schema.items_at("enum");
      if (longest) {
        d.max_elements = *longest * 4;
      } else if (!allowed.empty()) {
        for (const Value& value : allowed) {
          if (value.is_string()) d.max_elements = std::max<int64_t>(d.max_elements, value.count());
        }
      } else {
        d.max_elements = kAnyLength;
      }
    }
  }

  // Like upstream, objects are named by their path.
  const Type* assign_types(Decl& d, const std::string& name) {
    if (d.type != nullptr) return d.type;
    if (!d.visible) {
      // Rules below an invisible part have no other type to use.
      for (const DeclField& field : d.fields)
        assign_types(const_cast<Decl&>(*field.decl), name + "." + std::string(field.name));
      if (d.element != nullptr) assign_types(const_cast<Decl&>(*d.element), name + ".@idx");
      return nullptr;
    }
    switch (d.kind) {
      case Decl::Kind::None:
        break;
      case Decl::Kind::IntOrString:
        d.type = dyn_type();
        break;
      case Decl::Kind::Boolean:
        d.type = bool_type();
        break;
      case Decl::Kind::Number:
        d.type = double_type();
        break;
      case Decl::Kind::Integer:
        d.type = int_type();
        break;
      case Decl::Kind::String:
        d.type = string_type();
        break;
      case Decl::Kind::Bytes:
        d.type = bytes_type();
        break;
      case Decl::Kind::Duration:
        d.type = duration_type();
        break;
      case Decl::Kind::Date:
      case Decl::Kind::DateTime:
        d.type = timestamp_type();
        break;
      case Decl::Kind::List:
        d.type = make_.list(assign_types(const_cast<Decl&>(*d.element), name + ".@idx"));
        break;
      case Decl::Kind::Map:
        d.type = make_.map(string_type(), assign_types(const_cast<Decl&>(*d.element), name + ".@elem"));
        break;
      case Decl::Kind::Object: {
        std::vector<FieldType> fields;
        for (const DeclField& field : d.fields) {
          const Type* type = assign_types(const_cast<Decl&>(*field.decl), name + "." + std::string(field.name));
          if (type != nullptr && !field.name.empty()) fields.push_back({field.name, type});
        }
        d.type = make_.object(name, fields, false, &d);
        break;
      }
    }
    return d.type;
  }

  Arena& arena_;
  TypeMaker make_;
};

std::shared_ptr<const SchemaTypes> SchemaTypes::build(const Value& schema, bool resource_root) {
  return SchemaBuilder::build(schema, resource_root);
}
SchemaTypes::~SchemaTypes() = default;

// --- Data -----------------------------------------------------------------------------------------------------------

namespace {

// strfmt.ParseDuration: Go's durations, and numbers of days and weeks in words.
std::optional<int64_t> format_duration(std::string_view text) {
  if (const Result<int64_t> go = parse_go_duration(text)) return *go;
  size_t digits = 0;
  while (digits < text.size() && is_digit(text[digits])) ++digits;
  if (digits == 0 || digits > 18) return std::nullopt;
  const int64_t count = std::stoll(std::string(text.substr(0, digits)));
  std::string_view unit = text.substr(digits);
  while (!unit.empty() && unit[0] == ' ') unit.remove_prefix(1);
  struct Unit {
    std::initializer_list<std::string_view> names;
    int64_t nanoseconds;
  };
  static const Unit kUnits[] = {{{"ns", "nano"}, 1},
                                {{"us", "µs", "micro"}, 1000},
                                {{"ms", "milli"}, 1'000'000},
                                {{"s", "sec"}, 1'000'000'000},
                                {{"m", "min"}, 60'000'000'000},
                                {{"h", "hr", "hour"}, 3'600'000'000'000},
                                {{"d", "day"}, 86'400'000'000'000},
                                {{"w", "wk", "week"}, 604'800'000'000'000}};
  for (const Unit& known : kUnits) {
    for (const std::string_view name : known.names) {
      if (unit == name || unit == std::string(name) + "s") return count * known.nanoseconds;
    }
  }
  return std::nullopt;
}

}  // namespace

Val from_data(Arena& arena, const Value& value, const Decl* decl) {
  if (decl == nullptr) return from_data(arena, value);
  const Decl& d = *decl;
  if (value.is_null()) {
    return d.nullable ? Val::null() : Val::error("invalid data, got null for schema with nullable=false");
  }
  const auto wrong = [&](std::string_view wanted) {
    return error(arena,
                 "invalid data, expected " + std::string(wanted) + ", got " + std::string(codec::go_type(value)));
  };
  if (d.kind == Decl::Kind::IntOrString) {
    if (value.is_string()) return Val::string(value.as_string());
    if (value.is_int()) return Val::integer(value.as_int());
    return Val::error("invalid data, expected XIntOrString value to be either a string or integer");
  }
  if (d.schema_type == "object") {
    if (!value.is_map()) return Val::error("invalid data, expected a map for the provided schema with type=object");
    return Rep::data(Kind::Map, value, decl);
  }
  if (d.schema_type == "array") {
    if (!value.is_list()) return Val::error("invalid data, expected an array for the provided schema with type=array");
    if (d.element == nullptr) return Val::error("invalid array type, expected Items with a non-empty Schema");
    return Rep::data(Kind::List, value, decl);
  }
  if (d.schema_type == "string") {
    if (!value.is_string()) return wrong("string");
    const std::string_view text = value.as_string();
    switch (d.kind) {
      case Decl::Kind::Duration:
        if (const auto parsed = format_duration(text)) return Rep::duration(*parsed);
        return error(
            arena, "Invalid duration " + std::string(text) + ": unable to parse " + std::string(text) + " as duration");
      case Decl::Kind::Date: {
        int64_t seconds, zone;
        int32_t nanos;
        if (text.size() == 10 && parse_rfc3339(std::string(text) + "T00:00:00Z", seconds, nanos, zone))
          return Rep::timestamp(seconds, nanos);
        return error(arena, "Invalid date formatted string " + std::string(text) + ": parsing time \"" +
                                std::string(text) + "\" as \"2006-01-02\": cannot parse \"" + std::string(text) +
                                "\" as \"2006\"");
      }
      case Decl::Kind::DateTime: {
        int64_t seconds, zone;
        int32_t nanos;
        std::string upper(text);
        for (char& c : upper) {
          if (c == 't' || c == 'z') c = static_cast<char>(c - 32);
        }
        if (parse_rfc3339(upper, seconds, nanos, zone)) return Rep::timestamp(seconds, nanos, zone);
        return error(arena, "Invalid date-time formatted string " + std::string(text) + ": invalid date-time");
      }
      case Decl::Kind::Bytes: {
        const auto decoded = base64_decode(text);
        if (!decoded)
          return error(arena, "Invalid byte formatted string " + std::string(text) + ": illegal base64 data");
        return Val::bytes(arena.copy(*decoded));
      }
      default:
        return Val::string(text);
    }
  }
  if (d.schema_type == "number") return value.is_number() ? Val::number(value.number_value()) : wrong("float");
  if (d.schema_type == "integer") return value.is_int() ? Val::integer(value.as_int()) : wrong("int");
  if (d.schema_type == "boolean") return value.is_bool() ? Val::boolean(value.as_bool()) : wrong("bool");
  if (d.preserve_unknown) return Rep::data(Kind::Preserved, value, decl);
  return error(arena,
               "invalid type, expected object, array, number, integer, boolean or string, or no type with "
               "x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got " +
                   std::string(d.schema_type));
}

}  // namespace holdfast::cel
