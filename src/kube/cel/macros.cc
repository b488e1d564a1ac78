#include "cel/macros.h"

namespace holdfast::cel {
namespace {

constexpr std::string_view kOldAccumulator = "__result__";
constexpr std::string_view kUnused = "#unused";

// Builds the replacement of one call; all its nodes have the call's position.
class Expansion {
 public:
  Expansion(ExprFactory& factory, int32_t offset) : factory_(factory), offset_(offset) {}

  MacroResult fail(const Expr* at, std::string message) { return {nullptr, std::move(message), at->offset}; }

  Expr* accumulator() { return factory_.ident(offset_, kAccumulator); }
  Expr* literal(Val value) { return factory_.literal(offset_, value); }
  Expr* call(std::string_view function, std::initializer_list<Expr*> args) {
    return factory_.call(offset_, function, args);
  }
  Expr* list(std::initializer_list<Expr*> elements) {
    return factory_.list(offset_, std::span<Expr* const>(elements.begin(), elements.size()));
  }
  Expr* fold(Expr* range, std::string_view variable, std::string_view variable2, std::string_view accumulator,
             Expr* init, Expr* condition, Expr* step, Expr* result) {
    Expr* e = factory_.make(ExprKind::Comprehension, offset_);
    e->range = range;
    e->variable = variable;
    e->variable2 = variable2;
    e->accumulator = accumulator;
    e->init = init;
    e->condition = condition;
    e->step = step;
    e->result = result;
    return e;
  }
  // Binds `variable` to the value of `bound` inside `body`.
  Expr* bind(std::string_view variable, Expr* bound, Expr* body) {
    return fold(list({}), kUnused, {}, variable, bound, literal(Val::boolean(false)), factory_.ident(offset_, variable),
                body);
  }

  enum class Quantifier { All, Exists, One };
  Expr* quantifier(Quantifier kind, Expr* range, std::string_view v1, std::string_view v2, Expr* predicate) {
    switch (kind) {
      case Quantifier::All:
        return fold(range, v1, v2, kAccumulator, literal(Val::boolean(true)),
                    call(op::kNotStrictlyFalse, {accumulator()}), call(op::kAnd, {accumulator(), predicate}),
                    accumulator());
      case Quantifier::Exists:
        return fold(range, v1, v2, kAccumulator, literal(Val::boolean(false)),
                    call(op::kNotStrictlyFalse, {call(op::kNot, {accumulator()})}),
                    call(op::kOr, {accumulator(), predicate}), accumulator());
      case Quantifier::One:
        break;
    }
    return fold(
        range, v1, v2, kAccumulator, literal(Val::integer(0)), literal(Val::boolean(true)),
        call(op::kConditional, {predicate, call(op::kAdd, {accumulator(), literal(Val::integer(1))}), accumulator()}),
        call(op::kEquals, {accumulator(), literal(Val::integer(1))}));
  }
  // Adds to the accumulator where `filter` holds (always if null).
  Expr* collect(Expr* range, std::string_view v1, std::string_view v2, Expr* init, Expr* filter, Expr* step) {
    if (filter != nullptr) step = call(op::kConditional, {filter, step, accumulator()});
    return fold(range, v1, v2, kAccumulator, init, literal(Val::boolean(true)), step, accumulator());
  }
  Expr* empty_map() { return factory_.make(ExprKind::Map, offset_); }
  Expr* ident(std::string_view name) { return factory_.ident(offset_, name); }

 private:
  ExprFactory& factory_;
  const int32_t offset_;
};

bool takes_accumulator(std::string_view name) { return name == kAccumulator || name == kOldAccumulator; }

MacroResult map_macro(Expansion& x, Expr* target, std::span<Expr* const> args) {
  if (args[0]->kind != ExprKind::Ident) return x.fail(args[0], "argument is not an identifier");
  const std::string_view v = args[0]->name;
  if (takes_accumulator(v)) return x.fail(args[0], "iteration variable overwrites accumulator variable");
  Expr* filter = args.size() == 3 ? args[1] : nullptr;
  Expr* step = x.call(op::kAdd, {x.accumulator(), x.list({args.back()})});
  return {x.collect(target, v, {}, x.list({}), filter, step)};
}

MacroResult one_variable(Expansion& x, std::string_view function, Expr* target, const std::vector<Expr*>& args) {
  if (function == "map") return map_macro(x, target, args);
  if (function == "filter") {
    if (args[0]->kind != ExprKind::Ident) return x.fail(args[0], "argument is not an identifier");
    if (takes_accumulator(args[0]->name)) return x.fail(args[0], "iteration variable overwrites accumulator variable");
    Expr* step = x.call(op::kAdd, {x.accumulator(), x.list({args[0]})});
    return {x.collect(target, args[0]->name, {}, x.list({}), args[1], step)};
  }
  if (args[0]->kind != ExprKind::Ident) return x.fail(args[0], "argument must be a simple name");
  if (takes_accumulator(args[0]->name)) return x.fail(args[0], "iteration variable overwrites accumulator variable");
  const auto kind = function == "all"      ? Expansion::Quantifier::All
                    : function == "exists" ? Expansion::Quantifier::Exists
                                           : Expansion::Quantifier::One;
  return {x.quantifier(kind, target, args[0]->name, {}, args[1])};
}

MacroResult two_variables(Expansion& x, std::string_view function, Expr* target, const std::vector<Expr*>& args) {
  for (size_t i = 0; i < 2; ++i) {
    if (args[i]->kind != ExprKind::Ident) return x.fail(args[i], "argument must be a simple name");
  }
  const std::string_view v1 = args[0]->name, v2 = args[1]->name;
  if (v1 == v2) return x.fail(args[1], "duplicate variable name: " + std::string(v1));
  for (size_t i = 0; i < 2; ++i) {
    if (takes_accumulator(args[i]->name)) return x.fail(args[i], "iteration variable overwrites accumulator variable");
  }
  if (!function.starts_with("transform")) {
    const auto kind = function == "all"      ? Expansion::Quantifier::All
                      : function == "exists" ? Expansion::Quantifier::Exists
                                             : Expansion::Quantifier::One;
    return {x.quantifier(kind, target, v1, v2, args[2])};
  }
  Expr* filter = args.size() == 4 ? args[2] : nullptr;
  Expr* transform = args.back();
  if (function == "transformList") {
    Expr* step = x.call(op::kAdd, {x.accumulator(), x.list({transform})});
    return {x.collect(target, v1, v2, x.list({}), filter, step)};
  }
  Expr* step = function == "transformMap" ? x.call("cel.@mapInsert", {x.accumulator(), x.ident(v1), transform})
                                          : x.call("cel.@mapInsert", {x.accumulator(), transform});
  return {x.collect(target, v1, v2, x.empty_map(), filter, step)};
}

MacroResult sort_by(ExprFactory& factory, Expansion& x, int32_t offset, Expr* target, const std::vector<Expr*>& args) {
  switch (target->kind) {
    case ExprKind::List:
    case ExprKind::Select:
    case ExprKind::Ident:
    case ExprKind::Comprehension:
    case ExprKind::Call:
      break;
    default:
      return x.fail(target,
                    "sortBy can only be applied to a list, identifier, comprehension, call or select expression");
  }
  constexpr std::string_view kInput = "@__sortBy_input__";
  MacroResult keys = map_macro(x, x.ident(kInput), args);
  if (keys.expr == nullptr) return keys;
  Expr* const key_args[] = {keys.expr};
  return {x.bind(kInput, target, factory.member_call(offset, "@sortByAssociatedKeys", x.ident(kInput), key_args))};
}

MacroResult optional_map(ExprFactory& factory, Expansion& x, int32_t offset, std::string_view function, Expr* target,
                         const std::vector<Expr*>& args) {
  if (args[0]->kind != ExprKind::Ident)
    return x.fail(args[0], std::string(function) + "() variable name must be a simple identifier");
  Expr* bound = factory.member_call(offset, "value", factory.copy(target), {});
  Expr* body = x.bind(args[0]->name, bound, args[1]);
  if (function == "optMap") body = x.call("optional.of", {body});
  Expr* present = factory.member_call(offset, "hasValue", target, {});
  return {x.call(op::kConditional, {present, body, x.call("optional.none", {})})};
}

}  // namespace

Expr* ExprFactory::copy(const Expr* e) {
  if (e == nullptr) return nullptr;
  if (too_large()) return make(ExprKind::Unspecified, e->offset);
  ++nodes_;
  Expr* result = arena_.make<Expr>(*e);
  result->operand = copy(e->operand);
  std::vector<Expr*> args;
  for (const Expr* arg : e->args) args.push_back(copy(arg));
  result->args = arena_.copy(std::span<Expr* const>(args));
  std::vector<Entry> entries(e->entries.begin(), e->entries.end());
  for (Entry& entry : entries) {
    entry.key_expr = copy(entry.key_expr);
    entry.value = copy(entry.value);
  }
  result->entries = arena_.copy(std::span<const Entry>(entries));
  result->range = copy(e->range);
  result->init = copy(e->init);
  result->condition = copy(e->condition);
  result->step = copy(e->step);
  result->result = copy(e->result);
  return result;
}

MacroResult expand_macro(ExprFactory& factory, int32_t offset, std::string_view function, Expr* target,
                         const std::vector<Expr*>& args) {
  Expansion x(factory, offset);
  if (target == nullptr) {
    if (function != "has" || args.size() != 1) return {};
    if (args[0]->kind != ExprKind::Select || args[0]->is_reference)
      return x.fail(args[0], "invalid argument to has() macro");
    Expr* test = factory.select(offset, args[0]->operand, args[0]->name);
    test->test_only = true;
    return {test};
  }
  const bool quantifier = function == "all" || function == "exists" || function == "exists_one" ||
                          (function == "existsOne" && args.size() == 3);
  switch (args.size()) {
    case 2:
      if (quantifier || function == "map" || function == "filter") return one_variable(x, function, target, args);
      if (function == "sortBy") return sort_by(factory, x, offset, target, args);
      if (function == "optMap" || function == "optFlatMap")
        return optional_map(factory, x, offset, function, target, args);
      return {};
    case 3:
      if (factory.binds() && function == "bind" && target->kind == ExprKind::Ident && target->name == "cel") {
        if (args[0]->kind != ExprKind::Ident) {
          return x.fail(args[0], "cel.bind() variable names must be simple identifiers");
        }
        return {x.bind(args[0]->name, args[1], args[2])};
      }
      if (function == "map") return map_macro(x, target, args);
      if (quantifier) return two_variables(x, function, target, args);
      [[fallthrough]];
    case 4:
      if (function == "transformList" || function == "transformMap" || function == "transformMapEntry")
        return two_variables(x, function, target, args);
      return {};
    default:
      return {};
  }
}

}  // namespace holdfast::cel
