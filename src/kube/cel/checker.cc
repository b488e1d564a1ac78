// Type checking: type inference by unification, overload resolution, and cel-go's error messages.
#include <algorithm>

#include "base/ascii.h"
#include "base/go_regexp.h"
#include "cel/environment.h"

namespace holdfast::cel {

bool qualified_name(const Expr* e, std::string& out) {
  if (e->kind == ExprKind::Ident) {
    out = e->name;
    return true;
  }
  if (e->kind != ExprKind::Select || e->test_only || !qualified_name(e->operand, out)) return false;
  out += '.';
  out += e->name;
  return true;
}

const Type* named_type(TypeMaker& make, std::string_view name, bool mutation) {
  static const std::unordered_map<std::string_view, TypeRef> kTypes = {
      {"bool", bool_type()},     {"bytes", bytes_type()},
      {"double", double_type()}, {"google.protobuf.Duration", duration_type()},
      {"int", int_type()},       {"list", any_list_type()},
      {"map", any_map_type()},   {"null_type", null_type()},
      {"string", string_type()}, {"google.protobuf.Timestamp", timestamp_type()},
      {"type", type_type()},     {"uint", uint_type()},
      {"net.IP", ip_type()},     {"net.CIDR", cidr_type()}};
  if (const auto found = kTypes.find(name); found != kTypes.end()) return found->second;
  if (name == "optional_type") return make.make(TypeKind::Opaque, "optional_type", {});
  if (!mutation) return nullptr;
  if (name == "JSONPatch") return json_patch_type();
  if (name == "Object") return object_root_type();
  if (name.starts_with("Object.")) return make.object(name, {}, true, nullptr);
  return nullptr;
}

namespace {

class Checker {
 public:
  Checker(const Environment::State& environment, Arena& arena, Issues& issues)
      : environment_(environment), make_(arena), arena_(arena), issues_(issues) {}

  void run(Expr* root) {
    check(root);
    finish(root);
  }

 private:
  // --- Inference ---

  const Type* bound(const Type* t) const {
    return t->kind == TypeKind::Param && t->variable >= 0 ? bindings_[static_cast<size_t>(t->variable)] : nullptr;
  }
  void bind(const Type* variable, const Type* to) {
    trail_.emplace_back(variable->variable, bindings_[static_cast<size_t>(variable->variable)]);
    bindings_[static_cast<size_t>(variable->variable)] = to;
  }
  const Type* new_variable() {
    const auto number = static_cast<int32_t>(bindings_.size());
    bindings_.push_back(nullptr);
    Type* type = arena_.make<Type>();
    type->kind = TypeKind::Param;
    type->variable = number;
    type->name = arena_.copy("_var" + std::to_string(number));
    return type;
  }

  const Type* substitute(const Type* t, bool to_dyn) {
    if (const Type* b = bound(t)) return substitute(b, to_dyn);
    if (t->kind == TypeKind::Param) return to_dyn ? dyn_type() : t;
    if (t->parameters.empty()) return t;
    switch (t->kind) {
      case TypeKind::Opaque:
      case TypeKind::List:
      case TypeKind::Map:
      case TypeKind::Type:
        break;
      default:
        return t;
    }
    return with_parameters(t, [&](const Type* p) { return substitute(p, to_dyn); });
  }
  template <class F>
  const Type* with_parameters(const Type* t, F f) {
    const Type* changed[4];
    bool any = false;
    const size_t count = t->parameters.size();
    for (size_t i = 0; i < count; ++i) {
      changed[i] = f(t->parameters[i]);
      any |= changed[i] != t->parameters[i];
    }
    return any ? make_.make(t->kind, t->name, std::span<const TypeRef>(changed, count)) : t;
  }
  // A signature's type with inference variables in place of its parameters.
  const Type* instantiate(const Type* t, std::span<const TypeRef> names, std::span<const TypeRef> variables) {
    if (t->kind == TypeKind::Param) {
      for (size_t i = 0; i < names.size(); ++i) {
        if (names[i] == t) return variables[i];
      }
      return t;
    }
    if (t->parameters.empty()) return t;
    return with_parameters(t, [&](const Type* p) { return instantiate(p, names, variables); });
  }

  static bool dyn_or_error(const Type* t) { return is_dyn(t) || is_error(t); }

  static bool less_specific(const Type* a, const Type* b) {
    if (is_dyn(a) || a->kind == TypeKind::Param) return true;
    if (is_dyn(b) || b->kind == TypeKind::Param) return false;
    if (a->kind != b->kind) return false;
    switch (a->kind) {
      case TypeKind::Opaque:
        if (a->name != b->name || a->parameters.size() != b->parameters.size()) return false;
        [[fallthrough]];
      case TypeKind::List:
      case TypeKind::Map:
        for (size_t i = 0; i < a->parameters.size(); ++i) {
          if (!less_specific(a->parameters[i], b->parameters[i])) return false;
        }
        return true;
      case TypeKind::Type:
        return true;
      default:
        return is_same(a, b);
    }
  }
  static const Type* most_general(const Type* a, const Type* b) { return less_specific(a, b) ? a : b; }

  bool not_referenced(const Type* t, const Type* within) {
    if (is_same(t, within)) return false;
    if (within->kind == TypeKind::Param) {
      const Type* b = bound(within);
      return b == nullptr || not_referenced(t, b);
    }
    switch (within->kind) {
      case TypeKind::Opaque:
      case TypeKind::List:
      case TypeKind::Map:
      case TypeKind::Type:
        for (const Type* p : within->parameters) {
          if (!not_referenced(t, p)) return false;
        }
        return true;
      default:
        return true;
    }
  }

  // Whether the variable can be bound to `t`; `has` is set if it was already bound.
  bool valid_substitution(const Type* t, const Type* variable, bool& has) {
    has = true;
    if (t->kind == variable->kind && is_same(t, variable)) return true;
    if (const Type* b = bound(variable)) {
      if (t->kind == b->kind && is_same(t, b)) return true;
      if (assignable_inner(t, b)) {
        const Type* general = most_general(t, b);
        if (not_referenced(variable, general)) bind(variable, general);
        return true;
      }
      return false;
    }
    has = false;
    if (variable->variable >= 0 && not_referenced(variable, t)) {
      bind(variable, t);
      return true;
    }
    return false;
  }

  static bool nullable(const Type* t) {
    switch (t->kind) {
      case TypeKind::Opaque:
      case TypeKind::Struct:
      case TypeKind::Duration:
      case TypeKind::Timestamp:
      case TypeKind::Null:
        return true;
      default:
        return false;
    }
  }

  bool assignable_inner(const Type* a, const Type* b) {
    bool has = false;
    if (b->kind == TypeKind::Param) {
      if (valid_substitution(a, b, has)) return true;
      if (has) return false;
    }
    if (a->kind == TypeKind::Param) return valid_substitution(b, a, has);
    if (dyn_or_error(a) || dyn_or_error(b)) return true;
    if (a->kind == TypeKind::Null) return nullable(b);
    if (b->kind == TypeKind::Null) return nullable(a);
    switch (a->kind) {
      case TypeKind::Type:
        return b->kind == TypeKind::Type;
      case TypeKind::Opaque:
      case TypeKind::List:
      case TypeKind::Map:
        return a->kind == b->kind && a->name == b->name && assignable_all(a->parameters, b->parameters);
      default:
        return a->kind == b->kind && a->name == b->name;
    }
  }
  bool assignable_all(std::span<const TypeRef> a, std::span<const TypeRef> b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!assignable_inner(a[i], b[i])) return false;
    }
    return true;
  }
  template <class F>
  bool attempt(F f) {
    const size_t mark = trail_.size();
    if (f()) return true;
    while (trail_.size() > mark) {
      bindings_[static_cast<size_t>(trail_.back().first)] = trail_.back().second;
      trail_.pop_back();
    }
    return false;
  }
  bool assignable(const Type* a, const Type* b) {
    return attempt([&] { return assignable_inner(a, b); });
  }

  // --- Names ---

  struct Found {
    const Type* type = nullptr;  // Null if undeclared.
    std::string_view name;
  };
  Found lookup(std::string_view name) {
    if (name.starts_with('.')) name.remove_prefix(1);
    for (size_t i = scope_.size(); i > 0; --i) {
      if (scope_[i - 1].first == name) return {scope_[i - 1].second, scope_[i - 1].first};
    }
    if (const int variable = environment_.find(name); variable >= 0)
      return {environment_.types[static_cast<size_t>(variable)],
              environment_.options.variables[static_cast<size_t>(variable)].name};
    if (const Type* type = named_type(make_, name, environment_.options.mutation))
      return {make_.type_of(type), arena_.copy(name)};
    return {};
  }
  const Function* function(std::string_view name) const {
    if (name.starts_with('.')) name.remove_prefix(1);
    return find_function(name, environment_.options.mutation);
  }

  void undeclared(const Expr* e, std::string_view name) {
    issues_.add(e->offset, "undeclared reference to '" + std::string(name) + "' (in container '')");
  }
  void mismatch(int32_t offset, const Type* expected, const Type* actual) {
    issues_.add(offset, "expected type '" + type_text(expected) + "' but found '" + type_text(actual) + "'");
  }

  // --- Expressions ---

  void check(Expr* e) {
    switch (e->kind) {
      case ExprKind::Literal:
        e->type = literal_type(e->literal);
        return;
      case ExprKind::Ident:
        ident(e);
        return;
      case ExprKind::Select:
        select(e);
        return;
      case ExprKind::Call:
        call(e);
        return;
      case ExprKind::List:
        list(e);
        return;
      case ExprKind::Map:
        map(e);
        return;
      case ExprKind::Struct:
        structure(e);
        return;
      case ExprKind::Comprehension:
        comprehension(e);
        return;
      case ExprKind::Unspecified:
        e->type = error_type();
        return;
    }
  }

  static const Type* literal_type(const Val& v) {
    switch (v.kind()) {
      case Kind::Bool:
        return bool_type();
      case Kind::Int:
        return int_type();
      case Kind::Uint:
        return uint_type();
      case Kind::Double:
        return double_type();
      case Kind::String:
        return string_type();
      case Kind::Bytes:
        return bytes_type();
      default:
        return null_type();
    }
  }

  void ident(Expr* e) {
    const Found found = lookup(e->name);
    if (found.type == nullptr) {
      e->type = error_type();
      undeclared(e, e->name);
      return;
    }
    e->type = found.type;
    e->is_reference = true;
    e->reference = found.name;
  }

  void select(Expr* e) {
    if (std::string name; !e->test_only && qualified_name(e, name) &&
                          environment_.dotted_roots.contains(name.substr(0, name.find('.')))) {
      if (const Found found = lookup(name); found.type != nullptr) {
        e->type = found.type;
        e->is_reference = true;
        e->reference = found.name;
        return;
      }
    }
    const Type* type = selected(e, e->operand, e->name, false);
    e->type = substitute(e->test_only ? bool_type() : type, false);
  }

  const Type* selected(const Expr* e, Expr* operand, std::string_view field, bool optional) {
    check(operand);
    const Type* type = substitute(operand->type, false);
    const bool of_optional = is_optional(type);
    if (of_optional) type = type->parameters.empty() ? dyn_type() : type->parameters[0];
    const Type* result = error_type();
    switch (type->kind) {
      case TypeKind::Map:
        result = type->parameters[1];
        break;
      case TypeKind::Struct:
        if (const Type* found = field_type(e->offset, type, field)) result = found;
        break;
      case TypeKind::Param:
        assignable(dyn_type(), type);
        result = dyn_type();
        break;
      default:
        if (!dyn_or_error(type))
          issues_.add(e->offset, "type '" + type_text(type) + "' does not support field selection");
        result = dyn_type();
    }
    return of_optional || optional ? make_.optional(result) : result;
  }

  static bool has_field(const Type* type, std::string_view field) {
    return std::any_of(type->fields.begin(), type->fields.end(), [&](const FieldType& f) { return f.name == field; });
  }

  const Type* field_type(int32_t offset, const Type* type, std::string_view field) {
    if (type->any_field) return dyn_type();
    if (type->opaque) {
      issues_.add(offset, "unexpected failed resolution of '" + std::string(type->name) + "'");
      return nullptr;
    }
    for (const FieldType& known : type->fields) {
      if (known.name == field) return known.type;
    }
    issues_.add(offset, "undefined field '" + std::string(field) + "'");
    return nullptr;
  }

  void call(Expr* e) {
    if (e->name == op::kOptSelect) {
      const Type* type = selected(e, e->args[0], e->args[1]->literal.text(), true);
      e->type = substitute(type, false);
      e->args[1]->type = string_type();
      e->function = function(op::kOptSelect);
      static const Overload* const kSelect[] = {&find_function(op::kOptSelect, false)->overloads[0]};
      e->overloads = kSelect;
      return;
    }
    for (Expr* arg : e->args) check(arg);
    if (!e->member) {
      const Function* f = function(e->name);
      if (f == nullptr) {
        undeclared(e, e->name);
        e->type = error_type();
        return;
      }
      resolve(e, f, nullptr);
      return;
    }
    if (std::string name; qualified_name(e->operand, name)) {
      name += '.';
      name += e->name;
      if (const Function* f = function(name)) {
        e->member = false;
        e->operand = nullptr;
        e->name = f->name;
        resolve(e, f, nullptr);
        return;
      }
    }
    check(e->operand);
    const Function* f = function(e->name);
    if (f == nullptr) {
      e->type = error_type();
      undeclared(e, e->name);
      return;
    }
    resolve(e, f, e->operand);
  }

  void resolve(Expr* e, const Function* f, const Expr* target) {
    e->function = f;
    std::vector<TypeRef> args;
    if (target != nullptr) args.push_back(target->type);
    for (const Expr* arg : e->args) args.push_back(arg->type);
    if (f->name == op::kAnd || f->name == op::kOr) {
      bool good = true;
      for (size_t i = 0; i < args.size(); ++i) {
        if (!assignable(args[i], bool_type())) {
          mismatch(e->args[i]->offset, bool_type(), args[i]);
          good = false;
        }
      }
      e->type = good ? bool_type() : error_type();
      keep_overloads(e, {&f->overloads[0]});
      return;
    }
    const Type* result = nullptr;
    std::vector<const Overload*> fitting;
    std::vector<TypeRef> candidate;
    for (const Overload& overload : f->overloads) {
      if (overload.member != (target != nullptr)) continue;
      const Type* overload_result = overload.result;
      std::span<const TypeRef> wanted = overload.args;
      if (!overload.parameters.empty()) {
        const Type* variables[4];
        for (size_t i = 0; i < overload.parameters.size(); ++i) variables[i] = new_variable();
        const std::span<const TypeRef> fresh(variables, overload.parameters.size());
        overload_result = instantiate(overload.result, overload.parameters, fresh);
        candidate.clear();
        for (const Type* arg : overload.args) candidate.push_back(instantiate(arg, overload.parameters, fresh));
        wanted = candidate;
      }
      if (!attempt([&] { return assignable_all(args, wanted); })) continue;
      fitting.push_back(&overload);
      const Type* type = substitute(overload_result, false);
      if (result == nullptr) {
        result = type;
      } else if (!is_dyn(result) && !is_same(type, result)) {
        result = dyn_type();
      }
    }
    if (result == nullptr) {
      std::string signature;
      size_t i = 0;
      if (target != nullptr) signature = type_text(substitute(args[i++], true)) + ".";
      signature += "(";
      for (bool first = true; i < args.size(); ++i, first = false)
        signature += (first ? "" : ", ") + type_text(substitute(args[i], true));
      issues_.add(e->offset,
                  "found no matching overload for '" + std::string(f->name) + "' applied to '" + signature + ")'");
      e->type = error_type();
      return;
    }
    e->type = result;
    keep_overloads(e, fitting);
  }
  void keep_overloads(Expr* e, const std::vector<const Overload*>& overloads) {
    e->overloads = arena_.copy(std::span<const Overload* const>(overloads));
  }

  // Literals of mixed types are dyn here; the validator rejects them except as arguments of format().
  const Type* join(const Type* previous, const Type* current) {
    if (previous == nullptr) return current;
    return assignable(previous, current) ? most_general(previous, current) : dyn_type();
  }
  // The type inside the optional required by '?'.
  const Type* unwrapped(const Expr* e) {
    const Type* type = e->type;
    if (is_optional(type)) return type->parameters.empty() ? dyn_type() : type->parameters[0];
    if (!is_dyn(type)) mismatch(e->offset, make_.optional(type), type);
    return type;
  }

  void list(Expr* e) {
    const Type* element = nullptr;
    for (size_t i = 0; i < e->args.size(); ++i) {
      check(e->args[i]);
      const bool optional = !e->optionals.empty() && e->optionals[i];
      const Type* type = optional ? unwrapped(e->args[i]) : e->args[i]->type;
      element = join(element, type);
    }
    e->type = make_.list(element == nullptr ? new_variable() : element);
  }

  void map(Expr* e) {
    const Type* key = nullptr;
    const Type* value = nullptr;
    for (const Entry& entry : e->entries) {
      check(entry.key_expr);
      key = join(key, entry.key_expr->type);
      check(entry.value);
      value = join(value, entry.optional ? unwrapped(entry.value) : entry.value->type);
    }
    if (key == nullptr) {
      key = new_variable();
      value = new_variable();
    }
    e->type = make_.map(key, value);
  }

  void structure(Expr* e) {
    const Found found = lookup(e->name);
    if (found.type == nullptr) {
      undeclared(e, e->name);
      e->type = error_type();
      return;
    }
    const Type* result = error_type();
    e->reference = found.name;
    const Type* declared = nullptr;
    if (found.type->kind != TypeKind::Error) {
      if (found.type->kind != TypeKind::Type) {
        issues_.add(e->offset, "'" + std::string(found.type->name) + "' is not a type");
      } else {
        declared = found.type->parameters[0];
        if (declared->kind == TypeKind::Struct) {
          result = declared;
        } else {
          issues_.add(e->offset, "'" + std::string(declared->name) + "' is not a message type");
          declared = nullptr;
        }
      }
    }
    e->type = result;
    for (const Entry& entry : e->entries) {
      check(entry.value);
      const Type* field = nullptr;
      if (declared == json_patch_type() && !has_field(declared, entry.field)) {
        // Upstream's provider accepts every field of a patch; unknown ones have no type.
        const Type* value = substitute(entry.value->type, false);
        if (!dyn_or_error(value) && value->kind != TypeKind::Param)
          issues_.add(entry.offset, "expected type of field '" + std::string(entry.field) +
                                        "' is '' but provided type is '" + type_text(value) + "'");
        continue;
      }
      if (declared != nullptr) field = field_type(entry.offset, declared, entry.field);
      if (declared == nullptr)
        issues_.add(entry.offset, "unexpected failed resolution of '" + std::string(found.name) + "'");
      if (field == nullptr) field = error_type();
      const Type* value = entry.optional ? unwrapped(entry.value) : entry.value->type;
      if (!assignable(field, value))
        issues_.add(entry.offset, "expected type of field '" + std::string(entry.field) + "' is '" + type_text(field) +
                                      "' but provided type is '" + type_text(value) + "'");
    }
  }

  void comprehension(Expr* e) {
    check(e->range);
    check(e->init);
    const Type* range = substitute(e->range->type, false);
    const Type* accumulator = e->init->type;
    const size_t outer = scope_.size();
    scope_.emplace_back(e->accumulator, accumulator);
    const Type* first = nullptr;
    const Type* second = nullptr;
    const bool two = !e->variable2.empty();
    switch (range->kind) {
      case TypeKind::List:
        first = two ? int_type() : range->parameters[0];
        second = range->parameters[0];
        break;
      case TypeKind::Map:
        first = range->parameters[0];
        second = range->parameters[1];
        break;
      case TypeKind::Dyn:
      case TypeKind::Error:
      case TypeKind::Param:
        assignable(dyn_type(), range);
        first = second = dyn_type();
        break;
      default:
        issues_.add(e->range->offset, "expression of type '" + type_text(range) +
                                          "' cannot be range of a comprehension (must be list, map, or dynamic)");
        first = second = error_type();
    }
    const size_t inner = scope_.size();
    scope_.emplace_back(e->variable, first);
    if (two) scope_.emplace_back(e->variable2, second);
    check(e->condition);
    assert_type(e->condition, bool_type());
    check(e->step);
    assert_type(e->step, accumulator);
    scope_.resize(inner);
    check(e->result);
    scope_.resize(outer);
    e->type = substitute(e->result->type, false);
  }
  void assert_type(const Expr* e, const Type* type) {
    if (!assignable(type, e->type)) mismatch(e->offset, type, e->type);
  }

  // Replaces inferred types by their final ones, with dyn where nothing is known.
  void finish(Expr* e) {
    if (e == nullptr) return;
    if (e->type != nullptr) e->type = substitute(e->type, true);
    if (!(e->kind == ExprKind::Select && e->is_reference)) finish(e->operand);
    for (Expr* arg : e->args) finish(arg);
    for (const Entry& entry : e->entries) {
      finish(entry.key_expr);
      finish(entry.value);
    }
    for (Expr* part : {e->range, e->init, e->condition, e->step, e->result}) finish(part);
  }

  const Environment::State& environment_;
  TypeMaker make_;
  Arena& arena_;
  Issues& issues_;
  std::vector<std::pair<std::string_view, TypeRef>> scope_;
  std::vector<TypeRef> bindings_;
  std::vector<std::pair<int32_t, TypeRef>> trail_;
};

}  // namespace

bool check(const Environment::State& environment, Arena& arena, Expr* root, Issues& issues) {
  Checker(environment, arena, issues).run(root);
  return issues.empty();
}

// --- Validators -----------------------------------------------------------------------------------------------------

namespace {

class Validator {
 public:
  Validator(Arena& arena, Issues& issues) : arena_(arena), issues_(issues) {}

  void visit(const Expr* e, bool in_format) {
    if (e == nullptr) return;
    if (e->kind == ExprKind::Call) {
      literal_argument(e);
      if (e->name == "format") {
        if (e->member) format_call(e);
        in_format = true;
      }
    } else if (e->kind == ExprKind::List && !in_format) {
      mixed_list(e);
    } else if (e->kind == ExprKind::Map && !in_format) {
      mixed_map(e);
    }
    if (!(e->kind == ExprKind::Select && e->is_reference)) visit(e->operand, in_format);
    for (const Expr* arg : e->args) visit(arg, in_format);
    for (const Entry& entry : e->entries) {
      visit(entry.key_expr, in_format);
      visit(entry.value, in_format);
    }
    for (const Expr* part : {e->range, e->init, e->condition, e->step, e->result}) visit(part, in_format);
  }

 private:
  void literal_argument(const Expr* e) {
    if (e->args.empty() || e->args[0]->kind != ExprKind::Literal) return;
    const Val& literal = e->args[0]->literal;
    bool bad = false;
    if (e->name == "duration") {
      bad = literal.is_null() || convert_to_duration(arena_, literal).is_error();
    } else if (e->name == "timestamp") {
      bad = literal.is_null() || convert_to_timestamp(arena_, literal).is_error();
    } else if (e->name == "matches") {
      // In the global form this is the text, not the pattern; upstream compiles it anyway.
      bad = literal.is_string() && !go_regexp_error(literal.text()).empty();
    } else {
      return;
    }
    if (bad) issues_.add(e->args[0]->offset, "invalid " + std::string(e->name) + " argument");
  }

  void mismatch(const Expr* at, const Type* expected, const Type* actual) {
    issues_.add(at->offset, "expected type '" + type_text(expected) + "' but found '" + type_text(actual) + "'");
  }
  static const Type* inside(const Type* t) { return t->parameters.empty() ? dyn_type() : t->parameters[0]; }

  void mixed_list(const Expr* e) {
    const Type* first = nullptr;
    for (size_t i = 0; i < e->args.size(); ++i) {
      const Type* type = e->args[i]->type;
      if (!e->optionals.empty() && e->optionals[i]) type = inside(type);
      if (first == nullptr) {
        first = type;
      } else if (!is_same(first, type, false)) {
        mismatch(e->args[i], first, type);
        return;
      }
    }
  }
  void mixed_map(const Expr* e) {
    const Type* key = nullptr;
    const Type* value = nullptr;
    for (const Entry& entry : e->entries) {
      const Type* k = entry.key_expr->type;
      const Type* v = entry.optional ? inside(entry.value->type) : entry.value->type;
      if (key == nullptr) {
        key = k;
        value = v;
        continue;
      }
      if (!is_same(key, k, false)) mismatch(entry.key_expr, key, k);
      if (!is_same(value, v, false)) mismatch(entry.value, value, v);
    }
  }

  // A literal format with a literal list: checks each clause against the type of its argument.
  void format_call(const Expr* e) {
    if (e->operand->kind != ExprKind::Literal || !e->operand->literal.is_string() || e->args.size() != 1 ||
        e->args[0]->kind != ExprKind::List)
      return;
    const std::string_view format = e->operand->literal.text();
    const std::span<Expr* const> args = e->args[0]->args;
    size_t next = 0;
    for (size_t i = 0; i < format.size();) {
      if (format[i] != '%') {
        ++i;
        continue;
      }
      if (i + 1 < format.size() && format[i + 1] == '%') {
        i += 2;
        continue;
      }
      if (i + 1 >= format.size()) {
        issues_.add(e->offset, "unexpected end of string");
        return;
      }
      if (next >= args.size()) {
        issues_.add(e->offset, "index " + std::to_string(next) + " out of range");
        return;
      }
      ++i;
      if (format[i] == '.') {
        size_t end = ++i;
        while (end < format.size() && is_digit(format[end])) ++end;
        if (end >= format.size()) {
          issues_.add(
              e->offset,
              "could not parse formatting clause: error while parsing precision: could not find end of precision "
              "specifier");
          return;
        }
        if (end == i) {
          issues_.add(
              e->offset,
              "could not parse formatting clause: error while parsing precision: error while converting precision "
              "to integer: strconv.Atoi: parsing \"\": invalid syntax");
          return;
        }
        i = end;
      }
      const char verb = format[i++];
      std::string problem;
      if (const Expr* bad = misfit(verb, args[next], e, problem)) {
        issues_.add(bad->offset, problem);
        return;
      }
      ++next;
    }
    if (args.size() > next)
      issues_.add(e->offset, "too many arguments supplied to string.format (expected " + std::to_string(next) +
                                 ", got " + std::to_string(args.size()) + ")");
  }

  static bool any_of(const Type* t, std::initializer_list<TypeKind> kinds) {
    if (t->kind == TypeKind::Dyn) return true;
    for (const TypeKind kind : kinds) {
      if (t->kind == kind) return true;
    }
    return false;
  }
  // Null, or the expression to report: the argument if its type does not match the clause, the call if there is no such
  // clause.
  const Expr* misfit(char verb, const Expr* arg, const Expr* call, std::string& problem) {
    const auto unless = [&](bool good, std::string_view sentence) -> const Expr* {
      if (good) return nullptr;
      problem = "error during formatting: " + std::string(sentence) + ", was given " + std::string(arg->type->name);
      return arg;
    };
    const Type* t = arg->type;
    switch (verb) {
      case 's':
        return no_string(arg, problem);
      case 'd':
        return unless(any_of(t, {TypeKind::Int, TypeKind::Uint}), "decimal clause can only be used on integers");
      case 'f':
        return unless(any_of(t, {TypeKind::Double, TypeKind::String}),
                      "fixed-point clause can only be used on doubles");
      case 'e':
        return unless(any_of(t, {TypeKind::Double, TypeKind::String}), "scientific clause can only be used on doubles");
      case 'b':
        return unless(any_of(t, {TypeKind::Int, TypeKind::Uint, TypeKind::Bool}),
                      "only integers and bools can be formatted as binary");
      case 'x':
      case 'X':
        return unless(any_of(t, {TypeKind::Int, TypeKind::Uint, TypeKind::String, TypeKind::Bytes}),
                      "only integers, byte buffers, and strings can be formatted as hex");
      case 'o':
        return unless(any_of(t, {TypeKind::Int, TypeKind::Uint}), "octal clause can only be used on integers");
      default:
        problem = std::string("could not parse formatting clause: unrecognized formatting clause \"") + verb + "\"";
        return call;
    }
  }
  const Expr* no_string(const Expr* arg, std::string& problem) {
    if (!any_of(arg->type, {TypeKind::List, TypeKind::Map, TypeKind::Int, TypeKind::Uint, TypeKind::Double,
                            TypeKind::Bool, TypeKind::String, TypeKind::Timestamp, TypeKind::Bytes, TypeKind::Duration,
                            TypeKind::Type, TypeKind::Null})) {
      problem =
          "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, "
          "lists, "
          "types, durations, and timestamps, was given " +
          std::string(arg->type->name);
      return arg;
    }
    if (arg->kind == ExprKind::List) {
      for (const Expr* item : arg->args) {
        if (const Expr* bad = no_string(item, problem)) return bad;
      }
    }
    if (arg->kind == ExprKind::Map) {
      for (const Entry& entry : arg->entries) {
        if (const Expr* bad = no_string(entry.key_expr, problem)) return bad;
        if (const Expr* bad = no_string(entry.value, problem)) return bad;
      }
    }
    return nullptr;
  }

  Arena& arena_;
  Issues& issues_;
};

}  // namespace

void validate(Arena& arena, const Expr* root, Issues& issues) { Validator(arena, issues).visit(root, false); }

}  // namespace holdfast::cel
