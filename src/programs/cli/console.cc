// `holdfast console`: the web page for field ownership, and the tools it uses.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "cli/console.h"

#include "cli/session_on.h"
#include "cli/terminal.h"
#include "console/console.h"
#include "server/server.h"

namespace holdfast::cli {
namespace {

struct ConsoleFlags {
  ConnectionFlags connection;
  uint16_t port = 0;
  bool open = false;
};

// A file that only this user can read, which leads a browser to the address: arguments of processes, such as that of
// xdg-open, can be read by every user of the machine. Removed at the end.
class Bridge {
 public:
  static Result<std::unique_ptr<Bridge>> make(const std::string& url) {
    const char* const folder = getenv("XDG_RUNTIME_DIR");
    std::string path =
        std::string(folder == nullptr || *folder == 0 ? "/tmp" : folder) + "/holdfast-console-XXXXXX.html";
    const int file = mkostemps(path.data(), 5, O_CLOEXEC);
    if (file < 0) return internal_error("cannot create " + path + ": " + strerror(errno));
    const std::string text =
        "<!doctype html><meta charset=utf-8><title>Holdfast console</title><meta http-equiv=refresh content=\"0;url=" +
        url + "\"><a href=\"" + url + "\">Open the console</a>\n";
    const ssize_t written = write(file, text.data(), text.size());
    close(file);
    auto bridge = std::unique_ptr<Bridge>(new Bridge(std::move(path)));
    if (written != static_cast<ssize_t>(text.size())) return internal_error("cannot write " + bridge->path());
    return bridge;
  }
  ~Bridge() { unlink(path_.c_str()); }
  Bridge(const Bridge&) = delete;
  Bridge& operator=(const Bridge&) = delete;
  const std::string& path() const { return path_; }

 private:
  explicit Bridge(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Opens a file with the desktop's browser: $BROWSER if set, else xdg-open. The error names the program.
Result<Unit> open_in_browser(const std::string& path) {
  const char* const chosen = getenv("BROWSER");
  const std::string program = chosen == nullptr || *chosen == 0 ? "xdg-open" : chosen;
  std::string name = program, argument = path;
  char* arguments[] = {name.data(), argument.data(), nullptr};
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t process = 0;
  const int failed = posix_spawnp(&process, program.c_str(), nullptr, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) return bad_request("cannot run " + program + ": " + strerror(failed));
  return Unit{};
}

int run_console(const ConsoleFlags& flags) {
  // Blocked in all threads started from here on; received by sigwait below.
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  (void)std::signal(SIGCHLD, SIG_IGN);  // The browser's end interests nobody.

  net::Loops loops(1);
  Result<Session> session = open_session_on(loops.at(0), flags.connection);
  if (!session) return fail(session.error().message.c_str());
  console::Options options;
  options.port = flags.port;
  options.server_url = session->url;
  options.space = session->space;
  options.version = std::string(server::holdfast_version());
  options.tools = console_tools();
  console::Console console(loops, session->client, std::move(options));
  Result<Unit> started = console.start();
  if (!started) return fail(started.error().message.c_str());
  print("Console for ", session->url, ", until this command is stopped:\n\n  ", console.url(),
        "\n\nThe address is valid once: anybody who opens it acts with your credentials.\n");
  fflush(stdout);
  std::unique_ptr<Bridge> bridge;
  if (flags.open) {
    Result<std::unique_ptr<Bridge>> made = Bridge::make(console.url());
    const Result<Unit> opened = made ? open_in_browser((*made)->path()) : Result<Unit>(made.error());
    if (made) bridge = std::move(*made);
    if (!opened) print_error("Warning: --open: ", opened.error().message, "\n");
  }
  int signal = 0;
  sigwait(&signals, &signal);
  // Stopping waits for requests that the API server has not answered yet. A second signal does not.
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  console.stop();
  return 0;
}

}  // namespace

Command add_console(CLI::App& app) {
  auto flags = std::make_shared<ConsoleFlags>();
  CLI::App* c = app.add_subcommand("console", "Serve a web page that shows who owns which fields");
  c->add_option("--port", flags->port, "Port of 127.0.0.1 to listen on; 0 picks one")->capture_default_str();
  c->add_flag("--open", flags->open, "Open the page in the browser (BROWSER, else xdg-open)");
  add_connection_flags(*c, flags->connection);
  c->footer(
      "\nThe page works with any Kubernetes server, with the credentials of the kubeconfig, and loads nothing from "
      "elsewhere. It reads and applies; see docs/console.md.\n\n"
      "Examples:\n  holdfast console\n  holdfast console --open --context staging");
  return [flags] { return run_console(*flags); };
}

}  // namespace holdfast::cli
