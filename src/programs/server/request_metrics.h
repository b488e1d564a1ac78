// kube-apiserver's metrics about requests, under the same names, labels and buckets, so that its dashboards, recording
// rules and alerts work: apiserver_request_total, _duration_seconds, _sli_duration_seconds, response sizes, terminated
// and long-running requests; authentication and authorization; the remaining life of client certificates.
//
// What counts as a request is as in kube-apiserver (endpoints/metrics/metrics.go): requests for served resources,
// health checks, aggregated discovery and OpenAPI v3. Requests that fail authentication or authorization are counted by
// authentication_attempts and authorization_attempts_total instead.
//
// Threading: any thread. Lifetime: the registry must outlive it.
#pragma once

#include <chrono>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "auth/auth.h"
#include "base/metrics.h"
#include "net/net.h"
#include "request/request.h"

namespace holdfast::server {

// What a request is counted as.
struct RequestKind {
  std::string_view verb;  // GET, LIST, WATCH, POST, PUT, PATCH, APPLY, DELETE, CONNECT, or "other".
  std::string_view dry_run, group, version, resource, subresource, scope, component;
};

// `served`: whether the request is for a served resource; others are not named, because clients could fill the memory
// with arbitrary names.
RequestKind kind_of_request(const net::Request& request, const request::RequestInfo& info, bool served);

// Whether such requests are counted.
bool is_counted(const net::Request& request, const request::RequestInfo& info, bool served);

class RequestMetrics {
 public:
  explicit RequestMetrics(MetricRegistry& registry);
  ~RequestMetrics();

  // `waited`: for other servers and for a seat, which says nothing about this server's own speed.
  void count(const RequestKind& kind, int status, std::chrono::nanoseconds took, std::chrono::nanoseconds waited,
             uint64_t response_bytes);
  // Refused because too many requests are under way; counted by count() as well.
  void terminated(const RequestKind& kind, int status);

  Gauge& long_running(const RequestKind& kind);
  int64_t in_flight_total() const { return reads_in_flight_.value() + writes_in_flight_.value(); }
  Gauge& in_flight(bool reading) { return reading ? reads_in_flight_ : writes_in_flight_; }

  // `user` is null for a failed attempt.
  void authenticated(const auth::UserInfo* user, std::chrono::nanoseconds took);
  void authorized(const auth::Decision& decision, std::chrono::nanoseconds took);
  void certificate_shown(const net::PeerCertificate& certificate);

 private:
  // The series of one kind, so that a request looks them up once. Beyond limits::kMetricSeries kinds, those of "other".
  struct Series;
  const Series& series_of(const RequestKind& kind);

  Family<Counter>& requests_;
  Family<Histogram>& durations_;
  Family<Histogram>& own_durations_;
  Family<Histogram>& sizes_;
  Family<Counter>& terminations_;
  Family<Gauge>& long_running_;
  Family<Gauge>& in_flight_;
  Gauge& reads_in_flight_;
  Gauge& writes_in_flight_;
  Family<Counter>& users_;
  // Attempts of one result.
  struct Attempts {
    Counter& count;
    Histogram& durations;
    void add(std::chrono::nanoseconds took);
  };
  struct AttemptFamilies {
    Family<Counter>& counts;
    Family<Histogram>& durations;
    Attempts of(std::string_view result) const;
  };
  AttemptFamilies authentications_, authorizations_;
  Attempts authenticated_, unauthenticated_;
  Attempts allowed_, denied_, undecided_;
  Histogram& certificate_life_;
  std::shared_mutex mutex_;  // Guards series_.
  std::unordered_multimap<uint64_t, std::unique_ptr<Series>> series_;
};

}  // namespace holdfast::server
