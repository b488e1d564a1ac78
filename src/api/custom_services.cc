#include "api/custom_services.h"

#include "api/custom_resources.h"
#include "api/state.h"
#include "codec/codec.h"

namespace holdfast::api {
namespace {

constexpr std::string_view kPath = "/apis/apiregistration.k8s.io/v1/apiservices";
constexpr std::string_view kQuery = "?fieldManager=kube-apiserver";
// Custom resources stand behind everything built in, and versions are ordered by their names alone.
constexpr int64_t kGroupPriority = 1000, kVersionPriority = 100;
constexpr std::string_view kAlways = "true";  // Of the label: put right whenever it changes.

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
    touched_.insert(name);
  }
  wake();
}

void CustomServices::remove(std::string_view group, std::string_view version) {
  const std::string name = name_of(group, version);
  {
    const std::lock_guard lock(mutex_);
    const auto found = wanted_.find(name);
    if (found == wanted_.end() || --found->second.definitions > 0) return;
    wanted_.erase(found);
    touched_.insert(name);
  }
  wake();
}

void CustomServices::look_at(std::string_view name) {
  {
    const std::lock_guard lock(mutex_);
    touched_.emplace(name);
  }
  wake();
}

void CustomServices::start() {
  {
    const std::lock_guard lock(mutex_);
    started_ = true;
  }
  wake();
}

void CustomServices::wake() {
  {
    const std::lock_guard lock(mutex_);
    if (!started_ || closing_ || woken_ || touched_.empty()) return;
    woken_ = true;
  }
  loop_.post([this] {
    ++running_;
    spawn(work(), [this](std::exception_ptr) { --running_; });
  });
}

Task<void> CustomServices::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  if (!loop_.in_thread()) co_await resume_on(loop_);
  const auto busy = [this] {
    const std::lock_guard lock(mutex_);
    return woken_ || running_ > 0;
  };
  while (busy()) co_await loop_.sleep_for(std::chrono::milliseconds(1));
}

Task<void> CustomServices::work() {
  while (true) {
    std::string name;
    {
      const std::lock_guard lock(mutex_);
      if (touched_.empty() || closing_) {
        woken_ = false;
        co_return;
      }
      name = std::move(touched_.extract(touched_.begin()).value());
    }
    co_await settle(std::move(name));
  }
}

Task<void> CustomServices::settle(std::string name) {
  static const auto user = std::make_shared<const auth::UserInfo>(auth::UserInfo{
      .name = std::string(kServerUser), .uid = {}, .groups = {std::string(auth::kMastersGroup)}, .extra = {}});
  const net::Handler handler = [this](net::Request& asked, net::Response& answer) {
    return api_.handle_own(asked, answer, user);
  };
  std::optional<Wanted> wanted;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = wanted_.find(name); found != wanted_.end()) wanted = found->second;
  }
  resource::Storage& storage = *api_.state().storage_of("apiregistration.k8s.io", "apiservices");
  Result<cache::Cache::Latest> latest = co_await storage.cache().latest(name, loop_);
  if (!latest) co_return;
  Arena arena;
  net::ClientRequest request;
  request.headers = {{"accept", "application/json"}, {"content-type", "application/json"}};
  const std::string path = std::string(kPath) + "/" + name;
  if (!latest->entry) {
    if (!wanted) co_return;
    MapBuilder labels(arena), metadata(arena), service(arena);
    labels.add(kAutomanaged, Value::string(kAlways));
    metadata.add("name", Value::string(arena, name));
    metadata.add("labels", labels.build());
    service.add("apiVersion", Value::string("apiregistration.k8s.io/v1"));
    service.add("kind", Value::string("APIService"));
    service.add("metadata", metadata.build());
    service.add("spec", spec_of(arena, wanted->group, wanted->version));
    request.method = "POST";
    request.target = std::string(kPath) + std::string(kQuery);
    request.body = codec::encode_json(service.build());
  } else {
    // Without the label it is somebody's own.
    if (latest->entry->label(kAutomanaged) != kAlways) co_return;
    if (!wanted) {
      request.method = "DELETE";
      request.target = path;
    } else {
      const store::Blob body = latest->entry->body();
      Result<Value> live = storage.codec().tree(arena, arena.copy(*body));
      if (!live) co_return;
      const Value spec = spec_of(arena, wanted->group, wanted->version);
      const Value* has = live->find("spec");
      if (has != nullptr && equal(*has, spec)) co_return;
      request.method = "PUT";
      request.target = path + std::string(kQuery);
      request.body = codec::encode_json(with_member(arena, *live, "spec", spec));
    }
  }
  // What fails was changed meanwhile: whoever follows APIServices says so, and it is looked at again.
  (void)co_await net::call_handler(loop_, handler, std::move(request));
}

}  // namespace holdfast::api
