// A signer for tests: gRPC by hand over a Unix socket, so that it can also do what no gRPC server does.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::signer::testing {

struct Reply {
  std::string message;
  int status = 0;           // grpc-status
  std::string explanation;  // grpc-message
  bool never = false;       // The call is not answered.
};

class FakeSigner {
 public:
  using Answer = std::function<Reply(const std::string& method, const std::string& message)>;

  // Answers each call on a thread of its connection. "@name" is an abstract socket.
  FakeSigner(const std::string& path, Answer answer);
  ~FakeSigner();  // Closes all connections.
  FakeSigner(const FakeSigner&) = delete;
  FakeSigner& operator=(const FakeSigner&) = delete;

  int count(std::string_view method) const;  // Of calls so far.

 private:
  struct Session;
  void serve(int peer);
  Reply reply_to(const std::string& method, const std::string& message);

  const Answer answer_;
  int listener_;
  mutable std::mutex mutex_;  // Guards what follows.
  std::vector<std::string> calls_;
  std::vector<int> peers_;
  std::vector<std::thread> threads_;
  bool ending_ = false;
  std::thread accepting_;
};

// A socket that says these bytes to everybody and nothing else.
class Babbler {
 public:
  Babbler(const std::string& path, std::string bytes);
  ~Babbler();
  Babbler(const Babbler&) = delete;
  Babbler& operator=(const Babbler&) = delete;

 private:
  int listener_;
  std::thread accepting_;
};

// Fields of messages.
std::string text_field(uint64_t number, std::string_view text);
std::string number_field(uint64_t number, uint64_t value);

}  // namespace holdfast::signer::testing
