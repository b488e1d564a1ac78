// Declares the variables of admission expressions and compiles them.
#include <array>
#include <map>

#include "expressions/expressions.h"
#include "expressions/variables.h"

namespace holdfast::expressions {
namespace {

using Fields = std::vector<std::pair<std::string, cel::TypeRef>>;

// The types of `request` and `namespaceObject` (upstream: BuildRequestType and BuildNamespaceType). They have static
// lifetime: every environment refers to them.
struct SharedTypes {
  cel::TypePool pool;
  cel::TypeRef request = nullptr, namespace_object = nullptr;

  SharedTypes() {
    const cel::TypeRef text = cel::string_type(), time = cel::timestamp_type(), number = cel::int_type();
    const cel::TypeRef texts = pool.list(text), text_map = pool.map(text, text);
    const cel::TypeRef kind =
        pool.object("kubernetes.GroupVersionKind", Fields{{"group", text}, {"version", text}, {"kind", text}});
    const cel::TypeRef resource =
        pool.object("kubernetes.GroupVersionResource", Fields{{"group", text}, {"version", text}, {"resource", text}});
    const cel::TypeRef user = pool.object(
        "kubernetes.UserInfo",
        Fields{{"username", text}, {"uid", text}, {"groups", texts}, {"extra", pool.map(text, pool.list(text))}});
    request = pool.object("kubernetes.AdmissionRequest", Fields{{"kind", kind},
                                                                {"resource", resource},
                                                                {"subResource", text},
                                                                {"requestKind", kind},
                                                                {"requestResource", resource},
                                                                {"requestSubResource", text},
                                                                {"name", text},
                                                                {"namespace", text},
                                                                {"operation", text},
                                                                {"userInfo", user},
                                                                {"dryRun", cel::bool_type()},
                                                                {"options", cel::dyn_type()}});
    const cel::TypeRef condition = pool.object(
        "kubernetes.NamespaceCondition",
        Fields{{"status", text}, {"type", text}, {"lastTransitionTime", time}, {"message", text}, {"reason", text}});
    const cel::TypeRef metadata =
        pool.object("kubernetes.NamespaceMetadata", Fields{{"name", text},
                                                           {"generateName", text},
                                                           {"namespace", text},
                                                           {"labels", text_map},
                                                           {"annotations", text_map},
                                                           {"UID", text},
                                                           {"creationTimestamp", time},
                                                           {"deletionGracePeriodSeconds", number},
                                                           {"deletionTimestamp", time},
                                                           {"generation", number},
                                                           {"resourceVersion", text},
                                                           {"finalizers", texts}});
    namespace_object =
        pool.object("kubernetes.Namespace",
                    Fields{{"metadata", metadata},
                           {"spec", pool.object("kubernetes.NamespaceSpec", Fields{{"finalizers", texts}})},
                           {"status", pool.object("kubernetes.NamespaceStatus",
                                                  Fields{{"conditions", pool.list(condition)}, {"phase", text}})}});
  }
};

const SharedTypes& shared_types() {
  static const SharedTypes types;
  return types;
}

// Each variable is compiled with the declarations of all before it: tens of thousands of them, which fit a policy of a
// megabyte, would be compiled for minutes.
constexpr size_t kMostVariables = 256;

std::string wrong_type(std::span<const cel::TypeRef> wanted, const std::string& got) {
  if (wanted.size() == 1) return "must evaluate to " + cel::go_type_text(wanted[0]) + " but got " + got;
  std::string list;
  for (const cel::TypeRef type : wanted) list += (list.empty() ? "" : " ") + cel::go_type_text(type);
  return "must evaluate to one of [" + list + "] but got " + got;
}

std::span<const cel::TypeRef> wanted_types(Purpose purpose) {
  static const cel::TypeRef kBool[] = {cel::bool_type()};
  static const cel::TypeRef kString[] = {cel::string_type()};
  static const cel::TypeRef kStringOrNull[] = {cel::string_type(), cel::null_type()};
  static const cel::TypeRef kObject[] = {cel::object_root_type()};
  static cel::TypePool pool;
  static const cel::TypeRef kPatches[] = {pool.list(cel::json_patch_type())};
  switch (purpose) {
    case Purpose::Condition:
      return kBool;
    case Purpose::Message:
      return kString;
    case Purpose::Annotation:
      return kStringOrNull;
    case Purpose::ApplyConfiguration:
      return kObject;
    case Purpose::JsonPatch:
      return kPatches;
    case Purpose::Variable:
      break;
  }
  return {};
}

// If `known` is null, object and params are dyn.
std::shared_ptr<const cel::Environment> make_environment(Scope scope, const KnownTypes* known,
                                                         std::span<const NamedExpression> variables, bool authorizer,
                                                         bool mutation) {
  const SharedTypes& shared = shared_types();
  cel::Environment::Options options;
  options.mutation = mutation;
  const auto decl_of = [](const std::shared_ptr<const cel::SchemaTypes>& types) {
    return types == nullptr ? nullptr : types->root();
  };
  const cel::Decl* object = known == nullptr ? nullptr : decl_of(known->object);
  options.variables = {{"object", cel::dyn_type(), object},
                       {"oldObject", cel::dyn_type(), object},
                       {"namespaceObject", shared.namespace_object},
                       {"request", shared.request}};
  if (scope.variables) {
    // The last of several variables with the same name wins.
    std::map<std::string, cel::TypeRef> fields;
    for (const NamedExpression& variable : variables) {
      const cel::Program* program = variable.expression.program.get();
      fields[variable.name] = program == nullptr ? cel::dyn_type() : options.types.as_variable(program->result_type());
    }
    options.variables.push_back(
        {"variables", options.types.object(kVariablesType, Fields(fields.begin(), fields.end()))});
  }
  if (scope.params) {
    options.variables.push_back({"params", cel::dyn_type(), known == nullptr ? nullptr : decl_of(known->params)});
  }
  if (authorizer) options.variables.push_back({"authorizer", cel::authorizer_type()});
  if (authorizer && known == nullptr) {
    options.variables.push_back({"authorizer.requestResource", cel::resource_check_type()});
  }
  assert(options.variables.size() <= positions_of(scope).count);
  return cel::Environment::make(std::move(options));
}

// Environments that do not depend on a policy, created once.
std::shared_ptr<const cel::Environment> plain_environment(Scope scope, bool authorizer, bool mutation) {
  static const auto kAll = [] {
    std::array<std::shared_ptr<const cel::Environment>, 16> all;
    for (size_t i = 0; i < all.size(); ++i) {
      all[i] = make_environment({(i & 1) != 0, (i & 2) != 0}, nullptr, {}, (i & 4) != 0, (i & 8) != 0);
    }
    return all;
  }();
  return kAll[(scope.variables ? 1 : 0) + (scope.params ? 2 : 0) + (authorizer ? 4 : 0) + (mutation ? 8 : 0)];
}

}  // namespace

std::shared_ptr<const cel::Environment> Compiler::environment(bool authorizer, bool mutation) {
  if (variables_.empty() && !known_) return plain_environment(scope_, authorizer, mutation);
  std::shared_ptr<const cel::Environment>& found = environments_[(authorizer ? 1 : 0) + (mutation ? 2 : 0)];
  if (found == nullptr) {
    found = make_environment(scope_, known_ ? &*known_ : nullptr, variables_, authorizer, mutation);
  }
  return found;
}

const Expression& Compiler::add_variable(std::string_view name, std::string_view text) {
  assert(scope_.variables);
  if (variables_.size() >= kMostVariables) {
    const std::string why = "compilation failed: only " + std::to_string(kMostVariables) + " variables are possible";
    variables_.push_back({std::string(name), {.text = std::string(text), .program = nullptr, .problem = why}});
    return variables_.back().expression;
  }
  Expression expression = compile(text, Purpose::Variable);
  variables_.push_back({std::string(name), std::move(expression)});
  for (std::shared_ptr<const cel::Environment>& environment : environments_) environment = nullptr;
  return variables_.back().expression;
}

Expression Compiler::compile(std::string_view text, Purpose purpose) {
  const bool mutation = purpose == Purpose::ApplyConfiguration || purpose == Purpose::JsonPatch;
  cel::Environment::Compiled compiled = environment(purpose != Purpose::Message, mutation)->compile(text);
  Expression result{.text = std::string(text), .program = nullptr, .problem = {}};
  // Type errors take precedence over planning errors.
  const std::string type =
      compiled.program == nullptr ? compiled.error.type : cel::go_type_text(compiled.program->result_type());
  const std::span<const cel::TypeRef> wanted = wanted_types(purpose);
  bool fits = wanted.empty();
  for (const cel::TypeRef one : wanted) fits = fits || cel::go_type_text(one) == type;
  if (type.empty()) {
    result.problem = "compilation failed: " + compiled.error.text;
  } else if (!fits) {
    result.problem = wrong_type(wanted, type);
  } else if (compiled.program == nullptr) {
    result.problem = "program instantiation failed: " + compiled.error.text;
    result.instantiation_failed = true;
  } else {
    result.program = std::move(compiled.program);
  }
  return result;
}

}  // namespace holdfast::expressions
