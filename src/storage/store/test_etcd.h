// A real etcd for tests, started on free ports in a temporary directory. HOLDFAST_ETCD overrides the installed binary.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/test_folder.h"
#include "store/test_support.h"

namespace holdfast::store::testing {

int free_port();

class EtcdProcess {
 public:
  struct Member {
    std::string name = "one";
    std::string cluster = {};  // "one=http://...,two=..."; empty for a single member.
    int client_port = 0;       // 0 means any.
    int peer_port = 0;
    std::vector<std::string> more_flags = {};  // For TLS.
    std::string scheme = "http";
  };

  static bool installed();

  EtcdProcess() : EtcdProcess(Member()) {}
  explicit EtcdProcess(Member member);
  ~EtcdProcess();
  EtcdProcess(const EtcdProcess&) = delete;
  EtcdProcess& operator=(const EtcdProcess&) = delete;

  std::string url() const;
  void kill();   // SIGKILL, like a crash.
  void start();  // Restarts on the same data and ports.

 private:
  Member member_;
  TestFolder folder_;
  pid_t process_ = 0;
};

// Aborts the test program if opening fails.
std::unique_ptr<Store> open_etcd_at(std::vector<std::string> endpoints);
EtcdOptions etcd_options(std::vector<std::string> endpoints);

}  // namespace holdfast::store::testing
