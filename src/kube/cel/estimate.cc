// The static cost estimate of an expression: cel-go's, with Kubernetes' additions.
#include <cmath>
#include <map>

#include "cel/environment.h"

namespace holdfast::cel {

struct SizeRange {
  uint64_t min = 0, max = UINT64_MAX;
};
struct EntrySizes {
  bool is_list = false;
  SizeRange key, value;
};
// The origin of a value: self.spec.items, then "@items".
struct DataPath {
  const DataPath* parent = nullptr;
  std::string_view name;
};
struct Sizes {
  std::optional<SizeRange> size;
  std::optional<EntrySizes> entries;
  const DataPath* path = nullptr;
};

namespace {

uint64_t add(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }
uint64_t times(uint64_t a, uint64_t b) { return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b; }
uint64_t factor(uint64_t a, double f) {
  const auto x = static_cast<double>(a);
  if (x > 0 && f > 0 && x > 18446744073709551615.0 / f) return UINT64_MAX;
  const double product = std::ceil(x * f);
  return product >= 18446744073709551616.0 ? UINT64_MAX : static_cast<uint64_t>(product);
}
template <class R>
R sum(R a, R b) {
  return {add(a.min, b.min), add(a.max, b.max)};
}
SizeRange product(SizeRange a, SizeRange b) { return {times(a.min, b.min), times(a.max, b.max)}; }
CostEstimate product(CostEstimate a, CostEstimate b) { return {times(a.min, b.min), times(a.max, b.max)}; }
CostEstimate cost_of(SizeRange size, double f) { return {factor(size.min, f), factor(size.max, f)}; }
CostEstimate scaled(CostEstimate cost, double f) { return {factor(cost.min, f), factor(cost.max, f)}; }
CostEstimate repeated(SizeRange count, CostEstimate cost) {
  return {times(count.min, cost.min), times(count.max, cost.max)};
}
template <class R>
R both(R a, R b) {
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}
CostEstimate fixed(uint64_t cost) { return {cost, cost}; }

constexpr double kText = 0.1, kRegex = 0.25;

struct CallCost {
  CostEstimate cost;
  std::optional<SizeRange> result;
};

class Estimator {
 public:
  Estimator(const Environment::State& environment, Arena& arena) : arena_(arena) {
    for (const Environment::Variable& variable : environment.options.variables) {
      if (variable.decl == nullptr) continue;
      root_ = variable.decl;
      if (environment.options.device_selector) root_name_ = variable.name;
    }
  }

  CostEstimate cost(Expr* e) {
    switch (e->kind) {
      case ExprKind::Literal:
        return {};
      case ExprKind::Ident:
        return ident(e, e->reference);
      case ExprKind::Select:
        return e->is_reference ? ident(e, e->reference) : select(e);
      case ExprKind::Call:
        return call(e);
      case ExprKind::List:
        return list(e);
      case ExprKind::Map:
        return map(e);
      case ExprKind::Struct: {
        CostEstimate total;
        for (const Entry& entry : e->entries) total = sum(total, cost(entry.value));
        return sum(total, fixed(40));
      }
      case ExprKind::Comprehension:
        return is_bind(e) ? bind(e) : comprehension(e);
      case ExprKind::Unspecified:
        break;
    }
    return {};
  }

 private:
  struct Local {
    std::string_view name;
    const DataPath* path;
    std::optional<SizeRange> size;
    std::optional<EntrySizes> entries;
  };

  Sizes& info(Expr* e) {
    if (e->sizes == nullptr) {
      void* room = arena_.allocate(sizeof(Sizes), alignof(Sizes));
      e->sizes = new (room) Sizes();
    }
    return *e->sizes;
  }
  const DataPath* extend(const DataPath* path, std::string_view name) {
    auto* next = arena_.make<DataPath>();
    next->parent = path;
    next->name = name;
    return next;
  }
  const Local* find_local(std::string_view name) const {
    for (size_t i = locals_.size(); i > 0; --i) {
      if (locals_[i - 1].name == name) return &locals_[i - 1];
    }
    return nullptr;
  }
  const DataPath* path_of(Expr* e) {
    if (e->kind == ExprKind::Ident) {
      if (const Local* local = find_local(e->reference)) return local->path;
    }
    return e->sizes == nullptr ? nullptr : e->sizes->path;
  }

  // The schema's bound for the size of the value at a path.
  std::optional<SizeRange> schema_size(const DataPath* path) const {
    if (path == nullptr || root_ == nullptr) return std::nullopt;
    const Decl* decl = nullptr;
    if (!walk(path, decl)) return std::nullopt;
    if (decl == &kKey) return SizeRange{0, 0};
    return SizeRange{0, static_cast<uint64_t>(decl->max_elements)};
  }
  bool walk(const DataPath* path, const Decl*& decl) const {
    if (path->parent == nullptr) {
      decl = root_;
      return root_name_.empty() || path->name == root_name_;
    }
    if (!walk(path->parent, decl) || decl == &kKey) return false;
    if (path->name == "@items" || path->name == "@values") {
      decl = decl->element;
    } else if (decl->kind != Decl::Kind::Map) {
      decl = decl->kind == Decl::Kind::Object ? decl->find_escaped(path->name) : nullptr;
    } else if (path->name == "@keys") {
      decl = decl->key == nullptr ? &kKey : decl->key;
    } else {
      // For maps accessed like objects, only a device's attributes have known sizes.
      decl = decl->element->type == any_type() ? decl->element : nullptr;
    }
    return decl != nullptr;
  }

  static bool is_scalar(const Type* t) {
    switch (t->kind) {
      case TypeKind::Bool:
      case TypeKind::Double:
      case TypeKind::Duration:
      case TypeKind::Int:
      case TypeKind::Timestamp:
      case TypeKind::Uint:
        return true;
      default:
        return is_optional(t) && !t->parameters.empty() && is_scalar(t->parameters[0]);
    }
  }

  std::optional<SizeRange> size_of(Expr* e) {
    if (e->sizes != nullptr && e->sizes->size) return e->sizes->size;
    switch (e->kind) {
      case ExprKind::Literal: {
        const Val& v = e->literal;
        const uint64_t size = v.kind() == Kind::String || v.kind() == Kind::Bytes ? cost_size(v) : 1;
        return SizeRange{size, size};
      }
      case ExprKind::List:
        return SizeRange{e->args.size(), e->args.size()};
      case ExprKind::Map:
        return SizeRange{e->entries.size(), e->entries.size()};
      default:
        break;
    }
    if (const auto size = schema_size(path_of(e))) {
      info(e).size = size;
      return size;
    }
    if (is_scalar(e->type)) return SizeRange{1, 1};
    if (e->kind == ExprKind::Ident) {
      if (const Local* local = find_local(e->reference); local != nullptr && local->size) return local->size;
    }
    return std::nullopt;
  }
  SizeRange known_size(Expr* e) { return size_of(e).value_or(SizeRange{}); }

  std::optional<EntrySizes> entries_of(Expr* e) {
    if (e->sizes != nullptr && e->sizes->entries) return e->sizes->entries;
    if (e->kind == ExprKind::Ident) {
      if (const Local* local = find_local(e->reference); local != nullptr && local->entries) return local->entries;
    }
    return std::nullopt;
  }
  static std::optional<EntrySizes> both_entries(const std::optional<EntrySizes>& a,
                                                const std::optional<EntrySizes>& b) {
    if (!a || !b) return std::nullopt;
    return EntrySizes{a->is_list, both(a->key, b->key), both(a->value, b->value)};
  }

  CostEstimate ident(Expr* e, std::string_view name) {
    const Local* local = find_local(name);
    info(e).path = local != nullptr ? local->path : extend(nullptr, name);
    return fixed(1);
  }

  CostEstimate select(Expr* e) {
    if (e->test_only) return cost(e->operand);
    CostEstimate total = cost(e->operand);
    switch (e->operand->type->kind) {
      case TypeKind::Map:
      case TypeKind::Struct:
      case TypeKind::Param:
        total = sum(total, fixed(1));
        break;
      default:
        break;
    }
    const DataPath* path = path_of(e->operand);
    info(e).path = extend(path, e->name);
    return total;
  }

  CostEstimate list(Expr* e) {
    CostEstimate total;
    SizeRange item{UINT64_MAX, 0};
    if (e->args.empty()) item.min = 0;
    for (Expr* element : e->args) {
      total = sum(total, cost(element));
      item = both(item, known_size(element));
    }
    info(e).entries = EntrySizes{true, {1, 1}, item};
    return sum(total, fixed(10));
  }
  CostEstimate map(Expr* e) {
    CostEstimate total;
    SizeRange key{UINT64_MAX, 0}, value{UINT64_MAX, 0};
    if (e->entries.empty()) key.min = value.min = 0;
    for (const Entry& entry : e->entries) {
      total = sum(total, cost(entry.key_expr));
      total = sum(total, cost(entry.value));
      key = both(key, known_size(entry.key_expr));
      value = both(value, known_size(entry.value));
    }
    info(e).entries = EntrySizes{false, key, value};
    return sum(total, fixed(30));
  }

  static bool is_bind(const Expr* e) {
    return e->range->kind == ExprKind::List && e->range->args.empty() && e->condition->kind == ExprKind::Literal &&
           e->condition->literal.is_bool() && !e->condition->literal.as_bool() && e->accumulator != "__result__";
  }
  CostEstimate bind(Expr* e) {
    CostEstimate total = sum(cost(e->range), cost(e->init));
    locals_.push_back({e->accumulator, path_of(e->init), size_of(e->init), entries_of(e->init)});
    total = sum(total, cost(e->result));
    locals_.pop_back();
    copy_sizes(e, e->result);
    return total;
  }
  void copy_sizes(Expr* to, Expr* from) {
    if (const auto size = size_of(from)) info(to).size = size;
    if (const auto entries = entries_of(from)) info(to).entries = entries;
  }

  CostEstimate comprehension(Expr* e) {
    CostEstimate total = sum(cost(e->range), cost(e->init));
    locals_.push_back({e->accumulator, path_of(e->init), size_of(e->init), entries_of(e->init)});
    const std::optional<EntrySizes> entries = entries_of(e->range);
    const bool is_list = entries ? entries->is_list : e->range->type->kind == TypeKind::List;
    const DataPath* path = path_of(e->range);
    const auto key_size = [&] { return entries ? std::optional(entries->key) : std::nullopt; };
    const auto value_size = [&] { return entries ? std::optional(entries->value) : std::nullopt; };
    if (!e->variable2.empty()) {
      locals_.push_back({e->variable, extend(path, is_list ? "@indices" : "@keys"), key_size(), {}});
      locals_.push_back({e->variable2, extend(path, is_list ? "@items" : "@values"), value_size(), {}});
    } else {
      locals_.push_back(
          {e->variable, extend(path, is_list ? "@items" : "@keys"), is_list ? value_size() : key_size(), {}});
    }
    const CostEstimate condition = cost(e->condition);
    const CostEstimate step = cost(e->step);
    locals_.pop_back();
    if (!e->variable2.empty()) locals_.pop_back();
    total = sum(total, cost(e->result));
    locals_.pop_back();
    const SizeRange count = known_size(e->range);
    total = sum(total, repeated(count, sum(step, condition)));
    switch (e->init->kind) {
      case ExprKind::Literal:
        if (const auto size = size_of(e->init)) info(e).size = size;
        break;
      case ExprKind::List:
      case ExprKind::Map:
        info(e).size = count;
        if (const auto step_entries = entries_of(e->step)) info(e).entries = step_entries;
        break;
      default:
        break;
    }
    return total;
  }

  CostEstimate call(Expr* e) {
    if (e->name == "dyn" && !e->member) {
      const CostEstimate arg = cost(e->args[0]);
      copy_sizes(e, e->args[0]);
      return sum(fixed(1), arg);
    }
    std::vector<CostEstimate> arg_costs;
    CostEstimate args;
    for (Expr* arg : e->args) {
      arg_costs.push_back(cost(arg));
      args = sum(args, arg_costs.back());
    }
    CostEstimate total;
    if (e->member) total = cost(e->operand);
    CostEstimate calls{UINT64_MAX, 0};
    std::optional<SizeRange> result;
    for (const Overload* overload : e->overloads) {
      const CallCost one = overload_cost(e, *overload, arg_costs, args);
      calls = both(calls, one.cost);
      if (one.result) result = result ? both(*result, *one.result) : *one.result;
      if (overload->id == "index_list" || overload->id == "index_map") {
        const auto entries = entries_of(e->args[0]);
        result = entries ? std::optional(entries->value) : std::nullopt;
        info(e).path = extend(path_of(e->args[0]), overload->id == "index_list" ? "@items" : "@values");
      }
      if (!result) result = size_of(e);
    }
    if (result) info(e).size = result;
    return sum(total, calls);
  }

  SizeRange argument_size(Expr* e) { return size_of(e).value_or(SizeRange{}); }

  // The element type and size of a list.
  bool element(Expr* list, const Type*& type, SizeRange& size) {
    if (list->type->parameters.empty()) return false;
    type = list->type->parameters[0];
    size = SizeRange{};
    const DataPath* path = path_of(list);
    if (path == nullptr || path_root(path) == kAccumulator) return true;
    if (const auto known = schema_size(extend(path, "@items"))) size = *known;
    return true;
  }
  static std::string_view path_root(const DataPath* path) {
    while (path->parent != nullptr) path = path->parent;
    return path->name;
  }

  static std::optional<uint64_t> literal_int(const Expr* e) {
    if (e->kind != ExprKind::Literal || e->literal.kind() != Kind::Int) return std::nullopt;
    return e->literal.as_int() < 0 ? 0 : static_cast<uint64_t>(e->literal.as_int());
  }
  static CallCost list_call(double f, SizeRange size) {
    return {sum(sum(cost_of(size, f), fixed(1)), fixed(10)), size};
  }

  // Costs of cel-go's lists and sets extensions.
  std::optional<CallCost> extension_cost(Expr* e, const Overload& overload) {
    const std::string_view id = overload.id;
    if (id.starts_with("list_sets_")) {
      const double f = id == "list_sets_equivalent_list" ? 2 : 1;
      return CallCost{sum(cost_of(product(argument_size(e->args[0]), argument_size(e->args[1])), f), fixed(1)), {}};
    }
    if (id == "list_slice") {
      const SizeRange size = argument_size(e->operand);
      const uint64_t start = literal_int(e->args[0]).value_or(0), end = literal_int(e->args[1]).value_or(size.max);
      return list_call(1, {end - start, end - start});
    }
    if (id == "lists_range") {
      const uint64_t count = literal_int(e->args[0]).value_or(UINT64_MAX);
      return list_call(1, {count, count});
    }
    if (id == "list_reverse") return list_call(1, argument_size(e->operand));
    if (id == "list_flatten") return list_call(1, argument_size(e->operand));
    if (id == "list_flatten_int")
      return list_call(static_cast<double>(literal_int(e->args[0]).value_or(UINT64_MAX)), argument_size(e->operand));
    if (id == "list_distinct") {
      const SizeRange size = argument_size(e->operand);
      return list_call(2, product(size, size));
    }
    const bool by_keys = id.ends_with("_sortByAssociatedKeys");
    if (id.starts_with("list_") && (id.ends_with("_sort") || by_keys)) {
      const SizeRange size = argument_size(by_keys ? e->args[0] : e->operand);
      const Type* items = overload.args.back()->parameters[0];
      const double f = items->kind == TypeKind::String || items->kind == TypeKind::Bytes ? 2.1 : 2.0;
      return list_call(f, product(size, size));
    }
    return std::nullopt;
  }

  std::optional<CallCost> kubernetes_cost(Expr* e, const Overload& overload) {
    const std::string_view name = e->function->name;
    static const std::unordered_set<std::string_view> kOne = {"serviceAccount",
                                                              "path",
                                                              "group",
                                                              "resource",
                                                              "subresource",
                                                              "namespace",
                                                              "name",
                                                              "allowed",
                                                              "reason",
                                                              "error",
                                                              "errored",
                                                              "masked",
                                                              "prefixLength",
                                                              "family",
                                                              "isUnspecified",
                                                              "isLoopback",
                                                              "isLinkLocalMulticast",
                                                              "isLinkLocalUnicast",
                                                              "isGlobalUnicast",
                                                              "format.named",
                                                              "sign",
                                                              "asInteger",
                                                              "isInteger",
                                                              "asApproximateFloat",
                                                              "isGreaterThan",
                                                              "isLessThan",
                                                              "compareTo",
                                                              "add",
                                                              "sub",
                                                              "major",
                                                              "minor",
                                                              "patch",
                                                              "getScheme",
                                                              "getHostname",
                                                              "getHost",
                                                              "getPort",
                                                              "getEscapedPath",
                                                              "getQuery"};
    if (kOne.contains(name)) return CallCost{fixed(1), {}};
    if (name == "check") return CallCost{fixed(350'000), {}};
    if (name == "fieldSelector" || name == "labelSelector") {
      const SizeRange size = argument_size(e->args[0]);
      return CallCost{sum(sum(fixed(10), cost_of(size, kText)), scaled(cost_of(size, 0.5), 50)), {}};
    }
    if (name == "isSorted" || name == "sum" || name == "max" || name == "min" || name == "indexOf" ||
        name == "lastIndexOf") {
      if (!e->member) return std::nullopt;
      const Type* type = nullptr;
      SizeRange items;
      const SizeRange size = argument_size(e->operand);
      if (!element(e->operand, type, items)) return CallCost{cost_of(size, kText), {}};
      CostEstimate each = fixed(1);
      if (type->kind == TypeKind::String || type->kind == TypeKind::Bytes) each = sum(each, cost_of(items, kText));
      return CallCost{repeated(size, each), {}};
    }
    if (name == "url" || name == "jsonpatch.escapeKey") {
      const SizeRange size = argument_size(e->args[0]);
      return CallCost{cost_of(size, kText), size};
    }
    if (name == "lowerAscii" || name == "upperAscii" || name == "substring" || name == "trim") {
      const SizeRange size = argument_size(e->operand);
      return CallCost{cost_of(size, kText), size};
    }
    if (name == "replace") return replace_cost(e);
    if (name == "split") {
      const SizeRange size = argument_size(e->operand);
      uint64_t most = size.max;
      if (e->args.size() > 1 && e->args[1]->kind == ExprKind::Literal && e->args[1]->literal.kind() == Kind::Int)
        most = e->args[1]->literal.as_uint();
      return CallCost{cost_of(size, 2 * kText), SizeRange{0, most}};
    }
    if (name == "join") return join_cost(e);
    if (name == "find" || name == "findAll") {
      const SizeRange size = argument_size(e->operand);
      const CostEstimate text = cost_of(sum(size, SizeRange{1, 1}), kText);
      return CallCost{product(text, cost_of(argument_size(e->args[0]), kRegex)), SizeRange{0, size.max}};
    }
    if (name == "ip" && overload.id == "cidr_ip") return CallCost{fixed(1), {}};
    if (name == "cidr" || name == "isIP" || name == "isCIDR" || name == "ip" || name == "quantity" ||
        name == "isQuantity" || name == "semver" || name == "isSemver")
      return CallCost{cost_of(argument_size(e->args[0]), kText), {}};
    if (name == "ip.isCanonical") return CallCost{cost_of(argument_size(e->args[0]), 2 * kText), {}};
    if (name == "containsIP" || name == "containsCIDR") {
      const SizeRange bytes{4, 16};
      CostEstimate total = cost_of(sum(bytes, bytes), kText);
      if (name == "containsCIDR") total = sum(sum(total, cost_of(bytes, kText)), fixed(1));
      if (overload.id == "cidr_contains_ip_string" || overload.id == "cidr_contains_cidr_string")
        total = sum(total, cost_of(argument_size(e->args[0]), kText));
      return CallCost{total, {}};
    }
    if (name == "validate") return CallCost{scaled(cost_of(argument_size(e->args[0]), kText), 128 * kRegex), {}};
    if (name == op::kEquals) return equality_cost(e);
    return std::nullopt;
  }

  std::optional<CallCost> equality_cost(Expr* e) {
    const Type* a = e->args[0]->type;
    const Type* b = e->args[1]->type;
    if (a->name != b->name) return std::nullopt;
    if (a->kind == TypeKind::Opaque) {
      if (a->name == "net.IP" || a->name == "net.CIDR") return CallCost{fixed(1), {}};
      return std::nullopt;
    }
    if (a->kind != TypeKind::Struct) return std::nullopt;
    if (a->name == "kubernetes.NamedFormat") return CallCost{scaled({1, 64}, kText), {}};
    if (a->name == "kubernetes.URL") {
      SizeRange size{1, 1};
      if (const auto known = size_of(e->args[1])) size = *known;
      return CallCost{scaled({1, size.max}, kText), {}};
    }
    if (a == quantity_type() || a == semver_type() || a->name.starts_with("kubernetes.authorization."))
      return CallCost{fixed(1), {}};
    return std::nullopt;
  }

  std::optional<CallCost> replace_cost(Expr* e) {
    const SizeRange size = argument_size(e->operand), old = argument_size(e->args[0]), with = argument_size(e->args[1]);
    SizeRange count{0, 0}, kept{0, 0};
    if (old.min == 0) {
      count.max = size.max < UINT64_MAX ? size.max + 1 : size.max;
      kept.max = size.max;
    } else if (with.max <= old.min) {
      kept.max = size.max;
    } else {
      count.max = rounded_quotient(size.max, old.min);
    }
    if (old.max == 0) {
      count.min = size.min < UINT64_MAX ? size.min + 1 : size.min;
      kept.min = size.min;
    } else if (old.max <= with.min) {
      kept.min = size.min;
    } else {
      count.min = rounded_quotient(size.min, old.max);
    }
    return CallCost{cost_of(size, 2 * kText), sum(product(count, with), kept)};
  }
  // Go's uint64(math.Ceil(a / b)) on amd64: overflow gives 2^63.
  static uint64_t rounded_quotient(uint64_t a, uint64_t b) {
    const double q = std::ceil(static_cast<double>(a) / static_cast<double>(b));
    if (q >= 18446744073709551616.0) return uint64_t{1} << 63;
    return static_cast<uint64_t>(q);
  }

  std::optional<CallCost> join_cost(Expr* e) {
    SizeRange total{0, 0};
    const SizeRange count = argument_size(e->operand);
    const Type* type = nullptr;
    SizeRange items;
    if (element(e->operand, type, items)) total = product(count, items);
    if (!e->args.empty()) {
      const SizeRange between{count.min > 0 ? count.min - 1 : 0, count.max > 0 ? count.max - 1 : 0};
      total = sum(total, product(argument_size(e->args[0]), between));
    }
    return CallCost{cost_of(total, kText), total};
  }

  CallCost overload_cost(Expr* e, const Overload& overload, const std::vector<CostEstimate>& arg_costs,
                         CostEstimate args) {
    std::optional<CallCost> special = extension_cost(e, overload);
    if (!special) special = kubernetes_cost(e, overload);
    if (special) return {sum(special->cost, args), special->result};
    const std::string_view id = overload.id;
    const auto with_args = [&](CostEstimate own) { return CallCost{sum(own, args), {}}; };
    if (id == "string_format") return with_args(cost_of(argument_size(e->operand), kText));
    if (id == "string_to_bytes") {
      const SizeRange size = argument_size(e->args[0]);
      return {sum(cost_of(size, kText), args), SizeRange{size.min, size.max * 4}};
    }
    if (id == "bytes_to_string") {
      const SizeRange size = argument_size(e->args[0]);
      return {sum(cost_of(size, kText), args), SizeRange{size.min / 4, size.max}};
    }
    if (id == "strings_quote") {
      const SizeRange size = argument_size(e->args[0]);
      return {sum(cost_of(size, kText), args), SizeRange{size.min + 2, size.max * 2 + 2}};
    }
    if (id == "starts_with_string" || id == "ends_with_string")
      return with_args(cost_of(argument_size(e->args[0]), kText));
    if (id == "in_list") return with_args(cost_of(argument_size(e->args[1]), 1));
    if (id == "matches_string") {
      const CostEstimate text = cost_of(sum(argument_size(e->operand), SizeRange{1, 1}), kText);
      return with_args(product(text, cost_of(argument_size(e->args[0]), kRegex)));
    }
    if (id == "contains_string")
      return with_args(product(cost_of(argument_size(e->operand), kText), cost_of(argument_size(e->args[0]), kText)));
    if (id == "logical_and" || id == "logical_or")
      return {{arg_costs[0].min, add(arg_costs[0].max, arg_costs[1].max)}, {}};
    if (id == "conditional") {
      const SizeRange size = both(argument_size(e->args[1]), argument_size(e->args[2]));
      if (const auto entries = both_entries(entries_of(e->args[1]), entries_of(e->args[2]))) info(e).entries = entries;
      return {sum(arg_costs[0], both(arg_costs[1], arg_costs[2])), size};
    }
    if (id == "add_string" || id == "add_bytes" || id == "add_list") {
      const SizeRange size = sum(argument_size(e->args[0]), argument_size(e->args[1]));
      if (const auto entries = both_entries(entries_of(e->args[0]), entries_of(e->args[1]))) info(e).entries = entries;
      if (id == "add_list") return {sum(fixed(1), args), size};
      return {sum(cost_of(size, kText), args), size};
    }
    static const std::unordered_set<std::string_view> kCompared = {
        "less_string", "greater_string", "less_equals_string", "greater_equals_string",
        "less_bytes",  "greater_bytes",  "less_equals_bytes",  "greater_equals_bytes",
        "equals",      "not_equals"};
    if (kCompared.contains(id)) {
      const uint64_t smaller = std::min(argument_size(e->args[0]).max, argument_size(e->args[1]).max);
      return with_args(scaled({smaller > 0 ? uint64_t{1} : 0, smaller}, kText));
    }
    return with_args(fixed(1));
  }

  static constexpr Decl kKey{};  // Map keys of unknown size.
  Arena& arena_;
  const Decl* root_ = nullptr;
  std::string_view root_name_;  // If empty, every path starts at the root, as in Kubernetes' estimate of CRD rules.
  std::vector<Local> locals_;
};

}  // namespace

CostEstimate estimate_cost(const Environment::State& environment, Arena& arena, Expr* root) {
  return Estimator(environment, arena).cost(root);
}

}  // namespace holdfast::cel
