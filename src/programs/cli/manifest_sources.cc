#include "cli/manifest_sources.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "base/task_group.h"
#include "client/client.h"
#include "net/net.h"

namespace holdfast::cli {

namespace {

constexpr int kMaxRedirects = 10;               // As in Go's HTTP client, and so in kubectl.
constexpr size_t kMaxBytes = size_t{64} << 20;  // Larger than any real manifest.
constexpr net::Millis kFetchTimeout{60'000};

// Resolves a Location header relative to a URL.
std::string redirected(const std::string& url, std::string_view location) {
  if (is_url(std::string(location))) return std::string(location);
  const size_t host = url.find("//") + 2;
  if (location.starts_with("//")) return url.substr(0, host - 2) + std::string(location);
  const size_t path = std::min(url.find_first_of("/?#", host), url.size());
  if (location.starts_with('/')) return url.substr(0, path) + std::string(location);
  const size_t folder = url.substr(0, url.find_first_of("?#")).rfind('/');
  return (folder < path ? url.substr(0, path) : url.substr(0, folder)) + "/" + std::string(location);
}

// The output of a program; nullopt if it is not installed.
Result<std::optional<std::string>> output_of(std::vector<std::string> command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return bad_request(std::string("pipe: ") + strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  pid_t process = 0;
  const int failed = posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  if (failed == 0) {
    char buffer[65536];
    for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) != 0;) {
      if (got > 0) text.append(buffer, static_cast<size_t>(got));
      if (got < 0 && errno != EINTR) break;
    }
  }
  close(ends[0]);
  if (failed == ENOENT) return std::optional<std::string>();
  if (failed != 0) return bad_request(command[0] + ": " + strerror(failed));
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return bad_request(command[0] + " failed");
  return std::optional<std::string>(std::move(text));
}

}  // namespace

bool is_url(const std::string& path) { return path.starts_with("http://") || path.starts_with("https://"); }

Result<std::string> fetch_text(const std::string& url) {
  net::Loops loops(1);
  std::string now = url;
  for (int i = 0; i <= kMaxRedirects; ++i) {
    const Result<HttpUrl> place = parse_http_url(now);
    if (!place) return bad_request(now + ": " + place.error().message);
    if (!place->user.empty()) return bad_request("-f: URLs with a user are not supported");
    net::ClientOptions options;
    Result<Unit> routed = client::route_to(*place, "", options);
    if (!routed) return bad_request(now + ": " + routed.error().message);
    net::Client client(loops.at(0), options);
    net::ClientRequest request{.target = (place->path.empty() ? "/" : place->path) + place->query,
                               .headers = {{"user-agent", "holdfast"}},
                               .timeout = kFetchTimeout};
    net::CallResult<net::ClientResponse> answer = block_on(loops.at(0), client.fetch(std::move(request), kMaxBytes));
    if (!answer) return bad_request(now + ": " + answer.error().message);
    if (answer->status == 200) return std::move(answer->body);
    const std::string_view location = answer->header("location");
    if (answer->status < 300 || answer->status >= 400 || location.empty()) {
      return bad_request(now + ": the server answered with " + std::to_string(answer->status));
    }
    now = redirected(now, location);
    if (!is_url(now)) return bad_request(url + " leads to " + now);
  }
  return bad_request(url + ": more than " + std::to_string(kMaxRedirects) + " redirects");
}

Result<std::string> build_kustomization(const std::string& folder) {
  for (const std::vector<std::string>& program :
       {std::vector<std::string>{"kustomize", "build"}, std::vector<std::string>{"kubectl", "kustomize"}}) {
    std::vector<std::string> command = program;
    command.push_back(folder);
    Result<std::optional<std::string>> built = output_of(std::move(command));
    if (!built) return bad_request("-k " + folder + ": " + built.error().message);
    if (*built) return std::move(**built);
  }
  return bad_request("-k needs kustomize or kubectl on the PATH");
}

}  // namespace holdfast::cli
