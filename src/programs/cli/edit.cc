// `holdfast edit`: edits an object in the user's editor.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/files.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/manifests.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/terminal.h"

namespace holdfast::cli {
namespace {

struct EditFlags {
  ConnectionFlags connection;
  std::vector<std::string> arguments;
  std::string field_manager = "holdfast-edit";
};

constexpr std::string_view kHint =
    "# Edit the object below. Lines that begin with '#' are ignored, and an empty file cancels. If the server refuses\n"
    "# the result, this file is opened again with the reason.\n#\n";

// A temporary file, removed on destruction.
class EditedFile {
 public:
  EditedFile() {
    std::error_code ignored;
    path_ = (std::filesystem::temp_directory_path(ignored) / "holdfast-edit-XXXXXX.yaml").string();
    const int file = mkstemps(path_.data(), 5);
    if (file >= 0) close(file);
  }
  ~EditedFile() { unlink(path_.c_str()); }
  EditedFile(const EditedFile&) = delete;
  EditedFile& operator=(const EditedFile&) = delete;

  const std::string& path() const { return path_; }
  bool write(const std::string& text) const { return static_cast<bool>(std::ofstream(path_) << text); }
  std::string read() const {
    Result<std::string> text = read_file(path_);
    return text ? std::move(*text) : "";
  }

 private:
  std::string path_;
};

std::string editor() {
  for (const char* name : {"KUBE_EDITOR", "EDITOR"}) {
    const char* value = getenv(name);
    if (value != nullptr && *value != 0) return value;
  }
  return "vi";
}

// Runs the editor through the shell, as git and kubectl do, so that it may have arguments.
bool run_editor(const std::string& path) {
  const int status = system((editor() + " '" + path + "'").c_str());
  return status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string without_comments(const std::string& text) {
  std::string out;
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with('#')) out += std::string(line) + "\n";
  }
  return std::string(trim(out));
}

int edit(const EditFlags& flags) {
  Result<Session> session = open_session(flags.connection, ManagedFields::Dropped);
  if (!session) return fail(session.error().message.c_str());
  Result<std::vector<Target>> targets = find_targets(*session, flags.arguments);
  if (!targets) return fail_with(*session, targets.error());
  if (targets->size() != 1 || targets->front().name.empty())
    return fail("edit: expected exactly one object: KIND NAME");
  const Target& target = targets->front();
  const client::Api<> api = session->client.api(target.resource, space_for(*session, target.resource));
  Result<client::Object> live = api.get(target.name).wait();
  if (!live) return fail_with(*session, live.error());
  const std::string original = yaml_text(live->root());
  const EditedFile file;
  std::string shown = std::string(kHint) + original, before = without_comments(original), problem;
  while (true) {
    if (!file.write(shown)) return fail((file.path() + " cannot be written").c_str());
    if (!run_editor(file.path()))
      return fail(("the editor failed: " + editor() + "; set KUBE_EDITOR or EDITOR").c_str());
    const std::string text = without_comments(file.read());
    if (text.empty() || text == before) {
      print("Edit cancelled, no changes made.\n");
      return problem.empty() ? 0 : 1;
    }
    before = text;  // Saving the same text again gives up.
    Result<std::vector<Manifest>> edited = parse_manifests(text, "the edited object");
    if (!edited) {
      problem = edited.error().message;
    } else if (edited->size() != 1 || (*edited)[0].object.name() != target.name ||
               (*edited)[0].kind() != live->root().text_at("kind")) {
      problem = "the kind and name of the object cannot be changed";
    } else {
      Result<client::Object> written =
          api.update((*edited)[0].object.root(), {.field_manager = flags.field_manager, .field_validation = "Strict"})
              .wait();
      if (written) {
        print(display_name(target.resource, target.name), " edited\n");
        return 0;
      }
      problem = error_text(*session, written.error());
      print_error(problem, "\n");
    }
    std::string reason;
    for (const std::string_view line : split(problem, '\n')) reason += "# " + std::string(line) + "\n";
    shown = std::string(kHint) + reason + "#\n" + text + "\n";
  }
}

}  // namespace

Command add_edit(CLI::App& app) {
  auto flags = std::make_shared<EditFlags>();
  CLI::App* c = app.add_subcommand("edit", "Edit an object in your editor");
  c->add_option("KIND/NAME", flags->arguments, "The object: KIND NAME or KIND/NAME")->required();
  c->add_option("--field-manager", flags->field_manager, "Field manager for the changes")->capture_default_str();
  add_connection_flags(*c, flags->connection);
  c->footer("\nThe editor is KUBE_EDITOR, EDITOR or vi.\n\nExamples:\n  KUBE_EDITOR=nano holdfast edit deployment web");
  return [flags] { return edit(*flags); };
}

}  // namespace holdfast::cli
