// Plans a checked expression as nodes and evaluates them. The nodes are those of cel-go's interpreter, because costs
// depend on them: an attribute (a variable with selections) costs one plus one per selection, constants and folded
// expressions cost nothing.
#include <re2/re2.h>

#include <cmath>
#include <deque>

#include "base/go_regexp.h"
#include "base/hash.h"
#include "cel/environment.h"

namespace holdfast::cel {
namespace {

enum class NodeKind : uint8_t {
  Const,
  Attribute,
  And,
  Or,
  Equal,
  NotEqual,
  Zero,
  Unary,
  Binary,
  VarArgs,
  List,
  Map,
  Struct,
  Fold,
  OptionalOr,
  OptionalOrValue,
  Membership,
};

struct Node;

struct Qualifier {
  Val constant = {};
  const Node* index = nullptr;  // If null, `constant` is used.
  bool optional = false;
  bool test = false;          // has(): test for presence.
  bool object_field = false;  // A field of Object{...}.
};

enum class Base : uint8_t { Variable, Local, Operand, Conditional };

struct Node {
  NodeKind kind = NodeKind::Const;
  Base base = Base::Variable;
  bool test_only = false;
  CostRule cost = CostRule::One;
  bool has_optionals = false;
  uint32_t slot = 0;  // Variable or local; for a Fold its accumulator, followed by its variables.
  Val constant = {};
  std::vector<Qualifier> qualifiers;
  std::vector<const Node*> args;  // Or operand; condition and branches; range, init, condition, step, result.
  const Function* function = nullptr;
  const Overload* overload = nullptr;  // Null: chosen at run time by argument types.
  std::unique_ptr<const RE2> pattern;  // For calls with a literal pattern.
  std::vector<std::string_view> fields;
  std::vector<bool> optionals;
  std::string_view name;  // Name of a variable or of a struct's type.
  bool two_variables = false;
};

struct LimitExceeded {};

}  // namespace

struct Program::State {
  std::shared_ptr<const Environment> environment;
  Arena arena{2048};
  std::string_view expression;
  std::deque<Node> nodes;
  const Node* root = nullptr;
  TypeRef type = nullptr;
  CostEstimate estimate;
  uint32_t locals = 0;
  std::unordered_set<std::string_view, KeyHash> used;
};

namespace {

// --- Planning -------------------------------------------------------------------------------------------------------

struct PlanError {
  std::string message;
};

class Evaluator;

class Planner {
 public:
  Planner(Program::State& program, const Environment::State& environment)
      : program_(program), environment_(environment) {}

  const Node* plan(const Expr* e) {
    switch (e->kind) {
      case ExprKind::Literal:
        return constant(e->literal);
      case ExprKind::Ident:
        return reference(e);
      case ExprKind::Select:
        return e->is_reference ? reference(e) : select(e);
      case ExprKind::Call:
        return call(e);
      case ExprKind::List:
        return list(e);
      case ExprKind::Map:
        return map(e);
      case ExprKind::Struct:
        return structure(e);
      case ExprKind::Comprehension:
        return fold(e);
      case ExprKind::Unspecified:
        break;
    }
    throw PlanError{"unsupported expression"};
  }

 private:
  Node* make(NodeKind kind) {
    program_.nodes.emplace_back();
    program_.nodes.back().kind = kind;
    return &program_.nodes.back();
  }
  const Node* constant(Val value) {
    Node* n = make(NodeKind::Const);
    n->constant = value;
    return n;
  }
  static bool is_const(const Node* n) { return n->kind == NodeKind::Const; }

  const Node* reference(const Expr* e) {
    // Upstream treats every name of type `type` as a type name, even a variable's.
    if (e->type != nullptr && e->type->kind == TypeKind::Type) {
      TypeMaker make(program_.arena);
      const bool mutation = environment_.options.mutation;
      const bool dynamic = mutation && (e->reference == "JSONPatch" || e->reference.starts_with("Object"));
      if (dynamic || named_type(make, e->reference, mutation) == nullptr)
        throw PlanError{"reference to undefined type: " + std::string(e->reference)};
      return constant(Rep::type(program_.arena.copy(e->reference)));
    }
    for (size_t i = scope_.size(); i > 0; --i) {
      if (scope_[i - 1].first == e->reference) {
        Node* n = make(NodeKind::Attribute);
        n->base = Base::Local;
        n->slot = scope_[i - 1].second;
        return n;
      }
    }
    if (const int variable = environment_.find(e->reference); variable >= 0) {
      Node* n = make(NodeKind::Attribute);
      n->base = Base::Variable;
      n->slot = static_cast<uint32_t>(variable);
      n->name =
          program_.arena.copy(environment_.options.variables[n->slot].name);  // The program outlives its environment.
      program_.used.insert(n->name);
      return n;
    }
    return constant(Rep::type(program_.arena.copy(e->reference)));
  }

  // The node as an attribute, to which qualifiers can be added.
  Node* attribute(const Node* n) {
    if (n->kind == NodeKind::Attribute) return const_cast<Node*>(n);
    Node* relative = make(NodeKind::Attribute);
    relative->base = Base::Operand;
    relative->args = {n};
    return relative;
  }
  void add_qualifier(Node* n, const Qualifier& qualifier) {
    if (n->base == Base::Conditional) {
      add_qualifier(const_cast<Node*>(n->args[1]), qualifier);
      add_qualifier(const_cast<Node*>(n->args[2]), qualifier);
    } else {
      n->qualifiers.push_back(qualifier);
    }
  }

  const Node* select(const Expr* e) {
    Node* n = attribute(plan(e->operand));
    Qualifier qualifier;
    qualifier.constant = Val::string(e->name);
    qualifier.test = e->test_only;
    qualifier.object_field = e->operand->type != nullptr && e->operand->type->any_field;
    if (e->test_only) {
      n->test_only = true;
    }
    add_qualifier(n, qualifier);
    return n;
  }

  const Node* index(const Expr* e, bool optional) {
    Node* n = attribute(plan(e->args[0]));
    const Node* at = plan(e->args[1]);
    Qualifier qualifier;
    qualifier.optional = optional;
    if (is_const(at)) {
      switch (at->constant.kind()) {
        case Kind::String:
        case Kind::Int:
        case Kind::Uint:
        case Kind::Bool:
        case Kind::Double:
          break;
        default:
          throw PlanError{"invalid qualifier type: " + std::string(go_type_name(at->constant))};
      }
      qualifier.constant = at->constant;
    } else {
      qualifier.index = at;
    }
    add_qualifier(n, qualifier);
    return n;
  }

  const Node* call(const Expr* e) {
    const std::string_view name = e->function->name;
    if (name == op::kIndex) return index(e, false);
    if (name == op::kOptIndex || name == op::kOptSelect) return index(e, true);
    std::vector<const Node*> args;
    if (e->member) args.push_back(plan(e->operand));
    for (const Expr* arg : e->args) args.push_back(plan(arg));

    const auto simple = [&](NodeKind kind) {
      Node* n = make(kind);
      n->args = std::move(args);
      n->function = e->function;
      return n;
    };
    if (name == op::kAnd) return simple(NodeKind::And);
    if (name == op::kOr) return simple(NodeKind::Or);
    if (name == op::kEquals) return simple(NodeKind::Equal);
    if (name == op::kNotEquals) return simple(NodeKind::NotEqual);
    if (name == op::kConditional) {
      args[1] = attribute(args[1]);
      args[2] = attribute(args[2]);
      Node* n = simple(NodeKind::Attribute);
      n->base = Base::Conditional;
      return n;
    }
    const Overload* only = e->overloads.size() == 1 ? e->overloads[0] : nullptr;
    if (name == "or" && args.size() == 2) return simple(NodeKind::OptionalOr);
    if (name == "orValue" && args.size() == 2) return simple(NodeKind::OptionalOrValue);
    if (only != nullptr && only->id == "in_list" && is_const(args[1])) {
      if (list_size(args[1]->constant) == 0) return constant(Val::boolean(false));
      if (all_primitive(args[1]->constant)) return simple(NodeKind::Membership);
    }

    Binding binding = Binding::Function;
    const Overload* direct = nullptr;
    if (e->function->singleton != nullptr) {
      binding = e->function->singleton_binding;
    } else {
      direct = only;
      size_t bound = 0;
      for (const Overload& overload : e->function->overloads) bound += overload.run != nullptr;
      if (direct == nullptr && bound == 1) direct = &e->function->overloads[0];
      if (direct != nullptr) binding = direct->binding;
    }
    Node* n = simple(n_kind(binding, e->member + e->args.size()));
    n->overload = direct;
    n->cost = cost_rule(name, only == nullptr ? std::string_view{} : only->id);
    literal_pattern(n, name);
    return folded(n, name);
  }

  static NodeKind n_kind(Binding binding, size_t args) {
    if (args == 0) return NodeKind::Zero;
    if (args == 1 && binding == Binding::Unary) return NodeKind::Unary;
    if (args == 2 && binding == Binding::Binary) return NodeKind::Binary;
    return NodeKind::VarArgs;
  }

  // Compiles a literal pattern once. Like upstream, this makes the call a VarArgs node.
  void literal_pattern(Node* n, std::string_view name) {
    if (name != "matches" && name != "find" && name != "findAll") return;
    if (n->args.size() < 2 || !is_const(n->args[1]) || !n->args[1]->constant.is_string()) return;
    const std::string_view pattern = n->args[1]->constant.text();
    if (const std::string problem = go_regexp_error(pattern); !problem.empty()) throw PlanError{problem};
    n->pattern = std::make_unique<const RE2>(re2::StringPiece(pattern.data(), pattern.size()), RE2::Quiet);
    n->kind = NodeKind::VarArgs;
  }

  // Folds conversions of constants; their errors are compile errors.
  const Node* folded(Node* n, std::string_view name);

  bool all_primitive(const Val& list) {
    const uint64_t count = list_size(list);
    for (uint64_t i = 0; i < count; ++i) {
      switch (list_at(program_.arena, list, i).kind()) {
        case Kind::Bool:
        case Kind::Int:
        case Kind::Uint:
        case Kind::Double:
        case Kind::String:
          break;
        default:
          return false;
      }
    }
    return true;
  }

  const Node* list(const Expr* e) {
    Node* n = make(NodeKind::List);
    bool constants = true;
    for (size_t i = 0; i < e->args.size(); ++i) {
      const Node* item = plan(e->args[i]);
      n->args.push_back(item);
      n->optionals.push_back(!e->optionals.empty() && e->optionals[i]);
      n->has_optionals |= n->optionals.back();
      constants &= is_const(item);
    }
    return constants ? evaluated(n) : n;
  }
  const Node* map(const Expr* e) {
    Node* n = make(NodeKind::Map);
    bool constants = true;
    for (const Entry& entry : e->entries) {
      n->args.push_back(plan(entry.key_expr));
      n->args.push_back(plan(entry.value));
      n->optionals.push_back(entry.optional);
      constants &= is_const(n->args[n->args.size() - 2]) && is_const(n->args.back());
    }
    return constants ? evaluated(n) : n;
  }
  const Node* evaluated(Node* n);

  const Node* structure(const Expr* e) {
    Node* n = make(NodeKind::Struct);
    n->name = program_.arena.copy(e->reference);
    for (const Entry& entry : e->entries) {
      n->fields.push_back(entry.field);
      n->args.push_back(plan(entry.value));
      n->optionals.push_back(entry.optional);
    }
    return n;
  }

  const Node* fold(const Expr* e) {
    Node* n = make(NodeKind::Fold);
    n->two_variables = !e->variable2.empty();
    // Before planning anything: the initial value is evaluated when first read, inside the fold.
    n->slot = next_local_;
    next_local_ += 3;
    program_.locals = std::max(program_.locals, next_local_);
    const Node* init = plan(e->init);
    const Node* range = plan(e->range);
    const size_t outer = scope_.size();
    // The accumulator is searched first.
    if (n->two_variables) scope_.emplace_back(e->variable2, n->slot + 2);
    scope_.emplace_back(e->variable, n->slot + 1);
    scope_.emplace_back(e->accumulator, n->slot);
    const Node* condition = plan(e->condition);
    const Node* step = plan(e->step);
    scope_.resize(outer);
    scope_.emplace_back(e->accumulator, n->slot);
    const Node* result = plan(e->result);
    scope_.resize(outer);
    next_local_ -= 3;
    n->args = {range, init, condition, step, result};
    return n;
  }

  Program::State& program_;
  const Environment::State& environment_;
  std::vector<std::pair<std::string_view, uint32_t>> scope_;
  uint32_t next_local_ = 0;
};

// --- Evaluating -----------------------------------------------------------------------------------------------------

// A panic of upstream's cost tracker, which ends the evaluation regardless of how the expression handles errors.
struct CostTrackerPanic {
  std::string message;
};

struct Local {
  Val value;
  const Node* init = nullptr;  // Initial value of an accumulator that has not been read yet.
  bool open = false;           // It became a list or map that its comprehension appends to in place.
};

class Evaluator {
 public:
  Evaluator(Context& context, const Bindings* bindings, uint32_t locals)
      : context_(context), arena_(context.arena), bindings_(bindings), locals_(arena_.allocate_array<Local>(locals)) {
    for (uint32_t i = 0; i < locals; ++i) new (&locals_[i]) Local();
  }

  Val evaluate(const Node& n) {
    switch (n.kind) {
      case NodeKind::Const:
        return n.constant;
      case NodeKind::Attribute: {
        const Val v = resolve(n);
        if (n.base == Base::Conditional) {
          // Upstream subtracts the cost of a presence test, although a conditional was not charged for it.
          if (n.test_only && context_.cost > 0) --context_.cost;
          return v;
        }
        if (n.test_only) return v.kind() == Kind::Optional ? Val::boolean(v.has_value()) : v;
        charge(1);
        return v;
      }
      case NodeKind::And:
        return logic(n, false);
      case NodeKind::Or:
        return logic(n, true);
      case NodeKind::Equal:
      case NodeKind::NotEqual:
        return equality(n);
      case NodeKind::Zero: {
        const Val v = n.overload->run(context_, {});
        charge(run_time_cost(arena_, n.cost, {}, v));
        return v;
      }
      case NodeKind::Unary: {
        const Val arg[] = {evaluate(*n.args[0])};
        const bool strict = n.overload == nullptr || !n.overload->non_strict;
        return finish(n, arg, strict && arg[0].is_error() ? &arg[0] : nullptr);
      }
      case NodeKind::Binary: {
        const Val args[] = {evaluate(*n.args[0]), evaluate(*n.args[1])};
        return finish(n, args, args[0].is_error() ? &args[0] : args[1].is_error() ? &args[1] : nullptr);
      }
      case NodeKind::VarArgs: {
        Val args[4];
        const size_t count = n.args.size();
        for (size_t i = 0; i < count; ++i) {
          args[i] = evaluate(*n.args[i]);
          // A call with an unevaluated argument costs nothing.
          if (args[i].is_error() && i + 1 < count) return args[i];
        }
        const std::span<const Val> all(args, count);
        return finish(n, all, args[count - 1].is_error() ? &args[count - 1] : nullptr);
      }
      case NodeKind::List:
        return list(n);
      case NodeKind::Map:
        return map(n);
      case NodeKind::Struct:
        return structure(n);
      case NodeKind::Fold:
        return fold(n);
      case NodeKind::OptionalOr:
      case NodeKind::OptionalOrValue: {
        const Val v = evaluate(*n.args[0]);
        if (v.kind() != Kind::Optional) return v;
        if (!v.has_value()) return evaluate(*n.args[1]);
        return n.kind == NodeKind::OptionalOr ? v : Rep::inner(v);
      }
      case NodeKind::Membership: {
        const Val v = evaluate(*n.args[0]);
        if (v.is_error()) return v;
        const Val& among = n.args[1]->constant;
        const uint64_t count = list_size(among);
        for (uint64_t i = 0; i < count; ++i) {
          const Val item = Rep::list(among)->items[i];
          if (equal_to(arena_, item, v).is_true()) return Val::boolean(true);
        }
        return Val::boolean(false);
      }
    }
    return no_such_overload();
  }

  Val list(const Node& n) {
    std::array<Val, 8> few;
    std::vector<Val> many;
    const bool small = n.args.size() <= few.size();
    if (!small) many.reserve(n.args.size());
    size_t count = 0;
    Val failed;
    bool stop = false;
    for (size_t i = 0; i < n.args.size() && !stop; ++i) {
      Val v = evaluate(*n.args[i]);
      if (v.is_error()) {
        failed = v;
        stop = true;
        break;
      }
      if (n.has_optionals && n.optionals[i]) {
        if (v.kind() != Kind::Optional) {
          failed = error(arena_, "cannot initialize optional list element from non-optional value " + go_text(v));
          stop = true;
          break;
        }
        if (!v.has_value()) continue;
        v = Rep::inner(v);
      }
      if (small) {
        few[count++] = v;
      } else {
        many.push_back(v);
        ++count;
      }
    }
    charge(10);
    if (stop) return failed;
    return list_of(arena_, small ? std::span<const Val>(few.data(), count) : std::span<const Val>(many));
  }

  Val map(const Node& n) {
    std::vector<MapEntry> entries;
    Val failed;
    for (size_t i = 0; i < n.optionals.size() && !failed.is_error(); ++i) {
      const Val key = evaluate(*n.args[2 * i]);
      if (key.is_error()) {
        failed = key;
        break;
      }
      Val value = evaluate(*n.args[2 * i + 1]);
      if (value.is_error()) {
        failed = value;
        break;
      }
      const auto there = std::find_if(entries.begin(), entries.end(), [&](const MapEntry& entry) {
        return entry.key.kind() == key.kind() && equal_to(arena_, entry.key, key).is_true();
      });
      if (n.optionals[i]) {
        if (value.kind() != Kind::Optional) {
          failed = error(arena_, "cannot initialize optional entry '" + go_text(key) + "' from non-optional value " +
                                     go_text(value));
          break;
        }
        if (!value.has_value()) {
          if (there != entries.end()) entries.erase(there);
          continue;
        }
        value = Rep::inner(value);
      }
      if (there != entries.end()) {
        there->value = value;
      } else {
        entries.push_back({key, value});
      }
    }
    charge(30);
    return failed.is_error() ? failed : map_of(arena_, entries);
  }

 private:
  void charge(uint64_t amount) {
    if (!context_.charge(amount)) throw LimitExceeded{};
  }

  Val logic(const Node& n, bool decisive) {
    Val failed;
    for (const Node* term : n.args) {
      const Val v = evaluate(*term);
      if (v.is_bool()) {
        if (v.as_bool() == decisive) return v;
      } else if (!failed.is_error()) {
        failed = v.is_error() ? v : no_such_overload();
      }
    }
    return failed.is_error() ? failed : Val::boolean(!decisive);
  }

  Val equality(const Node& n) {
    const Val args[] = {evaluate(*n.args[0]), evaluate(*n.args[1])};
    // Comparing values of Kubernetes' types costs 1.
    const bool flat = n.kind == NodeKind::Equal && args[0].kind() == Kind::Opaque;
    charge(flat ? 1 : run_time_cost(arena_, CostRule::TenthOfSmaller, args, args[0]));
    if (args[0].is_error()) return args[0];
    if (args[1].is_error()) return args[1];
    const Val same = equal(arena_, args[0], args[1]);
    return n.kind == NodeKind::Equal ? same : Val::boolean(!same.is_true());
  }

  // Charges for a call and executes it, unless an argument failed.
  Val finish(const Node& n, std::span<const Val> args, const Val* failed) {
    if (std::string why = cost_failure(n.cost, args); !why.empty()) throw CostTrackerPanic{std::move(why)};
    const bool by_result = n.cost == CostRule::FifthOfResult || n.cost == CostRule::ListOutput;
    // A call that exceeds the limit is not executed.
    if (!by_result) charge(run_time_cost(arena_, n.cost, args, args[0]));
    for (const Val& arg : args) {
      if (arg.is_string()) context_.read(arg.text().size());
    }
    if (context_.exceeded) throw LimitExceeded{};
    const Val result = failed != nullptr ? *failed : invoke(n, args);
    if (context_.exceeded) throw LimitExceeded{};
    if (by_result) charge(run_time_cost(arena_, n.cost, args, result));
    return result;
  }

  Val invoke(const Node& n, std::span<const Val> args) {
    if (n.pattern != nullptr) return with_pattern(n, args);
    const Function& f = *n.function;
    if (f.singleton != nullptr) {
      if (has_trait(args[0], f.trait)) return f.singleton(context_, args);
      // Strings and times report unknown functions themselves.
      switch (args[0].kind()) {
        case Kind::String:
        case Kind::Timestamp:
        case Kind::Duration:
          return no_such_overload();
        default:
          return error(arena_, "no such overload: " + std::string(f.name));
      }
    }
    if (n.overload != nullptr) {
      if (f.unguarded || accepts(*n.overload, args)) return n.overload->run(context_, args);
    } else {
      for (const Overload& overload : f.overloads) {
        if (overload.run != nullptr && overload.args.size() == args.size() && (f.unguarded || accepts(overload, args)))
          return overload.run(context_, args);
      }
    }
    std::string types;
    for (const Val& arg : args) types += (types.empty() ? "" : ", ") + std::string(arg.type_name());
    return error(arena_, "no such overload: " + std::string(f.name) + "(" + types + ")");
  }
  bool accepts(const Overload& overload, std::span<const Val> args) {
    for (size_t i = 0; i < args.size(); ++i) {
      if (overload.non_strict && args[i].is_error()) continue;
      if (!fits(arena_, overload.args[i], args[i])) return false;
    }
    return true;
  }
  Val with_pattern(const Node& n, std::span<const Val> args) {
    if (!args[0].is_string()) return no_such_overload();
    if (n.function->name == "matches") return Val::boolean(matches(args[0].text(), *n.pattern));
    if (n.function->name == "find") return find_first(context_, args[0].text(), *n.pattern);
    if (args.size() == 3 && args[2].kind() != Kind::Int) return no_such_overload();
    return find_all(context_, args[0].text(), *n.pattern, args.size() == 3 ? args[2].as_int() : -1);
  }

  // --- Attributes ---

  Val local(uint32_t slot) {
    Local& l = locals_[slot];
    if (l.init != nullptr) {
      const Node* init = std::exchange(l.init, nullptr);
      Val v = evaluate(*init);
      l.open = false;
      if (v.kind() == Kind::List && list_size(v) == 0) {
        v = open_list(arena_);
        l.open = true;
      } else if (v.kind() == Kind::Map && map_size(v) == 0) {
        v = open_map(arena_);
        l.open = true;
      }
      l.value = v;
    }
    return l.value;
  }

  Val resolve(const Node& n) {
    Val base;
    switch (n.base) {
      case Base::Variable: {
        const std::optional<Val>& bound = bindings_->at(n.slot);
        if (!bound) return error(arena_, "no such attribute(s): " + std::string(n.name));
        base = *bound;
        break;
      }
      case Base::Local:
        base = local(n.slot);
        break;
      case Base::Operand:
        base = evaluate(*n.args[0]);
        break;
      case Base::Conditional: {
        const Val condition = evaluate(*n.args[0]);
        if (!condition.is_bool()) return condition.is_error() ? condition : no_such_overload();
        return resolve(*n.args[condition.as_bool() ? 1 : 2]);
      }
    }
    if (base.is_error()) return base;
    if (base.kind() == Kind::Optional && base.has_value()) base = Val::optional_of(arena_, natively(Rep::inner(base)));
    return n.qualifiers.empty() ? base : qualified(n, base);
  }

  // An attribute converts the value of an optional to Go and back: nested optionals collapse, and values without a CEL
  // form become an error inside.
  Val natively(const Val& v) { return v.kind() == Kind::List || v.kind() == Kind::Map ? v : from_native(arena_, v); }

  Val qualified(const Node& n, Val v) {
    bool optional = v.kind() == Kind::Optional;
    if (optional) {
      if (!v.has_value()) return v;
      v = Rep::inner(v);
    }
    for (const Qualifier& q : n.qualifiers) {
      optional |= q.optional;
      Val key = q.constant;
      if (q.index != nullptr) {
        // An attribute in brackets is resolved without charging for its variable.
        key = q.index->kind == NodeKind::Attribute ? resolve(*q.index) : evaluate(*q.index);
        if (q.index->kind == NodeKind::Attribute && q.index->test_only && key.kind() == Kind::Optional)
          key = Val::boolean(key.has_value());
        if (key.is_error()) {
          if (!optional) charge(1);
          return key;
        }
        switch (key.kind()) {
          case Kind::String:
          case Kind::Int:
          case Kind::Uint:
          case Kind::Bool:
          case Kind::Double:
            break;
          default:
            if (!optional) charge(1);
            return error(arena_,
                         "invalid qualifier type: " +
                             (is_of_variable(*q.index) ? native_type_name(key) : std::string(go_type_name(key))));
        }
      }
      Val found;
      Val failed;
      const bool there = look_up(v, key, q, optional || q.test, found, failed);
      if (optional) {
        if (failed.is_error()) return failed;
        if (!there) return Val::optional_none();
        charge(1);
        v = found;
      } else {
        charge(1);
        if (failed.is_error()) return failed;
        v = q.test ? Val::boolean(there) : found;
      }
    }
    return optional ? Val::optional_of(arena_, v) : v;
  }

  // Whether the value comes unchanged from a variable, or from one of several.
  static bool is_of_variable(const Node& n) {
    if (n.kind != NodeKind::Attribute) return false;
    if (n.base == Base::Conditional) return is_of_variable(*n.args[1]) && is_of_variable(*n.args[2]);
    return n.base == Base::Variable;
  }
  static std::string native_type_name(const Val& v) {
    if (Rep::is_data(v) && Rep::decl(v) == nullptr)
      return v.kind() == Kind::Map ? "map[string]interface {}" : "[]interface {}";
    if (v.is_null()) return "<nil>";
    return std::string(go_type_name(v));
  }

  // Whether the key exists. `presence`: its absence is not an error.
  bool look_up(const Val& v, const Val& key, const Qualifier& q, bool presence, Val& found, Val& failed) {
    const auto missing_key = [&] { failed = error(arena_, "no such key: " + go_text(key)); };
    switch (v.kind()) {
      case Kind::Map:
        if (map_find(arena_, v, key, found)) {
          if (found.is_error()) failed = found;
          return true;
        }
        if (!presence) missing_key();
        return false;
      case Kind::List: {
        int64_t index = 0;
        if (!list_index(key, index, failed)) return false;
        if (index >= 0 && static_cast<uint64_t>(index) < list_size(v)) {
          if (Rep::decl(v) != nullptr && key.kind() != Kind::Int) {
            failed = error(arena_, "unsupported index: " + go_text(key));
            return false;
          }
          found = list_at(arena_, v, static_cast<uint64_t>(index));
          if (found.is_error()) failed = found;
          return true;
        }
        if (!presence) failed = error(arena_, "index out of bounds: " + go_text(key));
        return false;
      }
      case Kind::Object: {
        if (!q.object_field) {
          if (!presence) missing_key();
          return false;
        }
        if (q.test) {  // Regardless of its value: only reads go through the native form.
          const auto& fields = Rep::object(v).fields;
          return std::any_of(fields.begin(), fields.end(), [&](const auto& f) { return f.first == key.text(); });
        }
        if (object_field(arena_, Rep::object(v), key.text(), found)) {
          if (found.is_error()) failed = found;
          return true;
        }
        found = Val::null();
        return !presence;
      }
      case Kind::JsonPatch:
        return patch_field(v.json_patch(), key, presence, found, failed);
      case Kind::Lazy: {
        const Val* field = key.is_string() ? Rep::lazy(v).find(key.text()) : nullptr;
        if (field == nullptr) {
          if (!presence) missing_key();
          return false;
        }
        found = *field;
        if (found.is_error()) failed = found;
        return true;
      }
      default:
        if (!presence) missing_key();
        return false;
    }
  }

  bool patch_field(const Val::Patch& patch, const Val& key, bool presence, Val& found, Val& failed) {
    const std::string_view name = key.is_string() ? key.text() : std::string_view();
    const std::string_view* text = name == "op"     ? &patch.op
                                   : name == "path" ? &patch.path
                                   : name == "from" ? &patch.from
                                                    : nullptr;
    if (text != nullptr) {
      found = Val::string(*text);
      return !presence || !text->empty();
    }
    if (name == "value") {
      if (patch.value != nullptr) found = *patch.value;
      return !presence || patch.value != nullptr;
    }
    failed = error(arena_, (presence ? "unsupported field: " : "unsupported indexer: ") + go_text(key));
    return false;
  }

  bool list_index(const Val& key, int64_t& index, Val& failed) {
    switch (key.kind()) {
      case Kind::Int:
        index = key.as_int();
        return true;
      case Kind::Uint:
        if (key.as_uint() <= static_cast<uint64_t>(INT64_MAX)) {
          index = key.as_int();
          return true;
        }
        break;
      case Kind::Double: {
        const double d = key.as_double();
        if (d > -9223372036854775808.0 && d < 9223372036854775808.0 && std::trunc(d) == d) {
          index = static_cast<int64_t>(d);
          return true;
        }
        break;
      }
      default:
        failed = error(arena_, "unsupported index type '" + std::string(key.type_name()) + "' in list");
        return false;
    }
    failed = error(arena_, "unsupported index value " + go_text(key) + " in list");
    return false;
  }

  // --- Construction ---

  static std::string_view go_native_name(const Val& v) {
    switch (v.kind()) {
      case Kind::Bool:
        return "bool";
      case Kind::Int:
        return "int64";
      case Kind::Uint:
        return "uint64";
      case Kind::Double:
        return "float64";
      case Kind::Bytes:
        return "[]uint8";
      case Kind::Null:
        return "structpb.NullValue";
      case Kind::Timestamp:
        return "time.Time";
      case Kind::Duration:
        return "time.Duration";
      case Kind::List:
        return Rep::is_data(v) ? "[]interface {}" : "[]ref.Val";
      case Kind::Map:
        return Rep::is_data(v) ? "map[string]interface {}" : "map[ref.Val]ref.Val";
      default:
        return "string";
    }
  }

  Val structure(const Node& n) {
    std::vector<std::pair<std::string_view, Val>> fields;
    Val failed;
    for (size_t i = 0; i < n.fields.size(); ++i) {
      Val v = evaluate(*n.args[i]);
      if (v.is_error()) {
        failed = v;
        break;
      }
      std::erase_if(fields, [&](const auto& field) { return field.first == n.fields[i]; });
      if (n.optionals[i]) {
        if (v.kind() != Kind::Optional) {
          failed = error(arena_, "cannot initialize optional entry '" + std::string(n.fields[i]) +
                                     "' from non-optional value " + go_text(v));
          break;
        }
        if (!v.has_value()) continue;
        v = Rep::inner(v);
      }
      fields.emplace_back(n.fields[i], v);
    }
    charge(40);
    if (failed.is_error()) return failed;
    if (n.name == "JSONPatch") return json_patch(fields);
    std::sort(fields.begin(), fields.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    auto* rep = arena_.make<ObjectRep>();
    rep->type_name = n.name;
    auto* kept = arena_.allocate_array<std::pair<std::string_view, Val>>(fields.size());
    std::uninitialized_copy(fields.begin(), fields.end(), kept);
    rep->fields = {kept, fields.size()};
    return Rep::object(rep);
  }
  Val json_patch(const std::vector<std::pair<std::string_view, Val>>& fields) {
    auto* patch = arena_.make<Val::Patch>();
    for (const auto& [name, v] : fields) {
      if (name == "value") {
        patch->value = arena_.make<Val>(v);
        continue;
      }
      if (name != "op" && name != "path" && name != "from")
        return error(arena_, "unexpected JSONPatchType field: " + std::string(name));
      Val held = v;
      while (held.kind() == Kind::Optional && held.has_value()) held = Rep::inner(held);
      if (!held.is_string() && held.kind() != Kind::Type) {  // A type's native form is its name.
        const std::string_view type = held.kind() == Kind::Optional ? "<nil>" : go_native_name(held);
        return error(arena_,
                     "unexpected type " + std::string(type) + " for JSONPatchType '" + std::string(name) + "' field");
      }
      (name == "op" ? patch->op : name == "path" ? patch->path : patch->from) = held.text();
    }
    return Rep::patch(patch);
  }

  Val fold(const Node& n) {
    const Val range = evaluate(*n.args[0]);
    if (range.is_error()) return range;
    const bool is_map = range.kind() == Kind::Map;
    if (!is_map && range.kind() != Kind::List) {
      return error(arena_, n.two_variables ? "unsupported comprehension range type: " + std::string(go_type_name(range))
                                           : "got '" + std::string(go_type_name(range)) + "', expected iterable type");
    }
    Local& accumulator = locals_[n.slot];
    accumulator.init = n.args[1];
    accumulator.open = false;
    Local& first = locals_[n.slot + 1];
    Local& second = locals_[n.slot + 2];
    first.init = second.init = nullptr;
    const uint64_t count = is_map ? map_size(range) : list_size(range);
    for (uint64_t i = 0; i < count; ++i) {
      if (is_map) {
        first.value = range.key_at(arena_, i);
        if (n.two_variables) second.value = range.value_at(arena_, i);
      } else if (n.two_variables) {
        first.value = Val::integer(static_cast<int64_t>(i));
        second.value = list_at(arena_, range, i);
      } else {
        first.value = list_at(arena_, range, i);
      }
      const Val go_on = evaluate(*n.args[2]);
      if (go_on.is_bool() && !go_on.as_bool()) break;
      const Val next = evaluate(*n.args[3]);
      accumulator.value = next;
      accumulator.init = nullptr;
    }
    const Val result = evaluate(*n.args[4]);
    return accumulator.open && !result.is_error() ? closed(arena_, result) : result;
  }

  Context& context_;
  Arena& arena_;
  const Bindings* bindings_;
  Local* locals_;
};

const Node* Planner::evaluated(Node* n) {
  Context context{program_.arena, UINT64_MAX};
  Evaluator evaluator(context, nullptr, 0);
  const Val v = evaluator.evaluate(*n);
  return constant(v);
}

const Node* Planner::folded(Node* n, std::string_view name) {
  static const std::unordered_set<std::string_view> kConversions = {"bool", "bytes",  "double",    "duration", "dyn",
                                                                    "int",  "string", "timestamp", "type",     "uint"};
  if (n->args.size() != 1 || !is_const(n->args[0]) || !kConversions.contains(name)) return n;
  Context context{program_.arena, UINT64_MAX};
  Evaluator evaluator(context, nullptr, 0);
  const Val v = evaluator.evaluate(*n);
  if (v.is_error()) throw PlanError{std::string(v.text())};
  return constant(v);
}

}  // namespace

// --- Public interface ------------------------------------------------------------------------------------------------

Environment::Environment(std::unique_ptr<State> state) : state_(state.release()) {}
void Environment::Destroy::operator()(State* state) const { delete state; }
std::span<const Environment::Variable> Environment::variables() const { return state_->options.variables; }

std::shared_ptr<const Environment> Environment::make(Options options) {
  auto state = std::make_unique<State>();
  state->options = std::move(options);
  TypeMaker make(state->arena);
  state->dotted_roots = {"google", "net"};
  if (state->options.mutation) state->dotted_roots.insert("Object");
  for (size_t i = 0; i < state->options.variables.size(); ++i) {
    const Variable& variable = state->options.variables[i];
    TypeRef type = variable.decl != nullptr && variable.decl->type != nullptr ? variable.decl->type : variable.type;
    if (type == nullptr) type = dyn_type();
    state->types.push_back(variable.optional ? make.optional(type) : type);
    state->by_name[variable.name] = i;
    if (const size_t dot = variable.name.find('.'); dot != std::string::npos)
      state->dotted_roots.insert(variable.name.substr(0, dot));
  }
  return std::shared_ptr<const Environment>(new Environment(std::move(state)));
}

Environment::Compiled Environment::compile(std::string_view expression) const {
  Compiled result;
  auto program = std::make_unique<Program::State>();
  program->expression = program->arena.copy(expression);
  const Source source(program->expression);
  Issues issues(source);
  const auto fail = [&] {
    result.error.text = issues.text();
    return std::move(result);
  };
  Arena scratch;
  // Literals and names stay in the program's arena; the tree is not used after compilation.
  Expr* root = parse(program->arena, source, issues, state_->options.device_selector);
  if (root == nullptr) return fail();
  if (!check(*state_, scratch, root, issues)) return fail();
  validate(scratch, root, issues);
  if (!issues.empty()) return fail();
  try {
    program->root = Planner(*program, *state_).plan(root);
  } catch (const PlanError& problem) {
    result.error = {problem.message, go_type_text(root->type)};
    return result;
  }
  program->estimate = estimate_cost(*state_, scratch, root);
  // Copied because the type outlives the compilation.
  struct Copy {
    TypeMaker make;
    TypeRef operator()(TypeRef t) {
      if (t->kind == TypeKind::Struct || t->parameters.empty()) {
        Type* copied = make.arena().make<Type>(*t);
        copied->name = make.arena().copy(t->name);
        return copied;
      }
      std::vector<TypeRef> parameters;
      for (const TypeRef p : t->parameters) parameters.push_back((*this)(p));
      return make.make(t->kind, make.arena().copy(t->name), parameters);
    }
  };
  program->type = Copy{TypeMaker(program->arena)}(root->type);
  result.program = std::shared_ptr<const Program>(new Program(std::move(program)));
  return result;
}

Program::Program(std::unique_ptr<State> state) : state_(state.release()) {}
Program::~Program() = default;
void Program::Destroy::operator()(State* state) const { delete state; }
std::string_view Program::expression() const { return state_->expression; }
TypeRef Program::result_type() const { return state_->type; }
CostEstimate Program::estimate() const { return state_->estimate; }
bool Program::uses(std::string_view variable) const { return state_->used.contains(variable); }

Outcome Program::evaluate(const Bindings& bindings, Arena& arena, uint64_t cost_limit) const {
  Context context{arena, cost_limit};
  Outcome outcome;
  try {
    Evaluator evaluator(context, &bindings, state_->locals);
    outcome.value = evaluator.evaluate(*state_->root);
  } catch (const LimitExceeded&) {
    outcome.value = Val::error(kCostLimitExceeded);
  } catch (const CostTrackerPanic& why) {
    outcome.value = error(arena, "internal error: " + why.message);
  }
  outcome.cost = context.cost;
  return outcome;
}

}  // namespace holdfast::cel
