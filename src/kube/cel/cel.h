// The Common Expression Language as used by Kubernetes 1.36: CRD rules, admission policies, match conditions.
//
//   Environment --compile(text)--> Program --evaluate(bindings, limit, arena)--> Val or error, and the cost
//
// An Environment declares variables with their types and selects the libraries. compile() parses and type-checks one
// expression; its errors are identical to those of cel-go 0.26, including position and caret. A Program is immutable
// and may be shared: evaluation takes no locks and allocates only in the caller's arena. Objects are read in place: a
// Val refers to the holdfast Value it came from, nothing is copied.
//
// Costs and estimates match Kubernetes. Evaluation stops with kCostLimitExceeded once its cost exceeds the limit, so a
// pathological expression cannot use more than its budget.
//
// Lifetime: a Program keeps what it was compiled from alive. A Val is valid as long as the arena of its evaluation, the
// bindings and the Program. Threading: Environment and Program are immutable and may be shared freely.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "value/value.h"

namespace holdfast::cel {

// Kubernetes' limits (k8s.io/apiserver/pkg/apis/cel).
inline constexpr uint64_t kPerCallLimit = 1'000'000;          // Per evaluation.
inline constexpr int64_t kRuntimeBudget = 10'000'000;         // All rules for one object, or one policy binding.
inline constexpr int64_t kMatchConditionsBudget = 2'500'000;  // All match conditions of one webhook or policy.
inline constexpr int64_t kMaxRequestBytes = 3 * 1024 * 1024;  // Assumed by estimates.
inline constexpr size_t kMaxMessageBytes = 5 * 1024;          // Of the result of a messageExpression.
inline constexpr std::string_view kCostLimitExceeded = "operation cancelled: actual cost limit exceeded";

// --- Types ----------------------------------------------------------------------------------------------------------

struct Type;  // Defined in this module's types.h; shared, immutable.
using TypeRef = const Type*;

// Types without parameters.
TypeRef dyn_type();
TypeRef bool_type();
TypeRef int_type();
TypeRef uint_type();
TypeRef double_type();
TypeRef string_type();
TypeRef bytes_type();
TypeRef null_type();
TypeRef timestamp_type();
TypeRef duration_type();
TypeRef authorizer_type();      // kubernetes.authorization.Authorizer
TypeRef resource_check_type();  // kubernetes.authorization.ResourceCheck
TypeRef object_root_type();     // Object, in mutating policies.
TypeRef json_patch_type();      // JSONPatch, in mutating policies.

// "list(string)", "map(string, dyn)", "kubernetes.AdmissionRequest": as in error messages.
std::string type_text(TypeRef type);
// The same with type parameters in angle brackets, as in Go.
std::string go_type_text(TypeRef type);
bool same_type(TypeRef a, TypeRef b);

// Owns the types created for an environment.
class TypePool {
 public:
  TypePool();
  ~TypePool();
  TypePool(TypePool&&) noexcept;
  TypePool& operator=(TypePool&&) noexcept;

  TypeRef list(TypeRef element);
  TypeRef map(TypeRef key, TypeRef value);
  TypeRef optional(TypeRef value);
  // The type of a field of `variables` whose expression has type `type`: scalars and lists and maps of scalars keep
  // their type, everything else is dyn (upstream: convertCelTypeToDeclType). The result does not refer to `type`.
  TypeRef as_variable(TypeRef type);
  // A struct with declared fields: selecting any other field is a compile error.
  TypeRef object(std::string_view name, std::span<const std::pair<std::string, TypeRef>> fields);

 private:
  friend class Environment;
  struct Pool;
  std::shared_ptr<Pool> pool_;
};

// --- Schemas --------------------------------------------------------------------------------------------------------

struct Decl;  // A schema node as seen by CEL.

// An openAPIV3Schema as CEL types: the type of `self` in a CRD's rules, with Kubernetes' escaping of names. Immutable.
class SchemaTypes {
 public:
  // `resource_root`: the root is an object with apiVersion, kind and metadata.name/generateName.
  static std::shared_ptr<const SchemaTypes> build(const Value& schema, bool resource_root);
  ~SchemaTypes();
  const Decl* root() const { return root_; }

 private:
  SchemaTypes() = default;
  friend class SchemaBuilder;
  Arena arena_{1024};
  const Decl* root_ = nullptr;
};

// Escapes a property name for use in expressions: "a-b" is a__dash__b, "in" is __in__. nullopt if it cannot be escaped.
std::optional<std::string> escape_name(std::string_view property);
std::optional<std::string> unescape_name(std::string_view name);

// --- Values ---------------------------------------------------------------------------------------------------------

class Authorizer;
class LazyObject;
struct ListRep;
struct MapRep;
struct ObjectRep;
struct Opaque;

// A value in an Object{...} that has no apply configuration form, with Go's formatting of it.
struct ForeignValue {
  using Step = std::variant<std::string_view, size_t>;  // A field or key, or the index in a list.
  std::vector<Step> path;
  std::string type, syntax, text;  // %T, %#v and %v.
};
struct Configuration {
  Value value;  // With null in place of foreign values.
  std::vector<ForeignValue> foreign;
};

// A CEL value, or the error of a failed evaluation: 24 bytes, trivially copyable.
class Val {
 public:
  enum class Kind : uint8_t {
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    Type,
    List,
    Map,
    Optional,
    Object,     // Object{...} of mutating policies.
    JsonPatch,  // JSONPatch{...} of mutating policies.
    Opaque,     // Quantities, addresses, URLs, versions, formats, the authorizer and its checks.
    Lazy,       // A LazyObject.
    Preserved,  // Untyped data below x-kubernetes-preserve-unknown-fields: it can only be compared.
  };

  Val() = default;  // Null.
  static Val null() { return Val(); }
  static Val boolean(bool b) { return make(Kind::Bool, b ? 1 : 0); }
  static Val integer(int64_t i) { return make(Kind::Int, i); }
  static Val unsigned_integer(uint64_t u) { return make(Kind::Uint, static_cast<int64_t>(u)); }
  static Val number(double d);
  // Strings are not copied.
  static Val string(std::string_view text) { return text_val(Kind::String, text); }
  static Val bytes(std::string_view bytes) { return text_val(Kind::Bytes, bytes); }
  static Val error(std::string_view message) { return text_val(Kind::Error, message); }
  // A value as dyn: maps with string keys, lists, numbers. `value` must outlive the Val.
  static Val data(const Value& value);
  // The same, typed by a schema. If the value does not match, the error is allocated in `arena`.
  static Val data(Arena& arena, const Value& value, const Decl* decl);
  static Val optional_none() { return make(Kind::Optional, 0); }
  static Val optional_of(Arena& arena, Val value);
  static Val authorizer(Arena& arena, Authorizer& authorizer);
  // authorizer.requestResource: a check of the request's resource.
  struct RequestResource {
    std::string_view group, resource, subresource, namespace_name, name;
  };
  static Val resource_check(Arena& arena, Authorizer& authorizer, const RequestResource& about);
  static Val lazy(LazyObject& object);

  Kind kind() const { return kind_; }
  bool is_error() const { return kind_ == Kind::Error; }
  bool is_bool() const { return kind_ == Kind::Bool; }
  bool is_true() const { return kind_ == Kind::Bool && int_ != 0; }
  bool is_string() const { return kind_ == Kind::String; }
  bool is_null() const { return kind_ == Kind::Null; }
  bool as_bool() const { return int_ != 0; }
  int64_t as_int() const { return int_; }
  uint64_t as_uint() const { return static_cast<uint64_t>(int_); }
  double as_double() const;
  // Of a string, bytes, an error (its message) or a type (its name).
  std::string_view text() const { return {text_, count_}; }
  // For optionals.
  bool has_value() const { return optional_ != nullptr; }

  // Number of list items or map entries.
  uint64_t size() const;
  Val at(Arena& arena, uint64_t index) const;
  // Calls the function for each entry of a map; data has string keys.
  template <class F>
  void for_each_entry(Arena& arena, F f) const {
    const uint64_t count = size();
    for (uint64_t i = 0; i < count; ++i) f(key_at(arena, i), value_at(arena, i));
  }
  Val key_at(Arena& arena, uint64_t index) const;
  Val value_at(Arena& arena, uint64_t index) const;
  Val inner(Arena& arena) const;  // The value of a non-empty optional.

  // As printed by `holdfast cel --json-lines`: {"int": 1}, {"list": [...]}.
  std::string shown() const;
  // As plain data. nullopt if there is no such form (types, optionals, maps with non-string keys), with the reason in
  // `error`.
  std::optional<Value> to_value(Arena& arena, std::string* error = nullptr) const;
  // The JSON for the value of a JSONPatch: numbers that JSON cannot represent become strings. nullopt if there is none,
  // with Kubernetes' error message in `problem`.
  std::optional<Value> to_json(Arena& arena, std::string& problem) const;
  // The apply configuration denoted by an Object{...}. A map with the key `marker_key` is accepted anywhere; other maps
  // and lists created by the expression must be fields of an Object, as in Kubernetes.
  Configuration to_configuration(Arena& arena, std::string_view marker_key = {}) const;
  // "int", "list", "google.protobuf.Timestamp", "kubernetes.Quantity".
  std::string_view type_name() const;

  // JSONPatch{...}: op, path and from; `value` is null if it was not given.
  struct Patch {
    std::string_view op, path, from;
    const Val* value = nullptr;
  };
  const Patch& json_patch() const;
  // Object{...}: errors about type names that do not match their field path; empty if there are none.
  std::string object_type_errors() const;

 private:
  friend struct Rep;
  enum class Form : uint8_t { Plain, Data, Items, Concat };
  static Val make(Kind kind, int64_t i) {
    Val v;
    v.kind_ = kind;
    v.int_ = i;
    return v;
  }
  static Val text_val(Kind kind, std::string_view text) {
    Val v;
    v.kind_ = kind;
    v.count_ = static_cast<uint32_t>(text.size());
    v.text_ = text.data();
    return v;
  }

  Kind kind_ = Kind::Null;
  Form form_ = Form::Plain;
  uint32_t count_ = 0;  // Bytes of a string; nanoseconds of a timestamp.
  union {
    int64_t int_ = 0;  // Seconds of a timestamp, nanoseconds of a duration.
    const char* text_;
    const Value* data_;
    const ListRep* list_;
    const MapRep* map_;
    const Val* optional_;
    const ObjectRep* object_;
    const Patch* patch_;
    const Opaque* opaque_;
    LazyObject* lazy_;
  };
  union {
    const Decl* decl_ = nullptr;  // For data typed by a schema.
    int64_t zone_;                // For timestamps: seconds east of UTC, for printing.
  };
};

// Performs the authorizer's checks. Called during evaluation, on the evaluating thread.
class Authorizer {
 public:
  struct Check {
    bool about_resource = false;
    std::string_view path;
    std::string_view group, resource, subresource, namespace_name, name, field_selector, label_selector;
    std::string_view verb;
    // If not empty, the check is for this service account instead of the request's user.
    std::string_view service_account_namespace, service_account_name;
  };
  struct Decision {
    bool allowed = false;
    std::string reason;
    std::optional<std::string> error;
  };
  virtual Decision decide(const Check& check) = 0;

 protected:
  ~Authorizer() = default;
};

// A variable whose fields are computed on first use (`variables` of policies).
class LazyObject {
 public:
  virtual std::string_view type_name() const = 0;
  // The field's value or error; null if there is no such field. Computed at most once.
  virtual const Val* find(std::string_view field) = 0;

 protected:
  ~LazyObject() = default;
};

// --- Compiling ------------------------------------------------------------------------------------------------------

struct CostEstimate {
  uint64_t min = 0, max = 0;
  bool operator==(const CostEstimate&) const = default;
};

class Program;

// All issues of an expression in cel-go's format ("ERROR: <input>:1:3: ...", one block each).
struct CompileError {
  std::string text;
  // If not empty, the expression is well typed with this result type (as printed by go_type_text) but cannot be
  // evaluated, for the reason in `text`.
  std::string type = {};
};

class Environment {
 public:
  struct Variable {
    std::string name;  // May contain dots: "authorizer.requestResource".
    TypeRef type;
    // For a variable typed by a schema, which also bounds its size for the estimate. `type` is ignored then.
    const Decl* decl = nullptr;
    bool optional = false;  // The variable is optional(type).
  };
  struct Options {
    std::vector<Variable> variables;
    // Adds Object{...}, JSONPatch{...} and jsonpatch.escapeKey, for mutating policies.
    bool mutation = false;
    // For device selectors: adds cel.bind(); estimates know only the sizes of `device`.
    bool device_selector = false;
    // Owns the variables' types.
    TypePool types = {};
    std::shared_ptr<const SchemaTypes> schema = nullptr;
  };
  static std::shared_ptr<const Environment> make(Options options);

  std::span<const Variable> variables() const;

  struct Compiled {
    std::shared_ptr<const Program> program;  // Null if there are errors.
    CompileError error;
  };
  Compiled compile(std::string_view expression) const;

  struct State;
  const State& state() const { return *state_; }

 private:
  explicit Environment(std::unique_ptr<State> state);
  friend class Program;
  struct Destroy {
    void operator()(State* state) const;
  };
  std::unique_ptr<State, Destroy> state_;
};

// The environment for device selectors (resource.k8s.io): `device`, whose attributes may have any type. Selectors are
// only compiled and estimated here; schedulers evaluate them.
const Environment& device_selectors();

// --- Evaluating -----------------------------------------------------------------------------------------------------

// The values of an Environment's variables, in declaration order. Reading an unset variable is an error.
class Bindings {
 public:
  explicit Bindings(const Environment& environment) : Bindings(environment.variables().size()) {}
  // For several environments that declare the same variables in the same order, possibly fewer.
  explicit Bindings(size_t variables) : values_(variables) {}
  void set(size_t variable, Val value) { values_[variable] = value; }
  const std::optional<Val>& at(size_t variable) const { return values_[variable]; }

 private:
  std::vector<std::optional<Val>> values_;
};

struct Outcome {
  Val value;          // An Error if evaluation failed.
  uint64_t cost = 0;  // Set even if evaluation failed.
};

class Program {
 public:
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  std::string_view expression() const;
  TypeRef result_type() const;
  CostEstimate estimate() const;
  // Whether the expression refers to the variable.
  bool uses(std::string_view variable) const;

  // Strings and lists created by the evaluation are allocated in `arena`.
  Outcome evaluate(const Bindings& bindings, Arena& arena, uint64_t cost_limit = kPerCallLimit) const;

  struct State;

 private:
  friend class Environment;
  explicit Program(std::unique_ptr<State> state);
  struct Destroy {
    void operator()(State* state) const;
  };
  std::unique_ptr<State, Destroy> state_;
};

// --- Rules of schemas -----------------------------------------------------------------------------------------------

inline constexpr uint64_t kRuleEstimateLimit = 10'000'000;     // One rule, multiplied by how often it may run.
inline constexpr uint64_t kSchemaEstimateLimit = 100'000'000;  // All rules of one schema.

// A rule's fieldPath (".spec.a", ".spec['a.b']") in Kubernetes' path format; nullopt if the schema has no such field.
std::optional<std::string> shown_field_path(std::string_view path, const Value& schema);

// The x-kubernetes-validations of an openAPIV3Schema, compiled. Immutable.
class SchemaRules {
 public:
  // The problem reported for rules on untyped schemas.
  static constexpr std::string_view kUntypedSchemaProblem = "failed to convert to declType for CEL validation rules";

  // Null if there are no rules. `resource_root` as for SchemaTypes.
  static std::shared_ptr<const SchemaRules> compile(const Value& schema, bool resource_root = true);
  ~SchemaRules();

  struct Rule {
    const Value* written = nullptr;  // {rule, message, ...}; valid as long as the SchemaRules.
    std::string schema_path;         // From the root: "properties[spec].items"; empty at the root.
    std::string data_path;           // ".spec[*]"
    size_t index = 0;                // Index in its x-kubernetes-validations.
    std::string problem;             // Why it does not compile; empty if it does.
    uint64_t estimate = 0;           // Maximum for one evaluation.
    uint64_t times = 0;              // How often it may run in one request, given the size of the data it applies to.
    // The same as bounded by the schema; nullopt if an enclosing list or map is unbounded.
    std::optional<uint64_t> bounded_times;
    bool uses_old_self = false;
    // If the rule is inside a list whose items cannot be correlated, the path of that list.
    std::optional<std::string> uncorrelated;
    bool has_message = false;  // It has a messageExpression.
    std::string message_problem;
    uint64_t message_estimate = 0;
  };
  std::span<const Rule> rules() const;

  struct Failure {
    enum class Kind : uint8_t { Invalid, Forbidden, Required, Duplicate, Internal };
    Kind kind = Kind::Invalid;
    std::string path;                 // "<nil>" at the root, as in Kubernetes.
    std::optional<std::string> type;  // The schema's type, shown instead of a value.
    const Value* value = nullptr;     // Null (and no type) if no value is shown.
    std::string detail;
    bool ratcheted = false;  // The part it applies to did not change: only a warning.

    // "spec.a: Invalid value: 3: failed rule: ...", the format of a Kubernetes field error.
    std::string text() const;
  };
  // Failures in the order found. `budget` is shared by all rules of the object; negative afterwards if it was exceeded.
  // `ratchet`: determine which failures concern parts that are unchanged from `old`.
  std::vector<Failure> validate(Arena& arena, const Value& object, const Value* old, int64_t& budget,
                                bool ratchet) const;

  struct Node;

 private:
  SchemaRules() = default;
  friend class RuleCompiler;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::cel
