#include "ownership/deep.h"

#include <pthread.h>

#include <algorithm>
#include <exception>

namespace holdfast::ownership {
namespace {

constexpr uint32_t kUsualLevels = 256;
constexpr size_t kStackBytes = size_t{512} << 20;

struct Work {
  const std::function<void()>& run;
  std::exception_ptr failure = nullptr;
};

void* call(void* argument) {
  Work& work = *static_cast<Work*>(argument);
  try {
    work.run();
  } catch (...) {
    work.failure = std::current_exception();
  }
  return nullptr;
}

}  // namespace

bool is_deep(const Value& value) { return deeper_than(value, kUsualLevels); }

bool run_with_large_stack(const std::function<void()>& work) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_t thread;
  Work shared{work};
  const bool started = pthread_attr_setstacksize(&attributes, kStackBytes) == 0 &&
                       pthread_create(&thread, &attributes, call, &shared) == 0;
  pthread_attr_destroy(&attributes);
  if (started) pthread_join(thread, nullptr);
  if (shared.failure) std::rethrow_exception(shared.failure);
  return started;
}

bool run_with_stack_for(std::initializer_list<const Value*> objects, const std::function<void()>& work) {
  const bool deep =
      std::any_of(objects.begin(), objects.end(), [](const Value* v) { return v != nullptr && is_deep(*v); });
  if (deep) return run_with_large_stack(work);
  work();
  return true;
}

}  // namespace holdfast::ownership
