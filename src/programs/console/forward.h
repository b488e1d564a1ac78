// Which requests to the API server the page may make: what its views need, and nothing that runs commands, deletes, or
// reaches through the API server to other servers.
//
//   GET     discovery, versions, OpenAPI; objects and lists of them
//   PATCH   Server-Side Apply
//   POST    questions about the user himself (self subject reviews)
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace holdfast::console {

struct Rejected {
  int status;
  std::string why;
};

// `path` begins with a slash and is still percent-encoded; without the query. nullopt if the request may be made.
std::optional<Rejected> check_call(std::string_view method, std::string_view path, std::string_view content_type);

// An error of the API server as a Status: what the page shows of it.
std::string status_of(const Error& error, int code);

}  // namespace holdfast::console
