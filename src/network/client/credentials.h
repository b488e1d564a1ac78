// Credentials for a server: client certificate, Authorization header, impersonation.
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
  std::string authorization;  // Header value; empty if there is none.
  std::optional<net::Identity> identity;
  std::optional<std::chrono::steady_clock::time_point> stale_at;  // When to read them again; nullopt means never.
};

// Reads the credentials of a config, except those of an exec plugin. Blocks while reading files.
Result<Credentials> read_credentials(const Config& config);

// Adds the headers for the credentials and for impersonation.
void add_credentials(const Credentials& credentials, const Impersonation& impersonate,
                     std::vector<std::pair<std::string, std::string>>& headers);

}  // namespace holdfast::client
