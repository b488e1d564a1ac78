#include "cli/manifests.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "base/files.h"
#include "cli/manifest_sources.h"
#include "codec/codec.h"

namespace holdfast::cli {

namespace {

namespace fs = std::filesystem;

std::string place(const std::string& source, size_t line, size_t document) {
  return source + ":" + std::to_string(line) + " (document " + std::to_string(document) + ")";
}

// The line number in a decoder's message ("line 3:"), counted from the start of the document; 0 if there is none.
size_t line_in(std::string_view message) {
  const size_t at = message.find("line ");
  if (at == std::string_view::npos) return 0;
  size_t line = 0;
  const char* const begin = message.data() + at + 5;
  const auto [end, error] = std::from_chars(begin, message.data() + message.size(), line);
  return error == std::errc() ? line : 0;
}

// The first line of the document that is neither blank nor a comment.
size_t first_line(std::string_view document, size_t line) {
  size_t at = 0;
  while (at < document.size()) {
    const size_t end = std::min(document.find('\n', at), document.size());
    const std::string_view text = document.substr(at, end - at);
    const size_t content = text.find_first_not_of(" \t\r");
    if (content != std::string_view::npos && text[content] != '#' && !text.starts_with("---")) return line;
    at = end + 1;
    ++line;
  }
  return line;
}

Result<Unit> add_object(const Manifest& from, client::Object object, std::vector<Manifest>& into) {
  const Value& root = object.root();
  if (!root.is_map()) return bad_request(from.where() + ": not an object");
  const std::string_view kind = root.text_at("kind");
  const Value* items = root.find("items");
  if (kind.ends_with("List") && items != nullptr && items->is_list()) {
    for (const Value& item : items->items()) {
      codec::Document document;
      Value copy = deep_copy(document.arena(), item);
      // Items of typed lists need not repeat apiVersion and kind.
      if (copy.is_map() && !copy.has("kind") && kind != "List") {
        copy = with_member(document.arena(), copy, "kind",
                           Value::string(document.arena(), kind.substr(0, kind.size() - 4)));
        copy = with_member(document.arena(), copy, "apiVersion",
                           Value::string(document.arena(), root.text_at("apiVersion")));
      }
      // A manager declared for the list is that of each item, unless it declares its own.
      const Value* options = root.get("metadata", "options");
      if (options != nullptr && copy.is_map() && copy.get("metadata", "options") == nullptr) {
        constexpr std::string_view kPath[] = {"metadata", "options"};
        copy = with_path(document.arena(), copy, kPath, deep_copy(document.arena(), *options));
      }
      document.set_root(copy);
      Result<Unit> added = add_object(from, client::Object(std::move(document)), into);
      if (!added) return added.take_error();
    }
    return Unit{};
  }
  if (kind.empty()) return bad_request(from.where() + ": kind is not set");
  if (root.text_at("apiVersion").empty()) return bad_request(from.where() + ": apiVersion is not set");
  Manifest manifest = from;
  manifest.object = std::move(object);
  into.push_back(std::move(manifest));
  return Unit{};
}

Result<std::string> read_all(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  Result<std::string> text = read_file(path);
  if (!text) return bad_request("the path \"" + path + "\" does not exist or cannot be read");
  return text;
}

bool is_manifest(const fs::path& path) {
  const std::string extension = path.extension();
  return extension == ".yaml" || extension == ".yml" || extension == ".json";
}

Result<std::vector<std::string>> files_of(const std::string& path, bool recursive) {
  if (path == "-" || is_url(path)) return std::vector<std::string>{path};
  std::error_code failed;
  if (!fs::is_directory(path, failed)) return std::vector<std::string>{path};
  std::vector<std::string> files;
  if (recursive) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path, failed)) {
      if (entry.is_regular_file() && is_manifest(entry.path())) files.push_back(entry.path().string());
    }
  } else {
    for (const fs::directory_entry& entry : fs::directory_iterator(path, failed)) {
      if (entry.is_regular_file() && is_manifest(entry.path())) files.push_back(entry.path().string());
    }
  }
  if (failed) return bad_request(path + ": " + failed.message());
  std::sort(files.begin(), files.end());
  if (files.empty())
    return bad_request("error reading [" + path + "]: recognized file extensions are [.json .yaml .yml]");
  return files;
}

}  // namespace

void add_manifest_flags(CLI::App& command, ManifestFlags& flags, const std::string& what) {
  command.add_option("-f,--filename", flags.files, "Files, directories or URLs " + what + "; - is standard input")
      ->allow_extra_args(false);
  command.add_option("-k,--kustomize", flags.kustomization, "Kustomization directory to build, instead of -f");
  command.add_flag("-R,--recursive", flags.recursive, "Process the directories of -f recursively");
}

std::string Manifest::where() const { return place(source, line, document); }

Result<std::vector<Manifest>> parse_manifests(std::string text, const std::string& source) {
  std::vector<Manifest> manifests;
  Result<std::vector<std::string_view>> documents = codec::split_documents(text);
  if (!documents) return bad_request(source + ": " + documents.error().message);
  size_t number = 0, lines = 1;
  const char* counted = text.data();
  for (const std::string_view document : *documents) {
    lines += static_cast<size_t>(std::count(counted, document.data(), '\n'));
    counted = document.data();
    Manifest manifest;
    manifest.source = source;
    manifest.line = first_line(document, lines);
    manifest.document = ++number;
    Result<codec::Document> parsed = codec::parse_yaml(std::string(document));
    if (!parsed) {
      const size_t line = line_in(parsed.error().message);
      return bad_request(place(source, line == 0 ? manifest.line : lines + line - 1, number) + ": " +
                         parsed.error().message);
    }
    if (parsed->root().is_null()) continue;
    Result<Unit> added = add_object(manifest, client::Object(std::move(*parsed)), manifests);
    if (!added) return added.take_error();
  }
  return manifests;
}

Result<std::vector<Manifest>> read_manifests(const ManifestFlags& flags) {
  if (!flags.kustomization.empty()) {
    if (!flags.files.empty()) return bad_request("-f and -k cannot be used together");
    Result<std::string> text = build_kustomization(flags.kustomization);
    if (!text) return text.take_error();
    return parse_manifests(std::move(*text), "kustomize build " + flags.kustomization);
  }
  if (flags.files.empty()) return bad_request("must specify one of -f and -k");
  std::vector<Manifest> all;
  for (const std::string& path : flags.files) {
    Result<std::vector<std::string>> files = files_of(path, flags.recursive);
    if (!files) return files.take_error();
    for (const std::string& file : *files) {
      Result<std::string> text = is_url(file) ? fetch_text(file) : read_all(file);
      if (!text) return text.take_error();
      Result<std::vector<Manifest>> manifests = parse_manifests(std::move(*text), file == "-" ? "<stdin>" : file);
      if (!manifests) return manifests.take_error();
      all.insert(all.end(), std::make_move_iterator(manifests->begin()), std::make_move_iterator(manifests->end()));
    }
  }
  return all;
}

}  // namespace holdfast::cli
