// Objects between the versions of their kind, where a webhook converts them.
//
// Merging, rendering and the like are plain code and cannot wait. They ask for a converted object with
// ObjectRules::convert; what nobody has converted yet is noted, and with_conversions() has the webhook convert what was
// noted and runs the code once more. An object that was converted is remembered by its content, so the second time
// everything is there; what a request needs stays until it ends (Call::held).
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "base/task.h"
#include "call/call.h"
#include "crd/crd.h"
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

// The webhook of one definition, and what it converted lately. Any thread.
class Conversions {
 public:
  // The caller outlives it.
  Conversions(std::shared_ptr<const crd::Definition> definition, webhook::Caller& caller);

  // The object in another version; an error when that is not known yet (it has been noted then).
  Result<Value> find(Arena& arena, const types::Resource& from, const types::Resource& to, const Value& object);

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

// Notes conversions that are not known yet, on this thread, while it lives.
class NoteWanted {
 public:
  explicit NoteWanted(std::vector<WantedConversion>& into);
  ~NoteWanted();
  NoteWanted(const NoteWanted&) = delete;
  NoteWanted& operator=(const NoteWanted&) = delete;

 private:
  std::vector<WantedConversion>* const before_;
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

// What `work`, plain code, gives once everything that it wants converted is.
template <class Work>
Task<Result<typename detail::Flat<std::invoke_result_t<Work&>>::type>> with_conversions(call::Call& call, Work work) {
  // Each round may want what only became known by the last: an object of a third version, say.
  constexpr int kMostRounds = 8;
  for (int round = 0; round < kMostRounds; ++round) {
    std::vector<WantedConversion> wanted;
    std::optional<std::invoke_result_t<Work&>> result;
    {
      const NoteWanted noting(wanted);
      result.emplace(work());
    }
    if (wanted.empty()) co_return std::move(*result);
    Result<Unit> converted = co_await convert_wanted(call, std::move(wanted));
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
