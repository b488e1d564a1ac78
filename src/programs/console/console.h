// The console: a web page, served on this machine to the user who started it, that shows who owns the fields of the
// objects of any Kubernetes server.
//
//   browser --http--> 127.0.0.1:PORT/PREFIX/           page/*: no data
//                                          session     POST of the token in the address: sets the cookie
//                                          about       the server's address, the namespace
//                                          tools/NAME  POST: functions of this program, such as reading a manifest
//                                          api/...     to the API server, with the credentials of the client
//
// guard.h says which requests are served, forward.h which of them reach the API server. Neither requests nor responses
// are logged.
//
// Threading: everything runs on the loop of the client. start(), stop() and the destructor are called on other threads.
// Lifetime: loops and client must outlive the console.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "client/client.h"
#include "net/net.h"

namespace holdfast::console {

// A pure function from the body of a request to that of its response, which is JSON.
using Tool = std::function<Result<std::string>(std::string_view body)>;

struct Options {
  uint16_t port = 0;       // 0 picks one.
  std::string server_url;  // Shown by the page, as the following.
  std::string space;       // The namespace to begin with.
  std::string version;
  std::map<std::string, Tool, std::less<>> tools;
};

class Console {
 public:
  // `loops` has one loop, that of the client.
  Console(net::Loops& loops, const client::Client& client, Options options);
  ~Console();  // stop()
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // Errors name the address.
  Result<Unit> start();
  // Ends all responses.
  void stop();

  uint16_t port() const;
  // The address to open, with a token that is valid once.
  std::string url() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::console
