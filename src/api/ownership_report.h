// What ownership costs, by resource and by object: for operators who look for the objects that cost most.
#pragma once

#include <string>

#include "base/error.h"
#include "base/metrics.h"
#include "ownership/pool.h"
#include "request/request.h"
#include "resource/resource.h"

namespace holdfast::api {

class OwnershipReport {
 public:
  OwnershipReport(MetricRegistry& metrics, const resource::Registry& registry, ownership::Pool& pool);

  // Sets holdfast_ownership_bytes and holdfast_ownership_raw_bytes of every resource. Looks at every cached object, so
  // it is only called when the metrics are read.
  void refresh_metrics();

  // The page /debug/ownership: a line for each resource, or, with resource=PLURAL[.GROUP], a line for each object of
  // it, the most expensive first (limit=N, 50 unless given). BadRequest for a resource that is not served.
  Result<std::string> page(const request::Query& query) const;

 private:
  const resource::Registry& registry_;
  ownership::Pool& pool_;
  Family<Gauge>&bytes_, &raw_bytes_;  // By resource; "": not attributable to one resource.
};

}  // namespace holdfast::api
