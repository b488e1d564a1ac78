#include "codec/sink.h"

#include <algorithm>

namespace holdfast::codec {

void Sink::grow(size_t bytes) {
  constexpr size_t kLeast = 1024;
  const size_t used = size();
  // resize() clears what it adds: no more than is asked for, while that takes no copying. Doubling keeps the copying a
  // small share of the writing.
  const size_t wanted = std::max(bytes, kLeast);
  const bool fits = used + wanted <= out_->capacity();
  out_->resize(used + (fits ? wanted : std::max(wanted, used)));
  cursor_ = out_->data() + used;
  end_ = out_->data() + out_->size();
}

}  // namespace holdfast::codec
