// Manifests as people keep them: files, folders, URLs, standard input, kustomizations, several documents each, YAML or
// JSON, Lists.
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
  std::string source;     // As given: "web.yaml"; "<stdin>".
  size_t line = 1;        // Where its document begins.
  size_t document = 1;    // Counted from 1 in its source.
  client::Object object;  // A map with apiVersion and kind.

  std::string_view api_version() const { return object.root().text_at("apiVersion"); }
  std::string_view kind() const { return object.root().text_at("kind"); }
  // "web.yaml:12 (document 2)": what errors begin with.
  std::string where() const;
};

// The flags that say where manifests are.
struct ManifestFlags {
  std::vector<std::string> files;  // -f
  std::string kustomization;       // -k
  bool recursive = false;          // -R

  bool given() const { return !files.empty() || !kustomization.empty(); }
};
// `what`: what the manifests are for, as the help says it.
void add_manifest_flags(CLI::App& command, ManifestFlags& flags, const std::string& what);

// Each path is a file, a folder (its .yaml, .yml and .json files in order of their names, those of folders below with
// `recursive`), a URL, or "-" for standard input; or all is what kustomize builds. Items of Lists come one by one.
// Errors name file, line and document.
Result<std::vector<Manifest>> read_manifests(const ManifestFlags& flags);
// The same from a text.
Result<std::vector<Manifest>> parse_manifests(std::string text, const std::string& source);

}  // namespace holdfast::cli
