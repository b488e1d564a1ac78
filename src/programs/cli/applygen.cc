// holdfast applygen: C++ apply configurations from the catalog, CustomResourceDefinitions or OpenAPI documents.
#include "applygen/applygen.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "codec/codec.h"

namespace holdfast::cli {
namespace {

Result<Unit> add_file(const std::string& path, applygen::Documents& all) {
  const Result<std::string> text = read_file(path);
  if (!text) return bad_request("open " + path + ": no such file or directory");
  Result<std::vector<std::string_view>> documents = codec::split_documents(*text);
  if (!documents) return bad_request(path + ": " + documents.error().message);
  for (const std::string_view document : *documents) {
    Arena arena;
    Result<Value> value = codec::decode_yaml(arena, document);
    if (!value) return bad_request(path + ": " + value.error().message);
    Result<Unit> added = value->has("openapi") ? all.add_openapi(*value) : all.add_crd(*value);
    if (!added) return bad_request(path + ": " + added.error().message);
  }
  return Unit{};
}

}  // namespace

Command add_applygen(CLI::App& app) {
  CLI::App* command = app.add_subcommand("applygen", "Generate C++ apply configurations");
  auto output = std::make_shared<std::string>(".");
  auto prefix = std::make_shared<std::string>("holdfast/");
  auto files = std::make_shared<std::vector<std::string>>();
  auto builtin = std::make_shared<bool>(false);
  command->add_option("files", *files, "CustomResourceDefinitions (YAML or JSON) or OpenAPI v3 documents of a server");
  command->add_flag("--builtin", *builtin, "Generate the built-in kinds");
  command->add_option("-o,--output", *output, "Directory to write one header per group and version to")
      ->capture_default_str();
  command->add_option("--include-prefix", *prefix, "Prefix of the included headers of the library")
      ->capture_default_str();
  return [=] {
    applygen::Documents documents;
    for (const std::string& file : *files) {
      if (Result<Unit> added = add_file(file, documents); !added) return fail(added.error().message.c_str());
    }
    Result<std::vector<applygen::Package>> found = documents.packages();
    if (!found) return fail(found.error().message.c_str());
    std::vector<applygen::Package> packages;
    if (*builtin) packages = applygen::packages_of_catalog();
    for (applygen::Package& package : *found) {
      const bool taken = std::any_of(packages.begin(), packages.end(),
                                     [&](const applygen::Package& other) { return other.name == package.name; });
      if (taken) return fail((package.name + " is a built-in group: generate it without --builtin").c_str());
      packages.push_back(std::move(package));
    }
    if (packages.empty()) return fail("nothing to generate: name a file, or pass --builtin");
    std::error_code failed;
    std::filesystem::create_directories(*output, failed);
    for (const applygen::Package& package : packages) {
      const std::string path = *output + "/" + package.name + ".h";
      std::ofstream file(path);
      file << applygen::header_of(package, *prefix);
      if (!file.flush()) return fail(("cannot write " + path).c_str());
      print(path, "\n");
    }
    return 0;
  };
}

}  // namespace holdfast::cli
