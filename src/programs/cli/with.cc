// `holdfast with`: runs a command with a temporary server.
//
//   with ---- fork ----> child: waits for the pipe ............. exec COMMAND -------> exits
//     |                                               ^                                   |
//     +-- server on a temporary folder, manifests ----+-- signals forwarded ... SIGCHLD --+--> stop, remove, exit
//     status
//
// The child is forked before any thread is started, and is terminated when this process ends.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "base/log.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/manifests.h"
#include "cli/session.h"
#include "server/server.h"

namespace holdfast::cli {
namespace {

namespace fs = std::filesystem;

// Exit statuses of env, timeout and similar programs for failures of their own.
constexpr int kSetupFailed = 125, kCannotRun = 126, kNoSuchCommand = 127;

struct WithFlags {
  std::vector<std::string> crds, manifests, command;
  std::string controllers = "*";
  bool keep = false;
};

int setup_failed(const std::string& message) {
  fail(message.c_str());
  return kSetupFailed;
}

sigset_t handled_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH})
    sigaddset(&signals, signal);
  return signals;
}

// Runs in the child: executes the command once a byte can be read from `go`, or exits if `go` is closed.
[[noreturn]] void exec_command(const std::vector<std::string>& command, const std::string& folder, int go,
                               const sigset_t& mask, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kSetupFailed);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  char byte = 0;
  ssize_t got = 0;
  do {
    got = read(go, &byte, 1);
  } while (got < 0 && errno == EINTR);
  if (got != 1) _exit(kSetupFailed);
  setenv("KUBECONFIG", (folder + "/kubeconfig").c_str(), 1);
  setenv("USE_EXISTING_CLUSTER", "true", 1);
  setenv("KUBEBUILDER_ASSETS", (folder + "/assets").c_str(), 1);
  setenv("KUBE_API_TEST_DIR", (folder + "/assets").c_str(), 1);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int error = errno;
  fprintf(stderr, "holdfast: %s: %s\n", arguments[0], strerror(error));
  _exit(error == ENOENT ? kNoSuchCommand : kCannotRun);
}

// Applies CRDs first, each served before the next manifest; then the other manifests in file order.
Result<Unit> apply_manifests(const std::string& kubeconfig, const WithFlags& flags) {
  if (flags.crds.empty() && flags.manifests.empty()) return Unit{};
  ConnectionFlags connection;
  connection.kubeconfig = kubeconfig;
  Result<Session> session = open_session(connection, ManagedFields::Dropped);
  if (!session) return session.take_error();
  for (const std::vector<std::string>* paths : {&flags.crds, &flags.manifests}) {
    if (paths->empty()) continue;
    Result<std::vector<Manifest>> manifests = read_manifests({.files = *paths, .recursive = true});
    if (!manifests) return manifests.take_error();
    for (const Manifest& manifest : *manifests) {
      if (paths == &flags.crds && manifest.kind() != "CustomResourceDefinition") continue;
      Result<client::Api<>> api = api_of(*session, manifest);
      if (!api) return api.take_error();
      const Value* options = manifest.object.root().get("metadata", "options", "fieldManager");
      client::ApplyOptions apply{.force = true, .field_manager = options == nullptr ? "holdfast-with" : ""};
      Result<client::Object> applied = api->apply(manifest.object.root(), apply).wait();
      if (!applied) return bad_request(manifest.where() + ": " + error_text(*session, applied.error()));
    }
  }
  return Unit{};
}

// Processes that the command left behind; reparented to us when it ended (PR_SET_CHILD_SUBREAPER).
std::vector<pid_t> orphans() {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const fs::directory_entry& thread : fs::directory_iterator("/proc/self/task", ignored)) {
    std::ifstream children(thread.path() / "children");
    for (pid_t child = 0; children >> child;) found.push_back(child);
  }
  return found;
}

void kill_orphans() {
  for (const int signal : {SIGTERM, SIGKILL}) {
    for (int tries = 0; tries < 100; ++tries) {
      while (waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      const std::vector<pid_t> left = orphans();
      if (left.empty()) return;
      if (tries == 0) {
        for (const pid_t process : left) kill(process, signal);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

// Forwards signals until the command has ended; returns its exit status.
int wait_for(pid_t command, const sigset_t& signals) {
  while (true) {
    siginfo_t info{};
    const int signal = sigwaitinfo(&signals, &info);
    if (signal < 0) continue;
    if (signal != SIGCHLD) {
      // Signals from the terminal already reach the command.
      if (info.si_code != SI_KERNEL) kill(command, signal);
      continue;
    }
    int status = 0;
    pid_t ended = 0;
    while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
      if (ended != command) continue;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
  }
}

// Redirects the server's log to a file; our own messages still go to the original standard error.
class LogFile {
 public:
  explicit LogFile(const std::string& path) : saved_(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0) return;
    dup2(file, STDERR_FILENO);
    close(file);
  }
  ~LogFile() { restore(); }
  void restore() {
    if (saved_ < 0) return;
    dup2(saved_, STDERR_FILENO);
    close(saved_);
    saved_ = -1;
  }

 private:
  int saved_;
};

int run_with_server(const WithFlags& flags, const std::string& folder) {
  const sigset_t signals = handled_signals();
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int go[2];
  if (pipe2(go, O_CLOEXEC) != 0) return setup_failed(std::string("pipe: ") + strerror(errno));
  const pid_t self = getpid();
  fflush(nullptr);
  const pid_t command = fork();
  if (command < 0) return setup_failed(std::string("fork: ") + strerror(errno));
  if (command == 0) {
    close(go[1]);
    exec_command(flags.command, folder, go[0], before, self);
  }
  close(go[0]);

  LogFile log_file(folder + "/server.log");
  log::configure(0, log::Format::Text);
  const auto give_up = [&](const std::string& message) {
    log_file.restore();
    close(go[1]);  // The child exits.
    waitpid(command, nullptr, 0);
    return setup_failed(message);
  };
  server::Options options;
  options.data_dir = folder;
  options.listen = "127.0.0.1:0";
  options.unsafe_no_fsync = true;  // The data is temporary.
  options.shutdown_grace = std::chrono::milliseconds(500);
  options.controllers.clear();
  for (const std::string_view name : split(flags.controllers, ',')) options.controllers.emplace_back(name);
  Result<std::unique_ptr<server::Server>> server = server::Server::start(std::move(options));
  if (!server) return give_up(server.error().message);
  Result<Unit> made = make_assets(folder + "/assets");
  if (!made) return give_up(made.error().message);
  Result<Unit> filled = apply_manifests((*server)->kubeconfig_path(), flags);
  if (!filled) return give_up(filled.error().message);
  if (write(go[1], "x", 1) != 1) return give_up(std::string("pipe: ") + strerror(errno));
  close(go[1]);

  const int status = wait_for(command, signals);
  kill_orphans();
  (*server)->stop();
  return status;
}

int with(const WithFlags& flags) {
  if (flags.command.empty()) return setup_failed("with: no command; usage: holdfast with [OPTIONS] -- COMMAND...");
  std::error_code ignored;
  std::string folder = (fs::temp_directory_path(ignored) / "holdfast-with-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return setup_failed(folder + ": " + strerror(errno));
  const int status = run_with_server(flags, folder);
  if (!flags.keep) {
    fs::remove_all(folder, ignored);
  } else {
    fprintf(stderr, "holdfast: kept %s; to serve it again: holdfast serve --data-dir %s\n", folder.c_str(),
            folder.c_str());
  }
  return status;
}

}  // namespace

Command add_with(CLI::App& app) {
  auto flags = std::make_shared<WithFlags>();
  CLI::App* c = app.add_subcommand("with", "Run a command with a temporary server");
  c->add_option("--crds", flags->crds,
                "File or directory of CustomResourceDefinitions to install first; may be repeated")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
  c->add_option("--manifests", flags->manifests,
                "File or directory of objects to apply before the command starts; may be repeated")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
  c->add_option("--controllers", flags->controllers, "Embedded controllers to run, comma separated; * means all")
      ->capture_default_str();
  c->add_flag("--keep", flags->keep, "Keep the directory with the server's data and log, and print where it is");
  c->add_option("COMMAND", flags->command, "Command and its arguments")->required();
  c->prefix_command(false);
  c->footer(
      "\nThe command finds the server through KUBECONFIG. USE_EXISTING_CLUSTER=true, KUBEBUILDER_ASSETS and\n"
      "KUBE_API_TEST_DIR are set for suites that use envtest or kube-api-test. Signals are forwarded to the command, "
      "and\n"
      "its exit status is returned: 128 plus the signal number if a signal ended it, 125 if the server failed, 126 or\n"
      "127 if the command cannot be run. When the command has ended, processes that it left behind are killed, and "
      "the\n"
      "server and its directory are removed.\n\n"
      "Examples:\n"
      "  holdfast with -- kubectl get namespaces\n"
      "  holdfast with --crds config/crd -- go test ./...\n"
      "  holdfast with --manifests testdata -- pytest -q");
  return [flags] { return with(*flags); };
}

}  // namespace holdfast::cli
