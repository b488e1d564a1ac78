// holdfast applygen: C++ apply configurations from the catalog, CustomResourceDefinitions or OpenAPI documents.
#include "applygen/applygen.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "cli/commands.h"
#include "codec/codec.h"

namespace holdfast::cli {
namespace {

Result<std::vector<applygen::Package>> packages_of_file(const std::string& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return bad_request("open " + path + ": no such file or directory");
  Result<std::vector<std::string_view>> documents = codec::split_documents(*text);
  if (!documents) return bad_request(path + ": " + documents.error().message);
  std::vector<applygen::Package> packages;
  for (const std::string_view document : *documents) {
    Arena arena;
    Result<Value> value = codec::decode_yaml(arena, document);
    if (!value) return bad_request(path + ": " + value.error().message);
    const bool openapi = value->has("openapi");
    Result<std::vector<applygen::Package>> found =
        openapi ? applygen::packages_of_openapi(*value) : applygen::packages_of_crd(*value);
    if (!found) return bad_request(path + ": " + found.error().message);
    packages.insert(packages.end(), found->begin(), found->end());
  }
  return packages;
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
    std::vector<applygen::Package> packages;
    if (*builtin) packages = applygen::packages_of_catalog();
    for (const std::string& file : *files) {
      Result<std::vector<applygen::Package>> found = packages_of_file(file);
      if (!found) return fail(found.error().message.c_str());
      packages.insert(packages.end(), found->begin(), found->end());
    }
    if (packages.empty()) return fail("nothing to generate: name a file, or pass --builtin");
    std::error_code failed;
    std::filesystem::create_directories(*output, failed);
    for (const applygen::Package& package : packages) {
      const std::string path = *output + "/" + package.name + ".h";
      std::ofstream file(path);
      file << applygen::header_of(package, *prefix);
      if (!file.flush()) return fail(("cannot write " + path).c_str());
      printf("%s\n", path.c_str());
    }
    return 0;
  };
}

}  // namespace holdfast::cli
