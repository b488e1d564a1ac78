// `holdfast diff`: the changes that an apply would make, and the owners of the changed fields.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/blame.h"
#include "cli/commands.h"
#include "cli/line_diff.h"
#include "cli/manifests.h"
#include "cli/session.h"
#include "cli/terminal.h"

namespace holdfast::cli {
namespace {

constexpr int kDifferent = 1, kFailed = 2;

struct DiffFlags {
  ConnectionFlags connection;
  ManifestFlags manifests;
  bool server_side = true, force_conflicts = true;
  std::string field_manager;
};

std::string print_line(const Terminal& terminal, char mark, const BlamedLine& line, size_t column) {
  std::string text = mark + line.text;
  if (!line.owners.empty() && mark != ' ') text = padded(text, column) + "  # " + line.owners;
  return (mark == '+' ? added(terminal, text) : mark == '-' ? removed(terminal, text) : text) + "\n";
}

// The output for one object; empty if nothing would change.
Result<std::string> diff_of(const client::Object& live, const client::Object& merged, const std::string& name) {
  std::vector<BlamedLine> before;
  if (live) {
    Result<std::vector<BlamedLine>> lines = blamed_lines(live.root());
    if (!lines) return lines.take_error();
    before = std::move(*lines);
  }
  Result<std::vector<BlamedLine>> after = blamed_lines(merged.root());
  if (!after) return after.take_error();
  std::vector<std::string> old_texts, new_texts;
  for (const BlamedLine& line : before) old_texts.push_back(line.text);
  for (const BlamedLine& line : *after) new_texts.push_back(line.text);
  const std::vector<DiffLine> lines = diff_lines(old_texts, new_texts);
  const std::vector<Hunk> groups = hunks(lines);
  if (groups.empty()) return std::string();
  const Terminal terminal = Terminal::of_output();
  const std::string shown = visible_line(name);
  std::string out = "--- LIVE/" + shown + "\n+++ MERGED/" + shown + "\n";
  for (const Hunk& hunk : groups) {
    out += dimmed(terminal, hunk.heading) + "\n";
    size_t column = 0;
    for (const DiffLine& line : hunk.lines) {
      const bool gone = line.kind == DiffLine::Kind::Removed;
      column = std::max(
          column, std::min<size_t>(60, 1 + shown_width((gone ? before[line.before] : (*after)[line.after]).text)));
    }
    for (const DiffLine& line : hunk.lines) {
      switch (line.kind) {
        case DiffLine::Kind::Same:
          out += print_line(terminal, ' ', (*after)[line.after], column);
          break;
        case DiffLine::Kind::Removed:
          out += print_line(terminal, '-', before[line.before], column);
          break;
        case DiffLine::Kind::Added:
          out += print_line(terminal, '+', (*after)[line.after], column);
          break;
      }
    }
  }
  return out;
}

int diff(const DiffFlags& flags) {
  Result<std::vector<Manifest>> manifests = read_manifests(flags.manifests);
  if (!manifests) {
    fail(manifests.error().message.c_str());
    return kFailed;
  }
  Result<Session> session = open_session(flags.connection);
  if (!session) {
    fail(session.error().message.c_str());
    return kFailed;
  }
  int status = 0;
  for (const Manifest& manifest : *manifests) {
    Result<client::Api<>> api = api_of(*session, manifest);
    if (!api) {
      fail_with(*session, api.error());
      return kFailed;
    }
    Result<client::Object> live = api->get(std::string(manifest.object.name())).wait();
    if (!live && live.error().reason != Reason::NotFound) {
      fail_with(*session, at(manifest, live.take_error()));
      return kFailed;
    }
    client::ApplyOptions options{.force = flags.force_conflicts,
                                 .field_manager = manager_for(manifest, flags.field_manager, "holdfast"),
                                 .dry_run = true};
    Result<client::Object> merged = api->apply(manifest.object.root(), options).wait();
    if (!merged) {
      fail_with(*session, at(manifest, merged.take_error()));
      return kFailed;
    }
    std::string name(manifest.api_version());
    for (char& c : name) c = c == '/' ? '.' : c;
    name += "." + std::string(manifest.kind()) + "." + std::string(merged->space()) + "." + std::string(merged->name());
    Result<std::string> text = diff_of(live ? *live : client::Object(), *merged, name);
    if (!text) {
      fail_with(*session, text.error());
      return kFailed;
    }
    if (!text->empty()) status = kDifferent;
    print_styled(*text);
  }
  return status;
}

}  // namespace

Command add_diff(CLI::App& app) {
  auto flags = std::make_shared<DiffFlags>();
  CLI::App* c = app.add_subcommand("diff", "Show what an apply would change, and who owns it");
  add_manifest_flags(*c, flags->manifests, "of manifests");
  c->add_option("--field-manager", flags->field_manager,
                "Field manager; default: the one declared in the manifest, else holdfast");
  c->add_flag("--force-conflicts,!--no-force-conflicts", flags->force_conflicts,
              "Compare with the result of a forced apply (default); without it, a conflict is an error");
  c->add_flag("--server-side", flags->server_side,
              "Accepted for compatibility with kubectl; the server always computes the result");
  add_connection_flags(*c, flags->connection);
  c->footer(
      "\nRemoved lines name the owners in the live object, added lines those in the result.\n"
      "Exit status: 0 without differences, 1 with differences, 2 for an error.\n\n"
      "Examples:\n  holdfast diff -f web.yaml\n  kustomize build . | holdfast diff -f -");
  return [flags] { return diff(*flags); };
}

}  // namespace holdfast::cli
