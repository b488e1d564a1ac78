// The function table: signatures, dispatch on run-time types, costs.
#include <cmath>

#include "base/ascii.h"
#include "cel/functions.h"

namespace holdfast::cel {
namespace {

// Parses signatures.
class SignatureReader {
 public:
  SignatureReader(Arena& arena, std::string_view text) : arena_(arena), make_(arena), text_(text) {}

  void read(Overload& overload) {
    while (!at("->")) {
      overload.args.push_back(type());
      at(",");
    }
    overload.result = type();
    overload.parameters = parameters_;
  }

 private:
  void skip() {
    while (!text_.empty() && text_[0] == ' ') text_.remove_prefix(1);
  }
  bool at(std::string_view token) {
    skip();
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }
  TypeRef type() {
    skip();
    size_t end = 0;
    while (end < text_.size() && (is_alnum(text_[end]) || text_[end] == '_')) ++end;
    const std::string_view name = text_.substr(0, end);
    text_.remove_prefix(end);
    if (name == "list") return make_.list(inner());
    if (name == "optional") return make_.optional(inner());
    if (name == "typeof") return make_.type_of(inner());
    if (name == "map") {
      at("<");
      const TypeRef key = type();
      at(",");
      const TypeRef value = type();
      at(">");
      return make_.map(key, value);
    }
    if (name.size() == 1) {
      for (const TypeRef known : parameters_) {
        if (known->name == name) return known;
      }
      parameters_.push_back(make_.parameter(arena_.copy(name)));
      return parameters_.back();
    }
    static const std::unordered_map<std::string_view, TypeRef> kNamed = {{"dyn", dyn_type()},
                                                                         {"bool", bool_type()},
                                                                         {"int", int_type()},
                                                                         {"uint", uint_type()},
                                                                         {"double", double_type()},
                                                                         {"string", string_type()},
                                                                         {"bytes", bytes_type()},
                                                                         {"timestamp", timestamp_type()},
                                                                         {"duration", duration_type()},
                                                                         {"quantity", quantity_type()},
                                                                         {"ip", ip_type()},
                                                                         {"cidr", cidr_type()},
                                                                         {"url", url_type()},
                                                                         {"semver", semver_type()},
                                                                         {"format", format_type()},
                                                                         {"authorizer", authorizer_type()},
                                                                         {"path_check", path_check_type()},
                                                                         {"group_check", group_check_type()},
                                                                         {"resource_check", resource_check_type()},
                                                                         {"decision", decision_type()}};
    return kNamed.at(name);
  }
  TypeRef inner() {
    at("<");
    const TypeRef result = type();
    at(">");
    return result;
  }

  Arena& arena_;
  TypeMaker make_;
  std::string_view text_;
  std::vector<TypeRef> parameters_;
};

struct Library {
  LibraryBuilder base, mutation;
  Library() {
    for (auto add : {add_standard_functions, add_time_functions, add_kubernetes_functions, add_authorizer_functions,
                     add_optional_functions, add_string_functions, add_network_functions, add_list_functions})
      add(base);
    mutation.global("jsonpatch.escapeKey", "string_jsonpatch_escapeKey_string", "string -> string",
                    [](Context& c, std::span<const Val> a) {
                      std::string out;
                      for (const char ch : a[0].text()) {
                        if (ch == '/')
                          out += "~1";
                        else if (ch == '~')
                          out += "~0";
                        else
                          out += ch;
                      }
                      return Val::string(c.arena.copy(out));
                    });
  }
};

const Library& library() {
  static const Library* const kLibrary = new Library;
  return *kLibrary;
}

uint64_t tenth(uint64_t size) { return static_cast<uint64_t>(std::ceil(static_cast<double>(size) * 0.1)); }
uint64_t fifth(uint64_t size) { return static_cast<uint64_t>(std::ceil(static_cast<double>(size) * 2 * 0.1)); }

uint64_t traversal(Arena& arena, const Val& v) {
  switch (v.kind()) {
    case Kind::String:
    case Kind::Bytes:
      return static_cast<uint64_t>(static_cast<double>(v.text().size()) * 0.1);
    case Kind::List: {
      uint64_t cost = 0;
      const uint64_t count = list_size(v);
      for (uint64_t i = 0; i < count; ++i) cost += traversal(arena, list_at(arena, v, i));
      return cost;
    }
    case Kind::Map: {
      uint64_t cost = 0;
      v.for_each_entry(
          arena, [&](const Val& key, const Val& value) { cost += traversal(arena, key) + traversal(arena, value); });
      return cost;
    }
    default:
      return 1;
  }
}

uint64_t list_cost(double factor, uint64_t size) {
  return static_cast<uint64_t>(static_cast<double>(size) * factor) + 1 + 10;
}

uint64_t self_compare(Arena& arena, const Val& list) {
  const uint64_t size = cost_size(list);
  double factor = 2.0;
  if (list.kind() == Kind::List && size > 0) {
    const Val first = list_at(arena, list, 0);
    if (first.kind() == Kind::String || first.kind() == Kind::Bytes) factor += 0.1;
  }
  return list_cost(factor, size * size);
}

}  // namespace

Function& LibraryBuilder::function(std::string_view name) {
  if (const auto found = by_name.find(name); found != by_name.end()) return *found->second;
  functions.push_back({.name = name});
  return *(by_name[name] = &functions.back());
}

void LibraryBuilder::add(std::string_view name, std::string_view id, bool member, std::string_view signature,
                         Implementation run, bool varargs) {
  Overload overload;
  overload.id = id;
  overload.member = member;
  overload.run = run;
  SignatureReader(arena, signature).read(overload);
  overload.binding = run == nullptr              ? Binding::None
                     : varargs                   ? Binding::Function
                     : overload.args.size() == 1 ? Binding::Unary
                     : overload.args.size() == 2 ? Binding::Binary
                                                 : Binding::Function;
  function(name).overloads.push_back(std::move(overload));
}

const Function* find_function(std::string_view name, bool mutation) {
  const Library& known = library();
  if (const auto found = known.base.by_name.find(name); found != known.base.by_name.end()) return found->second;
  if (mutation) {
    if (const auto found = known.mutation.by_name.find(name); found != known.mutation.by_name.end())
      return found->second;
  }
  return nullptr;
}

bool has_trait(const Val& v, Trait trait) {
  switch (trait) {
    case Trait::None:
      return true;
    case Trait::Add:
      switch (v.kind()) {
        case Kind::Int:
        case Kind::Uint:
        case Kind::Double:
        case Kind::String:
        case Kind::Bytes:
        case Kind::Duration:
        case Kind::Timestamp:
        case Kind::List:
          return true;
        default:
          return false;
      }
    case Trait::Divide:
    case Trait::Multiply:
      return v.kind() == Kind::Int || v.kind() == Kind::Uint || v.kind() == Kind::Double;
    case Trait::Modulo:
      return v.kind() == Kind::Int || v.kind() == Kind::Uint;
    case Trait::Negate:
      return v.kind() == Kind::Int || v.kind() == Kind::Double || v.kind() == Kind::Duration || v.kind() == Kind::Bool;
    case Trait::Subtract:
      return v.kind() == Kind::Int || v.kind() == Kind::Uint || v.kind() == Kind::Double ||
             v.kind() == Kind::Duration || v.kind() == Kind::Timestamp;
    case Trait::Compare:
      return has_order(v);
    case Trait::Size:
      return v.kind() == Kind::String || v.kind() == Kind::Bytes || v.kind() == Kind::List || v.kind() == Kind::Map;
    case Trait::Match:
      return v.kind() == Kind::String;
    case Trait::List:
      return v.kind() == Kind::List;
    case Trait::Index:
      return v.kind() == Kind::List || v.kind() == Kind::Map || v.kind() == Kind::Object;
  }
  return false;
}

bool fits(Arena& arena, const Type* type, const Val& v) {
  if (is_dyn(type) || type->kind == TypeKind::Param) return true;
  if (type->name != v.type_name()) return false;
  if (type->kind == TypeKind::List) {
    return list_size(v) == 0 || fits(arena, type->parameters[0], list_at(arena, v, 0));
  }
  if (type->kind == TypeKind::Map) {
    return map_size(v) == 0 || (fits(arena, type->parameters[0], v.key_at(arena, 0)) &&
                                fits(arena, type->parameters[1], v.value_at(arena, 0)));
  }
  return true;
}

CostRule cost_rule(std::string_view function, std::string_view overload) {
  struct Rule {
    std::string_view name;
    CostRule rule;
  };
  // The lists and sets extensions are priced by overload, and take precedence.
  static constexpr Rule kByOverload[] = {{"list_slice", CostRule::ListOutput},
                                         {"list_flatten", CostRule::ListFlatten},
                                         {"list_flatten_int", CostRule::ListFlatten},
                                         {"lists_range", CostRule::ListOutput},
                                         {"list_reverse", CostRule::ListOutput},
                                         {"list_distinct", CostRule::SelfCompareFirst},
                                         {"list_sets_contains_list", CostRule::SetProduct},
                                         {"list_sets_intersects_list", CostRule::SetProduct},
                                         {"list_sets_equivalent_list", CostRule::SetDoubleProduct}};
  for (const Rule& rule : kByOverload) {
    if (rule.name == overload) return rule.rule;
  }
  if (overload.starts_with("list_")) {
    if (overload.ends_with("_sort")) return CostRule::SelfCompareFirst;
    if (overload.ends_with("_sortByAssociatedKeys")) return CostRule::SelfCompareSecond;
  }
  if (function == "ip") return overload == "cidr_ip" ? CostRule::One : CostRule::TenthOfFirst;
  if (function == "containsIP")
    return overload == "cidr_contains_ip_string" ? CostRule::CidrContainsIpText : CostRule::CidrContainsIp;
  if (function == "containsCIDR")
    return overload == "cidr_contains_cidr_string" ? CostRule::CidrContainsCidrText : CostRule::CidrContainsCidr;
  // Kubernetes' functions are priced by name.
  static constexpr Rule kByFunction[] = {{"check", CostRule::Check},
                                         {"fieldSelector", CostRule::Selector},
                                         {"labelSelector", CostRule::Selector},
                                         {"isSorted", CostRule::Traversal},
                                         {"sum", CostRule::Traversal},
                                         {"max", CostRule::Traversal},
                                         {"min", CostRule::Traversal},
                                         {"indexOf", CostRule::Traversal},
                                         {"lastIndexOf", CostRule::Traversal},
                                         {"url", CostRule::TenthOfFirst},
                                         {"lowerAscii", CostRule::TenthOfFirst},
                                         {"upperAscii", CostRule::TenthOfFirst},
                                         {"substring", CostRule::TenthOfFirst},
                                         {"trim", CostRule::TenthOfFirst},
                                         {"jsonpatch.escapeKey", CostRule::TenthOfFirst},
                                         {"replace", CostRule::FifthOfFirst},
                                         {"split", CostRule::FifthOfFirst},
                                         {"join", CostRule::FifthOfResult},
                                         {"find", CostRule::Regex},
                                         {"findAll", CostRule::Regex},
                                         {"cidr", CostRule::TenthOfFirst},
                                         {"isIP", CostRule::TenthOfFirst},
                                         {"isCIDR", CostRule::TenthOfFirst},
                                         {"ip.isCanonical", CostRule::FifthOfFirst},
                                         {"quantity", CostRule::TenthOfFirst},
                                         {"isQuantity", CostRule::TenthOfFirst},
                                         {"semver", CostRule::TenthOfFirst},
                                         {"isSemver", CostRule::TenthOfFirst},
                                         {"validate", CostRule::Validate}};
  for (const Rule& rule : kByFunction) {
    if (rule.name == function) return rule.rule;
  }
  // Standard functions are priced by overload again; with several candidates, a call costs 1.
  static constexpr Rule kStandard[] = {{"starts_with_string", CostRule::TenthOfFirstInside},
                                       {"ends_with_string", CostRule::TenthOfFirstInside},
                                       {"string_to_bytes", CostRule::TenthOfFirstInside},
                                       {"bytes_to_string", CostRule::TenthOfFirstInside},
                                       {"strings_quote", CostRule::TenthOfFirstInside},
                                       {"string_format", CostRule::TenthOfFirstInside},
                                       {"in_list", CostRule::SecondSize},
                                       {"less_string", CostRule::TenthOfSmaller},
                                       {"greater_string", CostRule::TenthOfSmaller},
                                       {"less_equals_string", CostRule::TenthOfSmaller},
                                       {"greater_equals_string", CostRule::TenthOfSmaller},
                                       {"less_bytes", CostRule::TenthOfSmaller},
                                       {"greater_bytes", CostRule::TenthOfSmaller},
                                       {"less_equals_bytes", CostRule::TenthOfSmaller},
                                       {"greater_equals_bytes", CostRule::TenthOfSmaller},
                                       {"equals", CostRule::TenthOfSmaller},
                                       {"not_equals", CostRule::TenthOfSmaller},
                                       {"add_string", CostRule::TenthOfSum},
                                       {"add_bytes", CostRule::TenthOfSum},
                                       {"matches_string", CostRule::MatchProduct},
                                       {"contains_string", CostRule::ContainsProduct}};
  for (const Rule& rule : kStandard) {
    if (rule.name == overload) return rule.rule;
  }
  return CostRule::One;
}

uint64_t regex_cost(uint64_t text, uint64_t pattern) {
  return static_cast<uint64_t>(std::ceil((1.0 + static_cast<double>(text)) * 0.1)) *
         static_cast<uint64_t>(std::ceil(static_cast<double>(pattern) * 0.25));
}

// Sizes as seen by the cost tracker: for standard functions it looks inside optionals.
uint64_t tracked_size(const Val& v) {
  if (v.kind() == Kind::Optional && v.has_value()) return tracked_size(Rep::inner(v));
  return cost_size(v);
}

std::string cost_failure(CostRule rule, std::span<const Val> args) {
  const Val* list = rule == CostRule::SelfCompareFirst    ? &args[0]
                    : rule == CostRule::SelfCompareSecond ? &args[1]
                                                          : nullptr;
  if (list != nullptr && list->kind() != Kind::List) {
    // Go reports the alphabetically first method of a list that the type lacks.
    const bool adds = has_trait(*list, Trait::Add);
    return "interface conversion: " + std::string(go_type_name(*list)) + " is not traits.Lister: missing method " +
           (adds ? "Contains" : "Add");
  }
  if (rule == CostRule::ListFlatten && args.size() == 2 && args[1].kind() != Kind::Int) {
    return "interface conversion: ref.Val is " + std::string(go_type_name(args[1])) + ", not types.Int";
  }
  return {};
}

uint64_t run_time_cost(Arena& arena, CostRule rule, std::span<const Val> a, const Val& result) {
  switch (rule) {
    case CostRule::One:
      return 1;
    case CostRule::Check:
      return 350'000;
    case CostRule::Selector: {
      const auto length = static_cast<double>(cost_size(a[1]));
      return 10 + static_cast<uint64_t>(std::ceil(length * 0.1)) +
             static_cast<uint64_t>(std::ceil(std::ceil(length * 0.5) * 50));
    }
    case CostRule::Traversal:
      return traversal(arena, a[0]);
    case CostRule::TenthOfFirst:
      return tenth(cost_size(a[0]));
    case CostRule::TenthOfFirstInside:
      return tenth(tracked_size(a[0]));
    case CostRule::FifthOfFirst:
      return fifth(cost_size(a[0]));
    case CostRule::FifthOfResult:
      return fifth(cost_size(result));
    case CostRule::Regex:
      return regex_cost(cost_size(a[0]), cost_size(a[1]));
    case CostRule::CidrContainsIp:
      return tenth(2 * cost_size(a[0]));
    case CostRule::CidrContainsIpText:
      return tenth(2 * cost_size(a[0])) + tenth(cost_size(a[1]));
    case CostRule::CidrContainsCidr:
      return tenth(2 * cost_size(a[0])) + tenth(cost_size(a[0])) + 1;
    case CostRule::CidrContainsCidrText:
      return tenth(2 * cost_size(a[0])) + tenth(cost_size(a[0])) + 1 + tenth(cost_size(a[1]));
    case CostRule::Validate: {
      if (!Rep::is(a[0], OpaqueKind::Format)) return 1;
      return regex_cost(cost_size(a[1]), static_cast<uint64_t>(format_regex_size(a[0])));
    }
    case CostRule::SecondSize:
      return tracked_size(a[1]);
    case CostRule::TenthOfSmaller:
      return tenth(std::min(tracked_size(a[0]), tracked_size(a[1])));
    case CostRule::TenthOfSum:
      return tenth(tracked_size(a[0]) + tracked_size(a[1]));
    case CostRule::MatchProduct:
      return regex_cost(tracked_size(a[0]), tracked_size(a[1]));
    case CostRule::ContainsProduct:
      return tenth(tracked_size(a[0])) * tenth(tracked_size(a[1]));
    case CostRule::ListOutput:
      return list_cost(1, cost_size(result));
    case CostRule::ListFlatten:
      return list_cost(a.size() == 2 && a[1].kind() == Kind::Int ? static_cast<double>(a[1].as_int()) : 1.0,
                       cost_size(a[0]));
    case CostRule::SelfCompareFirst:
      return self_compare(arena, a[0]);
    case CostRule::SelfCompareSecond:
      return self_compare(arena, a[1]);
    case CostRule::SetProduct:
      return 1 + cost_size(a[0]) * cost_size(a[1]);
    case CostRule::SetDoubleProduct:
      return 1 + static_cast<uint64_t>(static_cast<double>(cost_size(a[0]) * cost_size(a[1])) * 2);
  }
  return 1;
}

}  // namespace holdfast::cel
