#include "server/front_filters.h"

#include <algorithm>
#include <random>

#include "base/go_regexp.h"

namespace holdfast::server {
namespace {

// As validateCorsAllowedOriginList of apiserver/pkg/server/options: an expression that is not anchored would match
// origins that only contain the intended one.
Result<Unit> check_origin(const std::string& pattern) {
  const bool begins = pattern.find('^') != std::string::npos || pattern.find("//") != std::string::npos;
  const bool ends = pattern.find_first_of("$:") != std::string::npos;
  if (!begins || !ends) {
    return bad_request("--cors-allowed-origins has an invalid value \"" + pattern +
                       "\": it must match the whole host of an origin, from '^' or '//' to '$' or, before a port, "
                       "':'");
  }
  if (const std::string wrong = go_regexp_error(pattern); !wrong.empty()) {
    return bad_request("--cors-allowed-origins has an invalid regular expression: " + wrong);
  }
  return Unit{};
}

bool is_exempt_from_shutdown(std::string_view path) {
  constexpr std::string_view kPrefixes[] = {"/healthz", "/livez", "/readyz", "/metrics"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [path](std::string_view prefix) { return path.starts_with(prefix); });
}

bool happens(double chance) {
  thread_local std::minstd_rand random(std::random_device{}());
  return std::uniform_real_distribution<double>(0, 1)(random) < chance;
}

}  // namespace

struct FrontFilters::Patterns {
  std::vector<std::unique_ptr<const re2::RE2>> all;

  bool match(std::string_view origin) const {
    const re2::StringPiece text(origin.data(), origin.size());
    return std::any_of(all.begin(), all.end(), [&](const auto& one) { return re2::RE2::PartialMatch(text, *one); });
  }
};

FrontFilters::FrontFilters(std::unique_ptr<const Patterns> origins, double goaway_chance)
    : origins_(std::move(origins)), goaway_chance_(goaway_chance) {}
FrontFilters::~FrontFilters() = default;

Result<std::unique_ptr<FrontFilters>> FrontFilters::make(const Options& options) {
  if (options.goaway_chance < 0 || options.goaway_chance > 0.02) {
    return bad_request("--goaway-chance can not be less than 0 or greater than 0.02");
  }
  auto origins = std::make_unique<Patterns>();
  for (const std::string& pattern : options.cors_allowed_origins) {
    if (Result<Unit> valid = check_origin(pattern); !valid) return valid.take_error();
    origins->all.push_back(std::make_unique<const re2::RE2>(pattern, re2::RE2::Quiet));
  }
  return std::unique_ptr<FrontFilters>(new FrontFilters(std::move(origins), options.goaway_chance));
}

bool FrontFilters::apply(const net::Request& request, net::Response& response) const {
  const bool http2 = request.protocol == net::Protocol::Http2;
  if (goaway_chance_ > 0 && http2 && happens(goaway_chance_)) response.close_connection_after();
  if (turning_away_ && !is_exempt_from_shutdown(request.path)) {
    response.close_connection_after();
    response.add_header("retry-after", "5");
    response.add_header("content-type", "text/plain; charset=utf-8");
    response.add_header("x-content-type-options", "nosniff");
    (void)response.send(429, net::Body(std::string("The apiserver is shutting down, please try again later.\n")));
    return true;
  }
  if (origins_->all.empty()) return false;
  const std::string_view origin = request.headers.get("origin");
  if (origin.empty() || !origins_->match(origin)) return false;
  response.add_header("access-control-allow-origin", origin);
  response.add_header("access-control-allow-methods", "POST, GET, OPTIONS, PUT, DELETE, PATCH");
  response.add_header("access-control-allow-headers",
                      "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, "
                      "If-Modified-Since");
  response.add_header("access-control-expose-headers", "Date");
  response.add_header("access-control-allow-credentials", "true");
  if (request.method != "OPTIONS") return false;
  (void)response.send(204);
  return true;
}

}  // namespace holdfast::server
