// Reads manifests from files, directories, URLs, standard input and kustomizations: YAML or JSON, multiple documents,
// Lists.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "client/client.h"

namespace CLI {
class App;
}

namespace holdfast::cli {

struct Manifest {
  std::string source;     // As given ("web.yaml"), or "<stdin>".
  size_t line = 1;        // Where its document begins.
  size_t document = 1;    // Counted from 1 in its source.
  client::Object object;  // A map with apiVersion and kind.

  std::string_view api_version() const { return object.root().text_at("apiVersion"); }
  std::string_view kind() const { return object.root().text_at("kind"); }
  // "web.yaml:12 (document 2)", the prefix of errors.
  std::string where() const;
};

// The flags that specify manifests.
struct ManifestFlags {
  std::vector<std::string> files;  // -f
  std::string kustomization;       // -k
  bool recursive = false;          // -R

  bool given() const { return !files.empty() || !kustomization.empty(); }
};
// `what`: describes the manifests in the help text.
void add_manifest_flags(CLI::App& command, ManifestFlags& flags, const std::string& what);

// Each path is a file, a directory (its .yaml, .yml and .json files sorted by name; with `recursive` also those of its
// subdirectories), a URL, or "-" for standard input. With a kustomization, the manifests are those built by kustomize.
// Lists are split into their items, which inherit metadata.options. Errors name file, line and document.
Result<std::vector<Manifest>> read_manifests(const ManifestFlags& flags);
// Parses manifests from a string.
Result<std::vector<Manifest>> parse_manifests(std::string text, const std::string& source);

}  // namespace holdfast::cli
