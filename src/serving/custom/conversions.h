// Conversion of custom objects between versions by webhook.
//
// Merging, rendering and the like are synchronous code and cannot wait for a webhook. They request a converted object
// with ObjectRules::convert, which records objects that are not converted yet in MissingConversions; with_conversions()
// then calls the webhook for those and runs the code again. Conversions are cached by object content, so the second run
// finds them; those needed by a request are kept until it ends (Call::held).
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

// One object to convert.
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

// The webhook of one definition, and a cache of its recent conversions. Any thread.
class Conversions {
 public:
  // The caller must outlive this object.
  Conversions(std::shared_ptr<const crd::Definition> definition, webhook::Caller& caller);

  // The object in another version, from the cache. Otherwise returns an error and adds the object to `missing`, which
  // is null or a WantedConversions.
  Result<Value> find(Arena& arena, const types::Resource& from, const types::Resource& to, const Value& object,
                     resource::MissingConversions* missing);

  // Converts these objects, all to one version, in one call. `held` keeps the results alive. Errors are 500 without a
  // reason, with Kubernetes' messages; cancellation is an error.
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
      known_;  // Guarded by mutex_, like the members below.
  struct Recent {
    std::string key;
    Text text;
  };
  std::list<Recent> recent_;  // Newest first.
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

// Runs `work`, synchronous code that takes resource::MissingConversions&, until everything it needs has been converted,
// and returns its result.
template <class Work>
Task<Result<typename detail::Flat<std::invoke_result_t<Work&, WantedConversions&>>::type>> with_conversions(
    call::Call& call, Work work) {
  // A round may need conversions that only the previous one revealed, such as an object in a third version.
  constexpr int kMostRounds = 8;
  for (int round = 0; round < kMostRounds; ++round) {
    WantedConversions wanted;
    std::invoke_result_t<Work&, WantedConversions&> result = work(wanted);
    if (wanted.all.empty()) co_return result;
    Result<Unit> converted = co_await convert_wanted(call, std::move(wanted.all));
    if (!converted) co_return converted.take_error();
  }
  co_return internal_error("too many rounds of conversions");
}

// Converts an object of the call's kind to another version.
Task<Result<Value>> convert_object(call::Call& call, const types::Resource& from, const types::Resource& to,
                                   Value object);
// Performs the conversions needed to render these entries in the call's view. A no-op without a conversion webhook.
Task<Result<Unit>> convert_for_view(call::Call& call, const std::vector<cache::EntryRef>& entries);
Task<Result<Unit>> convert_for_view(call::Call& call, std::string_view body);
// The error event of a watch whose objects cannot be converted.
Error not_convertible();

}  // namespace holdfast::custom
