// For programs that pass requests of others on to the server of a client.
#pragma once

#include <string>

#include "base/error.h"
#include "base/task.h"
#include "client/client.h"
#include "net/net.h"

namespace holdfast::client {

struct PassedOn {
  std::string method = "GET";
  std::string target;  // Path and query; the path of the config's server is put before it.
  std::string accept, content_type, body;
};

// Adds the credentials of the config, and retries as the client's calls do; other requests than GET only if they have
// not reached the server. An error response is returned as its Error. The stream is used on client.loop(), where the
// call resumes; destroy it before the client.
Task<Result<net::ClientStream>> pass_on(const Client& client, PassedOn request);

}  // namespace holdfast::client
