#include "codec/sink.h"

#include <algorithm>

namespace holdfast::codec {

void Sink::grow(size_t bytes) {
  constexpr size_t kLeast = 1024;
  const size_t used = size();
  // Uses the string's full capacity, or doubles it: then copying is a small share of the work. C++23 (only this file is
  // compiled as such) avoids clearing memory that is about to be overwritten.
  const size_t wanted = used + std::max(bytes, kLeast);
  const size_t room = wanted <= out_->capacity() ? out_->capacity() : std::max(wanted, 2 * used);
  out_->resize_and_overwrite(room, [room](char*, size_t) { return room; });
  cursor_ = out_->data() + used;
  end_ = out_->data() + out_->size();
}

}  // namespace holdfast::codec
