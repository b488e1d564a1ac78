// The Common Expression Language as Kubernetes 1.36 uses it: CRD rules, admission policies, match conditions.
//
//   Environment --compile(text)--> Program --evaluate(bindings, limit, arena)--> Val or error, and the cost
//
// An Environment declares variables with their types and says which libraries exist. compile() parses and type-checks
// one expression; its errors are word for word those of cel-go 0.26, position and caret included. A Program is
// immutable and shared: evaluation takes no locks and allocates in the caller's arena only. Objects are read where they
// lie: a Val refers to the holdfast Value it came from, nothing is copied.
//
// Costs and estimates are Kubernetes' numbers. Evaluation stops with kCostLimitExceeded once its cost exceeds the
// limit, so that a pathological expression costs its budget and no more.
//
// Lifetime: a Program keeps alive what it was compiled from. A Val lives as long as the arena of its evaluation, the
// bindings and the Program. Threading: Environment and Program are immutable, share freely.
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

// What Kubernetes allows (k8s.io/apiserver/pkg/apis/cel).
inline constexpr uint64_t kPerCallLimit = 1'000'000;          // One evaluation.
inline constexpr int64_t kRuntimeBudget = 10'000'000;         // All of one object, or of one policy binding.
inline constexpr int64_t kMatchConditionsBudget = 2'500'000;  // All match conditions of one webhook or policy.
inline constexpr int64_t kMaxRequestBytes = 3 * 1024 * 1024;  // Assumed by estimates.
inline constexpr size_t kMaxMessageBytes = 5 * 1024;          // Of what a messageExpression gives.
inline constexpr std::string_view kCostLimitExceeded = "operation cancelled: actual cost limit exceeded";

// --- Types ----------------------------------------------------------------------------------------------------------

struct Type;  // See types.h of this module; shared, immutable.
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
TypeRef object_root_type();     // Object, of mutations.
TypeRef json_patch_type();      // JSONPatch, of mutations.

// "list(string)", "map(string, dyn)", "kubernetes.AdmissionRequest": as error messages print it.
std::string type_text(TypeRef type);
// The same with type parameters in angle brackets, as Go prints it.
std::string go_type_text(TypeRef type);
bool same_type(TypeRef a, TypeRef b);

// Owns the types that are made for one environment.
class TypePool {
 public:
  TypePool();
  ~TypePool();
  TypePool(TypePool&&) noexcept;
  TypePool& operator=(TypePool&&) noexcept;

  TypeRef list(TypeRef element);
  TypeRef map(TypeRef key, TypeRef value);
  TypeRef optional(TypeRef value);
  // What a field of `variables` is whose expression has this type: scalars, lists and maps of them keep theirs,
  // anything else is dyn (convertCelTypeToDeclType upstream). The result refers to nothing of `type`.
  TypeRef as_variable(TypeRef type);
  // A struct with declared fields: selecting another field does not compile.
  TypeRef object(std::string_view name, std::span<const std::pair<std::string, TypeRef>> fields);

 private:
  friend class Environment;
  struct Pool;
  std::shared_ptr<Pool> pool_;
};

// --- Schemas --------------------------------------------------------------------------------------------------------

struct Decl;  // One node of a schema as CEL sees it.

// An openAPIV3Schema as types: what `self` is in a CRD's rules, with Kubernetes' escaping of names. Immutable.
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

// Property names as expressions spell them: "a-b" is a__dash__b, "in" is __in__. Nothing: it cannot be named.
std::optional<std::string> escape_name(std::string_view property);
std::optional<std::string> unescape_name(std::string_view name);

// --- Values ---------------------------------------------------------------------------------------------------------

class Authorizer;
class LazyObject;
struct ListRep;
struct MapRep;
struct ObjectRep;
struct Opaque;

// A value in an Object{...} for which an apply configuration has no form, as Go sees and prints it.
struct ForeignValue {
  using Step = std::variant<std::string_view, size_t>;  // A field or key; the position in a list.
  std::vector<Step> path;
  std::string type, syntax, text;  // %T, %#v and %v.
};
struct Configuration {
  Value value;  // With null in place of foreign values.
  std::vector<ForeignValue> foreign;
};

// A value of the language, or the error that evaluation ended in: 24 bytes, trivially copyable.
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
    Preserved,  // Below x-kubernetes-preserve-unknown-fields without a type: it can be compared, no more.
  };

  Val() = default;  // Null.
  static Val null() { return Val(); }
  static Val boolean(bool b) { return make(Kind::Bool, b ? 1 : 0); }
  static Val integer(int64_t i) { return make(Kind::Int, i); }
  static Val unsigned_integer(uint64_t u) { return make(Kind::Uint, static_cast<int64_t>(u)); }
  static Val number(double d);
  // Texts are not copied.
  static Val string(std::string_view text) { return text_val(Kind::String, text); }
  static Val bytes(std::string_view bytes) { return text_val(Kind::Bytes, bytes); }
  static Val error(std::string_view message) { return text_val(Kind::Error, message); }
  // A value as dyn: maps with string keys, lists, numbers. `value` must outlive the Val.
  static Val data(const Value& value);
  // The same seen through a schema. The error of a value that does not fit is in `arena`.
  static Val data(Arena& arena, const Value& value, const Decl* decl);
  static Val optional_none() { return make(Kind::Optional, 0); }
  static Val optional_of(Arena& arena, Val value);
  static Val authorizer(Arena& arena, Authorizer& authorizer);
  // authorizer.requestResource: a check of the resource that the request is about.
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
  // Of a string, of bytes, of an error's message, of a type's name.
  std::string_view text() const { return {text_, count_}; }
  // Optional: whether there is something inside.
  bool has_value() const { return optional_ != nullptr; }

  // Items of a list, entries of a map.
  uint64_t size() const;
  Val at(Arena& arena, uint64_t index) const;
  // Visits each entry of a map; keys of data are strings.
  template <class F>
  void for_each_entry(Arena& arena, F f) const {
    const uint64_t count = size();
    for (uint64_t i = 0; i < count; ++i) f(key_at(arena, i), value_at(arena, i));
  }
  Val key_at(Arena& arena, uint64_t index) const;
  Val value_at(Arena& arena, uint64_t index) const;
  Val inner(Arena& arena) const;  // Of an optional with a value.

  // As `holdfast cel --json-lines` prints it: {"int": 1}, {"list": [...]}.
  std::string shown() const;
  // As plain data. Nothing: it has no such form (types, optionals, maps whose keys are not strings), with the reason in
  // `error`.
  std::optional<Value> to_value(Arena& arena, std::string* error = nullptr) const;
  // What the value of a JSONPatch becomes: numbers that JSON cannot hold are strings. Nothing: it has no JSON form, in
  // Kubernetes' words in `problem`.
  std::optional<Value> to_json(Arena& arena, std::string& problem) const;
  // Of an Object{...}: the apply configuration that it stands for. A map with the key `marker_key` is taken wherever it
  // stands; other maps and lists that the expression made must be fields of an Object, as in Kubernetes.
  Configuration to_configuration(Arena& arena, std::string_view marker_key = {}) const;
  // "int", "list", "google.protobuf.Timestamp", "kubernetes.Quantity".
  std::string_view type_name() const;

  // JSONPatch{...}: op, path and from; the value is null when it was not given.
  struct Patch {
    std::string_view op, path, from;
    const Val* value = nullptr;
  };
  const Patch& json_patch() const;
  // Object{...}: problems of type names that do not match the path of fields they stand at; empty: none.
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
  uint32_t count_ = 0;  // Bytes of a text; nanoseconds of a timestamp.
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
    const Decl* decl_ = nullptr;  // Of data seen through a schema.
    int64_t zone_;                // Of a timestamp: seconds east of UTC, for printing.
  };
};

// Answers the authorizer's checks. Called during evaluation, on the evaluating thread.
class Authorizer {
 public:
  struct Check {
    bool about_resource = false;
    std::string_view path;
    std::string_view group, resource, subresource, namespace_name, name, field_selector, label_selector;
    std::string_view verb;
    // Non-empty: on behalf of this service account rather than of the request's user.
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

// A variable whose fields are computed when an expression selects them (`variables` of policies).
class LazyObject {
 public:
  virtual std::string_view type_name() const = 0;
  // The field's value or the error of computing it; null: there is no such field. Computed at most once.
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

// What went wrong, as cel-go prints all issues of one expression ("ERROR: <input>:1:3: ...", one block each).
struct CompileError {
  std::string text;
  // Not empty: the expression is well typed and evaluates to this type (as go_type_text prints it), but cannot be
  // evaluated for the reason in `text`.
  std::string type = {};
};

class Environment {
 public:
  struct Variable {
    std::string name;  // May have dots: "authorizer.requestResource".
    TypeRef type;
    // Of a variable seen through a schema; the estimate reads sizes from it. `type` is ignored then.
    const Decl* decl = nullptr;
    bool optional = false;  // The variable is optional(type).
  };
  struct Options {
    std::vector<Variable> variables;
    // Object{...}, JSONPatch{...} and jsonpatch.escapeKey, as mutating policies have them.
    bool mutation = false;
    // cel.bind(), and estimates that know the sizes of `device` alone, as device selectors have them.
    bool device_selector = false;
    // What the variables' types point into.
    TypePool types = {};
    std::shared_ptr<const SchemaTypes> schema = nullptr;
  };
  static std::shared_ptr<const Environment> make(Options options);

  std::span<const Variable> variables() const;

  struct Compiled {
    std::shared_ptr<const Program> program;  // Null: it does not compile.
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

// The environment of selectors of devices (resource.k8s.io): `device`, whose attributes are of any type. What is
// selected by is compiled and estimated here; schedulers evaluate it.
const Environment& device_selectors();

// --- Evaluating -----------------------------------------------------------------------------------------------------

// The values of an Environment's variables, in their order. Unset ones are not there: reading one is an error.
class Bindings {
 public:
  explicit Bindings(const Environment& environment) : Bindings(environment.variables().size()) {}
  // For several environments that declare the same variables in the same order, some of them fewer.
  explicit Bindings(size_t variables) : values_(variables) {}
  void set(size_t variable, Val value) { values_[variable] = value; }
  const std::optional<Val>& at(size_t variable) const { return values_[variable]; }

 private:
  std::vector<std::optional<Val>> values_;
};

struct Outcome {
  Val value;          // An Error when evaluation failed.
  uint64_t cost = 0;  // Also of what failed.
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

  // Texts and lists that are made on the way lie in `arena`.
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

inline constexpr uint64_t kRuleEstimateLimit = 10'000'000;     // One rule, times how often it may run.
inline constexpr uint64_t kSchemaEstimateLimit = 100'000'000;  // All rules of one schema.

// A rule's fieldPath (".spec.a", ".spec['a.b']") as Kubernetes prints paths; nothing: the schema has no such field.
std::optional<std::string> shown_field_path(std::string_view path, const Value& schema);

// The x-kubernetes-validations of an openAPIV3Schema, compiled. Immutable.
class SchemaRules {
 public:
  // The problem of rules about what has no type.
  static constexpr std::string_view kInvisible = "failed to convert to declType for CEL validation rules";

  // Null: there are none. `resource_root` as for SchemaTypes.
  static std::shared_ptr<const SchemaRules> compile(const Value& schema, bool resource_root = true);
  ~SchemaRules();

  struct Rule {
    const Value* written = nullptr;  // {rule, message, ...}; lives as long as the SchemaRules.
    std::string schema_path;         // Below the root: "properties[spec].items"; empty at the root.
    std::string data_path;           // ".spec[*]"
    size_t index = 0;                // In its x-kubernetes-validations.
    std::string problem;             // Why it does not compile; empty: it does.
    uint64_t estimate = 0;           // Of one evaluation, at most.
    uint64_t times = 0;              // How often it may run in one request, by the size of what it looks at.
    // The same by the limits of the schema; nothing: some list or map above it has none.
    std::optional<uint64_t> bounded_times;
    bool uses_old_self = false;
    // Path of the list whose items have no identity, if the rule lies within one.
    std::optional<std::string> uncorrelated;
    bool has_message = false;  // A messageExpression.
    std::string message_problem;
    uint64_t message_estimate = 0;
  };
  std::span<const Rule> rules() const;

  struct Failure {
    enum class Kind : uint8_t { Invalid, Forbidden, Required, Duplicate, Internal };
    Kind kind = Kind::Invalid;
    std::string path;                 // "<nil>" at the root, as Kubernetes prints it.
    std::optional<std::string> type;  // The schema's type in place of a value.
    const Value* value = nullptr;     // Null (and no type): the value is not shown.
    std::string detail;
    bool ratcheted = false;  // What it is about did not change: a warning.

    // "spec.a: Invalid value: 3: failed rule: ...", as Kubernetes prints a field error.
    std::string text() const;
  };
  // Failures in the order found. `budget` is what all rules of the object may cost together; negative afterwards: it
  // did not suffice. `ratchet`: find out which failures are about parts that `old` has, too.
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
