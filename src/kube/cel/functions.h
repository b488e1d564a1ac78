// The function table: signatures, implementations and costs. Private to the module.
#pragma once

#include <algorithm>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cel/types.h"
#include "cel/values.h"

namespace re2 {
class RE2;
}

namespace holdfast::cel {

// The state of one evaluation.
struct Context {
  Arena& arena;
  uint64_t limit;
  uint64_t cost = 0;
  uint64_t read_bytes = 0;
  bool exceeded = false;

  // False once the limit is exceeded, which ends the evaluation.
  bool charge(uint64_t amount) {
    cost += amount;
    if (cost > limit) exceeded = true;
    return !exceeded;
  }
  // Some functions read a whole text at the cost of 1, as in Kubernetes: charAt() for each index of a list would read a
  // megabyte a hundred thousand times. What is read beyond this is charged at a tenth of the usual price.
  static constexpr uint64_t kFreeBytes = 16 << 20, kBytesOfCost = 100;
  void read(uint64_t bytes) {
    const uint64_t before = read_bytes;
    read_bytes += bytes;
    if (read_bytes > kFreeBytes) charge((read_bytes - std::max(before, kFreeBytes)) / kBytesOfCost);
  }
  // Whether a text of that length may be made; otherwise the evaluation ends. The price of a call often does not depend
  // on its result, which can be as long as the product of its arguments.
  static constexpr uint64_t kLeastLimit = 1'000'000;
  bool admits(uint64_t bytes) {
    if (bytes / 10 > std::max(limit, kLeastLimit)) exceeded = true;
    return !exceeded;
  }
};

using Implementation = Val (*)(Context&, std::span<const Val>);

// How cel-go binds a function: with one or two parameters, all arguments are evaluated even if one fails; with more,
// only up to the first error. This affects costs.
enum class Binding : uint8_t { None, Unary, Binary, Function };

// The trait that the first operand needs for a function with a single implementation.
enum class Trait : uint8_t { None, Add, Divide, Modulo, Multiply, Negate, Subtract, Compare, Size, Match, List, Index };

// The cost of a call at run time. See run_time_cost.
enum class CostRule : uint8_t {
  One,
  Check,
  Selector,
  Traversal,
  TenthOfFirst,
  TenthOfFirstInside,  // Looks inside optionals.
  FifthOfFirst,
  FifthOfResult,
  Regex,
  CidrContainsIp,
  CidrContainsIpText,
  CidrContainsCidr,
  CidrContainsCidrText,
  Validate,
  SecondSize,
  TenthOfSmaller,
  TenthOfSum,
  MatchProduct,
  ContainsProduct,
  ListOutput,
  ListFlatten,
  SelfCompareFirst,
  SelfCompareSecond,
  SetProduct,
  SetDoubleProduct,
};

struct Overload {
  std::string_view id;
  bool member = false;
  std::vector<TypeRef> args;
  TypeRef result = nullptr;
  Binding binding = Binding::None;
  Implementation run = nullptr;
  bool non_strict = false;
  std::vector<TypeRef> parameters = {};  // Type parameters, without duplicates.
};

struct Function {
  std::string_view name;
  std::vector<Overload> overloads;
  // One implementation for all signatures, if the first operand has the trait.
  Implementation singleton = nullptr;
  Binding singleton_binding = Binding::None;
  Trait trait = Trait::None;
  bool unguarded = false;  // Implementations check the argument types themselves.
};

// The base environment of Kubernetes 1.36; `mutation` adds the functions of mutating policies.
const Function* find_function(std::string_view name, bool mutation);

bool has_trait(const Val& v, Trait trait);
// Whether a value matches a parameter type (IsAssignableRuntimeType).
bool fits(Arena& arena, const Type* type, const Val& v);

CostRule cost_rule(std::string_view function, std::string_view overload);
uint64_t run_time_cost(Arena& arena, CostRule rule, std::span<const Val> args, const Val& result);
// Go's panic message if the cost cannot be computed from an argument; empty otherwise.
std::string cost_failure(CostRule rule, std::span<const Val> args);

// A compiled pattern from a small thread-local cache; null if it is invalid.
const re2::RE2* compiled_regex(std::string_view pattern);

// Called by the evaluator with precompiled patterns.
Val find_all(Context& context, std::string_view text, const re2::RE2& pattern, int64_t limit);
Val find_first(Context& context, std::string_view text, const re2::RE2& pattern);
bool matches(std::string_view text, const re2::RE2& pattern);

int format_regex_size(const Val& format);

Val convert_to_duration(Arena& arena, const Val& v);
Val convert_to_timestamp(Arena& arena, const Val& v);

// Implements format(): "%s is %d". Also used to check literals at compile time.
std::string format_text(Context& context, std::string_view format, const Val& args, std::string& problem);

struct LibraryBuilder;
void add_standard_functions(LibraryBuilder& library);
void add_time_functions(LibraryBuilder& library);
void add_string_functions(LibraryBuilder& library);
void add_list_functions(LibraryBuilder& library);
void add_optional_functions(LibraryBuilder& library);
void add_kubernetes_functions(LibraryBuilder& library);
void add_network_functions(LibraryBuilder& library);
void add_authorizer_functions(LibraryBuilder& library);

// Collects functions. Signatures are strings: "list<T>, int -> T".
struct LibraryBuilder {
  std::deque<Function> functions;
  std::unordered_map<std::string_view, Function*> by_name;
  Arena arena{4096};

  Function& function(std::string_view name);
  void global(std::string_view name, std::string_view id, std::string_view signature, Implementation run,
              bool varargs = false) {
    add(name, id, false, signature, run, varargs);
  }
  void member(std::string_view name, std::string_view id, std::string_view signature, Implementation run,
              bool varargs = false) {
    add(name, id, true, signature, run, varargs);
  }
  void singleton(std::string_view name, Binding binding, Trait trait, Implementation run) {
    Function& f = function(name);
    f.singleton = run;
    f.singleton_binding = binding;
    f.trait = trait;
  }

 private:
  void add(std::string_view name, std::string_view id, bool member, std::string_view signature, Implementation run,
           bool varargs);
};

}  // namespace holdfast::cel
