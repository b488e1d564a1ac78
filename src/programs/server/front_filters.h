// What happens to a request before anybody looks at who sent it: CORS, spreading of HTTP/2 clients over servers, and
// turning requests away while the server shuts down. As kube-apiserver's filters of the same flags.
//
// Threading: the methods other than make() may be called on any thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "net/net.h"

namespace holdfast::server {

class FrontFilters {
 public:
  struct Options {
    std::vector<std::string> cors_allowed_origins;  // Regular expressions, anchored at both ends.
    double goaway_chance = 0;                       // Of a request over HTTP/2 to be the last of its connection.
  };
  // The errors are kube-apiserver's.
  static Result<std::unique_ptr<FrontFilters>> make(const Options& options);
  ~FrontFilters();

  // Adds headers. Returns whether the request was answered.
  bool apply(const net::Request& request, net::Response& response) const;

  // From now on every request gets 429 with Retry-After, except health checks and metrics.
  void turn_away() { turning_away_ = true; }

 private:
  struct Patterns;
  FrontFilters(std::unique_ptr<const Patterns> origins, double goaway_chance);

  const std::unique_ptr<const Patterns> origins_;
  const double goaway_chance_;
  std::atomic<bool> turning_away_{false};
};

}  // namespace holdfast::server
