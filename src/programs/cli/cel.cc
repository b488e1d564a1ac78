// `holdfast cel`: evaluates Common Expression Language from the command line.
#include "cel/cel.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>

#include "base/files.h"
#include "cli/cel_policy.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "codec/codec.h"
#include "codec/visible.h"

namespace holdfast::cli {
namespace {

// --- --json-lines: one query per line, one answer per line ---

std::string json_text(std::string_view text) { return codec::encode_json_string(text); }

// {"expr", "vars", "mutation"}
std::string answer_expression(Arena& arena, const Value& query) {
  cel::Environment::Options options;
  const auto variables = query.members_at("vars");
  for (const Member& variable : variables) options.variables.push_back({std::string(variable.key), cel::dyn_type()});
  const Value* mutation = query.find("mutation");
  options.mutation = mutation != nullptr && mutation->is_bool() && mutation->as_bool();
  const std::shared_ptr<const cel::Environment> environment = cel::Environment::make(std::move(options));
  const cel::Environment::Compiled compiled = environment->compile(query.text_at("expr"));
  if (compiled.program == nullptr) return "{\"compile\":" + json_text(compiled.error.text) + "}";
  cel::Bindings bindings(*environment);
  for (size_t i = 0; i < variables.size(); ++i) bindings.set(i, cel::Val::data(variables[i].value));
  const cel::Outcome outcome = compiled.program->evaluate(bindings, arena);
  const cel::CostEstimate estimate = compiled.program->estimate();
  std::string out = "{\"cost\":" + std::to_string(outcome.cost);
  if (outcome.value.is_error()) out += ",\"error\":" + json_text(outcome.value.text());
  out += ",\"estimate\":[" + std::to_string(estimate.min) + "," + std::to_string(estimate.max) + "]";
  out += ",\"type\":" + json_text(cel::go_type_text(compiled.program->result_type()));
  if (!outcome.value.is_error()) out += ",\"value\":" + outcome.value.shown();
  return out + "}";
}

// {"schema", "self", "old"}
std::string answer_rules(Arena& arena, const Value& query) {
  const std::shared_ptr<const cel::SchemaRules> rules = cel::SchemaRules::compile(*query.find("schema"));
  std::string listed;
  if (rules != nullptr) {
    for (const cel::SchemaRules::Rule& rule : rules->rules()) {
      const bool invisible = rule.problem == cel::SchemaRules::kUntypedSchemaProblem;
      if (invisible && rule.index > 0) continue;
      listed += listed.empty() ? "{" : ",{";
      if (!rule.problem.empty()) listed += "\"compile\":" + json_text(rule.problem) + ",";
      if (invisible) {
        listed += "\"path\":" + json_text(rule.data_path) + "}";
        continue;
      }
      listed += "\"estimate\":" + std::to_string(rule.estimate);
      if (rule.has_message) {
        listed += ",\"message\":{";
        if (!rule.message_problem.empty()) listed += "\"compile\":" + json_text(rule.message_problem) + ",";
        listed += "\"estimate\":" + std::to_string(rule.message_estimate) + "}";
      }
      listed += ",\"path\":" + json_text(rule.data_path) + ",\"rule\":" + json_text(rule.written->text_at("rule")) +
                ",\"times\":" + std::to_string(rule.times) + "}";
    }
  }
  const Value* self = query.find("self");
  const bool any = rules != nullptr && std::any_of(rules->rules().begin(), rules->rules().end(), [](const auto& rule) {
                     return rule.problem != cel::SchemaRules::kUntypedSchemaProblem;
                   });
  if (!any || self == nullptr || self->is_null()) return "{\"errors\":[],\"rules\":[" + listed + "]}";
  int64_t budget = cel::kRuntimeBudget;
  std::string problems;
  for (const cel::SchemaRules::Failure& failure : rules->validate(arena, *self, query.find("old"), budget, false))
    problems += (problems.empty() ? "" : ",") + json_text(failure.text());
  return "{\"errors\":[" + problems + "],\"left\":" + std::to_string(budget) + ",\"rules\":[" + listed + "]}";
}

int run_json_lines() {
  std::ios::sync_with_stdio(false);
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line.empty()) continue;
    Arena arena;
    const Result<Value> query = codec::decode_json(arena, line);
    if (!query) return fail(query.error().message.c_str());
    std::cout << codec::visible_json(query->has("schema") ? answer_rules(arena, *query)
                                                          : answer_expression(arena, *query))
              << '\n';
    if (std::cin.rdbuf()->in_avail() <= 0) std::cout.flush();
  }
  return 0;
}

// --- Output for users ---

struct Options {
  bool json_lines = false;
  bool mutation = false;
  std::string expression, object, old_object, params, schema, policy, binding;
};

Result<codec::Document> read_document(const std::string& path) {
  Result<std::string> text = read_file(path);
  if (!text) return Error{Reason::NotFound, path + ": cannot be read"};
  Result<codec::Document> document = codec::parse_yaml(std::move(*text));
  if (!document) return Error{Reason::BadRequest, path + ": " + document.error().message};
  return document;
}

int run_expression(const Options& given) {
  cel::Environment::Options options;
  options.mutation = given.mutation;
  std::vector<codec::Document> documents;
  const std::pair<std::string_view, const std::string*> files[] = {
      {"object", &given.object}, {"oldObject", &given.old_object}, {"params", &given.params}};
  for (const auto& [name, path] : files) {
    options.variables.push_back({std::string(name), cel::dyn_type()});
    codec::Document document;
    if (!path->empty()) {
      Result<codec::Document> read = read_document(*path);
      if (!read) return fail(read.error().message.c_str());
      document = std::move(*read);
    }
    documents.push_back(std::move(document));
  }
  const std::shared_ptr<const cel::Environment> environment = cel::Environment::make(std::move(options));
  const cel::Environment::Compiled compiled = environment->compile(given.expression);
  if (compiled.program == nullptr) {
    print_error(compiled.error.text, "\n");
    return 1;
  }
  Arena arena;
  cel::Bindings bindings(*environment);
  for (size_t i = 0; i < documents.size(); ++i) bindings.set(i, cel::Val::data(documents[i].root()));
  const cel::Outcome outcome = compiled.program->evaluate(bindings, arena);
  if (outcome.value.is_error()) {
    print_error("error: ", outcome.value.text(), "\ncost: ", std::to_string(outcome.cost), "\n");
    return 1;
  }
  const std::optional<Value> plain = outcome.value.to_value(arena);
  print(plain ? codec::visible_json(codec::encode_json_pretty(*plain)) : outcome.value.shown(),
        "\ncost: ", std::to_string(outcome.cost), "\n");
  return 0;
}

int run_schema(const Options& given) {
  if (given.object.empty()) return fail("cel --schema requires an object: -f FILE");
  Result<codec::Document> definition = read_document(given.schema);
  if (!definition) return fail(definition.error().message.c_str());
  Result<codec::Document> object = read_document(given.object);
  if (!object) return fail(object.error().message.c_str());
  codec::Document old;
  if (!given.old_object.empty()) {
    Result<codec::Document> read = read_document(given.old_object);
    if (!read) return fail(read.error().message.c_str());
    old = std::move(*read);
  }
  const Value* schema = schema_for(definition->root(), object->root());
  if (schema == nullptr) return fail((given.schema + ": no version with a schema matches the object").c_str());
  const std::shared_ptr<const cel::SchemaRules> rules = cel::SchemaRules::compile(*schema);
  if (rules == nullptr) {
    print("no rules\n");
    return 0;
  }
  Arena arena;
  int64_t budget = cel::kRuntimeBudget;
  const std::vector<cel::SchemaRules::Failure> failures =
      rules->validate(arena, object->root(), given.old_object.empty() ? nullptr : &old.root(), budget, true);
  for (const cel::SchemaRules::Failure& failure : failures)
    print(failure.ratcheted ? "warning: " : "", failure.text(), "\n");
  print("rules: ", std::to_string(rules->rules().size()), ", failures: ", std::to_string(failures.size()));
  if (budget >= 0) print(", cost: ", std::to_string(cel::kRuntimeBudget - budget));
  print("\n");
  return failures.empty() ? 0 : 1;
}

// Reads the file, if one is given.
Result<Value> read_into(std::vector<codec::Document>& documents, const std::string& path) {
  if (path.empty()) return Value::null();
  Result<codec::Document> document = read_document(path);
  if (!document) return document.take_error();
  documents.push_back(std::move(*document));
  return documents.back().root();
}

int run_policy(const Options& given) {
  std::vector<codec::Document> documents;
  documents.reserve(6);
  PolicyCase about;
  const std::pair<Value*, const std::string*> files[] = {
      {&about.policy, &given.policy},         {&about.binding, &given.binding}, {&about.object, &given.object},
      {&about.old_object, &given.old_object}, {&about.params, &given.params},   {&about.definition, &given.schema}};
  for (const auto& [value, path] : files) {
    Result<Value> read = read_into(documents, *path);
    if (!read) return fail(read.error().message.c_str());
    *value = *read;
  }
  Arena arena;
  const Result<PolicyReport> report = evaluate_policy(arena, about);
  if (!report) return fail((given.policy + ": " + report.error().message).c_str());
  print(report->text);
  return report->denied ? 1 : 0;
}

}  // namespace

Command add_cel(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("cel", "Evaluate an expression of the Common Expression Language");
  command->add_option("expression", options->expression, "Expression; object, oldObject and params are its variables");
  command->add_option("-f,--filename", options->object, "YAML or JSON file with the object");
  command->add_option("--old", options->old_object, "File with the object before the change");
  command->add_option("--params", options->params, "File with the parameters of a policy");
  command->add_option("--schema", options->schema,
                      "CustomResourceDefinition whose rules are evaluated for the object, instead of an expression");
  command->add_option("--policy", options->policy,
                      "ValidatingAdmissionPolicy or MutatingAdmissionPolicy to evaluate for the object");
  command->add_option("--binding", options->binding, "Binding of the policy, for its validationActions");
  command->add_flag("--mutation", options->mutation, "Allow Object{} and JSONPatch{}, as mutating policies do");
  command->add_flag("--json-lines", options->json_lines,
                    "Read one JSON query per line and print one JSON answer per line");
  return [options] {
    if (options->json_lines) return run_json_lines();
    if (!options->policy.empty()) return run_policy(*options);
    if (!options->schema.empty()) return run_schema(*options);
    if (options->expression.empty()) return fail("cel needs an expression, --policy, --schema or --json-lines");
    return run_expression(*options);
  };
}

}  // namespace holdfast::cli
