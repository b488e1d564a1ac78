// What an Api consists of. Private to the room.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "admission/admission.h"
#include "api/admission_webhooks.h"
#include "api/aggregation.h"
#include "api/api.h"
#include "api/custom_resources.h"
#include "api/custom_services.h"
#include "api/openapi_endpoint.h"
#include "api/quota.h"
#include "api/service_addresses.h"
#include "api/service_pools.h"
#include "base/arena.h"
#include "base/limits.h"
#include "base/task_group.h"
#include "resource/registry.h"
#include "resource/storage.h"

namespace holdfast::api {

struct Api::State {
  State(const Dependencies& dependencies, Options chosen);

  const Dependencies deps;
  const Options options;
  resource::Registry registry;
  ArenaBudget request_memory{limits::kRequestBytes, limits::kAllRequestsBytes};
  std::unordered_map<std::string, resource::Storage*>
      builtin_storages;  // By plural.group; constant after construction.

  // Of the built-in resources, one for each storage prefix. Constant after construction.
  std::unordered_map<std::string, std::unique_ptr<resource::Storage>> storages;

  std::unique_ptr<ServicePools> services;           // Never null.
  std::unique_ptr<const admission::Chain> plugins;  // Never null.
  std::unique_ptr<ServiceAddresses> addresses;      // Never null.
  std::unique_ptr<webhook::Caller> caller;          // Never null.
  std::unique_ptr<AdmissionWebhooks> webhooks;      // Never null.
  std::unique_ptr<Aggregation> aggregation;         // Never null once the Api is made.
  std::unique_ptr<CustomServices> custom_services;  // The same.
  std::unique_ptr<CustomResources> custom;          // Never null once the Api is made.
  std::unique_ptr<OpenApiDocuments> openapi;        // Never null.
  std::unique_ptr<QuotaLedger> quota_ledger;        // Never null.
  bool quotas_on = true;                            // The admission plugin ResourceQuota.
  Api* self = nullptr;                              // For the server's own calls.

  Timer ticker;  // Owned by its loop, the first one.
  std::atomic<bool> closing{false};

  Family<Counter>& opt_outs;
  Family<Counter>& unset_applies;
  Family<Gauge>&ownership_bytes, &ownership_raw_bytes;  // By resource; "": what is no single resource's.

  resource::Storage* storage_of(std::string_view group, std::string_view plural);
};

}  // namespace holdfast::api
