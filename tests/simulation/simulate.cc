// simulate: runs simulations of a whole server (simulation.h), each from its own seed, and checks what happened.
//
//   simulate [--runs N] [--seed N] [--seconds N] [--jobs N] [--verbose]
//
// Stops at the first problem: prints it, its seed, and how to run that again. --seconds: starts no further run after
// that time. --verbose: also prints everything that happened, for a single run.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <thread>

#include "base/strings.h"
#include "simulation/simulation.h"

namespace holdfast::simulation {
namespace {

struct Options {
  uint64_t runs = 1000, seed = 1, seconds = 0, jobs = 1;
  bool verbose = false;
};

// A run takes a few hundredths of a second. One in which simulated time does not pass any more would never end.
constexpr unsigned kLongestRunSeconds = 120;

// Counts of all processes, in memory that they share.
struct Totals {
  std::atomic<uint64_t> runs{0}, requests{0}, versions{0}, events{0}, unknown{0}, failures{0}, simulated_seconds{0};
  std::atomic<bool> stop{false};
};

// What the server logs in a run is kept, and shown only if that run finds a problem. For the signal handler, too.
int shown_output = STDERR_FILENO, log_of_run = -1;
std::atomic<uint64_t> running_seed{0};

void write_all(std::string_view text) { (void)!write(shown_output, text.data(), text.size()); }

void keep_logs() {
  shown_output = dup(STDERR_FILENO);
  log_of_run = memfd_create("log", 0);
  if (shown_output < 0 || log_of_run < 0 || dup2(log_of_run, STDERR_FILENO) < 0) {
    std::perror("simulate: cannot redirect the log");
    std::exit(1);
  }
}
void begin_log() { (void)!(ftruncate(log_of_run, 0) == 0 && lseek(log_of_run, 0, SEEK_SET) == 0); }
void show_log() {
  char text[4096];
  off_t at = 0;
  for (ssize_t bytes; (bytes = pread(log_of_run, text, sizeof text, at)) > 0; at += bytes) {
    write_all({text, static_cast<size_t>(bytes)});
  }
}

extern "C" void name_seed(int signal) {
  show_log();
  char text[64];
  const int bytes = std::snprintf(text, sizeof text, "seed %llu: the process ended with signal %d\n",
                                  static_cast<unsigned long long>(running_seed.load()), signal);
  write_all({text, static_cast<size_t>(bytes)});
  std::signal(signal, SIG_DFL);
  raise(signal);
}

bool run_one(uint64_t seed, const Options& options, Totals& totals) {
  running_seed = seed;
  begin_log();
  alarm(kLongestRunSeconds);
  const Report report = run({.seed = seed});
  ++totals.runs;
  totals.requests += report.requests;
  totals.versions += report.history.commits.size();
  totals.failures += report.failures;
  totals.simulated_seconds += static_cast<uint64_t>(report.simulated_seconds);
  for (const Op& op : report.history.ops) {
    totals.events += op.events.size();
    if (op.outcome == Op::Outcome::Unknown) ++totals.unknown;
  }
  if (options.verbose) {
    std::fputs(transcript(report.history).c_str(), stdout);
    std::fflush(stdout);
    show_log();
  }
  const std::vector<std::string> found = problems(report.history);
  if (found.empty()) return true;
  std::string text = "seed " + std::to_string(seed) + ": " + std::to_string(found.size()) + " problems\n";
  for (size_t i = 0; i < found.size() && i < 5; ++i) text += found[i] + "\n";
  text += "Run it again, with everything that happened: ./dev simulate 1 " + std::to_string(seed) + " --verbose\n";
  if (!options.verbose) show_log();
  write_all(text);
  return false;
}

// Every `jobs`-th seed, in this process.
int run_share(uint64_t first, const Options& options, Totals& totals) {
  keep_logs();
  for (const int signal : {SIGABRT, SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, name_seed);
  const auto begin = std::chrono::steady_clock::now();
  for (uint64_t i = first; i < options.runs && !totals.stop; i += options.jobs) {
    if (options.seconds > 0 && std::chrono::steady_clock::now() - begin > std::chrono::seconds(options.seconds)) break;
    if (!run_one(options.seed + i, options, totals)) {
      totals.stop = true;
      return 1;
    }
  }
  return 0;
}

int run_all(const Options& options) {
  void* shared = mmap(nullptr, sizeof(Totals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    std::perror("simulate: mmap");
    return 1;
  }
  Totals& totals = *new (shared) Totals;
  const auto begin = std::chrono::steady_clock::now();
  int code = 0;
  // Processes, because what one simulation leaves in memory must not change another.
  std::vector<pid_t> children;
  for (uint64_t job = 1; job < options.jobs; ++job) {
    const pid_t child = fork();
    if (child == 0) std::_Exit(run_share(job, options, totals));
    children.push_back(child);
  }
  code = run_share(0, options, totals);
  for (const pid_t child : children) {
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) code = 1;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto count = [](const std::atomic<uint64_t>& value) { return static_cast<unsigned long long>(value.load()); };
  std::printf(
      "%llu runs in %.1f s (%.0f a minute): %llu requests (%llu without a response to rely on), %llu stored "
      "versions, %llu events, %llu injected failures, %llu simulated seconds\n",
      count(totals.runs), seconds, static_cast<double>(totals.runs) * 60 / seconds, count(totals.requests),
      count(totals.unknown), count(totals.versions), count(totals.events), count(totals.failures),
      count(totals.simulated_seconds));
  return code;
}

int main_with(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    uint64_t* value = name == "--runs"      ? &options.runs
                      : name == "--seed"    ? &options.seed
                      : name == "--seconds" ? &options.seconds
                      : name == "--jobs"    ? &options.jobs
                                            : nullptr;
    if (name == "--verbose") {
      options.verbose = true;
      continue;
    }
    const std::optional<uint64_t> number =
        value != nullptr && i + 1 < argc ? parse_number<uint64_t>(argv[i + 1]) : std::nullopt;
    if (!number) {
      std::fprintf(stderr, "usage: simulate [--runs N] [--seed N] [--seconds N] [--jobs N] [--verbose]\n");
      return 2;
    }
    *value = *number;
    ++i;
  }
  if (options.jobs == 0) options.jobs = 1;
  return run_all(options);
}

}  // namespace
}  // namespace holdfast::simulation

int main(int argc, char** argv) { return holdfast::simulation::main_with(argc, argv); }
