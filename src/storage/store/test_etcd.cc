#include "store/test_etcd.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <random>

namespace holdfast::store::testing {
namespace {

std::string etcd_program() {
  const char* named = std::getenv("HOLDFAST_ETCD");
  return named ? named : "/usr/bin/etcd";
}

}  // namespace

int free_port() {
  // Below the ephemeral ports: while an etcd is down, an outgoing connection (even our own to it, connected to itself)
  // would otherwise take its port permanently.
  constexpr int kFirst = 12000, kLast = 32000;
  thread_local std::minstd_rand random(std::random_device{}());
  int port = 0;
  for (bool bound = false; !bound;) {
    port = std::uniform_int_distribution<int>(kFirst, kLast)(random);
    int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    bound = ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    ::close(socket);
  }
  return port;
}

bool EtcdProcess::installed() { return ::access(etcd_program().c_str(), X_OK) == 0; }

EtcdProcess::EtcdProcess(Member member) : member_(std::move(member)) {
  if (member_.client_port == 0) member_.client_port = free_port();
  if (member_.peer_port == 0) member_.peer_port = free_port();
  start();
}

EtcdProcess::~EtcdProcess() { kill(); }

std::string EtcdProcess::url() const { return member_.scheme + "://127.0.0.1:" + std::to_string(member_.client_port); }

void EtcdProcess::kill() {
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  process_ = 0;
}

void EtcdProcess::start() {
  std::string peer = "http://127.0.0.1:" + std::to_string(member_.peer_port);
  std::vector<std::string> words = {
      etcd_program(),
      "--name=" + member_.name,
      "--data-dir=" + folder_.path() + "/data",
      "--listen-client-urls=" + url(),
      "--advertise-client-urls=" + url(),
      "--listen-peer-urls=" + peer,
      "--initial-advertise-peer-urls=" + peer,
      "--initial-cluster=" + (member_.cluster.empty() ? member_.name + "=" + peer : member_.cluster)};
  words.insert(words.end(), member_.more_flags.begin(), member_.more_flags.end());
  std::string log = folder_.path() + "/log";
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  process_ = ::fork();
  if (process_ != 0) return;
  // Only calls that are safe between fork and exec.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  int file = ::open(log.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
  ::dup2(file, 1);
  ::dup2(file, 2);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

EtcdOptions etcd_options(std::vector<std::string> endpoints) {
  EtcdOptions options;
  options.endpoints = std::move(endpoints);
  options.module_path = HOLDFAST_ETCD_MODULE;
  options.compaction_interval = {};
  return options;
}

std::unique_ptr<Store> open_etcd_at(std::vector<std::string> endpoints) {
  // A starting etcd rejects connections for a moment.
  StoreResult<std::unique_ptr<Store>> store = StoreError{};
  for (int i = 0; i < 100 && !store; ++i) {
    if (i > 0) ::usleep(100'000);
    store = open_etcd(etcd_options(endpoints));
  }
  if (!store) {
    ADD_FAILURE() << store.error().message;
    std::abort();
  }
  return std::move(*store);
}

}  // namespace holdfast::store::testing
