#include "custom/custom_services.h"

#include <optional>

#include "custom/custom_resources.h"
#include "own_calls/requests.h"

namespace holdfast::custom {
namespace {

constexpr std::string_view kManager = "kube-apiserver";
// Custom resources sort after all built-in ones; versions sort by name only.
constexpr int64_t kGroupPriority = 1000, kVersionPriority = 100;
constexpr std::string_view kAlways = "true";  // Label value: always restored when changed.

std::string name_of(std::string_view group, std::string_view version) {
  return std::string(version) + "." + std::string(group);
}

Value spec_of(Arena& arena, std::string_view group, std::string_view version) {
  MapBuilder spec(arena);
  spec.add("group", Value::string(arena, group));
  spec.add("version", Value::string(arena, version));
  spec.add("groupPriorityMinimum", Value::integer(kGroupPriority));
  spec.add("versionPriority", Value::integer(kVersionPriority));
  return spec.build();
}

}  // namespace

void CustomServices::add(std::string_view group, std::string_view version) {
  const std::string name = name_of(group, version);
  {
    const std::lock_guard lock(mutex_);
    Wanted& wanted = wanted_[name];
    wanted.group = group;
    wanted.version = version;
    if (++wanted.definitions > 1) return;
  }
  look_at(name);
}

void CustomServices::remove(std::string_view group, std::string_view version) {
  const std::string name = name_of(group, version);
  {
    const std::lock_guard lock(mutex_);
    const auto found = wanted_.find(name);
    if (found == wanted_.end() || --found->second.definitions > 0) return;
    wanted_.erase(found);
  }
  look_at(name);
}

void CustomServices::look_at(std::string_view name) {
  {
    const std::lock_guard lock(mutex_);
    if (!started_) {
      early_.emplace(name);
      return;
    }
  }
  queue_.post(std::string(name));
}

void CustomServices::start() {
  std::set<std::string, std::less<>> names;
  {
    const std::lock_guard lock(mutex_);
    started_ = true;
    names.swap(early_);
  }
  for (const std::string& name : names) queue_.post(name);
}

Task<void> CustomServices::close(Executor& executor) { return tasks_.close(executor); }

Task<bool> CustomServices::settle(std::string name) {
  std::optional<Wanted> wanted;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = wanted_.find(name); found != wanted_.end()) wanted = found->second;
  }
  resource::Storage& storage = *registry_.snapshot()->storage_of("apiregistration.k8s.io", "apiservices");
  Result<cache::Cache::Latest> latest = co_await storage.cache().latest(name, loop_);
  if (!latest) co_return false;
  Arena arena;
  static const types::Resource& services = *types::find_resource("apiregistration.k8s.io", "v1", "apiservices");
  const own_calls::Target target = own_calls::object(services, "", name);
  std::optional<own_calls::Request> request;
  if (!latest->entry) {
    if (!wanted) co_return true;
    MapBuilder labels(arena), metadata(arena), service(arena);
    labels.add(kAutomanaged, Value::string(kAlways));
    metadata.add("name", Value::string(arena, name));
    metadata.add("labels", labels.build());
    service.add("apiVersion", Value::string("apiregistration.k8s.io/v1"));
    service.add("kind", Value::string("APIService"));
    service.add("metadata", metadata.build());
    service.add("spec", spec_of(arena, wanted->group, wanted->version));
    request = own_calls::Request::create(own_calls::collection(services), service.build(), kManager);
  } else {
    // Without the label, it was created by a user.
    if (latest->entry->label(kAutomanaged) != kAlways) co_return true;
    if (!wanted) {
      request = own_calls::Request::remove(target);
    } else {
      const store::Blob body = latest->entry->body();
      Result<Value> live = storage.codec().tree(arena, arena.copy(*body));
      if (!live) co_return true;
      const Value spec = spec_of(arena, wanted->group, wanted->version);
      const Value* has = live->find("spec");
      if (has != nullptr && equal(*has, spec)) co_return true;
      request = own_calls::Request::update(target, with_member(arena, *live, "spec", spec), kManager);
    }
  }
  const Result<own_calls::Answer> answer = co_await own_calls::send({own_, loop_}, std::move(*request));
  // A 4xx means that it was changed concurrently: the APIService watch reports that, and it is reconciled again.
  co_return answer && answer->status < 500;
}

}  // namespace holdfast::custom
