#include "ownership/deep.h"

#include <pthread.h>

namespace holdfast::ownership {
namespace {

constexpr int kUsualLevels = 256;
constexpr size_t kStackBytes = size_t{512} << 20;

bool deeper_than(const Value& value, int levels) {
  if (!value.is_map() && !value.is_list()) return false;
  if (levels == 0) return true;
  if (value.is_list()) {
    for (const Value& item : value.items()) {
      if (deeper_than(item, levels - 1)) return true;
    }
  } else {
    for (const Member& m : value.members()) {
      if (deeper_than(m.value, levels - 1)) return true;
    }
  }
  return false;
}

void* call(void* work) {
  (*static_cast<const std::function<void()>*>(work))();
  return nullptr;
}

}  // namespace

bool is_deep(const Value& value) { return deeper_than(value, kUsualLevels); }

bool run_with_room(const std::function<void()>& work) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_t thread;
  const bool started = pthread_attr_setstacksize(&attributes, kStackBytes) == 0 &&
                       pthread_create(&thread, &attributes, call, const_cast<std::function<void()>*>(&work)) == 0;
  pthread_attr_destroy(&attributes);
  if (started) pthread_join(thread, nullptr);
  return started;
}

}  // namespace holdfast::ownership
