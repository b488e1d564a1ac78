// What is shown to a server: a client certificate, an Authorization header, whom to impersonate.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "client/config.h"
#include "net/net.h"

namespace holdfast::client {

struct Credentials {
  std::string authorization;  // The header; empty: none.
  std::optional<net::Identity> identity;
  std::optional<std::chrono::steady_clock::time_point> stale_at;  // When to read them again; nothing: never.
};

// As the config says, without its exec plugin. Reads the files that it names, on this thread.
Result<Credentials> read_credentials(const Config& config);

// Adds the headers of the credentials, and those of impersonation.
void add_credentials(const Credentials& credentials, const Impersonation& impersonate,
                     std::vector<std::pair<std::string, std::string>>& headers);

}  // namespace holdfast::client
