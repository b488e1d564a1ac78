#include "admission/event_limits.h"

#include <algorithm>

#include "admission/plugin.h"
#include "base/api_error.h"

namespace holdfast::admission {
namespace {

std::string_view shown(EventLimit::Per per) {
  switch (per) {
    case EventLimit::Per::Namespace:
      return "Namespace";
    case EventLimit::Per::User:
      return "User";
    case EventLimit::Per::SourceAndObject:
      return "SourceAndObject";
    case EventLimit::Per::Server:
      break;
  }
  return "Server";
}

std::string key_of(EventLimit::Per per, std::string_view ns, std::string_view user, const Value& event) {
  switch (per) {
    case EventLimit::Per::Namespace:
      return std::string(ns);
    case EventLimit::Per::User:
      return std::string(user);
    case EventLimit::Per::SourceAndObject: {
      std::string key(event.text_at("source", "component"));
      key += event.text_at("source", "host");
      for (const std::string_view member : {"kind", "namespace", "name", "uid", "apiVersion"}) {
        key += event.text_at("involvedObject", member);
      }
      return key;
    }
    case EventLimit::Per::Server:
      break;
  }
  return {};
}

bool is_event_write(const types::Resource& resource, std::string_view subresource, Operation operation) {
  return is_core(resource, "events") && subresource.empty() &&
         (operation == Operation::Create || operation == Operation::Update);
}

// Dry runs write nothing, so they do not count.
Result<Unit> limit_events(Attributes& attributes, const Value& event) {
  if (attributes.dry_run || attributes.event_limits == nullptr) return Unit{};
  return attributes.event_limits->accept(attributes.ns, attributes.user, event, std::chrono::steady_clock::now());
}

}  // namespace

EventLimits::EventLimits(const std::vector<EventLimit>& limits) {
  for (const EventLimit& limit : limits) limiters_.push_back({limit, {}, {}});
}

bool EventLimits::take(Limiter& limiter, const std::string& key, Time now) {
  const auto found = limiter.by_key.find(key);
  if (found == limiter.by_key.end()) {
    const bool full = limiter.buckets.size() >= static_cast<size_t>(limiter.limit.cache_size);
    if (full && limiter.limit.per != EventLimit::Per::Server) {
      limiter.by_key.erase(limiter.buckets.back().key);
      limiter.buckets.pop_back();
    }
    limiter.buckets.push_front({key, static_cast<double>(limiter.limit.burst), now});
    limiter.by_key.emplace(limiter.buckets.front().key, limiter.buckets.begin());
  } else {
    limiter.buckets.splice(limiter.buckets.begin(), limiter.buckets, found->second);
  }
  Bucket& bucket = limiter.buckets.front();
  const std::chrono::duration<double> passed = now - bucket.filled;
  bucket.filled = now;
  bucket.tokens = std::min(static_cast<double>(limiter.limit.burst),
                           bucket.tokens + passed.count() * static_cast<double>(limiter.limit.per_second));
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
}

Result<Unit> EventLimits::accept(std::string_view ns, std::string_view user, const Value& event, Time now) {
  std::vector<std::string> errors;
  const std::lock_guard lock(mutex_);
  for (Limiter& limiter : limiters_) {
    const std::string key = key_of(limiter.limit.per, ns, user, event);
    if (take(limiter, key, now)) continue;
    errors.push_back("limit reached on type " + std::string(shown(limiter.limit.per)) + " for key " + key);
  }
  if (errors.empty()) return Unit{};
  return Error{Reason::TooManyRequests, aggregate_text(errors)};
}

const Plugin kEventRateLimit = {.name = "EventRateLimit", .handles = is_event_write, .validate = limit_events};

}  // namespace holdfast::admission
