// Memory used by managedFields, by resource and by object, so that operators can find the most expensive objects.
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

  // Sets holdfast_ownership_bytes and holdfast_ownership_raw_bytes for every resource. Scans every cached object, so
  // call it only when metrics are read.
  void refresh_metrics();

  // The page /debug/ownership: one line per resource, or, with resource=PLURAL[.GROUP], one line per object of that
  // resource, most expensive first (limit=N, default 50). BadRequest if the resource is not served.
  Result<std::string> page(const request::Query& query) const;

 private:
  const resource::Registry& registry_;
  ownership::Pool& pool_;
  Family<Gauge>&bytes_, &raw_bytes_;  // By resource; "" if not attributable to a single one.
};

}  // namespace holdfast::api
