// Objects between the versions of their kind, where a webhook converts them.
//
// Merging, rendering and the like are plain code and cannot wait. They ask for a converted object with
// ObjectRules::convert, which adds what the webhook has not converted yet to MissingConversions; with_conversions() has
// the webhook convert those and runs the code again. A converted object is remembered by its content, so that the
// second run finds it; what a request needs is kept until it ends (Call::held).
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "base/task.h"
#include "call/call.h"
#include "crd/crd.h"
#include "resource/object_rules.h"
#include "value/value.h"
#include "webhook/webhook.h"

namespace holdfast::custom {

class Conversions;

// One object that is to be converted.
struct WantedConversion {
  Conversions* conversions = nullptr;
  const types::Resource* from = nullptr;
  const types::Resource* to = nullptr;
  std::string key;
  std::string object;  // JSON, without resourceVersion and managedFields.
};

struct WantedConversions final : resource::MissingConversions {
  std::vector<WantedConversion> all;
};

// The webhook of one definition, and what it converted lately. Any thread.
class Conversions {
 public:
  // The caller outlives it.
  Conversions(std::shared_ptr<const crd::Definition> definition, webhook::Caller& caller);

  // The object in another version. An error if it has not been converted yet; it is added to `missing` then, which is
  // null or WantedConversions.
  Result<Value> find(Arena& arena, const types::Resource& from, const types::Resource& to, const Value& object,
                     resource::MissingConversions* missing);

  // Has these converted, all to one version, in one call. `held` keeps the results. 500 without a reason, in
  // Kubernetes' words.
  // Ends with an error when it is cancelled.
  Task<Result<Unit>> convert(net::EventLoop& loop, std::shared_ptr<net::Cancellation> cancellation,
                             std::vector<WantedConversion> wanted, std::vector<std::shared_ptr<const void>>& held);

 private:
  using Text = std::shared_ptr<const std::string>;
  Result<std::vector<std::string>> read_answer(std::string_view body, std::string_view uid, bool checks,
                                               const std::vector<WantedConversion>& wanted) const;
  void remember(const std::string& key, Text text);

  const std::shared_ptr<const crd::Definition> definition_;
  webhook::Caller& caller_;
  webhook::ClientConfig client_;
  webhook::ReviewVersion review_version_ = webhook::ReviewVersion::None;
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<const std::string>, KeyHash>
      known_;  // Guarded by mutex_, as what follows.
  struct Recent {
    std::string key;
    Text text;
  };
  std::list<Recent> recent_;  // The newest first.
  size_t recent_bytes_ = 0;
};

Task<Result<Unit>> convert_wanted(call::Call& call, std::vector<WantedConversion> wanted);

namespace detail {
template <class T>
struct Flat {
  using type = T;
};
template <class T>
struct Flat<Result<T>> {
  using type = T;
};
}  // namespace detail

// The result of `work`, plain code that takes resource::MissingConversions&, once everything that it needs is
// converted.
template <class Work>
Task<Result<typename detail::Flat<std::invoke_result_t<Work&, WantedConversions&>>::type>> with_conversions(
    call::Call& call, Work work) {
  // Each round may want what only became known by the last: an object of a third version, say.
  constexpr int kMostRounds = 8;
  for (int round = 0; round < kMostRounds; ++round) {
    WantedConversions wanted;
    std::invoke_result_t<Work&, WantedConversions&> result = work(wanted);
    if (wanted.all.empty()) co_return result;
    Result<Unit> converted = co_await convert_wanted(call, std::move(wanted.all));
    if (!converted) co_return converted.take_error();
  }
  co_return internal_error("conversions of conversions do not end");
}

// An object of the call's kind in another of its versions.
Task<Result<Value>> convert_object(call::Call& call, const types::Resource& from, const types::Resource& to,
                                   Value object);
// After this, showing these in the call's view wants nothing any more. Nothing happens where no webhook converts.
Task<Result<Unit>> prepare_to_show(call::Call& call, const std::vector<cache::EntryRef>& entries);
Task<Result<Unit>> prepare_to_show(call::Call& call, std::string_view body);
// What a watch says whose objects cannot be converted.
Error not_convertible();

}  // namespace holdfast::custom
