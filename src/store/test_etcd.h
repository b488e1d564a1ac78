// A real etcd for tests, started on free ports in a temporary folder. HOLDFAST_ETCD names another one than the
// installed one.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "store/test_support.h"

namespace holdfast::store::testing {

int free_port();

class EtcdProcess {
 public:
  struct Member {
    std::string name = "one";
    std::string cluster = {};  // "one=http://...,two=..."; empty: alone.
    int client_port = 0;       // 0: any.
    int peer_port = 0;
    std::vector<std::string> more_flags = {};  // TLS.
    std::string scheme = "http";
  };

  static bool installed();

  EtcdProcess() : EtcdProcess(Member()) {}
  explicit EtcdProcess(Member member);
  ~EtcdProcess();
  EtcdProcess(const EtcdProcess&) = delete;
  EtcdProcess& operator=(const EtcdProcess&) = delete;

  std::string url() const;
  void kill();   // As a crash does.
  void start();  // Again, on the same data and ports.

 private:
  Member member_;
  TemporaryFolder folder_;
  pid_t process_ = 0;
};

// Opens, and aborts the test program if that fails.
std::unique_ptr<Store> open_etcd_at(std::vector<std::string> endpoints);
EtcdOptions etcd_options(std::vector<std::string> endpoints);

}  // namespace holdfast::store::testing
