// Writes headers at build time: catalog_headers FOLDER INCLUDE_PREFIX [CRD_FILE]
// Those of the built-in kinds, or those of the definitions in a file.
#include <cstdio>
#include <fstream>

#include "applygen/applygen.h"
#include "base/files.h"
#include "codec/codec.h"

namespace holdfast::applygen {
namespace {

Result<std::vector<Package>> packages_of_file(const char* path) {
  const Result<std::string> text = read_file(path);
  if (!text) return text.error();
  const Result<std::vector<std::string_view>> parts = codec::split_documents(*text);
  if (!parts) return parts.error();
  Documents documents;
  for (const std::string_view part : *parts) {
    Arena arena;
    const Result<Value> definition = codec::decode_yaml(arena, part);
    if (!definition) return definition.error();
    if (Result<Unit> added = documents.add_crd(*definition); !added) return added.take_error();
  }
  return documents.packages();
}

int write_headers(const std::string& folder, const char* prefix, const std::vector<Package>& packages) {
  for (const Package& package : packages) {
    const std::string path = folder + "/" + package.name + ".h";
    std::ofstream file(path);
    file << header_of(package, prefix);
    if (!file.flush()) {
      fprintf(stderr, "cannot write %s\n", path.c_str());
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace holdfast::applygen

int main(int count, char** arguments) {
  using namespace holdfast::applygen;
  if (count < 3) return 1;
  if (count == 3) return write_headers(arguments[1], arguments[2], packages_of_catalog());
  const auto packages = packages_of_file(arguments[3]);
  if (!packages) {
    fprintf(stderr, "%s: %s\n", arguments[3], packages.error().message.c_str());
    return 1;
  }
  return write_headers(arguments[1], arguments[2], *packages);
}
