// x-kubernetes-validations: compiles the rules of a schema and runs them on an object.
#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "base/ascii.h"
#include "base/error_budget.h"
#include "base/hash.h"
#include "base/strings.h"
#include "base/text.h"
#include "cel/types.h"
#include "cel/values.h"
#include "codec/codec.h"

namespace holdfast::cel {
namespace {

constexpr std::string_view kSelfType = "selfType";

struct CompiledRule {
  const Value* written = nullptr;
  std::string problem;
  std::shared_ptr<const Environment> environment;
  std::shared_ptr<const Program> program, message;
  bool uses_old_self = false, optional_old_self = false;
  std::string field_path;

  std::string_view text(std::string_view key) const { return written->text_at(key); }
  // How errors refer to the rule.
  std::string_view shown() const {
    const std::string_view message_text = text("message");
    return trim(message_text.empty() ? text("rule") : message_text);
  }
};

}  // namespace

struct SchemaRules::Node {
  const Decl* decl = nullptr;
  bool untyped = false;  // Expressions cannot access the data it describes.
  std::vector<CompiledRule> rules;
  std::map<std::string, std::unique_ptr<Node>, std::less<>> properties;
  std::unique_ptr<Node> items, additional;
  std::vector<std::unique_ptr<Node>> all_of;
};

struct SchemaRules::State {
  std::shared_ptr<const SchemaTypes> types;
  std::vector<Rule> rules;
  std::unique_ptr<Node> root;
};

// --- Compiling ------------------------------------------------------------------------------------------------------

class RuleCompiler {
 public:
  static std::shared_ptr<const SchemaRules> compile(const Value& schema, bool resource_root) {
    if (!has_rules(schema)) return nullptr;
    auto state = std::make_shared<SchemaRules::State>();
    state->types = SchemaTypes::build(schema, resource_root);
    RuleCompiler compiler(*state);
    const Decl& root = *state->types->root();
    state->root = compiler.node(*root.schema, root, {"", "", 1, std::nullopt, true});
    std::shared_ptr<SchemaRules> rules(new SchemaRules());
    rules->state_ = std::move(state);
    return rules;
  }

 private:
  struct Place {
    std::string schema_path, data_path;
    std::optional<uint64_t> times;
    std::optional<std::string> uncorrelated;
    bool reported;               // Included in rules(). Rules within allOf run but are not included.
    std::string type_path = {};  // Follows "selfType" in type names.
  };

  explicit RuleCompiler(SchemaRules::State& state) : state_(state) {}

  static bool has_rules(const Value& schema) {
    if (!schema.is_map()) return false;
    if (!schema.items_at("x-kubernetes-validations").empty()) return true;
    for (const Member& property : schema.members_at("properties")) {
      if (has_rules(property.value)) return true;
    }
    for (const std::string_view key : {"items", "additionalProperties"}) {
      if (const Value* child = schema.find(key); child != nullptr && has_rules(*child)) return true;
    }
    return false;
  }

  static std::optional<uint64_t> elements(const Value& schema) {
    const std::string_view type = schema.text_at("type");
    const auto limit = [&](std::string_view key) -> std::optional<uint64_t> {
      const Value* value = schema.find(key);
      if (value == nullptr || !value->is_number()) return std::nullopt;
      return static_cast<uint64_t>(std::max(value->number_value(), 0.0));
    };
    if (type == "array") return limit("maxItems");
    if (type == "object" && schema.has("additionalProperties")) return limit("maxProperties");
    return 1;
  }
  static std::optional<uint64_t> times(std::optional<uint64_t> a, std::optional<uint64_t> b) {
    if (!a || !b) return std::nullopt;
    return *a != 0 && UINT64_MAX / *a < *b ? UINT64_MAX : *a * *b;
  }

  std::unique_ptr<SchemaRules::Node> node(const Value& validation, const Decl& decl, const Place& place) {
    auto n = std::make_unique<SchemaRules::Node>();
    n->decl = &decl;
    n->untyped = !decl.visible;
    // Rules of children are compiled first, in the order upstream checks them.
    const std::optional<uint64_t> inner = times(place.times, elements(*decl.schema));
    std::vector<SchemaRules::Rule> own;
    compile_rules(*n, validation, place, own);
    if (place.reported)
      state_.rules.insert(state_.rules.end(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
    std::vector<std::pair<std::string_view, const Value*>> properties;
    for (const Member& property : validation.members_at("properties"))
      properties.emplace_back(property.key, &property.value);
    std::sort(properties.begin(), properties.end());
    for (const auto& [name, schema] : properties) {
      const Decl* child = decl.find(name);
      if (child == nullptr || !schema->is_map()) continue;
      const std::string key(name);
      n->properties[key] =
          node(*schema, *child,
               {joined(place.schema_path, "properties[" + key + "]"), place.data_path + "." + key, inner,
                place.uncorrelated, place.reported, place.type_path + "." + escape_name(key).value_or("")});
    }
    if (const Value* items = validation.find("items"); items != nullptr && items->is_map() && decl.element != nullptr) {
      std::optional<std::string> uncorrelated = place.uncorrelated;
      if (!uncorrelated && decl.list_kind != Decl::ListKind::Keyed) uncorrelated = place.schema_path;
      n->items = node(*items, *decl.element,
                      {joined(place.schema_path, "items"), place.data_path + "[*]", inner, uncorrelated, place.reported,
                       place.type_path + ".@idx"});
    }
    if (const Value* additional = validation.find("additionalProperties");
        additional != nullptr && additional->is_map() && decl.element != nullptr) {
      n->additional = node(*additional, *decl.element,
                           {joined(place.schema_path, "additionalProperties"), place.data_path + "[*]", inner,
                            place.uncorrelated, place.reported, place.type_path + ".@elem"});
    }
    for (const Value& part : validation.items_at("allOf")) {
      if (!has_rules(part)) continue;
      Place nested = place;
      nested.reported = false;
      n->all_of.push_back(node(part, decl, nested));
    }
    return n;
  }
  static std::string joined(const std::string& path, const std::string& step) {
    return path.empty() ? step : path + "." + step;
  }

  std::shared_ptr<const Environment> environment(const Decl& decl, bool optional_old) const {
    Environment::Options options;
    options.schema = state_.types;
    options.variables.push_back({"self", decl.type, &decl, false});
    options.variables.push_back({"oldSelf", decl.type, &decl, optional_old});
    return Environment::make(std::move(options));
  }

  void compile_rules(SchemaRules::Node& n, const Value& validation, const Place& place,
                     std::vector<SchemaRules::Rule>& reports) {
    const auto written = validation.items_at("x-kubernetes-validations");
    if (written.empty()) return;
    const Decl& decl = *n.decl;
    std::shared_ptr<const Environment> plain, optional;
    for (size_t i = 0; i < written.size(); ++i) {
      CompiledRule rule;
      rule.written = &written[i];
      SchemaRules::Rule report;
      report.written = rule.written;
      report.schema_path = place.schema_path;
      report.data_path = place.data_path;
      report.index = i;
      report.bounded_times = place.times;
      report.uncorrelated = place.uncorrelated;
      report.has_message = !rule.text("messageExpression").empty();
      const Value* old_flag = written[i].find("optionalOldSelf");
      rule.optional_old_self = old_flag != nullptr && old_flag->is_bool() && old_flag->as_bool();
      if (n.untyped) {
        rule.problem = SchemaRules::kUntypedSchemaProblem;
      } else if (!trim(rule.text("rule")).empty()) {
        std::shared_ptr<const Environment>& env = rule.optional_old_self ? optional : plain;
        if (env == nullptr) env = environment(decl, rule.optional_old_self);
        rule.environment = env;
        one_rule(rule, report, decl);
        for (std::string* problem : {&rule.problem, &report.message_problem}) shorten_types(*problem, place.type_path);
      }
      report.problem = rule.problem;
      report.uses_old_self = rule.uses_old_self;
      reports.push_back(std::move(report));
      n.rules.push_back(std::move(rule));
    }
  }

  // Upstream names types by their path from the rule that uses them.
  static void shorten_types(std::string& problem, const std::string& type_path) {
    if (type_path.empty()) return;
    const std::string full = std::string(kSelfType) + type_path;
    for (size_t line = 0; line < problem.size();) {
      size_t end = std::min(problem.find('\n', line), problem.size());
      const bool quotes_source = std::string_view(problem).substr(line).starts_with(" | ");
      for (size_t at = line; !quotes_source && (at = problem.find(full, at)) < end; at += kSelfType.size()) {
        const char next = at + full.size() < problem.size() ? problem[at + full.size()] : '\0';
        if (is_alnum(next) || next == '_') continue;  // Part of a longer name.
        problem.erase(at + kSelfType.size(), type_path.size());
        end -= type_path.size();
      }
      line = end + 1;
    }
  }

  // The program, or null with the problem.
  static std::shared_ptr<const Program> compiled(const Environment& environment, std::string_view text, TypeRef wanted,
                                                 std::string_view failed, std::string_view not_planned,
                                                 std::string_view wrong_type, std::string& problem) {
    Environment::Compiled result = environment.compile(text);
    if (result.program == nullptr) {
      if (result.error.type.empty()) {
        problem = std::string(failed) + result.error.text;
      } else if (result.error.type != go_type_text(wanted)) {
        problem = wrong_type;
      } else {
        problem = std::string(not_planned) + result.error.text;
      }
      return nullptr;
    }
    if (!same_type(result.program->result_type(), wanted)) {
      problem = wrong_type;
      return nullptr;
    }
    return result.program;
  }

  void one_rule(CompiledRule& rule, SchemaRules::Rule& report, const Decl& decl) {
    rule.program = compiled(*rule.environment, rule.text("rule"), bool_type(), "compilation failed: ",
                            "program instantiation failed: ", "cel expression must evaluate to a bool", rule.problem);
    if (rule.program == nullptr) return;
    rule.uses_old_self = rule.program->uses("oldSelf");
    report.estimate = rule.program->estimate().max;
    report.times = static_cast<uint64_t>(kMaxRequestBytes / (decl.min_serialized_bytes + 1));
    if (report.has_message) {
      rule.message = compiled(*rule.environment, rule.text("messageExpression"), string_type(),
                              "messageExpression compilation failed: ", "messageExpression instantiation failed: ",
                              "messageExpression must evaluate to a string", report.message_problem);
      if (rule.message == nullptr) return;
      report.message_estimate = rule.message->estimate().max;
    }
    if (const std::string_view path = rule.text("fieldPath"); !path.empty()) {
      rule.field_path = shown_field_path(path, *decl.schema).value_or("");
    }
  }

  SchemaRules::State& state_;
};

std::optional<std::string> shown_field_path(std::string_view path, const Value& from) {
  std::string out;
  const Value* schema = &from;
  while (!path.empty()) {
    std::string name;
    if (path[0] == '.') {
      size_t end = 1;
      while (end < path.size() && path[end] != '.' && path[end] != '[' && path[end] != ']') ++end;
      if (end == 1) return std::nullopt;
      name = path.substr(1, end - 1);
      path.remove_prefix(end);
    } else if (path.starts_with("['")) {
      size_t end = 2;
      while (end < path.size() && path[end] != '\'') {
        if (path[end] == '\\' && end + 1 < path.size()) ++end;
        name += path[end++];
      }
      if (!path.substr(end).starts_with("']")) return std::nullopt;
      path.remove_prefix(end + 2);
    } else {
      return std::nullopt;
    }
    const Value* properties = schema->find("properties");
    if (properties != nullptr && properties->is_map()) {
      schema = properties->find(name);
      if (schema == nullptr) return std::nullopt;
      out += (out.empty() ? "" : ".") + name;
    } else if (const Value* additional = schema->find("additionalProperties");
               additional != nullptr && additional->is_map()) {
      schema = additional;
      out += "[" + name + "]";
    } else {
      return std::nullopt;
    }
  }
  return out;
}

std::shared_ptr<const SchemaRules> SchemaRules::compile(const Value& schema, bool resource_root) {
  return RuleCompiler::compile(schema, resource_root);
}
SchemaRules::~SchemaRules() = default;
std::span<const SchemaRules::Rule> SchemaRules::rules() const { return state_->rules; }

// --- Running --------------------------------------------------------------------------------------------------------

namespace {

using Failure = SchemaRules::Failure;

struct Path {
  const Path* parent = nullptr;
  std::string_view name;  // Child or, if `key`, key of a map.
  int64_t index = -1;
  bool key = false;

  std::string text() const {
    if (parent == nullptr) return {};
    std::string out = parent->text();
    if (index >= 0) return out + "[" + std::to_string(index) + "]";
    if (key) return out + "[" + std::string(name) + "]";
    return out.empty() ? std::string(name) : out + "." + std::string(name);
  }
};

// A part of the object and its previous value, for ratcheting.
struct Correlation {
  const Value* value = nullptr;
  const Value* old = nullptr;  // Null if there is no counterpart.
  bool enabled = false;
  const Value* parent_value = nullptr;
  const Value* parent_old = nullptr;
  std::optional<bool>* parent_same = nullptr;  // Whether these two are equal, once known.

  bool unchanged() const {
    if (!enabled) return false;
    if (old != nullptr) return holdfast::equal(*value, *old);
    if (parent_old == nullptr) return false;
    if (!*parent_same) *parent_same = holdfast::equal(*parent_value, *parent_old);
    return **parent_same;
  }
  // A part without a counterpart uses its nearest ancestor's. `same` is shared by all parts of this one.
  Correlation inner(const Value& child, const Value* old_child, std::optional<bool>& same) const {
    if (!enabled || old == nullptr) return *this;
    return {&child, old_child, true, value, old, &same};
  }
};

// The items of a list by their keys. Only keyed lists have counterparts.
class Counterparts {
 public:
  Counterparts(const Decl& decl, std::span<const Value> items) : keys_(decl.list_keys) {
    if (decl.list_kind != Decl::ListKind::Keyed || keys_.empty()) return;
    for (const Value& item : items) {
      if (const std::optional<uint64_t> hash = hash_of(item)) by_hash_[*hash].push_back(&item);
    }
  }
  // The first item with the same keys, or null.
  const Value* find(const Value& item) const {
    if (by_hash_.empty()) return nullptr;
    const std::optional<uint64_t> hash = hash_of(item);
    const auto found = hash ? by_hash_.find(*hash) : by_hash_.end();
    if (found == by_hash_.end()) return nullptr;
    for (const Value* other : found->second) {
      const bool same = std::all_of(keys_.begin(), keys_.end(), [&](std::string_view key) {
        return holdfast::equal(*item.find(key), *other->find(key));
      });
      if (same) return other;
    }
    return nullptr;
  }

 private:
  // nullopt if a key is missing or not a scalar.
  std::optional<uint64_t> hash_of(const Value& item) const {
    if (!item.is_map()) return std::nullopt;
    uint64_t hash = 0;
    for (const std::string_view key : keys_) {
      const Value* value = item.find(key);
      if (value == nullptr || !value->is_scalar()) return std::nullopt;
      hash = hash_combine(hash, holdfast::hash(*value));
    }
    return hash;
  }

  const std::span<const std::string_view> keys_;
  std::unordered_map<uint64_t, std::vector<const Value*>> by_hash_;
};

class Runner {
 public:
  Runner(Arena& arena, int64_t& budget) : arena_(arena), budget_(budget) {}

  void run(const SchemaRules::Node& node, const Value& value, const Value* old, const Path& at,
           const Correlation& correlation) {
    if (value.is_null()) return;
    if (old != nullptr && old->is_null()) old = nullptr;
    expressions(node, value, old, at, correlation);
    if (budget_ < 0) return;
    for (const auto& part : node.all_of) {
      Correlation nested = correlation;
      nested.old = nullptr;
      run(*part, value, old, at, nested);
      if (budget_ < 0) return;
    }
    if (value.is_list() && node.items != nullptr) {
      list(node, value, old, at, correlation);
    } else if (value.is_map()) {
      map(node, value, old, at, correlation);
    }
  }

  // All failures; the last one stands for those left out, if there are any.
  std::vector<Failure> take_failures() {
    if (room_.left_out() > 0) {
      Failure others;
      others.path = "<nil>";
      others.detail = left_out_text(room_.left_out());
      failures_.push_back(std::move(others));
    }
    return std::move(failures_);
  }

 private:
  void list(const SchemaRules::Node& node, const Value& value, const Value* old, const Path& at,
            const Correlation& correlation) {
    const auto items = value.items();
    const std::span<const Value> before = old != nullptr && old->is_list() ? old->items() : std::span<const Value>{};
    const Counterparts counterparts(*node.decl, before);
    std::optional<bool> same;
    for (size_t i = 0; i < items.size() && budget_ >= 0; ++i) {
      const Value* old_item = counterparts.find(items[i]);
      run(*node.items, items[i], old_item, {&at, {}, static_cast<int64_t>(i)},
          correlation.inner(items[i], old_item, same));
    }
  }

  void map(const SchemaRules::Node& node, const Value& value, const Value* old, const Path& at,
           const Correlation& correlation) {
    std::optional<bool> same;
    for (const Member& member : value.members()) {
      const Value* before = old != nullptr && old->is_map() ? old->find(member.key) : nullptr;
      const SchemaRules::Node* child = node.additional.get();
      const bool key = child != nullptr;
      if (child == nullptr) {
        const auto found = node.properties.find(member.key);
        if (found != node.properties.end()) child = found->second.get();
      }
      if (child == nullptr) continue;
      run(*child, member.value, before, {&at, member.key, -1, key}, correlation.inner(member.value, before, same));
      if (budget_ < 0) return;
    }
  }

  void push(Failure failure) {
    (failure.ratcheted ? ratcheted_room_ : room_).took(failure.path.size() + failure.detail.size());
    failures_.push_back(std::move(failure));
  }

  void add(const SchemaRules::Node& node, const Path& at, std::string detail) {
    if (!room_.admits()) return;
    Failure failure;
    failure.path = at.text();
    if (failure.path.empty()) failure.path = "<nil>";
    failure.type = std::string(node.decl->schema_type);
    failure.detail = std::move(detail);
    push(std::move(failure));
  }

  void expressions(const SchemaRules::Node& node, const Value& value, const Value* old, const Path& at,
                   const Correlation& correlation) {
    if (node.rules.empty()) return;
    // Data that expressions cannot access is not validated.
    if (node.untyped) return;
    if (budget_ <= 0) {
      out_of_budget(node, at);
      return;
    }
    const bool any_old =
        std::any_of(node.rules.begin(), node.rules.end(), [](const CompiledRule& r) { return r.uses_old_self; });
    const Val self = Val::data(arena_, value, node.decl);
    std::optional<Val> old_self;
    if (old != nullptr && any_old) old_self = Val::data(arena_, *old, node.decl);
    for (const CompiledRule& rule : node.rules) {
      if (!rule.problem.empty()) {
        add(node, at, "rule compile error: " + rule.problem);
        continue;
      }
      if (rule.program == nullptr) continue;
      if (rule.uses_old_self && old == nullptr && !rule.optional_old_self) continue;
      Bindings bindings(*rule.environment);
      bindings.set(0, self);
      if (rule.optional_old_self && any_old) {
        bindings.set(1, old_self ? Val::optional_of(arena_, *old_self) : Val::optional_none());
      } else if (old_self) {
        bindings.set(1, *old_self);
      }
      const Outcome outcome = rule.program->evaluate(bindings, arena_);
      if (outcome.cost > static_cast<uint64_t>(budget_)) {
        out_of_budget(node, at);
        return;
      }
      budget_ -= static_cast<int64_t>(outcome.cost);
      if (outcome.value.is_error()) {
        if (!failed(node, rule, outcome.value.text(), at)) return;
        continue;
      }
      if (outcome.value.is_true()) continue;
      if (!broken(node, rule, value, self, old_self, at, correlation)) return;
    }
  }

  void out_of_budget(const SchemaRules::Node& node, const Path& at) {
    add(node, at, "validation failed due to running out of cost budget, no further validation rules will be run");
    budget_ = -1;
  }

  // False if no further rules may run. The kind of error is determined from its text, as upstream does
  // (validateExpressions() in apiextensions-apiserver, pkg/apiserver/schema/cel/validation.go).
  bool failed(const SchemaRules::Node& node, const CompiledRule& rule, std::string_view problem, const Path& at) {
    const std::string text(problem), shown(rule.shown());
    if (problem.starts_with("no such overload")) {
      add(node, at,
          "'" + text +
              "': call arguments did not match a supported operator, function or macro signature for rule: " + shown);
    } else if (problem.starts_with(kCostLimitExceeded)) {
      add(node, at,
          "'" + text + "': no further validation rules will be run due to call cost exceeds limit for rule: " + shown);
      budget_ = -1;
      return false;
    } else {
      add(node, at, text + " evaluating rule: " + shown);
    }
    return true;
  }

  bool broken(const SchemaRules::Node& node, const CompiledRule& rule, const Value& value, const Val& self,
              const std::optional<Val>& old_self, const Path& at, const Correlation& correlation) {
    const bool ratcheted = !rule.uses_old_self && correlation.unchanged();
    if (!(ratcheted ? ratcheted_room_ : room_).admits()) return true;
    Failure failure;
    failure.path = at.text();
    if (!rule.field_path.empty())
      failure.path += (failure.path.empty() || rule.field_path[0] == '[' ? "" : ".") + rule.field_path;
    if (failure.path.empty()) failure.path = "<nil>";
    failure.ratcheted = ratcheted;
    std::string detail;
    if (rule.message != nullptr) {
      std::string problem;
      detail = message(rule, self, old_self, problem);
      if (!problem.empty()) {
        failure.type = std::string(node.decl->schema_type);
        failure.detail = std::move(problem);
        push(std::move(failure));
        budget_ = -1;
        return false;
      }
    }
    if (detail.empty()) {
      const std::string_view given = rule.text("message");
      detail = given.empty() ? "failed rule: " + std::string(rule.shown()) : std::string(trim(given));
    }
    failure.detail = std::move(detail);
    const std::string_view reason = rule.text("reason");
    failure.kind = reason == "FieldValueForbidden"   ? Failure::Kind::Forbidden
                   : reason == "FieldValueRequired"  ? Failure::Kind::Required
                   : reason == "FieldValueDuplicate" ? Failure::Kind::Duplicate
                                                     : Failure::Kind::Invalid;
    if (node.decl->schema_type != "object" && node.decl->schema_type != "array") failure.value = &value;
    push(std::move(failure));
    return true;
  }

  // The result of the messageExpression; empty means the rule's message is used. A `problem` ends the validation.
  std::string message(const CompiledRule& rule, const Val& self, const std::optional<Val>& old_self,
                      std::string& problem) {
    Bindings bindings(*rule.environment);
    bindings.set(0, self);
    if (old_self) bindings.set(1, *old_self);  // Never an optional: upstream binds the plain value.
    const Outcome outcome = rule.message->evaluate(bindings, arena_);
    if (outcome.cost > static_cast<uint64_t>(budget_)) {
      problem =
          "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be "
          "run";
      return {};
    }
    if (outcome.value.is_error() && outcome.value.text().starts_with(kCostLimitExceeded)) {
      problem = "no further validation rules will be run due to call cost exceeds limit for messageExpression: " +
                go_quote(rule.text("messageExpression"));
      return {};
    }
    budget_ -= static_cast<int64_t>(outcome.cost);
    if (!outcome.value.is_string()) return {};
    const std::string_view text = trim(outcome.value.text());
    if (text.size() > kMaxMessageBytes || text.find('\n') != std::string_view::npos) return {};
    return std::string(text);
  }

  Arena& arena_;
  int64_t& budget_;
  std::vector<Failure> failures_;
  // Apart, so that warnings do not take the place of errors.
  ErrorBudget room_, ratcheted_room_;
};

}  // namespace

std::string SchemaRules::Failure::text() const {
  static constexpr std::string_view kNames[] = {"Invalid value", "Forbidden", "Required value", "Duplicate value",
                                                "Internal error"};
  std::string out = path + ": " + std::string(kNames[static_cast<size_t>(kind)]);
  const bool shows = kind == Kind::Invalid || kind == Kind::Duplicate;
  if (shows && type) {
    out += ": " + go_quote(*type);
  } else if (shows && value != nullptr) {
    out += ": " + (value->is_string()   ? go_quote(value->as_string())
                   : value->is_double() ? codec::go_float_text(value->as_double())
                                        : codec::encode_json_sorted(*value));
  }
  return kind == Kind::Duplicate || detail.empty() ? out : out + ": " + detail;
}

std::vector<SchemaRules::Failure> SchemaRules::validate(Arena& arena, const Value& object, const Value* old,
                                                        int64_t& budget, bool ratchet) const {
  Runner runner(arena, budget);
  Correlation correlation;
  if (ratchet && old != nullptr) correlation = {&object, old, true, nullptr, nullptr};
  runner.run(*state_->root, object, old, Path{}, correlation);
  return runner.take_failures();
}

}  // namespace holdfast::cel
