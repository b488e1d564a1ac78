// `holdfast cel`: the Common Expression Language at a terminal.
#include "cel/cel.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>

#include "cli/commands.h"
#include "codec/codec.h"

namespace holdfast::cli {
namespace {

// One line of --json-lines: {"expr", "vars", "mutation"}.
std::string answer_expression(Arena& arena, const Value& query) {
  cel::Environment::Options options;
  const auto variables = query.members_at("vars");
  for (const Member& variable : variables) options.variables.push_back({std::string(variable.key), cel::dyn_type()});
  const Value* mutation = query.find("mutation");
  options.mutation = mutation != nullptr && mutation->is_bool() && mutation->as_bool();
  const std::shared_ptr<const cel::Environment> environment = cel::Environment::make(std::move(options));
  const cel::Environment::Compiled compiled = environment->compile(query.text_at("expr"));
  if (compiled.program == nullptr) return "{\"compile\":" + codec::encode_json_string(compiled.error.text) + "}";
  cel::Bindings bindings(*environment);
  for (size_t i = 0; i < variables.size(); ++i) bindings.set(i, cel::Val::data(variables[i].value));
  const cel::Outcome outcome = compiled.program->evaluate(bindings, arena);
  const cel::CostEstimate estimate = compiled.program->estimate();
  std::string out = "{\"cost\":" + std::to_string(outcome.cost);
  if (outcome.value.is_error()) out += ",\"error\":" + codec::encode_json_string(outcome.value.text());
  out += ",\"estimate\":[" + std::to_string(estimate.min) + "," + std::to_string(estimate.max) + "]";
  out += ",\"type\":" + codec::encode_json_string(cel::go_type_text(compiled.program->result_type()));
  if (!outcome.value.is_error()) out += ",\"value\":" + outcome.value.shown();
  return out + "}";
}

int run_json_lines() {
  std::ios::sync_with_stdio(false);
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line.empty()) continue;
    Arena arena;
    const Result<Value> query = codec::decode_json(arena, line);
    if (!query) return fail(query.error().message.c_str());
    const std::string answer = answer_expression(arena, *query);
    std::cout << answer << '\n';
    if (std::cin.rdbuf()->in_avail() <= 0) std::cout.flush();
  }
  return 0;
}

struct Options {
  bool json_lines = false;
};

}  // namespace

Command add_cel(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("cel", "Evaluate expressions of the Common Expression Language");
  command->add_flag("--json-lines", options->json_lines, "Read one query per line as JSON and answer each in one line");
  return [options] {
    if (options->json_lines) return run_json_lines();
    return fail("cel: use --json-lines");
  };
}

}  // namespace holdfast::cli
